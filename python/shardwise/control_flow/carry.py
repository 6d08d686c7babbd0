# SPDX-License-Identifier: Apache-2.0
"""What the steps of a loop return: the carry, which the next step gets, and the rows that a scan stacks."""

from __future__ import annotations

from typing import Any

from .._core import ir as _ir
from ..recording.tracing import Tracer
from ..trees import unflatten
from .leaf_types import LeafType, Leaves, check_trees, check_types, settled, types_of

__all__ = ["Carry", "Rows"]


class Carry:
    """The initial carry of a loop, and the types that its leaves have at every step."""

    def __init__(self, what: str, init: Any) -> None:
        self._what = what
        self._parts: Leaves = types_of(what, "carry", init)
        self.types = self._parts.types
        self._given: list[Any] = []  # the leaves that a step got last

    @property
    def leaves(self) -> list[Any]:
        """The initial leaves, as the user gave them."""
        return self._parts.leaves

    def tree(self, leaves: list[Any]) -> Any:
        """A carry with these leaves."""
        self._given = leaves
        return unflatten(self._parts.structure, leaves)

    def returned(self, result: Any) -> list[Any] | None:
        """The leaves of the carry that a step returned; None if they changed ``types``, and the loop must start anew.

        Raises:
            TypeError: the result is another tree. DTypeError, ShapeError: a leaf has another type.
        """
        after = types_of(self._what, "carry", result)
        names = ("the initial carry", "the result of the body")
        check_trees(self._what, "the carry must be the same tree after the body", (self._parts, after), names)
        before, self.types = self.types, [settled(*row) for row in zip(self.types, after.types)]
        if self.types != before:
            return None
        rule = "the carry must have the same type after the body"
        check_types(self._what, rule, self.types, after, origin=self._change_of)
        return after.leaves

    def _change_of(self, i: int, leaf: Any) -> str:
        """Where the body changed the type of leaf ``i`` to that of ``leaf``, for the error; "" outside of programs."""
        carry = self._given[i]
        if not isinstance(carry, Tracer) or not isinstance(leaf, Tracer):
            return ""
        file, line = leaf._trace.core.location_of_change(carry._value, leaf._value)
        return f", changed at {_ir.place_text(file, line)}" if file else ""


class Rows:
    """The second results of the steps of a scan."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._first: Leaves | None = None  # of the first step
        self.types: list[LeafType] = []

    def tree(self, leaves: list[Any]) -> Any:
        """The rows' tree with these leaves."""
        assert self._first is not None
        return unflatten(self._first.structure, leaves)

    def returned(self, result: Any) -> list[Any]:
        """The leaves of a step's row.

        Raises:
            TypeError, DTypeError, ShapeError: the row is not like that of the first step.
        """
        parts = types_of(self._what, "y", result)
        if self._first is None:
            self._first = parts
            self.types = [LeafType(leaf.shape, leaf.dtype) for leaf in parts.types]
            return parts.leaves
        names = ("the first row", "a later one")
        check_trees(self._what, "y must be the same tree at every step", (self._first, parts), names)
        check_types(self._what, "y must have the same type at every step", self.types, parts)
        return parts.leaves
