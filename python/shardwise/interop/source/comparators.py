# SPDX-License-Identifier: Apache-2.0
"""Recognise what the comparator of a sort compares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..._core.ir import Op, Region, Value
from .regions import direction_of
from .scope import Scope
from .target import attributes

__all__ = ["Key", "key_function", "keys_of_sort"]


class KeyFunction(NamedTuple):
    """What a comparator computes of one element before it compares: `|a|` in `|a| < |b|`, as a region of its own."""

    arguments: Sequence[Value]  # of the comparator; one for each operand that the key depends on
    ops: Sequence[Op]
    results: Sequence[Value]


class Key(NamedTuple):
    """A key of a sort.

    Attributes:
        value: its side of the comparator, which has the dtype of the key.
        operands: the places of the operands that it depends on.
        function: what computes the key of their elements; None if it is an operand.
        is_canonical: -0 equals 0, and every NaN equals every other.
    """

    value: Value
    operands: Sequence[int]
    function: KeyFunction | None
    is_descending: bool
    is_canonical: bool


def _number(value: Value) -> float | None:
    """The number that a constant is."""
    op = value.defining_op
    if op is None or op.name != "stablehlo.constant" or "complex" in value.type.dtype:
        return None
    return float(np.asarray(attributes(op)["value"]))


def _source(value: Value) -> tuple[Value, bool]:
    """What a comparator's side compares, and whether selects make it canonical.

    `x != x ? nan : (x == 0 ? 0 : x)` compares x. Another select is a computed key.
    """
    outer = value.defining_op
    if outer is None or outer.name != "stablehlo.select":
        return value, False
    test, chosen, other = outer.operands
    inner = other.defining_op
    if inner is None or inner.name != "stablehlo.select":
        return value, False
    source = inner.operands[2]
    is_nan, is_zero = test.defining_op, inner.operands[0].defining_op
    if is_nan is None or is_zero is None or (direction_of(is_nan), direction_of(is_zero)) != ("NE", "EQ"):
        return value, False
    nan, zeros = _number(chosen), (_number(is_zero.operands[1]), _number(inner.operands[1]))
    is_canonical = (
        all(side in (source, other) for side in is_nan.operands)
        and is_zero.operands[0] == source
        and zeros == (0.0, 0.0)
        and nan is not None
        and math.isnan(nan)
        and math.copysign(1, nan) > 0  # the total order has a NaN with a sign before all numbers
    )
    return (source, True) if is_canonical else (value, False)


def key_function(scope: Scope, key: Key) -> str:
    """Define the function that computes a key of scalars; its name."""
    assert key.function is not None
    return scope.function("key", key.function)


def keys_of_sort(scope: Scope, op: Op) -> list[Key]:
    """The keys of a sort whose comparator compares them one after another; other comparators are refused."""
    keys = _keys_of(op.regions[0])
    if keys is None:
        rule = "a sort must compare one key after another, each computed of one side in the same way as of the other"
        raise scope.refusal(op, rule, "another comparator", "sort by computed keys")
    return keys


def _keys_of(region: Region) -> list[Key] | None:
    keys: list[Key] = []
    value = region.results[0]
    while True:
        op = value.defining_op
        if op is None or op.name != "stablehlo.or":
            key = None if op is None else _key_of(region, op)
            return None if key is None else [*keys, key]
        # The first key decides, or it is equal and the others do; `or` and `and` in either order.
        found = next(((k, rest) for k, rest in _first_key(region, op) if k is not None), None)
        if found is None:
            return None
        keys.append(found[0])
        value = found[1]


def _first_key(region: Region, either: Op) -> Iterator[tuple[Key | None, Value]]:
    """The key of `less(key) or (equal(key) and rest)`, and the rest, for each way to read it."""
    for less, both in (either.operands, either.operands[::-1]):
        first, tie = less.defining_op, both.defining_op
        if first is not None and tie is not None and tie.name == "stablehlo.and":
            for equal, rest in (tie.operands, tie.operands[::-1]):
                if equal.defining_op is not None:
                    yield _key_of(region, first, equal.defining_op), rest


def _sides(op: Op) -> tuple[Value, Value, bool] | None:
    """What a comparison compares, and whether zeros and NaN are equal; None if its sides differ in that."""
    (left, is_canonical), (right, is_other_canonical) = map(_source, op.operands)
    if is_canonical != is_other_canonical:
        return None
    kind = attributes(op).get("compare_type")
    is_total = kind is not None and kind.value == "TOTALORDER"
    # A FLOAT comparison takes -0 and 0 as equal. It orders no NaN, so that any place will do for them.
    return left, right, is_canonical or ("float" in left.type.dtype and not is_total)


def _key_of(region: Region, op: Op, tie: Op | None = None) -> Key | None:
    """The key that an op compares; ``tie``, if there is one, must be its equality."""
    direction = direction_of(op)
    sides = _sides(op) if direction in ("LT", "GT") else None
    if sides is None:
        return None
    if tie is not None:
        equal = _sides(tie) if direction_of(tie) == "EQ" else None
        if equal is None or equal[2] != sides[2] or {*equal[:2]} != {*sides[:2]}:
            return None
    left, right, is_canonical = sides
    places = {argument: i for i, argument in enumerate(region.arguments)}
    read = _read(left)
    function = KeyFunction(
        [x for x in region.arguments if x in read], [o for o in region.ops if not read.isdisjoint(o.results)], [left]
    )
    elements = {places[argument] % 2 for argument in function.arguments}
    if len(elements) != 1 or not _is_mirrored(left, right, region.arguments, {}):
        return None
    operands = [places[argument] // 2 for argument in function.arguments]
    is_descending = (direction == "GT") == (elements == {0})
    return Key(left, operands, function if function.ops else None, is_descending, is_canonical)


def _is_mirrored(left: Value, right: Value, arguments: Sequence[Value], known: dict[tuple[Value, Value], bool]) -> bool:
    """Whether one side is the other with the elements exchanged. ``known``: for the pairs of values seen so far."""
    if (left, right) in known:
        return known[left, right]
    one, other = left.defining_op, right.defining_op
    if left in arguments or right in arguments:
        found = left in arguments and right == arguments[arguments.index(left) ^ 1]
    elif left == right or one is None or other is None:  # what is outside of the comparator, or constant
        found = left == right and _read(left).isdisjoint(arguments)
    else:
        found = (
            one.name == other.name
            and not one.regions
            and one.results.index(left) == other.results.index(right)
            and repr(attributes(one)) == repr(attributes(other))
            and len(one.operands) == len(other.operands)
            and all(_is_mirrored(a, b, arguments, known) for a, b in zip(one.operands, other.operands))
        )
    known[left, right] = found
    return found


def _read(value: Value) -> set[Value]:
    """All values that a value is computed of, and itself."""
    found, open_values = {value}, [value]
    while open_values:
        op = open_values.pop().defining_op
        new = set(op.operands) - found if op is not None else set()
        found |= new
        open_values += new
    return found
