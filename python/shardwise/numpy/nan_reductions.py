# SPDX-License-Identifier: Apache-2.0
"""Reductions that ignore NaN: each is the plain reduction of ``np.where(np.isnan(x), neutral, x)``.

np.nanmean(x, axis=0)      np.sum(np.where(np.isnan(x), 0, x), axis=0) / np.sum(~np.isnan(x), axis=0)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..recording.tracing import Tracer
from ._primitives import convert, refuse
from ._promote import is_complex, is_inexact
from ._registry import implements
from .reductions import highest, lowest

__all__: list[str] = []

_NO_VALUE = np._NoValue


def _options(function: str, axis: Any, keepdims: Any, **refused: Any) -> dict[str, Any]:
    refuse(function, **{name: (None if value is _NO_VALUE else value, None) for name, value in refused.items()})
    return {"axis": axis, "keepdims": keepdims is not _NO_VALUE and bool(keepdims)}


def _without_nan(x: Any, neutral: Any) -> Any:
    return np.where(np.isnan(x), np.asarray(neutral, x.dtype), x) if is_inexact(x.dtype) else x


def _count(x: Tracer, options: dict[str, Any]) -> Any:
    return np.sum(~np.isnan(x), **options)


@implements("nansum")
def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NO_VALUE,
    initial: Any = _NO_VALUE, where: Any = _NO_VALUE,
) -> Any:  # fmt: skip
    """``numpy.nansum``."""
    return np.sum(
        _without_nan(a, 0), dtype=dtype, **_options("nansum", axis, keepdims, out=out, initial=initial, where=where)
    )


@implements("nanprod")
def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NO_VALUE,
    initial: Any = _NO_VALUE, where: Any = _NO_VALUE,
) -> Any:  # fmt: skip
    """``numpy.nanprod``."""
    return np.prod(
        _without_nan(a, 1), dtype=dtype, **_options("nanprod", axis, keepdims, out=out, initial=initial, where=where)
    )


@implements("nancumsum")
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """``numpy.nancumsum``."""
    refuse("nancumsum", out=(out, None))
    return np.cumsum(_without_nan(a, 0), axis, dtype)


@implements("nancumprod")
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """``numpy.nancumprod``."""
    refuse("nancumprod", out=(out, None))
    return np.cumprod(_without_nan(a, 1), axis, dtype)


def _extreme(function: Any, worst: Any, x: Any, options: dict[str, Any]) -> Any:
    if not is_inexact(x.dtype):
        return function(x, **options)
    found = function(_without_nan(x, worst), **options)
    return np.where(np.all(np.isnan(x), **options), np.asarray(np.nan, x.dtype), found)


@implements("nanmax")
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NO_VALUE, initial: Any = _NO_VALUE,
    where: Any = _NO_VALUE,
) -> Any:  # fmt: skip
    """``numpy.nanmax``: NaN if all elements are NaN."""
    options = _options("nanmax", axis, keepdims, out=out, initial=initial, where=where)
    return _extreme(np.max, lowest(a.dtype), a, options)


@implements("nanmin")
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NO_VALUE, initial: Any = _NO_VALUE,
    where: Any = _NO_VALUE,
) -> Any:  # fmt: skip
    """``numpy.nanmin``: NaN if all elements are NaN."""
    options = _options("nanmin", axis, keepdims, out=out, initial=initial, where=where)
    return _extreme(np.min, highest(a.dtype), a, options)


@implements("nanargmax")
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _NO_VALUE) -> Any:
    """``numpy.nanargmax``: 0 if all elements are NaN."""
    return np.argmax(_without_nan(a, lowest(a.dtype)), **_options("nanargmax", axis, keepdims, out=out))


@implements("nanargmin")
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _NO_VALUE) -> Any:
    """``numpy.nanargmin``: 0 if all elements are NaN."""
    return np.argmin(_without_nan(a, highest(a.dtype)), **_options("nanargmin", axis, keepdims, out=out))


@implements("nanmean")
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NO_VALUE, *, where: Any = _NO_VALUE
) -> Any:
    """``numpy.nanmean``: NaN if all elements are NaN."""
    options = _options("nanmean", axis, keepdims, out=out, where=where)
    if not is_inexact(a.dtype):
        return np.mean(a, dtype=dtype, **options)
    result = a.dtype if dtype is None else np.dtype(dtype)
    wide = np.dtype(np.float32) if result.itemsize < 4 else result
    total: Any = np.sum(_without_nan(a, 0), dtype=wide, **options)
    return convert(total / convert(_count(a, options), wide), result)


@implements("nanvar")
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _NO_VALUE,
    *, where: Any = _NO_VALUE, mean: Any = _NO_VALUE, correction: Any = _NO_VALUE,
) -> Any:  # fmt: skip
    """``numpy.nanvar``: NaN if at most ``ddof`` elements are not NaN."""
    options = _options("nanvar", axis, keepdims, out=out, where=where, mean=mean)
    ddof = ddof if correction is _NO_VALUE else correction
    if not is_inexact(a.dtype):
        return np.var(a, dtype=dtype, ddof=ddof, **options)
    result = a.dtype if dtype is None else np.dtype(dtype)
    wide = convert(a, np.dtype(np.float32) if result.itemsize < 4 else result)
    # An infinity has the distance NaN, which stays.
    distance = np.where(np.isnan(wide), np.asarray(0, wide.dtype), wide - nanmean(wide, axis, keepdims=True))
    freedom = convert(_count(a, options), wide.dtype) - ddof
    square: Any = distance * distance
    if is_complex(wide.dtype):
        square = np.square(np.real(distance)) + np.square(np.imag(distance))
        freedom, result = np.real(freedom), np.finfo(result).dtype
    total: Any = np.sum(square, **options)
    quotient: Any = np.where(freedom > 0, total / np.where(freedom > 0, freedom, 1), np.nan)
    return convert(quotient, result)


@implements("nanstd")
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _NO_VALUE,
    *, where: Any = _NO_VALUE, mean: Any = _NO_VALUE, correction: Any = _NO_VALUE,
) -> Any:  # fmt: skip
    """``numpy.nanstd``: the square root of :func:`nanvar`."""
    return np.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction))
