# SPDX-License-Identifier: Apache-2.0
"""gather and scatter in `jax.lax`."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from ..._core.ir import Op
from ...dtypes import numpy_dtype
from ..source.scope import Scope, call
from ..source.target import attributes
from .movement import empty
from .reductions import combiner_of
from .target import emits

__all__: list[str] = []

_SCATTERS = {
    "lax.add": "scatter_add", "lax.sub": "scatter_add", "lax.mul": "scatter_mul", "lax.max": "scatter_max",
    "lax.min": "scatter_min", "lax.bitwise_or": "scatter_max", "lax.bitwise_and": "scatter_min",
}  # fmt: skip


def _indices(scope: Scope, op: Op, fields: dict[str, Any]) -> str:
    """The indices with their vectors in the last dim, as JAX takes them."""
    kind = op.operands[1].type
    name, ndim = scope(op.operands[1]), len(kind.shape)
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
    indices = _indices(scope, op, fields)
    if any(sizes[d] > 1 for d in named):
        # XLA clamps again when it has cut slices out of the result, and then by the smaller size.
        most = int(ml_dtypes.iinfo(numpy_dtype(op.operands[1].type.dtype)).max)  # type: ignore[no-untyped-call]
        ends = [min(op.operands[0].type.shape[d] - sizes[d], most) for d in named]
        indices = call("jnp.clip", indices, 0, f'np.array({ends}, "{op.operands[1].type.dtype}")')
    return call("lax.gather", scope(op.operands[0]), indices, numbers, sizes, 'mode="clip"')


@emits("stablehlo.scatter")
def scatter(scope: Scope, op: Op) -> str:
    if len(op.results) != 1:
        rule = "a scatter of several operands has no form in jax.lax"
        raise scope.refusal(op, rule, f"{len(op.results)} operands", "scatter them one by one")
    region = op.regions[0]
    combiner = combiner_of(region)
    function = "scatter" if region.results == region.arguments[1:] else _SCATTERS.get(combiner or "")
    if function is None or ((combiner or "").startswith("lax.bitwise") and op.operands[0].type.dtype != "bool"):
        rule = "a scatter must add, subtract, multiply, take the maximum or minimum, or replace"
        got = combiner or f"a region of {len(region.ops)} ops"
        raise scope.refusal(op, rule, got, "use one of these, or run the program on the virtual mesh")
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
    x, updates = scope(op.operands[0]), scope(op.operands[2])
    if combiner == "lax.sub":
        updates = call("lax.neg", updates)
    given = [x, _indices(scope, op, fields), updates, numbers]
    if _has_windows(op, fields):
        return call(scope.helper("scattered"), f"lax.{function}", *given)
    return call(f"lax.{function}", *given, "mode=lax.GatherScatterMode.FILL_OR_DROP")


def _has_windows(op: Op, fields: dict[str, Any]) -> bool:
    """Whether a window has several elements along a dim that indices choose, so that a part may be outside."""
    absent = {*fields.get("inserted_window_dims", ()), *fields.get("input_batching_dims", ())}
    kept = [d for d in range(len(op.operands[0].type.shape)) if d not in absent]
    sizes = dict(zip(kept, (op.operands[2].type.shape[d] for d in fields.get("update_window_dims", ()))))
    return any(sizes.get(d, 1) > 1 for d in fields.get("scatter_dims_to_operand_dims", ()))
