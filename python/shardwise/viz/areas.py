# SPDX-License-Identifier: Apache-2.0
"""How pictures summarise many devices: neighbouring tiles are drawn as one area.

One rule for all pictures: at most 16 areas along a side, at most 256 in a figure. 512 tiles of 2 rows are 16 areas of
32 tiles and 64 rows. A picture is as long for 100,000 devices as for 256.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .._core.mesh import Sharding

__all__ = ["Area", "Tile", "Tiles", "drawn_panels", "group_sizes", "groups_of", "ranges"]

MOST_AREAS = 256  # in a figure
_MOST_ALONG = 16  # areas along one side
_MOST_PANELS = 8  # side by side
_FEW_PANELS = 4  # of many areas each
_MOST_RUNS = 8  # of device ids that are listed

Tile = tuple[tuple[int, int], ...]  # (start, size) per dim


def drawn_panels(panels: int, areas: int) -> int:
    """How many of the panels a figure has, if each would need this many areas."""
    most = _MOST_PANELS if areas * min(panels, _MOST_PANELS) <= MOST_AREAS else _FEW_PANELS
    return min(panels, most)


def group_sizes(counts: Sequence[int], most: int = MOST_AREAS, along: int = _MOST_ALONG) -> list[int]:
    """How many neighbours one area takes along each dim, for at most ``most`` areas, and ``along`` in a row.

    >>> group_sizes([512, 2]), group_sizes([64, 16]), group_sizes([4, 4])
    ([32, 1], [4, 1], [1, 1])
    """
    sizes = [max(-(-count // along), 1) for count in counts]
    while prod(groups := [-(-count // size) for count, size in zip(counts, sizes)]) > most:
        sizes[groups.index(max(groups))] *= 2
    return sizes


def groups_of(count: int, size: int) -> list[tuple[int, int]]:
    """``count`` neighbours in groups of ``size``: the first of each group, and how many it has.

    >>> groups_of(5, 2)
    [(0, 2), (2, 2), (4, 1)]
    """
    return [(first, min(size, count - first)) for first in range(0, count, size)]


@dataclass(frozen=True)
class Area:
    """Neighbouring tiles of an array, drawn as one.

    Attributes:
        index: the elements: start and size per dim.
        tiles: how many tiles.
        devices: the ids of the devices that hold any of them.
    """

    index: Tile
    tiles: int
    devices: Sequence[int]

    @property
    def text(self) -> str:
        """``[0:2, 0:4]``; the tiles are counted if there are several: ``[0:64] in 32 tiles``."""
        index = ", ".join(f"{start}:{start + size}" for start, size in self.index)
        return f"[{index}] in {self.tiles} tiles" if self.tiles > 1 else f"[{index}]"


class Tiles:
    """The tiles of an array of this shape, and the devices that hold each.

    Attributes:
        counts: how many tiles that are not empty there are along each dim.
        empty: the ids of the devices without elements, as the last ones along an uneven dim.
    """

    def __init__(self, sharding: Sharding, device_ids: Sequence[int], shape: Sequence[int]) -> None:
        ndim = len(shape)
        slices = np.asarray(sharding.slices(tuple(shape)), np.int64).reshape(len(device_ids), ndim, 2)
        devices = np.asarray(device_ids, np.int64)
        is_full = (slices[:, :, 1] > 0).all(axis=1)
        self.empty: list[int] = devices[~is_full].tolist()
        self._devices = devices[is_full]
        self._starts: list[Any] = []
        self._ends: list[Any] = []
        numbers = []  # of the tile of each device, along each dim
        for dim in range(ndim):
            starts, first, number = np.unique(slices[is_full, dim, 0], return_index=True, return_inverse=True)
            self._starts.append(starts)
            self._ends.append(starts + slices[is_full, dim, 1][first])
            numbers.append(number.reshape(-1))
        self._numbers = numbers
        self.counts = [len(starts) for starts in self._starts]

    def areas(self, sizes: Sequence[int], most: int | None = None) -> list[Area]:
        """The areas of ``sizes`` tiles along each dim, in row-major order; the first ``most`` of them."""
        if not len(self._devices):
            return []
        groups = [groups_of(count, size) for count, size in zip(self.counts, sizes)]
        shape = [len(each) for each in groups]
        flat = np.zeros(len(self._devices), np.int64)
        for number, size, count in zip(self._numbers, sizes, shape):
            flat = flat * count + number // size
        order = np.argsort(flat, kind="stable")
        borders = np.searchsorted(flat[order], np.arange(min(prod(shape), most or prod(shape)) + 1))
        found = []
        for area, (begin, end) in enumerate(pairwise(borders)):
            at = np.unravel_index(area, shape) if shape else ()
            spans = [groups[dim][i] for dim, i in enumerate(at)]
            index = tuple(
                (int(starts[first]), int(ends[first + count - 1] - starts[first]))
                for starts, ends, (first, count) in zip(self._starts, self._ends, spans)
            )
            tiles = prod(count for _, count in spans)
            found.append(Area(index, tiles, self._devices[order[begin:end]].tolist()))
        return found


def ranges(numbers: Sequence[int]) -> str:
    """Numbers with runs joined; of many runs, the first ones and how many devices there are.

    >>> ranges([0, 1, 2, 3, 6]), ranges(range(0, 64, 2))
    ('0-3,6', '0,2,4,… 32 devices')
    """
    runs: list[list[int]] = []
    for n in sorted(numbers):
        if runs and runs[-1][-1] == n - 1:
            runs[-1] = [runs[-1][0], n]
        else:
            runs.append([n, n])
    shown = runs if len(runs) <= _MOST_RUNS else runs[:3]
    text = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in shown)
    return text if len(shown) == len(runs) else f"{text},… {len(numbers)} devices"
