# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of NumPy in float64."""

from __future__ import annotations

import numpy as np

from tests.op.references import Array


def cholesky(a: Array, lower: bool) -> Array:
    """Of the symmetric part, as gradients are those of symmetric matrices."""
    wide = a.astype(np.float64)
    factor = np.linalg.cholesky((wide + np.swapaxes(wide, -1, -2)) / 2)
    return (factor if lower else np.swapaxes(factor, -1, -2)).astype(a.dtype)


def triangular_solve(a: Array, b: Array, left: bool, lower: bool, transpose: str, unit: bool) -> Array:
    wide = a.astype(np.float64)
    matrix = np.tril(wide) if lower else np.triu(wide)
    if unit:
        eye = np.eye(a.shape[-1])
        matrix = matrix * (1 - eye) + eye
    if transpose != "NO_TRANSPOSE":
        matrix = np.swapaxes(matrix, -1, -2)
    if left:
        return np.linalg.solve(matrix, b.astype(np.float64)).astype(a.dtype)
    columns = np.linalg.solve(np.swapaxes(matrix, -1, -2), np.swapaxes(b.astype(np.float64), -1, -2))
    return np.swapaxes(columns, -1, -2).astype(a.dtype)


def linear_solve(a: Array, b: Array) -> Array:
    return np.linalg.solve(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
