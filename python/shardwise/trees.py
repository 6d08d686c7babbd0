# SPDX-License-Identifier: Apache-2.0
"""Trees of arguments, by optree: None is no leaf, dict keys are sorted, specs are leaves; as in JAX."""

from __future__ import annotations

from typing import Any

import optree

from .errors import ShardingError, message
from .partition_spec import PartitionSpec
from .sharding import UNSPECIFIED, NamedSharding

__all__ = ["broadcast_prefix", "flatten", "leaf_names", "unflatten"]


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Leaves of ``tree`` and its structure."""
    leaves, structure = optree.tree_flatten(tree)
    return leaves, structure


def unflatten(structure: Any, leaves: list[Any]) -> Any:
    """The tree of ``structure`` with these leaves."""
    return optree.tree_unflatten(structure, leaves)


def leaf_names(tree: Any) -> list[str]:
    """A path for every leaf, to append to an argument's name: ``['w'][0]``, or "" for a lone leaf."""
    accessors = optree.tree_accessors(tree)
    return [accessor.codify("") for accessor in accessors]


def _is_spec(x: Any) -> bool:
    return x is None or x is UNSPECIFIED or isinstance(x, (NamedSharding, PartitionSpec, str))


class _Shape:
    """A leaf of a tree in an error: ``float32[8, 6]`` in place of all its numbers."""

    def __init__(self, leaf: Any) -> None:
        shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
        self._text = type(leaf).__name__ if shape is None else f"{dtype}{list(shape)}"

    def __repr__(self) -> str:
        return self._text


def _shapes(tree: Any) -> str:
    return repr(optree.tree_map(_Shape, tree))


def broadcast_prefix(specs: Any, tree: Any, what: str) -> list[Any]:
    """One spec per leaf of ``tree``; ``specs`` may be a prefix of it, and None stands for "not said".

    Raises:
        ShardingError: ``specs`` is no prefix of the tree.
    """
    if _is_spec(specs):
        return [specs] * len(flatten(tree)[0])
    try:
        broadcast = optree.broadcast_prefix(specs, tree, is_leaf=_is_spec, none_is_leaf=True)
    except ValueError:
        got = f"{specs!r} for {_shapes(tree)}"
        way_out = "give one spec for everything below a point of the tree, or one for each leaf"
        raise ShardingError(message(what, "must be a prefix of the tree it describes", got, way_out)) from None
    leaves = optree.tree_leaves(tree, none_is_leaf=True)
    return [spec for spec, leaf in zip(broadcast, leaves) if leaf is not None]
