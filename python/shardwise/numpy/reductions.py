# SPDX-License-Identifier: Apache-2.0
"""Sums, products, extrema, moments and truth over axes: each is a ``stablehlo.reduce`` and little else.

np.mean(x, axis=0)      %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [0]
                        %3 = stablehlo.divide %1, %2
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import as_dtype, float_range, integer_range
from ..errors import DTypeError, ShapeError, message
from ..recording.tracing import Tracer
from ._primitives import (
    broadcast_shape,
    cast,
    common_trace,
    convert,
    imag_part,
    normalize_axes,
    normalize_axis,
    operand,
    real_part,
    reduce,
    refuse,
    select,
    splat,
    truth,
)
from ._promote import is_complex, is_float, is_inexact, is_integer, result_dtype, sum_dtype
from ._registry import implements
from ._unsupported import unsupported_method, unsupported_option

__all__ = ["apply_method", "highest", "lowest"]

_NO_VALUE = np._NoValue


def _default(value: Any, default: Any) -> Any:
    return default if value is None or value is _NO_VALUE else value


def _mask(function: str, x: Tracer, where: Any) -> Tracer | None:
    """``where=`` in the shape of ``x``; None for all elements."""
    if where is _NO_VALUE or (isinstance(where, (bool, np.bool_)) and where):
        return None
    mask = where if isinstance(where, Tracer) else np.asarray(where)
    if mask.dtype.kind != "b":
        raise DTypeError(message(function, "where must be of bools", mask.dtype, "write where=mask != 0"))
    if broadcast_shape(function, (x.shape, mask.shape)) != x.shape:
        got = f"{mask.shape} for {x.shape}"
        raise ShapeError(message(function, "where must broadcast to the array's shape", got, "broadcast the array"))
    return operand(x._trace, mask, np.dtype(np.bool_), x.shape)


def _filled(function: str, x: Tracer, where: Any, value: Any) -> Tracer:
    """``x`` with ``value`` where ``where`` is False."""
    mask = _mask(function, x, where)
    return x if mask is None else select(mask, x, splat(x._trace, value, x.shape, x.dtype))


def _accumulate(
    function: str, x: Any, op: str, neutral: int, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    x = _filled(function, x, where, neutral)
    dtype = sum_dtype(x.dtype) if dtype is None else as_dtype(function, dtype)
    axes = normalize_axes(function, axis, x.ndim)
    # 16-bit floats are summed in float32 and rounded once.
    wide = np.dtype(np.float32) if is_float(dtype) and dtype.itemsize < 4 else dtype
    reduced = cast(x, dtype)
    initial = _default(initial, neutral)
    if dtype.kind == "b":
        op, initial = {"add": "or", "multiply": "and"}[op], bool(initial)
    if not axes and initial != neutral:
        return reduced + initial if op == "add" else reduced * initial
    return convert(reduce(convert(reduced, wide), op, axes, initial, bool(_default(keepdims, False))), dtype)


@implements("sum")
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = 0,
    where: Any = True,
) -> Any:
    """``numpy.sum``."""
    refuse("sum", out=(out, None))
    return _accumulate("np.sum", a, "add", 0, axis, dtype, keepdims, initial, where)


@implements("prod")
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = 1,
    where: Any = True,
) -> Any:
    """``numpy.prod``."""
    refuse("prod", out=(out, None))
    return _accumulate("np.prod", a, "multiply", 1, axis, dtype, keepdims, initial, where)


def _extreme(function: str, x: Any, op: str, axis: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    axes = normalize_axes(function, axis, x.ndim)
    given = initial is not None and initial is not _NO_VALUE
    neutral = lowest(x.dtype) if op == "maximum" else highest(x.dtype)
    whole, x = x, _filled(function, x, where, neutral)
    if not given and x is not whole:
        raise ValueError(
            message(function, "a reduction with where= needs a value to start with", None, "give initial=")
        )
    if not given and any(x.shape[a] == 0 for a in axes):
        raise ShapeError(
            message(
                function,
                "a reduction over nothing needs a value to start with",
                f"shape {x.shape}",
                "give initial=",
            )
        )
    found = reduce(x, op, axes, neutral, bool(_default(keepdims, False))) if axes else x
    if not given:
        return found
    # If the initial value equals the extremum, it gets half of the gradient, as in JAX.
    start = splat(x._trace, initial, found.shape, x.dtype)
    return np.maximum(found, start) if op == "maximum" else np.minimum(found, start)


def lowest(dtype: np.dtype[Any]) -> Any:
    """The smallest value, the neutral element of a maximum."""
    if is_inexact(dtype):
        return complex(-math.inf, -math.inf) if is_complex(dtype) else float_range(dtype)[0]
    return integer_range(dtype)[0] if is_integer(dtype) else False


def highest(dtype: np.dtype[Any]) -> Any:
    """The largest value, the neutral element of a minimum."""
    if is_inexact(dtype):
        return complex(math.inf, math.inf) if is_complex(dtype) else float_range(dtype)[1]
    return integer_range(dtype)[1] if is_integer(dtype) else True


@implements("max", "amax")
def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    """``numpy.max``: NaN propagates. ShapeError for no elements, ValueError for ``where`` without ``initial``."""
    refuse("max", out=(out, None))
    return _extreme("np.max", a, "maximum", axis, keepdims, initial, where)


@implements("min", "amin")
def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    """``numpy.min``: NaN propagates. ShapeError for no elements, ValueError for ``where`` without ``initial``."""
    refuse("min", out=(out, None))
    return _extreme("np.min", a, "minimum", axis, keepdims, initial, where)


@implements("all")
def all_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """``numpy.all``."""
    refuse("all", out=(out, None))
    chosen = _filled("np.all", truth(a), where, True)
    return reduce(chosen, "and", normalize_axes("np.all", axis, a.ndim), True, bool(_default(keepdims, False)))


@implements("any")
def any_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """``numpy.any``."""
    refuse("any", out=(out, None))
    chosen = _filled("np.any", truth(a), where, False)
    return reduce(chosen, "or", normalize_axes("np.any", axis, a.ndim), False, bool(_default(keepdims, False)))


@implements("count_nonzero")
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """``numpy.count_nonzero``."""
    return sum(truth(a), axis=axis, keepdims=keepdims)


@implements("ptp")
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """``numpy.ptp``: maximum minus minimum."""
    refuse("ptp", out=(out, None))
    return max(a, axis=axis, keepdims=keepdims) - min(a, axis=axis, keepdims=keepdims)


def _mean_dtypes(x: Any, dtype: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The dtype in which a mean is computed, and the dtype of the result."""
    if dtype is not None:
        asked = as_dtype("np.mean", dtype)
        return (np.dtype(np.float32), asked) if is_float(asked) and asked.itemsize < 4 else (asked, asked)
    if not is_inexact(x.dtype):
        return np.dtype(np.float64), np.dtype(np.float64)
    return (np.dtype(np.float32) if x.dtype.itemsize < 4 else x.dtype), x.dtype


