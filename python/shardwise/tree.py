# SPDX-License-Identifier: Apache-2.0
"""Trees: nested tuples, lists, dicts, named tuples and dataclasses of arrays. The names are those of `jax.tree`.

None is a node without leaves, and dicts are flattened in the order of their sorted keys. Your own classes are nodes
after :func:`shardwise.register_pytree_node` or :func:`shardwise.register_dataclass`, and so are dataclasses that hold
arrays, classes registered in optree's global namespace, and, while ``jax`` is loaded, classes registered in JAX.

>>> import shardwise as sw
>>> params = {"w": [1, 2], "b": None}
>>> sw.tree.map(lambda x: 10 * x, params)
{'w': [10, 20], 'b': None}
>>> [(sw.tree.keystr(path), leaf) for path, leaf in sw.tree.leaves_with_path(params)]
[("['w'][0]", 1), ("['w'][1]", 2)]
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any

import optree

from . import trees
from .errors import message, shown
from .trees.differences import difference
from .trees.registry import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "SequenceKey",
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "structure",
    "transpose",
    "unflatten",
]

_IsLeaf = Callable[[Any], bool]
_MISSING: Any = object()


def _flattened(what: str, tree: Any, is_leaf: _IsLeaf | None) -> tuple[list[Any], Any]:
    if is_leaf is not None and not callable(is_leaf):
        raise TypeError(message(f"tree.{what}", "is_leaf must be a function of one argument", shown(is_leaf)))
    return trees.flatten(tree, is_leaf)


def _function(what: str, f: Any) -> None:
    if not callable(f):
        raise TypeError(message(f"tree.{what}", "takes a function", shown(f)))


def _structure(what: str, treedef: Any) -> None:
    if not isinstance(treedef, optree.PyTreeSpec):
        way_out = "get one with tree.structure(x)"
        raise TypeError(message(f"tree.{what}", "takes the structure of a tree", shown(treedef), way_out))


def _listed(what: str, items: Any) -> list[Any]:
    try:
        return list(items)
    except TypeError:
        raise TypeError(message(f"tree.{what}", "takes a sequence", shown(items))) from None


def flatten(tree: Any, is_leaf: _IsLeaf | None = None) -> tuple[list[Any], Any]:
    """The leaves of ``tree`` and its structure. Nodes for which ``is_leaf`` is true are leaves.

    >>> leaves, structure = flatten({"a": (2, None), "b": 1})
    >>> leaves, unflatten(structure, [20, 10])
    ([2, 1], {'a': (20, None), 'b': 10})
    """
    return _flattened("flatten", tree, is_leaf)


def unflatten(treedef: Any, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves; ValueError for another number of leaves."""
    _structure("unflatten", treedef)
    return trees.unflatten(treedef, _listed("unflatten", leaves))


def leaves(tree: Any, is_leaf: _IsLeaf | None = None) -> list[Any]:
    """The leaves of ``tree``, in the order of :func:`flatten`."""
    return _flattened("leaves", tree, is_leaf)[0]


def structure(tree: Any, is_leaf: _IsLeaf | None = None) -> Any:
    """The structure of ``tree``; hashable, and equal for trees that differ only in their leaves."""
    return _flattened("structure", tree, is_leaf)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: _IsLeaf | None = None) -> Any:
    """Apply ``f`` to each leaf of ``tree`` and the subtrees of the other trees in its place; returns a tree.

    Raises:
        ValueError: ``tree`` is not a prefix of another tree; the message names the first difference.

    >>> map(lambda w, g: w - g, {"w": 3, "b": 2}, {"w": 1, "b": 1})
    {'w': 2, 'b': 1}
    """
    _function("map", f)
    found, treedef = _flattened("map", tree, is_leaf)
    return trees.unflatten(treedef, builtins.map(f, found, *_subtrees("tree.map", treedef, tree, rest, is_leaf)))


def _subtrees(what: str, treedef: Any, tree: Any, rest: tuple[Any, ...], is_leaf: _IsLeaf | None) -> list[list[Any]]:
    """The subtrees of the other trees in the places of the first tree's leaves."""
    columns = []
    for number, other in enumerate(rest, 2):
        try:
            columns.append(treedef.flatten_up_to(other))
        except ValueError:
            trees.flatten(other)
            found = difference(tree, other, is_leaf, f"tree {number}")
            must_hold = "the first tree must be a prefix of the others"
            raise ValueError(message(what, must_hold, found or None)) from None
    return columns


def reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: _IsLeaf | None = None
) -> Any:
    """Fold the leaves from left to right: ``function(function(leaf0, leaf1), leaf2)``, from ``initializer`` if given.

    Raises:
        TypeError: no leaves and no ``initializer``.

    >>> reduce(lambda total, x: total + x, {"a": 1, "b": [2, 3]}, 0)
    6
    """
    _function("reduce", function)
    initial = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *initial)


def all(tree: Any, *, is_leaf: _IsLeaf | None = None) -> bool:
    """Whether every leaf is true."""
    found = _flattened("all", tree, is_leaf)[0]
    for leaf in found:
        if getattr(leaf, "size", 1) != 1:
            raise ValueError(message("tree.all", "leaves must be single truth values", shown(leaf), "reduce them"))
    return builtins.all(found)


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: _IsLeaf | None = None) -> Any:
    """A tree like ``full_tree`` with the leaves of ``prefix_tree``, each in the place of all leaves below it.

    Raises:
        ValueError: ``prefix_tree`` is not a prefix of ``full_tree``.

    >>> broadcast({"a": 1, "b": 2}, {"a": ("x", "y"), "b": "z"})
    {'a': (1, 1), 'b': 2}
    """
    found, treedef = _flattened("broadcast", prefix_tree, is_leaf)
    (subtrees,) = _subtrees("tree.broadcast", treedef, prefix_tree, (full_tree,), is_leaf)
    filled = [map(lambda _, leaf=leaf: leaf, subtree, is_leaf=is_leaf) for leaf, subtree in zip(found, subtrees)]
    return trees.unflatten(treedef, filled)


def transpose(outer_treedef: Any, inner_treedef: Any, pytree_to_transpose: Any) -> Any:
    """Transpose a tree of trees; None for ``inner_treedef`` infers it.

    Raises:
        ValueError: a tree that is not ``outer_treedef`` of ``inner_treedef``.

    >>> transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    _structure("transpose", outer_treedef)
    if inner_treedef is None:
        inner_treedef = structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    _structure("transpose", inner_treedef)
    return optree.tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose)


def flatten_with_path(tree: Any, is_leaf: _IsLeaf | None = None) -> tuple[list[tuple[tuple[Any, ...], Any]], Any]:
    """Pairs ``(path, leaf)`` and the structure.

    A path is a tuple of :class:`DictKey`, :class:`SequenceKey`, :class:`GetAttrKey` and :class:`FlattenedIndexKey`.

    >>> flatten_with_path({"w": [7]})[0]
    [((DictKey(key='w'), SequenceKey(idx=0)), 7)]
    """
    found, treedef = _flattened("flatten_with_path", tree, is_leaf)
    return list(zip(trees.leaf_paths(tree, is_leaf), found)), treedef


def leaves_with_path(tree: Any, is_leaf: _IsLeaf | None = None) -> list[tuple[tuple[Any, ...], Any]]:
    """Pairs ``(path, leaf)``, as :func:`flatten_with_path` returns them."""
    return flatten_with_path(tree, is_leaf)[0]


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: _IsLeaf | None = None) -> Any:
    """As :func:`map`, for a function that takes the path of a leaf before the leaves.

    >>> map_with_path(lambda path, x: f"{keystr(path)}={x}", {"w": [7]})
    {'w': ["['w'][0]=7"]}
    """
    _function("map_with_path", f)
    found, treedef = _flattened("map_with_path", tree, is_leaf)
    columns = [trees.leaf_paths(tree, is_leaf), found, *_subtrees("tree.map_with_path", treedef, tree, rest, is_leaf)]
    return trees.unflatten(treedef, builtins.map(f, *columns))


def keystr(keys: Iterable[Any]) -> str:
    """A path as text: ``['layers'][0].w``. In JAX it is `jax.tree_util.keystr`."""
    return "".join(builtins.map(str, _listed("keystr", keys)))


def __dir__() -> list[str]:
    return sorted(__all__)
