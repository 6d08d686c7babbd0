# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops in `jax.lax`."""

from __future__ import annotations

from ..._core.ir import Op, Value
from ..source.elementwise import COMPARISONS, INFIX
from ..source.scope import Scope, call
from ..source.target import attributes
from .narrow import form_of
from .target import emits

__all__ = ["binary_function"]

_UNARY = {
    "stablehlo.abs": "abs", "stablehlo.negate": "neg", "stablehlo.sign": "sign", "stablehlo.not": "bitwise_not",
    "stablehlo.popcnt": "population_count", "stablehlo.count_leading_zeros": "clz", "stablehlo.ceil": "ceil",
    "stablehlo.floor": "floor", "stablehlo.is_finite": "is_finite", "stablehlo.sqrt": "sqrt",
    "stablehlo.rsqrt": "rsqrt", "stablehlo.cbrt": "cbrt", "stablehlo.exponential": "exp",
    "stablehlo.exponential_minus_one": "expm1", "stablehlo.log": "log", "stablehlo.log_plus_one": "log1p",
    "stablehlo.logistic": "logistic", "stablehlo.sine": "sin", "stablehlo.cosine": "cos", "stablehlo.tan": "tan",
    "stablehlo.tanh": "tanh",
    "chlo.sinh": "sinh", "chlo.cosh": "cosh", "chlo.asin": "asin", "chlo.acos": "acos", "chlo.atan": "atan",
    "chlo.asinh": "asinh", "chlo.acosh": "acosh", "chlo.atanh": "atanh", "chlo.erf": "erf", "chlo.erfc": "erfc",
    "chlo.lgamma": "lgamma", "chlo.square": "square",
}  # fmt: skip
_BINARY = {
    "stablehlo.divide": "div", "stablehlo.remainder": "rem", "stablehlo.power": "pow", "stablehlo.atan2": "atan2",
    "stablehlo.maximum": "max", "stablehlo.minimum": "min", "stablehlo.and": "bitwise_and",
    "stablehlo.or": "bitwise_or", "stablehlo.xor": "bitwise_xor", "stablehlo.shift_left": "shift_left",
    "stablehlo.shift_right_arithmetic": "shift_right_arithmetic",
    "stablehlo.shift_right_logical": "shift_right_logical", "stablehlo.complex": "complex",
    "stablehlo.add": "add", "stablehlo.subtract": "sub", "stablehlo.multiply": "mul",
}  # fmt: skip
_EXTREMES = ("stablehlo.maximum", "stablehlo.minimum")
_OF_BOOLS = {"stablehlo.add": "bitwise_or", "stablehlo.multiply": "bitwise_and"}


def is_literal(x: Value) -> bool:
    """Whether the text of a value is a NumPy scalar."""
    return x.defining_op is not None and x.defining_op.name == "stablehlo.constant" and not x.type.shape


@emits(*_UNARY)
def unary(scope: Scope, op: Op) -> str:
    return call(f"lax.{_UNARY[op.name]}", scope(op.operands[0]))


@emits("stablehlo.real", "stablehlo.imag")
def part(scope: Scope, op: Op) -> str:
    x, name = scope(op.operands[0]), op.name.removeprefix("stablehlo.")
    if "complex" in op.operands[0].type.dtype:
        return call(f"lax.{name}", x)
    return x if name == "real" else call("lax.full_like", x, 0)  # JAX refuses real operands


def binary_function(name: str, dtype: str) -> str | None:
    """The function of an op of two operands; None for other ops."""
    if dtype == "bool" and name in _OF_BOOLS:
        return f"lax.{_OF_BOOLS[name]}"
    return f"lax.{_BINARY[name]}" if name in _BINARY else None


@emits(*_BINARY)
def binary(scope: Scope, op: Op) -> str:
    lhs, rhs = map(scope, op.operands)
    dtype = op.operands[0].type.dtype
    if op.name == "stablehlo.power" and "float" not in dtype and "complex" not in dtype:
        return call(scope.helper("integer_power"), lhs, rhs)
    form = form_of(scope, dtype, op.name) if op.name in _EXTREMES else None
    if form is not None and form.reducer:
        return form.back(call("lax.max", form.into(lhs), form.into(rhs)))
    is_traced = any(not is_literal(x) for x in op.operands)  # NumPy would warn of an overflow
    if op.name in INFIX and dtype != "bool" and is_traced and scope.is_read:
        return f"{lhs} {INFIX[op.name]} {rhs}"
    return call(str(binary_function(op.name, dtype)), lhs, rhs)


@emits("stablehlo.round_nearest_afz")
def round_away(scope: Scope, op: Op) -> str:
    return call("lax.round", scope(op.operands[0]), "lax.RoundingMethod.AWAY_FROM_ZERO")


@emits("stablehlo.round_nearest_even")
def round_even(scope: Scope, op: Op) -> str:
    return call("lax.round", scope(op.operands[0]), "lax.RoundingMethod.TO_NEAREST_EVEN")


@emits("stablehlo.compare")
def compare(scope: Scope, op: Op) -> str:
    direction = attributes(op)["comparison_direction"].value
    kind = attributes(op).get("compare_type")
    sides = [scope(x) for x in op.operands]
    if kind is not None and kind.value == "TOTALORDER" and "float" in op.operands[0].type.dtype:
        keys = scope.helper("total_order")
        sides = [call(keys, side) for side in sides]
    if not scope.is_read and any(not is_literal(x) for x in op.operands):
        return call(f"lax.{direction.lower()}", *sides)
    return f"{sides[0]} {COMPARISONS[direction]} {sides[1]}"


@emits("stablehlo.select")
def select(scope: Scope, op: Op) -> str:
    return call("lax.select", *map(scope, op.operands))


@emits("stablehlo.clamp")
def clamp(scope: Scope, op: Op) -> str:
    return call("lax.clamp", *map(scope, op.operands))


@emits("stablehlo.convert")
def convert(scope: Scope, op: Op) -> str:
    return call("lax.convert_element_type", scope(op.operands[0]), f'"{op.results[0].type.dtype}"')


@emits("stablehlo.bitcast_convert")
def bitcast(scope: Scope, op: Op) -> str:
    return call("lax.bitcast_convert_type", scope(op.operands[0]), f'"{op.results[0].type.dtype}"')


@emits("stablehlo.reduce_precision")
def reduce_precision(scope: Scope, op: Op) -> str:
    own = attributes(op)
    return call("lax.reduce_precision", scope(op.operands[0]), own["exponent_bits"], own["mantissa_bits"])
