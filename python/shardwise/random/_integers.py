# SPDX-License-Identifier: Apache-2.0
"""Random bits and integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError, message
from ..process.traceback_filtering import entry_point
from ..recording.tracing import WeakTracer
from ._arguments import checked_shape, integer_dtype, shape_with
from ._keys import split
from ._threefry import check_key, elements

__all__ = ["bits", "joined", "randint"]


@entry_point
def bits(key: Any, shape: Any = (), dtype: Any = np.uint32) -> Any:
    """Random bits as unsigned integers.

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        dtype: uint8, uint16, uint32 or uint64.

    Returns:
        Unsigned integers equal to ``jax.random.bits``, bit for bit, on every mesh.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or a dtype that is not unsigned.

    >>> from shardwise.random import PRNGKey
    >>> bits(PRNGKey(0), (3,), np.uint8)
    array([167, 146,  40], dtype=uint8)
    """
    found = integer_dtype("random.bits", dtype, "u")
    return _bits(check_key("random.bits", key), checked_shape("random.bits", shape), found)


def _bits(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    return elements(key, shape, dtype, lambda x0, x1: joined(x0, x1, dtype))


def joined(x0: Any, x1: Any, dtype: np.dtype[Any]) -> Any:
    """Two random words as one number of an unsigned dtype."""
    if dtype.itemsize == 8:
        return x0.astype(dtype) << 32 | x1.astype(dtype)
    return (x0 ^ x1).astype(dtype)


@entry_point
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = np.int32) -> Any:
    """Random integers in [minval, maxval).

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        minval: an integer or an array of integers that broadcasts to ``shape``.
        maxval: an integer or an array like ``minval``. If it is not above ``minval``, the result is ``minval``.
        dtype: the integer dtype of the result; bounds are clipped to its range.

    Returns:
        Integers equal to ``jax.random.randint``: the remainder of twice the dtype's bits. The probability of small
        numbers is too large by a factor of less than 1 + (maxval - minval) / 2^32.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or bounds or a dtype that are not integer.

    >>> from shardwise.random import PRNGKey
    >>> randint(PRNGKey(0), (5,), 0, 10)
    array([9, 0, 2, 3, 1], dtype=int32)
    """
    key = check_key("random.randint", key)
    found = integer_dtype("random.randint", dtype)
    bounds = [_bound(name, value) for name, value in (("minval", minval), ("maxval", maxval))]
    sizes = shape_with("random.randint", shape, minval=bounds[0], maxval=bounds[1])
    low, span = _interval(found, *bounds)
    # Twice the bits, high and low ones, so that the remainder is hardly biased.
    high_bits, low_bits = (_bits(k, sizes, span.dtype) for k in split(key))
    whole = span == 0  # all numbers of the dtype: their count wraps to zero
    divisor = np.where(whole, span.dtype.type(1), span)
    with np.errstate(over="ignore"):
        factor = span.dtype.type(1 << 4 * span.dtype.itemsize) % divisor
        factor = factor * factor % divisor
        offset = (high_bits % divisor * factor + low_bits % divisor) % divisor
        return (low + np.where(whole, low_bits, offset).astype(low.dtype)).astype(found)


def _bound(name: str, value: Any) -> Any:
    if isinstance(value, WeakTracer):
        value = value.strong()
    value = value if hasattr(value, "dtype") else np.asarray(value)
    if value.dtype.kind not in "iu":
        way_out = "give integers of at most 64 bits"
        raise DTypeError(message("random.randint", f"{name} must be of integers", value.dtype, way_out))
    return value


def _interval(dtype: np.dtype[Any], minval: Any, maxval: Any) -> tuple[Any, Any]:
    """The first number, and how many there are, in a dtype of at least 32 bits; none counts as one."""
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.int32)
    last = int(np.iinfo(dtype).max)
    # Narrow dtypes are drawn in 32 bits, which can hold their maximum plus one.
    beyond = maxval > last if wide == dtype else np.zeros((), bool)
    low = _limited(minval, int(np.iinfo(dtype).min), last).astype(wide)
    high = _limited(maxval, int(np.iinfo(dtype).min), last + (wide != dtype)).astype(wide)
    unsigned = np.dtype(f"uint{8 * wide.itemsize}").type
    with np.errstate(over="ignore"):
        span = np.where(high > low, (high - low).astype(unsigned), unsigned(1))
        return low, np.where(beyond & (high > low), span + unsigned(1), span)


def _limited(value: Any, low: int, high: int) -> Any:
    known = np.iinfo(value.dtype)
    return np.clip(value, value.dtype.type(max(low, known.min)), value.dtype.type(min(high, known.max)))
