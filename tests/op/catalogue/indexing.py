# SPDX-License-Identifier: Apache-2.0
"""Gathers and scatters: random indices, some of them outside, some twice."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from shardwise import _core
from shardwise.dtypes import is_complex, is_float, numpy_dtype
from tests.op.case import ALL, INTEGERS, NUMBERS, Application, OpCase
from tests.op.catalogue.instance import EVERY, Build, Row, Table, ints
from tests.op.catalogue.scalar_regions import combiner, replacement
from tests.op.indexing_references import Numbers, gather, gather_part, scatter, scatter_part
from tests.op.inputs import Shape, extreme, near_one, plain
from tests.op.references import Array

Struct = _core.ir.Struct
INDEX_DTYPES = ("int32", "int64", "uint32", "int8", "uint8")


# ---- cases -----------------------------------------------------------------------------------------------------------


def indices(shape: Shape, dtype: str, high: int, label: str) -> Array:
    """Random places in and around [0, high); a dtype without a sign has huge numbers instead of negative ones."""
    rng = np.random.default_rng(zlib.crc32(f"{label}{shape}{high}".encode()))
    return rng.integers(-3, high + 3, shape).astype(dtype)


def _gather_case(
    label: str, operand: Shape, slices: Shape, index_shape: Shape, dtype: str, numbers: Numbers
) -> Application:
    high = max([operand[d] for d in numbers.index_map], default=1)
    return Application(
        (operand, index_shape),
        gather(numbers, slices),
        {"dimension_numbers": Struct("stablehlo.gather", numbers.gather()), "slice_sizes": slices},
        dtypes=(None, dtype),
        fixed={1: indices(index_shape, dtype, high, label)},
        part=lambda first, whole: gather_part(numbers, slices, whole, first),
        label=label,
    )


def gather_cases(n: int, dtype: str) -> list[Application]:
    one, some = min(n, 1), lambda count: count if n else 0  # nothing is read from a dim without elements
    row = partial(_gather_case)
    return [
        row("rows", (n, 3), (one, 3), (some(5), 1), "int32", Numbers((1,), (0,), (), (), (0,), 1)),
        row("many ids", (7, 2), (1, 2), (n,), "int64", Numbers((1,), (0,), (), (), (0,), 1)),
        row("columns", (4, n), (4, one), (3, some(2), 1), "int8", Numbers((0,), (1,), (), (), (1,), 2)),
        row("elements", (n, 5), (one, 1), (2, some(6)), "uint8", Numbers((), (0, 1), (), (), (1, 0), 0)),
        row("windows", (n, 6), (min(n, 2), 3), (4, 2), "int16", Numbers((1, 2), (), (), (), (0, 1), 1)),
        row("batch", (n, 4, 2), (one, 1, 2), (n, 3, 1), "uint32", Numbers((2,), (1,), (0,), (0,), (1,), 2)),
        row("inner batch", (3, n), (1, one), (2, n), "uint64", Numbers((), (0,), (1,), (1,), (0,), 2)),
        row("kept dim", (n, 3), (one, 3), (some(4), 1), "int32", Numbers((1, 2), (), (), (), (0,), 1)),
        row("first row", (n, 3), (one, 2), (some(4), 1), "int64", Numbers((1,), (0,), (), (), (1,), 1)),
        row("slices", (5, n), (2, n), (3, 1), "int32", Numbers((0, 2), (), (), (), (0,), 1)),
    ]


def _scatter_case(
    label: str, combiner: str, operand: Shape, updates: Shape, index_shape: Shape, dtype: str, numbers: Numbers
) -> Application:
    high = max([operand[d] for d in numbers.index_map], default=1)
    return Application(
        (operand, index_shape, updates),
        scatter(numbers, combiner),
        {"scatter_dimension_numbers": Struct("stablehlo.scatter", numbers.scatter())},
        region=f"stablehlo.{combiner}" if combiner else "",
        dtypes=(None, dtype, None),
        fixed={1: indices(index_shape, dtype, high, label)},
        part=lambda first, whole: scatter_part(numbers, combiner, first),
        init=0,
        differentiable=combiner != "subtract",
        label=label,
    )


def scatter_cases(combiner: str) -> Callable[[int, str], list[Application]]:
    def applications(n: int, dtype: str) -> list[Application]:
        def row(label: str, *rest: Any) -> Application:
            return _scatter_case(label, combiner, *rest)

        return [
            row("rows", (n, 3), (5, 3), (5, 1), "int32", Numbers((1,), (0,), (), (), (0,), 1)),
            row("many updates", (7, 2), (n, 2), (n,), "int64", Numbers((1,), (0,), (), (), (0,), 1)),
            row("columns", (4, n), (4, 3, 2), (3, 2, 1), "int8", Numbers((0,), (1,), (), (), (1,), 2)),
            row("elements", (n, 5), (n,), (2, n), "uint8", Numbers((), (0, 1), (), (), (1, 0), 0)),
            row("windows", (n, 6), (4, min(n, 2), 3), (4, 2), "int16", Numbers((1, 2), (), (), (), (0, 1), 1)),
            row("batch", (n, 4, 2), (n, 3, 2), (n, 3, 1), "uint32", Numbers((2,), (1,), (0,), (0,), (1,), 2)),
            row("inner batch", (3, n), (2, n), (2, n), "uint64", Numbers((), (0,), (1,), (1,), (0,), 2)),
            row("first row", (n, 3), (4,), (4, 1), "int64", Numbers((), (0, 1), (), (), (1,), 1)),
            row("cut rows", (3, n), (4, n), (4, 2), "int32", Numbers((1,), (0,), (), (), (0, 1), 1)),
        ]

    return applications


def _scatter(combiner: str, dtypes: tuple[str, ...], draw: Any, kind: str, **options: Any) -> OpCase:
    combine = combiner if combiner not in ("", "subtract") else None
    variant = combiner or "replace"
    return OpCase(
        "stablehlo.scatter", dtypes, scatter_cases(combiner), draw, kind, variant=variant, combine=combine, **options
    )


def _select_case(operand: Shape, index: Shape, dim: int, batch: int, dtype: str) -> Application:
    added = len(index) - batch - 1
    others = [d for d in range(len(operand)) if d >= batch and d != dim]
    numbers = Numbers(
        tuple(d if d < dim else d + added for d in others),
        (dim,), tuple(range(batch)), tuple(range(batch)), (dim,), len(index),
    )  # fmt: skip
    slices = tuple(min(1, size) if d < batch or d == dim else size for d, size in enumerate(operand))
    return Application(
        (operand, index),
        gather(numbers, slices),
        {"dim": dim, "batch_dims": batch},
        dtypes=(None, dtype),
        fixed={1: indices(index, dtype, operand[dim], "select")},
        label=f"{operand}{index}{dim}{batch}",
    )


def torch_index_select_cases(n: int, dtype: str) -> list[Application]:
    some = 5 if n else 0
    return [
        _select_case((n, 3), (some,), 0, 0, "int32"),
        _select_case((3, n), (2, some), 1, 0, "int64"),
        _select_case((n, 4, 2), (n, 3), 1, 1, "int32"),
        _select_case((4, n), (n,), 0, 0, "uint8"),
    ]


CASES: list[OpCase] = [
    OpCase("stablehlo.gather", ALL, gather_cases, extreme, combine="add"),
    _scatter("add", ALL, plain, "sum"),
    _scatter("multiply", ALL, near_one, "product"),
    _scatter("maximum", ALL, extreme, "exact", gradient_draw=plain),
    _scatter("minimum", ALL, extreme, "exact", gradient_draw=plain),
    _scatter("and", (*INTEGERS, "bool"), plain, "exact"),
    _scatter("or", (*INTEGERS, "bool"), plain, "exact"),
    _scatter("", ALL, extreme, "exact"),
    _scatter("subtract", NUMBERS, plain, "exact", gradient_dtype="none"),  # of other regions there is no gradient
    OpCase("stablehlo.torch_index_select", ALL, torch_index_select_cases, extreme),
]


# ---- random instances ------------------------------------------------------------------------------------------------


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


def draw_gather(b: Build) -> None:
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


def scatter_numbers(p: Places) -> str:
    fields = [f"update_window_dims = {list(p.offsets)}", f"inserted_window_dims = {list(p.collapsed)}"]
    if p.batching:
        fields += [
            f"input_batching_dims = {list(p.batching)}",
            f"scatter_indices_batching_dims = {list(p.start_batching)}",
        ]
    fields += [f"scatter_dims_to_operand_dims = {list(p.mapped)}", f"index_vector_dim = {p.vector}"]
    return f"scatter_dimension_numbers = #stablehlo.scatter<{', '.join(fields)}>"


def draw_scatter(b: Build) -> None:
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


def draw_torch_index_select(b: Build) -> None:
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


DRAWS: Table = {
    "stablehlo.gather": Row(EVERY, draw_gather),
    "stablehlo.scatter": Row(EVERY, draw_scatter),
    "stablehlo.torch_index_select": Row(EVERY, draw_torch_index_select),
}
