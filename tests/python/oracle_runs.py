# SPDX-License-Identifier: Apache-2.0
"""Random modules propagated by Shardwise and by Shardy, value by value; used by the tests and by benchmarks.oracle.

for run in compare_programs(oracle, [program], ["sdy-basic-propagate"]):
    run.outcome, run.differences
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from module_drawing import Step
from module_instance_steps import INSTANCE_STEPS
from module_region_steps import REGION_STEPS
from module_special_steps import SPECIAL_STEPS
from module_steps import STEPS
from module_texts import ModuleText, live_values, smaller
from oracle_mechanisms import has_no_rule
from shardy_oracle import LEVELS, ShardyOracle

from shardwise import _core

PIPELINE = "sdy-propagation"  # sdy-propagation-pipeline without the reshards at its end (shardy_worker.py)
# Shardy's module pass -> ours.
PASSES = {name: f"propagate-{name.removeprefix('sdy-').removesuffix('-propagate')}" for name in LEVELS}
PASSES[PIPELINE] = "propagate"
KINDS: dict[str, Sequence[tuple[Step, float]]] = {
    "plain": STEPS,
    "special": STEPS + SPECIAL_STEPS,
    "instances": STEPS + INSTANCE_STEPS,
    "regions": STEPS + SPECIAL_STEPS + REGION_STEPS,
}


def passes_of(index: int, kind: str) -> str:
    """The whole pipeline for programs with regions, which the levels alone do not look into; both for others."""
    names = [PIPELINE] if kind == "regions" else [*LEVELS, PIPELINE]
    return names[index % len(names)]


def propagated(text: str, passes: str) -> str:
    """What Shardwise leaves where Shardy runs these passes."""
    module = _core.passes.run_passes(_core.ir.parse(text), [PASSES[passes]], strict_divisible=True)
    return str(module.text(locations=True))


@dataclass
class Run:
    """One program under one of Shardy's passes."""

    program: ModuleText
    passes: str
    outcome: str = "equal"  # or "differs"; "invalid": refused by Shardy, "died": it ended; "unread": refused by us,
    # "misprinted": Shardy refuses what we print
    detail: str = ""
    differences: list[Any] = field(default_factory=list)

    def report(self) -> str:
        rows = [f"  {name}\n    ours   {ours}\n    Shardy {theirs}" for name, ours, theirs in self.differences]
        return "\n".join([f"{self.passes}: {self.outcome} {self.detail}", *rows, self.program.text()])


def without_dead_ops(program: ModuleText, differences: list[Any]) -> list[Any]:
    """Nothing uses them; Shardwise drops them, and Shardy keeps some."""
    live = live_values(program)
    dead = {f"n{op.number}" for op in program.ops() if not any(id(v) in live for v in op.results)}
    return [row for row in differences if row[1] is not None or row[0].split()[0] not in dead]


def text_for_shardy(program: ModuleText) -> str:
    """With our rules on the ops for which Shardy has none, so that the rest of the program can be compared."""
    missing = [op for op in program.main.block.ops if has_no_rule(op)]
    if not missing:
        return program.text()
    rules = _core.ir.parse(program.text()).sharding_rules()
    for op, (name, rule) in zip(program.main.block.ops, rules, strict=True):
        if op in missing and rule:
            assert op.name == name
            op.extra = f"sdy.sharding_rule = #sdy.op_sharding_rule<{rule}>"
    text = program.text()
    for op in missing:
        op.extra = ""
    return text


def compare_programs(oracle: ShardyOracle, programs: Sequence[ModuleText], passes: Sequence[str]) -> list[Run]:
    """Each program under each of its passes; all of them are one request."""
    runs, requests = [], []
    for program, name in zip(programs, passes, strict=True):
        text = program.text()
        told = text_for_shardy(program)
        run = Run(program, name)
        ours = ""
        try:
            ours = propagated(text, name)
        except _core.error.Error as error:
            run.outcome, run.detail = "unread", str(error)
        runs.append(run)
        requests.append({"do": "compare", "text": told, "passes": name, "ours": ours})
    for run, reply in zip(runs, oracle.ask_all(requests), strict=True):
        if "died" in reply:
            run.outcome, run.detail = "died", reply["died"]
        elif "error" in reply:
            run.outcome, run.detail = "invalid", reply["error"]
        elif "misprinted" in reply:
            run.outcome, run.detail = "misprinted", reply["misprinted"]
        elif reply.get("differences"):
            run.differences = without_dead_ops(run.program, reply["differences"])
            run.outcome = "differs" if run.differences else "equal"
    return runs


def same_outcome(oracle: ShardyOracle, run: Run) -> Callable[[ModuleText], bool]:
    def holds(candidate: ModuleText) -> bool:
        (again,) = compare_programs(oracle, [candidate], [run.passes])
        if run.outcome in ("unread", "misprinted"):
            return again.outcome == run.outcome and again.detail.split(",")[0][:30] == run.detail.split(",")[0][:30]
        return again.outcome == run.outcome

    return holds


def shrunk(oracle: ShardyOracle, run: Run, attempts: int = 400) -> Run:
    """The same outcome by a smaller program."""
    small = smaller(run.program, same_outcome(oracle, run), attempts)
    (again,) = compare_programs(oracle, [small], [run.passes])
    return again


_OP_LINE = re.compile(r"^\s*(%\S+ = .*|\}.*|\".*): \(.*\) -> \S.*$")


def with_numbers(generic: str) -> str:
    """Generic text whose ops have locations n1, n2, …"""
    lines = []
    for number, line in enumerate(generic.splitlines()):
        lines.append(f'{line} loc("n{number}")' if _OP_LINE.match(line) else line)
    return "\n".join(lines) + "\n"


def text_differences(oracle: ShardyOracle, generic: str, passes: str) -> list[Any]:
    """Of one module in generic form."""
    text = with_numbers(generic)
    (reply,) = oracle.ask_all([{"do": "compare", "text": text, "passes": passes, "ours": propagated(text, passes)}])
    assert "differences" in reply, reply
    found: list[Any] = reply["differences"]
    return found
