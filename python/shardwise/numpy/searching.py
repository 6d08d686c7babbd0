# SPDX-License-Identifier: Apache-2.0
"""Indices of extrema: each is one ``stablehlo.reduce`` of values and their indices.

np.argmax(x, axis=1)    %1 = stablehlo.iota dim = 1
                        %2:2 = stablehlo.reduce(%x init: -inf), (%1 init: 0) across dimensions = [1], larger value wins
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, message
from ..recording.tracing import Tracer
from ._primitives import compare, convert, iota, normalize_axis, reduce_by, refuse, reshape, select, splat
from ._registry import implements
from .manipulation import sizes_of
from .reductions import highest, lowest

__all__ = ["argmax", "argmin", "unravel_index"]


@implements("argmax")
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """``numpy.argmax``: the first of equal values, or the first NaN. Raises ShapeError over nothing."""
    refuse("argmax", out=(out, None))
    return _argument("np.argmax", a, "GT", lowest(a.dtype), axis, keepdims)


@implements("unravel_index")
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Tracer, ...]:
    """``numpy.unravel_index``; traced indices out of range are not detected."""
    sizes = sizes_of(shape)
    if order not in ("C", "F"):
        raise ValueError(message("np.unravel_index", "order must be 'C' or 'F'", repr(order)))
    if indices.dtype.kind not in "iub":
        rule, way_out = "indices must be integers", "convert them with astype"
        raise DTypeError(message("np.unravel_index", rule, indices.dtype, way_out))
    rest = indices.astype(np.int64)
    found = []
    for size in sizes[::-1] if order == "C" else sizes:
        found.append(rest % size)
        rest = rest // size
    return tuple(found[::-1] if order == "C" else found)


@implements("argmin")
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """``numpy.argmin``: the first of equal values, or the first NaN. Raises ShapeError over nothing."""
    refuse("argmin", out=(out, None))
    return _argument("np.argmin", a, "LT", highest(a.dtype), axis, keepdims)


def _argument(function: str, x: Tracer, direction: str, worst: Any, axis: Any, keepdims: Any) -> Tracer:
    axes = range(x.ndim) if axis is None else (normalize_axis(function, axis, x.ndim),)
    count = math.prod(x.shape[a] for a in axes)
    if count == 0:
        must_hold = "there must be an element to find"
        raise ShapeError(message(function, must_hold, f"shape {x.shape}", "choose an axis that is not empty"))
    dtype = np.dtype(np.int32 if count <= np.iinfo(np.int32).max else np.int64)
    values, indices = x, splat(x._trace, 0, x.shape, dtype)
    # One axis after the other, the last first: the index counts the elements of all axes so far.
    stride = 1
    for a in reversed(axes):
        place = iota(x._trace, values.shape, a, dtype)
        if stride > 1:
            place = indices + place * splat(x._trace, stride, values.shape, dtype)
        values, indices = reduce_by((values, place), (worst, 0), (a,), _better(direction))
        stride *= x.shape[a]
    shape = tuple(1 if i in axes else size for i, size in enumerate(x.shape))
    result = convert(indices, np.dtype(np.intp))
    return reshape(result, shape) if _is_true(keepdims) else result


def _is_true(keepdims: Any) -> bool:
    return keepdims is not np._NoValue and bool(keepdims)


def _better(direction: str) -> Any:
    def combine(left: list[Tracer], right: list[Tracer]) -> list[Tracer]:
        (value, index), (other_value, other_index) = left, right
        wins = _either(compare(direction, value, other_value), compare("NE", value, value))
        equal = compare("EQ", value, other_value)
        first = equal._trace.emit("stablehlo.and", (equal, compare("LT", index, other_index)))
        wins_index = _either(wins, first)
        return [select(wins, value, other_value), select(wins_index, index, other_index)]

    return combine


def _either(a: Tracer, b: Tracer) -> Tracer:
    return a._trace.emit("stablehlo.or", (a, b))
