# SPDX-License-Identifier: Apache-2.0
"""Basic indexing: integers, slices, None, Ellipsis, and traced scalar integers.

    x[1:, None, ::-1, i]      slice [1:, ::1, :], reverse dim 1, dynamic_slice at i on the last dim, reshape

An integer that is traced wraps around when negative, and is clamped into the dim otherwise: whether it is in bounds
is not known while recording.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..errors import UnsupportedError, message
from ..tracing import Tracer
from ._primitives import convert, reshape, reverse, select, slice_, splat
from ._promote import is_integer

__all__ = ["getitem", "indexing_text"]


def getitem(x: Tracer, index: Any) -> Tracer:
    """``x[index]`` as NumPy's basic indexing.

    Raises:
        IndexError: too many indices, or a number out of bounds. UnsupportedError: array and boolean indices.
    """
    items = _expanded(x, index if type(index) is tuple else (index,))
    dims = iter(range(len(x.shape)))
    start, limit, strides = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
    reversed_dims: list[int] = []
    traced: dict[int, Tracer] = {}
    shape: list[int | None] = []  # None stands for the size of the next kept dim
    dropped: set[int] = set()
    for item in items:
        if item is None:
            shape.append(1)
            continue
        dim = next(dims)
        if isinstance(item, slice):
            start[dim], limit[dim], strides[dim] = _box(item, x.shape[dim])
            if strides[dim] < 0:
                strides[dim] = -strides[dim]
                reversed_dims.append(dim)
            shape.append(None)
            continue
        dropped.add(dim)
        if isinstance(item, Tracer):
            traced[dim] = item
        else:
            start[dim] = _checked(item, dim, x.shape[dim])
            limit[dim] = start[dim] + 1
    result = reverse(slice_(x, start, limit, strides), reversed_dims)
    if traced:
        result = _dynamic(result, traced)
    kept = iter([size for dim, size in enumerate(result.shape) if dim not in dropped])
    return reshape(result, tuple(next(kept) if size is None else size for size in shape))


def indexing_text(index: Any) -> str:
    """An index as one writes it, for messages."""
    if isinstance(index, tuple):
        return ", ".join(indexing_text(item) for item in index)
    if isinstance(index, slice):
        parts = ["" if part is None else str(part) for part in (index.start, index.stop, index.step)]
        return ":".join(parts if parts[2] else parts[:2])
    if index is Ellipsis:
        return "..."
    return f"{index.dtype}{list(index.shape)}" if hasattr(index, "dtype") else repr(index)


def _expanded(x: Tracer, index: tuple[Any, ...]) -> list[Any]:
    """One item per dim and per None: Ellipsis and missing items spelled out, integers as Python's."""
    items = [_item(item, index) for item in index]
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    if used > len(x.shape):
        raise IndexError(
            message(
                "indexing",
                f"an array of {len(x.shape)} dims takes at most as many indices",
                f"[{indexing_text(index)}]",
            )
        )
    missing = [slice(None)] * (len(x.shape) - used)
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise IndexError(message("indexing", "an index holds at most one Ellipsis", f"[{indexing_text(index)}]"))
    at = places[0] if places else len(items)
    return items[:at] + missing + items[at + 1 :]


def _item(item: Any, index: tuple[Any, ...]) -> Any:
    if item is None or item is Ellipsis or type(item) is int or isinstance(item, slice):
        return item
    if isinstance(item, Tracer) and not item.shape and is_integer(item.dtype):
        return item
    if isinstance(item, (bool, np.bool_)) or getattr(item, "dtype", None) == np.bool_:
        raise UnsupportedError(
            message(
                "indexing", "a boolean index gives a shape that depends on the data", f"[{indexing_text(index)}]",
                "use np.where(mask, x, 0), or multiply by the mask",
            )
        )  # fmt: skip
    if isinstance(item, (Tracer, list, tuple)) or np.ndim(item) > 0:
        raise UnsupportedError(
            message(
                "indexing", "an array index has no traced form here", f"[{indexing_text(index)}]",
                "use slices and np.concatenate, an integer per index, or a product with a one-hot matrix",
            )
        )  # fmt: skip
    try:
        return operator.index(item)
    except TypeError:
        raise IndexError(
            message("indexing", "an index is an integer, a slice, None, or Ellipsis", f"[{indexing_text(index)}]")
        ) from None


def _box(item: slice, size: int) -> tuple[int, int, int]:
    """start, limit, stride of a slice on a dim; the box is the same read forwards when the stride is negative."""
    try:
        positions = range(size)[item]
    except TypeError:
        raise UnsupportedError(
            message(
                "indexing", "the bounds of a slice must be known while recording", f"[{indexing_text(item)}]",
                "make them static, or use np.where with np.arange",
            )
        ) from None  # fmt: skip
    if not positions:
        return 0, 0, 1
    low, high = sorted((positions[0], positions[-1]))
    return low, high + 1, positions.step


def _checked(item: int, dim: int, size: int) -> int:
    if not -size <= item < size:
        raise IndexError(
            message("indexing", f"an index on dim {dim} of size {size} must be in [{-size}, {size})", item)
        )
    return item % size


def _dynamic(x: Tracer, traced: dict[int, Tracer]) -> Tracer:
    trace = x._trace
    dtype = np.dtype(np.int64)
    starts = []
    for dim in range(len(x.shape)):
        index = traced.get(dim)
        if index is None:
            starts.append(splat(trace, 0, (), dtype))
            continue
        index = convert(trace.lift(index), dtype)
        starts.append(select(index < 0, index + x.shape[dim], index))
    sizes = tuple(1 if dim in traced else size for dim, size in enumerate(x.shape))
    return trace.emit("stablehlo.dynamic_slice", (x, *starts), {"slice_sizes": sizes})
