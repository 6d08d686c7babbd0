# SPDX-License-Identifier: Apache-2.0
"""Arrays of every dtype that programs hold, for tests of dtypes: bit patterns, and numbers that include corners."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from shardwise import _core
from shardwise.dtypes import is_complex, is_float, numpy_dtype

Array = np.ndarray[Any, Any]

MLIR_NAMES = {
    "bool": "i1",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "bfloat16": "bf16",
}
ALL_DTYPES = [name for name, _ in _core.ir.dtypes()]
NARROW_FLOATS = [name for name in ALL_DTYPES if name.startswith(("float4_", "float6_", "float8_"))]
NARROW_INTEGERS = ["int2", "int4", "uint2", "uint4"]
COMPLEX = ["complex64", "complex128"]


def mlir_name(dtype: str) -> str:
    """The name of a dtype in program text."""
    if dtype in MLIR_NAMES:
        return MLIR_NAMES[dtype]
    for long, short in (("uint", "ui"), ("int", "i")):
        if dtype.startswith(long):
            return short + dtype[len(long) :]
    stem, _, form = dtype.removeprefix("float").partition("_")
    return f"f{stem}{form.upper()}"


def width_of(dtype: str) -> int:
    """Bits of one element."""
    if dtype == "bool":
        return 1
    digits = dtype.partition("_")[0].lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits)


def random_bits(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    """Any bit pattern of the dtype, NaNs with payloads included."""
    to = numpy_dtype(dtype)
    raw = rng.integers(0, 256, (*shape, to.itemsize), dtype=np.uint8)
    if width_of(dtype) < 8:
        raw &= np.uint8((1 << width_of(dtype)) - 1)
    return raw.reshape(-1).view(to).reshape(shape)


def bits_of(array: Array) -> Array:
    """The bytes of each element, as a last dim."""
    array = np.ascontiguousarray(array)
    return array.reshape(-1).view(np.uint8).reshape(*array.shape, array.dtype.itemsize)


def all_patterns(dtype: str) -> Array:
    """Each value of a dtype of at most eight bits once."""
    return np.arange(1 << width_of(dtype), dtype=np.uint8).view(numpy_dtype(dtype))


def numbers(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    """Numbers between -3 and 3 that the dtype holds."""
    to = numpy_dtype(dtype)
    if is_complex(to):
        return (rng.uniform(-3, 3, shape) + 1j * rng.uniform(-3, 3, shape)).astype(to)
    if is_float(to):
        low = 0.25 if dtype == "float8_e8m0fnu" else -3
        return rng.uniform(low, 3, shape).astype(np.float32).astype(to)
    if width_of(dtype) < 8:
        return random_bits(shape, dtype, rng)
    return rng.integers(0 if to.kind == "u" else -3, 4, shape).astype(to)


def ulps(got: Array, want: Array) -> Array:
    """The distance of each part from a float64 or long double reference, in units of the last place of ``got``."""
    real = np.dtype(np.float32) if got.dtype in (np.float32, np.complex64) else np.dtype(np.float64)
    info = ml_dtypes.finfo(real)
    spacing = np.spacing(np.maximum(np.abs(want), info.tiny).astype(real)).astype(np.float64)
    return np.abs(got.astype(want.dtype) - want) / spacing
