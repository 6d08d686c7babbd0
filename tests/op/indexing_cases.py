# SPDX-License-Identifier: Apache-2.0
"""Rows for gather and scatter: random indices, some of them outside, some twice."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from shardwise import _core
from tests.op.case import ALL, INTEGERS, NUMBERS, Application, OpCase
from tests.op.indexing_references import Numbers, gather, gather_part, scatter, scatter_part
from tests.op.inputs import Shape, extreme, near_one, plain
from tests.op.references import Array

Struct = _core.ir.Struct


def indices(shape: Shape, dtype: str, high: int, label: str) -> Array:
    """Random places in and around [0, high); a dtype without a sign has huge numbers instead of negative ones."""
    rng = np.random.default_rng(zlib.crc32(f"{label}{shape}{high}".encode()))
    return rng.integers(-3, high + 3, shape).astype(dtype)


def _gather_application(
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


def _gather(n: int, dtype: str) -> list[Application]:
    one, some = min(n, 1), lambda count: count if n else 0  # nothing is read from a dim without elements
    row = partial(_gather_application)
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


def _scatter_application(
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


def _scatter(combiner: str) -> Callable[[int, str], list[Application]]:
    def applications(n: int, dtype: str) -> list[Application]:
        def row(label: str, *rest: Any) -> Application:
            return _scatter_application(label, combiner, *rest)

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


def _scatters(combiner: str, dtypes: tuple[str, ...], draw: Any, kind: str, **options: Any) -> OpCase:
    combine = combiner if combiner not in ("", "subtract") else None
    variant = combiner or "replace"
    return OpCase(
        "stablehlo.scatter", dtypes, _scatter(combiner), draw, kind, variant=variant, combine=combine, **options
    )


INDEXING = [
    OpCase("stablehlo.gather", ALL, _gather, extreme, combine="add"),
    _scatters("add", ALL, plain, "sum"),
    _scatters("multiply", ALL, near_one, "product"),
    _scatters("maximum", ALL, extreme, "exact", gradient_draw=plain),
    _scatters("minimum", ALL, extreme, "exact", gradient_draw=plain),
    _scatters("and", (*INTEGERS, "bool"), plain, "exact"),
    _scatters("or", (*INTEGERS, "bool"), plain, "exact"),
    _scatters("", ALL, extreme, "exact"),
    _scatters("subtract", NUMBERS, plain, "exact", gradient_dtype="none"),  # of other regions there is no gradient
]
