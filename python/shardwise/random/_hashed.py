# SPDX-License-Identifier: Apache-2.0
"""Keys of elements: each element of an array has a key of its own, and draws from it as often as it needs.

Rejection samplers need them: an element that accepts early stops, and the others go on. A key is a pair of uint32
arrays, so splitting and drawing are elementwise, and need no communication.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._floats import normal_of, unit
from ._threefry import elements, threefry_2x32

__all__ = ["Words", "keys_of_elements", "one_normal", "one_uniform", "split_elements"]

Words = tuple[Any, Any]
_UINT32 = np.dtype(np.uint32)


def keys_of_elements(key: Any, shape: tuple[int, ...]) -> Words:
    """A key for each element of an array: those of ``split(key, shape)``."""
    words: Words = elements(key, shape, _UINT32, lambda x0, x1: (x0, x1))
    return words


def split_elements(words: Words, number: int) -> list[Words]:
    """``number`` new keys for each element."""
    return [_hashed(words, i) for i in range(number)]


def _hashed(words: Words, counter: int) -> Words:
    return threefry_2x32(words, np.zeros((), _UINT32), np.array(counter, _UINT32))


def one_uniform(words: Words, dtype: np.dtype[Any]) -> Any:
    """A number in [0, 1) of each element's key."""
    return unit(*_hashed(words, 0), dtype)


def one_normal(words: Words, dtype: np.dtype[Any]) -> Any:
    """A number of the standard normal distribution of each element's key."""
    return normal_of(one_uniform(words, dtype), dtype)
