# SPDX-License-Identifier: Apache-2.0
"""Sums over collectives of the bytes by device."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .collective_rows import CollectiveRow

__all__ = ["most_bytes"]

_MOST_POSITIONS = 1 << 20


def most_bytes(rows: Sequence[CollectiveRow]) -> float:
    """The maximum over devices of the sum over rows; with too many devices, the sum of the maxima."""
    even = sum(row.total_bytes for row in rows if not row.device_bytes)
    uneven = [row for row in rows if row.device_bytes]
    sizes: dict[str, int] = {}
    for row in uneven:
        for axis, size in row.device_axes:
            sizes[axis] = math.lcm(sizes.get(axis, 1), size)
    if not uneven or math.prod(sizes.values()) > _MOST_POSITIONS:
        return even + sum(row.total_bytes for row in uneven)
    total = np.zeros(tuple(sizes.values()))
    for row in uneven:
        total += row.count * _along(row, sizes)
    return even + float(total.max())


def _along(row: CollectiveRow, sizes: dict[str, int]) -> npt.NDArray[np.float64]:
    """The bytes of a row by position along the axes of all rows; an axis may begin with that of the row."""
    known = dict(row.device_axes)
    order = [axis for axis in sizes if axis in known]
    array = np.asarray(row.device_bytes).reshape(tuple(known.values())).transpose([list(known).index(a) for a in order])
    array = array.reshape([known.get(axis, 1) for axis in sizes])
    for dim, (axis, size) in enumerate(sizes.items()):
        array = array.repeat(size // known.get(axis, 1), dim)
    return array
