# SPDX-License-Identifier: Apache-2.0
"""All rows, why some ops have none, and why some rows are slow."""

from __future__ import annotations

from typing import Any

from . import algebra, catalogue, elementwise, movement, reductions
from .row import Row

ROWS: list[Row] = [*elementwise.ROWS, *catalogue.ROWS, *reductions.ROWS, *movement.ROWS, *algebra.ROWS]

# Why an op has no row of its own.
WITHOUT_ROW: dict[str, str] = {
    **dict.fromkeys(
        ("stablehlo.while", "stablehlo.case", "stablehlo.if", "func.call"),
        "costs what its regions cost; benchmarks.loops measures it",
    ),
    "stablehlo.optimization_barrier": "computes nothing",
}

_SLEEF = (
    "SLEEF's deterministic function: 1.0 ulp, the same bits at every position and on every machine with FMA, beside "
    "Intel's SVML (4 ulp in float32), which NumPy takes with AVX-512"
)
_NARROW = "computed in float32 by SLEEF's deterministic function, rounded once"

MOST, CONVOLUTION = 3.0, 2.0  # the ceilings of rows without a reason


def _up_to(most: float, rows: str, reason: str) -> dict[str, tuple[float, str]]:
    return dict.fromkeys(rows.split(", "), (most, reason))


# How far a row may be above the ceiling, and why. The numbers are ratios measured with AVX-512 and about a third more.
REASONS: dict[str, tuple[float, str]] = {
    **_up_to(5.5, "cosh float32, sinh float32, tanh float32, cbrt float32, arccosh float32, arcsinh float32", _SLEEF),
    **_up_to(5.0, "power float32, expm1 float32", _SLEEF),
    **_up_to(4.0, "log1p float32, log2 float32, log10 float32, arctanh float32", _SLEEF),
    **_up_to(4.2, "arcsinh float64, arccosh float64, cosh float64, sinh float64", _SLEEF),
    **_up_to(5.5, "log float16", _NARROW),
    **_up_to(4.5, "exp float16, sin float16, cos float16", _NARROW),
}


def ceiling(row: str) -> float:
    """The largest ratio that a row may have."""
    if row in REASONS:
        return REASONS[row][0]
    return CONVOLUTION if row.startswith("convolution ") else MOST


def reason_for_no_row(op: Any) -> str:
    """Why a runnable op of the registry needs no row; empty if it needs one."""
    if op.collective or op.name.startswith(("sdy.", "shardwise.")):
        return "places values on devices; benchmarks.communication and benchmarks.execute measure it"
    if op.composed:
        return "made of other ops, which have rows"
    return WITHOUT_ROW.get(op.name, "")
