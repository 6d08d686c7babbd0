# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops, those of CHLO that broadcast, conversions and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from shardwise.dtypes import is_complex, is_float, is_integer, is_signed, numpy_dtype
from tests.conformance.stablehlo.ops.instance import Build, Row, Table, ints, tensor
from tests.conformance.stablehlo.ops.values import Shape, integer_ends
from tests.op.accepted_dtypes import ACCEPTED, TWO, accepted_by
from tests.op.dtype_values import ALL_DTYPES, COMPLEX, mlir_name, width_of

# How far a float result may be from XLA's, in units in the last place of the result's dtype; of the magnitude where it
# is complex. Ops that are not listed give the same bits.
ULPS: dict[str, float] = {
    "sqrt": 0, "rsqrt": 2, "cbrt": 3, "exponential": 3, "exponential_minus_one": 4, "log": 3, "log_plus_one": 4,
    "logistic": 5, "sine": 3, "cosine": 3, "tan": 5, "tanh": 6, "atan2": 4, "power": 4,
    "chlo.sinh": 6, "chlo.cosh": 5, "chlo.asin": 5, "chlo.acos": 5, "chlo.atan": 4, "chlo.asinh": 6, "chlo.acosh": 6,
    "chlo.atanh": 6, "chlo.erf": 6, "chlo.erfc": 10, "chlo.lgamma": 16, "chlo.digamma": 16, "chlo.erf_inv": 6,
    "chlo.bessel_i1e": 8, "chlo.polygamma": 64, "chlo.zeta": 64, "chlo.tan": 5, "chlo._asin_acos_kernel": 16,
}  # fmt: skip
# The bound of a complex result; functions that cancel have more.
COMPLEX_ULPS: dict[str, float] = {
    "multiply": 4, "divide": 8, "abs": 4, "sign": 6, "sqrt": 8, "square": 4, "cbrt": 256, "power": 1024,
}  # fmt: skip
BITCAST = tuple(d for d in ALL_DTYPES if d not in ("bool", *COMPLEX) and width_of(d) != 6)
FLOATS_FROM_16 = ("float16", "bfloat16", "float32", "float64")


def full_name(op: str) -> str:
    return op if op.startswith("chlo.") else "stablehlo." + op


def result_dtype(op: str, dtype: str) -> str:
    """The element type of the result of an op on operands of one dtype."""
    if op in ("is_finite", "chlo.is_inf", "chlo.is_neg_inf", "chlo.is_pos_inf", "compare"):
        return "bool"
    if op in ("abs", "real", "imag") and dtype in COMPLEX:
        return "float32" if dtype == "complex64" else "float64"
    if op == "complex":
        return "complex64" if dtype == "float32" else "complex128"
    return dtype


def ulps_of(op: str, dtype: str) -> float:
    if dtype in COMPLEX:
        return COMPLEX_ULPS.get(op.removeprefix("chlo."), 16 if op in ULPS else 0)
    return ULPS.get(op, 0) if is_float(numpy_dtype(dtype)) else 0


def compare_elementwise(b: Build, op: str) -> None:
    ulps = ulps_of(op, b.dtype)
    if ulps:
        b.compare_with("ulps", ulps)


def operands_of(b: Build, op: str, shape: Shape) -> list[np.ndarray[Any, Any]]:
    """Arrays for an op, most of them in its domain."""
    count = 2 if op in TWO or op == "chlo.next_after" else 1
    arrays = [b.wild(shape) for _ in range(count)]
    to = numpy_dtype(b.dtype)
    if op.startswith("shift_"):
        amounts = b.rng.integers(0, width_of(b.dtype) + 2, shape)
        arrays[1] = np.where(amounts <= integer_ends(b.dtype)[1], amounts, 1).astype(to)
    if op == "power" and is_integer(to) and b.chance(0.8):
        arrays[1] = b.rng.integers(
            -3 if is_signed(to) and width_of(b.dtype) > 2 else 0, 2, shape, endpoint=True
        ).astype(to)
    if op in ("atan2", "power") and b.dtype in COMPLEX:  # logarithms cancel, exponents multiply errors
        arrays = [b.tame(shape) for _ in range(2)]
    if op in ("chlo.polygamma", "chlo.zeta"):  # an order; then a positive point
        orders = b.rng.integers(0, 6, shape) if op == "chlo.polygamma" else 1 + b.rng.uniform(0.1, 8, shape)
        arrays = [orders.astype(np.float32).astype(to), b.rng.uniform(0.1, 9, shape).astype(np.float32).astype(to)]
    return arrays


