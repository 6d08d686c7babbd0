# SPDX-License-Identifier: Apache-2.0
"""gather and scatter in `jax.lax`."""

from __future__ import annotations

import math
from typing import Any

from ..._core.ir import Op, Value
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .movement import empty
from .reductions import combiner_of
from .start_indices import greatest_start
from .target import emits

__all__: list[str] = []

_SCATTERS = {
    "lax.add": "scatter_add", "lax.sub": "scatter_add", "lax.mul": "scatter_mul", "lax.max": "scatter_max",
    "lax.min": "scatter_min", "lax.bitwise_or": "scatter_max", "lax.bitwise_and": "scatter_min",
}  # fmt: skip


def _indices(scope: Scope, indices: Value, fields: dict[str, Any]) -> str:
    """The indices with their vectors in the last dim, as JAX takes them."""
    name, ndim = scope(indices), len(indices.type.shape)
    dim = fields.get("index_vector_dim", 0)
    if dim == ndim:
        return call("lax.expand_dims", name, (ndim,))
    if dim == ndim - 1:
        return name
    return call("lax.transpose", name, (*[d for d in range(ndim) if d != dim], dim))


def _numbers(scope: Scope, kind: str, pairs: dict[str, tuple[int, ...]]) -> str:
    """The dimension numbers, as a global: they are long."""
    given = [f"{name}={tuple(value)}" for name, value in pairs.items() if value or "batching" not in name]
    return scope.table("DIMS", call(f"lax.{kind}", *given))


@emits("stablehlo.gather")
def gather(scope: Scope, op: Op) -> str:
    if 0 in op.results[0].type.shape:
        return empty(scope, op.results[0])  # JAX refuses slices of no elements
    fields = attributes(op)["dimension_numbers"].fields
    numbers = _numbers(
        scope,
        "GatherDimensionNumbers",
        {
            "offset_dims": fields.get("offset_dims", ()),
            "collapsed_slice_dims": fields.get("collapsed_slice_dims", ()),
            "start_index_map": fields.get("start_index_map", ()),
            "operand_batching_dims": fields.get("operand_batching_dims", ()),
            "start_indices_batching_dims": fields.get("start_indices_batching_dims", ()),
        },
    )
    sizes = tuple(attributes(op)["slice_sizes"])
    named = fields.get("start_index_map", ())
    indices = _indices(scope, op.operands[1], fields)
    if any(sizes[d] > 1 for d in named) or len(named) == math.prod(op.operands[1].type.shape):
        # XLA clamps again when it has cut slices out of the result, and then by the smaller size. A gather of one slice
        # is a dynamic slice to it (start_indices.py).
        dtype = op.operands[1].type.dtype
        ends = [greatest_start(op.operands[0].type.shape[d], sizes[d], dtype) for d in named]
        indices = call("jnp.clip", indices, 0, f'np.array({ends}, "{dtype}")')
    return call("lax.gather", scope(op.operands[0]), indices, numbers, sizes, 'mode="clip"')


@emits("stablehlo.scatter")
def scatter(scope: Scope, op: Op) -> str:
    fields = attributes(op)["scatter_dimension_numbers"].fields
    numbers = _numbers(
        scope,
        "ScatterDimensionNumbers",
        {
            "update_window_dims": fields.get("update_window_dims", ()),
            "inserted_window_dims": fields.get("inserted_window_dims", ()),
            "scatter_dims_to_operand_dims": fields.get("scatter_dims_to_operand_dims", ()),
            "operand_batching_dims": fields.get("input_batching_dims", ()),
            "scatter_indices_batching_dims": fields.get("scatter_indices_batching_dims", ()),
        },
    )
    count = len(op.results)
    indices = _indices(scope, op.operands[count], fields)
    operands, updates = list(map(scope, op.operands[:count])), list(map(scope, op.operands[count + 1 :]))
    function = _function(op)
    if function is None:  # JAX has no scatter with a region
        combine = scope.function("combine", op.regions[0])
        in_turn = call(scope.helper("scattered_in_turn"), combine, listed(operands), indices, listed(updates), numbers)
        return f"{in_turn}[0]" if count == 1 else in_turn
    update = call("lax.neg", *updates) if combiner_of(op.regions[0]) == "lax.sub" else updates[0]
    given = [*operands, indices, update, numbers]
    if _has_windows(op, fields):
        return call(scope.helper("scattered"), f"lax.{function}", *given)
    return call(f"lax.{function}", *given, "mode=lax.GatherScatterMode.FILL_OR_DROP")


def _function(op: Op) -> str | None:
    """The scatter of JAX that combines as the region does."""
    region = op.regions[0]
    if len(op.results) == 1 and region.results == region.arguments[1:]:
        return "scatter"
    combiner = combiner_of(region) or ""
    is_bitwise = combiner.startswith("lax.bitwise")  # of bool, the largest or the smallest
    return None if is_bitwise and op.operands[0].type.dtype != "bool" else _SCATTERS.get(combiner)


def _has_windows(op: Op, fields: dict[str, Any]) -> bool:
    """Whether a window has several elements along a dim that indices choose, so that a part may be outside."""
    absent = {*fields.get("inserted_window_dims", ()), *fields.get("input_batching_dims", ())}
    kept = [d for d in range(len(op.operands[0].type.shape)) if d not in absent]
    sizes = dict(zip(kept, (op.operands[2].type.shape[d] for d in fields.get("update_window_dims", ()))))
    return any(sizes.get(d, 1) > 1 for d in fields.get("scatter_dims_to_operand_dims", ()))
