# SPDX-License-Identifier: Apache-2.0
"""vmap of loops and branches: the programs that it records. test_vmap_of_control_flow.py has their numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise.testing import assert_matches_unpartitioned
from tests.api.test_control_flow import body_of

MESH = sw.Mesh({"x": 4, "y": 2})
X = np.arange(24, dtype=np.float32).reshape(6, 4)
N = np.arange(6, dtype=np.int32)


def text_of(function: Callable[..., Any], *args: Any) -> str:
    traced = sw.jit(function, mesh=MESH).trace(*args)
    traced.verify()
    traced.propagate().verify()
    return str(traced.as_text())


def ops_of(text: str) -> list[str]:
    return re.findall(r"(?:stablehlo|sdy|shardwise)\.\w+", text)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6, atol=1e-6)


# ---- what is recorded -----------------------------------------------------------------------------------------------


def test_a_loop_with_one_predicate_stays_a_loop_of_examples() -> None:
    text = text_of(sw.vmap(lambda x, w: sw.fori_loop(0, 3, lambda i, c: c * w, x), (0, None)), X, X[0])
    assert (
        body_of(text)
        == """\
%0 = stablehlo.constant dense<0> : tensor<i64>
%1:2 = stablehlo.while(%arg2 = %0, %arg3 = %arg0) : tensor<i64>, tensor<6x4xf32>
cond {
  %2 = stablehlo.constant dense<3> : tensor<i64>
  %3 = stablehlo.compare LT, %arg2, %2, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
  stablehlo.return %3 : tensor<i1>
}
do {
  %4 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<6x4xf32>
  %5 = stablehlo.multiply %arg3, %4 : tensor<6x4xf32>
  %6 = stablehlo.constant dense<1> : tensor<i64>
  %7 = stablehlo.add %arg2, %6 : tensor<i64>
  stablehlo.return %7, %5 : tensor<i64>, tensor<6x4xf32>
}
return %1#1 : tensor<6x4xf32>
"""
    )


def test_a_loop_with_a_predicate_for_each_example_runs_until_all_are_done() -> None:
    def halved(n: Any, w: Any) -> Any:
        return sw.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - c[1], c[1]), (n, w))

    text = text_of(sw.vmap(halved, (0, None)), N, np.int32(2))
    assert (
        body_of(text)
        == """\
