# SPDX-License-Identifier: Apache-2.0
"""Interpolation, finite differences, statistics and polynomials, composed of other NumPy functions.

np.interp(x, xp, fp)      i = np.searchsorted(xp, x), then a line through points i - 1 and i
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, UnsupportedError, message
from ._primitives import (
    broadcast_shape,
    cast,
    common_trace,
    complex_of,
    convert,
    expect_real,
    imag_part,
    iota,
    normalize_axes,
    normalize_axis,
    operand,
    real_part,
    refuse,
    shape_of,
)
from ._promote import is_complex, is_inexact, is_integer, result_dtype
from ._registry import checks, implements
from .joining import concatenate, holds_traced, nested, stack
from .selection import clip
from .sorting import less

__all__: list[str] = []

_FLOAT64 = np.dtype(np.float64)


def _slice(x: Any, dim: int, *bounds: Any) -> Any:
    return x[(slice(None),) * dim + (slice(*bounds),)]


def _along(x: Any, dim: int, ndim: int) -> Any:
    """A vector as an array of ``ndim`` dims that varies along one of them."""
    return np.reshape(x, [-1 if i == dim else 1 for i in range(ndim)])


# ---- sorted points --------------------------------------------------------------------------------------------------


@implements("searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """``numpy.searchsorted``: how many of ``a`` are smaller. Each number is compared with all of ``a``."""
    refuse("searchsorted", sorter=(sorter, None))
    if side not in ("left", "right"):
        raise ValueError(message("np.searchsorted", "side must be 'left' or 'right'", repr(side)))
    if len(shape_of(a)) != 1:
        raise ShapeError(message("np.searchsorted", "the sorted array must have one dim", f"shape {shape_of(a)}"))
    trace = common_trace((a, v))
    points: Any = trace.lift(a)
    numbers: Any = trace.lift(v)[..., None]
    if is_complex(result_dtype(points, numbers)):
        return np.sum(_below_complex(points, numbers, side), axis=-1, dtype=np.intp)
    below = points < numbers if side == "left" else points <= numbers
    if is_inexact(numbers.dtype):  # NaN is sorted after all numbers
        missing = np.isnan(numbers)
        below = below | (missing & ~np.isnan(points) if side == "left" else missing)
    return np.sum(below, axis=-1, dtype=np.intp)


def _below_complex(points: Any, numbers: Any, side: str) -> Any:
    shape = broadcast_shape("np.searchsorted", (points.shape, numbers.shape))
    dtype = result_dtype(points, numbers)
    points, numbers = (operand(x._trace, x, dtype, shape) for x in (points, numbers))
    return less([(points, numbers)]) if side == "left" else ~less([(numbers, points)])


@implements("digitize")
def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    """``numpy.digitize``. Bins must increase or decrease; traced bins are not checked.

    Raises:
        ValueError: known bins that are not monotonic.
    """
    expect_real("np.digitize", x, bins)
    if not holds_traced(bins):
        _check_digitize(x, bins)
    trace = common_trace((x, bins))
    edges: Any = trace.lift(nested(trace, bins))
    below = searchsorted(edges, x, "left" if right else "right")  # counts the edges in any order
    count = edges.shape[0]
    return np.where(edges[0] > edges[-1], count - below, below) if count > 1 else below


@checks("digitize")
def _check_digitize(x: Any, bins: Any, right: Any = False) -> None:
    edges = np.asarray(bins)
    if edges.ndim == 1 and np.any(edges[1:] < edges[:-1]) and np.any(edges[1:] > edges[:-1]):
        raise ValueError(message("np.digitize", "bins must increase or decrease", edges, "sort them"))


@implements("interp")
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """``numpy.interp``, in float64 or complex128 as NumPy's; ``xp`` must increase."""
    refuse("interp", period=(period, None))
    trace = common_trace((x, xp, fp, left, right))
    expect_real("np.interp", x, xp)
    at, points = (operand(trace, nested(trace, part), _FLOAT64) for part in (x, xp))
    values = trace.lift(nested(trace, fp))
    values = convert(values, result_dtype(values.dtype, _FLOAT64))
    left, right = (None if end is None else operand(trace, end, values.dtype) for end in (left, right))
    if points.shape != values.shape or points.ndim != 1 or not points.size:
        got = f"{points.shape} and {values.shape}"
        raise ShapeError(message("np.interp", "xp and fp must be vectors of one length that is not 0", got))
    first, last = operand(trace, points, _FLOAT64)[0], points[-1]
    result: Any = values[0] + np.zeros_like(at)
    if points.size > 1:
        i: Any = np.clip(searchsorted(points, at, "right"), 1, points.size - 1)
        low: Any = np.take(points, i - 1)
        width = np.take(points, i) - low
        slope = (np.take(values, i) - np.take(values, i - 1)) / np.where(width == 0, 1, width)
        result = np.where(width == 0, np.take(values, i), np.take(values, i - 1) + (at - low) * slope)
    result = np.where(at < first, values[0] if left is None else left, result)
    result = np.where(at > last, values[-1] if right is None else right, result)
    return result + np.where(np.isnan(at), np.nan, 0.0)  # NaN has the slope of the last line, as in JAX


