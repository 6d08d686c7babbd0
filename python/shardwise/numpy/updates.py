# SPDX-License-Identifier: Apache-2.0
"""``x.at[index].set(values)`` and its kin, as in JAX: a new array with the elements at an index changed.

    x.at[ids].add(y)          what np.add.at(x, ids, y) would do to x: an id that comes twice is added twice
    x.at[1:3].set(0)          x[1:3] = 0

Negative numbers count from the end. Updates at a traced number outside are dropped; ``get`` clamps it. A number that is
known raises IndexError. Where ``set`` meets an element twice, the last value stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UnsupportedError, message
from ..tracing import Tracer
from ._primitives import broadcast_dims, iota, operand, reshape, reverse, select, splat
from ._promote import is_float
from ._registry import checks
from .advanced_indexing import Places, check_getitem, places_of, result_shape
from .indexing import Box, expanded, is_array

__all__ = ["At", "IndexedUpdate"]

_DROP = (None, "drop", "fill", "promise_in_bounds")
_MODES = (*_DROP, "clip")
_INT64 = np.dtype(np.int64)


class At:
    """``x.at``: takes an index."""

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> IndexedUpdate:
        return IndexedUpdate(self._x, index)


class IndexedUpdate:
    """``x.at[index]``: what stands at an index of an array, to be changed in a new array.

    Every method takes JAX's options: ``mode`` is "drop" (or None, "fill"; updates outside do not happen), "clip" (they
    go to the nearest element) or "promise_in_bounds"; ``unique_indices=True`` promises that no element is named twice.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Any, index: Any) -> None:
        self._x = x
        self._index = index

    def set(self, values: Any, **options: Any) -> Any:
        """The array with ``values`` at the index."""
        return _call(_update, self._x, self._index, values, "", **options)

    def add(self, values: Any, **options: Any) -> Any:
        """The array with ``values`` added at the index, once for each time that it names an element."""
        return _call(_update, self._x, self._index, values, "add", **options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """The array with ``values`` subtracted at the index."""
        return _call(_update, self._x, self._index, values, "subtract", **options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """The array multiplied by ``values`` at the index."""
        return _call(_update, self._x, self._index, values, "multiply", **options)

    mul = multiply

    def min(self, values: Any, **options: Any) -> Any:
        """The array with the minimum of it and ``values`` at the index."""
        return _call(_update, self._x, self._index, values, "minimum", **options)

    def max(self, values: Any, **options: Any) -> Any:
        """The array with the maximum of it and ``values`` at the index."""
        return _call(_update, self._x, self._index, values, "maximum", **options)

    def get(self, *, mode: Any = None, fill_value: Any = None) -> Any:
        """``x[index]``; with ``mode="fill"`` a traced number outside gives ``fill_value``, NaN unless given."""
        return _call(_get, self._x, self._index, mode, fill_value)

    def __repr__(self) -> str:
        return f"{self._x!r}.at[...]"


def _call(function: Any, x: Any, *args: Any, **options: Any) -> Any:
    if isinstance(x, Tracer):
        return function(x, *args, **options)
    from ..jit import eager_call

    return eager_call(function, (x, *args), options)


def _get(x: Tracer, index: Any, mode: Any, fill_value: Any) -> Tracer:
    if mode not in _MODES:
        raise _bad_mode(mode)
    items = expanded(x.shape, index)
    if mode not in ("fill", "drop") or not _has_traced(items):
        return x[index]  # type: ignore[no-any-return]
    places = places_of(x, items)
    held = places.gather(Box.of(x.shape, _without_numbers(items)).read(x))
    filler = splat(x._trace, _default_fill(x.dtype) if fill_value is None else fill_value, held.shape, x.dtype)
    inside = _inside(places, x.shape)
    dims = range(places.position, places.position + len(places.shape))
    held = select(broadcast_dims(inside, held.shape, dims), held, filler)
    return reshape(held, result_shape(items, places, held.shape))


def _inside(places: Places, shape: tuple[int, ...]) -> Any:
    numbers = places.indices
    limits = np.array([shape[dim] for dim in places.dims], numbers.dtype)
    limit = limits if len(limits) > 1 else limits[0]
    inside = (numbers >= 0) & (numbers < limit)
    return np.all(inside, axis=-1) if len(limits) > 1 else inside


def _default_fill(dtype: np.dtype[Any]) -> Any:
    if is_float(dtype):
        return np.nan
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


def _update(
    x: Tracer, index: Any, values: Any, how: str,
    *, mode: Any = None, indices_are_sorted: bool = False, unique_indices: bool = False,
) -> Tracer:  # fmt: skip
    if mode not in _MODES:
        raise _bad_mode(mode)
    trace = x._trace
    items = expanded(x.shape, index)
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


def _values(trace: Any, values: Any, dtype: np.dtype[Any], index_shape: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Values that broadcast to what the index picks out, in the shape of the part that is changed."""
    return reshape(operand(trace, values, dtype, index_shape), shape)


def _without_numbers(items: list[Any]) -> list[Any]:
    """Beside arrays a number is one of them, so that the box keeps its dim whole."""
    return [np.asarray(item) if type(item) is int else item for item in items]


def _has_traced(items: list[Any]) -> bool:
    return any(isinstance(item, Tracer) for item in items)


def _clamped(places: Places, shape: tuple[int, ...]) -> Places:
    limits = np.array([max(shape[dim] - 1, 0) for dim in places.dims], places.indices.dtype)
    indices: Any = np.clip(places.indices, 0, limits if len(limits) > 1 else limits[0])
    return Places(indices, places.dims, places.shape, places.position)


def _write(x: Tracer, box: Box, part: Tracer) -> Tracer:
    """``x`` with a box of it replaced."""
    if part.shape == x.shape and not box.reversed_dims:
        return part
    if 0 in part.shape:
        return x
    part = reverse(part, box.reversed_dims)
    trace = x._trace
    if all(stride == 1 for stride in box.strides):
        starts = [splat(trace, start, (), _INT64) for start in box.start]
        return trace.emit("stablehlo.dynamic_update_slice", (x, part, *starts))
    # Strided rows are spread out over zeros, and taken where they belong.
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


def _bad_mode(mode: Any) -> Exception:
    known = ", ".join(map(repr, _MODES[1:]))
    return UnsupportedError(message("x.at", f"mode must be one of {known}, or None", repr(mode), "leave it out"))


@checks(_get)
def _check_get(x: Any, index: Any, mode: Any, fill_value: Any) -> None:
    check_getitem(x, index)


@checks(_update)
def _check_update(x: Any, index: Any, values: Any, how: str, **options: Any) -> None:
    check_getitem(x, index)
