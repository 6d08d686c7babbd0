# SPDX-License-Identifier: Apache-2.0
"""Elements of a result that the corners of an instance can reach, for the mechanisms: masks of the result's shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import shardwise as sw
from tests.conformance.stablehlo.ops.instance import Instance

Box = tuple[slice, ...]


def attributes(instance: Instance) -> dict[str, Any]:
    ops = sw.parse(instance.text())._core.ops
    return dict(next(op for op in ops if op.name == instance.op).attributes)


def boxes_of_updates(instance: Instance) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Where each window of a scatter begins and ends in the operand, by the specification; outside too."""
    numbers = attributes(instance)["scatter_dimension_numbers"].fields
    operand, indices, updates = instance.arguments[:3]
    names = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims")
    windows, inserted, batching, start_batching = (tuple(numbers.get(name) or ()) for name in names)
    vector = numbers.get("index_vector_dim", 0)
    whole = [d for d in range(operand.ndim) if d not in (*inserted, *batching)]
    sizes = [1] * operand.ndim
    for d, window in zip(whole, windows):
        sizes[d] = updates.shape[window]
    starts = indices if vector < indices.ndim else indices[..., np.newaxis]
    starts = np.moveaxis(starts, vector, -1)
    for at in np.ndindex(*starts.shape[:-1]):
        low = [0] * operand.ndim
        for d, start in zip(numbers.get("scatter_dims_to_operand_dims") or (), starts[at]):
            low[d] = int(start)
        for d, of_start in zip(batching, start_batching):
            low[d] = at[of_start - (of_start > vector)]
        yield tuple(low), tuple(x + size for x, size in zip(low, sizes))


def inside(low: tuple[int, ...], high: tuple[int, ...]) -> Box:
    return tuple(slice(max(a, 0), max(b, 0)) for a, b in zip(low, high))


def partly_outside(instance: Instance) -> Any:
    """The elements in windows of updates that are not whole within the operand."""
    shape = instance.arguments[0].shape
    found = np.zeros(shape, bool)
    for low, high in boxes_of_updates(instance):
        if any(a < 0 or b > size for a, b, size in zip(low, high, shape)):
            found[inside(low, high)] = True
    return found


def updated_often(instance: Instance) -> Any:
    """The elements in several windows of updates."""
    counts = np.zeros(instance.arguments[0].shape, int)
    for low, high in boxes_of_updates(instance):
        counts[inside(low, high)] += 1
    return counts > 1


def tied(instance: Instance) -> Any:
    """The elements of a select_and_scatter that are not the only extremum of a window."""
    numbers = attributes(instance)
    operand, source = instance.arguments[:2]
    ordered = operand.astype(np.float64) if operand.dtype.itemsize < 8 else operand
    most = np.max if "compare GE" in instance.body else np.min
    found = np.zeros(operand.shape, bool)
    for at in np.ndindex(*source.shape):
        low = [
            i * stride - pads[0] for i, stride, pads in zip(at, numbers["window_strides"], numbers["padding"].tolist())
        ]
        box = inside(tuple(low), tuple(x + size for x, size in zip(low, numbers["window_dimensions"])))
        window = ordered[box]
        extreme = window == most(window) if window.size else np.zeros(window.shape, bool)
        if np.count_nonzero(extreme) > 1:
            found[box] |= extreme
    return found
