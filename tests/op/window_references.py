# SPDX-License-Identifier: Apache-2.0
"""What a windowed reduction means, in NumPy on whole arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.op import references as ref
from tests.op.references import Array, Reference


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
