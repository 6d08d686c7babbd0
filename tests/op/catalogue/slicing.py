# SPDX-License-Identifier: Apache-2.0
"""Slices, pads and concatenations, at constant and at computed places."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from shardwise.dtypes import numpy_dtype
from tests.op import references as ref
from tests.op.case import ALL, Application, OpCase
from tests.op.catalogue.instance import EVERY, Build, Row, Table, ints
from tests.op.inputs import Shape, plain
from tests.op.references import Array, Reference

INDEX_DTYPES = ("int32", "int64", "uint8", "int8", "uint32")


# ---- cases -----------------------------------------------------------------------------------------------------------


def slice_cases(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, Shape]] = [
        ((min(1, n), 0), (n, 5), (1, 1)),
        ((0, 1), (n, 4), (1, 2)),
        ((0, 0), (n, 5), (3, 1)),
        ((n // 2, 2), (n - n // 4, 5), (1, 1)),
        ((0, 3), (n, 3), (1, 1)),
    ]

    def at(start: Shape, limit: Shape, strides: Shape) -> Callable[[Shape], Reference]:
        def local(shape: Shape) -> Reference:
            def apply(x: Array) -> Array:
                whole = [
                    a == 0 and c == 1 and s == x.shape[d] for d, (a, c, s) in enumerate(zip(start, strides, shape))
                ]
                ends = [x.shape[d] if w else b for d, (w, b) in enumerate(zip(whole, limit))]
                return ref.slice_by(start, ends, strides)(x)

            return apply

        return local

    return [
        Application(
            ((n, 5),),
            ref.slice_by(start, limit, strides),
            {"start_indices": start, "limit_indices": limit, "strides": strides},
            at=at(start, limit, strides),
            label=f"{start}:{limit}:{strides}",
        )
        for start, limit, strides in rows
    ]


def pad_cases(n: int, dtype: str) -> list[Application]:
    cut = 1 if n > 1 else 0
    rows: list[tuple[Shape, Shape, Shape]] = [
        ((1, 0), (2, 0), (0, 0)),
        ((0, 2), (0, 1), (0, 0)),
        ((0, 0), (0, 0), (2, 0)),
        ((-cut, 0), (cut, -1), (0, 1)),
        ((2, -1), (-cut, 0), (1, 0)),
        ((0, 0), (0, 0), (0, 0)),
    ]
    return [
        Application(
            ((n, 3), ()),
            partial(ref.pad, low=low, high=high, interior=interior),
            {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior},
            label=f"{low}{high}{interior}",
        )
        for low, high, interior in rows
    ]


def concatenate_cases(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[tuple[Shape, ...], int]] = [
        (((n, 3), (2, 3)), 0),
        (((n, 3), (n, 2), (n, 1)), 1),
        (((n, 3), (n, 3)), 0),
        (((n, 3),), 0),
    ]
    return [
        Application(shapes, lambda *xs, dim=dim: np.concatenate(xs, dim), {"dimension": dim}, label=str(dim))
        for shapes, dim in rows
    ]


def _starts(dtype: str, *values: int) -> dict[int, Array]:
    return {i: np.asarray(v, dtype) for i, v in enumerate(values)}


def dynamic_slice_cases(n: int, dtype: str) -> list[Application]:
    rows = [((n - n // 2, 5), (2, 0), "int32"), ((n, 2), (0, 9), "int64"), ((n - n // 3, 4), (-3, -1), "int8")]
    return [
        Application(
            ((n, 5), (), ()),
            ref.dynamic_slice(sizes),
            {"slice_sizes": sizes},
            dtypes=(None, index, index),
            fixed={k + 1: v for k, v in _starts(index, *starts).items()},
            at=lambda shape: ref.dynamic_slice(shape),
            label=f"{sizes}{starts}",
        )
        for sizes, starts, index in rows
    ]


def dynamic_update_slice_cases(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, str]] = [
        ((min(2, n), 5), (n // 2, 0), "int32"),
        ((n, 2), (0, 1), "int64"),
        ((n - n // 2, 3), (100, 200), "uint8"),
        ((min(1, n), 1), (-5, -5), "int8"),
    ]
    return [
        Application(
            ((n, 5), update, (), ()),
            ref.dynamic_update_slice,
            dtypes=(None, None, index, index),
            fixed={k + 2: v for k, v in _starts(index, *starts).items()},
            has_local=False,
            label=f"{update}{starts}",
        )
        for update, starts, index in rows
    ]


CASES: list[OpCase] = [
    OpCase("stablehlo.slice", ALL, slice_cases, plain, has_range=True),
    OpCase("stablehlo.pad", ALL, pad_cases, plain, has_range=True),
    OpCase("stablehlo.concatenate", ALL, concatenate_cases, plain, has_range=True),
    OpCase("stablehlo.dynamic_slice", ALL, dynamic_slice_cases, plain, has_range=True),
    OpCase("stablehlo.dynamic_update_slice", ALL, dynamic_update_slice_cases, plain, has_range=True),
]


# ---- random instances ------------------------------------------------------------------------------------------------


def slice_bounds(b: Build, shape: Shape) -> tuple[list[int], list[int], list[int], Shape]:
    starts = [b.below(0, d) for d in shape]
    limits = [b.below(s, d) for s, d in zip(starts, shape)]
    steps = [b.pick((1, 1, 2, 3)) for _ in shape]
    return starts, limits, steps, tuple(-(-(e - s) // k) for s, e, k in zip(starts, limits, steps))


def draw_slice(b: Build) -> None:
    shape = b.shape()
    starts, limits, steps, to = slice_bounds(b, shape)
    properties = f"start_indices = {ints(starts)}, limit_indices = {ints(limits)}, strides = {ints(steps)}"
    b.op([b.argument(b.wild(shape))], [(to, b.dtype)], properties)


def pads(b: Build, least: int = 0) -> tuple[Shape, list[int], list[int], list[int], Shape]:
    """Any amounts, none, or a shift, which leaves the size of a dim as it is."""
    shape = b.shape(1, 3) if least or b.chance(0.95) else ()
    ways = [b.pick((*["any"] * 6, "none", "shift")) for _ in shape]
    low = [{"any": b.below(-2, 3), "none": 0, "shift": 1}[way] for way in ways]
    high = [{"any": b.below(-2, 3), "none": 0, "shift": -1}[way] for way in ways]
    interior = [b.pick((0, 0, 1, 2)) if way == "any" else 0 for way in ways]
    to = [d + lo + hi + max(d - 1, 0) * i for d, lo, hi, i in zip(shape, low, high, interior)]
    for d, size in enumerate(to):
        if size < 0:
            high[d], to[d] = high[d] - size, 0
    return shape, low, high, interior, tuple(to)


def draw_pad(b: Build) -> None:
    shape, low, high, interior, to = pads(b)
    properties = (
        f"edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, interior_padding = {ints(interior)}"
    )
    b.op([b.argument(b.wild(shape)), b.argument(b.wild(()))], [(to, b.dtype)], properties)


def draw_concatenate(b: Build) -> None:
    shape = b.shape(1, 3)
    dim = b.below(0, len(shape) - 1)
    shapes = [(*shape[:dim], b.size(), *shape[dim + 1 :]) for _ in range(b.below(1, 3))]
    to = (*shape[:dim], sum(s[dim] for s in shapes), *shape[dim + 1 :])
    b.op([b.argument(b.wild(s)) for s in shapes], [(to, b.dtype)], f"dimension = {dim} : i64")


def starts(b: Build, shape: Shape, reach: int = 3) -> list[str]:
    """Scalar start indices, out of bounds too."""
    dtype = b.pick(INDEX_DTYPES)
    low = 0 if dtype.startswith("u") else -reach
    return [b.argument(np.array(b.below(low, d + reach), numpy_dtype(dtype))) for d in shape]


def draw_dynamic_slice(b: Build) -> None:
    shape = b.shape()
    sizes = tuple(b.below(0, d) for d in shape)
    x = b.argument(b.wild(shape))
    b.op([x, *starts(b, shape)], [(sizes, b.dtype)], f"slice_sizes = {ints(sizes)}")


def draw_dynamic_update_slice(b: Build) -> None:
    shape = b.shape()
    sizes = tuple(b.below(0, d) for d in shape)
    operands = [b.argument(b.wild(shape)), b.argument(b.wild(sizes))]
    b.op([*operands, *starts(b, shape)], [(shape, b.dtype)])


DRAWS: Table = {
    "stablehlo.slice": Row(EVERY, draw_slice),
    "stablehlo.pad": Row(EVERY, draw_pad),
    "stablehlo.concatenate": Row(EVERY, draw_concatenate),
    "stablehlo.dynamic_slice": Row(EVERY, draw_dynamic_slice),
    "stablehlo.dynamic_update_slice": Row(EVERY, draw_dynamic_update_slice),
}
