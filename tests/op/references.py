# SPDX-License-Identifier: Apache-2.0
"""What each op means, in NumPy on whole arrays. Nothing here knows how shardwise computes anything.

Operands arrive in their own dtype. 16-bit floats compute in float32 and are rounded once, as StableHLO leaves open and
shardwise promises; transcendental functions compute in long double.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from scipy import special

from shardwise import dtypes

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SMALL_FLOATS = (np.dtype(np.float16), BFLOAT16)


def is_float(dtype: Any) -> bool:
    return bool(dtypes.is_float(np.dtype(dtype)))


def in_float32(function: Reference) -> Reference:
    """16-bit floats through float32 with one rounding; any other dtype as it is."""

    def computed(*operands: Array) -> Array:
        dtype = next((x.dtype for x in operands if x.dtype in SMALL_FLOATS), None)
        if dtype is None:
            return np.asarray(function(*operands))
        result = np.asarray(function(*(x.astype(np.float32) if x.dtype == dtype else x for x in operands)))
        return result.astype(dtype) if result.dtype == np.float32 else result

    return computed


def wide(x: Array) -> Array:
    """Long double, by way of float32 for bfloat16 (which NumPy cannot widen at once)."""
    return x.astype(np.float32).astype(np.longdouble) if x.dtype == BFLOAT16 else x.astype(np.longdouble)


def in_long_double(function: Reference) -> Reference:
    """The value before its final rounding."""

    def computed(*operands: Array) -> Array:
        return np.asarray(function(*map(wide, operands)))

    return computed


def from_math(function: Callable[[float], float]) -> Reference:
    """A function that NumPy lacks, element by element in float64."""

    def computed(x: Array) -> Array:
        return np.array([function(float(v)) for v in x.ravel()], np.float64).reshape(x.shape)

    return computed


# ---- elementwise ----------------------------------------------------------------------------------------------------


def sign(x: Array) -> Array:
    """±0 and NaN are their own sign."""
    one = np.ones((), x.dtype)
    return np.where(x > 0, one, np.where(x < 0, -one, x))


def round_nearest_afz(x: Array) -> Array:
    whole = np.trunc(x)
    step = (np.abs(x - whole) >= 0.5).astype(x.dtype)
    return np.copysign(np.abs(whole) + step, x)


def maximum(x: Array, y: Array) -> Array:
    """IEEE 754-2019: NaN wins, +0 is larger than -0."""
    if not is_float(x.dtype):
        return np.maximum(x, y)
    larger = np.where((x == y) & np.signbit(x), y, np.where(x >= y, x, y))
    return np.where(np.isnan(x) | np.isnan(y), np.asarray(np.nan, x.dtype), larger)


def minimum(x: Array, y: Array) -> Array:
    if not is_float(x.dtype):
        return np.minimum(x, y)
    smaller = np.where((x == y) & np.signbit(x), x, np.where(y <= x, y, x))
    return np.where(np.isnan(x) | np.isnan(y), np.asarray(np.nan, x.dtype), smaller)


def bits_of(dtype: Any) -> int:
    return 8 * np.dtype(dtype).itemsize


def _python_ints(function: Callable[[int, int], int]) -> Reference:
    """An integer function, exact and then wrapped to the dtype."""

    def computed(x: Array, y: Array) -> Array:
        bits = bits_of(x.dtype)
        out = [function(int(a), int(b)) % 2**bits for a, b in zip(x.ravel(), y.ravel())]
        return np.array(out, f"u{bits // 8}").view(x.dtype).reshape(x.shape)

    return computed


def divide(x: Array, y: Array) -> Array:
    """Of integers cut towards zero; x / 0 has all bits set."""
    if is_float(x.dtype):
        return x / y
    return _python_ints(lambda a, b: -1 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1))(x, y)


def remainder(x: Array, y: Array) -> Array:
    """With the sign of the dividend; of integers x % 0 is x."""
    if is_float(x.dtype):
        return np.fmod(x, y)
    return _python_ints(lambda a, b: a if b == 0 else int(math.copysign(1, a)) * (abs(a) % abs(b)))(x, y)


def integer_power(x: Array, y: Array) -> Array:
    def power(base: int, exponent: int) -> int:
        if exponent >= 0:
            return pow(base, exponent, 2**64)
        return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)

    return _python_ints(power)(x, y)


def shift_left(x: Array, y: Array) -> Array:
    bits = bits_of(x.dtype)
    return _python_ints(lambda a, b: (a << b) if 0 <= b < bits else 0)(x, y)


def shift_right_arithmetic(x: Array, y: Array) -> Array:
    """Repeats the sign bit, which an unsigned dtype has too."""
    bits = bits_of(x.dtype)
    signed = x.view(f"i{bits // 8}")
    return _python_ints(lambda a, b: a >> (b if 0 <= b < bits else bits - 1))(signed, y).view(x.dtype)


def shift_right_logical(x: Array, y: Array) -> Array:
    bits = bits_of(x.dtype)
    return _python_ints(lambda a, b: (a % 2**bits) >> b if 0 <= b < bits else 0)(x, y)


def popcnt(x: Array) -> Array:
    bits = bits_of(x.dtype)
    return np.array([bin(int(v) % 2**bits).count("1") for v in x.ravel()], x.dtype).reshape(x.shape)


def count_leading_zeros(x: Array) -> Array:
    bits = bits_of(x.dtype)
    return np.array([bits - (int(v) % 2**bits).bit_length() for v in x.ravel()], x.dtype).reshape(x.shape)


def total_order_key(x: Array) -> Array:
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


COMPARISONS: dict[str, Reference] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def clamp(low: Array, x: Array, high: Array) -> Array:
    return minimum(maximum(x, np.broadcast_to(low, x.shape)), np.broadcast_to(high, x.shape))


def bitcast(x: Array, dtype: Any) -> Array:
    """The bits of an element as several smaller ones along a new last dim, or the other way round."""
    x, to = np.ascontiguousarray(x), np.dtype(dtype)
    if to.itemsize < x.dtype.itemsize:
        return x[..., None].view(to)
    return x.view(to) if to.itemsize == x.dtype.itemsize else x.view(to)[..., 0]


def convert(x: Array, dtype: Any) -> Array:
    """Floats to integers are cut and saturate, NaN gives 0; integers wrap around."""
    to = np.dtype(dtype)
    if to == np.bool_:
        return x != 0
    if not is_float(x.dtype) or is_float(to):
        return x.astype(to) if to != BFLOAT16 else x.astype(np.float32).astype(to)
    low, high = np.iinfo(to).min, np.iinfo(to).max
    cut = np.trunc(wide(x))
    inside = (cut > low) & (cut < high)
    result = np.where(inside, cut, 0).astype(to)
    result = np.where(cut >= high, np.asarray(high, to), result)
    return np.where(cut <= low, np.asarray(low, to), result)


def reduce_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """By way of the narrow dtype that has these bits."""
    narrow = {
        (5, 10): np.float16,
        (8, 7): ml_dtypes.bfloat16,
        (5, 2): ml_dtypes.float8_e5m2,
        (8, 23): np.float32,
        (11, 52): np.float64,
    }[exponent_bits, mantissa_bits]
    return x.astype(np.float32).astype(narrow).astype(x.dtype) if narrow != np.float64 else x


# ---- the others -----------------------------------------------------------------------------------------------------


def dot_general(
    lhs: Array,
    rhs: Array,
    batching: tuple[Sequence[int], Sequence[int]] = ((), ()),
    contracting: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> Array:
    """Of floats in long double, of booleans "or of ands", of integers with wrap-around."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left = [next(letters) for _ in range(lhs.ndim)]
    right = [next(letters) for _ in range(rhs.ndim)]
    for pairs in (batching, contracting):
        for i, j in zip(*pairs):
            right[j] = left[i]
    used = {*batching[0], *contracting[0]}
    out = [left[i] for i in batching[0]] + [c for i, c in enumerate(left) if i not in used]
    out += [c for j, c in enumerate(right) if j not in {*batching[1], *contracting[1]}]
    equation = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    if lhs.dtype == np.bool_:
        return np.einsum(equation, lhs.astype(np.int64), rhs.astype(np.int64)) > 0
    if is_float(lhs.dtype):
        return np.einsum(equation, wide(lhs), wide(rhs))
    return np.einsum(equation, lhs, rhs)


