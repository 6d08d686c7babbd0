# SPDX-License-Identifier: Apache-2.0
"""Sharding rules and basic propagation are Shardy's, value by value."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_cases import CASES, OpCase
from partitioned import record
from random_programs import Program, programs
from shardy_oracle import ShardyOracle, canonical_rule, differences, shardings_of, shardy  # noqa: F401 - a fixture
from strategies import meshes, shardings

import shardwise as sw
from shardwise import _core

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
MESHES = meshes(max_axes=3, sizes=(2, 3, 4, 6, 8, 5, 7), max_devices=400)
RULES = "func.func(sdy-populate-op-sharding-rules)"


@st.composite
def annotated_programs(draw: st.DrawFn) -> tuple[Program, list[Any]]:
    """A program and a sharding or None for each of its outputs."""
    mesh = draw(MESHES)
    program = draw(programs(mesh, min_steps=6, max_steps=18))
    held = [draw(shardings(mesh, x.ndim)) if draw(st.integers(0, 3)) == 0 else None for x in program.expected]
    return program, held


def check_propagation(oracle: ShardyOracle, module: Any, what: object = "") -> None:
    ours = shardings_of(oracle.run(module.propagate_basic().text()))
    theirs = shardings_of(oracle.run(module.text(), "sdy-basic-propagate"))
    found = differences(ours, theirs)
    assert not found, "\n".join([*found, module.text(), str(what)])


def check_rules(oracle: ShardyOracle, module: Any) -> int:
    """Compares the rules of all ops for which Shardy has one; their number."""
    reply = oracle.run(module.text(), RULES)
    count = 0
    for i, ((name, ours), theirs) in enumerate(zip(module.sharding_rules(), reply["rules"], strict=True)):
        if theirs is None:
            continue
        got, want = canonical_rule(ours), canonical_rule(theirs)
        if name == "stablehlo.pad":
            # Padding that moves a dim without changing its size (low 1, high -1) passes through for Shardy, which would
            # then not move what crosses a border; here it is a permutation.
            got, want = got.partition(" permutation")[0], want.partition(" permutation")[0]
        assert got == want, f"op {i} {name}: {ours}, Shardy {theirs}\n{module.text()}"
        count += 1
    return count


@settings(max_examples=300)
@given(annotated_programs())
def test_propagation_of_random_programs_is_that_of_shardy(shardy: ShardyOracle, drawn: tuple[Program, list[Any]]) -> None:  # noqa: F811
    program, held = drawn
    check_propagation(shardy, program.record(held), program)


@settings(max_examples=60)
@given(annotated_programs())
def test_rules_of_random_programs_are_those_of_shardy(shardy: ShardyOracle, drawn: tuple[Program, list[Any]]) -> None:  # noqa: F811
    check_rules(shardy, drawn[0].record())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_rules_of_op_cases_are_those_of_shardy(shardy: ShardyOracle, case: OpCase) -> None:  # noqa: F811
    count = instances = 0
    for n in (8, 7, 1, 0):
        for application in case.applications(n, case.dtypes[0]):
            count += check_rules(shardy, record(case, application, case.dtypes[0]))
            instances += 1
    # Shardy has no rule for what has no operands, and none for chlo.
    without = case.name in ("stablehlo.iota", "stablehlo.constant") or case.name.startswith("chlo.")
    assert (count == 0) if without else (count > instances / 2)


def traced_examples() -> dict[str, Any]:
    """The programs of examples/, recorded on shapes alone."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        import digits
        import quickstart
    finally:
        sys.path.remove(str(EXAMPLES))

    def f32(*shape: int) -> sw.ShapeDtypeStruct:
        return sw.ShapeDtypeStruct(shape, np.float32)

    mesh = sw.Mesh({"data": 4, "model": 2})
    x, w1, w2 = f32(64, 32), f32(32, 128), f32(128, 32)
    params = (f32(64, 64), f32(64), f32(64, 10), f32(10))
    return {
        "mlp": sw.jit(quickstart.mlp, mesh=mesh).trace(x, w1, w2),
        "gradient": sw.jit(sw.value_and_grad(quickstart.loss), mesh=mesh).trace((w1, w2), x, x),
        "digits": sw.jit(digits.sgd_step, mesh=mesh).trace(params, f32(128, 64), f32(128, 10), f32()),
        "digits, uneven": sw.jit(digits.sgd_step, mesh=mesh).trace(params, f32(92, 64), f32(92, 10), f32()),
    }


@pytest.mark.parametrize("name", ["mlp", "gradient", "digits", "digits, uneven"])
def test_propagation_of_the_examples_is_that_of_shardy(shardy: ShardyOracle, name: str) -> None:  # noqa: F811
    module = traced_examples()[name]._module
    check_propagation(shardy, module)
    assert check_rules(shardy, module) > 0
    simplified = _core.passes.compile(module, sw.Mesh({"data": 4, "model": 2})._core).stages["global"]
    check_propagation(shardy, simplified)
