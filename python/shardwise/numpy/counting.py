# SPDX-License-Identifier: Apache-2.0
"""Counts of numbers and of intervals: ``np.bincount`` and ``np.histogram``.

np.bincount(ids, minlength=4)      zeros(4).at[ids].add(1)
np.histogram(x, edges)             differences of how many x are at or above each edge
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, UnsupportedError, message
from ..recording.tracing import Tracer
from ._primitives import common_trace, convert, expect_real, operand, shape_of, splat, static_integer
from ._promote import is_float, is_integer, result_dtype
from ._registry import checks, implements
from .joining import holds_traced

__all__: list[str] = []


@implements("bincount")
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """``numpy.bincount`` with exactly ``minlength`` elements, where NumPy's result has at least as many.

    The result's shape cannot depend on traced numbers: **those that are negative or not below** ``minlength`` **are not
    counted**, as updates at traced indices out of range are dropped. Compare ``counts.sum()`` with the size where that
    may happen. Known numbers out of range raise, as on an :class:`shardwise.Array`.

    Raises:
        UnsupportedError: no ``minlength``. ShapeError, DTypeError: not a vector of integers. ValueError: a known number
            outside.
    """
    if not holds_traced(x):
        _check_bincount(x, weights, minlength)
    trace = common_trace((x, weights))
    numbers: Any = trace.lift(x)
    if numbers.ndim != 1 or (weights is not None and shape_of(weights) != numbers.shape):
        got = numbers.shape if weights is None else f"{numbers.shape} and {shape_of(weights)}"
        raise ShapeError(message("np.bincount", "the numbers and weights must be vectors of one length", got))
    if not is_integer(numbers.dtype) and numbers.dtype != np.bool_:
        raise DTypeError(message("np.bincount", "the numbers must be integers", numbers.dtype, "use astype(int)"))
    if minlength < 1:
        must_hold = "minlength must be given, because the largest number would decide the result's shape"
        raise UnsupportedError(message("np.bincount", must_hold, minlength, "give minlength="))
    size = int(minlength)
    numbers = convert(numbers, np.dtype(np.int64))
    expect_real("np.bincount", weights)
    dtype = np.dtype(np.intp if weights is None else np.float64)
    added = 1 if weights is None else operand(trace, weights, dtype)
    counts: Any = splat(trace, 0, (size,), dtype)
    return counts.at[np.where(numbers < 0, size, numbers)].add(added)


@checks("bincount")
def _check_bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> None:
    numbers = np.asarray(x)
    if minlength > 0 and numbers.size and is_integer(numbers.dtype) and not 0 <= np.min(numbers) <= np.max(numbers):
        raise ValueError(message("np.bincount", "the numbers must not be negative", np.min(numbers)))
    if minlength > 0 and numbers.size and np.max(numbers) >= minlength:
        must_hold = f"the numbers must be below minlength, {minlength}"
        raise ValueError(message("np.bincount", must_hold, np.max(numbers), "raise minlength"))


@implements("histogram")
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """``numpy.histogram`` with a number of bins or their edges: each element is compared with every edge."""
    trace = common_trace((a, bins, weights))
    x: Any = trace.lift(a)
    if isinstance(bins, str):
        must_hold = "bins must be a number or edges; a rule looks at the data"
        raise UnsupportedError(message("np.histogram", must_hold, repr(bins), "give a number"))
    if np.ndim(bins) == 0:
        expect_real("np.histogram", x)  # a number of bins needs distances
    edges = _edges(x, _number_of_bins(bins), range) if np.ndim(bins) == 0 else bins
    if isinstance(edges, (list, tuple, np.ndarray)) and np.any(np.diff(edges) < 0):
        raise ValueError(message("np.histogram", "edges must increase", np.asarray(edges)))
    limits: Any = trace.lift(edges)
    x = x.reshape(-1, 1)
    above = np.concatenate([x >= limits[:-1], x > limits[-1:]], axis=1)
    inside = above[:, :-1] & ~above[:, 1:]
    if weights is None:
        counts: Any = np.sum(inside, axis=0, dtype=np.intp)
    else:
        w: Any = trace.lift(weights).reshape(-1, 1)
        counts = np.sum(np.where(inside, w, 0), axis=0, dtype=w.dtype)
    if density:
        wide = convert(np.diff(limits), np.dtype(np.float64))
        counts = counts / wide / np.sum(counts)
    return counts, edges


def _number_of_bins(bins: Any) -> int:
    count = static_integer("np.histogram", "bins", bins, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    if count < 1:
        raise ValueError(message("np.histogram", "the number of bins must be positive", count))
    return count


def _edges(x: Tracer, bins: int, range: Any) -> Any:
    low, high = (np.min(x), np.max(x)) if range is None else range
    dtype = result_dtype(low, high, x)
    dtype = dtype if is_float(dtype) else result_dtype(dtype, np.dtype(np.float64))
    if range is None:
        low, high = np.where(low == high, low - 0.5, low), np.where(low == high, high + 0.5, high)
    elif low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1, dtype=dtype)
