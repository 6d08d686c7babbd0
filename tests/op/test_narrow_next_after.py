# SPDX-License-Identifier: Apache-2.0
"""chlo.next_after of narrow floats: every pair of numbers of a dtype."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from shardwise.dtypes import numpy_dtype
from tests.op.dtype_values import NARROW_FLOATS, mlir_name, width_of


@pytest.mark.parametrize("dtype", [d for d in NARROW_FLOATS if width_of(d) != 6])  # no integer has 6 bits
def test_the_neighbour_in_the_direction_of_the_other_operand(dtype: str) -> None:
    numbers = np.arange(2 ** width_of(dtype), dtype=np.uint8).view(numpy_dtype(dtype))
    wide = numbers.astype(np.float64)
    ordered = np.unique(wide[~np.isnan(wide)])
    x, y = (a.ravel() for a in np.meshgrid(wide, wide))
    place = np.searchsorted(ordered, x)
    step = np.sign(np.nan_to_num(y, posinf=1e300, neginf=-1e300) - np.nan_to_num(x, posinf=1e300, neginf=-1e300))
    expected = ordered[np.clip(place + step.astype(int), 0, len(ordered) - 1)]
    expected = np.where(np.isnan(x) | np.isnan(y), np.nan, expected)
    tensor = f"tensor<{len(x)}x{mlir_name(dtype)}>"
    text = f"""func.func @main(%x: {tensor}, %y: {tensor}) -> {tensor} {{
  %0 = chlo.next_after %x, %y : {tensor}, {tensor} -> {tensor}
  return %0 : {tensor}
}}"""
    program = sw.parse(text).compile(sw.Mesh({"d": 1}))
    found = np.asarray(program(*(a.astype(numpy_dtype(dtype)) for a in (x, y)))).astype(np.float64)
    np.testing.assert_array_equal(found, expected)
