# SPDX-License-Identifier: Apache-2.0
"""Functions that choose among arrays, or delete and insert elements at places that are known during tracing.

np.select([x < 0, x > 1], [0, 1], x)      where(x < 0, 0, where(x > 1, 1, x))
np.delete(x, [0, 2], axis=1)              take of the other columns
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, UnsupportedError, message
from ..recording.tracing import Tracer
from ._primitives import broadcast, common_trace, convert, normalize_axis, operand, refuse, reshape
from ._promote import result_dtype
from ._registry import checks, implements
from .joining import concatenate, holds_traced, nested
from .manipulation import sizes_of

__all__: list[str] = []

_AS_INTEGERS = "convert them with astype(int)"


# ---- among arrays ---------------------------------------------------------------------------------------------------


@implements("select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """``numpy.select``: for each element, the choice of the first condition that is True."""
    if len(condlist) != len(choicelist) or not len(condlist):
        got = f"{len(condlist)} and {len(choicelist)}"
        raise ShapeError(message("np.select", "conditions and choices must be as many, and some", got))
    trace = common_trace((*condlist, *choicelist, default))
    dtype = result_dtype(*choicelist, default)
    result: Any = operand(trace, default, dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        result = np.where(condition, operand(trace, choice, dtype), result)
    return result


@implements("piecewise")
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """``numpy.piecewise``; every function runs on an array of ``x``'s shape, with 1 where another function applies.

    So a function has no influence on the gradient at elements where it does not apply, as in JAX.
    """
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    if len(funclist) == len(conditions) + 1:
        conditions.append(np.logical_not(_any_of(conditions)))
    if len(funclist) != len(conditions):
        got = f"{len(conditions)} and {len(funclist)}"
        raise ShapeError(message("np.piecewise", "there must be a function for each condition", got))
    result: Any = np.zeros_like(x)
    for i, (condition, function) in enumerate(zip(conditions, funclist)):
        if i + 1 < len(conditions):  # the last condition that holds counts
            condition = np.logical_and(condition, np.logical_not(_any_of(conditions[i + 1 :])))
        value = function(np.where(condition, x, np.ones((), x.dtype)), *args, **kw) if callable(function) else function
        result = np.where(condition, operand(x._trace, value, x.dtype), result)
    return result


def _any_of(conditions: list[Any]) -> Any:
    return functools.reduce(np.logical_or, conditions)


@implements("choose")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """``numpy.choose``.

    Traced indices out of range cannot raise: with ``mode="raise"`` they are clamped, as with ``mode="clip"``. Known
    ones raise, as on an :class:`shardwise.Array`.

    Raises:
        DTypeError: indices that are not integers. ValueError: a known index out of range, or an unknown mode.
    """
    refuse("choose", out=(out, None))
    rows = list(choices)
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(message("np.choose", "mode must be 'raise', 'wrap' or 'clip'", repr(mode)))
    if not holds_traced(a):
        _check_choose(a, rows, out, mode)
    trace = common_trace((a, *rows))
    number: Any = trace.lift(nested(trace, a))
    if not np.can_cast(number.dtype, np.int64, "safe"):
        raise DTypeError(
            message("np.choose", "the numbers must be integers that fit int64", number.dtype, _AS_INTEGERS)
        )
    number = convert(number, np.dtype(np.int64))
    number = number % len(rows) if mode == "wrap" else np.clip(number, 0, len(rows) - 1)
    dtype = result_dtype(*rows)  # Python numbers are weak
    result: Any = operand(trace, rows[0], dtype)
    for i, row in enumerate(rows[1:], 1):
        result = np.where(number == i, operand(trace, row, dtype), result)
    return broadcast(result, np.broadcast_shapes(result.shape, number.shape))


@checks("choose")
def _check_choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> None:
    numbers, count = np.asarray(a), len(choices)
    if mode != "raise" or not numbers.size or numbers.dtype.kind not in "iub":
        return
    outside = numbers[(numbers < 0) | (numbers >= count)]
    if outside.size:
        must_hold = f"there are {count} choices, so that the numbers must be from 0 to {count - 1}"
        raise ValueError(message("np.choose", must_hold, outside.flat[0], "use mode='clip' or mode='wrap'"))


@implements("isin")
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    """``numpy.isin``: a comparison with every one of ``test_elements``."""
    trace = common_trace((element, test_elements))
    x: Any = trace.lift(element)
    found = np.any(np.equal(x[..., None], trace.lift(test_elements).reshape(-1)), axis=-1)
    return ~found if invert else found


# ---- at known places ------------------------------------------------------------------------------------------------


def _known(function: str, places: Any) -> Any:
    if isinstance(places, Tracer):
        rule = "the places must be known during tracing, because they decide the result's shape"
        raise UnsupportedError(message(function, rule, repr(places), "use np.where, or make them static"))
    return places


@implements("delete")
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """``numpy.delete`` of known places: integers, a slice, or a mask."""
    places = _known("np.delete", obj)
    x = arr if axis is not None else np.ravel(arr)
    dim = 0 if axis is None else normalize_axis("np.delete", axis, arr.ndim)
    return np.take(x, np.delete(np.arange(x.shape[dim]), places), axis=dim)


@implements("insert")
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """``numpy.insert`` before known places; ``values`` may be traced."""
    places = _known("np.insert", obj)
    trace = common_trace((arr, values))
    x: Any = trace.lift(arr)
    x = np.ravel(x) if axis is None else x
    dim = 0 if axis is None else normalize_axis("np.insert", axis, x.ndim)
    size = x.shape[dim]
    places = np.arange(size)[places] if isinstance(places, slice) else np.asarray(places)
    places = places.nonzero()[0] if places.dtype == np.bool_ else places
    new: Any = convert(trace.lift(nested(trace, values)), x.dtype)
    new = reshape(new, (1,) * (x.ndim - new.ndim) + new.shape)
    new = np.moveaxis(new, 0, dim) if places.ndim == 0 else new
    count = new.shape[dim] if places.size == 1 else places.size
    order = np.insert(np.arange(size), places, size + np.arange(count))
    new = np.broadcast_to(new, (*x.shape[:dim], count, *x.shape[dim + 1 :]))
    return np.take(concatenate([x, new], axis=dim), order, axis=dim)


@implements("compress")
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """``numpy.compress`` by a known condition."""
    refuse("compress", out=(out, None))
    return np.take(a, np.flatnonzero(_known("np.compress", condition)), axis=axis)


@implements("extract")
def extract(condition: Any, arr: Any) -> Any:
    """``numpy.extract`` by a known condition."""
    return np.take(np.ravel(arr), np.flatnonzero(_known("np.extract", condition)))


@implements("resize")
def resize(a: Any, new_shape: Any) -> Any:
    """``numpy.resize``: the elements again and again, in row-major order."""
    shape = sizes_of(new_shape)
    count = int(np.prod(shape))
    if a.size == 0:
        return np.zeros_like(a, shape=shape)
    return np.take(np.ravel(a), np.arange(count) % a.size).reshape(shape)


# ---- grids and blocks -----------------------------------------------------------------------------------------------


@implements("meshgrid")
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    """``numpy.meshgrid``."""
    if indexing not in ("xy", "ij"):
        raise ValueError(message("np.meshgrid", "indexing must be 'xy' or 'ij'", repr(indexing)))
    trace = common_trace(xi)
    grids: list[Any] = [
        reshape(x, (1,) * i + (x.size,) + (1,) * (len(xi) - i - 1)) for i, x in enumerate(map(trace.lift, xi))
    ]
    if indexing == "xy" and len(xi) > 1:
        grids = [np.swapaxes(grid, 0, 1) for grid in grids]
    return tuple(grids) if sparse else tuple(np.broadcast_arrays(*grids))


@implements("ix_")
def ix_(*args: Any) -> tuple[Any, ...]:
    """``numpy.ix_`` of integers, and of masks that are known during tracing."""
    trace = common_trace(args)
    return tuple(meshgrid(*[trace.lift(_positions(x)) for x in args], sparse=True, indexing="ij"))


def _positions(x: Any) -> Any:
    """The positions that one argument of np.ix_ selects along its dim."""
    x = x if isinstance(x, Tracer) else np.asarray(x)
    if x.ndim != 1:
        raise ShapeError(message("np.ix_", "each argument must have one dim", f"shape {x.shape}"))
    if x.dtype != np.bool_:
        return x if x.size else x.astype(np.intp)  # an empty list has the dtype float64
    return np.flatnonzero(_known("np.ix_", x))


@implements("block")
def block(arrays: Any) -> Any:
    """``numpy.block``: the innermost lists are joined along the last dim, those around them along the one before."""
    depth = _depth(arrays)
    trace = common_trace(list(_leaves(arrays)))
    ndim = max(depth, *(x.ndim for x in map(trace.lift, _leaves(arrays))), 1)

    def joined(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            lifted = trace.lift(x)
            return reshape(lifted, (1,) * (ndim - lifted.ndim) + lifted.shape)
        return concatenate([joined(part, level + 1) for part in x], axis=level - depth)

    return joined(arrays, 0)


def _depth(arrays: Any) -> int:
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) and arrays else 0


def _leaves(arrays: Any) -> Sequence[Any]:
    return [leaf for part in arrays for leaf in _leaves(part)] if isinstance(arrays, list) else [arrays]


@implements("diagflat")
def diagflat(v: Any, k: int = 0) -> Any:
    """``numpy.diagflat``."""
    return np.diag(np.ravel(v), k)


@implements("tril_indices_from")
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """``numpy.tril_indices_from``: known, as the shape is."""
    return np.tril_indices(arr.shape[-2], k, arr.shape[-1])


@implements("triu_indices_from")
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """``numpy.triu_indices_from``: known, as the shape is."""
    return np.triu_indices(arr.shape[-2], k, arr.shape[-1])


@implements("diag_indices_from")
def diag_indices_from(arr: Any) -> Any:
    """``numpy.diag_indices_from``: known, as the shape is."""
    return np.diag_indices(arr.shape[0], arr.ndim)
