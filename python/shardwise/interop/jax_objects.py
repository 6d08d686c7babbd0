# SPDX-License-Identifier: Apache-2.0
"""JAX's meshes, specs, shardings and trees as plain data. JAX is never imported: its classes are known by name.

A function returns None for what is no such object, so that a caller can go on with other cases.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

__all__ = [
    "JaxNode",
    "is_unconstrained",
    "mesh_of_jax",
    "node_of_jax",
    "sharding_of_jax",
    "spec_of_jax",
    "struct_of_jax",
    "unflattened_by_jax",
]


def _is_jax(x: Any, *names: str) -> bool:
    cls = type(x)
    return cls.__name__ in names and cls.__module__.partition(".")[0] in ("jax", "jaxlib")


def mesh_of_jax(x: Any) -> tuple[dict[Any, int], list[int] | None] | None:
    """Sizes by name and device ids of a `jax.sharding.Mesh` or `AbstractMesh`; no ids where they are in order.

    Ids are ranks among the mesh's devices: a mesh over devices 4 to 7 has the ids 0 to 3.
    """
    if not _is_jax(x, "Mesh", "AbstractMesh"):
        return None
    axes = dict(x.shape)
    if type(x).__name__ == "AbstractMesh":
        return axes, None
    ids = [device.id for device in x.devices.flat]
    rank = {device: i for i, device in enumerate(sorted(ids))}
    ranks = [rank[device] for device in ids]
    return axes, None if ranks == list(range(len(ids))) else ranks


def spec_of_jax(x: Any) -> tuple[tuple[Any, ...], frozenset[str], frozenset[str]] | None:
    """Dims, unreduced axes and reduced axes of a `jax.sharding.PartitionSpec`."""
    if not _is_jax(x, "P", "PartitionSpec"):
        return None
    dims = x.partitions if hasattr(x, "partitions") else tuple(x)
    return tuple(dims), frozenset(getattr(x, "unreduced", ())), frozenset(getattr(x, "reduced", ()))


def is_unconstrained(x: Any) -> bool:
    """Whether ``x`` is `jax.sharding.PartitionSpec.UNCONSTRAINED`."""
    return _is_jax(x, "UnconstrainedSingleton")


def sharding_of_jax(x: Any) -> tuple[Any, Any] | None:
    """Mesh and spec, both JAX's, of a `jax.sharding.NamedSharding`."""
    return (x.mesh, x.spec) if _is_jax(x, "NamedSharding") else None


def struct_of_jax(x: Any) -> tuple[tuple[int, ...], Any, Any] | None:
    """Shape, dtype and sharding of a `jax.ShapeDtypeStruct`."""
    return (x.shape, x.dtype, x.sharding) if _is_jax(x, "ShapeDtypeStruct") else None


class JaxNode(NamedTuple):
    """One level of a tree, as the registry of JAX takes it apart."""

    children: list[Any]
    structure: Any  # a PyTreeDef
    keys: list[Any]


def node_of_jax(x: Any) -> JaxNode | None:
    """``x`` taken apart if its class is registered in JAX; None if it is a leaf there, or JAX is not loaded."""
    tree_util = sys.modules.get("jax.tree_util")
    if tree_util is None:
        return None
    keyed, structure = tree_util.tree_flatten_with_path(x, is_leaf=lambda child: child is not x)
    if structure == tree_util.tree_structure(0):
        return None
    return JaxNode([child for _, child in keyed], structure, [path[0] for path, _ in keyed])


def unflattened_by_jax(structure: Any, children: Any) -> Any:
    """The object that :func:`node_of_jax` took apart, with these children."""
    return sys.modules["jax.tree_util"].tree_unflatten(structure, children)
