# SPDX-License-Identifier: Apache-2.0
"""Normalization and dropout of `sw.nn` against the formulas of Flax, written with JAX."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.nn.against_jax import JAX, MESH, check, check_gradient, near, of_jax, traced

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4, 5)) * 2 + 1
SCALE, BIAS = RNG.normal(size=(2, 5))
jnp: Any = JAX.numpy


def normalized(x: Any, mean: Any, variance: Any, scale: Any, bias: Any, epsilon: float) -> Any:
    return (x - mean) * JAX.lax.rsqrt(variance + epsilon) * scale + bias


def layer_norm(x: Any, scale: Any = 1.0, bias: Any = 0.0, axis: Any = -1, epsilon: float = 1e-6) -> Any:
    mean, variance = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    return normalized(x, mean, variance, scale, bias, epsilon)


def rms_norm(x: Any, scale: Any = 1.0, axis: Any = -1, epsilon: float = 1e-6) -> Any:
    return x * JAX.lax.rsqrt((x * x).mean(axis, keepdims=True) + epsilon) * scale


def batch_norm(x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
    own, spread = x.mean((0, 1)), x.var((0, 1))
    y = normalized(x, own, spread, scale, bias, 1e-5)
    return y, 0.99 * mean + 0.01 * own, 0.99 * variance + 0.01 * spread


@pytest.mark.parametrize("is_fast", [True, False])
def test_layer_norm(is_fast: bool) -> None:
    ours = partial(sw.nn.layer_norm, use_fast_variance=is_fast)
    check(ours, layer_norm, *(a.astype(np.float32) for a in (X, SCALE, BIAS)), atol=1e-5)
    check_gradient(ours, layer_norm, X, SCALE, BIAS, rtol=1e-9)
    for options in ({}, {"axis": (1, 2)}, {"axis": 0, "epsilon": 0.1}):
        near(ours(X, **options), of_jax(partial(layer_norm, **options), [X]), rtol=1e-10)


def test_rms_norm() -> None:
    check(sw.nn.rms_norm, rms_norm, *(a.astype(np.float32) for a in (X, SCALE)))
    check_gradient(sw.nn.rms_norm, rms_norm, X, SCALE, rtol=1e-9)
    near(sw.nn.rms_norm(X, axis=(0, 2), epsilon=0.1), of_jax(partial(rms_norm, axis=(0, 2), epsilon=0.1), [X]))


def test_batch_norm_in_training() -> None:
    ours = partial(sw.nn.batch_norm, use_running_average=False)
    parameters = (BIAS, SCALE**2, SCALE, BIAS)
    check(ours, batch_norm, *(a.astype(np.float32) for a in (X, *parameters)), atol=1e-5)
    check_gradient(lambda *a: ours(*a)[0], lambda *a: batch_norm(*a)[0], X, *parameters, rtol=1e-9)
    moved = np.moveaxis(X, -1, 1)
    for y, expected in zip(ours(moved, *parameters, axis=1), ours(X, *parameters)):
        np.testing.assert_allclose(y, np.moveaxis(expected, -1, 1) if expected.ndim == 3 else expected)


def test_batch_norm_in_evaluation() -> None:
    parameters = (BIAS, SCALE**2, SCALE, BIAS)
    y, mean, variance = sw.nn.batch_norm(X, *parameters, use_running_average=True)
    near(y, of_jax(lambda x, *p: normalized(x, *p, 1e-5), [X, *parameters]))
    np.testing.assert_array_equal(mean, BIAS)
    np.testing.assert_array_equal(variance, SCALE**2)


def test_dtypes() -> None:
    x = X.astype(sw.bfloat16)
    for function in (sw.nn.layer_norm, sw.nn.rms_norm):
        found = function(x, SCALE.astype(sw.bfloat16))
        assert found.dtype == sw.bfloat16
        np.testing.assert_allclose(found.astype(float), function(X, SCALE), rtol=0.03, atol=0.03)
        assert function(x, SCALE.astype(np.float32)).dtype == np.float32  # as in Flax
        run = traced(function, [P(None, None, "x"), P("x")])
        np.testing.assert_array_equal(np.asarray(run(x, SCALE.astype(sw.bfloat16))).dtype, sw.bfloat16)
    y, mean, _ = sw.nn.batch_norm(x, *np.ones((2, 5), np.float32), use_running_average=False)
    assert (y.dtype, mean.dtype) == (sw.bfloat16, np.float32)
    assert sw.nn.layer_norm(np.arange(4)).dtype == np.float64


def test_statistics_of_split_dims_are_all_that_travels() -> None:
    x = np.ones((4, 6, 8), np.float32)
    zeros = np.zeros(8, np.float32)
    for function, spec in (
        (sw.nn.layer_norm, P(None, None, "x")),
        (sw.nn.rms_norm, P(None, None, "x")),
        (lambda x: sw.nn.batch_norm(x, zeros, zeros, use_running_average=False), P("x")),
    ):
        text = sw.jit(function, mesh=sw.Mesh({"x": 2}), in_shardings=spec).lower(x).compile().as_text()
        assert 1 <= text.count("all_reduce") <= 2
        assert "all_gather" not in text
        assert "all_to_all" not in text


@pytest.mark.parametrize(("shared", "sizes"), [((), (3, 4, 5)), ((1,), (3, 1, 5)), ((0, -1), (1, 4, 1))])
def test_dropout(shared: Any, sizes: Any) -> None:
    key = sw.random.PRNGKey(4)
    kept = of_jax(lambda key: JAX.random.bernoulli(key, 0.7, sizes), [key])[0]
    x = X.astype(np.float32)
    expected = np.where(kept, x / np.float32(0.7), 0)
    ours = partial(sw.nn.dropout, rate=0.3, broadcast_dims=shared)
    near(ours(x, key), [expected], rtol=1e-6)
    near(traced(ours, [P("x", "y"), P()])(x, key), [expected], rtol=1e-6)
    gradient = sw.jit(sw.grad(lambda x: ours(x, key).sum()), mesh=MESH)(X)
    np.testing.assert_allclose(gradient, np.broadcast_to(kept / 0.7, X.shape))
    assert ours(X.astype(sw.bfloat16), key).dtype == sw.bfloat16


def test_no_dropout_and_only_dropout() -> None:
    key = sw.random.key(0)
    assert sw.nn.dropout(X, key, 0.5, deterministic=True) is X
    assert sw.nn.dropout(X, key, 0.0) is X
    assert not sw.nn.dropout(X, key, 1.0).any()


def test_what_is_refused() -> None:
    with pytest.raises(sw.ShapeError, match=r"nn.layer_norm: scale must broadcast to \(3, 4, 5\), got shape \(4,\)"):
        sw.nn.layer_norm(X, SCALE[:4])
    with pytest.raises(sw.ShapeError, match=r"nn.batch_norm: mean must have the sizes \(5,\) of the features"):
        sw.nn.batch_norm(X, SCALE[:4], SCALE, use_running_average=True)
    with pytest.raises(ValueError, match=r"nn.dropout: rate must be a number in \[0, 1\], got 1.5"):
        sw.nn.dropout(X, sw.random.key(0), 1.5)
    with pytest.raises(sw.DTypeError, match=r"nn.dropout: a key must be uint32\[2\]"):
        sw.nn.dropout(X, 3, 0.5)
