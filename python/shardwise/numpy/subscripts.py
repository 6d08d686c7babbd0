# SPDX-License-Identifier: Apache-2.0
"""``x[index]``: integers, slices, None, Ellipsis, integer arrays, traced or not, and known masks.

    x[1:, None, ::-1, i]      slice [1:, ::1, :], reverse dim 1, dynamic_slice at i on the last dim, reshape
    x[:, ids]                 gather of columns (advanced_indexing.py)
    x[:, mask]                the same at the True elements of a mask (masks.py)

A traced integer counts from the end if it is negative, and is clamped to the dim, because its bounds cannot be checked
during tracing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..process.implementations import provides
from ..recording.tracing import Tracer
from ._primitives import convert, reshape, select, splat
from .advanced_indexing import check_index, get
from .indexing import Box, expanded, is_array

__all__ = ["check_getitem", "getitem"]


@provides("getitem")
def getitem(x: Tracer, index: Any) -> Tracer:
    """``x[index]`` as NumPy's indexing.

    Raises:
        IndexError: too many indices, a number out of bounds, a mask that does not fit. UnsupportedError: traced masks.
    """
    items = expanded(x.shape, index)
    if any(map(is_array, items)):
        return get(x, items)
    box = Box.of(x.shape, items)
    result = box.read(x)
    traced = {dim: item for dim, item in box.numbers.items() if isinstance(item, Tracer)}
    if traced:
        result = _dynamic(result, traced)
    return reshape(
        result, box.result_shape(items, [size for d, size in enumerate(result.shape) if d not in box.numbers])
    )


def check_getitem(x: Any, index: Any) -> None:
    """Raise IndexError for ``x[index]`` with a number out of range, before a program is made."""
    check_index(x.shape, expanded(x.shape, index))


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
