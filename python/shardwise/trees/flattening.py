# SPDX-License-Identifier: Apache-2.0
"""Trees of arguments, by optree: None is not a leaf, dict keys are sorted, and specs are leaves, as in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree

from ..errors import ShardingError, message
from ..process.foreign import described_node_of, native
from ..shardings.partition_spec import PartitionSpec
from ..shardings.sharding import UNSPECIFIED, NamedSharding
from .differences import difference
from .registry import NAMESPACE, adopt, are_plain, path_of

__all__ = [
    "broadcast",
    "broadcast_prefix",
    "flatten",
    "leaf_names",
    "leaf_paths",
    "native_specs",
    "specs_per_leaf",
    "unflatten",
]


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Any]:
    """Leaves of ``tree`` and its structure."""
    leaves, structure = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    if are_plain(leaves):
        return leaves, structure
    while adopt(leaves if is_leaf is None else [leaf for leaf in leaves if not is_leaf(leaf)]):
        leaves, structure = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    return _with_described_nodes(leaves, structure, is_leaf)


def _with_described_nodes(
    leaves: list[Any], structure: Any, is_leaf: Callable[[Any], bool] | None
) -> tuple[list[Any], Any]:
    """Replace leaves that describe nodes by the children of these nodes, and return the structure with the nodes."""
    found = [None if is_leaf is not None and is_leaf(leaf) else described_node_of(leaf) for leaf in leaves]
    if not any(found):
        return leaves, structure
    examples = [leaf if node is None else node.example for leaf, node in zip(leaves, found)]
    _, structure = flatten(unflatten(structure, examples), is_leaf)
    children = [[leaf] if node is None else node.children for leaf, node in zip(leaves, found)]
    return [child for group in children for child in group], structure


def unflatten(structure: Any, leaves: Any) -> Any:
    """The tree of ``structure`` with these leaves."""
    return optree.tree_unflatten(structure, leaves)


def leaf_paths(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[Any, ...]]:
    """The path to each leaf, as keys."""
    flatten(tree, is_leaf)
    return [path_of(accessor) for accessor in optree.tree_accessors(tree, is_leaf, namespace=NAMESPACE)]


def leaf_names(tree: Any) -> list[str]:
    """A path for every leaf, to append to an argument's name: ``['w'][0]``, or "" for a lone leaf."""
    return ["".join(map(str, path)) for path in leaf_paths(tree)]


def _is_spec(x: Any) -> bool:
    return x is None or x is UNSPECIFIED or isinstance(native(x), (NamedSharding, PartitionSpec, str))


def native_specs(specs: Any) -> Any:
    """Convert JAX's shardings in a tree to Shardwise's."""
    if _is_spec(specs):
        return native(specs)
    leaves, structure = flatten(specs)
    return unflatten(structure, map(native, leaves))


def broadcast(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """One leaf of ``prefix`` per leaf of ``tree``; None is a leaf of the prefix. ValueError if it is not a prefix."""
    flatten(tree)
    spread = optree.broadcast_prefix(prefix, tree, is_leaf=is_leaf, none_is_leaf=True, namespace=NAMESPACE)
    leaves = optree.tree_leaves(tree, none_is_leaf=True, namespace=NAMESPACE)
    return [value for value, leaf in zip(spread, leaves) if leaf is not None]


def broadcast_prefix(specs: Any, tree: Any, what: str) -> list[Any]:
    """One spec per leaf of ``tree``; ``specs`` may be a prefix of it, and None means unspecified.

    Raises:
        ShardingError: ``specs`` is not a prefix of the tree.
    """
    if _is_spec(specs):
        return [native(specs)] * len(flatten(tree)[0])
    try:
        return [native(spec) for spec in broadcast(specs, tree, _is_spec)]
    except ValueError:
        way_out = "give one spec for everything below a point of the tree, or one for each leaf"
        rule = "must be a prefix of the tree it describes"
        raise ShardingError(message(what, rule, difference(specs, tree, _is_spec), way_out)) from None


def specs_per_leaf(specs: Any, tree: Any, what: str) -> list[Any]:
    """One spec per leaf; None if it is unspecified."""
    return [None if spec is UNSPECIFIED else spec for spec in broadcast_prefix(specs, tree, what)]
