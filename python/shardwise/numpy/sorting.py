# SPDX-License-Identifier: Apache-2.0
"""Sorts, and what is read off a sorted axis: each is one ``stablehlo.sort``, which is stable.

np.argsort(x, axis=0)    %1 = stablehlo.iota dim = 0
                         %2:2 = "stablehlo.sort"(%x, %1) <{dimension = 0}> ({ compare LT, TOTALORDER })
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import dtype_name, numpy_dtype
from ..errors import DTypeError, ShapeError, message, shown
from ..recording.tracing import Tracer
from ._primitives import (
    common_trace,
    compare,
    convert,
    expect_real,
    imag_part,
    iota,
    normalize_axis,
    operand,
    real_part,
    refuse,
    reshape,
    select,
    shape_of,
    splat,
    total_order,
)
from ._promote import is_complex, is_float, is_inexact
from ._registry import implements

__all__ = ["less", "sort_together"]

_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def _canonical(x: Tracer) -> Tracer:
    """0 for -0, and one NaN for all of them: NumPy's order of floats."""
    zero, nan = splat(x._trace, 0, x.shape, x.dtype), splat(x._trace, np.nan, x.shape, x.dtype)
    nonzero = select(compare("EQ", x, zero), zero, x)
    return select(compare("NE", x, x), nan, nonzero)


def less(pairs: Sequence[tuple[Tracer, Tracer]]) -> Tracer:
    """Whether the left row of keys comes first, in NumPy's order: by the first key in which they differ."""
    (left, right), *rest = pairs
    if is_complex(left.dtype):
        return less([*zip(_keys_of_complex(left), _keys_of_complex(right)), *rest])
    floats = is_float(left.dtype)
    if floats:
        left, right = _canonical(left), _canonical(right)
    ordered = total_order if floats else compare
    first = ordered("LT", left, right)
    if not rest:
        return first
    trace = first._trace
    tie = trace.emit("stablehlo.and", (ordered("EQ", left, right), less(rest)))
    return trace.emit("stablehlo.or", (first, tie))


def _keys_of_complex(x: Tracer) -> tuple[Tracer, ...]:
    """By the real, then the imaginary part. Numbers with a NaN come last, those with a real NaN after the others."""
    parts = real_part(x), imag_part(x)
    return (*(compare("NE", part, part) for part in parts), *parts)


def sort_together(operands: Sequence[Tracer], axis: int, keys: int = 1) -> list[Tracer]:
    """The operands sorted alike along ``axis`` by the first ``keys`` of them, NaN last."""
    trace = operands[0]._trace
    dtypes = [x.dtype for x in operands]
    # The only NaN of these dtypes has the bits of -0, which the total order puts first. float32 has all their numbers.
    wide = [np.dtype(np.float32) if i < keys and d.name.endswith("fnuz") else d for i, d in enumerate(dtypes)]
    operands = [convert(x, dtype) for x, dtype in zip(operands, wide)]
    region = trace.core.begin_region()
    result: Tracer | None = None
    try:
        sides = [
            Tracer(trace, trace.core.region_argument((), dtype_name(x.dtype)), (), x.dtype)
            for x in operands
            for _ in range(2)
        ]
        result = less(list(zip(sides[::2], sides[1::2]))[:keys])
    finally:
        trace.core.end_region([] if result is None else [result._value])
    attrs = {"dimension": axis, "is_stable": True}
    values = trace.core.emit_op("stablehlo.sort", [x._value for x in operands], attrs, regions=[region])
    made = [Tracer(trace, value, shape, numpy_dtype(name)) for value, shape, name in values]
    return [convert(x, dtype) for x, dtype in zip(made, dtypes)]


def _checked(function: str, a: Any, axis: Any, kind: Any, order: Any, stable: Any = None) -> tuple[Tracer, int]:
    """The array, flattened without an axis, and the axis."""
    refuse(function, order=(order, None))
    if kind not in _KINDS:
        raise ValueError(message(f"np.{function}", "kind must be 'quicksort', 'mergesort' or 'stable'", repr(kind)))
    if stable is not None and kind is not None:
        raise ValueError(message(f"np.{function}", "kind and stable cannot both be given", f"{kind!r} and {stable}"))
    if axis is None:
        return reshape(a, (a.size,)), 0
    return a, normalize_axis(f"np.{function}", axis, a.ndim)


@implements("sort")
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Tracer:
    """``numpy.sort``: NaN last. Every kind is stable."""
    a, axis = _checked("sort", a, axis, kind, order, stable)
    return sort_together([a], axis)[0]


@implements("argsort")
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Tracer:
    """``numpy.argsort``: NaN last; equal elements keep their order, as with ``kind="stable"``."""
    a, axis = _checked("argsort", a, axis, kind, order, stable)
    return _order([a], axis)


def _order(keys: Sequence[Tracer], axis: int) -> Tracer:
    dtype = np.dtype(np.int32 if keys[0].shape[axis] <= np.iinfo(np.int32).max else np.int64)
    places = iota(keys[0]._trace, keys[0].shape, axis, dtype)
    return convert(sort_together([*keys, places], axis, len(keys))[-1], np.dtype(np.intp))


@implements("lexsort")
def lexsort(keys: Any, axis: Any = -1) -> Tracer:
    """``numpy.lexsort``: the last key is the primary one."""
    rows = list(keys)
    if not rows or any(shape_of(row) != shape_of(rows[0]) for row in rows):
        got = shown([shape_of(row) for row in rows])
        raise ShapeError(message("np.lexsort", "there must be one or more keys of one shape", got, "broadcast them"))
    trace = common_trace([keys, *rows])
    lifted = [trace.lift(row) for row in rows]
    return _order(lifted[::-1], normalize_axis("np.lexsort", axis, lifted[0].ndim))


