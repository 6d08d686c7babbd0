# SPDX-License-Identifier: Apache-2.0
"""Each elementwise op accepts the dtypes that the StableHLO specification gives it, and runs in every one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from tests.op.accepted_dtypes import ACCEPTED, TWO, accepted_by
from tests.op.cases import registry_ops
from tests.op.dtype_values import ALL_DTYPES, numbers
from tests.support.partitioned import ONE_DEVICE, run

EnumValue = _core.ir.EnumValue


# Accepted by the parser, and not run, with the reason.
NOT_RUN = {
    ("remainder", "complex64"): "the specification leaves it open",
    ("remainder", "complex128"): "the specification leaves it open",
}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "compare": {"comparison_direction": EnumValue("stablehlo", "comparison_direction", "NE")},
    "reduce_precision": {"exponent_bits": np.int32(5), "mantissa_bits": np.int32(7)},
}
DECLARED = {"convert": "float32"}


def full_name(op: str) -> str:
    return op if op.startswith("chlo.") else "stablehlo." + op


def recorded(op: str, dtype: str) -> tuple[Any, list[np.ndarray]]:
    """A program of one op, and its arguments. Raises DTypeError for a dtype that the op does not accept."""
    rng = np.random.default_rng(1)
    count = 3 if op in ("select", "clamp") else 2 if op in TWO else 1
    arrays = [numbers((4,), dtype, rng) for _ in range(count)]
    if op == "select":
        arrays[0] = np.array([True, False, True, True])
    trace = _core.ir.Trace("op")
    values = [trace.argument(x.shape, x.dtype.name, "", None) for x in arrays]
    result = DECLARED.get(op)
    value, _, _ = trace.emit(full_name(op), values, ATTRIBUTES.get(op), (4,) if result else None, result)
    return trace.finish([value], [None]), arrays


def runs(op: str, dtype: str) -> bool:
    module, arrays = recorded(op, dtype)
    try:
        (result,) = run(module, ONE_DEVICE, arrays)
    except sw.Error:
        return False
    return bool(result.shape == (4,))


@pytest.mark.parametrize("op", ACCEPTED)
def test_an_op_accepts_and_runs_what_the_specification_gives_it(op: str) -> None:
    accepted, ran = set(), set()
    for dtype in ALL_DTYPES:
        try:
            recorded(op, dtype)
        except sw.DTypeError:
            continue
        accepted.add(dtype)
        if runs(op, dtype):
            ran.add(dtype)
    assert accepted == set(accepted_by(op))
    assert accepted - ran == {dtype for name, dtype in NOT_RUN if name == op}


def test_the_table_has_every_elementwise_op() -> None:
    # These have other operand types; bitcast_convert and next_after depend on widths, and are tested on their own.
    others = {"stablehlo.bitcast_convert", "chlo.next_after", "chlo.bessel_i1e", "chlo.constant_like"}
    known = {full_name(op) for op in ACCEPTED} | others
    elementwise = {op.name for op in _core.ir.all_ops() if op.elementwise and not op.name.startswith("chlo.broadcast_")}
    assert elementwise <= known | {op for op in elementwise if op.startswith(("sdy.", "shardwise."))}
    assert {op.name for op in registry_ops()}
