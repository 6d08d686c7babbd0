# SPDX-License-Identifier: Apache-2.0
"""Shardings of other meshes over the devices of a program's mesh.

Shardings that reorder the program mesh's sub-axes are rewritten to that mesh; other shardings keep their mesh.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from math import prod

from .. import _core
from ..errors import MeshError, message
from .mesh import Mesh

__all__ = ["check_same_devices", "on_program_mesh", "only_slices"]


def check_same_devices(what: str, mesh: Mesh, other: Mesh) -> None:
    """Raise MeshError for a mesh over other devices than those of the program's mesh."""
    if mesh.size != other.size:
        rule = f"the mesh must be over the {mesh.size} devices of the program's mesh, {mesh!r}"
        raise MeshError(message(what, rule, repr(other), f"use {mesh!r}, or a mesh of {mesh.size} devices"))


def on_program_mesh(mesh: Mesh, sharding: _core.mesh.Sharding) -> _core.mesh.Sharding:
    """A sharding with the axes of the program's mesh, or on its own mesh under another name than that one's."""
    own = Mesh._wrap(sharding.mesh)
    if own == mesh:
        return sharding
    written = sharding.on_mesh(mesh._core)
    if written is not None:
        return written
    name = own.name if own.name != mesh.name else f"{own.name}_{zlib.crc32(own.text().encode()):08x}"
    renamed = Mesh(dict(own.shape), own.device_ids, name=name)
    return sharding.renamed(renamed._core)


def only_slices(arrived: _core.mesh.Sharding, wanted: _core.mesh.Sharding, shape: Sequence[int]) -> bool:
    """Whether each device has its part of ``wanted`` already, so that none receives anything."""
    if arrived.mesh != wanted.mesh or arrived.unreduced:
        return arrived == wanted
    for size, (had, _, _), (want, _, _) in zip(shape, arrived.dims, wanted.dims):
        shards = prod(axis_size for _, _, axis_size in want)
        if had != want and (had != want[: len(had)] or size % shards != 0):
            return False
    return True
