# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and barriers as statements of Python."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.ir import Op, Region
from ..source.scans import RowsOfScan
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .target import emits

__all__: list[str] = []


@emits("stablehlo.while")
def while_loop(scope: Scope, op: Op) -> str:
    condition, body = op.regions
    carry = [scope.argument(x, x.name or f"a{i}") for i, x in enumerate(body.arguments)]
    scope.rename(condition.arguments, carry)
    names = ", ".join(carry)
    scope.line(f"{names} = {', '.join(map(scope, op.operands))}{scope.comment(op)}")
    scope.line("while True:")
    with scope.indented():
        is_open = scope.region(condition)
        scope.line(f"if not {is_open}:")
        scope.line("    break")
        results = scope.region(body)
        scope.line(f"{names} = {results}")
    scope.rename(op.results, carry)
    return ""


@emits("shardwise.scan")
def scan(scope: Scope, op: Op) -> str:
    rows = RowsOfScan(op)
    arguments = [scope.argument(x, x.name or f"a{i}") for i, x in enumerate(rows.body.arguments)]
    stacks = scope.fresh(op)[: rows.outputs]
    carries = arguments[rows.inputs :]
    place = scope.comment(op)
    for name, stack in zip(stacks, op.results):
        scope.line(f"{name} = {scope.empty(stack)}{place}")
        place = ""
    if carries:
        scope.line(f"{', '.join(carries)} = {', '.join(map(scope, op.operands[rows.inputs :]))}{place}")
    index = scope.fresh_name("row")
    scope.line(f"for {index} in {f'reversed(range({rows.trips}))' if rows.is_reverse else f'range({rows.trips})'}:")
    at = ":, " * rows.dimension + index
    with scope.indented():
        for name, stacked in zip(arguments, op.operands[: rows.inputs]):
            scope.line(f"{name} = {scope(stacked)}[{at}]")
        scope.region(rows.body)
        results = list(map(scope, rows.body.results))
        for name, value in zip(stacks, results):
            scope.line(f"{name}[{at}] = {value}")
        if carries:
            scope.line(f"{', '.join(carries)} = {', '.join(results[rows.outputs :])}")
        elif not stacks:
            scope.line("pass")
    scope.rename(op.results, [*stacks, *carries])
    return ""


def _branch(scope: Scope, region: Region, names: Sequence[str]) -> None:
    with scope.indented():
        results = scope.region(region)
        scope.line(f"{', '.join(names)} = {results}" if names else "pass")


@emits("stablehlo.case")
def case(scope: Scope, op: Op) -> str:
    names, index = scope.fresh(op), scope(op.operands[0])
    last = len(op.regions) - 1
    for i, region in enumerate(op.regions):
        head = f"{'if' if i == 0 else 'elif'} {index} == {i}:" if i < last else "else:" if last else "if True:"
        scope.line(head + (scope.comment(op) if i == 0 else ""))
        _branch(scope, region, names)
    scope.rename(op.results, names)
    return ""


@emits("stablehlo.if")
def if_(scope: Scope, op: Op) -> str:
    names = scope.fresh(op)
    for head, region in zip((f"if {scope(op.operands[0])}:{scope.comment(op)}", "else:"), op.regions):
        scope.line(head)
        _branch(scope, region, names)
    scope.rename(op.results, names)
    return ""


@emits("func.call")
def func_call(scope: Scope, op: Op) -> str:
    return call(scope.called(attributes(op)["callee"].name), *map(scope, op.operands))


@emits("stablehlo.optimization_barrier")
def optimization_barrier(scope: Scope, op: Op) -> str:
    names = list(map(scope, op.operands))
    return names[0] if len(names) == 1 else listed(names)
