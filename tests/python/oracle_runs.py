# SPDX-License-Identifier: Apache-2.0
"""Random modules propagated by Shardwise and by Shardy, value by value; used by the tests and by benchmarks.oracle.

    for run in compare_programs(oracle, [program], ["sdy-basic-propagate"]):
        run.outcome, run.differences
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from module_texts import ModuleText, smaller
from shardy_oracle import ShardyOracle

from shardwise import _core

# Shardy's module pass -> our strategy and priorities.
LEVELS = {
    "sdy-basic-propagate": ("basic", "none"),
    "sdy-aggressive-propagate": ("aggressive", "none"),
    "sdy-op-priority-propagate": ("aggressive", "ops"),
    "sdy-user-priority-propagate": ("aggressive", "user"),
}


def propagated(text: str, passes: str) -> str:
    """What Shardwise leaves where Shardy runs these passes."""
    module = _core.ir.parse(text)
    return str(_core.passes.propagate(module, *LEVELS[passes]).text(locations=True))


@dataclass
class Run:
    """One program under one of Shardy's passes."""

    program: ModuleText
    passes: str
    outcome: str = "equal"  # or "differs", "invalid" (Shardy refuses it), "unread" (we do), "died" (Shardy's process)
    detail: str = ""
    differences: list[Any] = field(default_factory=list)

    def report(self) -> str:
        rows = [f"  {name}\n    ours   {ours}\n    Shardy {theirs}" for name, ours, theirs in self.differences]
        return "\n".join([f"{self.passes}: {self.outcome} {self.detail}", *rows, self.program.text()])


def compare_programs(oracle: ShardyOracle, programs: Sequence[ModuleText], passes: Sequence[str]) -> list[Run]:
    """Each program under each of its passes; all of them are one request."""
    runs, requests = [], []
    for program, name in zip(programs, passes, strict=True):
        text = program.text()
        run = Run(program, name)
        ours = ""
        try:
            ours = propagated(text, name)
        except _core.error.Error as error:
            run.outcome, run.detail = "unread", str(error)
        runs.append(run)
        requests.append({"do": "compare", "text": text, "passes": name, "ours": ours})
    for run, reply in zip(runs, oracle.ask_all(requests), strict=True):
        if "died" in reply:
            run.outcome, run.detail = "died", reply["died"]
        elif "error" in reply:
            run.outcome, run.detail = "invalid", reply["error"]
        elif reply.get("differences"):
            run.outcome, run.differences = "differs", reply["differences"]
    return runs


def same_outcome(oracle: ShardyOracle, run: Run) -> Callable[[ModuleText], bool]:
    def holds(candidate: ModuleText) -> bool:
        (again,) = compare_programs(oracle, [candidate], [run.passes])
        if run.outcome == "unread":
            return again.outcome == run.outcome and again.detail.split(",")[0][-60:] == run.detail.split(",")[0][-60:]
        return again.outcome == run.outcome

    return holds


def shrunk(oracle: ShardyOracle, run: Run, attempts: int = 400) -> Run:
    """The same outcome by a smaller program."""
    small = smaller(run.program, same_outcome(oracle, run), attempts)
    (again,) = compare_programs(oracle, [small], [run.passes])
    return again
