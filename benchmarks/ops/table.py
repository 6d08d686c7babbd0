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

# Why a row may be above 3x, by its name.
REASONS: dict[str, str] = {}


def reason_for_no_row(op: Any) -> str:
    """Why a runnable op of the registry needs no row; empty if it needs one."""
    if op.collective or op.name.startswith(("sdy.", "shardwise.")):
        return "places values on devices; benchmarks.communication and benchmarks.execute measure it"
    if op.composed:
        return "made of other ops, which have rows"
    return WITHOUT_ROW.get(op.name, "")
