# SPDX-License-Identifier: Apache-2.0
"""Integer arrays as indices: ``x[ids]``, ``x[:, rows, columns]``, ``np.take``, ``np.take_along_axis``.

    x[1:, ids]               slice [1:, :], then gather of columns: (4, 6) and (3, 2) give (3, 3, 2)
    x[np.arange(4), ids]     one column of each row: the batching dim of rows keeps its sharding

Negative indices count from the end. Known indices out of range raise IndexError: in NumPy arrays, and in calls on an
:class:`~shardwise.Array`. Traced indices are clamped to the dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from ..errors import ShapeError, message
from ..recording.tracing import Trace, Tracer
from ._primitives import (
    broadcast,
    broadcast_dims,
    broadcast_shape,
    common_trace,
    convert,
    normalize_axis,
    refuse,
    reshape,
    select,
    shape_of,
)
from ._promote import is_integer
from ._registry import checks, implements
from .indexing import Box
from .joining import nested

__all__ = ["Places", "check_index", "get", "places_of", "result_shape"]

_Struct = _core.ir.Struct
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_MODES = ("raise", "wrap", "clip")


@dataclass(frozen=True)
class Places:
    """Index vectors into some dims of an array, and the position of the index dims in the result."""

    indices: Tracer  # the shape that the indices broadcast to; with several dims, also a last dim of their vectors
    dims: tuple[int, ...]  # of the array
    shape: tuple[int, ...]  # that the indices broadcast to
    position: int  # of the first dim of `shape` in the result
    batching: tuple[tuple[int, int], ...] = ()  # (dim, dim of `shape`) where the index is the place along that dim

    @property
    def vector_dim(self) -> int:
        """The dim of ``indices`` that holds vectors; one past the last where each is a single number."""
        return len(self.shape)

    @property
    def mapped_dims(self) -> tuple[int, ...]:
        """The dims of the array for which ``indices`` has numbers."""
        batching = {dim for dim, _ in self.batching}
        return tuple(dim for dim in self.dims if dim not in batching)

    def offset_dims(self, ndim: int) -> tuple[int, ...]:
        """The dims of the result that are not index dims, for an array of ``ndim`` dims."""
        kept = ndim - len(self.dims)
        return tuple(d if d < self.position else d + len(self.shape) for d in range(kept))

    def result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result for an array of this shape."""
        kept = [size for dim, size in enumerate(shape) if dim not in self.dims]
        return (*kept[: self.position], *self.shape, *kept[self.position :])

    def gather(self, x: Tracer) -> Tracer:
        """Gather the elements of ``x``."""
        sizes = tuple(min(size, 1) if dim in self.dims else size for dim, size in enumerate(x.shape))
        fields = {
            "offset_dims": self.offset_dims(len(x.shape)),
            "collapsed_slice_dims": self.mapped_dims,
            "operand_batching_dims": tuple(dim for dim, _ in self.batching),
            "start_indices_batching_dims": tuple(along for _, along in self.batching),
            "start_index_map": self.mapped_dims,
            "index_vector_dim": self.vector_dim,
        }
        numbers = _Struct("stablehlo.gather", {name: value for name, value in fields.items() if value})
        attrs = {"dimension_numbers": numbers, "slice_sizes": sizes}
        return x._trace.emit("stablehlo.gather", (x, self.indices), attrs)

    def scatter(self, x: Tracer, updates: Tracer, combiner: str, attrs: dict[str, Any]) -> Tracer:
        """Scatter updates into ``x``, combined by ``stablehlo.<combiner>``; an empty combiner overwrites."""
        fields = {
            "update_window_dims": self.offset_dims(len(x.shape)),
            "inserted_window_dims": self.mapped_dims,
            "input_batching_dims": tuple(dim for dim, _ in self.batching),
            "scatter_indices_batching_dims": tuple(along for _, along in self.batching),
            "scatter_dims_to_operand_dims": self.mapped_dims,
            "index_vector_dim": self.vector_dim,
        }
        numbers = _Struct("stablehlo.scatter", {name: value for name, value in fields.items() if value})
        region = f"stablehlo.{combiner}" if combiner else ""
        attrs = {**attrs, "scatter_dimension_numbers": numbers}
        return x._trace.emit("stablehlo.scatter", (x, self.indices, updates), attrs, None, None, region)


def get(x: Tracer, items: list[Any]) -> Tracer:
    """``x[items]`` for an expanded index with arrays."""
    box = Box.of(x.shape, _numbers_as_arrays(items))
    places = places_of(x, items)
    _refuse_empty(places, x.shape)
    result = places.gather(box.read(x))
    return reshape(result, result_shape(items, places, result.shape))


