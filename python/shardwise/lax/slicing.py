# SPDX-License-Identifier: Apache-2.0
"""Slices at computed places, and pads on the sides of elements and between them.

dynamic_slice(x, (i, 0), (2, 4))     %1 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [2, 4]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import is_integer
from ..errors import DTypeError, Error, ShapeError, described, message, shown
from ..numpy._primitives import convert, normalize_axis, reshape, static_integer
from ..recording.tracing import Tracer
from .calls import lifted, on_arrays, recording, with_dtype

__all__ = [
    "LARGEST",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "pad",
    "slice_sizes_of",
]

LARGEST = 2**62  # of an integer that a message shows


def slice_sizes_of(function: str, given: Any, x: Tracer) -> tuple[int, ...]:
    """A size for each dim of ``x``, from 0 to that of the dim. Raises TypeError and ShapeError."""
    try:
        items = list(given)
    except Error:  # of a traced value, which must be known
        raise
    except TypeError:
        raise TypeError(message(f"lax.{function}", "slice_sizes must be a list of integers", shown(given))) from None
    sizes = tuple(
        static_integer(f"lax.{function}", f"slice_sizes[{i}]", n, -LARGEST, LARGEST) for i, n in enumerate(items)
    )
    if len(sizes) != x.ndim or any(not 0 <= size <= n for size, n in zip(sizes, x.shape)):
        rule = "slice_sizes must have a size for each dim, from 0 to that of the dim"
        raise ShapeError(message(f"lax.{function}", rule, f"{sizes} for {x.dtype.name}{list(x.shape)}"))
    return sizes


def _starts(function: str, start_indices: Any, shape: Sequence[int]) -> list[Tracer]:
    """One integer scalar for each dim, of one signed dtype."""
    ndim = len(shape)
    rule = f"start_indices must be {ndim} scalars, one for each dim"
    if isinstance(start_indices, (tuple, list)):
        starts = lifted(*start_indices)
    elif hasattr(start_indices, "ndim") and np.ndim(start_indices) == 1:
        (vector,) = lifted(start_indices)
        starts = [vector[i] for i in range(vector.shape[0])]
    else:
        raise ShapeError(message(f"lax.{function}", rule, described(start_indices)))
    if len(starts) != ndim or any(start.shape != () for start in starts):
        got = shown([start.shape for start in starts])
        raise ShapeError(message(f"lax.{function}", rule, got))
    if not all(is_integer(start.dtype) for start in starts):
        got = shown([start.dtype.name for start in starts])
        raise DTypeError(message(f"lax.{function}", "start_indices must be integers", got))
    wide = max(shape, default=0) > np.iinfo(np.int32).max or any(start.dtype.itemsize >= 4 for start in starts)
    return [_signed(start, np.dtype(np.int64 if wide else np.int32)) for start in starts]


def _signed(start: Any, dtype: np.dtype[Any]) -> Tracer:
    """The start in a dtype that has the size of each dim, too."""
    if start.dtype == np.uint64:
        start = np.minimum(start, np.uint64(np.iinfo(np.int64).max))
    return convert(start, dtype)


def _from_end(starts: Sequence[Tracer], sizes: Sequence[int]) -> list[Any]:
    """Negative starts count from the end, as in `jax.lax`."""
    found: list[Any] = []
    for start, size in zip(starts, sizes):
        found.append(np.where(start < 0, start + np.array(size, start.dtype), start))
    return found


@on_arrays("operand", "start_indices")
def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """A slice of known size at computed start indices.

    Args:
        operand: an array.
        start_indices: an integer scalar for each dim, or a vector of them. Negative ones count from the end; all are
            clamped, so that the slice lies inside.
        slice_sizes: the shape of the result.

    Raises:
        ShapeError: a size for each dim is missing, is larger than the dim, or there are more or fewer starts than dims.
        DTypeError: a start is no integer.

    Source: `jax.lax.dynamic_slice`; StableHLO dynamic_slice.
    """
    (x,) = lifted(operand)
    return _sliced("dynamic_slice", x, start_indices, slice_sizes_of("dynamic_slice", slice_sizes, x))


def _sliced(function: str, x: Tracer, start_indices: Any, sizes: Sequence[int]) -> Any:
    starts = _from_end(_starts(function, start_indices, x.shape), x.shape)
    return recording().emit("stablehlo.dynamic_slice", (x, *starts), {"slice_sizes": list(sizes)})


@on_arrays("operand", "update", "start_indices")
def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Any:
    """``operand`` with ``update`` in place of a slice at computed start indices.

    Args:
        operand: an array.
        update: an array of as many dims and the same dtype, in no dim larger.
        start_indices: as in :func:`dynamic_slice`.

    Raises:
        ShapeError: the shapes do not fit, or there are more or fewer starts than dims.
        DTypeError: the dtypes differ, or a start is no integer.

    Source: `jax.lax.dynamic_update_slice`; StableHLO dynamic_update_slice.
    """
    x, part = lifted(operand, update)
    return _updated("dynamic_update_slice", x, part, start_indices)


def _updated(function: str, x: Tracer, part: Tracer, start_indices: Any) -> Any:
    if x.dtype != part.dtype:
        got = f"{part.dtype.name} for {x.dtype.name}"
        raise DTypeError(message(f"lax.{function}", "update must have the operand's dtype", got))
    if part.ndim != x.ndim or any(n > m for n, m in zip(part.shape, x.shape)):
        got = f"{list(part.shape)} for {list(x.shape)}"
        raise ShapeError(message(f"lax.{function}", "update must fit into the operand", got))
    starts = _from_end(_starts(function, start_indices, x.shape), x.shape)
    return recording().emit("stablehlo.dynamic_update_slice", (x, part, *starts))


def _along(function: str, name: str, start_index: Any, axis: int, ndim: int) -> list[Any]:
    """The start indices of a slice of one dim, which begins at 0 in the others."""
    (start,) = lifted(start_index)
    if start.shape != () or not is_integer(start.dtype):
        got = f"{start.dtype.name}{list(start.shape)}"
        kind = ShapeError if start.shape != () else DTypeError
        raise kind(message(f"lax.{function}", f"{name} must be an integer scalar", got))
    return [start if d == axis else 0 for d in range(ndim)]


@on_arrays("operand", "start_index")
def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Any:
    """``slice_size`` rows of one dim, from a computed index on.

    Args:
        operand: an array.
        start_index: an integer scalar, as in :func:`dynamic_slice`.
        slice_size: the number of rows.
        axis: the dim.

    Raises:
        ShapeError, DTypeError: as :func:`dynamic_slice`.

    Source: `jax.lax.dynamic_slice_in_dim`.
    """
    (x,) = lifted(operand)
    return _rows("dynamic_slice_in_dim", "start_index", x, start_index, slice_size, axis)


def _rows(function: str, name: str, x: Tracer, start_index: Any, slice_size: Any, axis: Any) -> Any:
    axis = normalize_axis(f"lax.{function}", axis, x.ndim)
    size = static_integer(f"lax.{function}", "slice_size", slice_size, -LARGEST, LARGEST)
    if not 0 <= size <= x.shape[axis]:
        got = f"{size} for {x.dtype.name}{list(x.shape)}"
        raise ShapeError(message(f"lax.{function}", f"slice_size must be from 0 to the size of dim {axis}", got))
    sizes = [size if d == axis else n for d, n in enumerate(x.shape)]
    return _sliced(function, x, _along(function, name, start_index, axis, x.ndim), sizes)


@on_arrays("operand", "index")
def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """The row at a computed index of one dim.

    Args:
        operand: an array.
        index: an integer scalar, as in :func:`dynamic_slice`.
        axis: the dim.
        keepdims: keep the dim, with size 1.

    Raises:
        ShapeError, DTypeError: as :func:`dynamic_slice`.

    Source: `jax.lax.dynamic_index_in_dim`.
    """
    (x,) = lifted(operand)
    axis = normalize_axis("lax.dynamic_index_in_dim", axis, x.ndim)
    row = _rows("dynamic_index_in_dim", "index", x, index, 1, axis)
    return row if keepdims else reshape(row, (*x.shape[:axis], *x.shape[axis + 1 :]))


@on_arrays("operand", "update", "start_index")
def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Any:
    """``operand`` with ``update`` in place of rows of one dim, from a computed index on.

    Args:
        operand: an array.
        update: as in :func:`dynamic_update_slice`.
        start_index: an integer scalar, as in :func:`dynamic_slice`.
        axis: the dim.

    Raises:
        ShapeError, DTypeError: as :func:`dynamic_update_slice`.

    Source: `jax.lax.dynamic_update_slice_in_dim`.
    """
    x, part = lifted(operand, update)
    function = "dynamic_update_slice_in_dim"
    axis = normalize_axis(f"lax.{function}", axis, x.ndim)
    return _updated(function, x, part, _along(function, "start_index", start_index, axis, x.ndim))


@on_arrays("operand", "update", "index")
def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Any:
    """``operand`` with ``update`` in place of the row at a computed index of one dim.

    Args:
        operand: an array.
        update: the row, with or without the dim.
        index: an integer scalar, as in :func:`dynamic_slice`.
        axis: the dim.

    Raises:
        ShapeError, DTypeError: as :func:`dynamic_update_slice`.

    Source: `jax.lax.dynamic_update_index_in_dim`.
    """
    x, row = lifted(operand, update)
    function = "dynamic_update_index_in_dim"
    axis = normalize_axis(f"lax.{function}", axis, x.ndim)
    if row.ndim == x.ndim - 1:
        row = reshape(row, (*row.shape[:axis], 1, *row.shape[axis:]))
    return _updated(function, x, row, _along(function, "index", index, axis, x.ndim))


@on_arrays("operand", "padding_value")
def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """``operand`` with a value before, behind and between the elements of each dim; negative numbers cut elements off.

    Args:
        operand: an array.
        padding_value: a scalar of its dtype; a Python number takes it.
        padding_config: ``(low, high, interior)`` of each dim: how many before, behind, and between two neighbours.

    Raises:
        ShapeError: the list does not fit, or a dim would have less than 0 elements.
        DTypeError: the value has another dtype.

    Source: `jax.lax.pad`; StableHLO pad. `numpy.pad` neither cuts nor pads between elements.
    """
    (x,) = lifted(operand)
    value = with_dtype("pad", padding_value, x.dtype)
    if value.shape != () or value.dtype != x.dtype:
        got = f"{value.dtype.name}{list(value.shape)}"
        raise DTypeError(message("lax.pad", f"padding_value must be a scalar of {x.dtype.name}", got))
    rule = f"padding_config must have {x.ndim} triples (low, high, interior)"
    try:
        triples = [tuple(triple) for triple in padding_config]
    except Error:  # of a traced value, which must be known
        raise
    except TypeError:
        raise ShapeError(message("lax.pad", rule, shown(padding_config))) from None
    if len(triples) != x.ndim or any(len(triple) != 3 for triple in triples):
        raise ShapeError(message("lax.pad", rule, shown(padding_config)))
    config = [
        [static_integer("lax.pad", f"padding_config[{d}][{i}]", n, 0 if i == 2 else -LARGEST, LARGEST)
         for d, n in enumerate(part)]
        for i, part in enumerate(zip(*triples) if triples else [(), (), ()])
    ]  # fmt: skip
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    attrs = {name: tuple(part) for name, part in zip(names, config)}
    sizes = [size + low + high + max(size - 1, 0) * more for size, low, high, more in zip(x.shape, *config)]
    if any(size < 0 for size in sizes):
        raise ShapeError(
            message("lax.pad", "a dim must keep 0 or more elements", f"{shown(sizes)} of {shown(x.shape)}")
        )
    return recording().emit("stablehlo.pad", (x, value), attrs, tuple(sizes), x.dtype)
