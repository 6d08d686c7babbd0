# SPDX-License-Identifier: Apache-2.0
"""Random pairs of placements of one array, and what a device must receive to go from one to the other."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwise import _core

Piece = tuple[str, int, int]  # a sub-axis: name, pre, size
Dims = list[list[Piece]]
Tiles = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # first and end index, by device and dim

MESHES: tuple[dict[str, int], ...] = (
    {"x": 8}, {"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 2, "y": 2, "z": 2}, {"x": 4, "y": 4}, {"x": 2, "y": 2, "z": 4},
    {"x": 3, "y": 4}, {"x": 12}, {"x": 6, "y": 2}, {"x": 3, "y": 3}, {"x": 2, "y": 3, "z": 2}, {"x": 64},
    {"x": 8, "y": 8}, {"x": 2, "y": 2, "z": 2, "w": 2}, {"x": 9, "y": 5}, {"x": 7}, {"x": 5, "y": 1, "z": 3},
)  # fmt: skip
KINDS = ("nested", "uneven", "crossing", "reduced")


@dataclass(frozen=True)
class Pair:
    """An array on a mesh before and after; its ``unreduced`` axes are reduced."""

    kind: str
    mesh: tuple[tuple[str, int], ...]
    shape: tuple[int, ...]
    before: Dims
    after: Dims
    unreduced: tuple[Piece, ...] = ()

    def shardings(self) -> tuple[Any, Any]:
        mesh = _core.mesh.Mesh("mesh", list(self.mesh))
        after = _core.mesh.Sharding.make(mesh, [(axes, False, None) for axes in self.after])
        before = _core.mesh.Sharding.make(
            mesh,
            [(axes, False, None) for axes in self.before],
            [],
            list(self.unreduced),
            "sum" if self.unreduced else "",
        )
        return before, after


def draw(rng: random.Random, kind: str) -> Pair:
    """A pair of a kind: even tiles that nest, uneven tiles, even tiles that do not nest, or a pending reduction."""
    while True:
        mesh = rng.choice(MESHES)
        ndim = rng.randint(1, 4)
        before, rest = dims(rng, mesh, ndim)
        after, _ = dims(rng, mesh, ndim)
        parts = [(shards(a), shards(b)) for a, b in zip(before, after)]
        nests = all(nest(a, b) for a, b in zip(before, after))
        even = tuple(math.lcm(a, b) * rng.choice((1, 1, 2, 3)) for a, b in parts)
        uneven = tuple(rng.choice((1, 2, 3, 5, 7, 8, 10, 17, 33)) for _ in parts)
        if math.prod(even) > 20_000 or math.prod(uneven) > 20_000:
            continue
        if kind == "nested" and nests:
            return Pair(kind, tuple(mesh.items()), even, before, after)
        if kind == "crossing" and not nests:
            return Pair(kind, tuple(mesh.items()), even, before, after)
        if kind == "uneven" and any(s % a or s % b for s, (a, b) in zip(uneven, parts)):
            return Pair(kind, tuple(mesh.items()), uneven, before, after)
        if kind == "reduced" and rest and nests:
            return Pair(kind, tuple(mesh.items()), even, before, after, ordered(mesh, rest))


def dims(rng: random.Random, mesh: dict[str, int], ndim: int) -> tuple[Dims, list[Piece]]:
    """Sub-axes on dims in random order; the second list is of those that no dim has."""
    pieces: list[Piece] = []
    for name, size in mesh.items():
        cuts = [cut for cut in range(2, size) if size % cut == 0]
        cut = rng.choice(cuts) if cuts and rng.random() < 0.4 else size
        pieces += [(name, 1, cut)] + ([(name, cut, size // cut)] if cut < size else [])
    rng.shuffle(pieces)
    placed: Dims = [[] for _ in range(ndim)]
    rest: list[Piece] = []
    for piece in pieces:
        (placed[rng.randrange(ndim)] if rng.random() < 0.7 else rest).append(piece)
    return [merged(list_) for list_ in placed], rest


def merged(pieces: list[Piece]) -> list[Piece]:
    """Neighbors of one axis are one sub-axis, as Shardy requires."""
    result: list[Piece] = []
    for name, pre, size in pieces:
        if result and result[-1][0] == name and result[-1][1] * result[-1][2] == pre:
            result[-1] = (name, result[-1][1], result[-1][2] * size)
        else:
            result.append((name, pre, size))
    return result


def ordered(mesh: dict[str, int], pieces: list[Piece]) -> tuple[Piece, ...]:
    return tuple(merged(sorted(pieces, key=lambda piece: (list(mesh).index(piece[0]), piece[1]))))


def shards(axes: list[Piece]) -> int:
    return math.prod(size for _, _, size in axes)


def nest(before: list[Piece], after: list[Piece]) -> bool:
    """Whether at each border between two axes, one side's shards consist of the other's."""
    borders = [list(itertools.accumulate((size for _, _, size in axes), int.__mul__)) for axes in (before, after)]
    return all(max(a, b) % min(a, b) == 0 for a, b in itertools.product(*borders))


def tiles(pair: Pair, axes_of_dims: Dims) -> Tiles:
    """By coordinates alone: device i has the rows [p·block, (p + 1)·block), p its position along the dim's axes."""
    sizes = dict(pair.mesh)
    coordinates = dict(zip(sizes, np.unravel_index(np.arange(math.prod(sizes.values())), tuple(sizes.values()))))
    first, end = [], []
    for size, axes in zip(pair.shape, axes_of_dims):
        position = np.zeros(math.prod(sizes.values()), dtype=np.int64)
        for name, pre, count in axes:
            position = position * count + coordinates[name] // (sizes[name] // (pre * count)) % count
        block = -(-size // shards(axes))
        first.append(np.minimum(position * block, size))
        end.append(np.minimum((position + 1) * block, size))
    return np.stack(first, axis=1), np.stack(end, axis=1)


def bound(pair: Pair) -> int:
    """The elements of the new tile that are not in the old one: the maximum over devices."""
    (old_first, old_end), (first, end) = tiles(pair, pair.before), tiles(pair, pair.after)
    new = np.prod(end - first, axis=1)
    held = np.prod(np.maximum(np.minimum(end, old_end) - np.maximum(first, old_first), 0), axis=1)
    return int(np.max(new - held))
