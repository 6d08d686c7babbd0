# SPDX-License-Identifier: Apache-2.0
"""Gathers and scatters by dimension numbers, as in StableHLO.

gather(x, i, numbers, slice_sizes=(1, 8))     %1 = "stablehlo.gather"(%x, %i) <{dimension_numbers = …, slice_sizes = …}>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import numpy as np

from .. import _core
from ..dtypes import is_integer
from ..errors import DTypeError, ShapeError, described, message, shown
from ..numpy._primitives import convert, static_integer
from ..numpy._promote import is_inexact
from ..recording.tracing import Tracer
from .calls import lifted, on_arrays, recording, with_dtype
from .slicing import LARGEST, slice_sizes_of

__all__ = [
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    "gather",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
]


class GatherScatterMode(Enum):
    """What happens at places outside of the operand.

    CLIP: they are clamped into it. FILL_OR_DROP: a gather returns `fill_value` there, and a scatter drops the update.
    PROMISE_IN_BOUNDS: there are none; the result is unspecified where the promise is broken (here, as CLIP for a gather
    and FILL_OR_DROP for a scatter). ONE_HOT is not offered.

    Source: `jax.lax.GatherScatterMode`.
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    @classmethod
    def from_any(cls, mode: Any) -> GatherScatterMode:
        """The mode that JAX's names mean: "clip", "fill" or "drop", "promise_in_bounds"; None is FILL_OR_DROP."""
        return _mode("GatherScatterMode", mode)


def _mode(function: str, mode: Any) -> GatherScatterMode:
    """The mode that a name means, with ``function`` as the subject of the ValueError."""
    if isinstance(mode, GatherScatterMode):
        return mode
    names = {None: "fill", "drop": "fill", "fill": "fill", "clip": "clip", "promise_in_bounds": "promise_in_bounds"}
    if not (mode is None or isinstance(mode, str)) or mode not in names:
        known = "use 'clip', 'fill', 'drop' or 'promise_in_bounds'"
        raise ValueError(message(function, "mode must be one of JAX's", repr(mode), known))
    return GatherScatterMode(names[mode])


def _lists_to_tuples(numbers: Any) -> None:
    """Make lists in the fields tuples: a program is cached by the numbers, which must have a hash."""
    for name in (field.name for field in fields(numbers)):
        if isinstance(getattr(numbers, name), list):
            object.__setattr__(numbers, name, tuple(getattr(numbers, name)))


@dataclass(frozen=True)
class GatherDimensionNumbers:
    """Which dims of a gather belong together. The last dim of the indices has the parts of an index.

    Attributes:
        offset_dims: dims of the result that are those of a slice, ascending.
        collapsed_slice_dims: dims of the operand of which a slice has one row, and which the result lacks.
        start_index_map: the dim of the operand for each part of an index.
        operand_batching_dims: dims of the operand that are those of the indices in `start_indices_batching_dims`.
        start_indices_batching_dims: dims of the indices.

    Source: `jax.lax.GatherDimensionNumbers`; StableHLO gather.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _lists_to_tuples(self)


@dataclass(frozen=True)
class ScatterDimensionNumbers:
    """Which dims of a scatter belong together. The last dim of the indices has the parts of an index.

    Attributes:
        update_window_dims: dims of the updates that are those of a window, ascending.
        inserted_window_dims: dims of the operand of which a window has one row, and which the updates lack.
        scatter_dims_to_operand_dims: the dim of the operand for each part of an index.
        operand_batching_dims: dims of the operand that are those of the indices in `scatter_indices_batching_dims`.
        scatter_indices_batching_dims: dims of the indices.

    Source: `jax.lax.ScatterDimensionNumbers`; StableHLO scatter.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _lists_to_tuples(self)


def _dims(function: str, numbers: Any, kind: Any) -> dict[str, tuple[int, ...]]:
    """The fields of dimension numbers, ours or those of JAX. Raises TypeError."""
    what, found = f"lax.{function}", {}
    for name in (field.name for field in fields(kind)):
        if not hasattr(numbers, name):
            raise TypeError(message(what, f"dimension_numbers must be {kind.__name__}", described(numbers)))
        dims, place = getattr(numbers, name), f"dimension_numbers.{name}"
        if not isinstance(dims, (tuple, list)):
            raise TypeError(message(what, f"{place} must be a tuple of integers", described(dims)))
        found[name] = tuple(static_integer(what, f"{place}[{i}]", n, -LARGEST, LARGEST) for i, n in enumerate(dims))
    return found


