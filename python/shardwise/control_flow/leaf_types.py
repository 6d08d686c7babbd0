# SPDX-License-Identifier: Apache-2.0
"""The types of the leaves that loops carry and branches return, and how they are settled.

>>> import numpy as np
>>> before, after = type_of("scan", 0.0, "carry"), type_of("scan", np.zeros(3, np.float32), "carry")
>>> str(before), str(after), str(settled(before, after))
('float64[]', 'float32[3]', 'float32[]')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array import Array
from ..array_leaves import numbers_of
from ..dtypes import is_float
from ..errors import DTypeError, Error, ShapeError, described, message, shown
from ..numpy._promote import result_dtype, weak_kind
from ..tracing import Tracer
from ..trees import flatten, leaf_names
from ..trees.differences import difference

__all__ = [
    "LeafType",
    "Leaves",
    "check_trees",
    "expect_bool",
    "expect_function",
    "fits",
    "mismatch",
    "settled",
    "type_of",
    "types_of",
]

_MAX_LISTED = 3  # differences in one message


class LeafType(NamedTuple):
    """Shape and dtype of a leaf; ``weak`` for a Python number, whose dtype gives way to that of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak: type[int] | type[float] | None = None

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)


class Leaves(NamedTuple):
    """A tree taken apart: the leaves, their types and places, and the structure."""

    leaves: list[Any]
    types: list[LeafType]
    places: list[str]
    structure: Any


def type_of(what: str, leaf: Any, place: str) -> LeafType:
    """The type of the leaf at ``place``; DTypeError if it is not an array of numbers."""
    kind = weak_kind(leaf) if isinstance(leaf, (bool, int, float, Tracer, Array)) else None
    array = leaf if isinstance(leaf, (Tracer, Array)) else numbers_of(leaf)
    if array is None:
        raise DTypeError(message(what, "takes and returns arrays of numbers", f"{described(leaf)} at {place}"))
    return LeafType(tuple(array.shape), array.dtype, kind if isinstance(kind, type) else None)


def types_of(what: str, name: str, tree: Any) -> Leaves:
    """The leaves of a tree with their types. ``name`` begins their places: ``carry['w']``."""
    leaves, structure = flatten(tree)
    places = [name + path for path in leaf_names(tree)]
    return Leaves(leaves, [type_of(what, *row) for row in zip(leaves, places)], places, structure)


def settled(before: LeafType, after: LeafType) -> LeafType:
    """The type of a carry whose body returns ``after``: a Python number takes the dtype of the body's result."""
    if before.weak is None or before.dtype == after.dtype:
        return before
    dtype = joined(before.weak, after)
    return before if dtype == before.dtype else LeafType(before.shape, dtype)


def joined(weak: type[int] | type[float], other: LeafType) -> np.dtype[Any]:
    """The dtype of a Python number beside a leaf."""
    if other.weak is None and (is_float(other.dtype) or (weak is int and other.dtype.kind in "iu")):
        return other.dtype
    return result_dtype(weak(0), other.dtype)


def fits(leaf: LeafType, wanted: LeafType) -> bool:
    """Whether a leaf has this type, or is a Python number that takes it."""
    if leaf.shape != wanted.shape:
        return False
    return leaf.dtype == wanted.dtype or (leaf.weak is not None and joined(leaf.weak, wanted) == wanted.dtype)


def mismatch(what: str, rule: str, rows: Sequence[tuple[LeafType, LeafType, str]], text: str) -> Error | None:
    """The error of the pairs of types that differ, each with its place; None if all fit.

    Args:
        text: how a pair is shown, with ``{0}``, ``{1}`` and ``{place}``.
    """
    wrong = [row for row in rows if not fits(row[1], row[0])]
    if not wrong:
        return None
    shown = [text.format(before, after, place=place) for before, after, place in wrong[:_MAX_LISTED]]
    shown += [f"{len(wrong) - _MAX_LISTED} more"] if len(wrong) > _MAX_LISTED else []
    is_shape = any(before.shape != after.shape for before, after, _ in wrong)
    way_out = "reshape or broadcast it" if is_shape else "convert it with astype"
    return (ShapeError if is_shape else DTypeError)(message(what, rule, ", ".join(shown), way_out))


def check_trees(what: str, rule: str, trees: tuple[Any, Any], names: tuple[str, str], way_out: str = "") -> None:
    """TypeError unless both trees have one structure. ``names``: what the message calls each of them."""
    first, second = trees
    if flatten(first)[1] == flatten(second)[1]:
        return
    found = difference(second, first, None, names[0]) or difference(first, second, None, names[1])
    raise TypeError(message(what, rule, found, way_out))


def expect_function(what: str, name: str, value: Any) -> None:
    """TypeError unless it can be called."""
    if not callable(value):
        raise TypeError(message(what, f"{name} must be a function", described(value)))


def expect_bool(what: str, name: str, value: Any) -> bool:
    """The option as a bool; TypeError if it is none."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(message(what, f"{name} must be a bool", shown(value)))
    return bool(value)