def _count(x: Any, axes: tuple[int, ...], mask: Tracer | None, keepdims: bool) -> Any:
    """The number of elements per result: an integer, or traced if there is a mask."""
    if mask is None:
        return math.prod(x.shape[a] for a in axes)
    return reduce(convert(mask, x.dtype if is_inexact(x.dtype) else np.dtype(np.float64)), "add", axes, 0, keepdims)


def _quotient(x: Tracer, count: Any) -> Any:
    return x / count if is_inexact(x.dtype) else convert(x / count, x.dtype)


def _chosen(x: Tracer, mask: Tracer | None) -> Tracer:
    return x if mask is None else select(mask, x, splat(x._trace, 0, x.shape, x.dtype))


@implements("mean")
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """``numpy.mean``: of integers in float64, of 16-bit floats in float32."""
    refuse("mean", out=(out, None))
    axes, keep = normalize_axes("np.mean", axis, a.ndim), bool(_default(keepdims, False))
    compute, result = _mean_dtypes(a, dtype)
    mask, wide = _mask("np.mean", a, where), cast(a, compute)
    total = reduce(_chosen(wide, mask), "add", axes, 0, keep)
    return convert(_quotient(total, _count(wide, axes, mask, keep)), result)


@implements("var")
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False,
    *, where: Any = True, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """``numpy.var``: the mean square distance from the mean, over ``count - ddof``; ``mean`` has kept dims."""
    refuse("var", out=(out, None))
    return _variance("np.var", a, axis, dtype, _default(correction, ddof), keepdims, where, _default(mean, None))