def _struct(name: str, fields: dict[str, Any]) -> _core.ir.Struct:
    return _core.ir.Struct(name, {key: value for key, value in fields.items() if value != ()})


def _indices(function: str, indices: Tracer, mapped: Sequence[int]) -> Tracer:
    """The indices, whose last dim has a part for each mapped dim."""
    if not is_integer(indices.dtype):
        raise DTypeError(message(f"lax.{function}", "indices must be integers", indices.dtype.name))
    if indices.ndim == 0 or indices.shape[-1] != len(mapped):
        got = f"{indices.dtype.name}{list(indices.shape)}"
        rule = f"the last dim of the indices must have the {len(mapped)} parts of an index"
        raise ShapeError(message(f"lax.{function}", rule, got))
    return indices


def _limits(x: Tracer, mapped: Sequence[int], sizes: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The last place of a slice for each part of an index."""
    most = np.iinfo(dtype).max
    return np.array([min(x.shape[dim] - sizes[dim], most) for dim in mapped], dtype)


@on_arrays("operand", "start_indices", "fill_value")
def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """Slices of an array, side by side, each at an index.

    Args:
        operand: an array.
        start_indices: an array of integers, whose last dim has the parts of an index.
        dimension_numbers: which dims belong together.
        slice_sizes: the size of a slice in each dim of the operand.
        unique_indices: without effect here.
        indices_are_sorted: without effect here.
        mode: a GatherScatterMode or its name. Default: PROMISE_IN_BOUNDS.
        fill_value: what FILL_OR_DROP returns for slices that are not inside. Default: NaN, the smallest signed or the
            largest unsigned integer, True.

    Raises:
        ShapeError: the shapes do not fit the dimension numbers.
        DTypeError: the indices are no integers.
        ValueError: no such mode.

    Source: `jax.lax.gather`; StableHLO gather.
    """
    if isinstance(start_indices, (tuple, list)):
        rule = "start_indices must be an array"
        raise TypeError(message("lax.gather", rule, described(start_indices), "use np.asarray"))
    x, places = lifted(operand, start_indices)
    numbers = _dims("gather", dimension_numbers, GatherDimensionNumbers)
    sizes, mapped = slice_sizes_of("gather", slice_sizes, x), numbers["start_index_map"]
    places = _indices("gather", places, mapped)
    names = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims")
    struct = {name: numbers[name] for name in (*names, "start_index_map")} | {"index_vector_dim": places.ndim - 1}
    attrs = {"dimension_numbers": _struct("stablehlo.gather", struct), "slice_sizes": sizes}
    fills = mode is not None and _mode("lax.gather", mode) is GatherScatterMode.FILL_OR_DROP
    found: Any = recording().emit("stablehlo.gather", (x, places), attrs)
    if not fills:
        return found
    inside = _are_inside(places, _limits(x, mapped, sizes, places.dtype))
    dims = tuple(d for d in range(found.ndim) if d in numbers["offset_dims"])
    filling = with_dtype("gather", _filling(x.dtype) if fill_value is None else fill_value, x.dtype).astype(x.dtype)
    return np.where(np.expand_dims(inside, dims), found, filling)


def _are_inside(places: Any, limits: np.ndarray[Any, Any]) -> Any:
    """Whether the slice at each index is whole."""
    return np.all((places >= 0) & (places <= limits), axis=-1)


def _filling(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return True
    if is_inexact(dtype):
        return np.array(np.nan, dtype)
    return np.array(np.iinfo(dtype).max if dtype.kind == "u" else np.iinfo(dtype).min, dtype)


def _kept(places: Tracer, x: Tracer, mapped: Sequence[int], sizes: Sequence[int], mode: GatherScatterMode) -> Any:
    """The indices with which StableHLO's scatter, which drops single elements, does what the mode says of windows."""
    if mode is GatherScatterMode.CLIP:
        clipped: Any = np.clip(places, 0, _limits(x, mapped, sizes, places.dtype))
        return clipped
    if mode is GatherScatterMode.PROMISE_IN_BOUNDS or all(sizes[dim] <= 1 for dim in mapped):
        return places
    # A window that is not whole goes to where none of its elements is inside: one window before the first element.
    wide: Any = convert(places, np.dtype(np.int64 if places.dtype.itemsize == 8 else np.int32))
    inside = _are_inside(wide, _limits(x, mapped, sizes, wide.dtype))
    outside = np.array([-max(sizes[dim], 1) for dim in mapped], wide.dtype)
    moved: Any = np.where(np.expand_dims(inside, -1), wide, outside)
    return moved


def _scattered(
    function: str, combiner: str, operand: Any, indices: Any, updates: Any, numbers: ScatterDimensionNumbers, mode: Any
) -> Any:
    given = _dims(function, numbers, ScatterDimensionNumbers)
    windows, inserted, batch = (
        given[name] for name in ("update_window_dims", "inserted_window_dims", "operand_batching_dims")
    )
    mapped = given["scatter_dims_to_operand_dims"]
    x, places, parts = lifted(operand, indices, updates)
    places = _indices(function, places, mapped)
    if parts.dtype != x.dtype:
        got = f"{parts.dtype.name} for {x.dtype.name}"
        raise DTypeError(message(f"lax.{function}", "updates must have the operand's dtype", got))
    if len(windows) + len(inserted) + len(batch) != x.ndim:
        got = shown((windows, inserted, batch))
        rule = f"each of the {x.ndim} dims of the operand must be a window dim, inserted, or a batching dim"
        raise ShapeError(message(f"lax.{function}", rule, got))
    window = iter(parts.shape[d] for d in windows)
    whole = {*inserted, *batch}
    sizes = [1 if dim in whole else next(window) for dim in range(x.ndim)]
    places = _kept(places, x, mapped, sizes, _mode(f"lax.{function}", mode))
    struct = {
        "update_window_dims": windows,
        "inserted_window_dims": inserted,
        "input_batching_dims": batch,
        "scatter_indices_batching_dims": given["scatter_indices_batching_dims"],
        "scatter_dims_to_operand_dims": mapped,
        "index_vector_dim": places.ndim - 1,
    }
    attrs = {"scatter_dimension_numbers": _struct("stablehlo.scatter", struct)}
    return recording().emit("stablehlo.scatter", (x, places, parts), attrs, None, None, combiner)


@on_arrays("operand", "scatter_indices", "updates")
def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``operand`` with updates in place of windows, each at an index; of several at one place, the last one stays.

    Args:
        operand: an array.
        scatter_indices: an array of integers, whose last dim has the parts of an index.
        updates: an array of the operand's dtype: a window for each index.
        dimension_numbers: which dims belong together.
        indices_are_sorted: without effect here.
        unique_indices: without effect here.
        mode: a GatherScatterMode or its name. Default: FILL_OR_DROP.

    Raises:
        ShapeError: the shapes do not fit the dimension numbers.
        DTypeError: the dtypes differ, or the indices are no integers.
        ValueError: no such mode.

    Source: `jax.lax.scatter`; StableHLO scatter.
    """
    return _scattered("scatter", "", operand, scatter_indices, updates, dimension_numbers, mode)


@on_arrays("operand", "scatter_indices", "updates")
def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``operand`` with updates added to windows, each at an index. Arguments and errors as in :func:`scatter`.

    Source: `jax.lax.scatter_add`; StableHLO scatter.
    """
    return _scattered("scatter_add", "stablehlo.add", operand, scatter_indices, updates, dimension_numbers, mode)


@on_arrays("operand", "scatter_indices", "updates")
def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``operand`` with windows multiplied by updates, each at an index. Arguments and errors as in :func:`scatter`.

    Source: `jax.lax.scatter_mul`; StableHLO scatter.
    """
    return _scattered("scatter_mul", "stablehlo.multiply", operand, scatter_indices, updates, dimension_numbers, mode)


@on_arrays("operand", "scatter_indices", "updates")
def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """The minimum of windows and updates, each at an index. Arguments and errors as in :func:`scatter`.

    Source: `jax.lax.scatter_min`; StableHLO scatter.
    """
    return _scattered("scatter_min", "stablehlo.minimum", operand, scatter_indices, updates, dimension_numbers, mode)


@on_arrays("operand", "scatter_indices", "updates")
def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """The maximum of windows and updates, each at an index. Arguments and errors as in :func:`scatter`.

    Source: `jax.lax.scatter_max`; StableHLO scatter.
    """
    return _scattered("scatter_max", "stablehlo.maximum", operand, scatter_indices, updates, dimension_numbers, mode)
