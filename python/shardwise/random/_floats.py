# SPDX-License-Identifier: Apache-2.0
"""Random floats: the random bits of each element as a number in [0, 1), and functions of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..lax.elementwise import clz
from ..process.traceback_filtering import entry_point
from ._arguments import check_mode, checked_shape, float_dtype, parameter, shape_with
from ._erf_inv import erf, erf_inv
from ._integers import joined
from ._threefry import check_key, elements

__all__ = [
    "MANTISSA",
    "SMALLEST",
    "exponential",
    "gumbel",
    "normal",
    "normal_of",
    "truncated_normal",
    "uniform",
    "uniform_in",
    "unit",
]

_UNSIGNED = {size: np.dtype(f"uint{8 * size}") for size in (1, 2, 4, 8)}
MANTISSA = {"bfloat16": 7, "float16": 10, "float32": 23, "float64": 52}
SMALLEST = {"bfloat16": 2.0**-126, "float16": 2.0**-14, "float32": 2.0**-126, "float64": 2.0**-1022}  # normal numbers


def unit(x0: Any, x1: Any, dtype: np.dtype[Any]) -> Any:
    """A number in [0, 1): random bits as the mantissa of a number in [1, 2), less one."""
    pattern = _UNSIGNED[dtype.itemsize]
    mantissa = MANTISSA[dtype.name]
    drawn = _UNSIGNED[1] if mantissa < 8 else pattern  # bfloat16 needs 7 bits only, and takes them from a byte
    word = joined(x0, x1, drawn).astype(pattern) >> 8 * drawn.itemsize - mantissa
    one = np.ones((), dtype)
    return (word | int(one.view(pattern))).view(dtype) - one


@entry_point
def uniform(key: Any, shape: Any = (), dtype: Any = np.float32, minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Uniformly distributed random numbers in [minval, maxval).

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        dtype: float16, bfloat16, float32 or float64.
        minval: a number or an array that broadcasts to ``shape``; it is differentiable.
        maxval: like ``minval``.

    Returns:
        Numbers equal to ``jax.random.uniform``, bit for bit, on every mesh.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, a dtype that is not floating, or bounds that do not
            broadcast to the shape.

    >>> from shardwise.random import PRNGKey
    >>> uniform(PRNGKey(0), (2,))
    array([0.947667 , 0.9785799], dtype=float32)
    """
    key = check_key("random.uniform", key)
    found = float_dtype("random.uniform", dtype)
    low = parameter("random.uniform", "minval", minval, found)
    high = parameter("random.uniform", "maxval", maxval, found)
    return uniform_in(key, shape_with("random.uniform", shape, minval=low, maxval=high), found, low, high)


def uniform_in(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any], low: Any, high: Any) -> Any:
    """:func:`uniform` with arguments that are checked already."""
    number = elements(key, shape, dtype, lambda x0, x1: unit(x0, x1, dtype))
    if type(low) is type(high) is np.ndarray and low.ndim == high.ndim == 0 and low == 0 and high == 1:
        return number
    return np.maximum(low, number * (high - low) + low)


@entry_point
def normal(key: Any, shape: Any = (), dtype: Any = np.float32) -> Any:
    """Random numbers from the standard normal distribution: mean 0, variance 1.

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.normal`` within a few units in the last place, and the same on every mesh.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or a dtype that is not floating.

    Source: the inverse distribution function of uniform numbers, with Giles' polynomials.

    >>> from shardwise.random import PRNGKey
    >>> normal(PRNGKey(0), (2,)).round(4)
    array([1.6226, 2.0253], dtype=float32)
    """
    key = check_key("random.normal", key)
    found = float_dtype("random.normal", dtype)
    sizes = checked_shape("random.normal", shape)
    return elements(key, sizes, found, lambda x0, x1: normal_of(unit(x0, x1, found), found))


def normal_of(number: Any, dtype: np.dtype[Any]) -> Any:
    """Normal numbers from uniform ones in [0, 1), by the inverse of the distribution function."""
    one = np.ones((), dtype)
    low = np.nextafter(-one, 0 * one)
    return erf_inv(number * (one - low) + low) * np.array(math.sqrt(2), dtype)


