# SPDX-License-Identifier: Apache-2.0
"""Describes the first place where one tree is not a prefix of another, for errors.

{"w": [1]} of {"w": [1, 2]}      a list of 1 where the tree has a list of 2, at ['w']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree

from ..errors import described
from .registry import NAMESPACE, path_of

__all__ = ["difference"]

_MOST_KEYS = 8  # listed keys of a dict

_Children = dict[str, Any]  # by their step: "['w']", "[0]", ".w"


def difference(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool] | None, other: str = "the tree") -> str:
    """Describe the first place where ``prefix`` is not a prefix of ``tree``; "" if it is a prefix.

    Args:
        is_leaf: whether a node of the prefix is a leaf; also called for None.
        other: the name of ``tree`` in the message.
    """
    found = _first(prefix, tree, "", is_leaf)
    if found is None:
        return ""
    path, ours, theirs = found
    return f"{ours} where {other} has {theirs}" + (f", at {path}" if path else "")


def _first(prefix: Any, tree: Any, path: str, is_leaf: Callable[[Any], bool] | None) -> tuple[str, str, str] | None:
    if (is_leaf is not None and is_leaf(prefix)) or (ours := _children(prefix)) is None:
        return None
    theirs = _children(tree)
    if theirs is None or ours.keys() != theirs.keys() or _kind(prefix) != _kind(tree):
        return path, _text(prefix, ours, tree), _text(tree, theirs, prefix)
    for step, child in ours.items():
        found = _first(child, theirs[step], path + step, is_leaf)
        if found is not None:
            return found
    return None


def _children(tree: Any) -> _Children | None:
    """The children of a node, or None for a leaf."""
    accessors, children, structure = optree.tree_flatten_with_accessor(
        tree, lambda x: x is not tree, namespace=NAMESPACE
    )
    if structure.is_leaf():
        return None
    return {"".join(map(str, path_of(accessor))): child for accessor, child in zip(accessors, children)}


def _kind(tree: Any) -> Any:
    """The structure of a node, for comparison: one for all dict classes; with static data for registered classes."""
    if isinstance(tree, dict):
        return dict
    return type(tree), _static_data(tree)


def _static_data(tree: Any) -> Any:
    if tree is None or isinstance(tree, (tuple, list)):
        return None
    return optree.tree_flatten_one_level(tree, namespace=NAMESPACE).metadata


def _text(tree: Any, children: _Children | None, other: Any) -> str:
    if children is None:
        return described(tree)
    if tree is None:
        return "None"
    if isinstance(tree, dict):
        return _dict_text(tree, other if isinstance(other, dict) else tree)
    if type(tree) in (tuple, list):
        return f"a {type(tree).__name__} of {len(tree)}"
    static = _static_data(tree)
    return type(tree).__name__ + (f" with static data {static!r}" if getattr(static, "value", static) else "")


def _dict_text(tree: dict[Any, Any], other: dict[Any, Any]) -> str:
    """The keys of a dict; keys that the other one lacks come first."""
    keys = [repr(key) for key in sorted(tree, key=lambda key: key in other)]
    more = ["…"] * (len(keys) > _MOST_KEYS)
    noun = {0: "no keys", 1: "key "}.get(len(keys), "keys ")
    return f"a dict with {noun}{', '.join(keys[:_MOST_KEYS] + more)}"
