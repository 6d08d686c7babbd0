# SPDX-License-Identifier: Apache-2.0
"""np.sort, argsort and median of narrow floats: NaN last, also where its bits have a sign; infinity is no NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw

DTYPES = (
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sort": lambda x: np.sort(x, axis=0), "argsort": lambda x: np.argsort(x, axis=0),
    "lexsort": lambda x: np.lexsort((x[:, 0], x[:, 1])), "median": lambda x: np.median(x[1:], axis=0),
}  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_is_last(dtype: str, function: str) -> None:
    numbers = np.array([[1, np.nan], [np.nan, 2], [2, 4], [0.5, np.nan], [4, 1], [8, 0.25]])
    if dtype != "float8_e8m0fnu":
        numbers[4] *= -1
    x = numbers.astype(getattr(ml_dtypes, dtype))
    program = sw.jit(FUNCTIONS[function], mesh=sw.Mesh({"d": 3}), in_shardings=(sw.P("d"),)).lower(x).compile()
    for mode in ({}, {"faithful": True, "poison": True}):
        got = np.asarray(program.run(x, **mode))
        expected = np.asarray(FUNCTIONS[function](x.astype(np.float32)))
        np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "bfloat16"])
def test_the_largest_numbers_are_before_infinity_and_nan(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    largest = float(ml_dtypes.finfo(kind).max)
    numbers = np.array([np.inf, np.nan, largest, 1, -np.inf, -largest])
    x = (np.abs(numbers) if dtype == "float8_e8m0fnu" else numbers).astype(kind)
    got = np.asarray(sw.jit(np.sort, mesh=sw.Mesh({"d": 3}), in_shardings=(sw.P("d"),))(x))
    np.testing.assert_array_equal(got.astype(np.float64), np.sort(x.astype(np.float32)).astype(np.float64))
