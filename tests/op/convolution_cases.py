# SPDX-License-Identifier: Apache-2.0
"""Rows of cases.py for convolution: strides, padding, both dilations, groups of features and of the batch."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from shardwise import _core
from tests.op.case import FLOATS, Application, OpCase
from tests.op.inputs import Shape, plain
from tests.op.references import Array, is_float, wide

Struct = _core.ir.Struct
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


def _application(
    lhs: Shape, rhs: Shape, numbers: str, pads: Pads = (), strides: Shape = (), lhs_dilation: Shape = (),
    rhs_dilation: Shape = (), features: int = 1, batches: int = 1,
) -> Application:  # fmt: skip
    ones = (1,) * (len(lhs) - 2)
    strides, lhs_dilation, rhs_dilation = strides or ones, lhs_dilation or ones, rhs_dilation or ones
    pads = pads or ((0, 0),) * len(ones)
    attrs = {
        "window_strides": strides,
        "padding": np.array(pads, np.int64).reshape(-1, 2),
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation,
        "dimension_numbers": Struct("stablehlo.conv", {"": numbers}),
        "feature_group_count": features,
        "batch_group_count": batches,
    }
    reference = partial(
        convolution, numbers=numbers, strides=strides, pads=pads, lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation, features=features, batches=batches,
    )  # fmt: skip
    return Application(
        (lhs, rhs), reference, attrs, has_local=features == batches == 1,
        label=f"{lhs}{rhs}{numbers}{pads}{strides}{lhs_dilation}{rhs_dilation}{features}{batches}",
    )  # fmt: skip


def _convolutions(n: int, dtype: str) -> list[Application]:
    g = max(n, 1)
    last = "[b, 0, f]x[0, i, o]->[b, 0, f]"
    return [
        _application((n, 5, 3), (2, 3, 4), last, ((1, 0),)),
        _application((2, n, 3), (3, 3, 2), last, ((1, 1),), (2,)),
        _application((2, 4, n), (2, n, 3), last),
        _application((2, 5, 3), (2, 3, n), last, ((0, 2),), rhs_dilation=(2,)),
        _application((2, 3, n, 4), (4, 3, 2, 3), "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
                     ((2, -1), (1, 1)), (1, 2), (2, 1), (1, 2)),
        _application((3, n, 4, 2), (3, 2, 3, 3), "[f, 0, 1, b]x[i, 0, o, 1]->[0, b, f, 1]", ((1, 1), (0, 1))),
        _application((2, n, 4), (1, 4, 3), last),
        _application((2, n, 4), (2, 4, 3), last, strides=(2,)),
        _application((2, 4, 2 * g), (2, 2, 3 * g), last, ((1, 0),), features=g),
        _application((2, n, 3), (2, 1, 6), last, ((0, 1),), features=3),
        _application((2, n, 5), (3, 1, 5), last, ((1, 1),), features=5),
        _application((2 * g, 4, 3), (2, 3, 2 * g), last, batches=g),
        _application((n, 3), (3, 4), "[b, f]x[i, o]->[b, f]"),
    ]  # fmt: skip


CONVOLUTIONS = [
    OpCase("stablehlo.convolution", (*FLOATS, "int32", "uint8"), _convolutions, plain, "dot", combine="add")
]
