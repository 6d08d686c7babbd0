# SPDX-License-Identifier: Apache-2.0
"""Leaves that are part of the structure of their tree, such as the activation function in a module of Equinox.

hidden({"w": w, "f": np.tanh}, is_static)    {"w": w, "f": StaticLeaf(np.tanh)}, a tree with the leaf w alone
shown(...)                                   {"w": w, "f": np.tanh}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .flattening import flatten, unflatten
from .registry import register_pytree_node

__all__ = ["StaticLeaf", "has_static_leaves", "hidden", "shown"]


class StaticLeaf:
    """A node without children. Two are equal if their values have one type and are equal."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticLeaf) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return repr(self.value)

    def _key(self) -> tuple[Any, ...]:
        if type(self.value) in (float, complex):  # by bits: NaN equals itself, and 0.0 is not -0.0
            return type(self.value), repr(self.value)
        return type(self.value), self.value


register_pytree_node(StaticLeaf, lambda leaf: ((), leaf), lambda leaf, _: leaf)


def _is_static_leaf(x: Any) -> bool:
    return isinstance(x, StaticLeaf)


def hidden(tree: Any, is_static: Callable[[Any], bool], is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree with a :class:`StaticLeaf` for each leaf that ``is_static``; the tree itself if there is none."""
    leaves, structure = flatten(tree, is_leaf)
    flags = [is_static(leaf) for leaf in leaves]
    if not any(flags):
        return tree
    return unflatten(structure, [StaticLeaf(leaf) if flag else leaf for leaf, flag in zip(leaves, flags)])


def has_static_leaves(structure: Any) -> bool:
    """Whether the tree of a structure holds a :class:`StaticLeaf`."""
    example = unflatten(structure, range(structure.num_leaves))
    return any(map(_is_static_leaf, flatten(example, _is_static_leaf)[0]))


def shown(tree: Any, is_leaf: Callable[[Any], bool] = lambda _: False) -> Any:
    """The tree with the values of its static leaves in their places."""
    leaves, structure = flatten(tree, lambda x: _is_static_leaf(x) or is_leaf(x))
    return unflatten(structure, [leaf.value if _is_static_leaf(leaf) else leaf for leaf in leaves])
