# SPDX-License-Identifier: Apache-2.0
"""Accepts objects of other libraries in place of Shardwise's own, such as a JAX mesh for a :class:`Mesh`.

The package calls :func:`native` and :func:`node_of` and imports no other library. :mod:`shardwise.interop` has one
module per library, which registers its functions here at import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = [
    "DescribedNode", "ForeignNode", "described_node_of", "foreign_type_of", "native", "node_of", "register_library",
]  # fmt: skip


class ForeignNode(NamedTuple):
    """One level of a tree whose class is registered in another library."""

    children: list[Any]
    keys: list[Any]
    structure: Any  # hashable; its method unflatten(children) makes the object


class DescribedNode(NamedTuple):
    """What a description of a node describes, where other descriptions of its class describe arrays."""

    example: Any  # an object of the node's class
    children: list[Any]


_converters: dict[str, Callable[[Any], Any]] = {}  # by the first part of the module of an object's class
_type_readers: dict[str, Callable[[Any], Any]] = {}  # the same keys
_node_readers: list[Callable[[Any], ForeignNode | None]] = []
_description_readers: list[Callable[[Any], DescribedNode | None]] = []


def register_library(
    packages: tuple[str, ...],
    converter: Callable[[Any], Any],
    node_reader: Callable[[Any], ForeignNode | None],
    description_reader: Callable[[Any], DescribedNode | None],
    type_reader: Callable[[Any], Any],
) -> None:
    """Register a library.

    Args:
        packages: the top-level packages that define its classes.
        converter: returns Shardwise's object for one of these packages, or its argument for objects without one.
        node_reader: takes an object of any class, and returns its node, or None for a leaf.
        description_reader: takes a leaf, and returns the node that it describes, or None.
        type_reader: takes a leaf of one of these packages, and returns what functions of the library see of its type
            beyond shape and dtype, as a hashable object; None if there is nothing.
    """
    _converters.update(dict.fromkeys(packages, converter))
    _type_readers.update(dict.fromkeys(packages, type_reader))
    _node_readers.append(node_reader)
    _description_readers.append(description_reader)


def native(x: Any) -> Any:
    """A mesh, spec, sharding or shape of another library as Shardwise's; anything else unchanged."""
    convert = _converters.get(str(type(x).__module__).partition(".")[0])
    return x if convert is None else convert(x)


def foreign_type_of(leaf: Any) -> Any:
    """What functions of its library see of a leaf's type beyond shape and dtype; None if there is nothing."""
    read = _type_readers.get(str(type(leaf).__module__).partition(".")[0])
    return None if read is None else read(leaf)


def node_of(x: Any) -> ForeignNode | None:
    """``x`` as a node of a tree, if its class is registered in another library that is loaded; else None."""
    for read in _node_readers:
        node = read(x)
        if node is not None:
            return node
    return None


def described_node_of(leaf: Any) -> DescribedNode | None:
    """The node that a leaf describes, such as a `jax.ShapeDtypeStruct` of a random key; None for other leaves."""
    for read in _description_readers:
        described = read(leaf)
        if described is not None:
            return described
    return None
