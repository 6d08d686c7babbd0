# SPDX-License-Identifier: Apache-2.0
"""Boolean masks that are known during tracing, as indices: each becomes the integer arrays of its True elements.

    x[mask, 1:]      with mask = [True, False, True]: x[[0, 2], 1:]
    x[mask]          with a mask of two dims: x[rows, columns], as NumPy's x[mask.nonzero()]

The shape of the result is known because the mask is. A traced mask would give a shape that depends on the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UnsupportedError, message
from ..recording.tracing import Tracer

__all__ = ["checked", "dims_of", "is_mask", "positions", "traced_mask"]


def is_mask(item: Any) -> bool:
    """Whether an item of an index is a known mask: an array of booleans."""
    return isinstance(item, np.ndarray) and item.dtype == np.bool_


def dims_of(item: Any) -> int:
    """The number of dims that an item of an index covers."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if is_mask(item) else 1


def positions(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Replace the masks of an expanded index by the indices of their True elements.

    Raises:
        IndexError: a mask and its dims have different shapes.
    """
    if not any(map(is_mask, items)):
        return items
    result: list[Any] = []
    dim = 0
    for item in items:
        if is_mask(item):
            _check_shape(item, shape, dim)
            result += item.nonzero()
        else:
            result.append(item)
        dim += dims_of(item)
    return result


def traced_mask(index: Any, shape: tuple[int, ...]) -> Any:
    """The traced mask that is the index of an update, or None if the index has no traced mask.

    Raises:
        IndexError: a mask of another shape. UnsupportedError: a traced mask beside other indices.
    """
    items = index if type(index) is tuple else (index,)
    found = [item for item in items if isinstance(item, Tracer) and item.dtype == np.bool_ and item.shape != ()]
    if not found:
        return None
    if len(items) > 1:
        must_hold = "a mask that is unknown during tracing must be the only index"
        way_out = "use np.where(mask, values, x), with a mask that broadcasts to x"
        raise UnsupportedError(message("x.at", must_hold, f"{len(items)} indices", way_out))
    _check_shape(found[0], shape, 0)
    return found[0]


def _check_shape(mask: Any, shape: tuple[int, ...], dim: int) -> None:
    if mask.shape != shape[dim : dim + mask.ndim]:
        dims = f"dim {dim}" if mask.ndim == 1 else f"dims {dim} to {dim + mask.ndim - 1}"
        must_hold = f"a mask of {dims} must have shape {shape[dim : dim + mask.ndim]}"
        raise IndexError(message("indexing", must_hold, mask.shape))


def checked(item: Any, index_text: str) -> np.ndarray:
    """A boolean item of an index. Raises UnsupportedError if it is traced or has no dims."""
    if is_mask(item) and item.ndim:
        return item  # type: ignore[no-any-return]
    if np.ndim(item) == 0:
        way_out = "use np.where, or an integer"
        raise UnsupportedError(message("indexing", "a boolean index must have dims", f"[{index_text}]", way_out))
    must_hold = "a boolean index must be known during tracing, because it decides the result's shape"
    way_out = "use np.where(mask, x, 0), or where=mask in np.sum, np.mean and np.max"
    raise UnsupportedError(message("indexing", must_hold, f"the traced [{index_text}]", way_out))