def _fold(function: Reference) -> Callable[..., Array]:
    """One element after the other, starting from the init value."""

    def folded(x: Array, init: Array, dims: Sequence[int]) -> Array:
        kept = [d for d in range(x.ndim) if d not in dims]
        shape = [x.shape[d] for d in kept]
        count = math.prod(x.shape[d] for d in dims)
        moved = x.transpose(kept + list(dims)).reshape([*shape, count])
        result = np.broadcast_to(init, shape).copy()
        for k in range(count):
            result = np.asarray(function(result, moved[..., k]))
        return result

    return folded


REDUCTIONS: dict[str, Callable[..., Array]] = {
    "add": lambda x, init, dims: _fold(np.add)(*_exactly(x, init), dims),
    "multiply": lambda x, init, dims: _fold(np.multiply)(*_exactly(x, init), dims),
    "maximum": _fold(maximum),
    "minimum": _fold(minimum),
    "and": _fold(np.bitwise_and),
    "or": _fold(np.bitwise_or),
}


def _exactly(x: Array, init: Array) -> tuple[Array, Array]:
    return (wide(x), wide(init)) if is_float(x.dtype) else (x, init)


def neutral(reducer: str, dtype: Any) -> Array:
    """The element that changes nothing."""
    to = np.dtype(dtype)
    if reducer in ("add", "multiply", "or"):
        return np.asarray(reducer == "multiply", to)
    if reducer == "and":
        return np.asarray(~np.zeros((), to))
    if to == np.bool_:
        return np.asarray(reducer == "minimum")
    if to.kind in "iu":
        limits = np.iinfo(to)
        return np.asarray(limits.min if reducer == "maximum" else limits.max, to)
    sign = -1 if reducer == "maximum" else 1
    infinite = np.asarray(sign * np.inf, to)
    return infinite if np.isinf(infinite) else np.asarray(sign * float(ml_dtypes.finfo(to).max), to)


