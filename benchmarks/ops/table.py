# SPDX-License-Identifier: Apache-2.0
"""All rows, why some ops have none, and why some rows are slow."""

from __future__ import annotations

from typing import Any

from . import algebra, elementwise, movement, reductions
from .row import Row

ROWS: list[Row] = [*elementwise.ROWS, *reductions.ROWS, *movement.ROWS, *algebra.ROWS]

# Why an op has no row of its own.
WITHOUT_ROW: dict[str, str] = {
    **dict.fromkeys(
        ("stablehlo.while", "stablehlo.case", "stablehlo.if", "func.call"),
        "costs what its regions cost; benchmarks.loops measures it",
    ),
    "stablehlo.optimization_barrier": "computes nothing",
}

_SLEEF = "SLEEF's deterministic function: 1.0 ulp, the same bits at every position and on every machine with FMA"
_POWER = "a power, as StableHLO has no exp2; " + _SLEEF
_NARROW = "computed in float32 by SLEEF's deterministic function, rounded once"

# Why a row may be above 3x, by its name.
REASONS: dict[str, str] = {
    **{f"exp2 {dtype}": _POWER for dtype in ("float32", "float64")},
    **{
        f"{name} {dtype}": _SLEEF
        for name in ("arccosh", "arcsinh", "cbrt", "cosh", "power", "sinh", "tanh", "log1p", "log2", "log10", "expm1")
        for dtype in ("float32", "float64")
    },
    **{f"{name} float16": _NARROW for name in ("exp", "log", "sin", "cos")},
    "random.uniform float32": "Threefry, whose bits are JAX's on every mesh, beside a smaller generator (PCG64)",
}


def reason_for_no_row(op: Any) -> str:
    """Why a runnable op of the registry needs no row; empty if it needs one."""
    if op.collective or op.name.startswith(("sdy.", "shardwise.")):
        return "places values on devices; benchmarks.communication and benchmarks.execute measure it"
    if op.composed:
        return "made of other ops, which have rows"
    return WITHOUT_ROW.get(op.name, "")
