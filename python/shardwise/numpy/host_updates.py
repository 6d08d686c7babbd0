# SPDX-License-Identifier: Apache-2.0
"""``sw.at(x, index)`` on NumPy arrays: the updates of ``x.at[index]``, on a copy.

sw.at(x, [0, 0]).add(1)                 y = x.copy(); np.add.at(y, [0, 0], 1)
sw.at(x, [0, 9]).set(1, mode="drop")    the index out of range is dropped, as in a traced function
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .advanced_indexing import check_index
from .indexing import expanded

__all__ = ["get", "update"]


def update(x: np.ndarray, index: Any, values: Any, how: str, mode: Any) -> np.ndarray:
    """A copy of ``x`` with ``values`` at the index, combined by the ufunc ``how``; an empty ``how`` overwrites."""
    index, held = _index_and_copy(x, index, mode, 0)
    is_number = type(values) in (bool, int, float)  # raises if the dtype cannot hold it
    values = np.array(values, x.dtype) if is_number else np.asarray(values).astype(x.dtype)
    if how:
        getattr(np, how).at(held, index, values)
    else:
        held[index] = values
    return _cropped(held, x.shape)


def get(x: np.ndarray, index: Any, mode: Any, fill_value: Any) -> Any:
    """A copy of ``x[index]``, with ``fill_value`` for indices out of range in mode "fill"."""
    index, held = _index_and_copy(x, index, mode, fill_value)
    return held[index].copy()


def _index_and_copy(x: np.ndarray, index: Any, mode: Any, beyond: Any) -> tuple[tuple[Any, ...], np.ndarray]:
    """An index without entries out of range, and a copy of ``x`` to apply it to.

    In mode "drop", the copy has one more element, ``beyond``, at the end of each dim; indices out of range point to it.
    """
    items: list[Any] = [np.asarray(item) if type(item) is int else item for item in expanded(x.shape, index)]
    if mode in (None, "promise_in_bounds"):
        check_index(x.shape, items)
        return tuple(items), x.copy()
    dims = iter(x.shape)
    items = [None if item is None else _inside(item, next(dims), mode) for item in items]
    if mode == "clip":
        return tuple(items), x.copy()
    held = np.full([size + 1 for size in x.shape], beyond, x.dtype)
    held[tuple(map(slice, x.shape))] = x
    return tuple(items), held


def _inside(item: Any, size: int, mode: str) -> Any:
    if isinstance(item, slice):
        start, stop, step = item.indices(size)
        return slice(start, None if stop < 0 else stop, step)
    numbers = np.where(item < 0, item.astype(np.int64) + size, item)
    if mode == "clip":
        return np.clip(numbers, 0, size - 1)
    return np.where((numbers < 0) | (numbers >= size), size, numbers)


def _cropped(held: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return held if held.shape == shape else held[tuple(map(slice, shape))].copy()
