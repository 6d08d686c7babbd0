# SPDX-License-Identifier: Apache-2.0
"""Trees, keys and plain values as JSON.

    {"w": [x, None], "step": 3}    {"dict": [["step", 0], ["w", {"list": [1, null]}]]}, with the leaves 3 and x

A number is a leaf. Classes other than dict, list and tuple keep their name and the names of their children, not their
code: without an example tree, they come back as dicts. Names are JSON strings and never names of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import optree

from ..errors import DeletedArrayError, DTypeError, described, message, reworded, shown
from ..interop.random_keys import RandomKey, random_key_of
from ..trees import flatten
from ..trees.registry import NAMESPACE, DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, path_of

__all__ = ["decoded_tree", "decoded_value", "encoded_tree", "encoded_value", "is_value", "named_leaf", "named_trees"]

_VALUES = (bool, int, float, complex, str, bytes)


@contextmanager
def named_trees(what: str) -> Iterator[None]:
    """Context manager: the error of a tree of too many levels starts with ``what``."""
    try:
        yield
    except RecursionError:
        rule, way_out = "a tree must have fewer levels", "take the inner ones out, or flatten them"
        raise RecursionError(message(what, rule, "more than Python can follow", way_out)) from None


@contextmanager
def named_leaf(what: str, name: str) -> Iterator[None]:
    """Context manager: the error of a deleted array starts with ``what`` and the name of the leaf."""
    try:
        yield
    except DeletedArrayError as error:
        raise reworded(error, f"{what}: {name}: {str(error).partition(': ')[2]}") from None


def is_value(x: object) -> bool:
    """Whether a leaf is a plain value: a Python number, a string or bytes."""
    return type(x) in _VALUES


def encoded_value(x: Any) -> Any:
    """A plain value as JSON. Floats keep their bits, but for the payload of NaN; integers have any size.

    >>> encoded_value(2), encoded_value(0.1), encoded_value(-1j)
    (2, {'float': '0x1.999999999999ap-4'}, {'complex': ['-0x0.0p+0', '-0x1.0000000000000p+0']})
    """
    if type(x) is int:
        return x if abs(x) < 2**63 else {"int": hex(x)}
    if type(x) is float:
        return {"float": x.hex()}
    if type(x) is complex:
        return {"complex": [x.real.hex(), x.imag.hex()]}
    return {"bytes": x.hex()} if type(x) is bytes else x


def decoded_value(text: Any) -> Any:
    """The plain value; ValueError for other JSON."""
    if type(text) in (bool, int, str):
        return text
    if isinstance(text, dict) and len(text) == 1:
        ((kind, value),) = text.items()
        if kind == "int":
            return int(value, 16)
        if kind == "float":
            return float.fromhex(value)
        if kind == "complex":
            return complex(*map(float.fromhex, value))
        if kind == "bytes":
            return bytes.fromhex(value)
    raise ValueError(f"value {shown(text)}")


def _encoded_key(key: Any, name: str) -> Any:
    if key is None or is_value(key):
        return encoded_value(key)
    if type(key) is tuple:
        return {"tuple": [_encoded_key(each, name) for each in key]}
    got = f"{described(key)} in {name or 'the tree'}"
    raise DTypeError(message("save", "keys must be strings, numbers, bytes, None or tuples of these", got))


def _decoded_key(text: Any) -> Any:
    if isinstance(text, dict) and set(text) == {"tuple"}:
        return tuple([_decoded_key(each) for each in text["tuple"]])
    return None if text is None else decoded_value(text)


# ---- trees ----------------------------------------------------------------------------------------------------------


def encoded_tree(tree: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """The tree as JSON, and the name and the value of each leaf."""
    flatten(tree)  # adopts classes of other libraries
    leaves: list[tuple[str, Any]] = []
    return _encoded(tree, "", leaves), leaves


def _encoded(tree: Any, name: str, leaves: list[tuple[str, Any]]) -> Any:
    if tree is None:
        return None
    key = random_key_of(tree)
    if key is not None:
        leaves.append((name, key.data))
        return {"jax_key": [key.impl, len(leaves) - 1]}
    accessors, children, structure = optree.tree_flatten_with_accessor(
        tree, lambda x: x is not tree, none_is_leaf=True, namespace=NAMESPACE
    )
    if structure.is_leaf():
        leaves.append((name, tree))
        return len(leaves) - 1
    steps = [path_of(accessor)[0] for accessor in accessors]
    nodes = [_encoded(child, f"{name}{step}", leaves) for step, child in zip(steps, children)]
    if type(tree) in (list, tuple):
        return {type(tree).__name__: nodes}
    keys = [_encoded_key(_key_of(step), name) for step in steps]
    pairs = [list(pair) for pair in zip(keys, nodes)]
    return {"dict": pairs} if isinstance(tree, dict) else {"class": [type(tree).__qualname__, pairs]}


def _key_of(step: Any) -> Any:
    """The key of a child in the dict that its class becomes."""
    if isinstance(step, DictKey):
        return step.key
    if isinstance(step, GetAttrKey):
        return step.name
    if isinstance(step, SequenceKey):
        return step.idx
    return step.key if isinstance(step, FlattenedIndexKey) else str(step)


def decoded_tree(text: Any, leaf: Callable[[int], Any]) -> Any:
    """The tree; KeyError, TypeError or ValueError for other JSON. ``leaf`` returns a leaf by its number."""
    if text is None:
        return None
    if type(text) is int:
        return leaf(text)
    ((kind, content),) = text.items()
    if kind in ("list", "tuple"):
        nodes = [decoded_tree(node, leaf) for node in content]
        return nodes if kind == "list" else tuple(nodes)
    if kind == "jax_key":
        impl, number = content
        return RandomKey.restored(leaf(number), impl)
    pairs = {"dict": content, "class": content[1:] and content[1]}[kind]
    return {_decoded_key(key): decoded_tree(node, leaf) for key, node in pairs}
