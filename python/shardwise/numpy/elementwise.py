# SPDX-License-Identifier: Apache-2.0
"""NumPy's ufuncs: one table from each ufunc to its ops.

A string names the op. A function composes the ufunc from several ops, on operands that already have the loop's dtypes
and one shape; it may use NumPy's operators, because its operands are tracers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import numpy as np

from ..dtypes import integer_range
from ..errors import UnsupportedError, message
from ..recording.tracing import Tracer, WeakTracer
from ..user_code.advice import in_place_error
from ._primitives import (
    bitcast,
    broadcast_shape,
    common_trace,
    compare,
    complex_of,
    convert,
    imag_part,
    operand,
    real_part,
    select,
    shape_of,
    splat,
    truth,
)
from ._promote import (
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    is_signed,
    is_unsigned,
    is_weak,
    loop_dtypes,
    weak_kind,
)
from ._unsupported import masked, unsupported_option

__all__ = ["RULES", "call", "call_options", "strong", "with_sign_of_zero"]

Rule: TypeAlias = str | Callable[..., Any]
_BITS: dict[int, np.dtype[Any]] = {2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def call(ufunc: np.ufunc, rule: Rule, inputs: tuple[Any, ...], dtype: Any = None) -> Any:
    """Record ``ufunc(*inputs)`` with NumPy's dtypes and broadcasting."""
    if WeakTracer in map(type, inputs) and all(map(is_weak, inputs)):
        result = _call(ufunc, rule, strong(inputs), dtype)
        if ufunc in _WEAK and dtype is None:
            return WeakTracer.of(result, _PYTHON_TYPES.get(result.dtype.kind, int))
        return result
    return _call(ufunc, rule, inputs, dtype)


def _call(ufunc: np.ufunc, rule: Rule, inputs: tuple[Any, ...], dtype: Any) -> Any:
    if ufunc in _DIRECTIONS and WeakTracer in map(type, inputs) and all(_is_integral(x) for x in inputs):
        inputs = strong(inputs)  # a number outside the array's dtype still compares as smaller or larger
    dtypes = loop_dtypes(ufunc, inputs, dtype)
    if len(inputs) == 1:
        x = inputs[0]
        if x.dtype != dtypes[0]:
            x = convert(x, dtypes[0])
        return x._trace.emit(rule, (x,)) if isinstance(rule, str) else rule(x)
    trace = common_trace(inputs)
    lhs, rhs = inputs
    shape, other = shape_of(lhs), shape_of(rhs)
    if shape != other:
        shape = broadcast_shape(f"np.{ufunc.__name__}", (shape, other))
    if ufunc in _DIRECTIONS and (type(lhs) is int or type(rhs) is int):
        known = _compare_beyond(ufunc, lhs, rhs, dtypes[0])
        if known is not None:
            return splat(trace, known, shape, dtypes[2])
    if ufunc is np.power and is_signed(dtypes[0]):
        _refuse_negative_power(trace, rhs)
    special = _POWERS.get(rhs) if ufunc is np.power and type(rhs) in (int, float) else None
    if special is not None and (is_inexact(dtypes[0]) or rhs == 2):
        return special(operand(trace, lhs, dtypes[0], shape))
    lhs, rhs = operand(trace, lhs, dtypes[0], shape), operand(trace, rhs, dtypes[1], shape)
    return trace.emit(rule, (lhs, rhs)) if isinstance(rule, str) else rule(lhs, rhs)