def pointwise(op: str, b: Build) -> None:
    shape = b.shape()
    operands = [b.argument(x) for x in operands_of(b, op, shape)]
    b.op(operands, [(shape, result_dtype(op, b.dtype))])
    compare_elementwise(b, op)
    t = tensor(shape, b.dtype)
    if op == "chlo.square" and is_integer(numpy_dtype(b.dtype)):
        b.tell_xla(f"%r = stablehlo.multiply %a0, %a0 : {t}")
    if op == "cbrt" and b.dtype in COMPLEX:
        third = f"%c = stablehlo.constant dense<(0.333333333333333333, 0.0)> : {t}"
        b.tell_xla(third, f"%r = stablehlo.power %a0, %c : {t}")


def compare_properties(b: Build, dialect: str) -> str:
    to = numpy_dtype(b.dtype)
    real = is_float(to)
    direction = b.pick(("EQ", "NE") if is_complex(to) else ("EQ", "NE", "LT", "LE", "GT", "GE"))
    form = "FLOAT" if real or is_complex(to) else "SIGNED" if is_signed(to) else "UNSIGNED"
    if real and b.chance(0.3) and b.dtype in FLOATS_FROM_16:
        form = "TOTALORDER"
    return (
        f"comparison_direction = #{dialect}<comparison_direction {direction}>, "
        f"compare_type = #{dialect}<comparison_type {form}>"
    )


def compare(b: Build) -> None:
    shape = b.shape()
    x = b.wild(shape)
    y = np.where(b.rng.random(shape) < 0.3, x, b.wild(shape)).astype(x.dtype)
    b.op([b.argument(x), b.argument(y)], [(shape, "bool")], compare_properties(b, "stablehlo"))


def select(b: Build) -> None:
    shape = b.shape()
    which = b.wild(b.pick(((), shape)), "bool")
    operands = [b.argument(which), b.argument(b.wild(shape)), b.argument(b.wild(shape))]
    b.op(operands, [(shape, b.dtype)])


def clamp(b: Build) -> None:
    shape = b.shape()
    low, high = b.wild(b.pick(((), shape))), b.wild(b.pick(((), shape)))
    b.op([b.argument(low), b.argument(b.wild(shape)), b.argument(high)], [(shape, b.dtype)])


def convert(b: Build) -> None:
    shape, to = b.shape(), b.pick(ALL_DTYPES)
    b.op([b.argument(b.wild(shape))], [(shape, to)])


def bitcast_convert(b: Build) -> None:
    """To the same width, to a wider element with the last dim, and to a narrower one."""
    sizes = {d: width_of(d) for d in BITCAST}
    wanted = b.pick((1, 1, 2, 4, 8))
    here = sizes[b.dtype]
    narrow = b.chance(0.5)
    others = [d for d, width in sizes.items() if (width * wanted == here if narrow else here * wanted == width)]
    if not others:
        wanted, others = 1, [d for d, width in sizes.items() if width == here]
    to, shape = b.pick(others), b.shape(0, 2)
    given, made = shape, shape
    if wanted > 1:
        given, made = (shape, (*shape, wanted)) if narrow else ((*shape, wanted), shape)
    b.op([b.argument(b.wild(given))], [(made, to)])


def reduce_precision(b: Build) -> None:
    shape = b.shape()
    properties = f"exponent_bits = {b.below(1, 9)} : i32, mantissa_bits = {b.below(0, 24)} : i32"
    b.op([b.argument(b.wild(shape))], [(shape, b.dtype)], properties)


