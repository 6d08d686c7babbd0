# SPDX-License-Identifier: Apache-2.0
"""Writes the blocks of arrays, one file per rank: each distinct shard once, by the rank of its first owner."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..array import Array
from .chunks import CHUNK_BYTES, chunks
from .files import sync_file, write_all
from .manifest import blocks_file
from .tiles import first_tiles

__all__ = ["Written", "block_shape", "write_blocks"]


class Written(NamedTuple):
    """What a rank wrote: the size of its file, and of each block leaf, number in the grid, offset and CRC-32s."""

    size: int
    blocks: list[tuple[int, int, int, list[int]]]


def block_shape(array: Any) -> list[int]:
    """The shape of the blocks of an array; no size is 0."""
    whole = isinstance(array, Array)
    sizes = array.sharding.core(array.ndim).local_shape(array.shape) if whole else array.shape
    return [max(1, size) for size in sizes]


def write_blocks(folder: Path, rank: int, arrays: Sequence[Any]) -> Written:
    """Write the blocks that this rank owns first, and wait until they are on the disk."""
    blocks: list[tuple[int, int, int, list[int]]] = []
    size = 0
    fd = -1
    try:
        for leaf, array in enumerate(arrays):
            for number, data in _own_blocks(array, rank) if array is not None else ():
                if fd < 0:
                    fd = os.open(folder / blocks_file(rank), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                blocks.append((leaf, number, size, _write(fd, data)))
                size += data.nbytes
        if fd >= 0:
            sync_file(fd)
    finally:
        if fd >= 0:
            os.close(fd)
    return Written(size, blocks)


def _write(fd: int, block: np.ndarray) -> list[int]:
    """Write a block chunk by chunk, so that no more than a chunk is copied. Returns the CRC-32 of each."""
    found = []
    for box in chunks(block.shape, block.itemsize, CHUNK_BYTES):
        part = np.ascontiguousarray(block[tuple(slice(start, start + size) for start, size in box)])
        data = part.reshape(-1).view(np.uint8).data
        found.append(zlib.crc32(data))
        write_all(fd, data)
    return found


def _own_blocks(array: Any, rank: int) -> Iterator[tuple[int, np.ndarray]]:
    """The blocks with elements that this rank writes, each with its number in the grid."""
    if not isinstance(array, Array):
        if rank == 0 and array.size:
            yield 0, array
        return
    data, core = array._data, array.sharding.core(array.ndim)
    is_own = [rank == 0] * core.mesh.size
    if not data.devices.is_all:
        own = set(data.devices.owned(core.mesh))
        is_own = [device in own for device in range(core.mesh.size)]
    grid = [-(-size // part) for size, part in zip(array.shape, block_shape(array))]
    if not math.prod(grid):
        return
    for tile in first_tiles(core):
        is_empty = any(number >= count for number, count in zip(tile.coordinates, grid))
        if is_own[tile.device] and not is_empty:
            yield int(np.ravel_multi_index(tile.coordinates, grid)) if grid else 0, data.shard(tile.device)
