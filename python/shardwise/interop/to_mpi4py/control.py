# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and barriers as statements of Python."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.ir import Op, Region
from ..source.scans import InputOfScan, RowsOfScan
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
    stacks, carries = scope.fresh(op)[: rows.outputs], arguments[len(rows.inputs) :]
    for name, stack in zip(stacks, op.results):
        scope.line(f"{name} = {scope.empty(stack)}{scope.comment(op)}")
    if carries:
        scope.line(f"{', '.join(carries)} = {', '.join(map(scope, rows.carries))}{scope.comment(op)}")
    index, trips = scope.fresh_name("row"), f"range({rows.trips})"
    scope.line(f"for {index} in {f'reversed({trips})' if rows.is_reverse else trips}:")
    before = ":, " * rows.dimension
    with scope.indented():
        for name, given in zip(arguments, rows.inputs):
            scope.line(f"{name} = {_row(scope, given, before, index, rows.trips)}")
        scope.region(rows.body)
        results = list(map(scope, rows.body.results))
        for name, value in zip(stacks, results):
            scope.line(f"{name}[{before}{index}] = {value}")
        scope.line(f"{', '.join(carries)} = {', '.join(results[rows.outputs :])}" if carries else "pass")
    scope.rename(op.results, [*stacks, *carries])
    return ""


def _row(scope: Scope, given: InputOfScan, before: str, index: str, trips: int) -> str:
    """The row of one trip: a view of the stack, or the border."""
    offset = f" {'-' if given.offset < 0 else '+'} {abs(given.offset)}" if given.offset else ""
    row = f"{scope(given.stack)}[{before}{index}{offset}]"
    if given.border is None:
        return row
    return f"{scope(given.border)} if {index} == {0 if given.offset < 0 else trips - 1} else {row}"


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