def result_shape(items: list[Any], places: Places, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with index dims at their position, with a 1 for every None of the index."""
    groups = joined_dims(items)
    sizes = iter([*shape[: places.position], *shape[places.position + len(places.shape) :]])
    index_sizes = shape[places.position : places.position + len(places.shape)]
    result: list[int] = [] if groups else list(index_sizes)
    placed = not groups
    for item in items:
        if item is None or isinstance(item, slice):
            result.append(1 if item is None else next(sizes))
        elif not placed:
            result += index_sizes
            placed = True
    return tuple(result)


def joined_dims(items: list[Any]) -> bool:
    """Whether the numbers and arrays are adjacent: then the index dims replace them, otherwise they come first."""
    is_index = [not (item is None or isinstance(item, slice)) for item in items]
    first = is_index.index(True)
    return all(is_index[first : first + sum(is_index)])


def places_of(x: Tracer, items: list[Any]) -> Places:
    """The places of the integers and arrays in an expanded index. Slices are applied before."""
    trace = x._trace
    found = [(dim, item) for dim, item in enumerate(i for i in items if i is not None) if not isinstance(item, slice)]
    shape = broadcast_shape("indexing", [shape_of(item) for _, item in found])
    dims = tuple(dim for dim, _ in found)
    batching = _batching(found, shape, x.shape)
    vectors = [_wrapped(trace, item, dim, x.shape[dim]) for dim, item in found if dim not in batching]
    before = 0
    if joined_dims(items):
        first = next(i for i, item in enumerate(items) if not (item is None or isinstance(item, slice)))
        before = sum(1 for item in items[:first] if item is not None)
    if len(vectors) == 1:
        return Places(broadcast(vectors[0], shape), dims, shape, before, tuple(batching.items()))
    columns = [
        broadcast_dims(convert(v, _INT64), (*shape, 1), range(len(shape) - len(v.shape), len(shape))) for v in vectors
    ]
    indices = trace.emit("stablehlo.concatenate", tuple(columns), {"dimension": len(shape)})
    return Places(indices, dims, shape, before, tuple(batching.items()))


def _batching(found: list[tuple[int, Any]], shape: tuple[int, ...], of: tuple[int, ...]) -> dict[int, int]:
    """Dims of an array of shape ``of`` that are indexed by ``arange`` along a dim of ``shape``, and that dim.

    A batching dim keeps its sharding; with arbitrary indices, the dim would have to be gathered.
    """
    result: dict[int, int] = {}
    if any(isinstance(item, Tracer) for _, item in found):
        for dim, item in found:
            along = None if isinstance(item, Tracer) else _counted_dim(np.asarray(item), shape)
            if along is not None and shape[along] == of[dim] and along not in result.values():
                result[dim] = along
    return result


def _counted_dim(numbers: np.ndarray, shape: tuple[int, ...]) -> int | None:
    """The dim of ``shape`` along which ``numbers`` are 0, 1, 2, …, and the same along all others."""
    long = [d for d, size in enumerate(numbers.shape) if size > 1]
    if len(long) != 1 or not np.array_equal(numbers.ravel(), np.arange(numbers.size)):
        return None
    return len(shape) - numbers.ndim + long[0]


def check_index(shape: tuple[int, ...], items: list[Any]) -> None:
    """Raise IndexError if a known index is out of range."""
    for dim, item in enumerate(i for i in items if i is not None):
        if isinstance(item, np.ndarray):
            _check_numbers("indexing", item, dim, shape[dim])


def _check_numbers(function: str, numbers: np.ndarray, dim: int, size: int) -> None:
    outside = (numbers < -size) | (numbers >= size)
    if np.any(outside):
        must = f"an index on dim {dim} of size {size} must be in [{-size}, {size})"
        raise IndexError(message(function, must, numbers[outside][0]))


def _numbers_as_arrays(items: list[Any]) -> list[Any]:
    # next to arrays, a number is an index array, and its dim is not sliced
    return [np.asarray(item) if type(item) is int else item for item in items]


def _wrapped(trace: Trace, item: Any, dim: int, size: int) -> Tracer:
    """Replace negative indices by positions counted from the front."""
    if not isinstance(item, Tracer):
        numbers = np.asarray(item)
        _check_numbers("indexing", numbers, dim, size)
        numbers = np.where(numbers < 0, numbers.astype(np.int64) + size, numbers)
        return trace.lift(numbers.astype(_INT32 if size <= np.iinfo(np.int32).max else _INT64))
    traced = trace.lift(item)
    if traced.dtype.kind == "u":
        return traced
    if traced.dtype.itemsize < 4 or size > np.iinfo(traced.dtype).max:
        traced = convert(traced, _INT32 if size <= np.iinfo(np.int32).max else _INT64)
    negative: Any = traced < 0
    from_end: Any = traced + size
    return select(negative, from_end, traced)


def _refuse_empty(places: Places, shape: tuple[int, ...]) -> None:
    for dim in places.dims:
        if shape[dim] == 0 and 0 not in places.result_shape(shape):
            raise IndexError(message("indexing", f"dim {dim} must have elements to pick from", f"shape {shape}"))


# ---- functions ------------------------------------------------------------------------------------------------------


@implements("take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """``numpy.take``. Traced indices cannot raise: those out of range are clamped, unless ``mode="wrap"``.

    ``mode="clip"`` maps negative indices to 0, as in NumPy.
    """
    refuse("take", out=(out, None))
    _check_mode(mode)
    trace = common_trace((a, *indices) if isinstance(indices, (list, tuple)) else (a, indices))
    indices = nested(trace, indices) if isinstance(indices, (list, tuple)) else indices
    x = trace.lift(a)
    x = reshape(x, (x.size,)) if axis is None else x
    dim = 0 if axis is None else normalize_axis("np.take", axis, len(x.shape))
    shape = shape_of(indices)
    if not _is_integers(indices):
        raise TypeError(message("np.take", "indices must be integers", _kind(indices), "convert them first"))
    numbers = indices if isinstance(indices, Tracer) else np.asarray(indices, np.int64 if 0 in shape else None)
    if mode != "raise" and x.shape[dim]:
        numbers = _inside(numbers, x.shape[dim], mode)
    items: list[Any] = [slice(None)] * len(x.shape)
    items[dim] = numbers if shape else reshape(numbers, (1,)) if isinstance(numbers, Tracer) else numbers.reshape(1)
    result = get(x, items)
    return result if shape else reshape(result, (*x.shape[:dim], *x.shape[dim + 1 :]))


def _is_integers(indices: Any) -> bool:
    if isinstance(indices, Tracer):
        return is_integer(indices.dtype)
    array = np.asarray(indices)
    return is_integer(array.dtype) or array.size == 0


def _kind(x: Any) -> str:
    return repr(x) if isinstance(x, Tracer) else str(np.asarray(x).dtype)


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(message("np.take", f"mode must be one of {', '.join(map(repr, _MODES))}", repr(mode)))


def _inside(numbers: Any, size: int, mode: str) -> Any:
    if not isinstance(numbers, Tracer):
        return np.clip(numbers, 0, size - 1) if mode == "clip" else numbers % size
    if size > np.iinfo(numbers.dtype).max:
        numbers = convert(numbers, _INT64)
    return np.clip(numbers, 0, size - 1) if mode == "clip" else numbers % size


@implements("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """``numpy.take_along_axis``; traced indices out of range are clamped."""
    trace = common_trace((arr, indices))
    x = trace.lift(arr)
    if axis is None:
        if len(shape_of(indices)) != 1:
            got = f"{len(shape_of(indices))} dims"
            raise ShapeError(message("np.take_along_axis", "without an axis, indices must have one dim", got))
        x, axis = reshape(x, (x.size,)), 0
    dim = normalize_axis("np.take_along_axis", axis, len(x.shape))
    if not _is_integers(indices):
        raise IndexError(message("np.take_along_axis", "indices must be integers", _kind(indices)))
    shape = shape_of(indices)
    if len(shape) != len(x.shape):
        got = f"{len(shape)} and {len(x.shape)} dims"
        raise ShapeError(message("np.take_along_axis", "indices and array must have the same number of dims", got))
    size = x.shape[dim]
    if size == 0 and 0 not in shape:
        raise IndexError(message("np.take_along_axis", f"dim {dim} must have elements", f"shape {x.shape}"))
    known = indices if isinstance(indices, Tracer) else np.asarray(indices, np.int64 if 0 in shape else None)
    numbers = _wrapped(trace, known, dim, size)
    others = [d for d in range(len(shape)) if d != dim]
    common = list(broadcast_shape("np.take_along_axis", [_without(x.shape, dim), _without(shape, dim)]))
    numbers = broadcast(numbers, (*common[:dim], shape[dim], *common[dim:]))
    x = broadcast(x, (*common[:dim], size, *common[dim:]))
    fields: dict[str, Any] = {
        "collapsed_slice_dims": (dim,),
        "operand_batching_dims": tuple(others),
        "start_indices_batching_dims": tuple(others),
        "start_index_map": (dim,),
        "index_vector_dim": len(shape),
    }
    numbers_of = _Struct("stablehlo.gather", {name: value for name, value in fields.items() if value})
    sizes = tuple(min(n, 1) for n in x.shape)
    return trace.emit("stablehlo.gather", (x, numbers), {"dimension_numbers": numbers_of, "slice_sizes": sizes})


def _without(shape: Sequence[int], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], *shape[dim + 1 :])


# ---- checks of calls whose numbers are known ------------------------------------------------------------------------


@checks("take")
def _check_take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> None:
    if mode != "raise" or not _is_integers(numbers := np.asarray(indices)):
        return
    shape = shape_of(a)
    dim = 0 if axis is None else normalize_axis("np.take", axis, len(shape))
    _check_numbers("np.take", numbers, dim, int(np.prod(shape)) if axis is None else shape[dim])


@checks("take_along_axis")
def _check_take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> None:
    numbers, shape = np.asarray(indices), shape_of(arr)
    if not _is_integers(numbers):
        return
    dim = 0 if axis is None else normalize_axis("np.take_along_axis", axis, len(shape))
    _check_numbers("np.take_along_axis", numbers, dim, int(np.prod(shape)) if axis is None else shape[dim])
