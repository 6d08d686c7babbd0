# SPDX-License-Identifier: Apache-2.0
"""Functions that choose between values by a condition, compare arrays as wholes, or pick out diagonals.

np.tril(x)      select(iota 0 >= iota 1, x, 0)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import as_dtype, integer_range, is_dtype
from ..errors import DTypeError, ShapeError, UnsupportedError, message, shown
from ..recording.tracing import Tracer
from ._primitives import (
    broadcast_shape,
    cast,
    common_trace,
    compare,
    complex_of,
    convert,
    imag_part,
    iota,
    normalize_axis,
    operand,
    real_part,
    refuse,
    select,
    shape_of,
    slice_,
    splat,
    static_integer,
    transpose,
    truth,
)
from ._promote import is_complex, is_float, is_integer, result_dtype, sum_dtype, weak_kind
from ._registry import implements

__all__ = ["diagonal_mask"]

_NO_VALUE = np._NoValue


@implements("where")
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """``numpy.where`` of three arguments; Python numbers are weak."""
    if x is None or y is None:
        raise UnsupportedError(
            message(
                "np.where",
                "needs both values: places alone have a shape that depends on the data",
                None,
                "give x and y",
            )
        )
    trace = common_trace((condition, x, y))
    values = (condition, x, y)
    shape = broadcast_shape("np.where", [shape_of(v) for v in values])
    dtype = result_dtype(x, y)
    chosen = truth(condition) if isinstance(condition, Tracer) else trace.lift(np.asarray(condition).astype(bool))
    chosen = operand(trace, chosen, np.dtype(bool), shape)
    return select(chosen, operand(trace, x, dtype, shape), operand(trace, y, dtype, shape))


@implements("clip")
def clip(
    a: Any, a_min: Any = _NO_VALUE, a_max: Any = _NO_VALUE, out: Any = None,
    *, min: Any = _NO_VALUE, max: Any = _NO_VALUE, **options: Any,
) -> Any:  # fmt: skip
    """``numpy.clip``: ``minimum(maximum(a, min), max)``."""
    refuse("clip", out=(out, None), **{name: (value, None) for name, value in options.items()})
    low, high = _bounds(a_min, a_max, min, max)
    if (a_min is _NO_VALUE) != (a_max is _NO_VALUE):
        given, missing = ("a_max", "a_min") if a_min is _NO_VALUE else ("a_min", "a_max")
        way_out = f"pass {missing}=None, or {given.removeprefix('a_')}= in place of {given}"
        rule = "takes both a_min and a_max, as in NumPy, or min= and max="
        raise TypeError(message("np.clip", rule, f"only {given}", way_out))
    if isinstance(a, Tracer) and is_integer(a.dtype):  # a bound outside the dtype has no effect
        low = None if type(low) is int and low < integer_range(a.dtype)[0] else low
        high = None if type(high) is int and high > integer_range(a.dtype)[1] else high
    for name, bound in {"min": low, "max": high}.items():
        if bound is not None and not isinstance(bound, Tracer) and not is_dtype(np.asarray(bound).dtype):
            raise DTypeError(message("np.clip", f"{name} must be a number or an array of numbers", shown(bound)))
    if low is None and high is None:
        return np.positive(a)
    dtype = _clipped_dtype(a, low, high)
    if low is None:
        return np.minimum(_cast(a, dtype), high)
    raised = np.maximum(_cast(a, dtype), low)
    return raised if high is None else np.minimum(raised, high)


def _bounds(a_min: Any, a_max: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The bounds by either pair of names."""
    for old, new, name in ((a_min, low, "min"), (a_max, high, "max")):
        if old is not _NO_VALUE and new is not _NO_VALUE:
            raise ValueError(message("np.clip", f"a_{name} and {name} cannot both be given", f"{old!r} and {new!r}"))
    chosen = (low if a_min is _NO_VALUE else a_min), (high if a_max is _NO_VALUE else a_max)
    return (None if chosen[0] is _NO_VALUE else chosen[0]), (None if chosen[1] is _NO_VALUE else chosen[1])


def _clipped_dtype(*operands: Any) -> np.dtype[Any]:
    """The dtype in which NumPy clips. Unlike result_type, it is float32 for bfloat16 and a Python number."""
    kinds = [weak_kind(x) for x in operands if x is not None]
    stand_ins = iter([kind(0) if isinstance(kind, type) else np.zeros((), kind) for kind in kinds])
    asked: list[Any] = [None if x is None else next(stand_ins) for x in operands]
    return np.clip(*asked).dtype  # type: ignore[no-any-return]


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    return convert(x, dtype) if isinstance(x, Tracer) else np.asarray(x, dtype)