%0:2 = stablehlo.while(%arg2 = %arg0, %arg3 = %arg1) : tensor<6xi32>, tensor<i32>
cond {
  %1 = stablehlo.constant dense<0> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<6xi32>
  %3 = stablehlo.compare GT, %arg2, %2, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
  %4 = stablehlo.constant dense<false> : tensor<i1>
  %5 = stablehlo.reduce(%3 init: %4) applies stablehlo.or across dimensions = [0] : (tensor<6xi1>, tensor<i1>) \
-> tensor<i1>
  stablehlo.return %5 : tensor<i1>
}
do {
  %6 = stablehlo.constant dense<0> : tensor<i32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i32>) -> tensor<6xi32>
  %8 = stablehlo.compare GT, %arg2, %7, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
  %9 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<i32>) -> tensor<6xi32>
  %10 = stablehlo.subtract %arg2, %9 : tensor<6xi32>
  %11 = stablehlo.select %8, %10, %arg2 : tensor<6xi1>, tensor<6xi32>
  stablehlo.return %11, %arg3 : tensor<6xi32>, tensor<i32>
}
%12 = stablehlo.broadcast_in_dim %0#1, dims = [] : (tensor<i32>) -> tensor<6xi32>
return %0#0, %12 : tensor<6xi32>, tensor<6xi32>
"""
    )


def test_a_branch_for_all_examples_stays_a_branch() -> None:
    function = sw.vmap(lambda p, x, y: sw.cond(p, lambda: (x * 2, y), lambda: (y, y)), (None, 0, None))
    ops = ops_of(text_of(function, np.bool_(True), X, X[0]))
    assert ops.count("stablehlo.case") == 1
    assert "stablehlo.select" not in ops
    for p in (True, False):
        first, second = sw.jit(function, mesh=MESH)(np.bool_(p), X, X[0])
        same(first, X * 2 if p else np.broadcast_to(X[0], X.shape))
        same(second, np.broadcast_to(X[0], X.shape))


def test_a_branch_for_each_example_computes_both() -> None:
    function = sw.vmap(lambda p, x: sw.cond(p, lambda: x * 2, lambda: x + 1))
    text = text_of(function, N > 2, X)
    assert "stablehlo.case" not in text
    assert ops_of(text).count("stablehlo.select") == 1
    same(sw.jit(function, mesh=MESH)(N > 2, X), np.where((N > 2)[:, None], X * 2, X + 1))


# ---- one size for any number of examples ----------------------------------------------------------------------------


def _collatz(n: Any) -> Any:
    body = lambda c: (np.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1)  # noqa: E731
    return sw.while_loop(lambda c: c[0] > 1, body, (n, np.int32(0)))[1]


def _row(n: Any, x: Any) -> Any:
    return x[n] + np.roll(x, n)


SIZED: dict[str, Callable[..., Any]] = {
    "scan": lambda n, x: sw.scan(lambda c, r: (c * r, c), x[0], x),
    "while_loop": lambda n, x: _collatz(n),
    "fori_loop": lambda n, x: sw.fori_loop(0, n, lambda i, c: c + 1, x),
    "cond": lambda n, x: sw.cond(n > 2, lambda: x, lambda: -x),
    "switch": lambda n, x: sw.switch(n, [lambda: x, lambda: -x, lambda: x * 2]),
    "nested": lambda n, x: sw.scan(lambda c, r: (c + _collatz(n), r * c), np.int32(0), x),
    "dynamic slices": _row,
    "vmap in a scan": lambda n, x: sw.scan(lambda c, r: (c + 1, sw.vmap(lambda v: v * c)(r)), n, x),
}


@pytest.mark.parametrize("name", SIZED)
def test_the_program_is_as_long_for_2_examples_as_for_200(name: str) -> None:
    mapped = sw.vmap(SIZED[name])
    few, many = (
        ops_of(text_of(mapped, np.ones(size, np.int32), np.ones((size, 3, 4), np.float32))) for size in (2, 200)
    )
    assert few == many


@pytest.mark.parametrize("name", SIZED)
def test_no_example_is_no_step(name: str) -> None:
    results = sw.jit(sw.vmap(SIZED[name]), mesh=MESH)(np.ones(0, np.int32), np.ones((0, 3, 4), np.float32))
    assert all(leaf.shape[0] == 0 for leaf in sw.tree.leaves(results))


# ---- with gradients and annotations ---------------------------------------------------------------------------------


def test_gradients_of_branches_inside() -> None:
    inside = sw.vmap(lambda p, x: sw.grad(lambda x: np.sum(np.where(p, x * x, x)))(x))
    looped = sw.vmap(lambda p, x: sw.scan(lambda c, r: (c, sw.grad(lambda r: np.sum(r * r * c))(r)), x[0], x)[1])
    same(sw.jit(inside, mesh=MESH)(N > 2, X), np.where((N > 2)[:, None], 2 * X, np.ones_like(X)))
    rows = np.stack([X, X + 1])
    same(sw.jit(looped, mesh=MESH)(N[:2], rows), 2 * rows * rows[:, :1])


def _loss(w: Any, xs: Any) -> Any:
    h, ys = sw.scan(lambda h, x: (np.tanh(h * w + x), h), xs[0] * 0, xs)
    return np.sum(h * h) + np.sum(ys)


def _checked_loss(w: Any, xs: Any) -> Any:
    return _loss(w, sw.checkpoint(lambda xs: np.sin(xs * w))(xs))


def _branched_loss(w: Any, xs: Any) -> Any:
    return sw.cond(np.sum(xs) > 20, lambda: np.sum(w * xs), lambda: np.sum(w * w * xs))


@pytest.mark.parametrize("loss", [_loss, _checked_loss, _branched_loss])
def test_gradients_of_examples_are_those_of_a_python_loop(loss: Callable[..., Any]) -> None:
    rows = np.stack([X, X[::-1] / 7, X - 11]) / 5
    w = X[1] / 9
    one = sw.jit(sw.grad(loss, argnums=(0, 1)), mesh=MESH)
    expected = [np.stack(column) for column in zip(*(map(np.asarray, one(w, row)) for row in rows))]
    found = sw.jit(sw.vmap(sw.grad(loss, argnums=(0, 1)), (None, 0)), mesh=MESH, in_shardings=(None, sw.P("x")))(
        w, rows
    )
    assert len(expected) == 2
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-5, atol=1e-5)
    total = sw.grad(lambda w, rows: np.sum(sw.vmap(loss, (None, 0))(w, rows)), argnums=(0, 1))
    found = sw.jit(total, mesh=MESH, in_shardings=(None, sw.P("x")))(w, rows)
    for ours, theirs in zip(found, (expected[0].sum(0), expected[1]), strict=True):
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-5, atol=1e-5)


def test_a_checkpoint_of_examples_stays_one() -> None:
    text = text_of(sw.vmap(sw.checkpoint(lambda x, w: np.sin(x) * w), (0, None)), X, X[0])
    assert ops_of(text).count("shardwise.checkpoint") == 1
    assert "-> tensor<6x4xf32>" in text


def test_examples_on_several_devices_share_the_predicate() -> None:
    function = sw.jit(sw.vmap(_collatz), mesh=MESH, in_shardings=sw.P("x"))
    numbers = np.array([1, 27, 6, 7, 97, 3, 2], np.int32)
    assert np.asarray(function(numbers)).tolist() == [0, 111, 8, 16, 118, 7, 1]
    assert "all_reduce" in function.lower(numbers).compile().as_text("local")


# ---- without a program ----------------------------------------------------------------------------------------------


def test_an_unpartitioned_run_loops_over_the_examples() -> None:
    assert_matches_unpartitioned(sw.vmap(_collatz), N[1:], mesh=MESH)