def strong(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs with Python numbers that were arguments as scalars of their dtype."""
    return tuple([x.strong() if type(x) is WeakTracer else x for x in inputs])


_PYTHON_TYPES: dict[str, type[float] | type[complex]] = {"f": float, "c": complex}
# Python's operators on Python numbers return Python numbers.
_WEAK = frozenset(
    (
        np.add,
        np.subtract,
        np.multiply,
        np.true_divide,
        np.floor_divide,
        np.remainder,
        np.power,
        np.negative,
        np.positive,
        np.absolute,
    )
)


def call_options(ufunc: np.ufunc, kwargs: dict[str, Any]) -> Any:
    """The ``dtype`` among a ufunc's options. Raises UnsupportedError for an option that is not supported."""
    dtype = None
    defaults = {"out": None, "where": True, "order": "K", "casting": "same_kind", "subok": True}
    for name, value in kwargs.items():
        if name == "dtype":
            dtype = None if value is None else np.dtype(value)
        elif value is not defaults.get(name, ...) and not (isinstance(value, str) and value == defaults.get(name)):
            if name == "out" and isinstance(value, tuple) and all(out is None for out in value):
                continue
            raise _refused_option(ufunc, name, value, kwargs)
    return dtype


def _refused_option(ufunc: np.ufunc, name: str, value: Any, kwargs: dict[str, Any]) -> UnsupportedError:
    outs = kwargs.get("out")
    out = outs[0] if isinstance(outs, tuple) else outs
    if name == "out":
        in_place = in_place_error(out)
        if in_place is not None:
            return in_place
        value = out
    way_out = masked(ufunc, out) if name in ("out", "where") and "where" in kwargs else None
    return unsupported_option(f"np.{ufunc.__name__}", name, value, way_out)


def _in_float32(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule of several ops that computes 16-bit floats in float32 and rounds once, as NumPy does."""

    @wraps(rule)
    def wrapped(*operands: Tracer) -> Any:
        dtype = operands[0].dtype
        if not is_float(dtype) or dtype.itemsize > 2:
            return rule(*operands)
        result = rule(*(convert(x, np.dtype(np.float32)) for x in operands))
        return result if result.dtype.kind == "b" else convert(result, dtype)

    return wrapped


def _constant(x: Tracer, value: Any) -> Any:
    return splat(x._trace, value, x.shape, x.dtype)


# ---- comparisons ----------------------------------------------------------------------------------------------------

_DIRECTIONS: dict[Any, str] = {
    np.equal: "EQ", np.not_equal: "NE", np.less: "LT", np.less_equal: "LE", np.greater: "GT", np.greater_equal: "GE",
}  # fmt: skip
_MIRRORED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


def _comparison(direction: str) -> Rule:
    def rule(lhs: Tracer, rhs: Tracer) -> Any:
        if lhs.dtype == rhs.dtype:
            return compare(direction, lhs, rhs)
        if is_signed(lhs.dtype):  # int64 with uint64: exact, a negative number is below all others
            return _compare_signs(direction, lhs, rhs)
        return _compare_signs(_MIRRORED[direction], rhs, lhs)

    return rule


def _compare_signs(direction: str, signed: Tracer, unsigned: Tracer) -> Any:
    positive = compare(direction, convert(signed, unsigned.dtype), unsigned)
    negative = signed < 0
    return negative | positive if direction in ("LT", "LE", "NE") else ~negative & positive


def _is_integral(x: Any) -> bool:
    kind = weak_kind(x)
    return kind is int or (not isinstance(kind, type) and is_integer(kind))


def _compare_beyond(ufunc: np.ufunc, lhs: Any, rhs: Any, dtype: np.dtype[Any]) -> bool | None:
    """The result of comparing integers with a Python int outside their dtype; None for an int inside."""
    number = lhs if type(lhs) is int else rhs
    if not is_integer(dtype):
        return None
    low, high = integer_range(dtype)
    if low <= number <= high:
        return None
    direction = _DIRECTIONS[ufunc] if number is rhs else _MIRRORED[_DIRECTIONS[ufunc]]
    return direction == "NE" or direction in (("LT", "LE") if number > 0 else ("GT", "GE"))


# ---- division -------------------------------------------------------------------------------------------------------


def _integers(op: str, *operands: Tracer) -> Any:
    """An op that keeps the dtype of its operands; NumPy's operators take int4 and int2 to int8."""
    return operands[0]._trace.emit(f"stablehlo.{op}", operands)


@_in_float32
def _remainder(lhs: Tracer, rhs: Tracer) -> Any:
    rest = lhs._trace.emit("stablehlo.remainder", (lhs, rhs))
    if is_unsigned(lhs.dtype):
        return select(rhs != 0, rest, _constant(rest, 0))
    if is_integer(lhs.dtype):
        # All ones where the rest is not 0 and has another sign than the divisor, without truth values in between.
        sign = _integers("and", _integers("xor", rest, rhs), _integers("or", rest, _integers("negate", rest)))
        last_bit = _constant(rest, integer_range(lhs.dtype)[1].bit_length())
        wrong = _integers("shift_right_arithmetic", sign, last_bit)
        rest = _integers("add", rest, _integers("and", wrong, rhs))
        return select(rhs != 0, rest, _constant(rest, 0))
    wrong_sign = (rest != 0) & ((rhs < 0) != (rest < 0))
    rest = select(wrong_sign, rest + rhs, rest)
    return with_sign_of_zero(rest, rhs < 0)  # an exact division gives a zero of the divisor's sign


def with_sign_of_zero(x: Any, negative: Any) -> Any:
    """``x`` with zeros of the given sign. Unlike copysign, it keeps the gradient of ``x`` at zeros."""
    positive = _constant(x, 0) + x
    return select(negative, -(_constant(x, 0) - x), positive)


@_in_float32
def _floor_divide(lhs: Any, rhs: Any) -> Any:
    quotient = lhs._trace.emit("stablehlo.divide", (lhs, rhs))
    if is_unsigned(lhs.dtype):
        return select(rhs != 0, quotient, _constant(quotient, 0))
    if is_integer(lhs.dtype):
        inexact = _integers("multiply", quotient, rhs) != lhs
        below = inexact & (_integers("xor", lhs, rhs) < 0)  # of different signs
        rounded = _integers("subtract", quotient, convert(below, quotient.dtype))
        return select(rhs != 0, rounded, _constant(rounded, 0))
    rest = lhs._trace.emit("stablehlo.remainder", (lhs, rhs))
    whole: Any = (lhs - rest) / rhs
    whole = select((rest != 0) & ((rhs < 0) != (rest < 0)), whole - 1.0, whole)
    floor: Any = np.floor(whole)
    floor = select(whole - floor > 0.5, floor + 1.0, floor)
    floor = select(whole == 0, _copysign(_constant(floor, 0), quotient), floor)
    return _without_gradient(select(rhs == 0, quotient, floor))


def _fmod(lhs: Tracer, rhs: Tracer) -> Any:
    rest = lhs._trace.emit("stablehlo.remainder", (lhs, rhs))
    return rest if is_float(lhs.dtype) else select(rhs != 0, rest, _constant(rest, 0))


def _reciprocal(x: Tracer) -> Any:
    quotient = x._trace.emit("stablehlo.divide", (_constant(x, 1), x))
    if is_inexact(x.dtype):
        return quotient
    # NumPy divides 1 by an integer as floats and cuts: 1 / 0 is the dtype's smallest number, for unsigned ones zero.
    low = integer_range(x.dtype)[0] if x.dtype.itemsize >= 4 else 0
    return select(x != 0, quotient, _constant(x, low))


# ---- signs and bits -------------------------------------------------------------------------------------------------


def _signbit(x: Tracer) -> Any:
    pattern = bitcast(x, _BITS[x.dtype.itemsize])
    return compare("LT", pattern, _constant(pattern, 0))


def _copysign(x: Tracer, sign: Tracer) -> Any:
    magnitude = _absolute(x)
    return select(_signbit(sign), -magnitude, magnitude)


def _without_gradient(x: Tracer) -> Any:
    return bitcast(bitcast(x, _BITS[x.dtype.itemsize]), x.dtype)


def _nextafter(x: Tracer, towards: Tracer) -> Any:
    return x._trace.emit("chlo.next_after", (x, towards))


def _absolute(x: Tracer) -> Any:
    return x if x.dtype.kind == "b" or is_unsigned(x.dtype) else x._trace.emit("stablehlo.abs", (x,))


def _conjugate(x: Tracer) -> Any:
    return x._trace.emit("chlo.conj", (x,)) if is_complex(x.dtype) else x


def _sign(x: Tracer) -> Any:
    if is_unsigned(x.dtype):
        return convert(truth(x), x.dtype)
    return x._trace.emit("stablehlo.sign", (x,))


def _rounding(op: str) -> Rule:
    def rule(x: Tracer) -> Any:
        return x._trace.emit("stablehlo." + op, (x,)) if is_float(x.dtype) else x

    return rule


def _rint(x: Tracer) -> Any:
    if is_complex(x.dtype):
        return complex_of(_rint(real_part(x)), _rint(imag_part(x)))
    return x._trace.emit("stablehlo.round_nearest_even", (x,)) if is_float(x.dtype) else x


def _trunc(x: Any) -> Any:
    if not is_float(x.dtype):
        return x
    magnitude: Any = np.floor(np.abs(x))
    return _copysign(magnitude, x)


def _isfinite(x: Tracer) -> Any:
    if is_complex(x.dtype):
        return _isfinite(real_part(x)) & _isfinite(imag_part(x))
    return x._trace.emit("stablehlo.is_finite", (x,)) if is_float(x.dtype) else compare("EQ", x, x)


def _isinf(x: Tracer) -> Any:
    if is_complex(x.dtype):
        return _isinf(real_part(x)) | _isinf(imag_part(x))
    return compare("EQ", _absolute(x), _constant(x, math.inf)) if is_float(x.dtype) else compare("NE", x, x)


def _isnan(x: Tracer) -> Any:
    return compare("NE", x, x)


def _logical(op: str) -> Rule:
    def rule(lhs: Tracer, rhs: Tracer) -> Any:
        return lhs._trace.emit("stablehlo." + op, (truth(lhs), truth(rhs)))

    return rule


def _logical_not(x: Tracer) -> Any:
    if x.dtype.kind == "b":
        return x._trace.emit("stablehlo.not", (x,))
    return compare("EQ", x, _constant(x, 0))


def _right_shift(lhs: Tracer, rhs: Tracer) -> Any:
    kind = "logical" if is_unsigned(lhs.dtype) else "arithmetic"
    return lhs._trace.emit(f"stablehlo.shift_right_{kind}", (lhs, rhs))


# ---- powers, logarithms and the rest --------------------------------------------------------------------------------


def _square(x: Tracer) -> Any:
    return x._trace.emit("stablehlo.multiply", (x, x))


def _refuse_negative_power(trace: Any, exponent: Any) -> None:
    """Raise ValueError for integers to a known negative power, as NumPy; traced exponents follow StableHLO."""
    must_hold, way_out = "an integer's power must not be negative", "convert the base to a float dtype"
    if type(exponent) is WeakTracer:
        trace.limit(exponent, (0, np.iinfo(np.int64).max), ValueError, must_hold, way_out)
    elif isinstance(exponent, Tracer) or hasattr(exponent, "__shardwise_array__"):
        return
    elif np.any(np.less(exponent, 0)):
        got = exponent if np.ndim(exponent) == 0 else f"an array with {np.min(exponent)}"
        raise ValueError(message("np.power", must_hold, got, way_out))


# NumPy's ** uses these instead of power: they are exact, with simple gradients.
_POWERS: dict[Any, Callable[[Tracer], Any]] = {
    2: _square, 1: lambda x: x, -1: _reciprocal, 0.5: lambda x: x._trace.emit("stablehlo.sqrt", (x,)),
}  # fmt: skip


def _scaled(op: str, factor: float) -> Rule:
    @_in_float32
    def rule(x: Tracer) -> Any:
        return x._trace.emit(op, (x,)) / factor

    return rule


def _times(factor: float) -> Rule:
    return _in_float32(lambda x: x * factor)


def _exp2(x: Tracer) -> Any:
    return x._trace.emit("stablehlo.power", (_constant(x, 2), x))


def _log_of_sum(exponential: Callable[[Any], Any], unit: float) -> Rule:
    """``log(b**x + b**y)`` to the base ``b`` of the exponential; ``unit`` is the natural logarithm of ``b``."""

    @_in_float32
    def rule(lhs: Any, rhs: Any) -> Any:
        swapped = lhs < rhs
        large, small = select(swapped, rhs, lhs), select(swapped, lhs, rhs)
        # Equal infinities have distance 0 and share the gradient.
        infinite = (lhs == rhs) & _isinf(lhs)
        distance = select(infinite, _constant(lhs, 0), small - large)
        large = select(infinite, (lhs + rhs) * 0.5, large)
        tail: Any = np.log1p(exponential(distance))
        return large + (tail if unit == 1 else tail / unit)

    return rule


@_in_float32
def _hypot(lhs: Any, rhs: Any) -> Any:
    a, b = np.abs(lhs), np.abs(rhs)
    large, small = np.maximum(a, b), np.minimum(a, b)
    if lhs.dtype == np.float32:
        wide = np.dtype(np.float64)
        root = convert(_scaled_hypot(convert(large, wide), convert(small, wide)), lhs.dtype)
    else:
        root = _scaled_hypot(large, small)
    return np.where(_isinf(lhs) | _isinf(rhs), math.inf, root)


def _scaled_hypot(large: Any, small: Any) -> Any:
    ratio = small / np.where(large == 0, 1.0, large)
    return np.where(large == 0, large, large * np.sqrt(ratio * ratio + 1.0))


def _heaviside(x: Tracer, at_zero: Tracer) -> Any:
    step = select(x < 0, _constant(x, 0), _constant(x, 1))
    return select(x == 0, at_zero, select(_isnan(x), x, step))


def _ignoring_nan(direction: str) -> Rule:
    def rule(lhs: Tracer, rhs: Tracer) -> Any:
        if not is_inexact(lhs.dtype):
            return lhs._trace.emit({"GT": "stablehlo.maximum", "LT": "stablehlo.minimum"}[direction], (lhs, rhs))
        # At ties the second operand gets the gradient, as in JAX.
        wins: Any = compare(direction, lhs, rhs)
        if is_complex(lhs.dtype):  # a real part may decide the comparison with a number whose imaginary part is NaN
            wins = wins & ~_isnan(lhs)
        return select(wins | _isnan(rhs), lhs, rhs)

    return rule


def _bitwise_count(x: Tracer) -> Any:
    return convert(x._trace.emit("stablehlo.popcnt", (_absolute(x),)), np.dtype(np.uint8))


def _identity(x: Tracer) -> Any:
    return x


RULES: dict[np.ufunc, Rule] = {
    np.add: "stablehlo.add",
    np.subtract: "stablehlo.subtract",
    np.multiply: "stablehlo.multiply",
    np.divide: "stablehlo.divide",
    np.floor_divide: _floor_divide,
    np.remainder: _remainder,
    np.fmod: _fmod,
    np.power: "stablehlo.power",
    np.float_power: "stablehlo.power",
    np.negative: "stablehlo.negate",
    np.positive: _identity,
    np.conjugate: _conjugate,
    np.absolute: _absolute,
    np.fabs: "stablehlo.abs",
    np.sign: _sign,
    np.signbit: _signbit,
    np.copysign: _copysign,
    np.nextafter: _nextafter,
    np.sqrt: "stablehlo.sqrt",
    np.cbrt: "stablehlo.cbrt",
    np.square: _square,
    np.reciprocal: _reciprocal,
    np.exp: "stablehlo.exponential",
    np.exp2: _exp2,
    np.expm1: "stablehlo.exponential_minus_one",
    np.log: "stablehlo.log",
    np.log2: _scaled("stablehlo.log", math.log(2)),
    np.log10: _scaled("stablehlo.log", math.log(10)),
    np.log1p: "stablehlo.log_plus_one",
    np.logaddexp: _log_of_sum(np.exp, 1),
    np.logaddexp2: _log_of_sum(_exp2, math.log(2)),
    np.sin: "stablehlo.sine",
    np.cos: "stablehlo.cosine",
    np.tan: "stablehlo.tan",
    np.arcsin: "chlo.asin",
    np.arccos: "chlo.acos",
    np.arctan: "chlo.atan",
    np.arctan2: "stablehlo.atan2",
    np.sinh: "chlo.sinh",
    np.cosh: "chlo.cosh",
    np.tanh: "stablehlo.tanh",
    np.arcsinh: "chlo.asinh",
    np.arccosh: "chlo.acosh",
    np.arctanh: "chlo.atanh",
    np.hypot: _hypot,
    np.degrees: _times(180 / math.pi),
    np.rad2deg: _times(180 / math.pi),
    np.radians: _times(math.pi / 180),
    np.deg2rad: _times(math.pi / 180),
    np.maximum: "stablehlo.maximum",
    np.minimum: "stablehlo.minimum",
    np.fmax: _ignoring_nan("GT"),
    np.fmin: _ignoring_nan("LT"),
    np.floor: _rounding("floor"),
    np.ceil: _rounding("ceil"),
    np.rint: _rint,
    np.trunc: _trunc,
    np.isfinite: _isfinite,
    np.isinf: _isinf,
    np.isnan: _isnan,
    **{ufunc: _comparison(direction) for ufunc, direction in _DIRECTIONS.items()},
    np.logical_and: _logical("and"),
    np.logical_or: _logical("or"),
    np.logical_xor: _logical("xor"),
    np.logical_not: _logical_not,
    np.bitwise_and: "stablehlo.and",
    np.bitwise_or: "stablehlo.or",
    np.bitwise_xor: "stablehlo.xor",
    np.invert: "stablehlo.not",
    np.left_shift: "stablehlo.shift_left",
    np.right_shift: _right_shift,
    np.heaviside: _heaviside,
}
if hasattr(np, "bitwise_count"):
    RULES[np.bitwise_count] = _bitwise_count
