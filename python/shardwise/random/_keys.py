# SPDX-License-Identifier: Apache-2.0
"""Keys: two uint32 words that determine a stream of random numbers. Drawing does not change a key."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import dtype_name
from ..errors import DTypeError, ShapeError, called_as, is_one_of, message, shown
from ..numpy._primitives import common_trace
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Tracer, WeakTracer
from ._arguments import checked_shape
from ._threefry import check_key, elements, threefry_2x32, words_of

__all__ = ["PRNGKey", "clone", "fold_in", "key", "key_data", "key_impl", "split", "wrap_key_data"]

_UINT32 = np.dtype(np.uint32)
_THREEFRY = "threefry2x32"


@entry_point
def key(seed: Any) -> Any:
    """Make a key from a seed: the high and the low word of the integer, like ``jax.random.PRNGKey`` with 64 bits.

    Args:
        seed: a Python int of at most 64 bits, or an integer scalar, which may be traced.

    Returns:
        uint32[2].

    Raises:
        DTypeError: the seed is not an integer.
        ShapeError: an array of seeds.
        OverflowError: the seed has more than 64 bits.

    >>> key(2**32 + 7)
    array([1, 7], dtype=uint32)
    """
    if type(seed) is int:
        if not -(1 << 63) <= seed < 1 << 64:
            raise OverflowError(message("random.key", "a seed must have at most 64 bits", seed))
        return np.array([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], _UINT32)
    seed = _integer("random.key", "a seed", seed)
    if not isinstance(seed, Tracer):
        seed = np.asarray(seed)
    wide = seed.astype(np.int64).view(np.uint64)
    # A seed of fewer bits has no high word, even if it is negative.
    high = wide >> 32 if seed.dtype.itemsize == 8 else wide & 0
    return np.stack([high.astype(_UINT32), wide.astype(_UINT32)])


@entry_point
def PRNGKey(seed: Any) -> Any:  # noqa: N802 - JAX's name
    """The same as :func:`key`, because keys are plain arrays.

    >>> PRNGKey(7)
    array([0, 7], dtype=uint32)
    """
    with called_as("random.PRNGKey", "random.key"):
        return key(seed)


@entry_point
def split(key: Any, num: int | tuple[int, ...] = 2) -> Any:
    """Split a key into new keys with independent streams.

    Args:
        key: a key, uint32[2].
        num: the number of keys, or the shape of an array of keys.

    Returns:
        uint32[num, 2], equal to ``jax.random.split``.

    Raises:
        ShapeError, DTypeError: not a key, or a negative number.

    >>> split(PRNGKey(0))
    array([[1797259609, 2579123966],
           [ 928981903, 3453687069]], dtype=uint32)
    """
    key = check_key("random.split", key)
    shape = checked_shape("random.split", num)
    if isinstance(key, Tracer):
        return np.stack(elements(key, shape, _UINT32, lambda x0, x1: (x0, x1)), axis=-1)
    return _split_known(key, shape)


def _split_known(key: Any, shape: tuple[int, ...]) -> Any:
    # Also during tracing: known keys give known keys, without ops.
    count = math.prod(shape)
    counter = np.arange(count, dtype=np.uint64)
    words = threefry_2x32(words_of(key), (counter >> np.uint64(32)).astype(_UINT32), counter.astype(_UINT32))
    return np.stack(words, axis=-1).reshape(*shape, 2)


@entry_point
def fold_in(key: Any, data: Any) -> Any:
    """Make a new key from a key and a number, such as the number of a step or a layer.

    Args:
        key: a key, uint32[2].
        data: an integer scalar, which may be traced. An array scalar is taken modulo 2^32.

    Returns:
        uint32[2], equal to ``jax.random.fold_in``.

    Raises:
        ShapeError, DTypeError: not a key, or data that is not an integer scalar.
        OverflowError: a Python int that does not fit uint32.

    >>> fold_in(PRNGKey(0), 7)
    array([2716826189,  292468403], dtype=uint32)
    """
    key = check_key("random.fold_in", key)
    if type(data) is int:
        if not 0 <= data < 1 << 32:
            way_out = "take it modulo 2**32, or fold in its two halves"
            raise OverflowError(message("random.fold_in", "data must fit uint32", data, way_out))
        low: Any = np.array(data, _UINT32)
    else:
        low = _integer("random.fold_in", "data", data).astype(_UINT32)
    if not isinstance(key, Tracer) and not isinstance(low, Tracer):
        return np.concatenate(threefry_2x32(words_of(key), None, np.asarray(low).reshape(1)))
    low = common_trace((key, low)).lift(low)
    return np.stack(threefry_2x32(words_of(key), None, low))


@entry_point
def key_data(keys: Any) -> Any:
    """The words of a key: the key itself, because keys are plain arrays.

    Args:
        keys: a key or an array of keys, uint32[..., 2].

    Raises:
        ShapeError, DTypeError: not keys.

    >>> key_data(PRNGKey(7))
    array([0, 7], dtype=uint32)
    """
    return _checked_keys("random.key_data", keys)


@entry_point
def wrap_key_data(key_bits_array: Any, *, impl: str | None = None) -> Any:
    """Keys of these words: the array itself, because keys are plain arrays.

    Args:
        key_bits_array: uint32[..., 2].
        impl: the generator: None or ``"threefry2x32"``.

    Raises:
        ShapeError, DTypeError: not words of keys.
        ValueError: another generator.

    >>> wrap_key_data(np.array([0, 7], np.uint32))
    array([0, 7], dtype=uint32)
    """
    if impl is not None and not is_one_of(impl, (_THREEFRY,)):
        rule = "the generator must be 'threefry2x32'"
        raise ValueError(message("random.wrap_key_data", rule, shown(impl), "leave impl out"))
    return _checked_keys("random.wrap_key_data", key_bits_array)


@entry_point
def clone(key: Any) -> Any:
    """A copy of a key or of an array of keys, for code that checks in JAX that no key is used twice.

    Raises:
        ShapeError, DTypeError: not keys.

    >>> clone(PRNGKey(7))
    array([0, 7], dtype=uint32)
    """
    keys = _checked_keys("random.clone", key)
    return keys if isinstance(keys, Tracer) else keys.copy()


@entry_point
def key_impl(keys: Any) -> str:
    """The generator of a key or of an array of keys.

    Raises:
        ShapeError, DTypeError: not keys.

    >>> key_impl(PRNGKey(7))
    'threefry2x32'
    """
    _checked_keys("random.key_impl", keys)
    return _THREEFRY


def _checked_keys(function: str, keys: Any) -> Any:
    keys = keys if isinstance(keys, Tracer) else np.asarray(keys)
    if keys.dtype != _UINT32 or keys.shape[-1:] != (2,):
        got, way_out = f"{keys.dtype}{list(keys.shape)}", "make one with sw.random.key(seed)"
        error = DTypeError if keys.dtype != _UINT32 else ShapeError
        raise error(message(function, "keys must be uint32[..., 2]", got, way_out))
    return keys


def _integer(function: str, what: str, value: Any) -> Any:
    """``value`` as an integer scalar. Raises DTypeError, ShapeError."""
    if isinstance(value, WeakTracer):
        value = value.strong()
    if not hasattr(value, "dtype"):
        value = np.asarray(value)
    if value.dtype.kind not in "iu":
        raise DTypeError(message(function, f"{what} must be an integer", value.dtype, "convert it with astype"))
    if value.shape != ():
        got = f"{dtype_name(value.dtype)}{list(value.shape)}"
        raise ShapeError(message(function, f"{what} must be a scalar", got, "map over it with sw.vmap"))
    return value