# ---- order statistics -----------------------------------------------------------------------------------------------

# The place of quantile q among n sorted elements, and how far it is from the one before: NumPy's methods with lines
# between elements (H is the place from 0 with alpha and beta of Hyndman and Fan).
_LINES = {
    "linear": (1.0, 1.0),
    "weibull": (0.0, 0.0),
    "hazen": (0.5, 0.5),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_ELEMENTS = ("lower", "higher", "nearest")  # a quantile is an element of the array, and has its dtype
_STEPS = (*_ELEMENTS, "midpoint")


def _places(function: str, q: Any, n: int, method: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The lower neighbour of each quantile, and the weight of the upper one."""
    if method in _LINES:
        alpha, beta = _LINES[method]
        place = np.clip(n * q + alpha + q * (1 - alpha - beta) - 1, 0, n - 1)
    elif method in _STEPS:
        place = (n - 1) * q
        low, high = np.floor(place), np.ceil(place)
        place = {"lower": low, "higher": high, "nearest": np.rint(place), "midpoint": (low + high) / 2}[method]
    else:
        known = ", ".join((*_LINES, *_STEPS))
        raise ValueError(message(function, f"method must be one of {known}", repr(method)))
    low = np.floor(place).astype(np.int64)
    return low, place - low


def _rows_of_quantiles(function: str, x: Tracer, axis: Any, q: Any, method: Any, keepdims: Any) -> Tracer:
    """Quantiles ``q`` (known numbers) along the axes, in front of the other axes."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(normalize_axis(function, a, x.ndim) for a in axes)
    if not is_inexact(x.dtype) and method not in _ELEMENTS:
        x = convert(x, np.dtype(np.float64))
    others = [d for d in range(x.ndim) if d not in axes]
    rows: Any = np.transpose(x, (*others, *axes))
    n = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    if n == 0:
        raise ShapeError(message(function, "there must be an element", f"shape {x.shape}", "choose other axes"))
    rows = sort_together([reshape(rows, (*(x.shape[d] for d in others), n))], len(others))[0]
    low, weight = _places(function, np.asarray(q, np.float64), n, method)
    found: Any = rows[..., low]
    if np.any(weight):  # the median of an odd number of elements is one of them
        above = rows[..., np.minimum(low + 1, n - 1)]
        share = operand(x._trace, weight.astype(x.dtype), x.dtype)
        between = found + (above - found) * share
        # An infinity has no difference.
        found = between if np.all(weight) else np.where(share == 0, found, between)
    if is_inexact(x.dtype):
        found = np.where(np.isnan(rows[..., n - 1 :] if np.ndim(q) else rows[..., n - 1]), np.nan, found)
        found = convert(found, x.dtype)
    if np.ndim(q):
        found = np.moveaxis(found, -1, 0)
    result: Tracer = found
    if keepdims is np._NoValue or not keepdims:
        return result
    kept = tuple(1 if d in axes else size for d, size in enumerate(x.shape))
    return reshape(result, (*np.shape(q), *kept))


def _quantile(
    function: str, a: Tracer, q: Any, scale: float, axis: Any, out: Any, method: Any, keepdims: Any
) -> Tracer:
    refuse(function, out=(out, None))
    expect_real(f"np.{function}", a)
    if a.dtype.kind == "b" and method not in _ELEMENTS:
        raise DTypeError(message(f"np.{function}", "the array must hold numbers", a.dtype, "convert it with astype"))
    if isinstance(q, Tracer):
        got, way_out = "a traced array", "give a number, or sort and index the array"
        raise DTypeError(message(f"np.{function}", "the quantiles must be known numbers", got, way_out))
    if is_inexact(a.dtype) and type(q) not in (int, float) and method not in _ELEMENTS:
        kind = np.asarray(q).dtype if scale == 1 else np.result_type(np.asarray(q).dtype, a.dtype)
        if kind.kind == "f":  # only Python's numbers adapt to the array
            a = convert(a, np.result_type(a.dtype, kind))
    q = np.asarray(q, np.float64) / scale
    if not np.all((q >= 0) & (q <= 1)):
        raise ValueError(message(f"np.{function}", f"quantiles must be in [0, {scale:g}]", shown(q * scale)))
    return _rows_of_quantiles(f"np.{function}", a, axis, q, method, keepdims)


@implements("median")
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Tracer:
    """``numpy.median``: NaN where one is among the elements. Raises ShapeError over nothing."""
    refuse("median", out=(out, None))
    return _rows_of_quantiles("np.median", a, axis, 0.5, "linear", keepdims)


@implements("quantile")
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
    method: Any = "linear", keepdims: Any = False, *, weights: Any = None,
) -> Tracer:  # fmt: skip
    """``numpy.quantile`` of known ``q``; most of NumPy's methods. Raises ValueError outside [0, 1]."""
    refuse("quantile", weights=(weights, None))
    return _quantile("quantile", a, q, 1, axis, out, method, keepdims)


@implements("percentile")
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
    method: Any = "linear", keepdims: Any = False, *, weights: Any = None,
) -> Tracer:  # fmt: skip
    """``numpy.percentile`` of known ``q``; most of NumPy's methods. Raises ValueError outside [0, 100]."""
    refuse("percentile", weights=(weights, None))
    return _quantile("percentile", a, q, 100, axis, out, method, keepdims)
