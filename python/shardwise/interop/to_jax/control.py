# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and barriers in `jax.lax`."""

from __future__ import annotations

import numpy as np

from ..._core.ir import Op
from ..source.scans import InputOfScan, RowsOfScan
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .target import emits

__all__: list[str] = []


@emits("stablehlo.while")
def while_loop(scope: Scope, op: Op) -> str:
    condition = scope.function("condition", op.regions[0], carry="in")
    body = scope.function("body", op.regions[1], carry="both")
    return _unpacked(op, call("lax.while_loop", condition, body, listed(map(scope, op.operands))))


@emits("shardwise.scan")
def scan(scope: Scope, op: Op) -> str:
    rows = RowsOfScan(op)
    body, first_carry = scope.fresh_name("body"), len(rows.inputs)
    carry, row = scope.fresh_name("carry"), scope.fresh_name("row")
    scope.line(f"def {body}({carry}, {row}):{scope.comment(op)}")
    with scope.indented():
        arguments = [scope.argument(x, x.name or f"a{i}") for i, x in enumerate(rows.body.arguments)]
        for names, whole in ((arguments[first_carry:], carry), (arguments[:first_carry], row)):
            if names:
                scope.line(f"{listed(names)[1:-1]} = {whole}")
        scope.region(rows.body)
        results = list(map(scope, rows.body.results))
        scope.line(f"return {listed(results[rows.outputs :])}, {listed(results[: rows.outputs])}")
    stacks = listed(_stack(scope, given, rows) for given in rows.inputs)
    order = f"length={rows.trips}" + (", reverse=True" if rows.is_reverse else "")
    text = call("lax.scan", body, listed(map(scope, rows.carries)), stacks, order)
    names = scope.fresh(op)
    carries, outputs = (listed(part) if part else "_" for part in (names[rows.outputs :], names[: rows.outputs]))
    scope.line(f"{carries}, {outputs} = {text}")
    for name in names[: rows.outputs] if rows.dimension else ():
        scope.line(f"{name} = jnp.moveaxis({name}, 0, {rows.dimension})")
    scope.rename(op.results, names)
    return ""


def _stack(scope: Scope, given: InputOfScan, rows: RowsOfScan) -> str:
    """The rows of all trips along dim 0: the operand, or a variable."""
    dim, begin, end = rows.dimension, max(given.offset, 0), min(given.offset + rows.trips, given.size)
    name = scope(given.stack)
    text = name if (begin, end) == (0, given.size) else f"lax.slice_in_dim({name}, {begin}, {end}, axis={dim})"
    if given.border is not None:
        border = f"jnp.expand_dims({scope(given.border)}, {dim})"
        text = f"jnp.concatenate({listed([border, text] if given.offset < 0 else [text, border])}, {dim})"
    text = f"jnp.moveaxis({text}, {dim}, 0)" if dim else text
    if text == name:
        return name
    rows_name = scope.fresh_name("rows")
    scope.line(f"{rows_name} = {text}")
    return rows_name


def _unpacked(op: Op, text: str) -> str:
    return f"{text}[0]" if len(op.results) == 1 else text


@emits("stablehlo.case")
def case(scope: Scope, op: Op) -> str:
    branches = [scope.function(f"branch_{i}", region) for i, region in enumerate(op.regions)]
    index, last = scope(op.operands[0]), scope.scalar(np.int32(len(branches) - 1))
    inside = f"({index} >= 0) & ({index} <= {last})"
    return call("lax.switch", call("lax.select", inside, index, last), listed(branches))


@emits("stablehlo.if")
def if_(scope: Scope, op: Op) -> str:
    names = ("if_true", "if_false")
    branches = [scope.function(name, region) for name, region in zip(names, op.regions)]
    return call("lax.cond", scope(op.operands[0]), *branches)


@emits("func.call")
def func_call(scope: Scope, op: Op) -> str:
    return call(scope.called(attributes(op)["callee"].name, "@jax.jit"), *map(scope, op.operands))


@emits("stablehlo.optimization_barrier")
def optimization_barrier(scope: Scope, op: Op) -> str:
    return _unpacked(op, call("lax.optimization_barrier", listed(map(scope, op.operands))))
