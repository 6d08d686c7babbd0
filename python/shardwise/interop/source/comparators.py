# SPDX-License-Identifier: Apache-2.0
"""Recognise what the comparator of a sort compares."""

from __future__ import annotations

from typing import NamedTuple

from ..._core.ir import Op, Region, Value
from .scope import Scope
from .target import attributes

__all__ = ["Key", "keys_of_sort"]


class Key(NamedTuple):
    """A key of a sort."""

    operand: int
    is_descending: bool
    is_canonical: bool  # -0 equals 0, and every NaN equals every other


def _source(value: Value) -> tuple[Value, bool]:
    """The argument that a comparator's side reads, and whether it is made canonical by selects."""
    canonical = False
    while value.defining_op is not None and value.defining_op.name == "stablehlo.select":
        value, canonical = value.defining_op.operands[2], True
    return value, canonical


def keys_of_sort(scope: Scope, op: Op) -> list[Key]:
    """The keys of a sort whose comparator compares them one after another; other comparators are refused."""
    keys = _keys_of(op.regions[0])
    if keys is None:
        rule = "a sort must compare its operands one after another"
        raise scope.refusal(op, rule, "another comparator", "sort by computed keys")
    return keys


def _keys_of(region: Region) -> list[Key] | None:
    keys: list[Key] = []
    value = region.results[0]
    while True:
        op = value.defining_op
        rest = None
        if op is not None and op.name == "stablehlo.or":  # the first key decides, or it is equal and the others do
            tie = op.operands[1].defining_op
            if tie is None or tie.name != "stablehlo.and":
                return None
            op, rest = op.operands[0].defining_op, tie.operands[1]
        key = None if op is None or op.name != "stablehlo.compare" else _key_of(region, op)
        if key is None:
            return None
        keys.append(key)
        if rest is None:
            return keys
        value = rest


def _key_of(region: Region, op: Op) -> Key | None:
    direction = attributes(op)["comparison_direction"].value
    (left, canonical), (right, _) = map(_source, op.operands)
    if left not in region.arguments or right not in region.arguments or direction not in ("LT", "GT"):
        return None
    i, j = region.arguments.index(left), region.arguments.index(right)
    if i // 2 != j // 2 or i == j:
        return None
    return Key(i // 2, (direction == "GT") == (i < j), canonical)
