# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of the samplers: shapes, dtypes, and parameters that broadcast to the shape."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..dtypes import as_dtype, dtype_name, is_float
from ..errors import DTypeError, ShapeError, is_one_of, message
from ..lax.calls import recording
from ..recording.tracing import Tracer, WeakTracer

__all__ = [
    "check_mode",
    "checked_shape",
    "checked_size",
    "float_dtype",
    "floating",
    "integer_dtype",
    "operand",
    "parameter",
    "shape_with",
    "wide_dtype",
]


def checked_shape(function: str, shape: Any) -> tuple[int, ...]:
    """Convert a shape or a single size to a tuple of ints. Raises ShapeError for invalid sizes."""
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    must_hold = "a shape must be of integers that are not negative"
    try:
        result = tuple([operator.index(size) for size in sizes])
    except TypeError:
        if any(isinstance(size, Tracer) for size in sizes):
            raise  # its message asks for a known size
        result = ()
    if len(result) < len(sizes) or any(isinstance(size, bool) for size in sizes):
        raise ShapeError(message(function, must_hold, repr(shape), "give a tuple such as (8, 16)"))
    if any(size < 0 for size in result):
        raise ShapeError(message(function, must_hold, result, "give the sizes of the result"))
    if math.prod(result) > 1 << 64:
        raise ShapeError(message(function, "a key has 2**64 random numbers", result, "split the key, and draw parts"))
    return result


def checked_size(function: str, name: str, size: Any) -> int:
    """A single size as an int. Raises ShapeError for anything else."""
    if isinstance(size, (tuple, list)):
        raise ShapeError(message(function, f"{name} must be an integer", size, "give the batch as shape"))
    return checked_shape(function, size)[0]


def wide_dtype(function: str, dtype: Any) -> np.dtype[Any]:
    """Check that ``dtype`` is one of LAPACK's: float32 or float64. Raises DTypeError."""
    found = float_dtype(function, dtype)
    if found.itemsize < 4:
        raise DTypeError(message(function, "dtype must be float32 or float64", found, "convert the result with astype"))
    return found


def float_dtype(function: str, dtype: Any) -> np.dtype[Any]:
    """Check that ``dtype`` is a supported floating dtype. Raises DTypeError."""
    found = as_dtype(function, dtype).newbyteorder("=")
    if not is_float(found):
        raise DTypeError(message(function, "dtype must be floating", found, "draw floats and convert them with astype"))
    if found.itemsize < 2:
        rule = "dtype must be floating, of at least 16 bits"
        raise DTypeError(message(function, rule, found, "draw floats and convert them with astype"))
    dtype_name(found)
    return found


def check_mode(function: str, mode: Any) -> str:
    """The number of random bits: None means ``"low"``. Raises ValueError for an unknown mode."""
    if mode is None:
        return "low"
    if not is_one_of(mode, ("low", "high", "highest")):
        raise ValueError(message(function, "mode must be 'low', 'high' or 'highest'", repr(mode)))
    return str(mode)


def floating(function: str, name: str, value: Any) -> Any:
    """Floats as an array or tracer; a Python float in float32. Raises DTypeError for other numbers."""
    if type(value) is float:
        return np.array(value, np.float32)
    if isinstance(value, WeakTracer) and value.weak is float:
        return value.astype(np.float32)
    value = value if hasattr(value, "dtype") else np.asarray(value)
    if not is_float(value.dtype):
        raise DTypeError(message(function, f"{name} must be floating", value.dtype, "convert it with astype"))
    return value


def integer_dtype(function: str, dtype: Any, kinds: str = "iu") -> np.dtype[Any]:
    """Check that ``dtype`` is an integer dtype of these kinds. Raises DTypeError."""
    found = as_dtype(function, dtype).newbyteorder("=")
    if found.kind not in kinds:
        wanted = "an integer dtype" if kinds == "iu" else "an unsigned integer dtype"
        raise DTypeError(message(function, f"dtype must be {wanted}", found, "convert the result with astype"))
    return found


def parameter(function: str, name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """A number, array or tracer in the sampler's dtype. Raises DTypeError unless it is real."""
    if not hasattr(value, "dtype"):
        value = np.asarray(value)
    if value.dtype.kind not in "biuf" and not is_float(value.dtype):
        raise DTypeError(message(function, f"{name} must be of real numbers", value.dtype, "convert it with astype"))
    return value if value.dtype == dtype else value.astype(dtype)


def operand(function: str, name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """:func:`parameter` as a value of the program that is recorded.

    NumPy would compute with a constant while the program is traced, and round its logarithm otherwise.
    """
    return recording().lift(parameter(function, name, value, dtype))


def shape_with(function: str, shape: Any, **parameters: Any) -> tuple[int, ...]:
    """The shape of the result, to which every parameter must broadcast. None: their broadcast shape.

    Raises:
        ShapeError: a parameter does not broadcast to the shape.
    """
    shapes = [tuple(np.shape(value)) for value in parameters.values()]
    if shape is None:
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            got = " and ".join(f"{name} {size}" for name, size in zip(parameters, shapes))
            raise ShapeError(message(function, "parameters must broadcast to one shape", got, "reshape one")) from None
    result = checked_shape(function, shape)
    for name, size in zip(parameters, shapes):
        if len(size) > len(result) or any(a not in (1, b) for a, b in zip(size[::-1], result[::-1])):
            got = f"{name} of shape {size} for {result}"
            raise ShapeError(
                message(function, "parameters must broadcast to the result's shape", got, "reshape it, or widen shape")
            )
    return result
