# SPDX-License-Identifier: Apache-2.0
"""Sorts and random bits in `jax.lax`."""

from __future__ import annotations

from ..._core.ir import Op
from ..source.comparators import Key, key_function, keys_of_sort
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .narrow import converted, form_of_integer, returned, rows_returned
from .target import emits

__all__: list[str] = []


@emits("stablehlo.sort")
def sort(scope: Scope, op: Op) -> str:
    keys = keys_of_sort(scope, op)
    own = attributes(op)
    dim, stable = own.get("dimension", -1), own.get("is_stable", False)
    dtypes = [x.type.dtype for x in op.operands]
    forms = list(map(form_of_integer, dtypes))  # XLA:CPU sorts int2 wrongly
    operands = list(map(converted, forms, map(scope, op.operands)))
    options = [f"dimension={dim}", f"is_stable={stable}", f"num_keys={len(keys)}"]
    texts = []
    if not all(_is_operand(i, key) for i, key in enumerate(keys)):
        texts = [_key_text(scope, op, operands, key) for key in keys]
    sorted_all = call("lax.sort", listed([*texts, *operands]), *options)
    if len(operands) == 1:
        return returned(forms[0], f"{sorted_all}[{len(texts)}]")
    if any(forms):
        return rows_returned(forms, f"{sorted_all}[{len(texts)}:]")
    return f"{sorted_all}[{len(texts)}:]" if texts else sorted_all


def _is_operand(place: int, key: Key) -> bool:
    """Whether `lax.sort` compares the operand at this place as the key says."""
    dtype = key.value.type.dtype
    is_ordered = (key.is_canonical and not dtype.startswith(("float8", "float4"))) or "float" not in dtype
    return key.function is None and list(key.operands) == [place] and not key.is_descending and is_ordered


def _key_text(scope: Scope, op: Op, operands: list[str], key: Key) -> str:
    dtype = key.value.type.dtype
    if key.function is None:
        text = operands[key.operands[0]]
    else:
        given = [scope(op.operands[i]) for i in key.operands]
        text = converted(form_of_integer(dtype), f"jnp.vectorize({key_function(scope, key)})({', '.join(given)})")
    if "float" in dtype:
        is_canonical = key.is_canonical and dtype != "float8_e8m0fnu"  # which has one NaN, and no zero
        text = call(scope.helper("total_order"), call(scope.helper("canonical"), text) if is_canonical else text)
    return call("lax.bitwise_not", text) if key.is_descending else text


@emits("chlo.top_k")
def top_k(scope: Scope, op: Op) -> str:
    return call("lax.top_k", scope(op.operands[0]), attributes(op)["k"])


def _algorithm(op: Op) -> str:
    name = attributes(op)["rng_algorithm"].value
    return f"lax.RandomAlgorithm.RNG_{name}"


def _generator(scope: Scope, op: Op) -> str:
    """The function that generates bits; an error for a state that nothing takes."""
    kind = op.operands[0].type
    if (kind.dtype, tuple(kind.shape)) == ("uint64", (3,)):
        return scope.helper("philox")
    if (kind.dtype, tuple(kind.shape)) not in (("uint32", (4,)), ("uint64", (2,))):
        rule = "the state of a random generator must be uint32[4], uint64[2] or uint64[3]"
        way_out = "take one of these, or run the program on the virtual mesh"
        raise scope.refusal(op, rule, f"{kind.dtype}{list(kind.shape)}", way_out)
    return "lax.rng_bit_generator" if op.results[1].type.dtype.startswith("uint") else scope.helper("generated")


@emits("stablehlo.rng_bit_generator")
def rng_bit_generator(scope: Scope, op: Op) -> str:
    kind = op.results[1].type
    options = [kind.shape, f'"{kind.dtype}"', f"algorithm={_algorithm(op)}"]
    return call(_generator(scope, op), scope(op.operands[0]), *options)


@emits("shardwise.random_bits")
def random_bits(scope: Scope, op: Op) -> str:
    starts = list(map(scope, op.operands[1:]))
    kind = op.results[1].type
    whole = tuple(attributes(op)["shape"])
    options = [listed(starts), kind.shape, whole, f'"{kind.dtype}"', _algorithm(op)]
    return call(scope.helper("random_part"), _generator(scope, op), scope(op.operands[0]), *options)
