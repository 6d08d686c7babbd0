# SPDX-License-Identifier: Apache-2.0
"""Out-of-place updates, such as ``x.at[index].set(values)``, as in JAX.

    x.at[ids].add(y)          like np.add.at(x, ids, y): a repeated id is added each time
    x.at[1:3].set(0)          x[1:3] = 0

``sw.at(x, index)`` is the same for arrays of any kind: NumPy updates a copy of a NumPy array.

Negative indices count from the end. Updates at traced indices out of range are dropped; ``get`` clamps the index. Known
indices out of range raise IndexError, unless ``mode`` handles them. If ``set`` writes an element twice, the last value
wins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._core.runtime import enter_call, leave_call
from ..dtypes import integer_range
from ..errors import DTypeError, ShapeError, UnsupportedError, message, shown
from ..process.implementations import IMPLEMENTATIONS, provides
from ..recording.tracing import Trace, Tracer, current_trace
from . import host_updates
from ._primitives import broadcast_dims, iota, operand, reshape, reverse, select, shape_of, splat
from ._promote import is_inexact, is_signed
from ._registry import checks
from .advanced_indexing import Places, places_of, result_shape
from .indexing import Box, expanded, is_array, without_masks
from .joining import holds_traced, nested
from .masks import is_mask, traced_mask
from .subscripts import check_getitem

__all__ = ["At", "IndexedUpdate", "at"]

_DROP = (None, "drop", "fill", "promise_in_bounds")
_MODES = (*_DROP, "clip")
_BEYOND = ("drop", "fill", "clip")  # modes that accept indices out of range, also known ones
_OPTIONS = ("mode", "indices_are_sorted", "unique_indices")
_INT64 = np.dtype(np.int64)


def at(x: Any, index: Any) -> IndexedUpdate:
    """``x.at[index]`` for arrays of any kind, so that a function is plain NumPy outside :func:`shardwise.jit`.

    Args:
        x: a traced array, an :class:`shardwise.Array`, a NumPy array, or an argument of ``numpy.asarray``. It is
            not modified: methods return a new array of the same shape and dtype. For a NumPy array this is a copy, or a
            traced array if the index or the values are traced.
        index: an integer, a slice, None, Ellipsis, an array of integers, a known mask, or a tuple of these. One value
            can be set at a traced mask, too: ``at(x, x < 0).set(0)``.

    Returns:
        An object with ``set``, ``add``, ``subtract``, ``multiply``, ``divide``, ``power``, ``min``, ``max`` and
        ``get``, as ``x.at[index]``.

    Raises:
        IndexError: a known index is out of range, unless ``mode`` is "drop", "fill" or "clip".

    Source: `jax.numpy.ndarray.at`.

    >>> x = np.zeros(4)
    >>> at(x, [1, 1, 3]).add(2.0)
    array([0., 4., 0., 2.])
    >>> at(x, slice(2)).set([5.0, 6.0]), x
    (array([5., 6., 0., 0.]), array([0., 0., 0., 0.]))
    """
    return IndexedUpdate(x if isinstance(x, Tracer) or hasattr(x, "__shardwise_array__") else np.asarray(x), index)


@provides("at")
class At:
    """``x.at``: takes an index."""

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> IndexedUpdate:
        return IndexedUpdate(self._x, index)


class IndexedUpdate:
    """``x.at[index]``: the elements at an index, for out-of-place updates.

    Every method takes JAX's options: ``mode`` is "drop" (or None, "fill"; updates out of range are dropped), "clip"
    (they apply to the nearest element) or "promise_in_bounds". ``unique_indices=True`` promises distinct indices.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Any, index: Any) -> None:
        self._x = x
        self._index = index

    def set(self, values: Any, **options: Any) -> Any:
        """The array with ``values`` at the index."""
        return self._changed("set", values, "", options)

    def add(self, values: Any, **options: Any) -> Any:
        """The array with ``values`` added at the index, once for each occurrence of an element."""
        return self._changed("add", values, "add", options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """The array with ``values`` subtracted at the index."""
        return self._changed("subtract", values, "subtract", options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """The array multiplied by ``values`` at the index."""
        return self._changed("multiply", values, "multiply", options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Any:
        """The array divided by ``values`` at the index; it must hold floats."""
        return self._changed("divide", values, "divide", options)

    def power(self, values: Any, **options: Any) -> Any:
        """The array raised to the power of ``values`` at the index."""
        return self._changed("power", values, "power", options)

    def min(self, values: Any, **options: Any) -> Any:
        """The array with the minimum of it and ``values`` at the index."""
        return self._changed("min", values, "minimum", options)

    def max(self, values: Any, **options: Any) -> Any:
        """The array with the maximum of it and ``values`` at the index."""
        return self._changed("max", values, "maximum", options)

    def get(self, *, mode: Any = None, fill_value: Any = None) -> Any:
        """``x[index]``; with ``mode="fill"``, traced indices out of range give ``fill_value``, by default NaN."""
        return _call(_get, self._x, self._index, mode, fill_value)

    def _changed(self, method: str, values: Any, how: str, options: dict[str, Any]) -> Any:
        for name, value in options.items():
            if name not in _OPTIONS:
                must_hold = f"the options are {', '.join(_OPTIONS[:-1])} and {_OPTIONS[-1]}"
                raise TypeError(message(f"x.at[...].{method}", must_hold, f"{name}={shown(value)}", "leave it out"))
        return _call(_update, self._x, self._index, values, how, **options)

    def __repr__(self) -> str:
        return f"{self._x!r}.at[...]"


def _call(function: Any, x: Any, index: Any, *args: Any, **options: Any) -> Any:
    if hasattr(x, "__shardwise_array__"):
        enter_call()
        try:
            return IMPLEMENTATIONS.eager_call(function, (x, without_masks(x.shape, index), *args), options)
        finally:
            leave_call()
    trace = current_trace()
    if trace is not None and isinstance(x, np.ndarray) and holds_traced((index, args)):
        x = trace.lift(x)
    return function(x, index, *args, **options)


def _get(x: Any, index: Any, mode: Any, fill_value: Any) -> Any:
    _check_mode(mode)
    if isinstance(x, np.ndarray):
        return host_updates.get(x, index, mode, _default_fill(x.dtype) if fill_value is None else fill_value)
    items = _items(x, index, mode)
    if mode not in ("fill", "drop") or not _has_traced(items):
        return x[tuple(items)]
    places = places_of(x, items)
    held = places.gather(Box.of(x.shape, _without_numbers(items)).read(x))
    filler = splat(x._trace, _default_fill(x.dtype) if fill_value is None else fill_value, held.shape, x.dtype)
    inside = _inside(places, x.shape)
    dims = range(places.position, places.position + len(places.shape))
    held = select(broadcast_dims(inside, held.shape, dims), held, filler)
    return reshape(held, result_shape(items, places, held.shape))


def _inside(places: Places, shape: tuple[int, ...]) -> Any:
    numbers = places.indices
    limits = np.array([shape[dim] for dim in places.mapped_dims], numbers.dtype)
    limit = limits if len(limits) > 1 else limits[0]
    inside = (numbers >= 0) & (numbers < limit)
    return np.all(inside, axis=-1) if len(limits) > 1 else inside


def _default_fill(dtype: np.dtype[Any]) -> Any:
    if is_inexact(dtype):
        return np.nan
    if dtype.kind == "b":
        return True
    return integer_range(dtype)[0 if is_signed(dtype) else 1]


def _update(
    x: Any, index: Any, values: Any, how: str,
    *, mode: Any = None, indices_are_sorted: bool = False, unique_indices: bool = False,
) -> Any:  # fmt: skip
    _check_mode(mode)
    if how == "divide" and not is_inexact(x.dtype):
        must_hold, way_out = "divide needs an array of floats, since the dtype stays", "convert the array with astype"
        raise DTypeError(message("x.at", must_hold, x.dtype, way_out))
    if isinstance(x, np.ndarray):
        return host_updates.update(x, index, values, how, mode)
    trace = x._trace
    mask = traced_mask(index, x.shape)
    if mask is not None:
        return _masked(x, mask, _one_value(values), how)
    items = _items(x, index, mode)
    if is_mask(index) and np.ndim(values) == 0:
        return _masked(x, index, values, how)
    if how in ("divide", "power"):
        ones: Any = splat(trace, 1, x.shape, x.dtype)
        options = {"mode": mode, "indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
        factors = _update(ones, tuple(items), values, "multiply", **options)
        return getattr(np, how)(x, factors)
    by_places = _has_traced(items) or any(map(is_array, items))
    box = Box.of(x.shape, _without_numbers(items) if by_places else items)
    part = box.read(x)
    if by_places:
        places = places_of(x, items)
        shape = places.result_shape(part.shape)
        values = _values(trace, values, x.dtype, result_shape(items, places, shape), shape)
        if how == "subtract":
            values, how = -values, "add"
        attrs = {"indices_are_sorted": True} if indices_are_sorted else {}
        attrs |= {"unique_indices": True} if unique_indices else {}
        changed = (_clamped(places, x.shape) if mode == "clip" else places).scatter(part, values, how, attrs)
    else:
        sizes = [size for dim, size in enumerate(part.shape) if dim not in box.numbers]
        values = _values(trace, values, x.dtype, box.result_shape(items, sizes), part.shape)
        changed = trace.emit(f"stablehlo.{how}", (part, values)) if how else values
    return _write(x, box, changed)


def _one_value(values: Any) -> Any:
    if shape_of(values) == ():
        return values
    must_hold = "values at a mask that is unknown during tracing must be one number"
    way_out = "use np.where(mask, values, x) for values of x's shape"
    raise ShapeError(message("x.at", must_hold, shape_of(values), way_out))


def _masked(x: Tracer, mask: Any, value: Any, how: str) -> Tracer:
    """Write one value where a mask of the first dims is True: a select, which does not communicate."""
    trace = x._trace
    values = operand(trace, value, x.dtype, x.shape)
    changed = trace.emit(f"stablehlo.{how}", (x, values)) if how else values
    return select(broadcast_dims(trace.lift(mask), x.shape, range(mask.ndim)), changed, x)


def _items(x: Tracer, index: Any, mode: Any) -> list[Any]:
    """The expanded index. Known indices out of range become traced if the mode accepts them."""
    items = expanded(x.shape, index)
    if mode not in _BEYOND:
        return items
    dims = iter(x.shape)
    return [item if item is None else _lenient(x._trace, item, next(dims)) for item in items]


def _lenient(trace: Trace, item: Any, size: int) -> Any:
    if isinstance(item, (slice, Tracer)):
        return item
    numbers = np.asarray(item)
    return trace.lift(numbers) if np.any((numbers < -size) | (numbers >= size)) else item


def _values(trace: Any, values: Any, dtype: np.dtype[Any], index_shape: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Reshape the values so that they broadcast to the indexed part."""
    values = nested(trace, values) if isinstance(values, (list, tuple)) else values
    given = shape_of(values)
    extra = max(len(given) - len(index_shape), 0)
    kept = given[extra:]
    if set(given[:extra]) - {1} or any(n not in (1, m) for n, m in zip(kept[::-1], index_shape[::-1])):
        must_hold = f"values must broadcast to the shape that the index names, {index_shape}"
        raise ShapeError(message("x.at", must_hold, given))
    if kept != given:  # NumPy leaves out leading dims of size 1
        values = reshape(trace.lift(values), kept)
    return reshape(operand(trace, values, dtype, index_shape), shape)


def _without_numbers(items: list[Any]) -> list[Any]:
    """Treat numbers next to arrays as index arrays, so that the box keeps their dims whole."""
    return [np.asarray(item) if type(item) is int else item for item in items]


def _has_traced(items: list[Any]) -> bool:
    return any(isinstance(item, Tracer) for item in items)


def _clamped(places: Places, shape: tuple[int, ...]) -> Places:
    limits = np.array([max(shape[dim] - 1, 0) for dim in places.mapped_dims], places.indices.dtype)
    indices: Any = np.clip(places.indices, 0, limits if len(limits) > 1 else limits[0])
    return replace(places, indices=indices)


def _write(x: Tracer, box: Box, part: Tracer) -> Tracer:
    """Replace a box of ``x``."""
    if part.shape == x.shape and not box.reversed_dims:
        return part
    if 0 in part.shape:
        return x
    part = reverse(part, box.reversed_dims)
    trace = x._trace
    if all(stride == 1 for stride in box.strides):
        starts = [splat(trace, start, (), _INT64) for start in box.start]
        return trace.emit("stablehlo.dynamic_update_slice", (x, part, *starts))
    # Values of a strided box are padded with zeros between them, and selected at their rows.
    spread = [(size - 1) * stride + 1 for size, stride in zip(part.shape, box.strides)]
    attrs = {
        "edge_padding_low": box.start,
        "edge_padding_high": tuple(n - start - size for n, start, size in zip(x.shape, box.start, spread)),
        "interior_padding": tuple(stride - 1 for stride in box.strides),
    }
    wide = trace.emit("stablehlo.pad", (part, splat(trace, 0, (), x.dtype)), attrs)
    inside: Any = None
    for dim, (size, start, stride) in enumerate(zip(part.shape, box.start, box.strides)):
        if size == x.shape[dim]:
            continue
        rows = iota(trace, (x.shape[dim],), 0) - start
        last = (size - 1) * stride
        here = broadcast_dims((rows >= 0) & (rows <= last) & (rows % stride == 0), x.shape, (dim,))
        inside = here if inside is None else inside & here
    return select(inside, wide, x)


def _check_mode(mode: Any) -> None:
    if mode not in _MODES:
        known = ", ".join(map(repr, _MODES[1:]))
        raise UnsupportedError(message("x.at", f"mode must be one of {known}, or None", repr(mode), "leave it out"))


@checks(_get)
def _check_get(x: Any, index: Any, mode: Any, fill_value: Any) -> None:
    if mode not in _BEYOND:
        check_getitem(x, index)


@checks(_update)
def _check_update(x: Any, index: Any, values: Any, how: str, *, mode: Any = None, **options: Any) -> None:
    if mode not in _BEYOND:
        check_getitem(x, index)
