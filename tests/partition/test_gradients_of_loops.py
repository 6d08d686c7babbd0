# SPDX-License-Identifier: Apache-2.0
"""The program of a gradient through a loop: its size does not depend on the number of steps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4})
BATCH, WIDTH = 8, 16
SPECS = (P(), P(), P(), P("x"), P(None, "x"))


def rnn(w: Any, u: Any, b: Any, h: Any, xs: Any) -> Any:
    def body(h: Any, x: Any) -> Any:
        h = np.tanh(h @ w + x @ u + b)
        return h, h

    return (sw.scan(body, h, xs)[1] ** 2).sum()


def one_step(w: Any, u: Any, b: Any, h: Any, xs: Any) -> Any:
    return (np.tanh(h @ w + xs[0] @ u + b) ** 2).sum()


def lowered(f: Any, steps: int, of: Any = (0, 1, 2, 3)) -> sw.Lowered:
    """The gradient of some arguments with the value; the value alone for none."""
    shapes = [(WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH,), (BATCH, WIDTH), (steps, BATCH, WIDTH)]
    arguments = [sw.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    function = sw.value_and_grad(f, of) if of else f
    return sw.jit(function, mesh=MESH, in_shardings=SPECS).lower(*arguments)


def ops(program: sw.Program) -> list[str]:
    """The ops of the local program, without constants."""
    text = str(program.as_text("local"))
    names = re.findall(r"= \"?((?:stablehlo|shardwise)\.\w+)", text)
    return [name for name in names if name != "stablehlo.constant"]


def test_the_local_program_has_one_size_for_any_number_of_steps() -> None:
    def local(steps: int) -> str:
        text = str(lowered(rnn, steps).compile().as_text("local"))
        return re.sub(rf"\b{steps}(?!\d)", "N", re.sub(rf"\b{steps - 1}(?!\d)", "N-1", text))

    assert local(1000).count("shardwise.scan") == 2
    assert local(1000) == local(10000)


def test_a_thousand_steps_have_the_ops_of_one_unrolled_step() -> None:
    program, step = lowered(rnn, 1000).compile(), lowered(one_step, 1).compile()
    assert len(ops(program)) <= 1.2 * len(ops(step))


@pytest.mark.parametrize(("of", "most"), [((), 10), ((0, 1), 26)])
def test_a_loop_adds_no_op_for_its_rows(of: Any, most: int) -> None:
    """Counters, predicates, and the reads and writes of rows are no ops of their own."""
    names = ops(lowered(rnn, 1000, of).compile())
    assert len(names) <= most
    assert not {"stablehlo.dynamic_slice", "stablehlo.compare", "stablehlo.select"} & set(names)


def outputs_of_scans(program: sw.Program) -> list[int]:
    return [int(n) for n in re.findall(r"resultSegmentSizes = array<i32: (\d+),", str(program.as_text("local")))]


def test_a_stack_holds_a_carry_and_its_next_value() -> None:
    """The gradient reads the state before and after each step; both are rows of the stacked results."""
    program = lowered(rnn, 1000).compile()
    assert outputs_of_scans(program) == [1, 0]
    assert "stablehlo.dynamic_update_slice" not in ops(program)


def test_a_cotangent_of_a_stack_is_computed_row_by_row() -> None:
    """The cotangent of the stacked states is twice the states, and only the rows that the loop reads are doubled."""
    text = str(lowered(rnn, 1000).compile().as_text("local"))
    stack = f"tensor<1000x{BATCH // 4}x{WIDTH}xf32>"
    made = re.findall(rf"= (\S+) .*[ >] ?{stack}$", text, re.MULTILINE)
    loop = {"stablehlo.constant", "stablehlo.concatenate"}  # the states before each step, which are read where they are
    others = [name for name in made if name not in loop]
    assert others == ["stablehlo.multiply"]  # the squares of the loss


def test_cotangents_of_ones_are_not_multiplied() -> None:
    x, y = (sw.ShapeDtypeStruct((BATCH, WIDTH), np.float32) for _ in range(2))
    program = sw.jit(sw.grad(lambda x, y: (x * y).sum()), mesh=MESH).lower(x, y).compile()
    assert ops(program) == []
