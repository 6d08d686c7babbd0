# SPDX-License-Identifier: Apache-2.0
"""Control flow, maps, composites, and random bits."""

from __future__ import annotations

import numpy as np

from shardwise.dtypes import is_float, numpy_dtype
from tests.conformance.stablehlo.ops.instance import Build, Row, Table, ints, tensor
from tests.conformance.stablehlo.ops.xla import BELOW_FLOAT8
from tests.op.dtype_values import ALL_DTYPES, COMPLEX, NARROW_FLOATS

EVERY = tuple(ALL_DTYPES)
SIMPLE = tuple(d for d in ALL_DTYPES if d not in NARROW_FLOATS)


def step(dtype: str, rng: np.random.Generator) -> str:
    """A binary op whose result has the same bits in XLA and here."""
    if dtype == "bool":
        return str(rng.choice(["xor", "and", "or"]))
    if dtype in COMPLEX:
        return "add"
    return str(rng.choice(["add", "maximum", "minimum"]))


def while_(b: Build) -> None:
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


def scan(b: Build) -> None:
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


def if_(b: Build) -> None:
    shape = b.shape()
    t = tensor(shape, b.dtype)
    p, x, y = b.argument(b.wild((), "bool")), b.argument(b.tame(shape)), b.argument(b.tame(shape))
    branches = [branch(name, step(b.dtype, b.rng), x, y, t) for name in ("u", "v")]
    b.op([p], [(shape, b.dtype)], regions=", ".join(branches))


def case(b: Build) -> None:
    """An index out of range takes the last branch."""
    shape, count = b.shape(), b.below(1, 3)
    t = tensor(shape, b.dtype)
    p = b.argument(np.array(b.below(-1, count), np.int32))
    x, y = b.argument(b.tame(shape)), b.argument(b.tame(shape))
    branches = [branch(f"u{i}", step(b.dtype, b.rng), x, y, t) for i in range(count)]
    b.op([p], [(shape, b.dtype)], regions=", ".join(branches))


def map_(b: Build) -> None:
    shape, op = b.shape(), step(b.dtype, b.rng)
    t = tensor((), b.dtype)
    region = (
        f"{{\n  ^bb0(%u: {t}, %v: {t}):\n    %w = stablehlo.{op} %u, %v : {t}\n    %z = stablehlo.{op} %w, %v : {t}\n"
        f'    "stablehlo.return"(%z) : ({t}) -> ()\n  }}'
    )
    operands = [b.argument(b.tame(shape)), b.argument(b.tame(shape))]
    b.op(operands, [(shape, b.dtype)], f"dimensions = {ints(range(len(shape)))}", region)


def composite(b: Build) -> None:
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


def rng_bit_generator(b: Build) -> None:
    algorithm = b.pick(("THREE_FRY", "PHILOX"))
    words = 2 if algorithm == "THREE_FRY" else b.pick((2, 3))
    shape = b.shape()
    state = b.argument(b.rng.integers(0, 2**64, words, dtype=np.uint64))
    properties = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    b.op([state], [((words,), "uint64"), (shape, b.dtype)], properties)


def rng(b: Build) -> None:
    """The implementation chooses the numbers: only their bounds and moments are compared."""
    to = numpy_dtype(b.dtype)
    normal = b.chance(0.5) and is_float(to)
    shape = (b.below(20, 40), b.below(30, 60)) if normal or b.chance(0.3) else b.filled_shape(1, 3)
    low = np.array(0 if b.dtype == "bool" else b.below(0, 3) - (3 if to.kind not in "u" else 0)).astype(to)
    high = np.array(1 if b.dtype == "bool" else b.below(4, 9)).astype(to)  # of a normal distribution the deviation
    c = b.int_constant(shape)
    operands = [b.argument(low), b.argument(high)]
    types = [b.type_of(x) for x in operands] + [f"tensor<{len(shape)}xi64>"]
    which = "NORMAL" if normal else "UNIFORM"
    b.op([*operands, c], [(shape, b.dtype)], f"rng_distribution = #stablehlo<rng_distribution {which}>", types=types)
    b.compare_with("normal" if normal else "uniform")


WORDS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
DRAWN = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint32", "bool")

ROWS: Table = {
    "stablehlo.while": Row(SIMPLE, while_),
    "chlo.scan": Row(SIMPLE, scan),
    "stablehlo.if": Row(SIMPLE, if_),
    "stablehlo.case": Row(SIMPLE, case),
    "stablehlo.map": Row(SIMPLE, map_),
    # XLA computes these in float32 and rounds once for two ops.
    "stablehlo.composite": Row(tuple(d for d in EVERY if d not in BELOW_FLOAT8), composite),
    "stablehlo.rng_bit_generator": Row(WORDS, rng_bit_generator),
    "stablehlo.rng": Row(DRAWN, rng),
}
