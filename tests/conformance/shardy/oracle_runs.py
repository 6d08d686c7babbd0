# SPDX-License-Identifier: Apache-2.0
"""Random modules propagated by Shardwise and by Shardy, value by value; used by the tests and by oracle.py.

for run in compare_programs(oracle, [program], ["sdy-basic-propagate"]):
    run.outcome, run.differences
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from shardwise import _core
from tests.conformance.shardy.client import LEVELS, ShardyOracle
from tests.conformance.shardy.mechanisms import call_of_op, has_other_rule
from tests.conformance.shardy.random_modules.drawing import Step
from tests.conformance.shardy.random_modules.instance_steps import INSTANCE_STEPS
from tests.conformance.shardy.random_modules.region_steps import REGION_STEPS
from tests.conformance.shardy.random_modules.special_steps import SPECIAL_STEPS
from tests.conformance.shardy.random_modules.steps import STEPS
from tests.conformance.shardy.random_modules.texts import ModuleText, Op, Value, live_values, smaller

PIPELINE = "sdy-propagation"  # sdy-propagation-pipeline without the reshards at its end (worker.py)
SIMPLIFIED = f"simplify, {PIPELINE}"  # what a compiled program propagates: both are given what `simplify` makes of it
# Shardy's passes -> ours.
PASSES = {**LEVELS, PIPELINE: "propagate", SIMPLIFIED: "propagate"}
_RULE_LINE = re.compile(r'(sdy\.sharding_rule = #sdy\.op_sharding_rule<.*?[)}]>)[,}].* loc\("n(\d+)"\)$', re.MULTILINE)
KINDS: dict[str, Sequence[tuple[Step, float]]] = {
    "plain": STEPS,
    "special": STEPS + SPECIAL_STEPS,
    "instances": STEPS + INSTANCE_STEPS,
    "regions": STEPS + SPECIAL_STEPS + REGION_STEPS,
}


def passes_of(index: int, kind: str) -> str:
    """The levels and the whole pipeline in turn; of programs with regions, for which it does most, every other one."""
    names = [*LEVELS, PIPELINE, SIMPLIFIED]
    if kind == "regions" and index % 2:
        return PIPELINE
    return names[index // 2 % len(names)] if kind == "regions" else names[index % len(names)]


def propagated(text: str, passes: str) -> str:
    """What Shardwise leaves where Shardy runs these passes."""
    module = _core.passes.run_passes(_core.ir.parse(text), [PASSES[passes]], strict_divisible=True)
    return str(module.text(locations=True))


def simplified(text: str) -> str:
    """What compiling propagates of a text."""
    return str(_core.passes.run_passes(_core.ir.parse(text), ["simplify"]).text(locations=True))


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


def symbol(factor: int) -> str:
    return "ijklmnopqrstuvwxyz"[factor] if factor < 18 else f"z_{factor - 17}"


def rule_of_strangers(op: Op) -> str:
    """Of an op that has no rule here: no two dims have a factor in common."""
    sizes = [n for v in (*op.operands, *op.results) for n in v.shape]
    names = iter([symbol(i) for i in range(len(sizes))])
    sides = ["([" + "], [".join(", ".join(next(names) for _ in v.shape) for v in values) + "])"
             for values in (op.operands, op.results)]  # fmt: skip
    rule = "->".join(sides) + " {" + ", ".join(f"{symbol(i)}={n}" for i, n in enumerate(sizes)) + "}"
    return f"sdy.sharding_rule = #sdy.op_sharding_rule<{rule}>"


def with_cases(program: ModuleText) -> ModuleText:
    """Each stablehlo.if as the case of two that it is, for which Shardy has edges."""
    if not any(op.name == "stablehlo.if" for op in program.ops()):
        return program
    program = copy.deepcopy(program)
    for block in list(program.blocks()):
        for op in [op for op in block.ops if op.name == "stablehlo.if"]:
            index = Value(f"%if{op.number}", (), "i32")
            block.ops.insert(block.ops.index(op), Op(-1, "stablehlo.convert", op.operands, [index]))
            op.name, op.operands = "stablehlo.case", [index]
    return program


def with_our_rules(program: ModuleText) -> str:
    """Where our rule of an op is not Shardy's, for a reason, both follow ours: the rest of the program is compared.
    An if is told as a case.

    Shardy refuses a few of these texts: it puts the constant operand of a commutative CHLO op last, and forgets to turn
    the rule round with it.
    """
    program = with_cases(program)
    ruled = [op for op in program.ops() if op.operands and has_other_rule(call_of_op(op))]
    if not ruled:
        return program.text()
    populated = _core.passes.populate_rules(_core.ir.parse(program.text())).text(locations=True)
    rules = {number: rule for rule, number in _RULE_LINE.findall(populated)}
    before = [op.extra for op in ruled]
    for op in ruled:
        op.extra = rules.get(str(op.number)) or rule_of_strangers(op)
    text = program.text()
    for op, extra in zip(ruled, before):
        op.extra = extra
    return text


def compare_programs(oracle: ShardyOracle, programs: Sequence[ModuleText], passes: Sequence[str]) -> list[Run]:
    """Each program under each of its passes; all of them are one request."""
    runs, requests = [], []
    for program, name in zip(programs, passes, strict=True):
        text = program.text()
        run = Run(program, name)
        told, ours = text, ""  # what we refuse, Shardy should
        try:
            told = with_our_rules(program)
            if name == SIMPLIFIED:
                text = told = simplified(told)
            ours = propagated(text, name)
        except _core.error.Error as error:
            run.outcome, run.detail = "unread", str(error)
        runs.append(run)
        passes_of_shardy = PIPELINE if name == SIMPLIFIED else name
        requests.append({"do": "compare", "text": told, "passes": passes_of_shardy, "ours": ours})
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
