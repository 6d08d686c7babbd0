# SPDX-License-Identifier: Apache-2.0
"""Inputs that expose errors: distinct values, infinities, NaN, both zeros, ties, the ends of the integers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.op.references import BFLOAT16, Array, is_float

Shape = tuple[int, ...]


def dtype_of(name: str) -> np.dtype[Any]:
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def plain(shape: Shape, dtype: str, rng: np.random.Generator, low: float = -4, high: float = 4) -> Array:
    """Generic values; integers small enough that products of a few are exact, unsigned ones positive."""
    to = dtype_of(dtype)
    if to == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if is_float(to):
        return rng.uniform(low, high, shape).astype(np.float32 if to == BFLOAT16 else to).astype(to)
    return rng.integers(0 if to.kind == "u" else -100, 100, shape).astype(to)


def extreme(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Generic values among which, where there is room, stand infinities, NaN, both zeros and the integers' ends."""
    array = plain(shape, dtype, rng)
    to = array.dtype
    if to == np.bool_ or array.size < 12:
        return array
    if is_float(to):
        values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5, -2.5, 0.5, 300.7, -70000.0], np.float32)
    else:
        ends = [np.iinfo(to).min, np.iinfo(to).max, 0, 0, 1, 2, 3, bits(to) - 1, bits(to) + 1]
        values = np.array(ends + ([-1, -2] if to.kind == "i" else [7, 8]), to)
    count = min(len(values), array.size // 2)
    with np.errstate(all="ignore"):
        array.reshape(-1)[rng.permutation(array.size)[:count]] = rng.permutation(values)[:count].astype(to)
    return array


def bits(dtype: Any) -> int:
    return 8 * np.dtype(dtype).itemsize


def within(low: float, high: float) -> Callable[..., Array]:
    return partial(plain, low=low, high=high)


def near_one(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Factors of products that neither overflow nor vanish, with both signs."""
    if not is_float(dtype_of(dtype)):
        return plain(shape, dtype, rng)
    signs = np.where(rng.integers(0, 2, shape) == 1, 1.0, -1.0)
    values = np.asarray(rng.uniform(0.75, 1.35, shape) * signs)
    return values.astype(np.float32 if dtype == "bfloat16" else dtype).astype(dtype_of(dtype))


def whole_numbers(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Positive whole numbers, which are both orders and operands of polygamma."""
    return rng.integers(1, 6, shape).astype(np.float32).astype(dtype_of(dtype))
