# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops, conversions and comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from shardwise import _core
from shardwise.dtypes import is_complex, is_float, is_integer, is_signed, numpy_dtype
from tests.op import references as ref
from tests.op.case import ALL, FLOATS, INTEGERS, NUMBERS, Application, OpCase
from tests.op.catalogue.instance import Build, Row, Table, tensor
from tests.op.catalogue.linalg import recorded_size
from tests.op.catalogue.values import integer_ends
from tests.op.dtype_values import ALL_DTYPES, COMPLEX, width_of
from tests.op.inputs import Shape, dtype_of, extreme, plain, whole_numbers, within
from tests.op.references import Array, Reference

EnumValue = _core.ir.EnumValue


# ---- dtypes ----------------------------------------------------------------------------------------------------------


def is_bool(dtype: Any) -> bool:
    return bool(dtype == np.bool_)


def either(*kinds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda dtype: any(kind(dtype) for kind in kinds)


Accepts = Callable[[Any], bool]
ANY = either(is_bool, is_integer, is_float, is_complex)
NUMBER = either(is_integer, is_float, is_complex)
INEXACT = either(is_float, is_complex)
SIGNED_NUMBER = either(is_signed, is_float, is_complex)
BITS = either(is_bool, is_integer)
# ---- cases -----------------------------------------------------------------------------------------------------------


def pointwise_cases(count: int, reference: Reference) -> Callable[[int, str], list[Application]]:
    return lambda n, dtype: [Application(((n, 3),) * count, reference)]


def exact(count: int, name: str, reference: Reference, accepts: Accepts, **options: Any) -> OpCase:
    dtypes = tuple(dtype for dtype in ALL if accepts(numpy_dtype(dtype)))
    return OpCase(name, dtypes, pointwise_cases(count, ref.in_float32(reference)), extreme, accepts=accepts, **options)


def rounded(name: str, reference: Reference, draw: Any, ulps: float = 2, count: int = 1, **options: Any) -> OpCase:
    options = {"kind": "ulps", "accepts": INEXACT, **options}
    return OpCase(name, FLOATS, pointwise_cases(count, reference), draw, ulps=ulps, **options)


unary_exact, binary_exact = partial(exact, 1), partial(exact, 2)


def power_cases(n: int, dtype: str) -> list[Application]:
    reference = ref.in_long_double(np.power) if is_float(dtype_of(dtype)) else ref.integer_power
    return [Application(((n, 3), (n, 3)), reference)]


def compare_cases(n: int, dtype: str) -> list[Application]:
    kind = "FLOAT" if is_float(dtype_of(dtype)) else "SIGNED" if dtype_of(dtype).kind == "i" else "UNSIGNED"
    rows = []
    for direction, function in ref.COMPARISONS.items():
        attrs = {"comparison_direction": EnumValue("stablehlo", "comparison_direction", direction)}
        rows.append(Application(((n, 3), (n, 3)), function, attrs, label=direction))
    typed = {**rows[2].attrs, "compare_type": EnumValue("stablehlo", "comparison_type", kind)}
    rows.append(Application(((n, 3), (n, 3)), np.less, typed, label=f"LT {kind}"))
    if kind == "FLOAT":
        total = {**rows[4].attrs, "compare_type": EnumValue("stablehlo", "comparison_type", "TOTALORDER")}

        def greater(x: Array, y: Array) -> Array:
            return ref.total_order_key(x) > ref.total_order_key(y)

        rows.append(Application(((n, 3), (n, 3)), greater, total, label="GT TOTALORDER"))
    return rows


def select_cases(n: int, dtype: str) -> list[Application]:
    return [
        Application(((n, 3),) * 3, np.where, dtypes=("bool",), label="tensor"),
        Application(((), (n, 3), (n, 3)), np.where, dtypes=("bool",), label="scalar"),
    ]


def clamp_cases(n: int, dtype: str) -> list[Application]:
    clamp = ref.in_float32(ref.clamp)
    low, high = np.asarray(1, dtype_of(dtype)), np.asarray(3, dtype_of(dtype))
    lows, highs = np.full((n, 3), low), np.full((n, 3), high)
    return [
        Application(((), (n, 3), ()), clamp, fixed={0: low, 2: high}, label="scalars"),
        Application(((n, 3),) * 3, clamp, fixed={0: lows, 2: highs}, label="tensors"),
        Application(((n, 3),) * 3, clamp, differentiable=False, label="bounds in any order"),
    ]


def convert_cases(n: int, dtype: str) -> list[Application]:
    targets = ALL if dtype in ("float32", "int32") else ("float32", "int8", "uint64", "float16", "bool")
    return [
        Application(((n, 3),), partial(ref.convert, dtype=dtype_of(to)), result_dtype=to, label=to) for to in targets
    ]


def bitcast_cases(n: int, dtype: str) -> list[Application]:
    width = width_of(dtype)
    rows = []
    for to in (*ALL, *({dtype} - set(ALL))):
        other = width_of(to)
        if "bool" in (dtype, to) or (other != width and dtype not in ("float32", "int16")):
            continue
        if other == width:
            shape, result = (n, 3), (n, 3)
        elif other < width:
            shape, result = (n, 3), (n, 3, width // other)
        else:
            shape, result = (n, 3, other // width), (n, 3)
        view = partial(ref.bitcast, dtype=dtype_of(to))
        rows.append(Application((shape,), view, result_shape=result, result_dtype=to, label=to))
    return rows


def reduce_precision_cases(n: int, dtype: str) -> list[Application]:
    formats = {"float64": [(11, 52)], "float16": [(5, 2), (5, 10)], "bfloat16": [(5, 2), (8, 7)]}
    return [
        Application(
            ((n, 3),),
            partial(ref.reduce_precision, exponent_bits=e, mantissa_bits=m),
            {"exponent_bits": np.int32(e), "mantissa_bits": np.int32(m)},
            label=f"e{e}m{m}",
        )
        for e, m in formats.get(dtype, [(5, 10), (8, 7), (5, 2), (8, 23)])
    ]


def complex_cases(n: int, dtype: str) -> list[Application]:
    return [recorded_size("stablehlo.complex", Application(((n, 3),) * 2, ref.in_long_double(np.hypot)))]


def asin_acos_kernel_cases(n: int, dtype: str) -> list[Application]:
    """Of a complex number whose parts are equal, its real part."""

    def reference(x: Array) -> Array:
        z = ref.wide(x) * np.clongdouble(1 + 1j)
        return np.asarray(np.real(np.sqrt(1 - z) * np.sqrt(1 + z)))

    def record(trace: Any, operands: Sequence[int]) -> int:
        z = trace.emit("stablehlo.complex", [operands[0], operands[0]])[0]
        return int(trace.emit("stablehlo.real", [trace.emit("chlo._asin_acos_kernel", [z])[0]])[0])

    return [Application(((n, 3),), reference, record=record)]


L, F64 = ref.in_long_double, ref.in_float64
UNARY = [
    unary_exact("stablehlo.real", np.real, INEXACT, special_points="family"),
    unary_exact("stablehlo.imag", np.zeros_like, INEXACT, special_points="family"),
    unary_exact("stablehlo.abs", np.abs, SIGNED_NUMBER),
    unary_exact("stablehlo.negate", np.negative, NUMBER),
    unary_exact("stablehlo.sign", ref.sign, SIGNED_NUMBER, differentiable=False),
    unary_exact("stablehlo.ceil", np.ceil, is_float, differentiable=False),
    unary_exact("stablehlo.floor", np.floor, is_float, differentiable=False),
    unary_exact(
        "stablehlo.round_nearest_afz",
        ref.round_nearest_afz,
        is_float,
        differentiable=False,
        peer=lambda x: np.trunc(x + np.copysign(0.5, x)),
    ),
    unary_exact("stablehlo.round_nearest_even", np.rint, is_float, differentiable=False),
    unary_exact("stablehlo.is_finite", np.isfinite, is_float, differentiable=False),
    unary_exact("stablehlo.not", np.invert, BITS, differentiable=False),
    unary_exact("stablehlo.popcnt", ref.popcnt, is_integer, differentiable=False),
    unary_exact("stablehlo.count_leading_zeros", ref.count_leading_zeros, is_integer, differentiable=False),
    unary_exact("chlo.square", lambda x: x * x, NUMBER, special_points="values"),
    OpCase("stablehlo.sqrt", FLOATS, pointwise_cases(1, ref.in_float32(np.sqrt)), within(0, 9), accepts=INEXACT),
    rounded(
        "stablehlo.rsqrt",
        L(lambda x: 1 / np.sqrt(x)),
        within(0.01, 9),
        special_points="values",
        peer=lambda x: 1 / np.sqrt(x),
    ),
    rounded("stablehlo.cbrt", L(np.cbrt), within(-9, 9)),
    rounded("stablehlo.exponential", L(np.exp), within(-9, 9)),
    rounded("stablehlo.exponential_minus_one", L(np.expm1), within(-3, 3)),
    rounded("stablehlo.log", L(np.log), within(0.01, 9)),
    rounded("stablehlo.log_plus_one", L(np.log1p), within(-0.9, 3)),
    rounded(
        "stablehlo.logistic",
        L(lambda x: 1 / (1 + np.exp(-x))),
        within(-9, 9),
        4,
        special_points="values",
        peer=special.expit,
    ),
    rounded("stablehlo.sine", L(np.sin), within(-9, 9)),
    rounded("stablehlo.cosine", L(np.cos), within(-9, 9)),
    rounded("stablehlo.tan", L(np.tan), within(-1.4, 1.4)),
    rounded("stablehlo.tanh", L(np.tanh), within(-4, 4)),
    rounded("chlo.sinh", L(np.sinh), within(-4, 4)),
    rounded("chlo.cosh", L(np.cosh), within(-4, 4)),
    rounded("chlo.asin", L(np.arcsin), within(-1, 1)),
    rounded("chlo.acos", L(np.arccos), within(-1, 1)),
    rounded("chlo.atan", L(np.arctan), within(-9, 9)),
    rounded("chlo.asinh", L(np.arcsinh), within(-9, 9)),
    rounded("chlo.acosh", L(np.arccosh), within(1.01, 9)),
    rounded("chlo.atanh", L(np.arctanh), within(-0.95, 0.95)),
    rounded(
        "chlo.erf", ref.from_math(math.erf), within(-3, 3), special_points="values", peer=special.erf, accepts=is_float
    ),
    rounded(
        "chlo.erfc",
        ref.from_math(math.erfc),
        within(-3, 5),
        4,
        special_points="values",
        peer=special.erfc,
        accepts=is_float,
    ),
    rounded(
        "chlo.lgamma",
        ref.from_math(math.lgamma),
        within(-4, 20),
        kind="magnitude",
        accepts=is_float,
        gradient_draw=within(0.5, 6),
        special_points="values",
        peer=special.gammaln,
    ),
    OpCase("stablehlo.convert", ALL, convert_cases, extreme, gradient_dtype="float32", accepts=ANY),
    OpCase("stablehlo.bitcast_convert", ALL[:-1], bitcast_cases, extreme, differentiable=False),
    OpCase("stablehlo.reduce_precision", FLOATS, reduce_precision_cases, extreme, accepts=is_float),
]
BINARY = [
    OpCase(
        "stablehlo.complex",
        ("float32", "float64"),
        complex_cases,
        plain,
        "ulps",
        2,
        special_points="family",
        accepts=lambda dtype: dtype in (np.float32, np.float64),
    ),
    binary_exact("stablehlo.add", np.add, ANY),
    binary_exact("stablehlo.subtract", np.subtract, NUMBER),
    binary_exact("stablehlo.multiply", np.multiply, ANY),
    binary_exact("stablehlo.divide", ref.divide, NUMBER, gradient_draw=within(0.5, 3)),
    binary_exact("stablehlo.remainder", ref.remainder, NUMBER, gradient_draw=within(0.5, 3)),
    OpCase("stablehlo.power", NUMBERS, power_cases, within(0.1, 3), "ulps", 2, accepts=NUMBER),
    rounded("stablehlo.atan2", L(np.arctan2), plain, count=2),
    binary_exact("stablehlo.maximum", ref.maximum, ANY),
    binary_exact("stablehlo.minimum", ref.minimum, ANY),
    binary_exact("stablehlo.and", np.bitwise_and, BITS, differentiable=False),
    binary_exact("stablehlo.or", np.bitwise_or, BITS, differentiable=False),
    binary_exact("stablehlo.xor", np.bitwise_xor, BITS, differentiable=False),
    binary_exact("stablehlo.shift_left", ref.shift_left, is_integer, differentiable=False),
    binary_exact("stablehlo.shift_right_arithmetic", ref.shift_right_arithmetic, is_integer, differentiable=False),
    binary_exact("stablehlo.shift_right_logical", ref.shift_right_logical, is_integer, differentiable=False),
    OpCase("stablehlo.compare", ALL, compare_cases, extreme, differentiable=False, accepts=ANY),
    OpCase("stablehlo.select", ALL, select_cases, extreme, accepts=ANY),
    OpCase("stablehlo.clamp", NUMBERS, clamp_cases, extreme, accepts=ANY),
]
CHLO = [
    rounded("chlo.erf_inv", F64(special.erfinv), within(-0.98, 0.98), 8, accepts=is_float, peer=special.erfinv),
    rounded("chlo.bessel_i1e", F64(special.i1e), within(-20, 20), 8, accepts=None, peer=special.i1e),
    rounded(
        "chlo.digamma",
        F64(special.digamma),
        within(0.2, 20),
        16,
        kind="magnitude",
        accepts=is_float,
        peer=special.digamma,
    ),
    rounded("chlo.polygamma", F64(ref.polygamma), whole_numbers, 16, 2, kind="magnitude", accepts=is_float),
    rounded(
        "chlo.zeta", F64(special.zeta), within(1.5, 5), 16, 2, kind="magnitude", accepts=is_float, peer=special.zeta
    ),
    OpCase(
        "chlo.next_after", FLOATS, pointwise_cases(2, ref.next_after), extreme, differentiable=False, peer=np.nextafter
    ),
    OpCase(
        "chlo.mulhi", INTEGERS, pointwise_cases(2, ref.high_half), extreme, differentiable=False, accepts=is_integer
    ),
    OpCase(
        "chlo._asin_acos_kernel", ("float64",), asin_acos_kernel_cases, within(-0.9, 0.9), "ulps", 4, accepts=is_complex
    ),
    rounded("chlo.tan", L(np.tan), within(-1.4, 1.4)),
    unary_exact("chlo.conj", lambda x: x, INEXACT),
    unary_exact("chlo.is_inf", np.isinf, is_float, differentiable=False),
    unary_exact("chlo.is_pos_inf", lambda x: x == np.inf, is_float, differentiable=False),
    unary_exact("chlo.is_neg_inf", lambda x: x == -np.inf, is_float, differentiable=False),
]
CASES: list[OpCase] = [*UNARY, *BINARY, *CHLO]
# The specification's constraints on element types. CHLO's ops are those that JAX prints.
ACCEPTED = {case.name.removeprefix("stablehlo."): case.accepts for case in CASES if case.accepts}


def accepted_by(op: str) -> tuple[str, ...]:
    """The dtypes of an op of the table, in the order of the registry."""
    return tuple(dtype for dtype in ALL_DTYPES if ACCEPTED[op](numpy_dtype(dtype)))


def operand_count(op: str) -> int:
    case = next(case for case in CASES if case.name == full_name(op))
    return len(case.applications(1, case.dtypes[0])[0].shapes)


# ---- random instances ------------------------------------------------------------------------------------------------


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
    arrays = [b.wild(shape) for _ in range(operand_count(op))]
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


def draw_pointwise(op: str, b: Build) -> None:
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


def draw_compare(b: Build) -> None:
    shape = b.shape()
    x = b.wild(shape)
    y = np.where(b.rng.random(shape) < 0.3, x, b.wild(shape)).astype(x.dtype)
    b.op([b.argument(x), b.argument(y)], [(shape, "bool")], compare_properties(b, "stablehlo"))


def draw_select(b: Build) -> None:
    shape = b.shape()
    which = b.wild(b.pick(((), shape)), "bool")
    operands = [b.argument(which), b.argument(b.wild(shape)), b.argument(b.wild(shape))]
    b.op(operands, [(shape, b.dtype)])


def draw_clamp(b: Build) -> None:
    shape = b.shape()
    low, high = b.wild(b.pick(((), shape))), b.wild(b.pick(((), shape)))
    b.op([b.argument(low), b.argument(b.wild(shape)), b.argument(high)], [(shape, b.dtype)])


def draw_convert(b: Build) -> None:
    shape, to = b.shape(), b.pick(ALL_DTYPES)
    b.op([b.argument(b.wild(shape))], [(shape, to)])


def draw_bitcast_convert(b: Build) -> None:
    """To the same width, to a wider element with the last dim, and to a narrower one."""
    sizes = {d: width_of(d) for d in BITCAST}
    wanted = b.pick((1, 1, 2, 4, 8))
    here = sizes[b.dtype]
    narrow = b.chance(0.5)
    others = [d for d, width in sizes.items() if (width * wanted == here if narrow else here * wanted == width)]
    if not others:
        wanted, others = 1, [d for d, width in sizes.items() if width == here]
    to, shape = b.pick(others), b.shape()
    given, made = shape, shape
    if wanted > 1:
        given, made = (shape, (*shape, wanted)) if narrow else ((*shape, wanted), shape)
    b.op([b.argument(b.wild(given))], [(made, to)])


def draw_reduce_precision(b: Build) -> None:
    shape = b.shape()
    properties = f"exponent_bits = {b.below(1, 9)} : i32, mantissa_bits = {b.below(0, 24)} : i32"
    b.op([b.argument(b.wild(shape))], [(shape, b.dtype)], properties)


def draw_next_after(b: Build) -> None:
    shape = b.shape()
    b.op([b.argument(x) for x in operands_of(b, "chlo.next_after", shape)], [(shape, b.dtype)])


SPECIAL: dict[str, Callable[[Build], None]] = {
    "compare": draw_compare, "select": draw_select, "clamp": draw_clamp, "convert": draw_convert,
    "reduce_precision": draw_reduce_precision,
}  # fmt: skip


def _pointwise() -> Table:
    table = {}
    for op in ACCEPTED:
        dtypes = accepted_by(op)
        if op == "remainder":
            dtypes = tuple(d for d in dtypes if d not in COMPLEX)  # the specification leaves it open
        table[full_name(op)] = Row(dtypes, SPECIAL.get(op) or partial(draw_pointwise, op))
    return table


DRAWS: Table = {
    **_pointwise(),
    "chlo.next_after": Row(FLOATS_FROM_16, draw_next_after),
    "chlo.bessel_i1e": Row(FLOATS_FROM_16, partial(draw_pointwise, "chlo.bessel_i1e")),
    "stablehlo.bitcast_convert": Row(BITCAST, draw_bitcast_convert),
}