def broadcast(op: str, b: Build) -> None:
    """Operands that broadcast as in NumPy, or along dims that the op names."""
    whole = b.filled_shape(1, 3)
    kept = b.below(0, len(whole))
    dims = sorted(b.rng.choice(len(whole), kept, replace=False).tolist()) if b.chance(0.5) else None
    small = whole[len(whole) - kept :] if dims is None else tuple(whole[d] for d in dims)
    small = tuple(1 if b.chance(0.2) else d for d in small)
    base = op.removeprefix("broadcast_")
    known = base if base in ACCEPTED else f"chlo.{base}"
    arrays = operands_of(b, known, whole)
    small_array = operands_of(b, known, small)[1]
    # Equal ranks broadcast dims of size 1; other ranks take the named dims.
    named = f"broadcast_dimensions = {ints(range(len(whole) - kept, len(whole)) if dims is None else dims)}"
    properties = named if len(small) != len(whole) else ""
    if base == "compare":
        properties = ", ".join(x for x in (properties, compare_properties(b, "chlo")) if x)
    made = result_dtype(base, b.dtype)
    x, y = b.argument(arrays[0]), b.argument(small_array)
    b.op([x, y], [(whole, made)], properties)
    # XLA broadcasts trailing dims only.
    t, to = tensor(whole, b.dtype), tensor(whole, made)
    own = properties.removeprefix(named).removeprefix(", ")
    into = dims if dims is not None else range(len(whole) - kept, len(whole))
    b.tell_xla(
        f'%s = "stablehlo.broadcast_in_dim"({y}) <{{broadcast_dimensions = {ints(into)}}}> : ({b.type_of(y)}) -> {t}',
        f'%r = "chlo.{op}"({x}, %s)' + (f" <{{{own}}}>" if own else "") + f" : ({t}, {t}) -> {to}",
    )
    compare_elementwise(b, known)


def broadcast_select(b: Build) -> None:
    whole = b.filled_shape(1, 3)
    shapes = [b.pick(((), whole)), b.pick((whole, whole, ())), whole]
    arrays = [b.wild(shapes[0], "bool"), b.wild(shapes[1]), b.wild(shapes[2])]
    b.op([b.argument(x) for x in arrays], [(whole, b.dtype)])


def constant_like(b: Build) -> None:
    shape, value = b.shape(), literal(b.dtype, b.below(0, 3 if b.dtype != "bool" else 1))
    b.op([b.argument(b.wild(shape))], [(shape, b.dtype)], f"value = {value}")


def literal(dtype: str, number: int) -> str:
    to = numpy_dtype(dtype)
    if dtype == "bool":
        return "true" if number else "false"
    if is_integer(to):
        return f"{min(number, integer_ends(dtype)[1])} : {mlir_name(dtype)}"
    shown = 2.0**number if dtype == "float8_e8m0fnu" else float(max(number, 1))  # that the dtype holds
    return f"{shown:.6e} : {mlir_name(dtype)}"


def one_of(b: Build) -> None:
    shape = b.shape()
    b.op([b.argument(x) for x in operands_of(b, "chlo.next_after", shape)], [(shape, b.dtype)])


def _broadcasts() -> Table:
    names = (
        "add", "and", "atan2", "complex", "divide", "maximum", "minimum", "multiply", "next_after", "or", "polygamma",
        "power", "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor", "zeta",
    )  # fmt: skip
    table = {}
    for name in names:
        dtypes = FLOATS_FROM_16 if name == "next_after" else accepted_by(name if name in ACCEPTED else f"chlo.{name}")
        if name == "remainder":
            dtypes = tuple(d for d in dtypes if d not in COMPLEX)
        table[f"chlo.broadcast_{name}"] = Row(dtypes, partial(broadcast, f"broadcast_{name}"))
    table["chlo.broadcast_compare"] = Row(accepted_by("compare"), partial(broadcast, "broadcast_compare"))
    return table


SPECIAL: dict[str, Callable[[Build], None]] = {
    "compare": compare, "select": select, "clamp": clamp, "convert": convert, "reduce_precision": reduce_precision,
}  # fmt: skip


def _pointwise() -> Table:
    table = {}
    for op in ACCEPTED:
        dtypes = accepted_by(op)
        if op == "remainder":
            dtypes = tuple(d for d in dtypes if d not in COMPLEX)  # the specification leaves it open
        table[full_name(op)] = Row(dtypes, SPECIAL.get(op) or partial(pointwise, op))
    return table


ROWS: Table = {
    **_pointwise(),
    **_broadcasts(),
    "chlo.broadcast_select": Row(tuple(ALL_DTYPES), broadcast_select),
    "chlo.next_after": Row(FLOATS_FROM_16, one_of),
    "chlo.bessel_i1e": Row(FLOATS_FROM_16, partial(pointwise, "chlo.bessel_i1e")),
    "chlo.constant_like": Row(tuple(d for d in ALL_DTYPES if d not in COMPLEX), constant_like),
    "stablehlo.bitcast_convert": Row(
        tuple(d for d in ALL_DTYPES if d not in ("bool", *COMPLEX) and width_of(d) != 6), bitcast_convert
    ),
}
