# SPDX-License-Identifier: Apache-2.0
"""Control flow, maps and composites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.conformance.stablehlo.ops.xla import BELOW_FLOAT8
from tests.op import references as ref
from tests.op.case import NUMBERS, Application, OpCase
from tests.op.catalogue.instance import EVERY, Build, Row, Table, ints, tensor
from tests.op.dtype_values import ALL_DTYPES, COMPLEX, NARROW_FLOATS
from tests.op.inputs import dtype_of, plain
from tests.op.references import Array

SIMPLE = tuple(d for d in ALL_DTYPES if d not in NARROW_FLOATS)


def map_cases(n: int, dtype: str) -> list[Application]:
    attrs = {"dimensions": (0, 1)}
    factor = np.asarray(3, dtype_of(dtype))

    def record(trace: Any, operands: Sequence[int]) -> int:
        region = int(trace.begin_region())
        x, y = (trace.region_argument((), dtype) for _ in operands)
        scaled = trace.emit("stablehlo.multiply", [y, trace.constant(factor)[0]])[0]
        trace.end_region([trace.emit("stablehlo.add", [x, scaled])[0]])
        return int(trace.emit_op("stablehlo.map", list(operands), attrs, regions=[region])[0][0])

    def rounded(x: Array, y: Array) -> Array:
        product = ref.in_float32(np.multiply)(y, factor)
        return ref.in_float32(np.add)(x, product)

    return [Application(((n, 3), (n, 3)), rounded, attrs, record=record)]


CASES: list[OpCase] = [OpCase("stablehlo.map", NUMBERS, map_cases, plain)]


def step(dtype: str, rng: np.random.Generator) -> str:
    """A binary op whose result has the same bits in XLA and here."""
    if dtype == "bool":
        return str(rng.choice(["xor", "and", "or"]))
    if dtype in COMPLEX:
        return "add"
    return str(rng.choice(["add", "maximum", "minimum"]))


def draw_while(b: Build) -> None:
    """A loop whose number of trips is an argument: zero too."""
    shape, op = b.shape(), step(b.dtype, b.rng)
    trips, x, y = b.argument(np.array(b.below(0, 4), np.int32)), b.argument(b.tame(shape)), b.argument(b.tame(shape))
    t, i = tensor(shape, b.dtype), "tensor<i32>"
    b.line(f"%zero = stablehlo.constant dense<0> : {i}\n  %one = stablehlo.constant dense<1> : {i}")
    cond = (
        f"{{\n  ^bb0(%i: {i}, %u: {t}):\n"
        f"    %p = stablehlo.compare LT, %i, {trips}, SIGNED : ({i}, {i}) -> tensor<i1>\n"
        f'    "stablehlo.return"(%p) : (tensor<i1>) -> ()\n  }}'
    )
    body = (
        f"{{\n  ^bb0(%j: {i}, %v: {t}):\n    %k = stablehlo.add %j, %one : {i}\n    %w = stablehlo.{op} %v, {y} : {t}\n"
        f'    "stablehlo.return"(%k, %w) : ({i}, {t}) -> ()\n  }}'
    )
    b.op(["%zero", x], [((), "int32"), (shape, b.dtype)], regions=f"{cond}, {body}", types=[i, t])


def draw_scan(b: Build) -> None:
    """Rows along any dim, in both directions; the body returns another row than the next carry."""
    shape = b.filled_shape(1, 3)
    dim = b.below(0, len(shape) - 1)
    row = shape[:dim] + shape[dim + 1 :]
    t = tensor(row, b.dtype)
    operands = [b.argument(b.tame(shape)), b.argument(b.tame(row))]
    properties = f"dimension = {dim} : i64"
    if b.chance(0.5):
        properties += ", is_reverse = true"
    properties += ", operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>"
    region = (
        f"{{\n  ^bb0(%u: {t}, %v: {t}):\n    %w = stablehlo.{step(b.dtype, b.rng)} %u, %v : {t}\n"
        f"    %z = stablehlo.{step(b.dtype, b.rng)} %w, %u : {t}\n"
        f'    "stablehlo.return"(%z, %w) : ({t}, {t}) -> ()\n  }}'
    )
    b.op(operands, [(shape, b.dtype), (row, b.dtype)], properties, region)


def branch(name: str, op: str, x: str, y: str, t: str) -> str:
    return f'{{\n    %{name} = stablehlo.{op} {x}, {y} : {t}\n    "stablehlo.return"(%{name}) : ({t}) -> ()\n  }}'


def draw_if(b: Build) -> None:
    shape = b.shape()
    t = tensor(shape, b.dtype)
    p, x, y = b.argument(b.wild((), "bool")), b.argument(b.tame(shape)), b.argument(b.tame(shape))
    branches = [branch(name, step(b.dtype, b.rng), x, y, t) for name in ("u", "v")]
    b.op([p], [(shape, b.dtype)], regions=", ".join(branches))


def draw_case(b: Build) -> None:
    """An index out of range takes the last branch."""
    shape, count = b.shape(), b.below(1, 3)
    t = tensor(shape, b.dtype)
    p = b.argument(np.array(b.below(-1, count), np.int32))
    x, y = b.argument(b.tame(shape)), b.argument(b.tame(shape))
    branches = [branch(f"u{i}", step(b.dtype, b.rng), x, y, t) for i in range(count)]
    b.op([p], [(shape, b.dtype)], regions=", ".join(branches))


def draw_map(b: Build) -> None:
    shape, op = b.shape(), step(b.dtype, b.rng)
    t = tensor((), b.dtype)
    region = (
        f"{{\n  ^bb0(%u: {t}, %v: {t}):\n    %w = stablehlo.{op} %u, %v : {t}\n    %z = stablehlo.{op} %w, %v : {t}\n"
        f'    "stablehlo.return"(%z) : ({t}) -> ()\n  }}'
    )
    operands = [b.argument(b.tame(shape)), b.argument(b.tame(shape))]
    b.op(operands, [(shape, b.dtype)], f"dimensions = {ints(range(len(shape)))}", region)


def draw_composite(b: Build) -> None:
    shape, op = b.shape(), step(b.dtype, b.rng)
    t = tensor(shape, b.dtype)
    operands = [b.argument(b.tame(shape)), b.argument(b.tame(shape))]
    b.op(
        operands, [(shape, b.dtype)],
        'name = "my.op", composite_attributes = {n = 1 : i64}, decomposition = @fn, version = 1 : i32',
    )  # fmt: skip
    b.functions = (
        f"func.func private @fn(%u: {t}, %v: {t}) -> {t} {{\n  %w = stablehlo.{op} %u, %v : {t}\n"
        f"  %z = stablehlo.{op} %w, %u : {t}\n  return %z : {t}\n}}\n"
    )


DRAWS: Table = {
    "stablehlo.while": Row(SIMPLE, draw_while),
    "chlo.scan": Row(SIMPLE, draw_scan),
    "stablehlo.if": Row(SIMPLE, draw_if),
    "stablehlo.case": Row(SIMPLE, draw_case),
    "stablehlo.map": Row(SIMPLE, draw_map),
    # XLA computes these in float32 and rounds once for two ops.
    "stablehlo.composite": Row(tuple(d for d in EVERY if d not in BELOW_FLOAT8), draw_composite),
}
