# SPDX-License-Identifier: Apache-2.0
"""Rows of cases.py for select_and_scatter, the gradient of pooling by the maximum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardwise import _core
from shardwise.dtypes import is_signed
from tests.op.case import FLOATS, Application, OpCase
from tests.op.inputs import Shape, dtype_of, plain
from tests.op.references import Array, is_float, wide

EnumValue = _core.ir.EnumValue
Pads = tuple[tuple[int, int], ...]


def select_and_scatter(operand: Array, source: Array, init: Array, sizes: Shape, strides: Shape, pads: Pads) -> Array:
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


def _region(trace: Any, op: str, dtype: str, attrs: dict[str, Any] | None = None) -> int:
    region = int(trace.begin_region())
    arguments = [trace.region_argument((), dtype) for _ in range(2)]
    trace.end_region([trace.emit(op, arguments, attrs)[0]])
    return region


def pool(shape: Shape, sizes: Shape, strides: Shape, pads: Pads, dtype: str = "float32") -> Application:
    windows = tuple(
        max((n + low + high - size) // step + 1, 0) if n + low + high >= size else 0
        for n, size, step, (low, high) in zip(shape, sizes, strides, pads)
    )

    def reference(operand: Array, source: Array, init: Array) -> Array:
        return select_and_scatter(operand, source, init, sizes, strides, pads)

    def record(trace: Any, operands: Sequence[int]) -> int:
        to = dtype_of(dtype)
        kind = "FLOAT" if is_float(to) else "SIGNED" if is_signed(to) else "UNSIGNED"
        compare = {
            "comparison_direction": EnumValue("stablehlo", "comparison_direction", "GE"),
            "compare_type": EnumValue("stablehlo", "comparison_type", kind),
        }
        regions = [_region(trace, "stablehlo.compare", dtype, compare), _region(trace, "stablehlo.add", dtype)]
        attrs = {"window_dimensions": sizes, "window_strides": strides, "padding": np.array(pads, np.int64)}
        return int(trace.emit_op("stablehlo.select_and_scatter", list(operands), attrs, regions=regions)[0][0])

    return Application((shape, windows, ()), reference, record=record, label=f"{shape}{sizes}{strides}{pads}")


def _pools(n: int, dtype: str) -> list[Application]:
    none = (0, 0)
    return [
        pool((n, 6, 3), (1, 2, 1), (1, 2, 1), (none,) * 3, dtype),
        pool((2, n, 4), (1, 3, 2), (1, 2, 1), (none, (1, 1), (0, 1)), dtype),
        pool((n, 4), (2, 2), (1, 1), ((1, 1), none), dtype),
    ]


POOLING = [OpCase("stablehlo.select_and_scatter", (*FLOATS, "int32"), _pools, plain, "magnitude", 8)]
