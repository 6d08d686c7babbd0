# SPDX-License-Identifier: Apache-2.0
"""Tiles as text: what ``sw.debug.visualize_array_sharding`` prints of arrays, and of traced values."""

from __future__ import annotations

from collections.abc import Iterator

from .._core.ir import Module, Region
from .._core.mesh import Sharding
from .areas import Tiles, group_sizes, ranges

__all__ = ["INSPECTED_SHAPE", "inspected_text", "tiles_text"]

INSPECTED_SHAPE = "shardwise.shape"  # the option of an @InspectSharding call that prints tiles
_MOST_LINES = 32  # of tiles that are printed


def tiles_text(dtype: str, shape: tuple[int, ...], sharding: Sharding) -> str:
    """A line with the type and the sharding of an array, then a line for each tile and the devices that hold it."""
    ids = sharding.mesh.device_ids or range(len(sharding.slices(shape)))
    tiles = Tiles(sharding, ids, shape)
    areas = tiles.areas(group_sizes(tiles.counts, _MOST_LINES, _MOST_LINES))
    rows = [(area.text, ranges(area.devices)) for area in areas]
    if tiles.empty:
        rows.append(("empty", ranges(tiles.empty)))
    width = max(len(tile) for tile, _ in rows)
    lines = [f"{dtype}[{','.join(map(str, shape))}] sharded {sharding.dims_text()}"]
    lines += [f"{tile:{width}}  devices {devices}" for tile, devices in rows]
    return "\n".join(lines) + "\n"


def inspected_text(module: Module) -> str:
    """The tiles of the values that the calls of ``visualize_array_sharding`` in the program of one device name."""
    return "".join(text for function in module.functions for text in _inspected(function.body))


def _inspected(region: Region) -> Iterator[str]:
    for op in region.ops:
        for inner in op.regions:
            yield from _inspected(inner)
        options = op.attributes.get("mhlo.backend_config") if op.name == "stablehlo.custom_call" else None
        if not isinstance(options, dict) or INSPECTED_SHAPE not in options:
            continue
        (value,) = op.operands
        placement = value.placement
        assert placement is not None
        shape = tuple(int(size) for size in options[INSPECTED_SHAPE].split(",") if size)
        # Before these dims stand the rows of devices in a manual region, or the examples of a vmap.
        dims = placement.sharding.dims[placement.ndim - len(shape) :]
        yield tiles_text(value.type.dtype, shape, Sharding.make(placement.mesh, dims))
