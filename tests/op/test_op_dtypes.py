# SPDX-License-Identifier: Apache-2.0
"""Each elementwise op accepts the dtypes that the StableHLO specification gives it, and runs in every one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from shardwise.dtypes import is_complex, is_float, numpy_dtype
from tests.op.cases import registry_ops
from tests.op.catalogue.elementwise import ACCEPTED, full_name, operand_count
from tests.op.dtype_values import ALL_DTYPES, numbers
from tests.support.partitioned import ONE_DEVICE, run

EnumValue = _core.ir.EnumValue


# The conformance tool draws these in fewer dtypes than they accept.
KINDS: dict[str, Callable[[Any], bool]] = {
    **ACCEPTED,
    "chlo.bessel_i1e": lambda dtype: is_float(dtype) or is_complex(dtype),
    "chlo.next_after": is_float,
}
# Accepted by the parser, as in StableHLO, and refused when the program is compiled; the condition is that of the list.
REFUSED = {
    "remainder": ("complex numbers", ["complex64", "complex128"]),
    "chlo.bessel_i1e": ("complex numbers", ["complex64", "complex128"]),
    "chlo.next_after": ("floats of 6 bits", ["float6_e2m3fn", "float6_e3m2fn"]),
}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "compare": {"comparison_direction": EnumValue("stablehlo", "comparison_direction", "NE")},
    "reduce_precision": {"exponent_bits": np.int32(5), "mantissa_bits": np.int32(7)},
}
DECLARED = {"convert": "float32"}


def recorded(op: str, dtype: str) -> tuple[Any, list[np.ndarray]]:
    """A program of one op, and its arguments. Raises DTypeError for a dtype that the op does not accept."""
    rng = np.random.default_rng(1)
    arrays = [numbers((4,), dtype, rng) for _ in range(operand_count(op))]
    if op == "select":
        arrays[0] = np.array([True, False, True, True])
    trace = _core.ir.Trace("op")
    values = [trace.argument(x.shape, x.dtype.name, "", None) for x in arrays]
    result = DECLARED.get(op)
    value, _, _ = trace.emit(full_name(op), values, ATTRIBUTES.get(op), (4,) if result else None, result)
    return trace.finish([value], [None]), arrays


def runs(op: str, dtype: str) -> bool:
    module, arrays = recorded(op, dtype)
    if dtype in REFUSED.get(op, ("", []))[1]:
        with pytest.raises(sw.UnsupportedError, match=rf"^{full_name(op)}: .* to run it, got tensor<4x"):
            run(module, ONE_DEVICE, arrays)
        return False
    (result,) = run(module, ONE_DEVICE, arrays)
    return bool(result.shape == (4,))


@pytest.mark.parametrize("op", KINDS)
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
    assert accepted == {dtype for dtype in ALL_DTYPES if KINDS[op](numpy_dtype(dtype))}
    condition, refused = REFUSED.get(op, ("", []))
    assert accepted - ran == set(refused)
    assert not refused or f"{full_name(op)} of {condition}" in {row[0] for row in _core.ir.refusals()}


def test_the_table_has_every_elementwise_op() -> None:
    # These have other operand types; bitcast_convert depends on widths, and is tested on its own.
    others = {"stablehlo.bitcast_convert", "chlo.constant_like"}
    known = {full_name(op) for op in KINDS} | others
    elementwise = {op.name for op in _core.ir.all_ops() if op.elementwise and not op.name.startswith("chlo.broadcast_")}
    assert elementwise <= known | {op for op in elementwise if op.startswith(("sdy.", "shardwise."))}
    assert {op.name for op in registry_ops()}
