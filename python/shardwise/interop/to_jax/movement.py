# SPDX-License-Identifier: Apache-2.0
"""Constants, and ops that move elements, in `jax.lax`."""

from __future__ import annotations

import numpy as np

from ..._core.ir import Op, Value
from ...dtypes import numpy_dtype
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .start_indices import starts_in_range
from .target import emits

__all__ = ["empty"]


def empty(scope: Scope, value: Value) -> str:
    """An array without elements; one of NumPy would become an operand of the `shard_map`, which XLA drops."""
    return call("lax.full", value.type.shape, scope.scalar(np.zeros((), numpy_dtype(value.type.dtype))[()]))


@emits("stablehlo.constant")
def constant(scope: Scope, op: Op) -> str:
    if 0 in op.results[0].type.shape:
        return empty(scope, op.results[0])
    return scope.constant(np.asarray(attributes(op)["value"]))


@emits("stablehlo.iota")
def iota(scope: Scope, op: Op) -> str:
    kind = op.results[0].type
    return call("lax.broadcasted_iota", f'"{kind.dtype}"', kind.shape, attributes(op)["iota_dimension"])


@emits("stablehlo.transpose")
def transpose(scope: Scope, op: Op) -> str:
    return call("lax.transpose", scope(op.operands[0]), attributes(op)["permutation"])


@emits("stablehlo.reshape")
def reshape(scope: Scope, op: Op) -> str:
    return call("lax.reshape", scope(op.operands[0]), op.results[0].type.shape)


@emits("stablehlo.broadcast_in_dim")
def broadcast_in_dim(scope: Scope, op: Op) -> str:
    dims = attributes(op)["broadcast_dimensions"]
    return call("lax.broadcast_in_dim", scope(op.operands[0]), op.results[0].type.shape, tuple(dims))


@emits("stablehlo.reverse")
def reverse(scope: Scope, op: Op) -> str:
    return call("lax.rev", scope(op.operands[0]), attributes(op)["dimensions"])


@emits("stablehlo.slice")
def slice_(scope: Scope, op: Op) -> str:
    starts, limits, steps = (attributes(op)[name] for name in ("start_indices", "limit_indices", "strides"))
    strides = [] if all(step == 1 for step in steps) else [steps]
    return call("lax.slice", scope(op.operands[0]), starts, limits, *strides)


@emits("stablehlo.pad")
def pad(scope: Scope, op: Op) -> str:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    rows = tuple(zip(*(attributes(op)[name] for name in names)))
    return call("lax.pad", *map(scope, op.operands), rows)


@emits("stablehlo.concatenate")
def concatenate(scope: Scope, op: Op) -> str:
    return call("lax.concatenate", listed(map(scope, op.operands)), attributes(op)["dimension"])


@emits("stablehlo.dynamic_slice")
def dynamic_slice(scope: Scope, op: Op) -> str:
    sizes = tuple(attributes(op)["slice_sizes"])
    x, starts = scope(op.operands[0]), starts_in_range(scope, op, sizes)
    return call("lax.dynamic_slice", x, starts, sizes, "allow_negative_indices=False")


@emits("stablehlo.dynamic_update_slice")
def dynamic_update_slice(scope: Scope, op: Op) -> str:
    x, update = map(scope, op.operands[:2])
    starts = starts_in_range(scope, op, op.operands[1].type.shape)
    return call("lax.dynamic_update_slice", x, update, starts, "allow_negative_indices=False")
