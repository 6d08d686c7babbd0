# SPDX-License-Identifier: Apache-2.0
"""Normalizes an index: one item per dim, and the box that its numbers and slices select.

expanded((4, 6, 5), (slice(1, None), None, ..., i))      [slice(1, None), None, slice(None), i]
Box.of((4, 6, 5), [slice(1, None), slice(None, None, -2), i]).read(x)      slice, then reverse dim 1
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import UnsupportedError, message
from ..recording.tracing import Tracer, current_trace
from ..user_code.static_arguments import static_error
from . import masks
from ._primitives import reverse, slice_
from ._promote import is_integer
from .joining import nested

__all__ = ["Box", "expanded", "indexing_text", "is_array", "without_masks"]


@dataclass(frozen=True)
class Box:
    """The range that an index takes from each dim: ``x[1:, ::-2, i]`` of (4, 6, 5)."""

    start: tuple[int, ...]  # 1, 1, 0
    limit: tuple[int, ...]  # 4, 6, 5: of a traced number or an array, all of the dim
    strides: tuple[int, ...]  # 1, 2, 1
    reversed_dims: tuple[int, ...]  # 1: reversed after slicing
    numbers: dict[int, Any]  # {2: i}: dims without a slice

    @staticmethod
    def of(shape: tuple[int, ...], items: list[Any]) -> Box:
        """The box of an index that :func:`expanded` gave. Raises IndexError if an integer is out of range."""
        start, limit, strides = [0] * len(shape), list(shape), [1] * len(shape)
        reversed_dims: list[int] = []
        numbers: dict[int, Any] = {}
        for dim, item in enumerate(item for item in items if item is not None):
            if not isinstance(item, slice):
                numbers[dim] = item
                if type(item) is int:
                    start[dim] = _checked(item, dim, shape[dim])
                    limit[dim] = start[dim] + 1
                continue
            start[dim], limit[dim], strides[dim] = _box(item, shape[dim])
            if strides[dim] < 0:
                strides[dim] = -strides[dim]
                reversed_dims.append(dim)
        return Box(tuple(start), tuple(limit), tuple(strides), tuple(reversed_dims), numbers)

    def read(self, x: Tracer) -> Tracer:
        """The box of ``x``. A dim with a number keeps one element, or all elements if the number is traced."""
        return reverse(slice_(x, self.start, self.limit, self.strides), self.reversed_dims)

    @staticmethod
    def result_shape(items: list[Any], kept: list[int]) -> tuple[int, ...]:
        """The sizes of the sliced dims with a 1 for every None."""
        sizes = iter(kept)
        return tuple(1 if item is None else next(sizes) for item in items if item is None or isinstance(item, slice))


def indexing_text(index: Any) -> str:
    """The source text of an index, for messages."""
    if isinstance(index, tuple):
        return ", ".join(indexing_text(item) for item in index)
    if isinstance(index, slice):
        parts = ["" if part is None else str(part) for part in (index.start, index.stop, index.step)]
        return ":".join(parts if parts[2] else parts[:2])
    if index is Ellipsis:
        return "..."
    return f"{index.dtype}{list(index.shape)}" if hasattr(index, "dtype") else repr(index)


def is_array(item: Any) -> bool:
    """Whether an item of an expanded index is an array: not a number, a slice, or None."""
    return isinstance(item, np.ndarray) or (isinstance(item, Tracer) and item.shape != ())


def expanded(shape: tuple[int, ...], index: Any) -> list[Any]:
    """One item per dim and per None: Ellipsis and missing items spelled out, integers as Python's, lists as arrays.

    A known mask becomes the integer arrays of its True elements.
    """
    index = index if type(index) is tuple else (index,)
    items = [_item(item, index) for item in index]
    used = sum(map(masks.dims_of, items))
    if used > len(shape):
        rule = f"an array of {len(shape)} dims takes at most as many indices"
        if not shape:
            rule, way_out = "an array of 0 dims has no elements to index", "use the array itself, or x[()]"
        else:
            way_out = f"remove {used - len(shape)} of {used}"
        raise IndexError(message("indexing", rule, f"[{indexing_text(index)}]", way_out))
    missing = [slice(None)] * (len(shape) - used)
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise IndexError(message("indexing", "an index holds at most one Ellipsis", f"[{indexing_text(index)}]"))
    at = places[0] if places else len(items)
    return masks.positions(items[:at] + missing + items[at + 1 :], shape)


def without_masks(shape: tuple[int, ...], index: Any) -> Any:
    """The index of a concrete array, with masks as integer arrays; unchanged without masks."""
    items = index if type(index) is tuple else (index,)
    return tuple(expanded(shape, index)) if any(map(_is_boolean, items)) else index


def _is_boolean(item: Any) -> bool:
    while isinstance(item, (list, tuple)) and item:
        item = item[0]
    return isinstance(item, bool) or (not isinstance(item, Tracer) and getattr(item, "dtype", None) == np.bool_)


def _item(item: Any, index: tuple[Any, ...]) -> Any:
    if item is None or item is Ellipsis or type(item) is int or isinstance(item, slice):
        return item
    if isinstance(item, (list, tuple)):
        item = _array(item) if len(item) else np.zeros(0, np.intp)
    elif hasattr(item, "__shardwise_array__"):
        item = np.asarray(item)
    if isinstance(item, bool) or getattr(item, "dtype", None) == np.bool_:
        return masks.checked(item, indexing_text(index))
    if isinstance(item, Tracer) and is_integer(item.dtype):
        return item
    if isinstance(item, np.ndarray) and item.ndim > 0 and is_integer(item.dtype):
        return item
    if np.ndim(item) > 0:
        raise IndexError(message("indexing", "an array index must hold integers", f"[{indexing_text(index)}]"))
    if isinstance(item, str):
        way_out = "pass a dict of arrays to index by names: {name: df[name].to_numpy() for name in df}"
        raise IndexError(message("indexing", "an array has no names", f"[{indexing_text(index)}]", way_out))
    try:
        return operator.index(item)
    except TypeError:
        raise IndexError(
            message(
                "indexing",
                "an index is an integer, a slice, None, Ellipsis, an array of integers, or a known mask",
                f"[{indexing_text(index)}]",
            )
        ) from None


def _array(items: Any) -> Any:
    trace = current_trace()
    return np.asarray(items) if trace is None else nested(trace, items)


def _box(item: slice, size: int) -> tuple[int, int, int]:
    """Start, limit and stride of a slice on a dim. A negative stride gives the box in increasing order."""
    try:
        positions = range(size)[item]
    except TypeError:
        bounds = [bound for bound in (item.start, item.stop, item.step) if isinstance(bound, Tracer)]
        error = static_error(bounds[0], "indexing") if bounds else None
        if error is not None:
            raise error from None
        raise UnsupportedError(
            message(
                "indexing", "the bounds of a slice must be known during tracing", f"[{indexing_text(item)}]",
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
