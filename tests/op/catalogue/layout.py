# SPDX-License-Identifier: Apache-2.0
"""Ops that give elements other places, and barriers."""

from __future__ import annotations

import math

import numpy as np

from tests.op import references as ref
from tests.op.case import ALL, Application, OpCase
from tests.op.catalogue.instance import EVERY, Build, Row, Table, ints
from tests.op.inputs import Shape, plain

# ---- cases -----------------------------------------------------------------------------------------------------------


def transpose_cases(n: int, dtype: str) -> list[Application]:
    return [
        Application((shape,), lambda x, order=order: x.transpose(order), {"permutation": order}, label=str(order))
        for shape, order in [((n, 4), (1, 0)), ((2, n, 3), (2, 0, 1)), ((n, 3), (0, 1))]
    ]


def reshape_cases(n: int, dtype: str) -> list[Application]:
    pairs: list[tuple[Shape, Shape]] = [
        ((n, 6), (6 * n,)),
        ((n, 6), (n, 2, 3)),
        ((4 * n,), (n, 4)),
        ((4 * n,), (4, n)),
        ((4, n), (n, 4)),
        ((4, 3 * n), (6, 2 * n)),
        ((n, 1, 3), (1, n, 3)),
        ((2, n, 4), (2 * n, 4)),
    ]
    return [
        Application(
            (a,), lambda x, b=b: x.reshape(b), result_shape=b, at=lambda s: lambda x: x.reshape(s), label=f"{a} {b}"
        )
        for a, b in pairs
    ]


def optimization_barrier_cases(n: int, dtype: str) -> list[Application]:
    return [Application(((n, 3),), lambda x: x), Application(((2, n),), lambda x: x)]


def broadcast_in_dim_cases(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, Shape]] = [
        ((n,), (3, n), (1,)),
        ((n, 1), (n, 4), (0, 1)),
        ((1, 3), (n, 3), (0, 1)),
        ((), (n, 3), ()),
        ((3, n), (n, 2, 3), (2, 0)),
    ]
    return [
        Application(
            (a,),
            ref.broadcast_in_dim(b, dims),
            {"broadcast_dimensions": dims},
            result_shape=b,
            at=lambda s, dims=dims: ref.broadcast_in_dim(s, dims),
            label=f"{a} {b}",
        )
        for a, b, dims in rows
    ]


def reverse_cases(n: int, dtype: str) -> list[Application]:
    return [
        Application(((n, 4),), lambda x, dims=dims: np.flip(x, dims), {"dimensions": dims}, label=str(dims))
        for dims in [(0,), (1,), (0, 1)]
    ]


def broadcast_cases(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape]] = [((n,), (3,)), ((3,), (n, 2)), ((), (n,)), ((2, n), ())]
    return [
        Application(
            (shape,),
            lambda x, sizes=sizes: np.broadcast_to(x, sizes + x.shape),
            {"broadcast_sizes": sizes},
            at=lambda part: lambda x: np.broadcast_to(x, (*part[: len(part) - x.ndim], *x.shape)),
            label=f"{shape}{sizes}",
        )
        for shape, sizes in rows
    ]


CASES: list[OpCase] = [
    OpCase("stablehlo.transpose", ALL, transpose_cases, plain),
    OpCase("stablehlo.optimization_barrier", ALL, optimization_barrier_cases, plain),
    OpCase("stablehlo.reshape", ALL, reshape_cases, plain),
    OpCase("stablehlo.broadcast_in_dim", ALL, broadcast_in_dim_cases, plain),
    OpCase("stablehlo.reverse", ALL, reverse_cases, plain, has_range=True),
    OpCase("stablehlo.broadcast", ALL, broadcast_cases, plain),
]


# ---- random instances ------------------------------------------------------------------------------------------------


def reshaped(b: Build, shape: Shape) -> Shape:
    """Another shape with as many elements."""
    count = math.prod(shape)
    if count == 0:
        return (*b.pick(((), (3,), (1, 2))), 0)
    found: list[int] = []
    while count > 1 and len(found) < 4:
        factor = b.pick([d for d in range(1, count + 1) if count % d == 0])
        found.append(factor)
        count //= factor
    found += [count] if count > 1 else []
    if b.chance(0.4):
        found.insert(b.below(0, len(found)), 1)
    return tuple(found)


def draw_reshape(b: Build) -> None:
    shape = b.shape() if b.chance(0.2) else b.filled_shape()
    b.op([b.argument(b.wild(shape))], [(reshaped(b, shape), b.dtype)])


def draw_transpose(b: Build) -> None:
    shape = b.shape(0, 4)
    order = b.rng.permutation(len(shape)).tolist()
    b.op([b.argument(b.wild(shape))], [(tuple(shape[d] for d in order), b.dtype)], f"permutation = {ints(order)}")


def draw_broadcast(b: Build) -> None:
    shape, sizes = b.shape(0, 2), b.shape(0, 2)
    b.op([b.argument(b.wild(shape))], [((*sizes, *shape), b.dtype)], f"broadcast_sizes = {ints(sizes)}")


def broadcast_shapes(b: Build) -> tuple[Shape, Shape, list[int]]:
    to = b.shape(0, 3)
    dims = sorted(b.rng.choice(len(to), b.below(0, len(to)), replace=False).tolist()) if to else []
    return tuple(1 if b.chance(0.3) else to[d] for d in dims), to, dims


def draw_broadcast_in_dim(b: Build) -> None:
    shape, to, dims = broadcast_shapes(b)
    if b.chance(0.6):  # dims in any order
        order = b.rng.permutation(len(dims)).tolist()
        shape, dims = tuple(shape[i] for i in order), [dims[i] for i in order]
    b.op([b.argument(b.wild(shape))], [(to, b.dtype)], f"broadcast_dimensions = {ints(dims)}")


def draw_reverse(b: Build) -> None:
    shape = b.shape()
    dims = b.rng.permutation(len(shape))[: b.below(0, len(shape))].tolist()
    b.op([b.argument(b.wild(shape))], [(shape, b.dtype)], f"dimensions = {ints(dims)}")


def draw_barrier(b: Build) -> None:
    shapes = [b.shape() for _ in range(b.below(1, 3))]
    b.op([b.argument(b.wild(s)) for s in shapes], [(s, b.dtype) for s in shapes])


DRAWS: Table = {
    "stablehlo.reshape": Row(EVERY, draw_reshape),
    "stablehlo.transpose": Row(EVERY, draw_transpose),
    "stablehlo.broadcast": Row(EVERY, draw_broadcast),
    "stablehlo.broadcast_in_dim": Row(EVERY, draw_broadcast_in_dim),
    "stablehlo.reverse": Row(EVERY, draw_reverse),
    "stablehlo.optimization_barrier": Row(EVERY, draw_barrier),
}
