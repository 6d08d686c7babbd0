# SPDX-License-Identifier: Apache-2.0
"""Cannon's product of two matrices on a square grid of devices: no device ever holds more than one tile of each.

Device (i, j) begins with the tiles (i, i + j) of `a` and (i + j, j) of `b`. After each product, tiles of `a` go one
device to the left and tiles of `b` one device up.

    python examples/cannon.py --size 512 --side 4

Source: Cannon, "A Cellular Computer to Implement the Kalman Filter Algorithm" (1969).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P, lax


def to_start(tile: Any, axis: str, others: str) -> Any:
    """A tile moves along ``axis`` by as many devices as its position along ``others``."""
    side, place = lax.axis_size(axis), lax.axis_index(others)
    for i in range(1, side):
        # All devices take part in each move, and those keep it whose turn it is.
        moved = lax.ppermute(tile, axis, [((j + 1) % side, j) for j in range(side)])
        tile = np.where(place >= i, moved, tile)
    return tile


def cannon(a: Any, b: Any) -> Any:
    """The tile of ``a @ b`` on one device."""
    side = lax.axis_size("row")
    back = [((j + 1) % side, j) for j in range(side)]
    a, b = to_start(a, "column", "row"), to_start(b, "row", "column")
    product = a @ b
    for _ in range(side - 1):
        a, b = lax.ppermute(a, "column", back), lax.ppermute(b, "row", back)
        product = product + a @ b
    return product


def main() -> None:
    """Compare with NumPy's product, and with what automatic partitioning sends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--side", type=int, default=3)
    args = parser.parse_args()
    if args.size % args.side:
        parser.error(f"--size must be a multiple of --side, {args.side}")

    mesh = sw.Mesh({"row": args.side, "column": args.side})
    tiles = P("row", "column")
    a, b = np.random.default_rng(0).normal(size=(2, args.size, args.size))
    by_hand = sw.jit(sw.shard_map(cannon, mesh=mesh, in_specs=(tiles, tiles), out_specs=tiles), mesh=mesh)
    program = by_hand.lower(a, b).compile()
    print(f"Cannon against NumPy: differs by at most {np.abs(np.asarray(program(a, b)) - a @ b).max():.1e}")
    automatic = sw.jit(np.matmul, mesh=mesh, in_shardings=(tiles, tiles), out_shardings=tiles).lower(a, b).compile()
    for name, each in (("Cannon", program), ("automatic", automatic)):
        found = each.collectives()
        print(f"{name}: {found.by_kind()}, {found.total_bytes:.0f} B per device; {each.memory().summary()}")


if __name__ == "__main__":
    main()
