# SPDX-License-Identifier: Apache-2.0
"""Threefry-2x32: two words of a key and two of a counter become two random words.

The counter of an element is its row-major index in the whole array, high and low word, so a device computes its block
without communication, and every mesh gives the same bits. The functions are integer arithmetic in NumPy's words: on
NumPy arrays they compute, on tracers they record.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Threefry-2x32, 20 rounds).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, message
from ..numpy._primitives import iota, reshape, slice_, splat
from ..recording.tracing import Trace, Tracer, current_trace, refuse_escaped

__all__ = ["check_key", "counter_dtype", "counter_words", "elements", "row_major_index", "threefry_2x32", "words_of"]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF
_BLOCK = 1 << 14  # words that stay in the cache while NumPy makes its hundred passes over them
_UINT32 = np.dtype(np.uint32)


def threefry_2x32(key: tuple[Any, Any], high: Any, low: Any) -> tuple[Any, Any]:
    """Hash the counter words ``high`` and ``low``, uint32 arrays, with the words of a key.

    Args:
        key: two Python ints, or two traced uint32 scalars.
        high: None where all high words are zero.
        low: an array of the shape of the result.

    >>> zero = np.zeros(1, np.uint32)
    >>> [hex(word[0]) for word in threefry_2x32((0, 0), None, zero)]
    ['0x6b200159', '0x99ba4efe']
    """
    words = (*key, key[0] ^ key[1] ^ _PARITY)
    x0 = np.full_like(low, words[0]) if high is None else high + words[0]
    x1 = low + words[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x0 += x1
            turned = x1 << distance
            x1 >>= 32 - distance
            x1 |= turned
            x1 ^= x0
        x0 += words[(group + 1) % 3]
        x1 += _sum(words[(group + 2) % 3], group + 1)
    return x0, x1


def _sum(word: Any, number: int) -> Any:
    return word + number & _WORD if isinstance(word, int) else word + number


def words_of(key: Any) -> tuple[Any, Any]:
    """The two words of a key: Python ints if they are known, else traced scalars."""
    if not isinstance(key, Tracer):
        return int(key[0]), int(key[1])
    first, second = (reshape(slice_(key, (i,), (i + 1,)), ()) for i in range(2))
    return first, second


def check_key(function: str, key: Any) -> Any:
    """``key`` as an array or tracer of two words. Raises DTypeError or ShapeError if it is not a key."""
    if not isinstance(key, Tracer):
        key = np.asarray(key)
    elif key._trace is not current_trace():
        refuse_escaped(key)
    got = f"{key.dtype}{list(key.shape)}"
    if key.dtype != _UINT32:
        raise DTypeError(message(function, "a key must be uint32[2]", got, "make one with sw.random.key(seed)"))
    if key.shape != (2,):
        way_out = "map over keys with sw.vmap" if key.shape[-1:] == (2,) else "make one with sw.random.key(seed)"
        raise ShapeError(message(function, "a key must be uint32[2]", got, way_out))
    return key


def row_major_index(shape: tuple[int, ...], indices: list[Any]) -> Any:
    """The position in an array of ``shape`` of the elements at ``indices``, one array for each dim.

    >>> row_major_index((2, 2**33), [np.array([1], np.uint64), np.array([5], np.uint64)])
    array([8589934597], dtype=uint64)
    """
    total: Any = None
    for dim, index in enumerate(indices):
        stride = math.prod(shape[dim + 1 :])
        term = index if stride == 1 else index * stride
        total = term if total is None else total + term
    return total


def counter_dtype(shape: tuple[int, ...]) -> np.dtype[Any]:
    """The unsigned dtype that holds every index into ``shape``: high words are computed only if needed."""
    return _UINT32 if math.prod(shape) <= 1 << 32 else np.dtype(np.uint64)


def counter_words(counter: Any) -> tuple[Any, Any]:
    """High and low words of a counter; None for the high ones of uint32.

    >>> counter_words(np.array([2**33 + 5], np.uint64))
    (array([2], dtype=uint32), array([5], dtype=uint32))
    """
    if counter.dtype == _UINT32:
        return None, counter
    return (counter >> 32).astype(_UINT32), counter.astype(_UINT32)


def elements(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any], finish: Callable[[Any, Any], Any]) -> Any:
    """An array of ``finish(x0, x1)``, elementwise in the two random words of each element.

    NumPy's arithmetic block by block; operations of the program while one is recorded.
    """
    words = words_of(key)
    trace = current_trace()
    if trace is not None:
        return finish(*threefry_2x32(words, *counter_words(_traced_counter(trace, shape))))
    result = np.empty(math.prod(shape), dtype)
    for start in range(0, result.size, _BLOCK):
        block = result[start : start + _BLOCK]
        counter = np.arange(start, start + block.size, dtype=counter_dtype(shape))
        block[...] = finish(*threefry_2x32(words, *counter_words(counter)))
    return result.reshape(shape)


def _traced_counter(trace: Trace, shape: tuple[int, ...]) -> Any:
    # One iota per dim and no reshape, so a sharding of any dim propagates, and iota gets the shard offset.
    dims = [dim for dim, size in enumerate(shape) if size != 1]
    if not dims or 0 in shape:
        return splat(trace, 0, shape, _UINT32)
    indices = [iota(trace, shape, dim, counter_dtype(shape)) for dim in dims]
    return row_major_index(tuple(shape[dim] for dim in dims), indices)
