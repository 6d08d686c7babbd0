# SPDX-License-Identifier: Apache-2.0
"""Choices are data: read from one compilation, kept as JSON, and pinned in another."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.conformance.pinned_choices.__main__ import REFUSED, outcomes
from tests.conformance.pinned_choices.comparing import DIFFERENT, SAME
from tests.conformance.pinned_choices.programs import SCENARIOS, of_ops, of_the_benchmark

X, ROWS = P("x"), (64, 16)
SAMPLED = ("17 rows", "both dims", "sub-axes")


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def hidden(x: Any, w: Any) -> Any:
    return np.roll(np.maximum(x @ w, 0), 3, 0).sum(0)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], Any, Any]] = {
    "layer": (hidden, [(64, 16), (16, 32)], (P("x"), P(None, "y")), P()),
    "transposition": (lambda x: x + x.T, [(64, 64)], P("x", "y"), P("y", "x")),
    "window": (lambda x: x[10:40], [ROWS], X, X),
    "cumulative sum": (lambda x: np.cumsum(x, 0), [ROWS], X, X),
    "loop": (lambda x: sw.fori_loop(0, 3, lambda _, x: x * 2 + np.roll(x, 1, 0), x), [ROWS], X, P(None, "x")),
}


def compiled(name: str, x: int, choices: sw.Choices | None = None) -> tuple[sw.Program, list[np.ndarray]]:
    function, shapes, given, wanted = PROGRAMS[name]
    arrays = [floats(*shape) for shape in shapes]
    mesh = sw.Mesh({"x": x, "y": 2})
    jitted = sw.jit(function, mesh=mesh, in_shardings=given, out_shardings=wanted, choices=choices)
    return jitted.lower(*arrays).compile(), arrays


def op_names(program: sw.Program) -> list[str]:
    return re.findall(r'"?((?:stablehlo|shardwise|chlo)\.\w+)', program.as_text("local"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_pinned_choices_are_made_again_on_another_mesh(name: str) -> None:
    program, arrays = compiled(name, 4)
    again, _ = compiled(name, 4, program.choices)
    assert again.as_text("local") == program.as_text("local")
    larger, _ = compiled(name, 16, sw.Choices.from_json(program.choices.to_json()))
    assert larger.choices == program.choices
    assert op_names(larger) == op_names(program)
    np.testing.assert_allclose(larger(*arrays), program(*arrays), rtol=1e-5, atol=1e-5)


def test_argmax_has_the_same_ops_where_the_devices_do_not_divide_its_rows() -> None:
    def program(x: int, choices: sw.Choices | None = None) -> sw.Program:
        mesh = sw.Mesh({"x": x})
        jitted = sw.jit(lambda a: np.argmax(a, 1), mesh=mesh, in_shardings=P(None, "x"), choices=choices)
        return jitted.lower(sw.ShapeDtypeStruct((16, 1 << 20), np.float32)).compile()

    small = program(8)
    for devices in (32, 128, 1 << 20):
        assert op_names(program(devices, small.choices)) == op_names(small)


def test_pinned_choices_give_the_same_ops_for_every_op() -> None:
    """A sample of ``python -m tests.conformance.pinned_choices``."""
    scenarios = [(scenario, factors[:1]) for scenario, factors in SCENARIOS if scenario.name in SAMPLED]
    sample = itertools.chain(itertools.islice(of_ops(scenarios), 0, None, 5), of_the_benchmark((4,)))
    found = Counter[str]()
    different = []
    for program, _, outcome in outcomes(sample):
        found[outcome] += 1
        if outcome == DIFFERENT:
            different.append(program.name)
    assert not different
    assert found[SAME] > 0.8 * found.total() > 1000
    assert found[REFUSED] < 0.02 * found.total()


def test_a_choice_states_the_method_and_the_shardings() -> None:
    program, _ = compiled("layer", 4)
    [dot] = [op for op in program.choices.ops if op.op == "stablehlo.dot_general"]
    assert (dot.method, dot.operands, dot.results) == ("", ('[{"x"}, {}]', '[{}, {"y"}]'), ('[{"x"}, {"y"}]',))
    [joined] = [op for op in program.choices.ops if op.op == "stablehlo.concatenate"]
    assert joined.method == "exchange"


def test_another_plan_can_be_pinned() -> None:
    """The same bytes, by an exchange instead of an all-to-all."""
    x = floats(16, 16)

    def program(choices: sw.Choices | None) -> sw.Program:
        mesh = sw.Mesh({"x": 8})
        jitted = sw.jit(lambda x: x, mesh=mesh, in_shardings=X, out_shardings=P(None, "x"), choices=choices)
        return jitted.lower(x).compile()

    assert program(None).choices.plans == (("all_to_all",),)
    pinned = program(sw.Choices((), (("exchange",),)))
    assert [row.kind for row in pinned.collectives()] == ["exchange"]
    np.testing.assert_array_equal(pinned(x), x)
    with pytest.raises(
        sw.ShardingError,
        match=r"reshard: choices must be possible for the program on this mesh, got reshard 0 of 1; compile without",
    ):
        program(sw.Choices((), (("all_reduce",),)))


def test_choices_of_another_program_are_refused() -> None:
    program, _ = compiled("window", 2)
    with pytest.raises(sw.ShardingError, match=r"choices must be possible for the program on this mesh, got stablehlo"):
        compiled("cumulative sum", 2, program.choices)
    with pytest.raises(
        sw.ShardingError, match=r"choices must be of this program, got choices of 0 ops; compile without"
    ):
        compiled("window", 2, sw.Choices((), ()))


def test_wrong_choices() -> None:
    with pytest.raises(TypeError, match=r"jit: choices must be those of a program, got .*; pass program\.choices"):
        sw.jit(np.sin, choices=3)
    with pytest.raises(ValueError, match=r"from_json: takes the JSON of choices, got .*; write it by choices\.to_json"):
        sw.Choices.from_json("[]")


def test_a_nested_function_has_the_choices_of_the_program() -> None:
    program, _ = compiled("window", 2)
    inner = sw.jit(np.sin, choices=program.choices)
    with pytest.raises(sw.ShardingError, match="a nested function must not have another choices than the program"):
        sw.jit(lambda x: inner(x) + 1, mesh=sw.Mesh({"x": 2})).lower(floats(8))
