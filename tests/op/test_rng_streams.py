# SPDX-License-Identifier: Apache-2.0
"""The streams of stablehlo.rng follow the order of the program; an op that would repeat its draws is refused."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw

BOUNDS = """%lo = stablehlo.constant dense<0.0> : tensor<f32>
  %hi = stablehlo.constant dense<1.0> : tensor<f32>
  %sh = stablehlo.constant dense<4> : tensor<1xi64>"""
RNG = "stablehlo.rng %lo, %hi, %sh, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>"


def draws(text: str) -> list[list[float]]:
    found = sw.parse(text).run()
    return [np.asarray(one).tolist() for one in (found if isinstance(found, tuple) else (found,))]


def straight(count: int, dead: str = "") -> str:
    ops = "\n".join(f"  %d{i} = {RNG}" for i in range(count))
    names, types = ", ".join(f"%d{i}" for i in range(count)), ", ".join(["tensor<4xf32>"] * count)
    return f"func.func @main() -> ({types}) {{\n  {BOUNDS}\n{dead}{ops}\n  return {names} : {types}\n}}"


def called(extra: int) -> str:
    """Two calls of a function that draws, and computes `extra` more ops."""
    ops = "\n".join(f"  %e{k} = stablehlo.negate %e{k - 1} : tensor<4xf32>" for k in range(1, extra + 1))
    return f"""func.func @main() -> (tensor<4xf32>, tensor<4xf32>) {{
  %a = func.call @outer() : () -> tensor<4xf32>
  %b = func.call @outer() : () -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}}
func.func private @outer() -> tensor<4xf32> {{
  %0 = func.call @draw() : () -> tensor<4xf32>
  %1 = func.call @draw() : () -> tensor<4xf32>
  %2 = stablehlo.abs %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}}
func.func private @draw() -> tensor<4xf32> {{
  {BOUNDS}
  %e0 = {RNG}
{ops}
  return %e{extra} : tensor<4xf32>
}}"""


def in_a_loop(draw: str) -> str:
    return f"""func.func @main() -> tensor<4xf32> {{
  {BOUNDS}
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %w:2 = stablehlo.while(%i = %zero, %a = %z) : tensor<i32>, tensor<4xf32>
  cond {{
    %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    {draw}
    %n = stablehlo.add %a, %r : tensor<4xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %n : tensor<i32>, tensor<4xf32>
  }}
  return %w#1 : tensor<4xf32>
}}"""


def test_each_op_draws_from_a_stream_of_its_own() -> None:
    rows = draws(straight(3))
    assert len({tuple(row) for row in rows}) == 3
    assert draws(straight(2)) == rows[:2]  # what comes after does not matter


@pytest.mark.parametrize("extra", [2, 6, 30])
def test_each_call_draws_other_numbers_whatever_the_size_of_the_function(extra: int) -> None:
    assert draws(called(extra)) == [draws(straight(4))[1], draws(straight(4))[3]]


def test_passes_before_a_run_do_not_change_the_numbers() -> None:
    expected = draws(called(3))
    for passes in (("inline_calls",), ("inline_calls", "simplify"), ("inline_calls", "simplify", "propagate")):
        assert draws(sw.parse(called(3)).apply(*passes).as_text()) == expected
    # A function that is not inlined yet keeps its op.
    simplified = sw.parse(called(3)).apply("simplify")
    assert simplified.as_text().count("stablehlo.rng ") == 1
    assert draws(simplified.as_text()) == expected


def test_dead_ops_and_unused_functions_do_not_change_the_numbers() -> None:
    expected = draws(straight(2))
    dead = "  %dead = stablehlo.negate %lo : tensor<f32>\n"
    assert draws(straight(2, dead)) == expected
    unused = (
        f"\nfunc.func private @unused() -> tensor<4xf32> {{\n  {BOUNDS}\n  %0 = {RNG}\n  return %0 : tensor<4xf32>\n}}"
    )
    assert draws(straight(2) + unused) == expected
    first = unused.lstrip() + "\n" + straight(2)
    assert draws(first) == expected


def test_branches_draw_from_streams_of_their_own() -> None:
    text = f"""func.func @main(%p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {{
  {BOUNDS}
  %0 = "stablehlo.if"(%p) ({{
    %a = {RNG}
    stablehlo.return %a : tensor<4xf32>
  }}, {{
    %b = {RNG}
    stablehlo.return %b : tensor<4xf32>
  }}) : (tensor<i1>) -> tensor<4xf32>
  %1 = {RNG}
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}}"""
    expected = draws(straight(3))
    for taken, row in ((True, 0), (False, 1)):
        found = [np.asarray(one).tolist() for one in sw.parse(text).run(np.bool_(taken))]
        assert found == [expected[row], expected[2]]


@pytest.mark.parametrize("is_called", [False, True])
def test_an_op_in_a_loop_is_refused(is_called: bool) -> None:
    text = in_a_loop("%r = func.call @draw() : () -> tensor<4xf32>" if is_called else f"%r = {RNG}")
    if is_called:
        text += "\n" + called(20)[called(20).index("func.func private @draw") :]
    with pytest.raises(
        sw.UnsupportedError,
        match=r"stablehlo.rng in a loop, or in a function that stays a call: can be .* not run, because it would draw "
        r"the same numbers each time; use stablehlo.rng_bit_generator, whose state can be a carry",
    ):
        sw.parse(text).run()
    assert "stablehlo.rng " in sw.parse(text).propagate().as_text()


def test_an_op_in_a_scan_of_a_text_is_refused() -> None:
    row = "tensor<4xf32>"
    text = f"""func.func @main(%x: tensor<3x4xf32>, %h: {row}) -> tensor<3x4xf32> {{
  {BOUNDS}
  %0:2 = chlo.scan(%x) inits (%h) dimension=0 {{
  ^bb0(%a: {row}, %b: {row}):
    {BOUNDS.replace("%lo", "%lo2").replace("%hi", "%hi2").replace("%sh", "%sh2")}
    %r = {RNG.replace("%lo", "%lo2").replace("%hi", "%hi2").replace("%sh", "%sh2")}
    %y = stablehlo.add %a, %r : {row}
    stablehlo.return %y, %y : {row}, {row}
  }} : (tensor<3x4xf32>, {row}) -> (tensor<3x4xf32>, {row})
  return %0#0 : tensor<3x4xf32>
}}"""
    with pytest.raises(sw.UnsupportedError, match=r"stablehlo.rng in a loop, .* it would draw the same numbers"):
        sw.parse(text).run(np.ones((3, 4), np.float32), np.ones(4, np.float32))
