# SPDX-License-Identifier: Apache-2.0
"""Random pairs of placements on two meshes over the same devices: other axes, other orders, or both."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import NamedSharding
from tests.conformance.reshards.pairs import Dims, Tiles, dims, nest, shards
from tests.support.counted_bytes import differences, received_in_run

FACTORS = {
    4: ((4,), (2, 2)), 6: ((6,), (2, 3), (3, 2)), 8: ((8,), (2, 4), (4, 2), (2, 2, 2)), 9: ((9,), (3, 3)),
    10: ((2, 5), (5, 2)), 12: ((12,), (3, 4), (4, 3), (2, 6), (6, 2), (2, 3, 2)),
}  # fmt: skip


@dataclass(frozen=True)
class Side:
    """A mesh, and the axes of each dim there."""

    mesh: sw.Mesh
    dims: Dims

    def sharding(self) -> NamedSharding:
        """As a user writes it."""
        return NamedSharding(self.mesh, sw.P(*(tuple(self._axis(*piece) for piece in axes) for axes in self.dims)))

    def _axis(self, name: str, pre: int, size: int) -> Any:
        return name if size == self.mesh.shape[name] else sw.sub(name, pre=pre, size=size)

    def tiles(self, shape: tuple[int, ...]) -> Tiles:
        """First and end index of the tile of each device, by id."""
        sizes = dict(self.mesh.shape)
        coordinates = dict(zip(sizes, np.unravel_index(np.arange(self.mesh.size), tuple(sizes.values()))))
        first, end = (np.zeros((self.mesh.size, len(shape)), dtype=np.int64) for _ in range(2))
        ids = np.array(self.mesh.device_ids)
        for d, (size, axes) in enumerate(zip(shape, self.dims)):
            position = np.zeros(self.mesh.size, dtype=np.int64)
            for name, pre, count in axes:
                position = position * count + coordinates[name] // (sizes[name] // (pre * count)) % count
            block = -(-size // shards(axes))
            first[ids, d] = np.minimum(position * block, size)
            end[ids, d] = np.minimum((position + 1) * block, size)
        return first, end


@dataclass(frozen=True)
class MeshPair:
    """An array on a mesh before, and on another after."""

    shape: tuple[int, ...]
    before: Side
    after: Side

    def missing(self) -> np.ndarray:
        """The elements of the new tile that are not in the old one, by device id."""
        (old_first, old_end), (first, end) = self.before.tiles(self.shape), self.after.tiles(self.shape)
        held = np.prod(np.maximum(np.minimum(end, old_end) - np.maximum(first, old_first), 0), axis=1)
        return np.asarray(np.prod(end - first, axis=1) - held)

    @property
    def nests(self) -> bool:
        """Whether the tiles of one side consist of those of the other in each dim."""
        even = all(
            n % shards(axes) == 0 for side in (self.before, self.after) for n, axes in zip(self.shape, side.dims)
        )
        return even and all(nest(a, b) for a, b in zip(self.before.dims, self.after.dims))


def draw_pair(rng: random.Random) -> MeshPair:
    """Meshes of up to 12 devices, the second with any order of devices."""
    count = rng.choice(list(FACTORS))
    ndim = rng.randint(1, 3)
    sides = []
    for names in ("xyz", "uvw"):
        axes = dict(zip(names, rng.choice(FACTORS[count])))
        ids = rng.sample(range(count), count) if rng.random() < 0.5 else list(range(count))
        sides.append(Side(sw.Mesh(axes, ids, name=f"mesh_{names}"), dims(rng, axes, ndim)[0]))
    parts = [math.lcm(shards(a), shards(b)) for a, b in zip(sides[0].dims, sides[1].dims)]
    shape = tuple(n * rng.choice((1, 2)) if rng.random() < 0.7 else rng.choice((1, 2, 5, 7, 12, 13)) for n in parts)
    return MeshPair(shape, sides[0], sides[1])


def wrong_in(pair: MeshPair) -> str:
    """Runs the reshard in each mode; "" if all values and bytes are right."""
    values = np.arange(math.prod(pair.shape), dtype=np.float32).reshape(pair.shape)
    given, wanted = pair.before.sharding(), pair.after.sharding()
    moved = sw.jit(lambda x: sw.shard(x, wanted), mesh=pair.before.mesh, in_shardings=given)
    program = moved.lower(values).compile()
    first, end = pair.after.tiles(pair.shape)
    for mode in ({}, {"poison": True}, {"faithful": True}, {"faithful": True, "poison": True}):
        result = program.run(values, **mode)
        if not np.array_equal(np.asarray(result), values):
            return f"another array, {mode}"
        for shard in result.addressable_shards:
            own = tuple(slice(a, b) for a, b in zip(first[shard.device], end[shard.device]))
            if not np.array_equal(shard.data, values[own]):
                return f"device {shard.device} has another tile, {mode}"
    if found := differences(program._compiled, received_in_run(program, values)):
        return "; ".join(found)
    rows = program.collectives().rows
    if len(rows) > 1:
        return f"{len(rows)} collectives"
    sent, least = program.collectives().total_bytes, int(pair.missing().max()) * 4
    if sent != least:
        return f"sends {sent} bytes where a device lacks {least}"
    return ""