@implements("nan_to_num")
def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """``numpy.nan_to_num``: infinities become the largest finite numbers unless given."""
    refuse("nan_to_num", copy=(copy, True))
    if is_complex(x.dtype):
        parts = (nan_to_num(part, copy, nan, posinf, neginf) for part in (real_part(x), imag_part(x)))
        return complex_of(*parts)
    if not is_float(x.dtype):
        return x
    limits, dtype = _finfo(x.dtype), x.dtype
    result = np.where(np.isnan(x), _cast(nan, dtype), x)
    result = np.where(x == np.inf, _cast(limits.max if posinf is None else posinf, dtype), result)
    return np.where(x == -np.inf, _cast(limits.min if neginf is None else neginf, dtype), result)


def _finfo(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


_MOST_DECIMALS = 308  # beyond it the power of ten is infinite


@implements("round", "around")
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """``numpy.round``: to the nearest even; integers stay."""
    refuse("round", out=(out, None))
    decimals = static_integer("np.round", "decimals", decimals, -_MOST_DECIMALS, _MOST_DECIMALS)
    if is_complex(a.dtype):
        return complex_of(round_(real_part(a), decimals), round_(imag_part(a), decimals))
    if a.dtype.kind == "b" and decimals == 0:
        return np.rint(a)  # float16, as in NumPy
    if a.dtype.kind == "b":
        got = f"decimals={decimals} of {a.dtype.name}"
        raise UnsupportedError(message("np.round", "booleans have no digits to round", got, "convert to a number"))
    if not is_float(a.dtype):
        return a if decimals >= 0 else _rounded_integers(a, 10.0**-decimals)
    if decimals == 0:
        return np.rint(a)
    factor = 10.0 ** abs(decimals)
    rounded = np.rint(a * factor) / factor if decimals > 0 else np.rint(a / factor) * factor
    return _cast(rounded, a.dtype)  # bfloat16 and a Python float make float32


def _rounded_integers(a: Any, unit: float) -> Any:
    """Integers rounded to multiples of ``unit`` in float64, as in NumPy: halves to even."""
    return (np.rint(a.astype(np.float64) / unit) * unit).astype(a.dtype)


@implements("isclose")
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """``numpy.isclose``."""
    kind = weak_kind(b)
    b = operand(common_trace((a, b)), b, result_dtype(kind if isinstance(kind, np.dtype) else kind(0), 1.0))
    near = (np.abs(a - b) <= atol + rtol * np.abs(b)) & np.isfinite(b) | (a == b)
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near


@implements("allclose")
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """``numpy.allclose``, as a traced bool."""
    return np.all(isclose(a, b, rtol, atol, equal_nan))


@implements("array_equal")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """``numpy.array_equal``: False for different shapes, else a traced bool."""
    if np.shape(a1) != np.shape(a2):
        return False
    same = np.equal(a1, a2)
    return np.all(same | (np.isnan(a1) & np.isnan(a2)) if equal_nan else same)


# ---- diagonals ------------------------------------------------------------------------------------------------------


def diagonal_mask(x: Tracer, dim1: int, dim2: int, direction: str = "EQ", offset: int = 0) -> Any:
    """Compare the index along ``dim2`` with the index along ``dim1`` plus ``offset``."""
    rows, columns = iota(x._trace, x.shape, dim1), iota(x._trace, x.shape, dim2)
    return compare(direction, columns, rows + offset if offset else rows)


def _triangle(function: str, m: Any, direction: str, k: int) -> Any:
    if m.ndim < 2:
        raise ShapeError(message(function, "needs at least 2 dims", f"shape {m.shape}"))
    mask = diagonal_mask(m, m.ndim - 2, m.ndim - 1, direction, k)
    return select(mask, m, splat(m._trace, 0, m.shape, m.dtype))


@implements("tril")
def tril(m: Any, k: int = 0) -> Any:
    """``numpy.tril``: the elements on and below diagonal ``k``."""
    return _triangle("np.tril", m, "LE", k)


@implements("triu")
def triu(m: Any, k: int = 0) -> Any:
    """``numpy.triu``: the elements on and above diagonal ``k``."""
    return _triangle("np.triu", m, "GE", k)


_MOST_OFFSET = 2**56


def _square_part(function: str, a: Any, offset: int, axis1: Any, axis2: Any) -> Any:
    """The square whose main diagonal is diagonal ``offset`` of ``a``, its two dims last."""
    dim1, dim2 = normalize_axis(function, axis1, a.ndim), normalize_axis(function, axis2, a.ndim)
    if dim1 == dim2:
        raise ShapeError(message(function, "axes must differ", (axis1, axis2)))
    offset = static_integer(function, "offset", offset, -_MOST_OFFSET, _MOST_OFFSET)
    moved = transpose(a, [i for i in range(a.ndim) if i not in (dim1, dim2)] + [dim1, dim2])
    start, limit = [0] * a.ndim, list(moved.shape)
    start[-1], start[-2] = (offset, 0) if offset >= 0 else (0, -offset)
    size = limit[-1] - start[-1] if limit[-1] - start[-1] < limit[-2] - start[-2] else limit[-2] - start[-2]
    size = size if size > 0 else 0
    for i in (-1, -2):
        start[i] = start[i] if size else 0
        limit[i] = start[i] + size
    return slice_(moved, start, limit)


def _masked(square: Tracer, zero: Any) -> Any:
    mask = diagonal_mask(square, square.ndim - 2, square.ndim - 1)
    return select(mask, square, splat(square._trace, zero, square.shape, square.dtype))


@implements("diagonal")
def diagonal(a: Any, offset: int = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """``numpy.diagonal``: row j of column j, so that both dims may be sharded."""
    square = _square_part("np.diagonal", a, offset, axis1, axis2)
    size, outer = square.shape[-1], square.shape[:-2]
    rows: Any = iota(square._trace, (*(1 for _ in outer), 1, size), square.ndim - 1)
    return np.take_along_axis(square, rows, axis=-2)[..., 0, :]


@implements("trace")
def trace_(a: Any, offset: int = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    """``numpy.trace``."""
    refuse("trace", out=(out, None))
    square = _square_part("np.trace", a, offset, axis1, axis2)
    wide = cast(square, sum_dtype(a.dtype) if dtype is None else as_dtype("np.trace", dtype))
    return np.sum(_masked(wide, 0), axis=(-2, -1), dtype=wide.dtype)


@implements("linalg.diagonal")
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """``numpy.linalg.diagonal``: of the last two dims, unlike ``numpy.diagonal``."""
    return diagonal(x, offset, -2, -1)


@implements("linalg.trace")
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """``numpy.linalg.trace``: of the last two dims, unlike ``numpy.trace``."""
    return trace_(x, offset, -2, -1, dtype)


@implements("diag")
def diag(v: Any, k: int = 0) -> Any:
    """``numpy.diag``: the diagonal of a matrix, or the matrix of a diagonal."""
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ShapeError(message("np.diag", "needs 1 or 2 dims", f"shape {v.shape}"))
    size = v.shape[0] + abs(k)
    wide: Any = np.pad(v, (_at_least_zero(k), _at_least_zero(-k)))
    wide = np.broadcast_to(wide, (size, size))
    return select(diagonal_mask(wide, 0, 1, "EQ", k), wide, splat(v._trace, 0, wide.shape, v.dtype))


def _at_least_zero(k: int) -> int:
    """The larger of ``k`` and 0."""
    return k if k > 0 else 0


@implements("diff")
def diff(a: Any, n: int = 1, axis: Any = -1, prepend: Any = _NO_VALUE, append: Any = _NO_VALUE) -> Any:
    """``numpy.diff``."""
    dim = normalize_axis("np.diff", axis, a.ndim)
    ends = []
    for end in (prepend, append):
        if end is not _NO_VALUE and end is not None:
            shape = (*a.shape[:dim], 1, *a.shape[dim + 1 :])
            ends.append(np.broadcast_to(end, shape) if np.ndim(end) == 0 else end)
        else:
            ends.append(None)
    if any(end is not None for end in ends):
        a = np.concatenate([part for part in (ends[0], a, ends[1]) if part is not None], axis=dim)
    if n < 0:
        raise ShapeError(message("np.diff", "n must not be negative", n))
    for _ in range(n):
        size = a.shape[dim]
        before = (slice(None),) * dim
        later, earlier = a[(*before, slice(1, None))], a[(*before, slice(0, _at_least_zero(size - 1)))]
        a = np.not_equal(later, earlier) if a.dtype.kind == "b" else later - earlier
    return a


@implements("result_type")
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """``numpy.result_type``."""
    return result_dtype(*(np.dtype(x) if isinstance(x, (str, type)) else x for x in arrays_and_dtypes))


@implements("iscomplexobj")
def iscomplexobj(x: Any) -> bool:
    """``numpy.iscomplexobj``: by the dtype, also if all imaginary parts are zero."""
    return is_complex(x.dtype)


@implements("isrealobj")
def isrealobj(x: Any) -> bool:
    """``numpy.isrealobj``: by the dtype."""
    return not is_complex(x.dtype)


@implements("imag")
def imag(val: Any) -> Any:
    """``numpy.imag``: of real numbers zeros."""
    return imag_part(val)


@implements("real")
def real(val: Any) -> Any:
    """``numpy.real``: real numbers are themselves."""
    return real_part(val)


@implements("angle")
def angle(z: Any, deg: bool = False) -> Any:
    """``numpy.angle``: between -pi and pi, or in degrees."""
    found = np.arctan2(imag_part(z) if is_complex(z.dtype) else 0, real_part(z))
    return found * (180 / math.pi) if deg else found


@implements("real_if_close")
def real_if_close(a: Any, tol: float = 100) -> Any:
    """``numpy.real_if_close`` of real numbers; whether complex ones are close depends on the data."""
    if is_complex(a.dtype):
        way_out = "use np.real(x)"
        raise UnsupportedError(
            message("np.real_if_close", "the dtype must be known, not depend on the data", a, way_out)
        )
    return a
