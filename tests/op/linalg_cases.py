# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of op cases: linear algebra. ``n`` is the batch, or a dim of a matrix."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from shardwise import _core
from tests.op.case import Application, OpCase
from tests.op.inputs import Shape, plain
from tests.op.references import Array

EnumValue = _core.ir.EnumValue
DTYPES = ("float64", "float32")


def definite(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Symmetric positive definite matrices where the last two dims are equal."""
    array = plain(shape, dtype, rng, -0.5, 0.5)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return array
    eye = np.eye(shape[-1], dtype=array.dtype)
    return np.asarray((array + np.swapaxes(array, -1, -2)) / 2 + shape[-1] * eye)


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


def _cholesky(n: int, dtype: str) -> list[Application]:
    return [
        Application((shape,), partial(cholesky, lower=lower), {"lower": lower}, label=f"{shape}{lower}")
        for shape, lower in [((n, 3, 3), True), ((2, n, 2, 2), False), ((n, n), True)]
    ]


def _triangular_solve(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, bool, bool, str, bool]] = [
        ((n, 3, 3), (n, 3, 2), True, True, "NO_TRANSPOSE", False),
        ((2, 3, 3), (2, 3, n), True, False, "TRANSPOSE", False),
        ((2, 3, 3), (2, n, 3), False, True, "ADJOINT", True),
        ((n, 2, 2), (n, 3, 2), False, False, "NO_TRANSPOSE", False),
    ]
    applications = []
    for a, b, left, lower, transpose, unit in rows:
        attrs = {
            "left_side": left,
            "lower": lower,
            "unit_diagonal": unit,
            "transpose_a": EnumValue("stablehlo", "transpose", transpose),
        }
        reference = partial(triangular_solve, left=left, lower=lower, transpose=transpose, unit=unit)
        applications.append(Application((a, b), reference, attrs, label=f"{a}{b}{left}{lower}{transpose}"))
    return applications


def _custom_call(n: int, dtype: str) -> list[Application]:
    attrs: dict[str, Any] = {"call_target_name": "shardwise.solve"}
    return [
        Application((a, b), linear_solve, attrs, result_shape=b, result_dtype=dtype, label=f"{a}{b}")
        for a, b in [((n, 3, 3), (n, 3, 2)), ((3, 3), (3, n)), ((n, n), (n, 2))]
    ]


LINALG = [
    OpCase("stablehlo.cholesky", DTYPES, _cholesky, definite, "magnitude", 16),
    OpCase("stablehlo.triangular_solve", DTYPES, _triangular_solve, definite, "magnitude", 16),
    OpCase("stablehlo.custom_call", DTYPES, _custom_call, definite, "magnitude", 16),
]
