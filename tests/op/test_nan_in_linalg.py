# SPDX-License-Identifier: Apache-2.0
"""A NaN of a matrix reaches everything that elimination makes of it: OpenBLAS's LU and QR lose some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw

N = 5
DTYPES = ("float32", "float64", "complex64", "complex128")
PLACES = [(0, 0), (2, 1), (1, 2), (4, 4)]


def matrix(dtype: str, place: tuple[int, int] | None) -> np.ndarray:
    rng = np.random.default_rng(3)
    whole = rng.standard_normal((N, N)) + 1j * rng.standard_normal((N, N)) + 4 * np.eye(N)
    found = (whole if dtype.startswith("complex") else whole.real).astype(dtype)
    if place is not None:
        found[place] = np.nan
    return found


def batch(dtype: str, place: tuple[int, int]) -> np.ndarray:
    """The matrix with a NaN, between two without one."""
    return np.stack([matrix(dtype, None), matrix(dtype, place), matrix(dtype, None).T.copy()])


def computed(function: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """The results on a split batch, on every device by itself."""
    mesh = sw.Mesh({"x": 2})
    spec = sw.P("x")
    program = sw.jit(function, mesh=mesh, in_shardings=(spec,) * len(arrays)).lower(*arrays).compile()
    return [np.asarray(x) for x in sw.tree.leaves(program.run(*arrays, faithful=True, poison=True))]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_systems_with_nan_have_no_finite_solution(dtype: str, place: tuple[int, int]) -> None:
    a = batch(dtype, place)
    b = np.ones((3, N, 1), dtype)
    (x,) = computed(np.linalg.solve, a, b)
    (inverse,) = computed(np.linalg.inv, a)
    (determinant,) = computed(np.linalg.det, a)
    assert np.isnan(x[1]).all()
    assert np.isnan(inverse[1]).any()
    assert np.isnan(determinant[1])
    np.testing.assert_allclose(a[::2] @ x[::2], b[::2], rtol=0, atol=2e-5)
    assert np.isfinite(inverse[::2]).all()
    assert np.isfinite(determinant[::2]).all()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_qr_is_nan_from_the_column_of_a_nan_on(dtype: str, place: tuple[int, int]) -> None:
    a = batch(dtype, place)
    q, r = computed(lambda a: tuple(np.linalg.qr(a)), a)
    column = place[1]
    assert np.isnan(q[1][:, column:]).all()
    assert np.isnan(np.diagonal(r[1])[column:]).all()
    whole, _ = computed(lambda a: tuple(np.linalg.qr(a)), matrix(dtype, None)[None].repeat(2, 0))
    np.testing.assert_allclose(q[1][:, :column], whole[0][:, :column], rtol=0, atol=1e-5)
    np.testing.assert_allclose(q[::2] @ r[::2], a[::2], rtol=0, atol=2e-5)
