# SPDX-License-Identifier: Apache-2.0
"""JAX's meshes, specs, shardings, shapes and trees. JAX is never imported: its classes are known by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..array import ShapeDtypeStruct
from ..errors import ShardingError, message
from ..process.foreign import ForeignNode, register_library
from ..shardings.mesh import Mesh
from ..shardings.partition_spec import PartitionSpec
from ..shardings.sharding import NamedSharding
from .jax_types import type_of_jax
from .random_keys import described_key, is_shape_of_key, key_node

__all__ = ["native_of_jax", "node_of_jax"]


def native_of_jax(x: Any) -> Any:
    """Convert a JAX object to Shardwise's. Objects without a counterpart are returned unchanged.

    Raises:
        ShardingError: a spec with reduced axes, which a :class:`PartitionSpec` cannot have.
    """
    convert = _CONVERTERS.get(type(x).__name__)
    return x if convert is None else convert(x)


def _mesh(x: Any) -> Mesh:
    """Device ids are ranks among the mesh's devices: a mesh over devices 4 to 7 has the ids 0 to 3."""
    ids = [device.id for device in x.devices.flat]
    rank = {device: i for i, device in enumerate(sorted(ids))}
    ranks = [rank[device] for device in ids]
    return Mesh(dict(x.shape), None if ranks == list(range(len(ids))) else ranks)


def _spec(x: Any) -> PartitionSpec:
    if getattr(x, "reduced", ()):
        raise ShardingError(message("P", "must have no reduced axes", repr(x), "leave reduced= out"))
    dims = x.partitions if hasattr(x, "partitions") else tuple(x)
    return PartitionSpec(*dims, unreduced=frozenset(getattr(x, "unreduced", ())))


def _shape(x: Any) -> Any:
    """Trees read the shapes of random keys, whose dtype NumPy lacks."""
    return x if is_shape_of_key(x) else ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "AbstractMesh": lambda x: Mesh(dict(x.shape)),
    "Mesh": _mesh,
    "NamedSharding": lambda x: NamedSharding(x.mesh, x.spec),
    "P": _spec,
    "PartitionSpec": _spec,
    "ShapeDtypeStruct": _shape,
    "UnconstrainedSingleton": lambda _: PartitionSpec.UNCONSTRAINED,
}


def node_of_jax(x: Any) -> ForeignNode | None:
    """``x`` as a node if its class is registered in JAX; None if it is a leaf there, or JAX is not loaded."""
    tree_util = sys.modules.get("jax.tree_util")
    if tree_util is None:
        return None
    key = key_node(x)
    if key is not None:
        return key
    keyed, structure = tree_util.tree_flatten_with_path(x, is_leaf=lambda child: child is not x)
    if structure == tree_util.tree_structure(0):
        return None
    return ForeignNode([child for _, child in keyed], [path[0] for path, _ in keyed], structure)


register_library(("jax", "jaxlib"), native_of_jax, node_of_jax, described_key, type_of_jax)
