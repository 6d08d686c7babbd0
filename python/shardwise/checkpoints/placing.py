# SPDX-License-Identifier: Apache-2.0
"""Where loaded arrays go: the sharding of each leaf, from ``shardings``, ``like``, ``mesh`` and what was saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..array import Array, ShapeDtypeStruct
from ..errors import MeshError, ShardingError, UnsupportedError, called_as, message, naming, shown
from ..from_shards import make_array_from_callback
from ..process.foreign import native
from ..recording.tracing import current_trace
from ..shardings.mesh import Mesh, default_mesh
from ..shardings.partition_spec import PartitionSpec
from ..shardings.sharding import UNSPECIFIED, NamedSharding
from ..trees import broadcast_prefix, flatten, leaf_names, unflatten
from .likeness import matched
from .structure import is_value
from .sub_axes import spec_on

__all__ = ["as_example", "checked_mesh", "placed_tree", "sharding_for"]


def checked_mesh(what: str, mesh: Any) -> Mesh | None:
    """The mesh of a call outside of traced functions. Raises MeshError, UnsupportedError."""
    mesh = native(mesh)
    if mesh is not None and not isinstance(mesh, Mesh):
        raise MeshError(message(what, "mesh must be a Mesh or None", shown(mesh)))
    if current_trace() is not None:
        way_out = "load before the call, and pass the arrays as arguments"
        raise UnsupportedError(message(what, "must not be called in a traced function", None, way_out))
    return mesh


def sharding_for(
    what: str, name: str, example: Any, spec: Any, mesh: Mesh | None, saved: Callable[[], NamedSharding | None]
) -> NamedSharding | None:
    """The sharding of an array; None for a NumPy array.

    Args:
        what: the public function.
        name: of the leaf.
        example: the leaf of ``like``; None without.
        spec: from ``shardings``.
        mesh: the mesh that the user gave.
        saved: returns the sharding that the array was saved with, if it had one.
    """
    if is_value(example):
        return None
    own = example.sharding if isinstance(example, (Array, ShapeDtypeStruct)) else None
    if spec is None or spec is UNSPECIFIED:
        if own is None and (example is None or isinstance(example, ShapeDtypeStruct)):
            own = saved()
        if own is None:
            return None
        spec = own if mesh is None or not isinstance(own, NamedSharding) else _respelled(what, own, mesh)
    if isinstance(spec, Mesh):
        return NamedSharding(spec, PartitionSpec())
    if isinstance(spec, NamedSharding):
        return spec
    if not isinstance(spec, (PartitionSpec, str)):
        raise ShardingError(message(what, "takes a NamedSharding, a spec or a mesh", shown(spec)))
    mesh = mesh or default_mesh()
    if mesh is None:
        found = own if isinstance(own, NamedSharding) else saved()
        if found is None:
            got = f"{spec!r} for tree{name}"
            raise MeshError(message(what, "a spec needs a mesh", got, "pass mesh=, or a NamedSharding"))
        mesh = found.mesh
    return NamedSharding(mesh, spec)


def _respelled(what: str, sharding: NamedSharding, mesh: Mesh) -> NamedSharding:
    """The same axes of another mesh."""
    if mesh == sharding.mesh:
        return sharding
    for spec in (sharding.spec, spec_on(mesh, sharding.spec)):
        with suppress(ShardingError):
            return NamedSharding(mesh, spec)
    rule = f"a mesh without shardings= must have the axes of {sharding.spec}"
    raise ShardingError(message(what, rule, repr(mesh), "pass shardings= for this mesh"))


def as_example(value: Any, leaf: Any) -> Any:
    """A NumPy array as the leaf of ``like`` is: a Python number, a NumPy scalar, or an array."""
    if is_value(leaf):
        return value.item() if type(leaf) is not float else float(value)
    return value[()] if isinstance(leaf, np.generic) else value


def placed_tree(
    what: str,
    saved: Any,
    entries: Sequence[dict[str, Any]],
    like: Any,
    mesh: Mesh | None,
    shardings: Any,
    names: Callable[[Any], list[str]] = leaf_names,
) -> Any:
    """A tree of NumPy arrays and plain values of another library, like ``like`` and with ``shardings``.

    Args:
        saved: the tree.
        entries: describes its leaves, see :mod:`.likeness`; ``number`` is the place of one among the leaves.
        names: of the leaves of a tree, as ``entries`` has them.
    """
    leaves, structure = flatten(saved)
    examples: list[Any] = [None] * len(leaves)
    if like is not None:
        examples, structure = flatten(like)
        examples = list(map(native, examples))
        leaves = [leaves[entry["number"]] for entry in matched(what, names(like), examples, entries)]
    tree = saved if like is None else like
    found = []
    for leaf, example, name, spec in zip(leaves, examples, leaf_names(tree), broadcast_prefix(shardings, tree, what)):
        with naming(f"{what} of tree{name}"):
            if not isinstance(leaf, np.ndarray):
                found.append(leaf)
                continue
            sharding = sharding_for(what, name, example, spec, mesh, lambda: None)
            found.append(as_example(np.array(leaf), example) if sharding is None else _sharded(what, leaf, sharding))
    return unflatten(structure, found)


def _sharded(what: str, array: np.ndarray, sharding: NamedSharding) -> Any:
    """Copies only the shards of this process's devices."""
    with called_as(what, "make_array_from_callback", "array"):
        return make_array_from_callback(array.shape, sharding, lambda index: np.array(array[index]), array.dtype)
