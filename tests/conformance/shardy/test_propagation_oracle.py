# SPDX-License-Identifier: Apache-2.0
"""Sharding rules and basic propagation are Shardy's, value by value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings, strategies as st

from shardwise import _core
from tests.conformance.shardy.client import LEVELS, ShardyOracle, differences, shardings_of
from tests.conformance.shardy.mechanisms import RULES, WITHOUT_RULE, calls_of_text, judge
from tests.op.cases import CASES, OpCase
from tests.support.example_programs import EXAMPLES, traced_example
from tests.support.mesh_strategies import meshes, shardings
from tests.support.partitioned import record
from tests.support.random_programs import Program, programs

PHASES = (Phase.explicit, Phase.generate)  # shrinking would ask Shardy thousands of times
MESHES = meshes(max_axes=3, sizes=(2, 3, 4, 6, 8, 5, 7), max_devices=400)
Annotated = tuple[Program, list[Any]]


@st.composite
def annotated_programs(draw: st.DrawFn) -> Annotated:
    """A program and a sharding or None for each of its outputs."""
    mesh = draw(MESHES)
    program = draw(programs(mesh, min_steps=6, max_steps=18))
    held = [draw(shardings(mesh, x.ndim)) if draw(st.integers(0, 3)) == 0 else None for x in program.expected]
    return program, held


def check_propagation(oracle: ShardyOracle, module: Any, name: str, what: object = "") -> None:
    ours = shardings_of(oracle.run(_core.passes.run_passes(module, [LEVELS[name]]).text()))
    theirs = shardings_of(oracle.run(module.text(), name))
    found = differences(ours, theirs)
    assert not found, "\n".join([name, *found, module.text(), str(what)])


def check_rules(oracle: ShardyOracle, module: Any, counted: str | None = None) -> int:
    """Compares the rules of all ops for which Shardy has one; their number, or that of the ops with one name.

    Shardy does not know our own custom calls, which have rules.
    """
    theirs_of_ops = oracle.run(module.text(), RULES)["rules"]
    calls = calls_of_text(module.text(generic=True))
    count = 0
    for i, (call, (name, ours), theirs) in enumerate(zip(calls, module.sharding_rules(), theirs_of_ops, strict=True)):
        assert call.name == name
        if theirs is None and 'call_target_name = "shardwise.' in call.attributes:
            continue
        assert judge(call, ours, theirs) != "", f"op {i} {name}: {ours}, Shardy {theirs}\n{module.text()}"
        count += theirs is not None and name == (counted or name)
    return count


@settings(max_examples=400, phases=PHASES)
@given(annotated_programs(), st.sampled_from(list(LEVELS)))
def test_propagation_of_random_programs_is_that_of_shardy(shardy: ShardyOracle, drawn: Annotated, name: str) -> None:
    program, held = drawn
    check_propagation(shardy, program.record(held), name, program)


@settings(max_examples=60, phases=PHASES)
@given(annotated_programs())
def test_rules_of_random_programs_are_those_of_shardy(shardy: ShardyOracle, drawn: Annotated) -> None:
    check_rules(shardy, drawn[0].record())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_rules_of_op_cases_are_those_of_shardy(shardy: ShardyOracle, case: OpCase) -> None:
    count = instances = 0
    has_rule = False
    for n in (8, 7, 1, 0):
        for application in case.applications(n, case.dtypes[0]):
            module = record(case, application, case.dtypes[0])
            has_rule = has_rule or any(rule for name, rule in module.sharding_rules() if name == case.name)
            count += check_rules(shardy, module, case.name)
            instances += 1
    # Data-flow edges replace the rule of a barrier; the custom call is one of our own.
    of_shardy = (*WITHOUT_RULE, "optimization_barrier", "custom_call")
    without = case.name.startswith("chlo.") or case.name.removeprefix("stablehlo.") in of_shardy or not has_rule
    assert (count == 0) if without else (count > instances / 2)


@pytest.mark.parametrize("name", EXAMPLES)
def test_propagation_of_the_examples_is_that_of_shardy(shardy: ShardyOracle, name: str) -> None:
    traced = traced_example(name)
    module = traced._core
    for level in LEVELS:
        check_propagation(shardy, module, level)
    assert check_rules(shardy, module) > 0
    simplified = _core.passes.compile(module, traced.mesh._core).stages["global"]
    for level in LEVELS:
        check_propagation(shardy, simplified, level)
