# SPDX-License-Identifier: Apache-2.0
"""Sorts in NumPy."""

from __future__ import annotations

from ..._core.ir import Op
from ..source.comparators import Key, key_function, keys_of_sort
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .target import emits

__all__: list[str] = []


@emits("stablehlo.sort")
def sort(scope: Scope, op: Op) -> str:
    keys = keys_of_sort(scope, op)
    dim = attributes(op).get("dimension", -1)
    operands = list(map(scope, op.operands))
    texts = [_key_text(scope, operands, key) for key in keys]
    if len(operands) == 1 and texts == operands:
        return f'np.sort({operands[0]}, {dim}, kind="stable")'
    text = call(scope.helper("sort"), listed(operands), listed(texts), dim)
    return f"{text}[0]" if len(operands) == 1 else text


def _key_text(scope: Scope, operands: list[str], key: Key) -> str:
    dtype, given = key.value.type.dtype, [operands[i] for i in key.operands]
    x = given[0] if key.function is None else call(key_function(scope, key), *given)
    is_sorted = key.is_canonical and dtype in ("float16", "float32", "float64")  # NumPy knows no NaN of other floats
    if "float" in dtype and (key.is_descending or not is_sorted):
        x = call(scope.helper("total_order"), call(scope.helper("canonical"), x) if key.is_canonical else x)
    return f"~{x}" if key.is_descending else x


@emits("chlo.top_k")
def top_k(scope: Scope, op: Op) -> str:
    x, k = scope(op.operands[0]), attributes(op)["k"]
    key = call(scope.helper("total_order"), x) if "float" in op.operands[0].type.dtype else x
    return call(scope.helper("top_k"), x, key, k)