# A reduction of several operands: what the rows (x0, x1, …) of elements are combined by.
RowFunction = Callable[[list[Array], list[Array]], list[Array]]


def fold_rows(
    combine: RowFunction, xs: Sequence[Array], inits: Sequence[Array] | None, dims: Sequence[int]
) -> list[Array]:
    """One row after the other, starting from the init values, or without any from the first row."""
    kept = [d for d in range(xs[0].ndim) if d not in dims]
    shape = [xs[0].shape[d] for d in kept]
    count = math.prod(xs[0].shape[d] for d in dims)
    moved = [x.transpose(kept + sorted(dims)).reshape([*shape, count]) for x in xs]
    result = [x[..., 0] for x in moved] if inits is None else [np.broadcast_to(init, shape).copy() for init in inits]
    for k in range(1 if inits is None else 0, count):
        result = [np.asarray(x) for x in combine(result, [x[..., k] for x in moved])]
    return result


def argument(better: Callable[[Array, Array], Array]) -> RowFunction:
    """(value, index): a NaN on the left wins, then the better value, then the smaller index."""

    def combine(left: list[Array], right: list[Array]) -> list[Array]:
        (value, index), (other, other_index) = left, right
        wins = better(value, other) | (value != value)
        first = (value == other) & (index < other_index)
        return [np.where(wins, value, other), np.where(wins | first, index, other_index)]

    return combine


ROWS: dict[str, RowFunction] = {
    "argmax": argument(np.greater),
    "argmin": argument(np.less),
    # x -> m x + c, one after the other: associative, but not commutative.
    "affine": lambda a, b: [a[0] * b[0], a[1] * b[0] + b[1]],
    # (first, last, count): nothing is neutral to it.
    "ends": lambda a, b: [a[0], b[1], a[2] + b[2]],
}


def slice_by(start: Sequence[int], limit: Sequence[int], strides: Sequence[int]) -> Reference:
    return lambda x: x[tuple(slice(a, b, c) for a, b, c in zip(start, limit, strides))]


def pad(x: Array, value: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """Negative edge padding cuts off, after interior padding."""
    shape = [max(n + (n - 1) * k, 0) if n else 0 for n, k in zip(x.shape, interior)]
    spread = np.full(shape, value, x.dtype)
    spread[tuple(slice(None, None, k + 1) for k in interior)] = x
    padded = np.full([n + max(a, 0) + max(b, 0) for n, a, b in zip(shape, low, high)], value, x.dtype)
    padded[tuple(slice(max(a, 0), max(a, 0) + n) for n, a in zip(shape, low))] = spread
    return padded[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, a, b in zip(padded.shape, low, high))]


def _clamped(starts: Sequence[Array], shape: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    begins = [min(max(int(s), 0), n - k) for s, n, k in zip(starts, shape, sizes)]
    return tuple(slice(b, b + k) for b, k in zip(begins, sizes))


def dynamic_slice(sizes: Sequence[int]) -> Reference:
    return lambda x, *starts: x[_clamped(starts, x.shape, sizes)]


def dynamic_update_slice(x: Array, update: Array, *starts: Array) -> Array:
    result = x.copy()
    result[_clamped(starts, x.shape, update.shape)] = update
    return result


def broadcast_in_dim(shape: Sequence[int], dims: Sequence[int]) -> Reference:
    def broadcast(x: Array) -> Array:
        order = np.argsort(dims, kind="stable") if len(dims) else []
        expanded = [1] * len(shape)
        for i, d in enumerate(dims):
            expanded[d] = x.shape[i]
        return np.broadcast_to(x.transpose(order).reshape(expanded), shape)

    return broadcast


def iota(shape: Sequence[int], dim: int, dtype: Any) -> Array:
    index = np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    return np.broadcast_to(convert(index, dtype), shape)


def in_float64(function: Reference) -> Reference:
    return lambda *operands: np.asarray(function(*(x.astype(np.float32 if x.dtype.itemsize == 2 else x.dtype)
                                                   .astype(np.float64) for x in operands)))  # fmt: skip


def next_after(x: Array, y: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.where(x == y, y, np.nextafter(x, y))  # NumPy's float16 steps from -0 to +0


def polygamma(order: Array, x: Array) -> Array:
    return special.polygamma(np.rint(order), x)


def high_half(x: Array, y: Array) -> Array:
    bits = 8 * x.dtype.itemsize
    products = [int(a) * int(b) >> bits for a, b in zip(x.ravel(), y.ravel())]
    return np.array(products, np.uint64 if x.dtype == np.uint64 else np.int64).astype(x.dtype).reshape(x.shape)
