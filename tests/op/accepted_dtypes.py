# SPDX-License-Identifier: Apache-2.0
"""The dtypes that the specification gives each elementwise op, by its constraints on element types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shardwise.dtypes import is_complex, is_float, is_integer, is_signed, numpy_dtype
from tests.op.dtype_values import ALL_DTYPES

__all__ = ["ACCEPTED", "TWO", "accepted_by"]


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

TWO = {
    "add", "multiply", "maximum", "minimum", "compare", "subtract", "divide", "remainder", "power", "and", "or", "xor",
    "shift_left", "shift_right_arithmetic", "shift_right_logical", "atan2", "complex", "chlo.polygamma", "chlo.zeta",
    "chlo.mulhi",
}  # fmt: skip


def accepted_by(op: str) -> tuple[str, ...]:
    """The dtypes of an op of the table, in the order of the registry."""
    return tuple(dtype for dtype in ALL_DTYPES if ACCEPTED[op](numpy_dtype(dtype)))
