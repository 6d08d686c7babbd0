# SPDX-License-Identifier: Apache-2.0
"""Running sums, products and extrema: each is a ``stablehlo.reduce_window`` whose window ends at each element.

np.cumsum(x, axis=0)      %1 = "stablehlo.reduce_window"(%x, %0) <{padding = dense<[[3, 0]]>, window_dimensions = [4]}>
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import as_dtype, integer_range, is_inexact
from ..errors import ShapeError, UnsupportedError, message
from ..recording.tracing import Tracer
from ._primitives import cast, normalize_axis, prefix, refuse, reshape, splat, truth
from ._promote import loop_dtypes, sum_dtype
from ._registry import implements
from ._unsupported import unsupported_method
from .reductions import highest, lowest

__all__ = ["apply_accumulate"]

_ON_BOOLEANS = {"add": ("or", False), "multiply": ("and", True), "maximum": ("or", False), "minimum": ("and", True)}


def _running(x: Any, op: str, axis: int, dtype: Any) -> Any:
    """The running reduction of ``x`` in ``dtype`` along ``axis`` with a StableHLO op."""
    x = cast(x, dtype)
    if dtype.kind == "b":
        op, init = _ON_BOOLEANS[op]
        return prefix(x, op, axis, init)
    starts = {"add": lambda _: 0, "multiply": lambda _: 1, "maximum": lowest, "minimum": highest}
    return prefix(x, op, axis, starts[op](dtype))


def _flattened(function: str, x: Any, axis: Any) -> tuple[Any, int]:
    """The array and its axis; without one, all elements in row-major order."""
    if axis is None:
        return reshape(x, (x.size,)), 0
    return x, normalize_axis(function, axis, x.ndim)


def _cumulative(function: str, op: str, x: Any, axis: Any, dtype: Any) -> Any:
    x, axis = _flattened(function, x, axis)
    return _running(x, op, axis, sum_dtype(x.dtype) if dtype is None else as_dtype(function, dtype))


@implements("cumsum")
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """``numpy.cumsum``: of all elements in row-major order, or along ``axis``; integers widen as in ``numpy.sum``."""
    refuse("cumsum", out=(out, None))
    return _cumulative("np.cumsum", "add", a, axis, dtype)


@implements("cumprod")
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """``numpy.cumprod``: of all elements in row-major order, or along ``axis``; integers widen as in ``numpy.prod``."""
    refuse("cumprod", out=(out, None))
    return _cumulative("np.cumprod", "multiply", a, axis, dtype)


def _of_array_api(function: str, op: str, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool) -> Any:
    refuse(function, out=(out, None))
    if axis is None and x.ndim > 1:
        raise ShapeError(message(f"np.{function}", "an array of several dims needs an axis", f"shape {x.shape}"))
    x, axis = _flattened(f"np.{function}", x, axis)
    result = _cumulative(f"np.{function}", op, x, axis, dtype)
    if not include_initial:
        return result
    first = tuple(1 if i == axis else size for i, size in enumerate(result.shape))
    start = splat(result._trace, 0 if op == "add" else 1, first, result.dtype)
    return np.concatenate([start, result], axis)


@implements("cumulative_sum")
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """``numpy.cumulative_sum``. Raises ShapeError for several dims without ``axis``."""
    return _of_array_api("cumulative_sum", "add", x, axis, dtype, out, include_initial)


@implements("cumulative_prod")
def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """``numpy.cumulative_prod``. Raises ShapeError for several dims without ``axis``."""
    return _of_array_api("cumulative_prod", "multiply", x, axis, dtype, out, include_initial)


_ACCUMULATED: dict[np.ufunc, str] = {
    np.add: "add",
    np.multiply: "multiply",
    np.maximum: "maximum",
    np.minimum: "minimum",
}
_BITWISE: dict[np.ufunc, tuple[str, bool]] = {  # the StableHLO op, and whether all bits of its neutral element are 1
    np.bitwise_and: ("and", True),
    np.bitwise_or: ("or", False),
    np.bitwise_xor: ("xor", False),
    np.logical_and: ("and", True),
    np.logical_or: ("or", False),
    np.logical_xor: ("xor", False),
}
_LOGICAL = (np.logical_and, np.logical_or, np.logical_xor)
# The neutral elements of other associative ufuncs, which are the region of a reduction.
_NEUTRAL: dict[np.ufunc, Callable[[np.dtype[Any]], Any]] = {
    np.logaddexp: lowest,
    np.logaddexp2: lowest,
    np.fmax: lambda dtype: math.nan if is_inexact(dtype) else lowest(dtype),
    np.fmin: lambda dtype: math.nan if is_inexact(dtype) else highest(dtype),
}


def apply_accumulate(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``ufunc.accumulate`` of the associative ufuncs; its axis is 0 unless given.

    Raises:
        UnsupportedError: another ufunc, or an option without traced form. ShapeError: an array without dims.
    """
    function = f"np.{ufunc.__name__}.accumulate"
    if not any(ufunc in known for known in (_ACCUMULATED, _BITWISE, _NEUTRAL)):
        known = ", ".join(u.__name__ for u in (*_ACCUMULATED, *_BITWISE, *_NEUTRAL))
        raise unsupported_method(function, f"supported are accumulate of {known}")
    x, *rest = inputs
    options = dict(zip(("axis", "dtype", "out"), rest)) | kwargs
    out = options.get("out")
    refuse(f"{ufunc.__name__}.accumulate", out=(out[0] if isinstance(out, tuple) else out, None))
    if not isinstance(x, Tracer):
        raise UnsupportedError(message(function, "takes one traced array", type(x).__name__))
    if x.ndim == 0:
        raise ShapeError(message(function, "takes an array of at least one dim", repr(x), "use the number itself"))
    axis = normalize_axis(function, options.get("axis", 0), x.ndim)
    dtype = options.get("dtype")
    op = _ACCUMULATED.get(ufunc)
    if op is None:
        return _accumulated(ufunc, x, axis, dtype)
    if dtype is None:
        dtype = sum_dtype(x.dtype) if op in ("add", "multiply") else x.dtype
    return _running(x, op, axis, np.dtype(dtype))


def _all_bits(dtype: np.dtype[Any]) -> int:
    if dtype.kind == "b":
        return 1
    low, high = integer_range(dtype)
    return high if low == 0 else -1


def _accumulated(ufunc: np.ufunc, x: Tracer, axis: int, dtype: Any) -> Any:
    """The running reduction by a ufunc that is no StableHLO op of its own, in the dtype of its loop."""
    if ufunc in _LOGICAL:
        x = truth(x)
    found = loop_dtypes(ufunc, (x, x), dtype)[0]
    x = cast(x, found)
    if ufunc in _BITWISE:
        op, ones = _BITWISE[ufunc]
        return prefix(x, op, axis, _all_bits(found) if ones else 0)
    return prefix(x, ufunc, axis, _NEUTRAL[ufunc](found))