# ---- differences ----------------------------------------------------------------------------------------------------


@implements("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """``numpy.ediff1d``."""
    x: Any = np.ravel(ary)
    for end in (to_begin, to_end):
        _expect_same_kind("np.ediff1d", end, x.dtype)
    parts = [to_begin, x[1:] - x[:-1], to_end]
    flat = [operand(x._trace, part, x.dtype).reshape(-1) for part in parts if part is not None]
    return concatenate(flat)


def _expect_same_kind(function: str, x: Any, dtype: Any) -> None:
    """Raise DTypeError for an array that NumPy does not convert to ``dtype`` by itself, such as floats to integers."""
    found = None if x is None else getattr(x, "dtype", None) or np.asarray(x).dtype
    if found is not None and not np.can_cast(found, dtype, "same_kind"):
        raise DTypeError(message(function, f"the ends must fit {dtype}", found, "convert them with astype"))


@implements("trapezoid", "trapz")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """``numpy.trapezoid``."""
    trace = common_trace((y, x, dx))
    heights: Any = trace.lift(y)
    dim = normalize_axis("np.trapezoid", axis, heights.ndim)
    width = dx
    if x is not None:
        width = np.diff(trace.lift(x), axis=0 if len(shape_of(x)) == 1 else dim)
        width = _along(width, dim, heights.ndim) if width.ndim == 1 else width
    return np.sum(width * (_slice(heights, dim, 1, None) + _slice(heights, dim, None, -1)) / 2.0, axis=dim)


@implements("gradient")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """``numpy.gradient``; ``edge_order=2`` needs even spacing."""
    trace = common_trace((f, *varargs))
    x: Any = trace.lift(f)
    if x.dtype == np.bool_:
        raise DTypeError(message("np.gradient", "the array must be of numbers", x.dtype, "convert it with astype"))
    x = x if is_inexact(x.dtype) else convert(x, _FLOAT64)
    axes = normalize_axes("np.gradient", axis, x.ndim)
    spacing = varargs or (1.0,)
    spacing = spacing * len(axes) if len(spacing) == 1 and not len(shape_of(spacing[0])) else spacing
    if len(spacing) != len(axes):
        raise ShapeError(message("np.gradient", f"{len(axes)} axes need as many spacings, or one", len(spacing)))
    short = [dim for dim in axes if x.shape[dim] < edge_order + 1]
    if short or edge_order not in (1, 2):
        must_hold = f"edge_order must be 1 or 2, and each dim have {edge_order + 1} elements"
        raise ShapeError(message("np.gradient", must_hold, f"shape {x.shape}"))
    results = tuple(_slope(x, dim, by, edge_order) for dim, by in zip(axes, spacing))
    return results[0] if len(results) == 1 else results


def _coordinates(by: Any) -> Any:
    """Integers as floats, because differences of unsigned ones would wrap around."""
    by = by if hasattr(by, "dtype") else np.asarray(by)
    return by.astype(_FLOAT64) if is_integer(by.dtype) else by


def _slope(x: Any, dim: int, by: Any, edge_order: int) -> Any:
    def at(*bounds: Any) -> Any:
        return _slice(x, dim, *bounds)

    if len(shape_of(by)):
        if edge_order == 2:
            way_out = "use edge_order=1, or even spacing"
            raise UnsupportedError(message("np.gradient", "edge_order=2 needs even spacing", "coordinates", way_out))
        width = _along(np.diff(_coordinates(by)), dim, x.ndim)
        low, high = _slice(width, dim, None, -1), _slice(width, dim, 1, None)
        middle = (
            at(None, -2) * (-high / (low * (low + high)))
            + at(1, -1) * ((high - low) / (low * high))
            + at(2, None) * (low / (high * (low + high)))
        )
        ends = _slice(width, dim, 0, 1), _slice(width, dim, -1, None)
    else:
        middle, ends = (at(2, None) - at(None, -2)) / (2.0 * by), (by, by)
    if edge_order == 1:
        first, last = (at(1, 2) - at(0, 1)) / ends[0], (at(-1, None) - at(-2, -1)) / ends[1]
    else:
        first = (-1.5 * at(0, 1) + 2.0 * at(1, 2) - 0.5 * at(2, 3)) / by
        last = (0.5 * at(-3, -2) - 2.0 * at(-2, -1) + 1.5 * at(-1, None)) / by
    return concatenate([convert(part, x.dtype) for part in (first, middle, last)], axis=dim)


@implements("unwrap")
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 6.283185307179586) -> Any:
    """``numpy.unwrap``; integers stay integers if the period is an integer."""
    dim = normalize_axis("np.unwrap", axis, p.ndim)
    step: Any = np.diff(p, axis=dim)  # in the dtype of p: unsigned integers wrap around, as in NumPy
    dtype = result_dtype(step, period)
    half, odd = divmod(period, 2) if dtype.kind in "iu" else (period / 2, 0)
    near = np.mod(step - -half, period) + -half
    near = near if odd else np.where((near == -half) & (step > 0), half, near)
    jump = np.where(np.abs(step) < (period / 2 if discont is None else discont), 0, near - step)
    p = convert(p, dtype)
    rest = convert(_slice(p, dim, 1, None) + np.cumsum(jump, axis=dim), dtype)
    return concatenate([_slice(p, dim, 0, 1), rest], axis=dim)


# ---- statistics -----------------------------------------------------------------------------------------------------


@implements("average")
def average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    """``numpy.average``: of all of ``a``'s shape, or one weight per element along ``axis``."""
    trace = common_trace((a, weights))
    x: Any = trace.lift(a)
    options = {"axis": axis, "keepdims": keepdims is not np._NoValue and bool(keepdims)}
    if weights is None:
        result: Any = np.mean(x, **options)
        count = operand(trace, x.size // max(result.size, 1), result.dtype, result.shape)
        return (result, count) if returned else result
    w: Any = trace.lift(weights)
    dtype = result_dtype(x.dtype, w.dtype) if is_inexact(x.dtype) else result_dtype(x.dtype, w.dtype, _FLOAT64)
    if w.shape != x.shape:
        axes = normalize_axes("np.average", axis, x.ndim)
        if axis is None or w.shape != tuple(x.shape[dim] for dim in axes):
            must_hold = "weights must have the array's shape, or that of its dims in axis"
            raise ShapeError(message("np.average", must_hold, f"{w.shape} for {x.shape}, axis={axis}"))
        w = np.transpose(w, sorted(range(w.ndim), key=lambda i: axes[i]))
        w = np.reshape(w, [n if dim in axes else 1 for dim, n in enumerate(x.shape)])
    w, x = convert(w, dtype), convert(x, dtype)
    scale: Any = np.sum(w, **options)
    result = np.sum(x * w, **options) / scale
    return (result, np.broadcast_to(scale, result.shape)) if returned else result


@implements("cov")
def cov(
    m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    """``numpy.cov``, in float64 unless ``dtype`` is given."""
    refuse("cov", fweights=(fweights, None), aweights=(aweights, None))
    trace = common_trace((m, y))
    parts: list[Any] = [trace.lift(part) for part in (m, y) if part is not None]
    dtype = result_dtype(*(part.dtype for part in parts), _FLOAT64) if dtype is None else np.dtype(dtype)
    rows: list[Any] = [np.atleast_2d(cast(part, dtype)) for part in parts]
    x: Any = concatenate([row if rowvar or part.ndim == 1 else row.T for row, part in zip(rows, parts)])
    freedom = x.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    x = x - np.mean(x, axis=1, keepdims=True)
    adjoint = np.conjugate(x.T) if is_complex(x.dtype) else x.T
    return np.squeeze((x @ adjoint) * (1 / freedom if freedom > 0 else np.inf))


@implements("corrcoef")
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    """``numpy.corrcoef``, in float64 unless ``dtype`` is given."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation: Any = np.sqrt(np.real(np.diagonal(c)))
    c = c / deviation[:, None] / deviation[None, :]
    if not is_complex(c.dtype):
        return clip(c, -1, 1)
    real, imag = (clip(part, -1, 1) for part in (real_part(c), imag_part(c)))  # as NumPy clips them
    return complex_of(real, imag)


# ---- polynomials and products ---------------------------------------------------------------------------------------


@implements("polyval")
def polyval(p: Any, x: Any) -> Any:
    """``numpy.polyval`` by Horner's rule; the highest power is first."""
    trace = common_trace((p, x))
    numbers: Any = trace.lift(nested(trace, x))
    coefficients: Any = trace.lift(nested(trace, p))
    result: Any = np.zeros_like(numbers)
    for i in range(coefficients.shape[0]):
        result = result * numbers + coefficients[i]
    return result


@implements("vander")
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:  # noqa: N803
    """``numpy.vander``."""
    if x.ndim != 1:
        raise ShapeError(message("np.vander", "the array must have one dim", f"shape {x.shape}"))
    count = x.shape[0] if N is None else int(N)
    if count < 0:
        raise ShapeError(message("np.vander", "N must not be negative", count))
    x = convert(x, result_dtype(x.dtype, np.dtype(int)))
    powers = [np.ones_like(x)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    if not count:
        return np.zeros_like(x, shape=(x.shape[0], 0))
    return stack(powers if increasing else powers[::-1], axis=1)


@implements("cross")
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    """``numpy.cross`` of vectors of 3 elements."""
    trace = common_trace((a, b))
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    left: Any = trace.lift(a)
    right: Any = trace.lift(b)
    left, right = np.moveaxis(left, axisa, -1), np.moveaxis(right, axisb, -1)
    if left.shape[-1] != 3 or right.shape[-1] != 3:
        got = f"{left.shape[-1]} and {right.shape[-1]}"
        raise ShapeError(message("np.cross", "vectors must have 3 elements", got, "pad vectors of the plane with 0"))
    (a0, a1, a2), (b0, b1, b2) = ([x[..., i] for i in range(3)] for x in (left, right))
    return stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=axisc)


@implements("linalg.cross")
def linalg_cross(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    """``numpy.linalg.cross``."""
    return cross(x1, x2, axis=axis)


_MOST_SLICES = 16  # a slice for each element of a short vector: along a split dim, devices exchange the halo


@implements("convolve")
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """``numpy.convolve``: a product of windows of the longer vector with the shorter one."""
    trace = common_trace((a, v))
    long: Any = trace.lift(nested(trace, a))
    short: Any = trace.lift(nested(trace, v))
    if long.ndim != 1 or short.ndim != 1 or not long.size or not short.size:
        got = f"{long.shape} and {short.shape}"
        raise ShapeError(message("np.convolve", "operands must be vectors of at least one element", got))
    if mode not in ("full", "same", "valid"):
        raise ValueError(message("np.convolve", "mode must be 'full', 'same' or 'valid'", repr(mode)))
    if long.size < short.size:
        long, short = short, long
    n, m = long.size, short.size
    low = {"full": 0, "same": (m - 1) // 2, "valid": m - 1}[mode]
    size = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
    padded: Any = np.pad(long, m - 1)
    if m <= _MOST_SLICES:
        windows: Any = stack([padded[low + i : low + i + size] for i in range(m)], 1)
    else:
        windows = np.take(padded, iota(trace, (size, m), 0) + iota(trace, (size, m), 1) + low)
    return windows @ np.flip(short)


@implements("correlate")
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """``numpy.correlate``: a convolution with the reversed conjugates of the second vector."""
    trace = common_trace((a, v))
    first: Any = trace.lift(nested(trace, a))
    second: Any = trace.lift(nested(trace, v))
    second = np.conjugate(second) if is_complex(second.dtype) else second
    if mode == "same" and first.size < second.size:
        return np.flip(convolve(np.flip(first), second, mode))
    return convolve(first, np.flip(second), mode)


@implements("linalg.multi_dot")
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """``numpy.linalg.multi_dot``, from the left to the right."""
    refuse("linalg.multi_dot", out=(out, None))
    result: Any = arrays[0]
    for x in arrays[1:]:
        result = np.dot(result, x)
    return result


@implements("linalg.vector_norm")
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """``numpy.linalg.vector_norm`` over all dims or one."""
    if axis is not None:
        return np.linalg.norm(x, ord, axis, keepdims)
    result = np.linalg.norm(np.ravel(x), ord)
    return np.reshape(result, (1,) * x.ndim) if keepdims else result


@implements("linalg.matrix_norm")
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """``numpy.linalg.matrix_norm``."""
    return np.linalg.norm(x, ord, (-2, -1), keepdims)


# ---- elementwise ----------------------------------------------------------------------------------------------------


@implements("sinc")
def sinc(x: Any) -> Any:
    """``numpy.sinc``: sin(pi x) / (pi x), and 1 at 0. Near 0 it is a power series, whose derivative does not cancel."""
    angle = (x if is_inexact(x.dtype) else convert(x, _FLOAT64)) * np.pi
    near = np.abs(angle) < 0.01
    square: Any = np.square(np.where(near, angle, 0))
    series = 1 - square / 6 * (1 - square / 20 * (1 - square / 42))
    safe: Any = np.where(near, 1, angle)
    return np.where(near, series, np.sin(safe) / safe)


@implements("fix")
def fix(x: Any, out: Any = None) -> Any:
    """``numpy.fix``: rounded towards zero."""
    refuse("fix", out=(out, None))
    return np.trunc(x)


@implements("isposinf")
def isposinf(x: Any, out: Any = None) -> Any:
    """``numpy.isposinf``."""
    refuse("isposinf", out=(out, None))
    expect_real("np.isposinf", x)
    return np.isinf(x) & (x > 0)


@implements("isneginf")
def isneginf(x: Any, out: Any = None) -> Any:
    """``numpy.isneginf``."""
    refuse("isneginf", out=(out, None))
    expect_real("np.isneginf", x)
    return np.isinf(x) & (x < 0)


@implements("isreal")
def isreal(x: Any) -> Any:
    """``numpy.isreal``: where the imaginary part is zero."""
    return imag_part(x) == 0 if is_complex(x.dtype) else np.ones_like(x, dtype=bool)


@implements("iscomplex")
def iscomplex(x: Any) -> Any:
    """``numpy.iscomplex``: where the imaginary part is not zero."""
    return imag_part(x) != 0 if is_complex(x.dtype) else np.zeros_like(x, dtype=bool)


@implements("array_equiv")
def array_equiv(a1: Any, a2: Any) -> Any:
    """``numpy.array_equiv``: False for shapes that do not broadcast, else a traced bool."""
    try:
        np.broadcast_shapes(shape_of(a1), shape_of(a2))
    except ValueError:
        return False
    return np.all(np.equal(a1, a2))


# ---- between two bounds ---------------------------------------------------------------------------------------------


@implements("linspace")
def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: Any = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """``numpy.linspace`` between traced bounds, with a known number of points."""
    refuse("linspace", device=(device, None))
    trace = common_trace((start, stop))
    computed = result_dtype(start, stop, float(num))
    low, high = (operand(trace, nested(trace, bound), computed) for bound in (start, stop))
    parts = num - 1 if endpoint else num
    step: Any = (high - low) / parts if parts > 0 else np.full_like(high - low, np.nan)
    shape = (num, *step.shape)
    counted: Any = iota(trace, shape, 0, computed)
    values = counted * step + low if parts > 0 else counted + low
    if endpoint and num > 1:
        values = np.where(counted == num - 1, high, values)
    dtype = computed if dtype is None else np.dtype(dtype)
    values = np.floor(values) if dtype.kind in "iu" else values
    values = np.moveaxis(values.astype(dtype), 0, axis)
    return (values, step) if retstep else values


@implements("logspace")
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: Any = 0
) -> Any:
    """``numpy.logspace`` between traced bounds, or to a base that is an array."""
    if shape_of(base):
        trace = common_trace((start, stop, base))
        parts: list[Any] = [trace.lift(nested(trace, part)) for part in (start, stop, base)]
        ndim = max(part.ndim for part in parts)
        start, stop, base = (np.reshape(part, (1,) * (ndim - part.ndim) + part.shape) for part in parts)
        base = np.expand_dims(base, axis)
    exponents = np.linspace(start, stop, num, endpoint, axis=axis)
    powers: Any = np.power(base, exponents)
    return powers if dtype is None else powers.astype(dtype)
