# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and barriers in `jax.lax`."""

from __future__ import annotations

import numpy as np

from ..._core.ir import Op
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .target import emits

__all__: list[str] = []


@emits("stablehlo.while")
def while_loop(scope: Scope, op: Op) -> str:
    condition = scope.function("condition", op.regions[0], carry="in")
    body = scope.function("body", op.regions[1], carry="both")
    return _unpacked(op, call("lax.while_loop", condition, body, listed(map(scope, op.operands))))


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
