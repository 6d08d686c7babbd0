# SPDX-License-Identifier: Apache-2.0
# mypy: allow-untyped-defs, allow-untyped-calls
"""Functions that scripts of every target use; see to_jax/helpers.py."""

from __future__ import annotations

import math

import numpy as np

SIZES: dict[str, int] = {}
ALL: tuple[str, ...] = ()


def checked(args, inputs):
    """The arguments as arrays. An error names an argument that does not have the compiled shape and dtype."""
    if len(args) != len(inputs):
        names = ", ".join(name for name, *_ in inputs)
        raise TypeError(f"main takes these arguments: {names}; got {len(args)} arguments")
    arrays = []
    for x, (name, shape, _, dtype) in zip(args, inputs):
        is_weak = type(x) in (bool, int) or (type(x) in (float, complex) and "int" not in dtype and dtype != "bool")
        x = np.asarray(x, dtype if is_weak else None)
        if x.shape != shape or x.dtype.name != dtype:
            wrong = TypeError if x.shape == shape else ValueError
            got = f"{x.dtype.name}{list(x.shape)}"
            raise wrong(f"main: argument {name} must be {dtype}{list(shape)} as compiled, got {got}")
        arrays.append(x)
    return arrays


def order_of(axes):
    """The devices with the given axes first."""
    grid = np.arange(math.prod(SIZES.values())).reshape(list(SIZES.values()))
    first = [ALL.index(axis) for axis in axes]
    return grid.transpose(first + [d for d in range(len(ALL)) if d not in first]).reshape(-1)


def swapped(sources, targets):
    """(from, to): the device at a position along the targets receives from the one there along the sources."""
    return list(zip(order_of(sources).tolist(), order_of(targets).tolist()))


def shifted(axes, by, wrap):
    """(from, to): device i along the axes receives from i - by."""
    rows = order_of(axes).reshape(math.prod(SIZES[axis] for axis in axes), -1)
    n = len(rows)
    pairs = [(i, (i + by) % n) for i in range(n) if wrap or 0 <= i + by < n]
    return [pair for i, j in pairs for pair in zip(rows[i].tolist(), rows[j].tolist())]


def dim_of(given, block, count):
    """A dim of an exchange with its defaults; count: the rows of a tile of the result.

    Row t of the result, for begin <= t < end, is row (scale * t + offset) / holes of an operand of `size` rows. Tile i
    has the rows from i * step on, shard j the block from j * block on. at, to: axes of the operand and of the result.
    """
    missing = {"at": (), "size": block, "step": count, "scale": 1, "offset": 0, "holes": 1, "begin": 0}
    dim = {**missing, "block": block, "count": count, **given}
    return {"to": dim["at"], "end": dim["size"], **dim}


def tile_of(x, places):
    """A tile of x: its position along each dim, and the number of tiles there."""
    for dim, (position, count) in enumerate(places):
        x = np.split(x, count, dim)[position]
    return x


def of_tiles(tiles, places):
    """The array of which each device has a tile."""
    whole = np.empty([n * count for n, (_, count) in zip(tiles[0].shape, places[0])], tiles[0].dtype)
    for tile, own in zip(tiles, places):
        whole[tuple(slice(at * n, (at + 1) * n) for n, (at, _) in zip(tile.shape, own))] = tile
    return whole
