# SPDX-License-Identifier: Apache-2.0
"""Ops whose shapes are operands; all are constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardwise import _core
from tests.op import references as ref
from tests.op.case import ALL, NUMBERS, Application, OpCase
from tests.op.catalogue.indexing import gather_numbers, indices, places, random_indices
from tests.op.catalogue.instance import EVERY, Build, Row, Table, ints
from tests.op.catalogue.layout import broadcast_shapes, reshaped
from tests.op.catalogue.slicing import pads, slice_bounds
from tests.op.dtype_values import ALL_DTYPES
from tests.op.indexing_references import Numbers, gather
from tests.op.inputs import Shape, dtype_of, extreme, plain
from tests.op.references import Array

COUNTED = tuple(d for d in ALL_DTYPES if d != "bool")
Struct = _core.ir.Struct


# ---- cases -----------------------------------------------------------------------------------------------------------


def _constants(*values: Sequence[int]) -> dict[int, Array]:
    return {i: np.asarray(v, np.int64) for i, v in enumerate(values)}


def _behind(first: int, *values: Sequence[int]) -> tuple[tuple[Shape, ...], dict[int, Array], tuple[Any, ...]]:
    """Constant operands past the first ones: shapes, the constants, dtypes."""
    fixed = {first + i: x for i, x in _constants(*values).items()}
    return tuple(x.shape for x in fixed.values()), fixed, (*(None,) * first, *("int64",) * len(values))


def dynamic_broadcast_cases(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, Shape]] = [((n,), (3, n), (1,)), ((n, 1), (n, 4), (0, 1)), ((), (n, 3), ())]
    found = []
    for shape, to, dims in rows:
        shapes, fixed, dtypes = _behind(1, to)
        found.append(
            Application(
                (shape, *shapes),
                lambda x, _, to=to, dims=dims: ref.broadcast_in_dim(to, dims)(x),
                {"broadcast_dimensions": dims},
                result_shape=to, dtypes=dtypes, fixed=fixed, baked=True, label=f"{shape}{to}",
            )
        )  # fmt: skip
    return found


def dynamic_reshape_cases(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape]] = [((n, 6), (6 * n,)), ((4 * n,), (4, n))]
    found = []
    for shape, to in rows:
        shapes, fixed, dtypes = _behind(1, to)
        found.append(
            Application(
                (shape, *shapes), lambda x, _, to=to: x.reshape(to),
                result_shape=to, dtypes=dtypes, fixed=fixed, baked=True, label=f"{shape}{to}",
            )
        )  # fmt: skip
    return found


def dynamic_iota_cases(n: int, dtype: str) -> list[Application]:
    found = []
    for shape, dim in [((n, 3), 0), ((2, n), 1)]:
        shapes, fixed, _ = _behind(0, shape)
        found.append(
            Application(
                shapes, lambda _, shape=shape, dim=dim: ref.iota(shape, dim, dtype_of(dtype)),
                {"iota_dimension": dim}, result_shape=shape, result_dtype=dtype,
                dtypes=("int64",), fixed=fixed, baked=True, label=f"{shape}{dim}",
            )
        )  # fmt: skip
    return found


def dynamic_pad_cases(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, Shape]] = [
        ((1, 0), (2, 0), (0, 0)), ((0, 2), (0, 1), (0, 0)), ((0, -1), (0, 0), (2, 0)),
    ]  # fmt: skip
    found = []
    for low, high, interior in rows:
        shapes, fixed, dtypes = _behind(2, low, high, interior)

        def padded(x: Array, value: Array, *_: Array, of: Any = (low, high, interior)) -> Array:
            return ref.pad(x, value, *of)

        size = tuple(s + a + b + max(s - 1, 0) * c for s, a, b, c in zip((n, 3), low, high, interior))
        found.append(
            Application(
                ((n, 3), (), *shapes), padded,
                result_shape=size, dtypes=dtypes, fixed=fixed, baked=True, label=f"{low}{high}{interior}",
            )
        )  # fmt: skip
    return found


def real_dynamic_slice_cases(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, Shape]] = [((min(1, n), 0), (n, 5), (1, 1)), ((0, 1), (n, 4), (2, 2))]
    found = []
    for start, limit, strides in rows:
        shapes, fixed, dtypes = _behind(1, start, limit, strides)

        def part(x: Array, *_: Array, of: Any = (start, limit, strides)) -> Array:
            return ref.slice_by(*of)(x)

        size = tuple(-(-(b - a) // c) for a, b, c in zip(start, limit, strides))
        found.append(
            Application(
                ((n, 5), *shapes), part,
                result_shape=size, dtypes=dtypes, fixed=fixed, baked=True, label=f"{start}{limit}{strides}",
            )
        )  # fmt: skip
    return found


def dynamic_gather_cases(n: int, dtype: str) -> list[Application]:
    found = []
    some = 5 if n else 0
    rows: list[tuple[Shape, Shape, Shape, Numbers]] = [
        ((n, 3), (some, 1), (min(n, 1), 3), Numbers((1,), (0,), (), (), (0,), 1)),
        ((5, n), (3, 1), (2, n), Numbers((0, 2), (), (), (), (0,), 1)),
    ]
    for operand, index, sizes, numbers in rows:
        shapes, fixed, _ = _behind(2, sizes)
        out = tuple(gather(numbers, sizes)(np.zeros(operand), np.zeros(index, np.int64)).shape)
        found.append(
            Application(
                (operand, index, *shapes),
                lambda x, i, _, sizes=sizes, numbers=numbers: gather(numbers, sizes)(x, i),
                {"dimension_numbers": Struct("stablehlo.gather", numbers.gather())},
                result_shape=out, dtypes=(None, "int32", "int64"),
                fixed={1: indices(index, "int32", operand[0], "dynamic"), **fixed}, baked=True, label=f"{operand}",
            )
        )  # fmt: skip
    return found


def get_dimension_size_cases(n: int, dtype: str) -> list[Application]:
    return [
        Application(
            ((n, 3),), lambda x, dim=dim: np.asarray(x.shape[dim], np.int32), {"dimension": dim}, label=str(dim)
        )
        for dim in (0, 1)
    ]


def set_dimension_size_cases(n: int, dtype: str) -> list[Application]:
    found = []
    for dim, size in enumerate((n, 3)):
        fixed = {1: np.asarray(size, np.int32)}
        found.append(
            Application(
                ((n, 3), ()), lambda x, _: x, {"dimension": dim},
                dtypes=(None, "int32"), fixed=fixed, baked=True, label=str(dim),
            )
        )  # fmt: skip
    return found


CASES: list[OpCase] = [
    OpCase("stablehlo.dynamic_broadcast_in_dim", ALL, dynamic_broadcast_cases, plain),
    OpCase("stablehlo.dynamic_reshape", ALL, dynamic_reshape_cases, plain),
    OpCase("stablehlo.dynamic_iota", NUMBERS, dynamic_iota_cases, plain, differentiable=False),
    OpCase("stablehlo.dynamic_pad", ALL, dynamic_pad_cases, plain),
    OpCase("stablehlo.real_dynamic_slice", ALL, real_dynamic_slice_cases, plain),
    OpCase("stablehlo.dynamic_gather", ALL, dynamic_gather_cases, extreme),
    OpCase("stablehlo.get_dimension_size", ALL, get_dimension_size_cases, plain, differentiable=False),
    OpCase("stablehlo.set_dimension_size", ALL, set_dimension_size_cases, plain),
]


# ---- random instances ------------------------------------------------------------------------------------------------


def draw_dynamic_reshape(b: Build) -> None:
    shape = b.shape()
    to = reshaped(b, shape)
    x, c = b.argument(b.wild(shape)), b.int_constant(to)
    b.op([x, c], [(to, b.dtype)], types=[b.type_of(x), f"tensor<{len(to)}xi64>"])


def draw_dynamic_broadcast_in_dim(b: Build) -> None:
    shape, to, dims = broadcast_shapes(b)
    x, c = b.argument(b.wild(shape)), b.int_constant(to)
    types = [b.type_of(x), f"tensor<{len(to)}xi64>"]
    b.op([x, c], [(to, b.dtype)], f"broadcast_dimensions = {ints(dims)}", types=types)


def draw_real_dynamic_slice(b: Build) -> None:
    shape = b.shape(1, 3)
    *bounds, to = slice_bounds(b, shape)
    x = b.argument(b.wild(shape))
    constants = [b.int_constant(bound) for bound in bounds]
    b.op([x, *constants], [(to, b.dtype)], types=[b.type_of(x), *[f"tensor<{len(shape)}xi64>"] * 3])


def draw_dynamic_pad(b: Build) -> None:
    shape, *lists, to = pads(b, 1)
    operands = [b.argument(b.wild(shape)), b.argument(b.wild(()))]
    types = [b.type_of(x) for x in operands] + [f"tensor<{len(shape)}xi64>"] * 3
    b.op([*operands, *(b.int_constant(x) for x in lists)], [(to, b.dtype)], types=types)


def draw_dynamic_iota(b: Build) -> None:
    shape = b.shape(1, 3)
    c = b.int_constant(shape)
    dim = f"iota_dimension = {b.below(0, len(shape) - 1)} : i64"
    b.op([c], [(shape, b.dtype)], dim, types=[f"tensor<{len(shape)}xi64>"])


def draw_dimension_size(b: Build) -> None:
    shape = b.shape(1, 3)
    dim = f"dimension = {b.below(0, len(shape) - 1)} : i64"
    b.op([b.argument(b.wild(shape))], [((), "int32")], dim)


def draw_set_dimension_size(b: Build) -> None:
    """A constant size that is the whole dim: any smaller one makes a dynamic shape."""
    shape = b.shape(1, 3)
    dim = b.below(0, len(shape) - 1)
    x = b.argument(b.wild(shape))
    b.line(f"%c = stablehlo.constant dense<{shape[dim]}> : tensor<i32>")
    b.op([x, "%c"], [(shape, b.dtype)], f"dimension = {dim} : i64", types=[b.type_of(x), "tensor<i32>"])


def draw_dynamic_gather(b: Build) -> None:
    p = places(b)
    operands = [b.argument(b.wild(p.operand)), b.argument(random_indices(b, p))]
    types = [b.type_of(x) for x in operands] + [f"tensor<{len(p.sizes)}xi64>"]
    b.op([*operands, b.int_constant(p.sizes)], [(p.result, b.dtype)], gather_numbers(p), types=types)


DRAWS: Table = {
    "stablehlo.dynamic_broadcast_in_dim": Row(EVERY, draw_dynamic_broadcast_in_dim),
    "stablehlo.dynamic_reshape": Row(EVERY, draw_dynamic_reshape),
    "stablehlo.dynamic_iota": Row(COUNTED, draw_dynamic_iota),
    "stablehlo.dynamic_pad": Row(EVERY, draw_dynamic_pad),
    "stablehlo.real_dynamic_slice": Row(EVERY, draw_real_dynamic_slice),
    "stablehlo.dynamic_gather": Row(EVERY, draw_dynamic_gather),
    "stablehlo.get_dimension_size": Row(EVERY, draw_dimension_size),
    "stablehlo.set_dimension_size": Row(EVERY, draw_set_dimension_size),
}
