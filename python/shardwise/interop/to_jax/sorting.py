# SPDX-License-Identifier: Apache-2.0
"""Sorts and random bits in `jax.lax`."""

from __future__ import annotations

from ..._core.ir import Op
from ..source.comparators import Key, keys_of_sort
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .target import emits

__all__: list[str] = []


@emits("stablehlo.sort")
def sort(scope: Scope, op: Op) -> str:
    keys = keys_of_sort(scope, op)
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


def _key_text(scope: Scope, x: str, key: Key, is_float: bool) -> str:
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
