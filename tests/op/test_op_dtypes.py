# SPDX-License-Identifier: Apache-2.0
"""Each elementwise op accepts the dtypes that the StableHLO specification gives it, and runs in every one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from shardwise.dtypes import is_complex, is_float, is_integer, is_signed, numpy_dtype
from tests.op.cases import registry_ops
from tests.op.dtype_values import ALL_DTYPES, numbers
from tests.support.partitioned import ONE_DEVICE, run

EnumValue = _core.ir.EnumValue


def is_bool(dtype: Any) -> bool:
    return bool(dtype == np.bool_)


def either(*kinds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda dtype: any(kind(dtype) for kind in kinds)


ALL = either(is_bool, is_integer, is_float, is_complex)
NUMBERS = either(is_integer, is_float, is_complex)
FLOATS = either(is_float, is_complex)
SIGNED = either(is_signed, is_float, is_complex)
BITS = either(is_bool, is_integer)

# The specification's constraints on element types. CHLO's ops are those that JAX prints.
ACCEPTED: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("add", "multiply", "maximum", "minimum", "compare", "select", "clamp", "convert"), ALL),
    **dict.fromkeys(("subtract", "divide", "remainder", "power", "negate"), NUMBERS),
    **dict.fromkeys(("abs", "sign"), SIGNED),
    **dict.fromkeys(("and", "or", "xor", "not"), BITS),
    **dict.fromkeys(
        ("popcnt", "count_leading_zeros", "shift_left", "shift_right_arithmetic", "shift_right_logical"), is_integer
    ),
    **dict.fromkeys(
        ("ceil", "floor", "round_nearest_afz", "round_nearest_even", "is_finite", "reduce_precision"), is_float
    ),
    **dict.fromkeys(
        (
            "atan2", "cbrt", "cosine", "exponential", "exponential_minus_one", "imag", "log", "log_plus_one",
            "logistic", "real", "rsqrt", "sine", "sqrt", "tan", "tanh",
        ),
        FLOATS,
    ),
    "complex": lambda dtype: dtype in (np.float32, np.float64),
    **dict.fromkeys(
        (
            "chlo.acos", "chlo.acosh", "chlo.asin", "chlo.asinh", "chlo.atan", "chlo.atanh", "chlo.conj", "chlo.cosh",
            "chlo.sinh", "chlo.tan",
        ),
        FLOATS,
    ),
    "chlo.square": NUMBERS,
    **dict.fromkeys(
        (
            "chlo.digamma", "chlo.erf", "chlo.erf_inv", "chlo.erfc", "chlo.is_inf", "chlo.is_neg_inf",
            "chlo.is_pos_inf", "chlo.lgamma", "chlo.polygamma", "chlo.zeta",
        ),
        is_float,
    ),
    "chlo.mulhi": is_integer,
    "chlo._asin_acos_kernel": is_complex,
}  # fmt: skip

# Accepted by the parser, and not run, with the reason.
NOT_RUN = {
    ("remainder", "complex64"): "the specification leaves it open",
    ("remainder", "complex128"): "the specification leaves it open",
}
TWO = {
    "add", "multiply", "maximum", "minimum", "compare", "subtract", "divide", "remainder", "power", "and", "or", "xor",
    "shift_left", "shift_right_arithmetic", "shift_right_logical", "atan2", "complex", "chlo.polygamma", "chlo.zeta",
    "chlo.mulhi",
}  # fmt: skip
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
    assert accepted == {dtype for dtype in ALL_DTYPES if ACCEPTED[op](numpy_dtype(dtype))}
    assert accepted - ran == {dtype for name, dtype in NOT_RUN if name == op}


def test_the_table_has_every_elementwise_op() -> None:
    # These have other operand types; bitcast_convert and next_after depend on widths, and are tested on their own.
    others = {"stablehlo.bitcast_convert", "chlo.next_after", "chlo.bessel_i1e", "chlo.constant_like"}
    known = {full_name(op) for op in ACCEPTED} | others
    elementwise = {op.name for op in _core.ir.all_ops() if op.elementwise and not op.name.startswith("chlo.broadcast_")}
    assert elementwise <= known | {op for op in elementwise if op.startswith(("sdy.", "shardwise."))}
    assert {op.name for op in registry_ops()}
