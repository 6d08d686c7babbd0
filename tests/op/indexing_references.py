# SPDX-License-Identifier: Apache-2.0
"""gather and scatter in NumPy, one element after the other, as the StableHLO specification writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.op.references import SMALL_FLOATS, Array, Reference, is_float, maximum, minimum, wide

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Numbers:
    """Dimension numbers of either op, under gather's names."""

    offset: Shape = ()
    collapsed: Shape = ()
    operand_batching: Shape = ()
    indices_batching: Shape = ()
    index_map: Shape = ()
    vector_dim: int = 0

    def gather(self) -> dict[str, Any]:
        return self._fields(
            "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims",
            "start_index_map",
        )  # fmt: skip

    def scatter(self) -> dict[str, Any]:
        return self._fields(
            "update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims",
        )  # fmt: skip

    def _fields(self, *names: str) -> dict[str, Any]:
        lists = (self.offset, self.collapsed, self.operand_batching, self.indices_batching, self.index_map)
        fields: dict[str, Any] = {name: dims for name, dims in zip(names, lists) if dims}
        return fields | ({"index_vector_dim": self.vector_dim} if self.vector_dim else {})

    def window(self, ndim: int) -> list[int]:
        return [d for d in range(ndim) if d not in self.collapsed + self.operand_batching]

    def places(self, out: Shape, indices: Array, ndim: int) -> Iterator[tuple[Shape, list[int], list[int]]]:
        """For each index of out: the index, the (unclamped) start in the operand, and the place in the slice."""
        window = self.window(ndim)
        vectors = np.moveaxis(indices, self.vector_dim, -1) if self.vector_dim < indices.ndim else indices[..., None]
        kept = [d for d in range(indices.ndim) if d != self.vector_dim]
        for index in np.ndindex(*out):
            batch = tuple(i for d, i in enumerate(index) if d not in self.offset)
            start, place = [0] * ndim, [0] * ndim
            for k, dim in enumerate(self.index_map):
                start[dim] = int(vectors[batch][k])
            for dim, indices_dim in zip(self.operand_batching, self.indices_batching):
                start[dim] = batch[kept.index(indices_dim)]
            for dim, out_dim in zip(window, self.offset):
                place[dim] = index[out_dim]
            yield index, start, place


def out_shape(numbers: Numbers, indices: Shape, slices: Sequence[int]) -> Shape:
    batch = [n for d, n in enumerate(indices) if d != numbers.vector_dim]
    window = iter([slices[d] for d in numbers.window(len(slices))])
    rest = iter(batch)
    return tuple(next(window) if d in numbers.offset else next(rest) for d in range(len(batch) + len(numbers.offset)))


def gather(numbers: Numbers, slices: Sequence[int]) -> Reference:
    def apply(operand: Array, indices: Array) -> Array:
        return gather_part(numbers, slices, operand.shape, [0] * operand.ndim)(operand, indices)

    return apply


def gather_part(numbers: Numbers, slices: Sequence[int], whole: Sequence[int], first: Sequence[int]) -> Reference:
    """What a part of the operand, whose first element is at `first` of the whole, contributes: zero elsewhere."""

    def apply(operand: Array, indices: Array) -> Array:
        sizes = [n if k == w else k for k, w, n in zip(slices, whole, operand.shape)]
        result = np.zeros(out_shape(numbers, indices.shape, sizes), operand.dtype)
        for index, start, place in numbers.places(result.shape, indices, operand.ndim):
            begin = [min(max(s, 0), w - k) if d in numbers.index_map else s
                     for d, (s, w, k) in enumerate(zip(start, whole, slices))]  # fmt: skip
            for d in range(operand.ndim):
                if d not in numbers.operand_batching:  # batch indices and whole slices are those of the part
                    begin[d] = 0 if slices[d] == whole[d] else begin[d] - first[d]
            at = [b + p for b, p in zip(begin, place)]
            if all(0 <= i < n for i, n in zip(at, operand.shape)):
                result[index] = operand[tuple(at)]
        return result

    return apply


COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "maximum": maximum,
    "minimum": minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "": lambda x, y: y,
    "subtract": lambda x, y: x - y,
}


def scatter(numbers: Numbers, combiner: str) -> Reference:
    """Sums and products of floats in long double."""
    return scatter_part(numbers, combiner, ())


def scatter_part(numbers: Numbers, combiner: str, first: Sequence[int]) -> Reference:
    """Into a part of the operand whose first element is at `first` of the whole."""
    combine = COMBINERS[combiner]

    def apply(operand: Array, indices: Array, updates: Array) -> Array:
        if operand.dtype == np.bool_ and combiner in ("add", "multiply"):
            bits = {"add": "or", "multiply": "and"}[combiner]
            return scatter_part(numbers, bits, first)(operand, indices, updates)
        exact = combiner in ("add", "multiply") and is_float(operand.dtype)
        result = wide(operand).copy() if exact else operand.copy()
        source = wide(updates) if exact else updates
        narrow = result.dtype in SMALL_FLOATS
        for index, start, place in numbers.places(updates.shape, indices, operand.ndim):
            skipped = [f if d in numbers.collapsed else 0 for d, f in enumerate(first)] or [0] * operand.ndim
            at = tuple(s + p - f for s, p, f in zip(start, place, skipped))
            if all(0 <= i < n for i, n in zip(at, operand.shape)):
                old, new = result[at], source[index]
                if narrow and combiner == "subtract":
                    old, new = np.float32(old), np.float32(new)
                result[at] = combine(old, new)
        return result

    return apply
