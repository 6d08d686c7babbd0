# SPDX-License-Identifier: Apache-2.0
"""Converts GShard's device assignments to mesh axes: a number of partitions, or the device of each tile."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from .errors import ShardingError, message
from .mesh import Mesh
from .partition_spec import Axis, SubAxis

__all__ = ["assignment_dims", "axes_for_parts"]


def axes_for_parts(mesh: Mesh, parts: int, taken: tuple[str, ...] = ()) -> tuple[Axis, ...]:
    """The major axes whose sizes multiply to ``parts``, in GShard's order. The last one may be a prefix of an axis.

    ``taken`` are the axes of enclosing manual regions, which cannot be partitioned again.

    Raises:
        ShardingError: ``parts`` does not divide the devices, or no prefix of the axes has that many parts.
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
            raise ShardingError(
                message(
                    "split",
                    f"{parts} partitions must be a product of the leading axes of {mesh!r}",
                    parts,
                    "name the axes to split over, or use a mesh whose sizes nest with the count",
                )
            )
    return tuple(axes)


def assignment_dims(mesh: Mesh, assignment: np.ndarray) -> list[tuple[Axis, ...]]:
    """Axes per dim of a GShard device assignment (appendix A.3): ``assignment[i, j, …]`` is the device of that tile.

    The assignment must be a reordering of the mesh's digits: a product of sub-axes shards each dim.

    Raises:
        ShardingError: other device orders, or ids that are not one per device.
    """
    logical = {device: index for index, device in enumerate(mesh.device_ids)}
    flat = assignment.reshape(-1)
    if sorted(int(d) for d in flat) != sorted(mesh.device_ids):
        raise ShardingError(
            message("shard", f"a device assignment must name each device of {mesh!r} once", f"{flat.tolist()[:16]}")
        )
    grid = np.array([logical[int(d)] for d in flat]).reshape(assignment.shape)
    dims: list[tuple[Axis, ...]] = []
    model = np.zeros((1,) * grid.ndim, dtype=np.int64)
    for dim in range(grid.ndim):
        line = np.moveaxis(grid, dim, 0).reshape(grid.shape[dim], -1)[:, 0] - grid.flat[0]
        digits = _digits_of_line(mesh, line)
        if digits is None:
            _refuse_order(mesh, assignment)
        shape = [1] * grid.ndim
        shape[dim] = -1
        model = model + line.reshape(shape)
        dims.append(digits)
    if grid.flat[0] != 0 or not np.array_equal(model, grid):
        _refuse_order(mesh, assignment)
    return dims


def _refuse_order(mesh: Mesh, assignment: np.ndarray) -> NoReturn:
    rule = f"a device assignment must follow the axes of {mesh!r}"
    way_out = "make a mesh with these device_ids and use P(...)"
    raise ShardingError(message("shard", rule, assignment.tolist(), way_out))


def _digits_of_line(mesh: Mesh, line: np.ndarray) -> tuple[Axis, ...] | None:
    """The (sub-)axes, major to minor, whose mixed-radix count gives the offsets in ``line``; None for other offsets."""
    strides: dict[int, tuple[str, int, int]] = {}  # logical stride of a prime digit → (name, pre, size)
    stride = mesh.size
    for name, size in mesh.shape.items():
        pre, left = 1, size
        while left > 1:
            prime = next(p for p in range(2, left + 1) if left % p == 0)
            stride //= prime
            strides[stride] = (name, pre, prime)
            pre *= prime
            left //= prime
    digits: list[tuple[str, int, int]] = []
    step = 1
    while step < len(line):  # minor to major: line[step] is the stride of the next digit
        found = strides.get(int(line[step]))
        if found is None or len(line) % (step * found[2]):
            return None
        digits.insert(0, found)
        step *= found[2]
    merged: list[tuple[str, int, int]] = []
    for name, pre, size in digits:
        if merged and merged[-1][0] == name and merged[-1][1] * merged[-1][2] == pre:
            merged[-1] = (name, merged[-1][1], merged[-1][2] * size)
        else:
            merged.append((name, pre, size))
    sizes = mesh.shape
    return tuple(n if (p == 1 and s == sizes[n]) else SubAxis(n, p, s) for n, p, s in merged)
