# SPDX-License-Identifier: Apache-2.0
"""Windows, cumulative ops and reductions of `sw.lax`: those of JAX, whole and split along each kind of dim."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, lax
from tests.lax.cases import ALL, Case
from tests.lax.comparing import WORKER, compare, compare_placed
from tests.support.once_per_run import written_by

CASES = ALL["windows"]
X = np.random.default_rng(0).permutation(48).reshape(8, 6).astype(np.float32)


@pytest.fixture(scope="module")
def jax_results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return dict(np.load(written_by(tmp_path_factory, WORKER, "out.npz")))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_results_and_gradients_are_those_of_jax(case: Case, jax_results: Any) -> None:
    compare("windows", case, jax_results)


@pytest.mark.parametrize("name", ["max", "tree", "select the largest", "cumsum float32 along 0", "reduce a tree"])
def test_placed_arrays(name: str) -> None:
    compare_placed(next(case for case in CASES if case.name == name))


def test_starts_keep_their_type_or_take_that_of_the_array() -> None:
    for start in (0, False, np.int8(0), np.array(0, np.float32)):
        assert lax.reduce_window(X, start, np.add, (2, 1)).dtype == np.float32
    traced = sw.jit(lambda x, start: lax.reduce_window(x, start, np.add, (2, 1)), mesh=sw.Mesh({"x": 2}))
    np.testing.assert_array_equal(traced(X, 0), X[1:] + X[:-1])
    np.testing.assert_array_equal(traced(X, np.float32(2)), X[1:] + X[:-1] + 2)
    # Zeros of both signs are two programs.
    zeros = np.full(2, -0.0)
    assert [np.signbit(lax.reduce_window(zeros, start, np.add, (2,))[0]) for start in (0.0, -0.0)] == [False, True]


def test_computations_are_functions_of_numpy() -> None:
    def sum_of_squares(a: Any, b: Any) -> Any:
        return np.hypot(a, b)

    found = lax.reduce_window(X, 0.0, sum_of_squares, (2, 2), (2, 2))
    np.testing.assert_allclose(found, np.sqrt((X**2).reshape(4, 2, 3, 2).sum((1, 3))), rtol=1e-6)
    np.testing.assert_array_equal(lax.reduce(X > 9, False, np.logical_or, (1,)), (X > 9).any(1))
    np.testing.assert_array_equal(lax.reduce_window(X > 9, True, np.logical_and, (1, 6)), (X > 9).all(1, keepdims=True))


def test_pooling_goes_back_to_the_first_largest_element() -> None:
    """Elements that are equal, as after a relu, do not share the gradient: as in JAX."""
    pooled = sw.grad(lambda x: lax.reduce_window(x, -np.inf, np.maximum, (2, 2), (2, 2)).sum())
    expected = np.zeros((4, 4))
    expected[::2, ::2] = 1
    np.testing.assert_array_equal(pooled(np.zeros((4, 4))), expected)
    split = sw.jit(pooled, mesh=sw.Mesh({"x": 3}), in_shardings=P("x"))
    np.testing.assert_array_equal(split(np.zeros((4, 4))), expected)
    # The second derivative is that of the selected elements.
    squared = sw.grad(lambda x: (lax.reduce_window(x, -np.inf, np.maximum, (2, 2), (2, 2)) ** 3).sum())
    second = sw.grad(lambda x: squared(x).sum())(X)
    largest = X.reshape(4, 2, 3, 2).max((1, 3)).repeat(2, 0).repeat(2, 1)
    np.testing.assert_array_equal(second, np.where(largest == X, 6 * X, 0))


def test_gradients_under_vmap() -> None:
    pooled = sw.grad(lambda x: (lax.reduce_window(x, -np.inf, np.maximum, (3, 2), (1, 2), "SAME") ** 2).sum())
    batch = np.stack([X, -X, X[::-1]])
    found = sw.jit(sw.vmap(pooled), mesh=sw.Mesh({"x": 3}), in_shardings=P("x"))(batch)
    np.testing.assert_array_equal(found, np.stack([pooled(x) for x in batch]))


def test_cumulative_ops_of_split_dims_exchange_totals() -> None:
    mesh = sw.Mesh({"x": 4})
    run = sw.jit(lambda x: lax.cumsum(x, reverse=True), mesh=mesh, in_shardings=P("x"), out_shardings=P("x"))
    program = run.lower(X).compile()
    np.testing.assert_array_equal(program(X), X[::-1].cumsum(0)[::-1])
    assert [row.kind for row in program.collectives().rows if "totals" in row.cause] == ["all_to_all"] * 2


def test_negative_axes_count_from_the_end() -> None:
    np.testing.assert_array_equal(lax.cummax(X, -1), np.maximum.accumulate(X, 1))
    np.testing.assert_array_equal(lax.cumlogsumexp(X[:1]), X[:1])


def test_formats_with_fewer_bits() -> None:
    x = np.array([1 + 2**-11, 65519, 65520, np.nan, -np.inf, 1e-9], np.float32)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(lax.reduce_precision(x, 5, 10), expected)


def test_functions_of_past_calls_are_forgotten() -> None:
    def of_new_function() -> weakref.ref[Any]:
        def combine(a: Any, b: Any) -> Any:
            return a + b

        np.testing.assert_array_equal(lax.reduce(X[:2, 0], 0.0, combine, (0,)), X[:2, 0].sum())
        return weakref.ref(combine)

    first = of_new_function()
    for _ in range(256):
        of_new_function()
    gc.collect()
    assert first() is None


@pytest.mark.parametrize("init", [-np.inf, float(np.finfo(np.float32).min), -1e30, -500.0, -99.5])
@pytest.mark.parametrize("scale", [1.0, 1000.0, 1e32])
@pytest.mark.parametrize("reverse", [False, True])
def test_totals_of_a_region_need_an_init_value_that_changes_nothing(init: float, scale: float, reverse: bool) -> None:
    """-500 changes no number above it, but is counted once for each shard among numbers below it."""
    x = (np.linspace(-1, 1, 15, dtype=np.float32) * np.float32(scale))[::-1]
    padding = ((0, 14),) if reverse else ((14, 0),)

    def cumulative(x: Any) -> Any:
        return sw.lax.reduce_window(x, np.float32(init), np.logaddexp, (15,), (1,), padding)

    split = sw.jit(cumulative, mesh=sw.Mesh({"x": 4}), in_shardings=P("x"), out_shardings=P("x"))
    expected = np.asarray(sw.jit(cumulative, mesh=sw.Mesh({"x": 1}))(x))
    np.testing.assert_allclose(np.asarray(split(x)), expected, rtol=1e-6)
    sends_totals = split.lower(x).compile().collectives().by_kind() == {"all_gather": 1}
    assert sends_totals == (init <= np.finfo(np.float32).min)
