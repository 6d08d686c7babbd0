# SPDX-License-Identifier: Apache-2.0
"""Arrays for random instances: ordinary numbers, any bit pattern, and the corners of each dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from shardwise.dtypes import is_complex, is_float, numpy_dtype
from tests.op.dtype_values import random_bits, width_of

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Rng = np.random.Generator


def parts_of(dtype: str) -> np.dtype[Any]:
    """The dtype of the real part of a complex dtype; any other dtype itself."""
    return np.dtype({"complex64": np.float32, "complex128": np.float64}.get(dtype) or numpy_dtype(dtype))


def float_corners(dtype: np.dtype[Any]) -> Array:
    """NaN, infinities, zeros, denormals and both ends, as far as the dtype has them."""
    info = ml_dtypes.finfo(dtype)
    ends = [info.max, info.smallest_normal, info.smallest_subnormal, info.eps]
    with np.errstate(all="ignore"):
        signed = np.array([*ends, *(-np.array(ends)), 1, -1, 0.5, 2], dtype)
        return np.concatenate([signed, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32).astype(dtype)])


def integer_ends(dtype: str) -> tuple[int, int]:
    width = width_of(dtype)
    return (0, 2**width - 1) if dtype.startswith("uint") else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)


def floats(shape: Shape, dtype: str, rng: Rng, scale: float = 1, corners: float = 0) -> Array:
    """Normal numbers of one scale; a share of `corners` among them."""
    to = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        drawn = (rng.normal(0, scale, shape) if scale else np.zeros(shape)).astype(np.float64).astype(to)
        special = rng.choice(float_corners(to), shape)
    return np.where(rng.random(shape) < corners, special, drawn).astype(to)


def integers(shape: Shape, dtype: str, rng: Rng, corners: float = 0) -> Array:
    """Small numbers, or with `corners` also any number and both ends."""
    to = numpy_dtype(dtype)
    low, high = integer_ends(dtype)
    drawn = rng.integers(max(low, -9), min(high, 9), shape, endpoint=True).astype(to)
    if not corners:
        return drawn
    anything = random_bits(shape, dtype, rng)
    ends = rng.choice(np.array([low, high, 0, 1], object), shape).astype(to)
    which = rng.random(shape)
    return np.where(which < corners / 2, ends, np.where(which < corners, anything, drawn)).astype(to)


def tame(shape: Shape, dtype: str, rng: Rng, scale: float = 1) -> Array:
    """Finite numbers without corners, for contractions and decompositions."""
    to = numpy_dtype(dtype)
    if to == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if is_complex(to):
        return (rng.normal(0, scale, shape) + 1j * rng.normal(0, scale, shape)).astype(to)
    if is_float(to):
        return np.nan_to_num(floats(shape, dtype, rng, scale).astype(np.float32)).astype(to) if to.itemsize == 1 else (
            floats(shape, dtype, rng, scale)
        )  # fmt: skip
    return integers(shape, dtype, rng)


def wild(shape: Shape, dtype: str, rng: Rng) -> Array:
    """Any of the ways above, one per array: corners, scales, and bit patterns."""
    to = numpy_dtype(dtype)
    if to == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if is_complex(to):
        real, imag = (wild_floats(shape, parts_of(dtype).name, rng) for _ in range(2))
        made = np.empty(shape, to)
        made.real, made.imag = real, imag
        return made
    if is_float(to):
        return wild_floats(shape, dtype, rng)
    return integers(shape, dtype, rng, rng.choice([0, 0.3, 0.9]))


def wild_floats(shape: Shape, dtype: str, rng: Rng) -> Array:
    way = rng.integers(5)
    if way == 0 or (way == 1 and width_of(dtype) <= 8):
        return random_bits(shape, dtype, rng)
    if way == 1:  # all exponents, without NaN
        bits = random_bits(shape, dtype, rng)
        return np.where(np.isnan(bits), np.array(1, bits.dtype), bits).astype(bits.dtype)
    scale = float(rng.choice([0.1, 1, 1, 4, 100]))
    return floats(shape, dtype, rng, scale, (0, 0.2, 0.5)[way - 2])
