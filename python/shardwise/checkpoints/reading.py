# SPDX-License-Identifier: Apache-2.0
"""Reads boxes of the arrays of a checkpoint, chunk by chunk, and checks the CRC-32 of each chunk that it needs.

A chunk is read once, however many boxes need it, and no more than one is in memory beside the boxes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..dtypes import numpy_dtype
from ..errors import CheckpointError, message
from .chunks import Box, chunks
from .manifest import ArrayEntry, Manifest, block_sizes, block_starts, blocks_file

__all__ = ["BlockFiles", "Target"]


class Target(NamedTuple):
    """A box of an array, and the memory for its elements."""

    box: Box
    memory: np.ndarray


class BlockFiles:
    """The open files of a checkpoint."""

    def __init__(self, folder: Path, manifest: Manifest, way_out: str) -> None:
        self._folder = folder
        self._manifest = manifest
        self._way_out = way_out
        self._open: dict[int, int] = {}
        self._buffer = bytearray()

    def check(self) -> None:
        """CheckpointError unless all files are there and have their sizes."""
        for number, size in self._manifest.files.items():
            path = self._folder / blocks_file(number)
            try:
                found = os.stat(path).st_size
            except FileNotFoundError:
                raise self._damaged("all files of a checkpoint must be there", f"no file {path}") from None
            if found != size:
                raise self._damaged("files must be as they were written", f"{found} of {size} bytes in {path}")

    def close(self) -> None:
        """Close the files."""
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()

    def read(self, name: str, entry: ArrayEntry, targets: Sequence[Target]) -> None:
        """Fill the memory of some boxes of an array."""
        targets = [target for target in targets if target.memory.size]
        if not targets:
            return
        starts = np.array([[start for start, _ in box] for box, _ in targets], np.int64)
        ends = starts + np.array([[size for _, size in box] for box, _ in targets], np.int64)
        for number in range(len(entry.blocks)):
            begin, sizes = block_starts(entry, number), block_sizes(entry, number)
            near = np.all((starts < np.add(begin, sizes)) & (ends > begin), axis=1)
            if near.any():
                self._read_block(name, entry, number, [targets[i] for i in np.flatnonzero(near)])

    def _read_block(self, name: str, entry: ArrayEntry, number: int, targets: Sequence[Target]) -> None:
        file, offset, crcs = entry.blocks[number]
        begin, sizes = block_starts(entry, number), block_sizes(entry, number)
        dtype = numpy_dtype(entry.dtype)
        for crc, chunk in zip(crcs, chunks(sizes, dtype.itemsize, self._manifest.chunk_bytes)):
            shape = [size for _, size in chunk]
            nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            box = tuple((first + start, size) for first, (start, size) in zip(begin, chunk))
            common = [(target, both) for target in targets if (both := _overlap(box, target.box)) is not None]
            if common:
                data = self._bytes(file, offset, nbytes)
                if zlib.crc32(data) != crc:
                    got = f"another CRC-32 for {name} in {self._folder / blocks_file(file)}, which is damaged"
                    raise self._damaged("blocks must be as they were written", got)
                elements = np.frombuffer(data, dtype).reshape(shape)
                for target, both in common:
                    target.memory[_within(both, target.box)] = elements[_within(both, box)]
            offset += nbytes

    def _bytes(self, file: int, offset: int, count: int) -> memoryview:
        if file not in self._open:
            self._open[file] = os.open(self._folder / blocks_file(file), os.O_RDONLY)
        if len(self._buffer) < count:
            self._buffer = bytearray(count)
        memory, done = memoryview(self._buffer)[:count], 0
        while done < count:
            got = os.preadv(self._open[file], [memory[done:]], offset + done)
            if got == 0:
                path = self._folder / blocks_file(file)
                raise self._damaged("files must be as they were written", f"an early end of {path}")
            done += got
        return memory

    def _damaged(self, rule: str, got: str) -> CheckpointError:
        return CheckpointError(message("load", rule, got, self._way_out))


def _overlap(a: Box, b: Box) -> Box | None:
    """What two boxes have in common; None if that is nothing."""
    found = []
    for (start, size), (other, other_size) in zip(a, b):
        first, end = max(start, other), min(start + size, other + other_size)
        if first >= end:
            return None
        found.append((first, end - first))
    return tuple(found)


def _within(box: Box, outer: Box) -> tuple[slice, ...]:
    """The index of a box in the memory of another one, which contains it."""
    return tuple(slice(start - first, start - first + size) for (start, size), (first, _) in zip(box, outer))
