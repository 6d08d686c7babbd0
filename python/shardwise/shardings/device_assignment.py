# SPDX-License-Identifier: Apache-2.0
"""Converts GShard's device assignments to mesh axes: a number of partitions, or the device of each tile."""

from __future__ import annotations

import math
import zlib

import numpy as np

from ..errors import ShardingError, message
from .mesh import Mesh
from .partition_spec import Axis, PartitionSpec, SubAxis
from .sharding import NamedSharding

__all__ = ["assignment_sharding", "axes_for_parts", "mesh_for_parts"]


def axes_for_parts(mesh: Mesh, parts: int, taken: tuple[str, ...] = ()) -> tuple[Axis, ...] | None:
    """The major axes whose sizes multiply to ``parts``, in GShard's order. The last one may be a prefix of an axis.

    None if no prefix of the axes has that many parts.

    ``taken`` are the axes of enclosing manual regions, which cannot be partitioned again.

    Raises:
        ShardingError: ``parts`` does not divide the devices.
    """
    free = {name: size for name, size in mesh.shape.items() if name not in taken}
    devices = math.prod(free.values())
    if parts < 1 or devices % parts:
        beside = f" beside the manual axes {', '.join(map(repr, taken))}" if taken else ""
        raise ShardingError(
            message(
                "split",
                f"the number of partitions must divide the {devices} devices of {mesh!r}{beside}",
                parts,
                f"use one of {[n for n in range(1, devices + 1) if devices % n == 0][:12]} or name the axes",
            )
        )
    axes: list[Axis] = []
    left = parts
    for name, size in free.items():
        if left == 1:
            break
        if left % size == 0:
            axes.append(name)
            left //= size
        elif size % left == 0:
            axes.append(SubAxis(name, 1, left))
            left = 1
        else:
            return None
    return tuple(axes)


def mesh_for_parts(mesh: Mesh, parts: int) -> Mesh:
    """The devices of a mesh in its order, as an axis "part" of so many groups of devices and one of the others."""
    axes = {"part": parts, "other": mesh.size // parts}
    return Mesh(axes, mesh.device_ids, name=f"{mesh.name}_in_{parts}")


def assignment_sharding(mesh: Mesh, assignment: np.ndarray) -> NamedSharding:
    """The sharding of a GShard device assignment (appendix A.3): ``assignment[i, j, …]`` is the device of that tile.

    Its mesh has the devices in that order, with an axis for each dim.

    Raises:
        ShardingError: ids that are not one per device.
    """
    flat = [int(device) for device in assignment.reshape(-1)]
    if sorted(flat) != sorted(mesh.device_ids):
        rule = f"a device assignment must name each device of {mesh!r} once"
        raise ShardingError(message("shard", rule, f"{flat[:16]}"))
    axes = {f"dim{d}": size for d, size in enumerate(assignment.shape)}
    name = f"{mesh.name}_of_{zlib.crc32(repr((assignment.shape, flat)).encode()):08x}"
    return NamedSharding(Mesh(axes, flat, name=name), PartitionSpec(*axes))
