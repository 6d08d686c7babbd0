# SPDX-License-Identifier: Apache-2.0
"""Chunks: the parts of a block with a CRC-32 each, so that a reader of some rows need not read the whole block.

A chunk is a box, and its elements are adjacent in the file. Of a block of shape [3, 4, 5] whose chunks have room for 10
elements, chunk 1 has the elements [0, 2:4, :], and there are 6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

__all__ = ["CHUNK_BYTES", "Box", "chunk_count", "chunks"]

CHUNK_BYTES = 2**20  # a multiple of the size of every element

Box = tuple[tuple[int, int], ...]  # of each dim, the start and the size


def _cut(sizes: Sequence[int], itemsize: int, chunk_bytes: int) -> tuple[int, int]:
    """The dim that is cut, before which each row is a chunk of its own, and how many of its rows a chunk has."""
    inner = itemsize
    for dim in range(len(sizes) - 1, -1, -1):
        if inner * sizes[dim] > chunk_bytes:
            return dim, max(1, chunk_bytes // inner)
        inner *= sizes[dim]
    return 0, sizes[0] if sizes else 1


def chunk_count(sizes: Sequence[int], itemsize: int, chunk_bytes: int) -> int:
    """The number of chunks of a block."""
    if not all(sizes):
        return 0
    if not sizes:
        return 1
    dim, rows = _cut(sizes, itemsize, chunk_bytes)
    return math.prod(sizes[:dim]) * -(-sizes[dim] // rows)


def chunks(sizes: Sequence[int], itemsize: int, chunk_bytes: int) -> Iterator[Box]:
    """The chunks of a block in the order of the file."""
    if not all(sizes):
        return
    if not sizes:
        yield ()
        return
    dim, rows = _cut(sizes, itemsize, chunk_bytes)
    rest = tuple((0, size) for size in sizes[dim + 1 :])
    for outer in product(*[range(size) for size in sizes[:dim]]):
        for start in range(0, sizes[dim], rows):
            yield (*((i, 1) for i in outer), (start, min(rows, sizes[dim] - start)), *rest)