def _variance(function: str, x: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any) -> Any:
    axes, keep = normalize_axes(function, axis, x.ndim), bool(_default(keepdims, False))
    compute, result = _mean_dtypes(x, dtype)
    mask, wide = _mask(function, x, where), convert(x, compute)
    if mean is None:
        mean = _quotient(reduce(_chosen(wide, mask), "add", axes, 0, True), _count(wide, axes, mask, True))
    elif dtype is None:  # it takes part in the dtype of the distances
        result = result_dtype(result, mean)
    distance = wide - mean
    square = distance * distance
    if is_complex(compute):
        square = np.square(real_part(distance)) + np.square(imag_part(distance))
        result = np.finfo(result).dtype
    squares = reduce(_chosen(square, mask), "add", axes, 0, keep)
    freedom = _count(square, axes, mask, keep) - ddof
    freedom = np.maximum(freedom, 0) if isinstance(freedom, Tracer) else freedom if freedom > 0 else 0
    return convert(squares / freedom, result)


@implements("std")
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False,
    *, where: Any = True, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """``numpy.std``: the square root of the variance."""
    refuse("std", out=(out, None))
    ddof = _default(correction, ddof)
    return np.sqrt(_variance("np.std", a, axis, dtype, ddof, keepdims, where, _default(mean, None)))


_REDUCTIONS: dict[np.ufunc, Any] = {
    np.add: sum,
    np.multiply: prod,
    np.maximum: max,
    np.minimum: min,
    np.logical_and: all_,
    np.logical_or: any_,
}

_UPDATES: dict[Any, str] = {
    np.add: "add", np.subtract: "subtract", np.multiply: "multiply", np.divide: "divide", np.power: "power",
    np.minimum: "min", np.maximum: "max",
}  # fmt: skip
_OTHER_UPDATE = f"sw.at(x, index) returns new arrays, by {', '.join(_UPDATES.values())} and set"


def apply_method(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``ufunc.reduce``; its axis is 0 unless given. Raises UnsupportedError for other methods and ufuncs."""
    function = _REDUCTIONS.get(ufunc) if method == "reduce" else None
    if function is None:
        known = ", ".join(u.__name__ for u in _REDUCTIONS)
        way_out = f"supported are reduce of {known}, and accumulate of add, multiply, maximum, minimum"
        if method == "at":
            update = _UPDATES.get(ufunc)
            way_out = f"sw.at(x, index).{update}(values) returns a new array" if update else _OTHER_UPDATE
        raise unsupported_method(f"np.{ufunc.__name__}.{method}", way_out)
    x, *rest = inputs
    trace = common_trace((x, kwargs.get("where"), *(kwargs.get("out") or ())))
    options = dict(zip(("axis", "dtype", "out", "keepdims", "initial", "where"), rest)) | kwargs
    options.setdefault("axis", 0)
    if isinstance(options.get("out"), tuple):
        options["out"] = options["out"][0]
    if function in (max, min, all_, any_) and options.get("dtype") is not None:
        refuse(f"{ufunc.__name__}.reduce", dtype=(options["dtype"], None))
    if function not in (sum, prod):
        options.pop("dtype", None)
    if function in (all_, any_):
        refuse(f"{ufunc.__name__}.reduce", initial=(_default(options.pop("initial", None), None), None))
    if options["axis"] is not None and not isinstance(options["axis"], tuple):
        options["axis"] = normalize_axis(f"np.{ufunc.__name__}.reduce", options["axis"], np.ndim(x))
    if isinstance(options.get("out"), Tracer):
        raise unsupported_option(f"np.{ufunc.__name__}.reduce", "out", options["out"])
    return function(trace.lift(x), **options)
