# SPDX-License-Identifier: Apache-2.0
"""gather and scatter with random dimension numbers, and the ops that are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from shardwise.dtypes import is_complex, is_float, numpy_dtype
from tests.conformance.stablehlo.ops.instance import Build, Row, Table, ints
from tests.conformance.stablehlo.ops.scalar_regions import combiner, replacement
from tests.conformance.stablehlo.ops.values import Array, Shape
from tests.op.dtype_values import ALL_DTYPES

EVERY = tuple(ALL_DTYPES)
INDEX_DTYPES = ("int32", "int64", "uint32", "int8", "uint8")


@dataclass(frozen=True)
class Places:
    """Dimension numbers of a gather: which dims of the operand are windows, collapsed, batching, and indexed."""

    operand: Shape
    sizes: Shape
    collapsed: tuple[int, ...]
    batching: tuple[int, ...]
    start_batching: tuple[int, ...]
    mapped: tuple[int, ...]
    batch: Shape  # the shape of the indices without their vector dim
    vector: int
    offsets: tuple[int, ...]  # dims of the result that are windows

    @property
    def indices(self) -> Shape:
        """The shape of the indices; a vector dim at their end is implied."""
        if self.vector == len(self.batch) and len(self.mapped) == 1 and len(self.batch) % 2 == 0:
            return self.batch
        return (*self.batch[: self.vector], len(self.mapped), *self.batch[self.vector :])

    @property
    def result(self) -> Shape:
        windows = iter(s for d, s in enumerate(self.sizes) if d not in self.collapsed + self.batching)
        batch = iter(self.batch)
        rank = len(self.batch) + len(self.offsets)
        return tuple(next(windows) if d in self.offsets else next(batch) for d in range(rank))


def places(b: Build) -> Places:
    """Random dimension numbers."""
    operand = b.filled_shape(1, 3)
    rank = len(operand)
    order = b.rng.permutation(rank).tolist()
    batching = sorted(order[: b.pick((0, 0, 1))])
    rest = [d for d in order if d not in batching]
    collapsed = sorted(rest[: b.below(0, len(rest))])
    mapped = b.rng.permutation(rest).tolist()[: b.below(0 if len(rest) > 1 else len(rest), len(rest))]
    sizes = tuple(1 if d in batching + collapsed else b.below(0, operand[d]) for d in range(rank))
    batch = list(b.shape(0, 2))
    start_batching: list[int] = []
    for d in batching:
        batch.insert(0, operand[d])
        start_batching = [0, *(x + 1 for x in start_batching)]
    vector = b.below(0, len(batch))
    start_batching = [x + (x >= vector) for x in start_batching]
    windows = rank - len(collapsed) - len(batching)
    offsets = sorted(b.rng.choice(windows + len(batch), windows, replace=False).tolist())
    found = Places(
        operand, sizes, tuple(collapsed), tuple(batching), tuple(start_batching), tuple(mapped), tuple(batch), vector,
        tuple(offsets),
    )  # fmt: skip
    if found.indices == found.batch:  # no vector dim in the array: it comes after all
        return Places(**{**found.__dict__, "vector": len(batch)})
    return found


def random_indices(b: Build, p: Places) -> Array:
    """Most in bounds, some beyond both ends."""
    dtype = b.pick(INDEX_DTYPES)
    low = 0 if dtype.startswith("u") else -2
    return b.rng.integers(low, max(p.operand, default=1) + 2, p.indices).astype(numpy_dtype(dtype))


def gather(b: Build) -> None:
    p = places(b)
    operands = [b.argument(b.wild(p.operand)), b.argument(random_indices(b, p))]
    b.op(operands, [(p.result, b.dtype)], gather_numbers(p) + f", slice_sizes = {ints(p.sizes)}{sorted_flag(b)}")


def sorted_flag(b: Build) -> str:
    return ", indices_are_sorted = false" if b.chance(0.3) else ""


def gather_numbers(p: Places) -> str:
    fields = [f"offset_dims = {list(p.offsets)}", f"collapsed_slice_dims = {list(p.collapsed)}"]
    if p.batching:
        fields += [
            f"operand_batching_dims = {list(p.batching)}",
            f"start_indices_batching_dims = {list(p.start_batching)}",
        ]
    fields += [f"start_index_map = {list(p.mapped)}", f"index_vector_dim = {p.vector}"]
    return f"dimension_numbers = #stablehlo.gather<{', '.join(fields)}>"


def dynamic_gather(b: Build) -> None:
    p = places(b)
    operands = [b.argument(b.wild(p.operand)), b.argument(random_indices(b, p))]
    types = [b.type_of(x) for x in operands] + [f"tensor<{len(p.sizes)}xi64>"]
    b.op([*operands, b.int_constant(p.sizes)], [(p.result, b.dtype)], gather_numbers(p), types=types)


def scatter_numbers(p: Places) -> str:
    fields = [f"update_window_dims = {list(p.offsets)}", f"inserted_window_dims = {list(p.collapsed)}"]
    if p.batching:
        fields += [
            f"input_batching_dims = {list(p.batching)}",
            f"scatter_indices_batching_dims = {list(p.start_batching)}",
        ]
    fields += [f"scatter_dims_to_operand_dims = {list(p.mapped)}", f"index_vector_dim = {p.vector}"]
    return f"scatter_dimension_numbers = #stablehlo.scatter<{', '.join(fields)}>"


def scatter(b: Build) -> None:
    """Sums and extrema at any places; replacement where the places are distinct: one index."""
    p = places(b)
    to = numpy_dtype(b.dtype)
    once = int(np.prod(p.batch)) <= 1
    options = ["add"] if is_complex(to) else ["add", "minimum", "maximum"]
    if not is_complex(to) and b.dtype == "bool":
        options = ["or", "and", "xor"]
    way = b.pick(options + ["replace"] * 3 if once else options)
    draw = b.wild if way in ("replace", "minimum", "maximum") else b.tame
    operands = [b.argument(draw(p.operand)), b.argument(random_indices(b, p)), b.argument(draw(p.result))]
    region = replacement(b.dtype) if way == "replace" else combiner(way, b.dtype)
    b.op(operands, [(p.operand, b.dtype)], f"{scatter_numbers(p)}, unique_indices = false", region)
    if way == "add" and (is_float(to) or is_complex(to)):
        b.compare_with("sum", steps(b, p))


def steps(b: Build, p: Places) -> float:
    return float(8 + np.prod(p.batch))


def torch_index_select(b: Build) -> None:
    operand = b.filled_shape(1, 3)
    dim = b.below(0, len(operand) - 1)
    batch = b.below(0, dim)
    index = (*operand[:batch], *b.shape(0, 1))
    dtype = b.pick(("int32", "int64", "uint8"))
    ids = b.rng.integers(0, operand[dim], index).astype(numpy_dtype(dtype))
    to = (*operand[:dim], *index[batch:], *operand[dim + 1 :])
    b.op(
        [b.argument(b.wild(operand)), b.argument(ids)], [(to, b.dtype)],
        f"dim = {dim} : i64, batch_dims = {batch} : i64",
    )  # fmt: skip


ROWS: Table = {
    "stablehlo.gather": Row(EVERY, gather),
    "stablehlo.dynamic_gather": Row(EVERY, dynamic_gather),
    "stablehlo.scatter": Row(EVERY, scatter),
    "stablehlo.torch_index_select": Row(EVERY, partial(torch_index_select)),
}
