# SPDX-License-Identifier: Apache-2.0
"""Convolution in NumPy, tap by tap."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np

from shardwise.dtypes import is_float
from tests.op.references import Array, wide

Pads = Sequence[tuple[int, int]]


def _places(text: str) -> list[int]:
    """The dims of `[b, 0, 1, f]` in the order: first letter, last letter, spatial ones."""
    names = re.findall(r"\w+", text)
    first, last = ("b", "f") if "b" in names else ("i", "o")
    return [names.index(first), names.index(last), *(names.index(str(i)) for i in range(len(names) - 2))]


def _dilated(x: Array, dilation: Sequence[int]) -> Array:
    for dim, step in enumerate(dilation, 2):
        shape = list(x.shape)
        shape[dim] = max((shape[dim] - 1) * step + 1, 0)
        found = np.zeros(shape, x.dtype)
        found[(slice(None),) * dim + (slice(None, None, step),)] = x
        x = found
    return x


def _padded(x: Array, pads: Pads) -> Array:
    x = np.pad(x, [(0, 0), (0, 0), *((max(low, 0), max(high, 0)) for low, high in pads)])
    cut = tuple(slice(max(-low, 0), size - max(-high, 0)) for size, (low, high) in zip(x.shape[2:], pads))
    return x[(slice(None), slice(None), *cut)]


def convolution(
    lhs: Array, rhs: Array, numbers: str, strides: Sequence[int], pads: Pads, lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int], features: int = 1, batches: int = 1, reverse: Sequence[bool] = (),
) -> Array:  # fmt: skip
    """Tap by tap; sums of bools are "or"."""
    parts = re.fullmatch(r"(\[.*\])x(\[.*\])->(\[.*\])", numbers)
    assert parts
    to = lhs.dtype
    lhs, rhs = (wide(x) if is_float(x.dtype) else x for x in (lhs, rhs))
    x = lhs.transpose(_places(parts[1]))
    kernel = rhs.transpose(_places(parts[2]))  # (i, o, spatial)
    flipped = tuple(slice(None, None, -1 if flag else None) for flag in reverse)
    kernel = kernel[(slice(None), slice(None), *flipped)]
    x = _padded(_dilated(x, lhs_dilation), pads)
    groups = max(features, batches)
    xs = np.split(x, groups, axis=1 if features > 1 else 0)
    found = np.concatenate(
        [_one_group(a, b, strides, rhs_dilation) for a, b in zip(xs, np.split(kernel, groups, axis=1))], axis=1
    )
    order = _places(parts[3])
    return found.transpose(np.argsort(order)) if is_float(to) else found.transpose(np.argsort(order)).astype(to)


def _one_group(x: Array, kernel: Array, strides: Sequence[int], dilation: Sequence[int]) -> Array:
    taps = kernel.shape[2:]
    sizes = [max((size - (t - 1) * d - 1) // s + 1, 0) for size, t, d, s in zip(x.shape[2:], taps, dilation, strides)]
    total = np.zeros((x.shape[0], kernel.shape[1], *sizes), x.dtype)
    for tap in itertools.product(*map(range, taps)):
        read = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) if n else slice(0, 0)
                     for t, d, n, s in zip(tap, dilation, sizes, strides))  # fmt: skip
        seen = x[(slice(None), slice(None), *read)]
        total += np.einsum("bi...,io->bo...", seen, kernel[(slice(None), slice(None), *tap)]).astype(x.dtype)
    return total
