# SPDX-License-Identifier: Apache-2.0
"""np.linalg.eig and eigvals: values, shards of the batch, gradients, and derivatives of second order."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw

MESH = sw.Mesh({"d": 4})
RNG = np.random.default_rng(0)
DTYPES = ("float32", "float64", "complex64", "complex128")


def matrices(dtype: str, *shape: int) -> np.ndarray:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype.startswith("c") else x).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sharded_batch_has_the_bits_of_one_device(dtype: str) -> None:
    a = matrices(dtype, 6, 3, 3)
    whole = sw.jit(lambda x: (*np.linalg.eig(x), np.linalg.eigvals(x)), mesh=sw.Mesh({"d": 1}))(a)
    split = sw.jit(lambda x: (*np.linalg.eig(x), np.linalg.eigvals(x)), mesh=MESH, in_shardings=sw.P("d"))
    program = split.lower(a).compile()
    assert not program.collectives().rows
    for mode in ({}, {"faithful": True, "poison": True}):
        for x, y in zip(program.run(a, **mode), whole):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    values, vectors, alone = (np.asarray(x) for x in whole)
    assert {x.dtype for x in (values, vectors, alone)} == {np.result_type(dtype, np.complex64)}
    tolerance = 1e-4 if np.dtype(dtype).name in ("float32", "complex64") else 1e-12
    np.testing.assert_allclose(values, np.linalg.eigvals(a), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(alone, values, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(a @ vectors, vectors * values[:, None], rtol=tolerance, atol=10 * tolerance)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=tolerance)


def test_values_of_integers_and_of_matrices_that_are_not_finite() -> None:
    found = sw.jit(lambda x: np.linalg.eigvals(x), mesh=MESH)(np.array([[2, 0], [0, 3]]))
    np.testing.assert_array_equal(np.asarray(found), [2, 3])
    assert found.dtype == np.complex128
    bad = sw.jit(lambda x: np.linalg.eig(x), mesh=MESH)(np.full((2, 2), np.nan))
    assert all(np.isnan(np.asarray(x)).all() for x in bad)


def test_errors() -> None:
    with pytest.raises(sw.ShapeError) as refused:
        sw.jit(lambda x: np.linalg.eig(x), mesh=MESH)(np.ones((2, 3)))
    text = "np.linalg.eig: the last two dims must be equal, got shape (2, 3)"
    assert str(refused.value).partition(" (at ")[0].partition(";")[0] == text


WEIGHTS, U, V = RNG.normal(size=3), RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))


def of_values(x: Any) -> Any:
    w = np.linalg.eigvals(x)
    return ((np.real(w) ** 2 + np.abs(w)) * WEIGHTS).sum()


def of_vectors(x: Any) -> Any:
    """Depends on the phases of the vectors, too."""
    w, v = np.linalg.eig(x)
    return (np.real(w * w) * WEIGHTS).sum() + (np.real(v) * U + np.imag(v) * V).sum()


@pytest.mark.parametrize("loss", [of_values, of_vectors])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_are_differences(loss: Any, dtype: str) -> None:
    a, h = matrices(dtype, 2, 3, 3), 1e-6
    gradient = sw.jit(sw.grad(loss), mesh=MESH)
    found = np.asarray(gradient(a))
    assert found.shape == a.shape
    for place in np.ndindex(a.shape):
        step = np.zeros_like(a)
        step[place] = h
        expected = (loss(a + step) - loss(a - step)) / (2 * h)
        if dtype == "complex128":  # as jax.grad: the conjugate of the direction of steepest ascent
            expected = expected - 1j * (loss(a + 1j * step) - loss(a - 1j * step)) / (2 * h)
        assert abs(found[place] - expected) < 1e-6


def derivative_along(gradient: Any, direction: Any, x: Any) -> Any:
    return (gradient(x) * direction).sum()


def test_second_derivatives_are_differences_of_gradients() -> None:
    a, direction, h = matrices("float64", 2, 3, 3), RNG.normal(size=(2, 3, 3)), 1e-5
    for loss in (of_values, of_vectors):
        gradient = sw.jit(sw.grad(loss), mesh=MESH)
        along = partial(derivative_along, sw.grad(loss), direction)
        second = sw.jit(sw.grad(along), mesh=MESH)(a)
        expected = (np.asarray(gradient(a + h * direction)) - np.asarray(gradient(a - h * direction))) / (2 * h)
        np.testing.assert_allclose(np.asarray(second), expected, rtol=1e-4, atol=1e-4)


def test_batched() -> None:
    a = matrices("float64", 5, 3, 3)
    found = sw.jit(sw.vmap(lambda x: np.linalg.eigvals(x)), mesh=MESH)(a)
    np.testing.assert_allclose(np.asarray(found), np.linalg.eigvals(a), rtol=1e-12)
