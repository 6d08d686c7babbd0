# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes

from ..._core.ir import Op
from ...dtypes import numpy_dtype
from ..source.elementwise import COMPARISONS, INFIX
from ..source.narrow_dtypes import is_small_integer
from ..source.scope import Scope, call
from ..source.target import attributes
from .target import emits

__all__ = ["UFUNCS", "cut_to_size"]

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
}  # fmt: skip
_OF_INTEGERS = {
    "stablehlo.divide": "integer_divide",
    "stablehlo.remainder": "integer_remainder",
    "stablehlo.power": "integer_power",
}


def _is_integer(dtype: str) -> bool:
    return "int" in dtype


def cut_to_size(op: Op, text: str) -> str:
    """A result in its dtype: NumPy computes most functions of integers of less than a byte in int8."""
    dtype = op.results[0].type.dtype
    return f'({text}).astype("{dtype}")' if is_small_integer(dtype) else text


def _rounded_once(scope: Scope, op: Op, text: Callable[[str], str]) -> str:
    """A function of several steps. It has float32 between them for floats of a byte."""
    x, dtype = scope(op.operands[0]), numpy_dtype(op.results[0].type.dtype)
    if dtype.itemsize > 1:
        return text(x)
    wide = f'{x}.astype("float32")'
    return f'({text(wide)}).astype("{dtype.name}")'


@emits(*_UNARY)
def unary(scope: Scope, op: Op) -> str:
    x, dtype = scope(op.operands[0]), op.operands[0].type.dtype
    if op.name == "stablehlo.cbrt" and "complex" in dtype:
        return f'({x}.astype("complex128") ** (1 / 3)).astype("{dtype}")'
    return cut_to_size(op, call(f"np.{_UNARY[op.name]}", x))


@emits(*_HELPERS)
def special(scope: Scope, op: Op) -> str:
    return call(scope.helper("each"), _HELPERS[op.name], scope(op.operands[0]))


@emits("stablehlo.sign")
def sign(scope: Scope, op: Op) -> str:
    x = scope(op.operands[0])
    return cut_to_size(op, f"np.where({x} == 0, {x}, np.sign({x}))")


@emits("stablehlo.rsqrt")
def rsqrt(scope: Scope, op: Op) -> str:
    return _rounded_once(scope, op, lambda x: f"1 / np.sqrt({x})")


@emits("stablehlo.logistic")
def logistic(scope: Scope, op: Op) -> str:
    return _rounded_once(scope, op, lambda x: f"1 / (1 + np.exp(-{x}))")


@emits("stablehlo.round_nearest_afz")
def round_away(scope: Scope, op: Op) -> str:
    return _rounded_once(scope, op, lambda x: call(scope.helper("round_away"), x))


@emits("stablehlo.popcnt")
def population_count(scope: Scope, op: Op) -> str:
    x, dtype = scope(op.operands[0]), op.operands[0].type.dtype
    view = "" if dtype.startswith("u") else f'.view("u{dtype}")'
    return f'np.bitwise_count({x}{view}).astype("{dtype}")'


@emits("stablehlo.count_leading_zeros")
def leading_zeros(scope: Scope, op: Op) -> str:
    size: Any = ml_dtypes.iinfo(numpy_dtype(op.operands[0].type.dtype)).bits  # type: ignore[no-untyped-call]
    return call(scope.helper("leading_zeros"), scope(op.operands[0]), size)


@emits("stablehlo.reduce_precision")
def reduce_precision(scope: Scope, op: Op) -> str:
    own, dtype = attributes(op), numpy_dtype(op.operands[0].type.dtype)
    kind: Any = ml_dtypes.finfo(dtype if dtype.itemsize > 1 else "float32")  # type: ignore[no-untyped-call]
    exponent = own["exponent_bits"] if own["exponent_bits"] < kind.nexp else None
    cut = max(kind.nmant - own["mantissa_bits"], 0)
    return _rounded_once(scope, op, lambda x: call(scope.helper("reduce_precision"), x, exponent, cut))


@emits(*_BINARY)
def binary(scope: Scope, op: Op) -> str:
    lhs, rhs = map(scope, op.operands)
    dtype = op.operands[0].type.dtype
    if _is_integer(dtype) and op.name in _OF_INTEGERS:
        return cut_to_size(op, call(scope.helper(_OF_INTEGERS[op.name]), lhs, rhs))
    infix = {**INFIX, "stablehlo.divide": "/"}
    if op.name in infix and dtype != "bool":
        return f"{lhs} {infix[op.name]} {rhs}"
    if op.name == "stablehlo.atan2" and "complex" in dtype:
        return call(scope.helper("complex_angle"), lhs, rhs)
    return cut_to_size(op, call(f"np.{_BINARY[op.name]}", lhs, rhs))


@emits("stablehlo.shift_right_logical", "stablehlo.shift_right_arithmetic")
def shift_right(scope: Scope, op: Op) -> str:
    lhs, rhs = map(scope, op.operands)
    dtype = op.operands[0].type.dtype
    shifted = dtype.removeprefix("u") if op.name.endswith("arithmetic") else f"u{dtype.removeprefix('u')}"
    if dtype == shifted:
        return cut_to_size(op, call("np.right_shift", lhs, rhs))
    text = f'np.right_shift({lhs}.view("{shifted}"), {rhs}.view("{shifted}"))'
    return cut_to_size(op, text) if is_small_integer(dtype) else f'{text}.view("{dtype}")'


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
    return cut_to_size(op, f"np.minimum(np.maximum({low}, {x}), {high})")


@emits("stablehlo.convert")
def convert(scope: Scope, op: Op) -> str:
    x, source, target = scope(op.operands[0]), op.operands[0].type.dtype, op.results[0].type.dtype
    if "complex" in source and "complex" not in target:
        x = f"np.real({x})"
    if ("float" in source or "complex" in source) and _is_integer(target):
        limits: Any = ml_dtypes.iinfo(numpy_dtype(target))  # type: ignore[no-untyped-call]
        return call(scope.helper("to_integers"), x, f'"{target}"', limits.min, limits.max)
    return f'{x}.astype("{numpy_dtype(target).name}")'


@emits("stablehlo.bitcast_convert")
def bitcast(scope: Scope, op: Op) -> str:
    x, kind, dtype = scope(op.operands[0]), op.results[0].type, numpy_dtype(op.results[0].type.dtype)
    if dtype.itemsize == numpy_dtype(op.operands[0].type.dtype).itemsize:
        return f'{x}.view("{dtype.name}")'
    return f'np.ascontiguousarray({x}).view("{dtype.name}").reshape({kind.shape})'
