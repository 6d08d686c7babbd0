# SPDX-License-Identifier: Apache-2.0
"""Pooling of `sw.nn` against loops over the windows; gradients against JAX's reduce_window."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.nn.against_jax import JAX, MESH, check_gradient, near

X = np.random.default_rng(2).normal(size=(2, 7, 5, 3))
CASES: list[tuple[tuple[int, ...], Any, Any]] = [
    ((2, 2), None, "VALID"), ((2, 3), (2, 1), "SAME"), ((3, 2), (2, 2), "same"), ((3, 3), (3, 2), [(1, 0), (2, 1)]),
    ((2, 2), (2, 2), [1, 0]), ((7, 5), None, "VALID"),
]  # fmt: skip
COMBINE: dict[str, tuple[Callable[..., Any], float]] = {
    "max_pool": (np.max, -np.inf), "min_pool": (np.min, np.inf), "avg_pool": (np.mean, 0.0),
}  # fmt: skip


def pads_of(size: int, window: int, step: int, padding: Any, dim: int) -> tuple[int, int]:
    """Of "SAME", there are ceil(size / step) windows, and the padding is divided evenly, more of it behind."""
    if isinstance(padding, str):
        needed = max((-(-size // step) - 1) * step + window - size, 0) if padding.upper() == "SAME" else 0
        return needed // 2, needed - needed // 2
    return padding[dim] if isinstance(padding[dim], tuple) else (padding[dim], padding[dim])


def by_loops(x: np.ndarray, name: str, window: Any, strides: Any, padding: Any, count_pad: bool = True) -> np.ndarray:
    combine, fill = COMBINE[name]
    steps = strides or (1, 1)
    pads = [pads_of(x.shape[d + 1], window[d], steps[d], padding, d) for d in range(2)]
    whole = [(0, 0), *pads, (0, 0)]
    padded = np.pad(x, whole, constant_values=fill)
    inside = np.pad(np.ones(x.shape, bool), whole)
    sizes = [(padded.shape[d + 1] - window[d]) // steps[d] + 1 for d in range(2)]
    found = np.empty((x.shape[0], *sizes, x.shape[-1]))
    for i, j in np.ndindex(*sizes):
        at = np.s_[:, i * steps[0] : i * steps[0] + window[0], j * steps[1] : j * steps[1] + window[1]]
        if name == "avg_pool" and not count_pad:
            found[:, i, j] = padded[at].sum(axis=(1, 2)) / inside[at].sum(axis=(1, 2))
        else:
            found[:, i, j] = combine(padded[at], axis=(1, 2))
    return found


@pytest.mark.parametrize(("window", "strides", "padding"), CASES, ids=str)
@pytest.mark.parametrize("name", COMBINE)
def test_results_are_those_of_loops(name: str, window: Any, strides: Any, padding: Any) -> None:
    function = partial(getattr(sw.nn, name), window_shape=window, strides=strides, padding=padding)
    expected = by_loops(X, name, window, strides, padding)
    found = function(X)
    assert isinstance(found, np.ndarray)
    near(found, [expected])
    for spec in (P("y", None, None, "x"), P(None, "x", "y")):
        near(sw.jit(lambda x, s=spec: function(sw.shard(x, s)), mesh=MESH)(X), [expected])
        near(function(sw.device_put(X, sw.NamedSharding(MESH, spec))), [expected])
    if name == "avg_pool":
        expected = by_loops(X, name, window, strides, padding, count_pad=False)
        near(function(X, count_include_pad=False), [expected])
    half = function(X.astype(sw.bfloat16))
    assert half.dtype == sw.bfloat16
    np.testing.assert_allclose(half.astype(float), by_loops(X, name, window, strides, padding), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", COMBINE)
def test_gradients_are_those_of_jax(name: str) -> None:
    operation, start = {
        "max_pool": (JAX.lax.max, -np.inf), "min_pool": (JAX.lax.min, np.inf), "avg_pool": (JAX.lax.add, 0.0),
    }[name]  # fmt: skip
    count = 6 if name == "avg_pool" else 1

    def theirs(x: Any) -> Any:
        return JAX.lax.reduce_window(x, start, operation, (1, 2, 3, 1), (1, 2, 1, 1), "SAME") / count

    check_gradient(partial(getattr(sw.nn, name), window_shape=(2, 3), strides=(2, 1), padding="SAME"), theirs, X)


def test_any_number_of_batch_dims() -> None:
    line = X[0, 0]
    np.testing.assert_array_equal(sw.nn.max_pool(line, (5,)), line.max(axis=0, keepdims=True))
    np.testing.assert_array_equal(sw.nn.max_pool(X[None], (7, 5))[0], sw.nn.max_pool(X, (7, 5)))
    assert sw.nn.max_pool(np.zeros((0, 4, 3)), (2,)).shape == (0, 3, 3)


@pytest.mark.parametrize(
    ("spec", "strides", "exchanges"),
    [(P("x"), 1, 0), (P(None, None, "x"), 1, 0), (P(None, "x"), 1, 1), (P(None, "x"), 2, 0)],
    ids=str,
)
def test_what_travels(spec: P, strides: int, exchanges: int) -> None:
    pool = partial(sw.nn.max_pool, window_shape=2, strides=strides)
    text = sw.jit(pool, mesh=sw.Mesh({"x": 2}), in_shardings=spec).lower(np.ones((4, 64, 6))).compile().as_text()
    assert text.count('"shardwise.exchange"') == exchanges
    assert "shardwise.all_" not in text


def test_what_is_refused() -> None:
    with pytest.raises(sw.ShapeError, match=r"nn.max_pool: inputs must have at least 3 dims"):
        sw.nn.max_pool(X[0, 0], (2, 2))
    with pytest.raises(sw.ShapeError, match=r"nn.min_pool: strides must be 2 positive integers"):
        sw.nn.min_pool(X, (2, 2), strides=(2,))
    with pytest.raises(sw.ShapeError, match=r"nn.avg_pool: padding must be 'SAME', 'VALID', or 2 pairs"):
        sw.nn.avg_pool(X, (2, 2), padding="CIRCULAR")
    with pytest.raises(sw.ShapeError, match=r"nn.max_pool: a window must fit"):
        sw.nn.max_pool(X, (8, 2))


def test_the_first_of_equal_extrema_has_the_gradient() -> None:
    x = np.array([[1.0], [1.0], [0.0], [0.0]])
    for pool, expected in ((sw.nn.max_pool, [1, 1, 1, 0]), (sw.nn.min_pool, [1, 0, 2, 0])):
        np.testing.assert_array_equal(sw.grad(lambda x, f=pool: f(x, (2,)).sum())(x)[:, 0], expected)
