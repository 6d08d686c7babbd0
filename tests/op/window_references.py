# SPDX-License-Identifier: Apache-2.0
"""What a windowed reduction means, in NumPy on whole arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.op import references as ref
from tests.op.references import Array, Reference, is_float, wide


def reduce_window(
    x: Array,
    init: Array,
    reducer: str,
    sizes: Sequence[int],
    padding: Sequence[Sequence[int]],
    strides: Sequence[int] | None = None,
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
) -> Array:
    """As StableHLO says it: pad with the init value, slice, and reduce from the init value."""
    ones = (1,) * x.ndim
    strides, dilations, base = strides or ones, window_dilations or ones, base_dilations or ones
    if reducer in ("add", "multiply"):
        x, init = (ref.wide(x), ref.wide(init)) if ref.is_float(x.dtype) else (x, init)
    function: Reference = {
        "add": np.add, "multiply": np.multiply, "maximum": ref.maximum, "minimum": ref.minimum, "and": np.bitwise_and,
        "or": np.bitwise_or,
    }[reducer]  # fmt: skip
    interior = [k - 1 for k in base]
    wide_enough = [max(n + (n - 1) * k, 0) + a + b for n, k, (a, b) in zip(x.shape, interior, padding)]
    spans = [(w - 1) * d + 1 for w, d in zip(sizes, dilations)]
    shape = [(n - s) // stride + 1 if n >= s else 0 for n, s, stride in zip(wide_enough, spans, strides)]
    result = np.full(shape, init, x.dtype)
    if 0 in shape:
        return result
    padded = ref.pad(x, init, [a for a, _ in padding], [b for _, b in padding], interior)
    for place in np.ndindex(*sizes):
        starts = [p * d for p, d in zip(place, dilations)]
        view = padded[tuple(slice(a, a + (n - 1) * k + 1, k) for a, n, k in zip(starts, shape, strides))]
        result = np.asarray(function(result, view))
    return result


def select_and_scatter(
    operand: Array, source: Array, init: Array, sizes: Sequence[int], strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> Array:  # fmt: skip
    """Adds each element of the source to the first largest element of its window; padding is never selected."""
    to = operand.dtype
    found = np.full(operand.shape, init, np.longdouble if is_float(to) else to)
    source = wide(source) if is_float(to) else source
    for window in np.ndindex(*source.shape):
        best: tuple[int, ...] | None = None
        for tap in np.ndindex(*sizes):
            at = tuple(w * s + t - low for w, s, t, (low, _) in zip(window, strides, tap, pads))
            if not all(0 <= i < size for i, size in zip(at, operand.shape)):
                continue
            if best is None or not operand[best] >= operand[at]:
                best = at
        if best is not None:
            found[best] += source[window]
    return found
