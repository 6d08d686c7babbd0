# SPDX-License-Identifier: Apache-2.0
"""Tiles: the distinct shards of an array on a mesh, each with the first device that holds it.

mesh x=2, y=2; P("y") of an array of 5 rows: two tiles, of rows 0:3 and 3:5, first held by the devices 0 and 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .._core.mesh import Sharding
from .._core.processes import DeviceSet
from .chunks import Box

__all__ = ["Tile", "first_tiles", "held_tiles"]

_Coordinates = tuple[int, ...]


class Tile(NamedTuple):
    """A distinct shard: its number along each dim, and the position of a device that holds it."""

    coordinates: _Coordinates
    device: int

    def box(self, shape: Sequence[int], block: Sequence[int]) -> Box:
        """Its place in an array of this shape, whose full shards have the shape ``block``."""
        starts = [min(number * part, size) for number, part, size in zip(self.coordinates, block, shape)]
        return tuple((start, min(part, size - start)) for start, part, size in zip(starts, block, shape))


def _by_device(core: Sharding) -> list[_Coordinates]:
    """The coordinates of each device's shard, in the row-major order of the mesh."""
    parts = [math.prod(size for _, _, size in axes) for axes, _, _ in core.dims]
    slices = np.array(core.slices(parts), np.int64)  # of an array that has one element per shard
    return list(map(tuple, slices[..., 0].tolist())) if parts else [()] * len(slices)


def _first(found: list[_Coordinates], devices: Sequence[int]) -> tuple[Tile, ...]:
    first: dict[_Coordinates, int] = {}
    for device in devices:
        first.setdefault(found[device], device)
    return tuple([Tile(coordinates, device) for coordinates, device in first.items()])


@lru_cache(maxsize=256)
def first_tiles(core: Sharding) -> tuple[Tile, ...]:
    """All tiles, each with its first device on the whole mesh."""
    found = _by_device(core)
    return _first(found, range(len(found)))


@lru_cache(maxsize=256)
def held_tiles(core: Sharding, devices: DeviceSet) -> tuple[Tile, ...]:
    """The tiles that these devices hold, in the order of the first of them that holds each."""
    found = _by_device(core)
    return _first(found, range(len(found)) if devices.is_all else devices.owned(core.mesh))
