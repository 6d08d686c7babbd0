# SPDX-License-Identifier: Apache-2.0
"""Random modules propagated as Shardy does it, value by value; where we do not, for which reason.

`python -m tests.conformance.shardy.oracle` does the same at length.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from shardwise import _core
from tests.conformance.shardy.client import ShardyOracle
from tests.conformance.shardy.mechanisms import (
    MECHANISMS,
    RULES,
    WHOLE,
    Mechanism,
    calls_of_text,
    judge,
    mechanism_of,
)
from tests.conformance.shardy.oracle_runs import KINDS, compare_programs, passes_of, shrunk, with_cases, with_our_rules
from tests.conformance.shardy.random_modules.drawing import random_module
from tests.conformance.shardy.random_modules.texts import Block, Function, ModuleText, Op, Value, smaller

PROGRAMS, BATCH = 250, 50  # of each kind
LEAST_VALID = 0.95


@pytest.fixture(scope="module")
def worker() -> Iterator[ShardyOracle]:
    """One of this file's own, which the random programs may end."""
    oracle = ShardyOracle()
    yield oracle
    oracle.close()


def drawn(seed: str, kind: str = "plain") -> ModuleText:
    return random_module(random.Random(seed), KINDS[kind])


@pytest.mark.parametrize("first", range(0, PROGRAMS, BATCH))
@pytest.mark.parametrize("kind", KINDS)
def test_random_programs_are_propagated_as_by_shardy(worker: ShardyOracle, first: int, kind: str) -> None:
    programs = [drawn(f"test:{i}", kind) for i in range(first, first + BATCH)]
    outcomes: Counter[str] = Counter()
    for run in compare_programs(worker, programs, [passes_of(i, kind) for i in range(BATCH)]):
        outcomes[run.outcome] += 1
        if run.outcome == "differs":
            small = shrunk(worker, run)
            assert mechanism_of(small.program) is not None, small.report()
        else:
            assert run.outcome in ("equal", "invalid", "died"), run.report()
    assert outcomes["equal"] + outcomes["differs"] >= LEAST_VALID * BATCH


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_mechanisms_show_what_shardy_gives(shardy: ShardyOracle, mechanism: Mechanism) -> None:
    assert len(mechanism.text.strip().splitlines()) <= 10
    module = _core.ir.parse(mechanism.text)
    if mechanism.rule:
        calls = calls_of_text(module.text(generic=True))
        at = max(place for place, call in enumerate(calls) if mechanism.has_op(call)) - len(calls)
        theirs = shardy.run(mechanism.text, RULES)["rules"][at]
        ours = module.sharding_rules()[at][1]
        assert theirs == (f"#sdy.op_sharding_rule<{mechanism.shardy}>" if mechanism.shardy else None)
        assert ours == mechanism.ours
        assert judge(calls[at], ours, theirs) == mechanism.name
    else:
        theirs = shardy.after(mechanism.text, WHOLE)
        ours = _core.passes.run_passes(module, ["propagate"]).text()
        assert mechanism.shardy in theirs
        assert mechanism.shardy not in ours
        assert mechanism.ours in ours
        assert mechanism.ours not in theirs


def test_a_program_tells_shardy_our_rules_of_ops_of_a_mechanism() -> None:
    program = ModuleText([], [Function("main", Block([Value("%x", (8,), "f32")], terminator="func.return"), [None])])
    block = program.main.block
    for number, name in enumerate(("chlo.erf", "stablehlo.tanh")):
        block.ops.append(Op(number, name, [block.arguments[0]], [Value(f"%{number}", (8,), "f32")]))
    before = program.text().splitlines()
    after = with_our_rules(program).splitlines()
    rule = " {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>}"
    assert [a.replace(rule, "") for a in after] == before
    assert [rule in a for a in after if "= " in a.partition(rule)[0]] == [True, False]


def test_a_program_tells_shardy_cases_of_branches() -> None:
    program = next(p for p in (drawn(f"if:{i}", "regions") for i in range(200)) if "if" in p.features)
    before, after = Counter(op.name for op in program.ops()), Counter(op.name for op in with_cases(program).ops())
    assert before["stablehlo.if"] > 0
    assert after["stablehlo.if"] == 0
    assert after["stablehlo.case"] == before["stablehlo.case"] + before["stablehlo.if"]
    assert [op.name for op in program.ops()].count("stablehlo.if") == before["stablehlo.if"]
    text = with_our_rules(program)
    assert '"stablehlo.if"' not in text
    _core.ir.parse(text).verify()


def test_programs_are_made_smaller() -> None:
    """Until nothing can go: an op that is wanted, with arguments for what it needs."""
    program = drawn("small:8")
    assert any(op.name == "stablehlo.dot_general" for op in program.ops())
    small = smaller(program, lambda p: any(op.name == "stablehlo.dot_general" for op in p.ops()))
    assert [op.name for op in small.ops()] == ["stablehlo.dot_general"]
    assert small.main.block.outputs == []
    _core.ir.parse(small.text()).verify()


def test_a_seed_is_a_program() -> None:
    assert drawn("7").text() == drawn("7").text()
    assert drawn("7").text() != drawn("8").text()
