# SPDX-License-Identifier: Apache-2.0
"""Why devices repeat the work of a line, where a tensor was split before: what lost the split, and how to keep it.

xs = x.reshape(4, -1, 32)               # x is split along dim 0 over "data"
loss, _ = sw.scan(step, 0.0, xs)        # each trip reads a row of xs: all devices compute the same
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..user_code.call_sites import called_at

__all__ = ["LostSplit", "axes_text", "lost_split", "op_text"]


class Reshape(NamedTuple):
    """A reshape, by the variables and the shapes of its operand and its result; "" for an unknown variable."""

    operand: str
    result: str
    old: Sequence[int]
    new: Sequence[int]

    def interleaved(self, dim: int, parts: int) -> str:
        """The code that gives the result's dims, with the rows of ``dim`` of the operand dealt out in turn.

        "" unless the reshape cuts this dim in two, and each of its ``parts`` has whole rows of the first one: the split
        of another size would be lost again.
        """
        old, new = list(self.old), list(self.new)
        if len(new) != len(old) + 1 or new[:dim] + new[dim + 2 :] != old[:dim] + old[dim + 1 :]:
            return ""
        count, rows = new[dim : dim + 2]
        if rows % parts:
            return ""
        sizes = ", ".join(map(str, [*new[:dim], -1, count, *new[dim + 2 :]]))
        order = list(range(len(new)))
        order[dim], order[dim + 1] = dim + 1, dim
        return f"{self.operand or 'x'}.reshape({sizes}).transpose({', '.join(map(str, order))})"

    def code(self) -> str:
        """The reshape as code."""
        return f"{self.operand or 'x'}.reshape({', '.join(map(str, self.new))})"


class LostSplit(NamedTuple):
    """A dim whose split an op cannot keep.

    Attributes:
        kind: ``"row"``, a loop that reads a row of the dim in each trip; ``"reshape"``; or ``"op"``, an op that needs
            the dim whole; ``"no rule"``, an op without a sharding rule.
        op: its name.
        file, line, column: of the op.
        variable: what holds the tensor that is split.
        dim: of that tensor.
        axes: that split it.
        instead: another dim to split, of the result of a reshape, and otherwise of the tensor; -1 for none.
        reshape: the one that loses the split, or that made the tensor.
    """

    kind: str
    op: str
    file: str
    line: int
    column: int
    variable: str
    dim: int
    axes: Sequence[str]
    instead: int
    reshape: Reshape | None

    def advice(self, axis_sizes: Mapping[str, int]) -> str:
        """What happens, and the ways out, on a mesh with these axes."""
        parts = math.prod(axis_sizes[axis] for axis in self.axes)
        name = self.variable or "x"
        axes = axes_text(self.axes)
        split = f"sw.split({name}, {self.instead}, {axes})" if self.instead >= 0 else ""
        if self.kind == "row":
            ways = [f"split another dim of it, {split}" if split else "", self._interleaved(parts)]
            return f"each trip of the loop reads a row of {name} along dim {self.dim}, which {axes} splits; {_or(ways)}"
        if self.kind == "reshape" and self.reshape is not None:
            result = f"sw.split({self.reshape.code()}, {self.instead}, {axes})" if self.instead >= 0 else ""
            ways = [self._interleaved(parts), f"split its result, {result}" if result else ""]
            return f"reshape cuts dim {self.dim} of {name}, which {axes} splits; {_or(ways)}"
        op = called_at(self.file, self.line, self.column) or op_text(self.op)
        before = f"split another dim of it before, {split}" if split else ""
        if self.kind == "no rule":
            rule = "give it a rule, sw.register_custom_call(…, rule=…) or sw.jit(sharding_rules=…)"
            return f"{op} has no sharding rule, and dim {self.dim} of {name} is split over {axes}; {rule}"
        return f"{op} needs all of dim {self.dim} of {name}, which {axes} splits; {_or([before])}"

    def _interleaved(self, parts: int) -> str:
        # The rows of a loop are the first part of the dim that the reshape cut, which has the same number.
        code = "" if self.reshape is None else self.reshape.interleaved(self.dim, parts)
        return f"interleave the rows, {code}" if code else ""


def _or(ways: Sequence[str]) -> str:
    return ", or ".join(way for way in ways if way) or "call it where no dim is split, or on smaller arrays"


def axes_text(axes: Sequence[str]) -> str:
    """Mesh axes as an argument of ``split``: ``'x'``, or ``('x', 'y')``."""
    return repr(axes[0]) if len(axes) == 1 else f"({', '.join(map(repr, axes))})"


def op_text(op: str) -> str:
    """The name of an op in a message, where its line does not name the function that the user called."""
    name = op.removeprefix("stablehlo.")
    return "the call" if name == "custom_call" else name


def lost_split(row: Any, axis_names: Collection[str]) -> LostSplit | None:
    """A row of the extension; None where the compiler made the mesh of its axes."""
    if row is None:
        return None
    lost = LostSplit(*row)
    if lost.reshape is not None:
        lost = lost._replace(reshape=Reshape(*lost.reshape))
    return lost if all(axis in axis_names for axis in lost.axes) else None
