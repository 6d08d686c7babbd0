# SPDX-License-Identifier: Apache-2.0
"""Sorts and random bits in `jax.lax`."""

from __future__ import annotations

from typing import NamedTuple

from ..._core.ir import Op, Region, Value
from ...errors import UnsupportedError, composed
from .scope import Scope, call, listed
from .table import attributes, emits

__all__: list[str] = []


class _Key(NamedTuple):
    operand: int
    is_descending: bool
    is_canonical: bool  # -0 equals 0, and every NaN equals every other


def _source(value: Value) -> tuple[Value, bool]:
    """The argument behind a comparator's side, and whether it is made canonical by selects."""
    canonical = False
    while value.defining_op is not None and value.defining_op.name == "stablehlo.select":
        value, canonical = value.defining_op.operands[2], True
    return value, canonical


def _keys(region: Region) -> list[_Key] | None:
    """The keys of a comparator that compares them one after another; None for other comparators."""
    keys: list[_Key] = []
    value = region.results[0]
    while True:
        op = value.defining_op
        rest = None
        if op is not None and op.name == "stablehlo.or":  # the first key decides, or it is equal and the others do
            tie = op.operands[1].defining_op
            if tie is None or tie.name != "stablehlo.and":
                return None
            op, rest = op.operands[0].defining_op, tie.operands[1]
        key = None if op is None or op.name != "stablehlo.compare" else _key(region, op)
        if key is None:
            return None
        keys.append(key)
        if rest is None:
            return keys
        value = rest


def _key(region: Region, op: Op) -> _Key | None:
    direction = attributes(op)["comparison_direction"].value
    (left, canonical), (right, _) = map(_source, op.operands)
    if left not in region.arguments or right not in region.arguments or direction not in ("LT", "GT"):
        return None
    i, j = region.arguments.index(left), region.arguments.index(right)
    if i // 2 != j // 2 or i == j:
        return None
    return _Key(i // 2, (direction == "GT") == (i < j), canonical)


@emits("stablehlo.sort")
def sort(scope: Scope, op: Op) -> str:
    keys = _keys(op.regions[0])
    if keys is None:
        rule = "a sort must compare its operands one after another"
        way_out = "sort by computed keys"
        place = op.location
        raise UnsupportedError(composed("to_jax", rule, "another comparator", way_out, place.file, place.line))
    own = attributes(op)
    dim, stable = own.get("dimension", -1), own.get("is_stable", False)
    operands = list(map(scope, op.operands))
    options = [f"dimension={dim}", f"is_stable={stable}", f"num_keys={len(keys)}"]
    is_float = ["float" in x.type.dtype for x in op.operands]
    plain = all(
        key.operand == i and not key.is_descending and (key.is_canonical or not is_float[i])
        for i, key in enumerate(keys)
    )
    if plain:
        sorted_all = call("lax.sort", listed(operands), *options)
        return f"{sorted_all}[0]" if len(operands) == 1 else sorted_all
    texts = [_key_text(scope, operands[key.operand], key, is_float[key.operand]) for key in keys]
    sorted_all = call("lax.sort", listed([*texts, *operands]), *options)
    return f"{sorted_all}[{len(keys)}]" if len(operands) == 1 else f"{sorted_all}[{len(keys)}:]"


def _key_text(scope: Scope, x: str, key: _Key, is_float: bool) -> str:
    text = x
    if is_float:
        text = call(scope.helper("total_order"), call(scope.helper("canonical"), x) if key.is_canonical else x)
    return call("lax.bitwise_not", text) if key.is_descending else text


@emits("chlo.top_k")
def top_k(scope: Scope, op: Op) -> str:
    return call("lax.top_k", scope(op.operands[0]), attributes(op)["k"])


def _algorithm(op: Op) -> str:
    name = attributes(op)["rng_algorithm"].value
    return f"lax.RandomAlgorithm.RNG_{name}"


@emits("stablehlo.rng_bit_generator")
def rng_bit_generator(scope: Scope, op: Op) -> str:
    kind = op.results[1].type
    options = [kind.shape, f'"{kind.dtype}"', f"algorithm={_algorithm(op)}"]
    return call("lax.rng_bit_generator", scope(op.operands[0]), *options)


@emits("shardwise.random_bits")
def random_bits(scope: Scope, op: Op) -> str:
    state, *starts = map(scope, op.operands)
    kind = op.results[1].type
    whole = tuple(attributes(op)["shape"])
    options = [listed(starts), kind.shape, whole, f'"{kind.dtype}"', _algorithm(op)]
    return call(scope.helper("random_part"), state, *options)
