# SPDX-License-Identifier: Apache-2.0
"""Random bits and numbers: Philox 4x32-10 and Threefry 2x32-20 written with Python's integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy import special

from shardwise.dtypes import is_float
from tests.op.inputs import Shape, dtype_of
from tests.op.references import Array

WORD, LONG = 2**32 - 1, 2**64 - 1
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key: int, counter: int) -> tuple[int, int]:
    first, second = key & WORD, key >> 32
    keys = (first, second, first ^ second ^ 0x1BD11BDA)
    x, y = (counter + keys[0]) & WORD, ((counter >> 32) + keys[1]) & WORD
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x = (x + y) & WORD
            y = ((y << rotation | y >> (32 - rotation)) & WORD) ^ x
        x, y = (x + keys[(group + 1) % 3]) & WORD, (y + keys[(group + 2) % 3] + group + 1) & WORD
    return x, y


def philox(key: int, counter: int) -> list[int]:
    first, second = key & WORD, key >> 32
    words = [counter >> shift & WORD for shift in (0, 32, 64, 96)]
    for _ in range(10):
        p, q = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [(q >> 32) ^ words[1] ^ first, q & WORD, (p >> 32) ^ words[3] ^ second, p & WORD]
        first, second = (first + 0x9E3779B9) & WORD, (second + 0xBB67AE85) & WORD
    return words


def _long(words: Sequence[int]) -> int:
    return words[0] | words[1] << 32


def _threefry_elements(state: Sequence[int], shape: Shape, size: int) -> tuple[list[int], int]:
    """The elements, and how many blocks they take."""
    count = math.prod(shape)
    if size == 8:
        return [_long(threefry(state[0], (state[1] + i) & LONG)) for i in range(count)], count
    whole = shape or (1,)
    even = [d for d, n in enumerate(whole) if n % 2 == 0]
    dim = even[0] if even else int(np.argmax(whole))
    half = tuple(-(-n // 2) if d == dim else n for d, n in enumerate(whole))
    found = []
    for index in np.ndindex(*whole):
        block = tuple(i // 2 if d == dim else i for d, i in enumerate(index))
        at = int(np.ravel_multi_index(block, half))
        found.append(threefry(state[0], (state[1] + at) & LONG)[index[dim] % 2])
    return found, math.prod(half)


def _philox_elements(state: Sequence[int], shape: Shape, size: int) -> tuple[list[int], int]:
    count = math.prod(shape) * (2 if size == 8 else 1)
    counter = state[1] | (state[2] if len(state) > 2 else state[0]) << 64
    words = [w for b in range(-(-count // 4)) for w in philox(state[0], (counter + b) % 2**128)][:count]
    return [_long(words[i : i + 2]) for i in range(0, count, 2)] if size == 8 else words, -(-count // 4)


def random_bits(algorithm: str, state: Array, shape: Shape, dtype: str) -> tuple[Array, Array]:
    """The state after the bits, and the bits."""
    return _random_bits(algorithm, tuple(int(x) for x in state), shape, dtype)


@cache
def _random_bits(algorithm: str, numbers: tuple[int, ...], shape: Shape, dtype: str) -> tuple[Array, Array]:
    to = dtype_of(dtype)
    generate = _threefry_elements if algorithm == "THREE_FRY" else _philox_elements
    elements, blocks = generate(numbers, shape, to.itemsize)
    unsigned = np.array(elements, np.uint64).astype(f"u{to.itemsize}").reshape(shape)
    behind = numbers[1] + blocks
    after = [numbers[0], behind & LONG, *((x + (behind >> 64)) & LONG for x in numbers[2:])]
    return np.array(after, np.uint64), unsigned.view(to)


def drawn(distribution: str, low: Array, high: Array, shape: Shape) -> Array:
    """The first stream of stablehlo.rng, before its last rounding."""
    seed = np.array([0x5368617264776973, 0], np.uint64)
    if not is_float(low.dtype):
        bits = random_bits("THREE_FRY", seed, shape, "uint64")[1]
        return low + (bits % np.uint64(int(high) - int(low))).astype(low.dtype)
    wide = low.dtype == np.float64
    if wide:
        bits = random_bits("THREE_FRY", seed, shape, "uint64")[1]
        unit = (bits >> np.uint64(12)).astype(np.longdouble) / 2**52
    else:
        bits = random_bits("THREE_FRY", seed, shape, "uint32")[1]
        unit = (bits >> np.uint32(9)).astype(np.longdouble) / 2**23
    low, high = (x.astype(np.float64).astype(np.longdouble) for x in (low, high))
    if distribution == "UNIFORM":
        return low + unit * (high - low)
    place = 2 * unit - 1 + np.longdouble(2.0) ** (-53 if wide else -24)
    return low + high * special.erfinv(place.astype(np.float64)) * math.sqrt(2)
