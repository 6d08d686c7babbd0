# SPDX-License-Identifier: Apache-2.0
"""Carries that nothing reads after a loop: annotated ones, ones that an effect reads, ones of loops in branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 2, "y": 2})
ROW = np.arange(1, 9, dtype=np.float32)
BATCHES = np.linspace(1, 3, 24, dtype=np.float32).reshape(3, 8)


def eval_of_a_training_step(p: Any, e: Any, batches: Any) -> Any:
    def step(carry: Any, batch: Any) -> Any:
        params, ema = carry
        params = sw.shard(params - 0.1 * batch, P("x"))
        ema = sw.shard(0.9 * ema + 0.1 * params, P("x"))
        return (params, ema), params.sum()

    return sw.scan(step, (p, e), batches)[0][0]


def rows_beside_an_annotated_carry(a: Any, xs: Any) -> Any:
    return sw.scan(lambda c, x: ((sw.shard(c[0] * 2, P("x")), c[1] + x), x), (a, a), xs)[1]


def loop_in_a_scan(a: Any, xs: Any) -> Any:
    def inner(i: Any, d: Any) -> Any:
        return sw.shard(d[0] + 1, P("x")), d[1] + 2

    return sw.scan(lambda c, x: (sw.fori_loop(0, 2, inner, (c, c))[1], x), a, xs)[0]


def second_of_two(a: Any) -> Any:
    return sw.fori_loop(0, 2, lambda i, d: (sw.with_sharding_constraint(d[0] * 3, P("x")), d[1] + 2), (a, a))[1]


def gradient(a: Any) -> Any:
    def loss(a: Any) -> Any:
        return sw.scan(lambda c, _: ((sw.shard(c[0] * 2, P("x")), 3 * c[1]), None), (a, a), None, 3)[0][1].sum()

    return sw.grad(loss)(a)


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (eval_of_a_training_step, (ROW, 2 * ROW, BATCHES), ROW - np.float32(0.1) * BATCHES.sum(0)),
        (rows_beside_an_annotated_carry, (ROW, BATCHES), BATCHES),
        (loop_in_a_scan, (ROW, BATCHES), ROW + 12),
        (second_of_two, (ROW,), ROW + 4),
        (gradient, (ROW,), np.full(8, 27)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_annotated_carry_that_nothing_reads(
    function: Callable[..., Any], arguments: tuple[np.ndarray, ...], expected: np.ndarray
) -> None:
    program = sw.jit(function, mesh=MESH).lower(*arguments).compile()
    np.testing.assert_allclose(np.asarray(program(*arguments)), expected, rtol=1e-5)


def test_an_annotated_carry_that_nothing_reads_is_not_computed() -> None:
    program = sw.jit(second_of_two, mesh=MESH).lower(ROW).compile()
    assert "stablehlo.multiply" in str(program.as_text("propagated"))
    assert "stablehlo.multiply" not in str(program.as_text("local"))


# ---- effects -------------------------------------------------------------------------------------------------------


@pytest.fixture
def seen() -> list[float]:
    values: list[float] = []

    def sink(x: Any) -> Any:
        values.append(float(x))
        return np.array(x)

    sw.register_custom_call("test_unused_carries.sink", sink)
    return values


SINK = "stablehlo.custom_call @test_unused_carries.sink(%s) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>"

IN_A_BRANCH = f"""func.func @main(%x: tensor<f32>) -> tensor<f32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %w:3 = stablehlo.while(%i = %zero, %k = %zero, %s = %x) : tensor<i32>, tensor<i32>, tensor<f32>
  cond {{
    %c = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %p = stablehlo.compare EQ, %k, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %u = "stablehlo.if"(%p) ({{
      %e = {SINK}
      stablehlo.return %e : tensor<f32>
    }}, {{
      stablehlo.return %s : tensor<f32>
    }}) : (tensor<i1>) -> tensor<f32>
    %k2 = stablehlo.subtract %one, %k : tensor<i32>
    %s2 = stablehlo.add %s, %s : tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %k2, %s2 : tensor<i32>, tensor<i32>, tensor<f32>
  }}
  return %w#2 : tensor<f32>
}}"""


def test_the_predicate_of_an_effect_stays(seen: list[float]) -> None:
    assert np.asarray(sw.parse(IN_A_BRANCH).run(np.float32(3))) == 48
    assert seen == [3, 12]


def loop_with_effect(*, invariant: bool, in_branch: bool) -> str:
    """A loop with an effect in a loop, or in a branch in a loop; it may have a carry that never changes."""
    types = "tensor<i32>, tensor<f32>" + ", tensor<f32>" * invariant
    inner = f"""%q:{2 + invariant} = stablehlo.while(%b = %zero, %d = %x{", %v = %x" * invariant}) : {types}
      cond {{
        %c2 = stablehlo.compare LT, %b, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c2 : tensor<i1>
      }} do {{
        %e = {SINK}
        %b2 = stablehlo.add %b, %one : tensor<i32>
        %d2 = stablehlo.add %d, {"%v" if invariant else "%d"} : tensor<f32>
        stablehlo.return %b2, %d2{", %v" * invariant} : {types}
      }}"""
    if in_branch:
        inner = f"""%p = stablehlo.compare EQ, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %u = "stablehlo.if"(%p) ({{
        {inner}
        stablehlo.return %q#1 : tensor<f32>
      }}, {{
        stablehlo.return %x : tensor<f32>
      }}) : (tensor<i1>) -> tensor<f32>"""
    return f"""func.func @main(%x: tensor<f32>) -> tensor<i32> {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %three = stablehlo.constant dense<3> : tensor<i32>
      %w:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<f32>
      cond {{
        %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        {inner}
        %s2 = stablehlo.multiply %s, %s : tensor<f32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %s2 : tensor<i32>, tensor<f32>
      }}
      return %w#0 : tensor<i32>
    }}"""


@pytest.mark.parametrize("in_branch", [False, True])
@pytest.mark.parametrize("invariant", [False, True])
def test_what_an_effect_in_an_inner_loop_reads_stays(invariant: bool, in_branch: bool, seen: list[float]) -> None:
    text = loop_with_effect(invariant=invariant, in_branch=in_branch)
    assert np.asarray(sw.parse(text).run(np.float32(3))) == 3
    assert seen == ([9] if in_branch else [3, 9, 81])
