# SPDX-License-Identifier: Apache-2.0
"""gather and scatter in NumPy."""

from __future__ import annotations

from typing import Any

from ..._core.ir import Op
from ..source.narrow_dtypes import is_narrow_float
from ..source.regions import op_of_combiner
from ..source.scope import Scope, call
from ..source.target import attributes
from .elementwise import UFUNCS
from .target import emits

__all__: list[str] = []

_COMBINERS = {**UFUNCS, "stablehlo.subtract": "subtract"}


def _indices(scope: Scope, op: Op, dim: int) -> str:
    """The indices with their vectors in the last dim."""
    name, ndim = scope(op.operands[1]), len(op.operands[1].type.shape)
    if op.operands[1].type.dtype == "uint64":
        name = f"np.minimum({name}, 2**63 - 1)"  # `places` computes in int64
    if dim == ndim:
        return f"np.reshape({name}, {(*op.operands[1].type.shape, 1)})"
    return name if dim == ndim - 1 else call("np.moveaxis", name, dim, -1)


def _places(
    scope: Scope, op: Op, fields: dict[str, Any], names: dict[str, str], sizes: tuple[int, ...], ndim: int
) -> str:
    """A table of the dims of an access: by dim of the operand, its component, its dim of the windows and its size."""
    operand_batch = tuple(fields.get(names["operand_batch"], ()))
    collapsed = {*fields.get(names["collapsed"], ()), *operand_batch}
    indexed = tuple(fields.get(names["map"], ()))
    windows = iter(fields.get(names["windows"], ()))
    vector = fields.get("index_vector_dim", 0)
    batches = dict(zip(operand_batch, fields.get(names["index_batch"], ())))
    window_dims = set(fields.get(names["windows"], ()))
    batch_dims = [d for d in range(ndim) if d not in window_dims]
    rows = []
    for d, size in enumerate(sizes):
        component = indexed.index(d) if d in indexed else None
        place = None if d in collapsed else next(windows)
        batch = batches.get(d)
        rows.append((component, place, size, None if batch is None else batch - (batch > vector)))
    return scope.table("DIMS", repr((tuple(rows), tuple(batch_dims), ndim)))


@emits("stablehlo.gather")
def gather(scope: Scope, op: Op) -> str:
    fields = attributes(op)["dimension_numbers"].fields
    names = {
        "operand_batch": "operand_batching_dims",
        "collapsed": "collapsed_slice_dims",
        "map": "start_index_map",
        "windows": "offset_dims",
        "index_batch": "start_indices_batching_dims",
    }
    sizes = tuple(attributes(op)["slice_sizes"])
    table = _places(scope, op, fields, names, sizes, len(op.results[0].type.shape))
    x = scope(op.operands[0])
    indices = _indices(scope, op, fields.get("index_vector_dim", 0))
    return f"{x}[{scope.helper('places')}({x}.shape, {indices}, {table}, clip=True)]"


@emits("stablehlo.scatter")
def scatter(scope: Scope, op: Op) -> str:
    if len(op.results) != 1:
        rule = "a scatter of several operands has no form in NumPy"
        raise scope.refusal(op, rule, f"{len(op.results)} operands", "scatter them one by one")
    region = op.regions[0]
    is_set = region.results == region.arguments[1:]
    ufunc = None if is_set else _COMBINERS.get(op_of_combiner(region) or "")
    if not is_set and ufunc is None:
        rule = "a scatter must combine with one op, or replace"
        got = f"a region of {len(region.ops)} ops"
        raise scope.refusal(op, rule, got, "use one op, or run the program on the virtual mesh")
    fields = attributes(op)["scatter_dimension_numbers"].fields
    names = {
        "operand_batch": "input_batching_dims",
        "collapsed": "inserted_window_dims",
        "map": "scatter_dims_to_operand_dims",
        "windows": "update_window_dims",
        "index_batch": "scatter_indices_batching_dims",
    }
    updates = op.operands[2].type.shape
    windows = iter(fields.get(names["windows"], ()))
    single = {*fields.get(names["collapsed"], ()), *fields.get(names["operand_batch"], ())}
    sizes = tuple(1 if d in single else updates[next(windows)] for d in range(len(op.operands[0].type.shape)))
    table = _places(scope, op, fields, names, sizes, len(updates))
    indices = _indices(scope, op, fields.get("index_vector_dim", 0))
    combine = "None" if ufunc is None else f"np.{ufunc}"
    x, given, dtype = scope(op.operands[0]), scope(op.operands[2]), op.results[0].type.dtype
    if ufunc not in ("add", "multiply") or not is_narrow_float(dtype):
        return call(scope.helper("scatter"), x, indices, given, table, combine)
    wide = [f'{text}.astype("float32")' for text in (x, given)]
    return f'{call(scope.helper("scatter"), wide[0], indices, wide[1], table, combine)}.astype("{dtype}")'
