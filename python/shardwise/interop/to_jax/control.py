# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and barriers in `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._core.ir import Op
from ..source.scans import RowsOfScan
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
    name = scope.fresh_name("body")
    scope.line(f"def {name}(carry, rows):")
    with scope.indented():
        arguments = [scope.argument(x, x.name or f"a{i}") for i, x in enumerate(rows.body.arguments)]
        for part, whole in ((arguments[rows.inputs :], "carry"), (arguments[: rows.inputs], "rows")):
            if part:
                scope.line(f"{listed(part)[1:-1]} = {whole}")
        scope.region(rows.body)
        results = list(map(scope, rows.body.results))
        scope.line(f"return {listed(results[rows.outputs :])}, {listed(results[: rows.outputs])}")
    operands = list(map(scope, op.operands))
    stacks = [_moved(x, rows.dimension, 0) for x in operands[: rows.inputs]]
    text = call("lax.scan", name, listed(operands[rows.inputs :]), listed(stacks), f"length={rows.trips}")
    names = scope.fresh(op)
    carries, outputs = names[rows.outputs :], names[: rows.outputs]
    reverse = ", reverse=True)" if rows.is_reverse else ")"
    scope.line(f"{_targets(carries)}, {_targets(outputs)} = {text[:-1]}{reverse}{scope.comment(op)}")
    for name in outputs if rows.dimension else ():
        scope.line(f"{name} = {_moved(name, 0, rows.dimension)}")
    scope.rename(op.results, names)
    return ""


def _targets(names: Sequence[str]) -> str:
    return listed(names) if names else "_"


def _moved(name: str, source: int, target: int) -> str:
    return name if source == target else f"jnp.moveaxis({name}, {source}, {target})"


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
