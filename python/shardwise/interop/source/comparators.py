# SPDX-License-Identifier: Apache-2.0
"""Recognise what the comparator of a sort compares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..._core.ir import Op, Region, Value
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
    is_nan, is_zero = _compared(test, "NE"), _compared(inner.operands[0], "EQ")
    if is_nan is None or is_zero is None or any(side not in (source, other) for side in is_nan):
        return value, False
    nan, zeros = _number(chosen), (_number(is_zero[1]), _number(inner.operands[1]))
    is_canonical = is_zero[0] == source and zeros == (0.0, 0.0) and nan is not None and nan != nan
    return (source, True) if is_canonical else (value, False)


def _compared(value: Value, direction: str) -> list[Value] | None:
    op = value.defining_op
    is_comparison = op is not None and op.name == "stablehlo.compare"
    if op is None or not is_comparison or attributes(op)["comparison_direction"].value != direction:
        return None
    return op.operands


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
        tie = rest = None
        if op is not None and op.name == "stablehlo.or":  # the first key decides, or it is equal and the others do
            both = op.operands[1].defining_op
            if both is None or both.name != "stablehlo.and":
                return None
            op, (tie, rest) = op.operands[0].defining_op, both.operands
        key = None if op is None or op.name != "stablehlo.compare" else _key_of(region, op, tie)
        if key is None:
            return None
        keys.append(key)
        if rest is None:
            return keys
        value = rest


def _key_of(region: Region, op: Op, tie: Value | None) -> Key | None:
    """The key that an op compares, and whose equality ``tie`` is."""
    direction = attributes(op)["comparison_direction"].value
    sides = list(map(_source, op.operands))
    equal = sides if tie is None else list(map(_source, _compared(tie, "EQ") or ()))
    (left, is_canonical), (right, is_other_canonical) = sides
    if is_canonical != is_other_canonical or set(equal) != set(sides):
        return None
    places = {argument: i for i, argument in enumerate(region.arguments)}
    function = KeyFunction([x for x in region.arguments if x in set(_read(left))], _ops_of(region, left), [left])
    elements = {places[argument] % 2 for argument in function.arguments}
    if len(elements) != 1 or direction not in ("LT", "GT") or not _is_mirrored(left, right, region.arguments):
        return None
    operands = [places[argument] // 2 for argument in function.arguments]
    is_descending = (direction == "GT") == (elements == {0})
    return Key(left, operands, function if function.ops else None, is_descending, is_canonical)


def _is_mirrored(left: Value, right: Value, arguments: Sequence[Value]) -> bool:
    """Whether one side is the other with the elements exchanged."""
    if left in arguments or right in arguments:
        return left in arguments and right == arguments[arguments.index(left) ^ 1]
    one, other = left.defining_op, right.defining_op
    if left == right or one is None or other is None:  # what is outside of the comparator, or constant
        return left == right and not any(value in arguments for value in _read(left))
    return (
        one.name == other.name
        and not one.regions
        and one.results.index(left) == other.results.index(right)
        and repr(attributes(one)) == repr(attributes(other))
        and len(one.operands) == len(other.operands)
        and all(_is_mirrored(a, b, arguments) for a, b in zip(one.operands, other.operands))
    )


def _read(value: Value) -> Iterator[Value]:
    """All values that a value is computed of, and itself."""
    yield value
    for operand in value.defining_op.operands if value.defining_op is not None else ():
        yield from _read(operand)


def _ops_of(region: Region, value: Value) -> list[Op]:
    """The ops of a region that compute a value, in their order."""
    read = set(_read(value))
    return [op for op in region.ops if not read.isdisjoint(op.results)]
