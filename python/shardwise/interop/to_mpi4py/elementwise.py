# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops in NumPy."""

from __future__ import annotations

from ..._core.ir import Op
from ...dtypes import numpy_dtype
from ..source.elementwise import COMPARISONS, INFIX
from ..source.scope import Scope, call
from ..source.target import attributes
from .target import emits

__all__ = ["UFUNCS"]

_UNARY = {
    "stablehlo.abs": "abs", "stablehlo.negate": "negative", "stablehlo.not": "invert", "stablehlo.ceil": "ceil",
    "stablehlo.floor": "floor", "stablehlo.is_finite": "isfinite", "stablehlo.sqrt": "sqrt", "stablehlo.cbrt": "cbrt",
    "stablehlo.exponential": "exp", "stablehlo.exponential_minus_one": "expm1", "stablehlo.log": "log",
    "stablehlo.log_plus_one": "log1p", "stablehlo.sine": "sin", "stablehlo.cosine": "cos", "stablehlo.tan": "tan",
    "stablehlo.tanh": "tanh", "stablehlo.real": "real", "stablehlo.imag": "imag",
    "stablehlo.round_nearest_even": "rint", "chlo.sinh": "sinh", "chlo.cosh": "cosh", "chlo.asin": "arcsin",
    "chlo.acos": "arccos", "chlo.atan": "arctan", "chlo.asinh": "arcsinh", "chlo.acosh": "arccosh",
    "chlo.atanh": "arctanh", "chlo.square": "square",
}  # fmt: skip
_HELPERS = {"chlo.erf": "math.erf", "chlo.erfc": "math.erfc", "chlo.lgamma": "math.lgamma"}
UFUNCS = {
    "stablehlo.add": "add", "stablehlo.multiply": "multiply", "stablehlo.maximum": "maximum",
    "stablehlo.minimum": "minimum", "stablehlo.and": "bitwise_and", "stablehlo.or": "bitwise_or",
    "stablehlo.xor": "bitwise_xor",
}  # fmt: skip
_BINARY = UFUNCS | {
    "stablehlo.subtract": "subtract", "stablehlo.divide": "divide", "stablehlo.remainder": "fmod",
    "stablehlo.power": "power", "stablehlo.atan2": "arctan2", "stablehlo.shift_left": "left_shift",
    "stablehlo.shift_right_arithmetic": "right_shift",
}  # fmt: skip
_OF_INTEGERS = {
    "stablehlo.divide": "integer_divide",
    "stablehlo.remainder": "integer_remainder",
    "stablehlo.power": "integer_power",
}


def _is_integer(dtype: str) -> bool:
    return "int" in dtype


@emits(*_UNARY)
def unary(scope: Scope, op: Op) -> str:
    return call(f"np.{_UNARY[op.name]}", scope(op.operands[0]))


@emits(*_HELPERS)
def special(scope: Scope, op: Op) -> str:
    return call(scope.helper("each"), _HELPERS[op.name], scope(op.operands[0]))


@emits("stablehlo.sign")
def sign(scope: Scope, op: Op) -> str:
    x = scope(op.operands[0])
    return f"np.where({x} == 0, {x}, np.sign({x}))"


@emits("stablehlo.rsqrt")
def rsqrt(scope: Scope, op: Op) -> str:
    return f"1 / np.sqrt({scope(op.operands[0])})"


@emits("stablehlo.logistic")
def logistic(scope: Scope, op: Op) -> str:
    return f"1 / (1 + np.exp(-{scope(op.operands[0])}))"


@emits("stablehlo.round_nearest_afz")
def round_away(scope: Scope, op: Op) -> str:
    return call(scope.helper("round_away"), scope(op.operands[0]))


@emits("stablehlo.popcnt")
def population_count(scope: Scope, op: Op) -> str:
    x, dtype = scope(op.operands[0]), op.operands[0].type.dtype
    view = "" if dtype.startswith("u") else f'.view("u{dtype}")'
    return f'np.bitwise_count({x}{view}).astype("{dtype}")'


@emits("stablehlo.count_leading_zeros")
def leading_zeros(scope: Scope, op: Op) -> str:
    return call(scope.helper("leading_zeros"), scope(op.operands[0]))


@emits("stablehlo.reduce_precision")
def reduce_precision(scope: Scope, op: Op) -> str:
    own = attributes(op)
    bits = f"{own['exponent_bits']}, {own['mantissa_bits']}"
    return f"{scope.helper('reduce_precision')}({scope(op.operands[0])}, {bits})"


@emits(*_BINARY)
def binary(scope: Scope, op: Op) -> str:
    lhs, rhs = map(scope, op.operands)
    dtype = op.operands[0].type.dtype
    if _is_integer(dtype) and op.name in _OF_INTEGERS:
        return call(scope.helper(_OF_INTEGERS[op.name]), lhs, rhs)
    infix = {**INFIX, "stablehlo.divide": "/"}
    if op.name in infix and dtype != "bool":
        return f"{lhs} {infix[op.name]} {rhs}"
    return call(f"np.{_BINARY[op.name]}", lhs, rhs)


@emits("stablehlo.shift_right_logical")
def shift_right_logical(scope: Scope, op: Op) -> str:
    lhs, rhs = map(scope, op.operands)
    dtype = op.operands[0].type.dtype
    if dtype.startswith("u"):
        return call("np.right_shift", lhs, rhs)
    return f'np.right_shift({lhs}.view("u{dtype}"), {rhs}.view("u{dtype}")).view("{dtype}")'


@emits("stablehlo.complex")
def complex_(scope: Scope, op: Op) -> str:
    return call(scope.helper("complex_of"), *map(scope, op.operands))


@emits("stablehlo.compare")
def compare(scope: Scope, op: Op) -> str:
    operator = COMPARISONS[attributes(op)["comparison_direction"].value]
    kind = attributes(op).get("compare_type")
    sides = [scope(x) for x in op.operands]
    if kind is not None and kind.value == "TOTALORDER" and "float" in op.operands[0].type.dtype:
        sides = [call(scope.helper("total_order"), side) for side in sides]
    return f"{sides[0]} {operator} {sides[1]}"


@emits("stablehlo.select")
def select(scope: Scope, op: Op) -> str:
    return call("np.where", *map(scope, op.operands))


@emits("stablehlo.clamp")
def clamp(scope: Scope, op: Op) -> str:
    low, x, high = map(scope, op.operands)
    return f"np.minimum(np.maximum({low}, {x}), {high})"


@emits("stablehlo.convert")
def convert(scope: Scope, op: Op) -> str:
    x, source, target = scope(op.operands[0]), op.operands[0].type.dtype, op.results[0].type.dtype
    if "float" in source and _is_integer(target):
        return f'{scope.helper("to_integers")}({x}, "{target}")'
    if "complex" in source and "complex" not in target:
        x = f"np.real({x})"
    return f'{x}.astype("{numpy_dtype(target).name}")'


@emits("stablehlo.bitcast_convert")
def bitcast(scope: Scope, op: Op) -> str:
    x, kind, dtype = scope(op.operands[0]), op.results[0].type, numpy_dtype(op.results[0].type.dtype)
    if dtype.itemsize == numpy_dtype(op.operands[0].type.dtype).itemsize:
        return f'{x}.view("{dtype.name}")'
    return f'np.ascontiguousarray({x}).view("{dtype.name}").reshape({kind.shape})'