@entry_point
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from the standard normal distribution, truncated to the interval (``lower``, ``upper``).

    Args:
        key: a key, uint32[2].
        lower: a number or an array that broadcasts to ``shape``; it is differentiable.
        upper: like ``lower``.
        shape: the shape of the result; None for the shape of the bounds.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.truncated_normal`` within a few units in the last place.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, a dtype that is not floating, or bounds that do not
            broadcast to the shape.

    >>> from shardwise.random import PRNGKey
    >>> bool(np.all(abs(truncated_normal(PRNGKey(0), -2.0, 2.0, (1000,))) < 2))
    True
    """
    key = check_key("random.truncated_normal", key)
    found = float_dtype("random.truncated_normal", dtype)
    low = parameter("random.truncated_normal", "lower", lower, found)
    high = parameter("random.truncated_normal", "upper", upper, found)
    sizes = shape_with("random.truncated_normal", shape, lower=low, upper=high)
    root = np.array(math.sqrt(2), found)
    number = uniform_in(key, sizes, found, erf(low / root), erf(high / root))
    infinity = np.array(np.inf, found)
    # Rounding must not lead out of the open interval.
    inside = np.maximum(erf_inv(number) * root, np.nextafter(low, infinity))
    return np.minimum(inside, np.nextafter(high, -infinity))


@entry_point
def exponential(key: Any, shape: Any = (), dtype: Any = np.float32) -> Any:
    """Random numbers from the exponential distribution with mean 1.

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.exponential`` within a few units in the last place.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or a dtype that is not floating.

    >>> from shardwise.random import PRNGKey
    >>> exponential(PRNGKey(0), (2,)).round(4)
    array([2.9501, 3.8434], dtype=float32)
    """
    key = check_key("random.exponential", key)
    found = float_dtype("random.exponential", dtype)
    sizes = checked_shape("random.exponential", shape)
    return elements(key, sizes, found, lambda x0, x1: -np.log1p(-unit(x0, x1, found)))


@entry_point
def gumbel(key: Any, shape: Any = (), dtype: Any = np.float32, mode: str | None = None) -> Any:
    """Random numbers from the Gumbel distribution: ``argmax(logits + gumbel)`` is a draw from softmax.

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        dtype: float16, bfloat16, float32 or float64.
        mode: ``"low"``, the default; ``"high"`` for twice the random bits, with which float32 results can exceed 16; or
            ``"highest"``, which uses all of these bits for float32, and is ``"high"`` for other dtypes.

    Returns:
        Numbers equal to ``jax.random.gumbel`` within a few units in the last place.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or a dtype that is not floating.
        ValueError: an unknown mode.

    >>> from shardwise.random import PRNGKey
    >>> gumbel(PRNGKey(0), (2,)).round(4)
    array([2.9234, 3.8326], dtype=float32)
    """
    key = check_key("random.gumbel", key)
    found = float_dtype("random.gumbel", dtype)
    sizes = checked_shape("random.gumbel", shape)
    mode = check_mode("random.gumbel", mode)
    if mode == "highest" and found == np.float32:
        return _gumbel_of_64_bits(key, sizes)
    tiny, one = np.array(SMALLEST[found.name], found), np.ones((), found)
    if mode == "low":
        return -np.log(-np.log(uniform_in(key, sizes, found, tiny, one)))
    drawn = uniform_in(key, (2, *sizes), found, 0 * one, one)
    high, low = drawn[0], drawn[1] * np.array(2.0 ** -MANTISSA[found.name], found)
    return -np.log(-np.log1p(-np.where(high >= 0.5, high, high + low + tiny)))


def _gumbel_of_64_bits(key: Any, shape: tuple[int, ...]) -> Any:
    """Gumbel noise in float32 whose uniform number x is a 64-bit fraction: near 1, 1 - x is rounded instead of x."""
    words = elements(key, (2, *shape), _UNSIGNED[4], lambda x0, x1: joined(x0, x1, _UNSIGNED[4]))
    high, low = words[0], words[1]
    below_half = high < 1 << 31
    carries = low == 0  # from the low word of the two's complement
    fraction = _fraction(
        np.where(below_half, high, ~high + carries.astype(np.uint32)), np.where(below_half, low, ~low + np.uint32(1))
    )
    with np.errstate(divide="ignore"):
        return np.where(below_half, -np.log(-np.log1p(-fraction)), -np.log(-np.log(fraction)))


def _fraction(high: Any, low: Any) -> Any:
    """``(high * 2^32 + low) / 2^64`` in float32, rounded towards zero: the first 24 bits that are not zero."""
    number = high.astype(np.uint64) << 32 | low.astype(np.uint64)
    zeros = clz(number)
    found = number << np.minimum(zeros, 63)  # the first bit in front
    kept = (found >> 40).astype(np.float32)  # 24 bits: exact
    scale = ((127 - 24 - zeros.astype(np.int64)) << 23).astype(np.int32).view(np.float32)
    return np.where(number == 0, np.float32(0), kept * scale)
