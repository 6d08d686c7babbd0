# SPDX-License-Identifier: Apache-2.0
"""The types of the leaves that loops carry and branches return, and how they are settled.

>>> import numpy as np
>>> before, after = type_of("scan", 0.0, "carry"), type_of("scan", np.zeros(3, np.float32), "carry")
>>> str(before), str(after), str(settled(before, after))
('float64[]', 'float32[3]', 'float32[]')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array import Array
from ..array_leaves import numbers_of
from ..dtypes import is_float, way_to_numbers
from ..errors import DTypeError, ShapeError, described, message
from ..numpy._promote import result_dtype, weak_kind
from ..recording.tracing import Tracer
from ..trees import flatten, leaf_names
from ..trees.differences import difference

__all__ = [
    "LeafType",
    "Leaves",
    "check_trees",
    "check_types",
    "expect_function",
    "fits",
    "settled",
    "type_of",
    "types_of",
]

_MAX_LISTED = 3  # differences in one message
_CHANGE = "{0} -> {1} at {place}"


class LeafType(NamedTuple):
    """Shape and dtype of a leaf; ``weak`` for a Python number, whose dtype gives way to that of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak: type[int] | type[float] | type[complex] | None = None

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)


class Leaves(NamedTuple):
    """A tree taken apart: the leaves, their types, and the structure. ``name`` begins the places of the leaves."""

    name: str
    tree: Any
    leaves: list[Any]
    types: list[LeafType]
    structure: Any

    @property
    def places(self) -> list[str]:
        """Where each leaf is: ``carry['w']``."""
        return [self.name + path for path in leaf_names(self.tree)]


def type_of(what: str, leaf: Any, place: str) -> LeafType:
    """The type of the leaf at ``place``; DTypeError if it is not an array of numbers."""
    return _expect_numbers(what, leaf, place, _type_of(leaf))


def types_of(what: str, name: str, tree: Any) -> Leaves:
    """The leaves of a tree with their types; DTypeError if one is not an array of numbers."""
    leaves, structure = flatten(tree)
    types = [_type_of(leaf) for leaf in leaves]
    if None in types:
        places = [name + path for path in leaf_names(tree)]
        types = [_expect_numbers(what, *row) for row in zip(leaves, places, types)]
    return Leaves(name, tree, leaves, [leaf for leaf in types if leaf is not None], structure)


def _type_of(leaf: Any) -> LeafType | None:
    kind = weak_kind(leaf) if isinstance(leaf, (bool, int, float, complex, Tracer, Array)) else None
    array = leaf if isinstance(leaf, (Tracer, Array)) else numbers_of(leaf)
    weak = kind if isinstance(kind, type) else None
    return None if array is None else LeafType(tuple(array.shape), array.dtype, weak)


def _expect_numbers(what: str, leaf: Any, place: str, found: LeafType | None) -> LeafType:
    if found is None:
        got, way_out = f"{described(leaf)} at {place}", way_to_numbers(leaf) or ""
        raise DTypeError(message(what, "takes and returns arrays of numbers", got, way_out))
    return found


def settled(before: LeafType, after: LeafType) -> LeafType:
    """The type of a carry whose body returns ``after``: a Python number takes the dtype of the body's result."""
    if before.weak is None or before.dtype == after.dtype:
        return before
    dtype = joined(before.weak, after)
    return before if dtype == before.dtype else LeafType(before.shape, dtype)


def joined(weak: type[int] | type[float] | type[complex], other: LeafType) -> np.dtype[Any]:
    """The dtype of a Python number beside a leaf."""
    if other.weak is None and (is_float(other.dtype) or (weak is int and other.dtype.kind in "iu")):
        return other.dtype
    return result_dtype(weak(0), other.dtype)


def fits(leaf: LeafType, wanted: LeafType) -> bool:
    """Whether a leaf has this type, or is a Python number that takes it."""
    if leaf.shape != wanted.shape:
        return False
    return leaf.dtype == wanted.dtype or (leaf.weak is not None and joined(leaf.weak, wanted) == wanted.dtype)


def check_types(
    what: str,
    rule: str,
    wanted: Sequence[LeafType],
    found: Leaves,
    text: str = _CHANGE,
    origin: Callable[[int, Any], str] = lambda i, leaf: "",
) -> None:
    """DTypeError or ShapeError for the leaves of other types than ``wanted``.

    Args:
        text: how a pair of types is shown, with ``{0}``, ``{1}`` and ``{place}``.
        origin: takes the number of a leaf and the leaf, and returns what follows this text.
    """
    if all(map(fits, found.types, wanted)):
        return
    rows = enumerate(zip(wanted, found.types, found.places))
    wrong = [(i, *row) for i, row in rows if not fits(row[1], row[0])]
    shown = [
        text.format(before, after, place=place) + origin(i, found.leaves[i])
        for i, before, after, place in wrong[:_MAX_LISTED]
    ]
    shown += [f"{len(wrong) - _MAX_LISTED} more"] if len(wrong) > _MAX_LISTED else []
    is_shape = any(before.shape != after.shape for _, before, after, _ in wrong)
    way_out = "reshape or broadcast it" if is_shape else "convert it with astype"
    raise (ShapeError if is_shape else DTypeError)(message(what, rule, ", ".join(shown), way_out))


def check_trees(what: str, rule: str, trees: tuple[Leaves, Leaves], names: tuple[str, str]) -> None:
    """TypeError unless both trees have one structure. ``names``: what the message calls each of them."""
    first, second = trees
    if first.structure != second.structure:
        found = difference(second.tree, first.tree, None, names[0])
        raise TypeError(message(what, rule, found or difference(first.tree, second.tree, None, names[1])))


def expect_function(what: str, name: str, value: Any) -> None:
    """TypeError unless it can be called."""
    if not callable(value):
        raise TypeError(message(what, f"{name} must be a function", described(value)))
