# SPDX-License-Identifier: Apache-2.0
"""Reductions, windows, sorts and the batch norms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes
import numpy as np

from shardwise.dtypes import is_float, is_inexact, numpy_dtype
from tests.conformance.stablehlo.ops.instance import Build, Row, Table, dense_ints, ints, tensor
from tests.conformance.stablehlo.ops.scalar_regions import FORMS, combiner, comparator, comparison
from tests.conformance.stablehlo.ops.values import Array, Shape, integer_ends
from tests.op.dtype_values import ALL_DTYPES, COMPLEX

EVERY = tuple(ALL_DTYPES)
FLOATS = tuple(d for d in ALL_DTYPES if is_float(numpy_dtype(d)))
TOTALLY_ORDERED = ("float32", "float64", *COMPLEX)
SORTED = tuple(d for d in ALL_DTYPES if d not in COMPLEX)


def combiners(dtype: str) -> list[str]:
    """The ops that a region may combine elements of a dtype with."""
    if dtype == "bool":
        return ["and", "or", "xor"]
    if dtype in COMPLEX:
        return ["add", "multiply"]
    if dtype == "float8_e8m0fnu":  # it has no zero
        return ["multiply", "maximum", "minimum"]
    return ["add", "multiply", "maximum", "minimum"] + ([] if is_inexact(numpy_dtype(dtype)) else ["and", "or", "xor"])


def neutral(way: str, dtype: str) -> Array:
    """The neutral element of a combiner."""
    to = numpy_dtype(dtype)
    if way in ("add", "or", "xor", "multiply"):
        return np.array(way == "multiply").astype(np.float32).astype(to) if to != np.bool_ else np.array(False)
    if is_float(to):
        info = ml_dtypes.finfo(to)
        most = np.array(np.inf, np.float32).astype(to)
        if not np.isinf(most.astype(np.float32)):  # some have no infinity
            return np.array(info.min if way == "maximum" else info.max)
        return -most if way == "maximum" else most
    if to == np.bool_:
        return np.array(True)
    low, high = integer_ends(dtype)
    return np.array({"maximum": low, "minimum": high, "and": -1 if low else high}[way], object).astype(to)


def drawn(b: Build, way: str, shape: Shape) -> Array:
    """Elements: any for exact combiners, tame ones where the order of rounding shows; factors near one."""
    if not is_inexact(numpy_dtype(b.dtype)) or way in ("maximum", "minimum"):
        return b.wild(shape)
    if way == "multiply" and b.dtype not in COMPLEX:
        return b.rng.uniform(0.75, 1.35, shape).astype(np.float32).astype(numpy_dtype(b.dtype))
    return b.tame(shape)


def compare_combined(b: Build, way: str, count: int) -> None:
    if is_inexact(numpy_dtype(b.dtype)) and way in ("add", "multiply"):
        b.compare_with("sum" if way == "add" else "product", 8 + count)


def reduce(b: Build) -> None:
    shape = b.shape()
    dims = sorted(b.rng.permutation(len(shape))[: b.below(0, len(shape))].tolist())
    to = tuple(d for i, d in enumerate(shape) if i not in dims)
    way = b.pick(combiners(b.dtype))
    init = neutral(way, b.dtype)
    if dims and b.chance(0.3) and not is_inexact(numpy_dtype(b.dtype)) and way in ("add", "maximum", "minimum"):
        init = b.wild(())
    operands = [b.argument(drawn(b, way, shape)), b.argument(init)]
    b.op(operands, [(to, b.dtype)], f"dimensions = {ints(dims)}", combiner(way, b.dtype))
    compare_combined(b, way, math.prod(shape[d] for d in dims))


def windows(b: Build, shape: Shape) -> tuple[str, Shape, int] | None:
    """Properties of a window over a shape; nothing where it would not fit."""
    sizes = [b.pick((1, 2, 3)) for _ in shape]
    strides = [b.pick((1, 1, 2, 3)) for _ in shape]
    base = [b.pick((1, 1, 1, 2)) for _ in shape]
    spread = [b.pick((1, 1, 1, 2)) for _ in shape]
    pads = [[b.below(-1, 2), b.below(-1, 3)] for _ in shape]
    to = []
    for d, size in enumerate(shape):
        padded = (0 if size == 0 else (size - 1) * base[d] + 1) + sum(pads[d])
        reach = (sizes[d] - 1) * spread[d] + 1
        if padded < 0:
            return None
        to.append(0 if reach > padded else (padded - reach) // strides[d] + 1)
    properties = (
        f"window_dimensions = {ints(sizes)}, window_strides = {ints(strides)}, base_dilations = {ints(base)}, "
        f"window_dilations = {ints(spread)}, padding = {dense_ints(pads)}"
    )
    return properties, tuple(to), math.prod(sizes)


def reduce_window(b: Build) -> None:
    way = b.pick(combiners(b.dtype))
    shape = b.shape(1, 3)
    if b.chance(0.3):  # the prefix form of a cumulative op
        n = shape[0]
        sizes, pads = [max(n, 1), *[1] * (len(shape) - 1)], [[max(n - 1, 0), 0], *[[0, 0]] * (len(shape) - 1)]
        found = (f"window_dimensions = {ints(sizes)}, padding = {dense_ints(pads)}", shape, max(n, 1))
    else:
        found = windows(b, shape) or ("", (), 0)
        # XLA:CPU crashes if windows of one element have only negative padding.
        while not found[0] or (found[2] == 1 and "-" in found[0]):
            found = windows(b, shape) or ("", (), 0)
    properties, to, count = found
    operands = [b.argument(drawn(b, way, shape)), b.argument(neutral(way, b.dtype))]
    b.op(operands, [(to, b.dtype)], properties, combiner(way, b.dtype))
    compare_combined(b, way, count)


def selector(dtype: str, direction: str) -> str:
    t = tensor((), dtype)
    return (
        f"{{\n  ^bb0(%s: {t}, %t: {t}):\n    %w = stablehlo.compare {direction}, %s, %t, {comparison(dtype)} : "
        f'({t}, {t}) -> tensor<i1>\n    "stablehlo.return"(%w) : (tensor<i1>) -> ()\n  }}'
    )


def select_and_scatter(b: Build) -> None:
    shape = b.filled_shape(1, 3)
    sizes = [b.below(1, min(3, d)) for d in shape]
    strides = [b.pick((1, 2, 3)) for _ in shape]
    pads = [[b.below(0, s - 1), b.below(0, s - 1)] for s in sizes]
    source = tuple((d + sum(p) - s) // k + 1 for d, s, k, p in zip(shape, sizes, strides, pads))
    count = math.prod(shape)
    order = b.rng.permutation(count).reshape(shape) - count // 2
    operand = (
        order.astype(np.float32).astype(numpy_dtype(b.dtype)) if is_inexact(numpy_dtype(b.dtype)) else b.wild(shape)
    )
    operands = [b.argument(operand), b.argument(b.tame(source)), b.argument(neutral("add", b.dtype))]
    properties = f"window_dimensions = {ints(sizes)}, window_strides = {ints(strides)}, padding = {dense_ints(pads)}"
    regions = selector(b.dtype, b.pick(("GE", "LE"))) + ", " + combiner("add" if b.dtype != "bool" else "or", b.dtype)
    b.op(operands, [(shape, b.dtype)], properties, regions)
    if is_inexact(numpy_dtype(b.dtype)):
        b.compare_with("sum", 8 + math.prod(sizes))


def sort(b: Build) -> None:
    """Up to four operands, up to three of them keys in any order; ties show whether the order is stable."""
    shape = b.shape(1, 3)
    dim = b.below(0, len(shape) - 1)
    dtypes = [
        b.dtype,
        *(b.pick(("int32", "float32", "bfloat16", "uint8", "complex64")) for _ in range(b.pick((0, 1, 1, 2, 3)))),
    ]
    keys = b.rng.permutation(len(dtypes))[: b.pick((1, 1, 2, 3))].tolist()
    arrays = [with_ties(b, shape, d) if i in keys else b.wild(shape, d) for i, d in enumerate(dtypes)]
    region = comparator(dtypes, [(key, b.pick("LG"), form_of_comparison(b, dtypes[key])) for key in keys])
    properties = f"dimension = {dim} : i64, is_stable = true"
    b.op([b.argument(x) for x in arrays], [(shape, d) for d in dtypes], properties, region)


def form_of_comparison(b: Build, dtype: str) -> str:
    return "total" if dtype in TOTALLY_ORDERED and b.chance(0.4) else str(b.pick(FORMS))


def with_ties(b: Build, shape: Shape, dtype: str) -> Array:
    """Any numbers, or few different ones with both zeros; NaN too, which the comparators put last."""
    x = b.wild(shape, dtype)
    if b.chance(0.6) and x.size:
        few = b.wild((3,), dtype)
        if is_inexact(few.dtype) and dtype != "float8_e8m0fnu":
            few[0] = np.array(0).astype(few.dtype)
            few[1] = np.negative(few[0])
        return np.asarray(b.rng.choice(few, shape)).astype(x.dtype)
    return x


def top_k(b: Build) -> None:
    shape = b.filled_shape(1, 3)
    k = b.below(0, shape[-1])
    to = (*shape[:-1], k)
    x = b.argument(b.wild(shape) if not is_inexact(numpy_dtype(b.dtype)) else b.tame(shape))
    b.op([x], [(to, b.dtype), (to, "int32")], f"k = {k} : i64")


def batch_norm(b: Build, kind: str) -> None:
    shape = b.filled_shape(2, 4)
    dim = b.below(0, len(shape) - 1)
    x = b.tame(shape)
    c = (shape[dim],)
    row, around = [b.tame(c) for _ in range(3)], np.abs(b.tame(c).astype(np.float64))
    variance = (around + 0.5).astype(numpy_dtype(b.dtype))
    properties = f"epsilon = 1.000000e-02 : f32, feature_index = {dim} : i64"
    arrays: Sequence[Array] = {
        "inference": (x, row[0], row[1], row[2], variance),
        "training": (x, row[0], row[1]),
        "grad": (x, row[0], row[1], variance, b.tame(shape)),
    }[kind]
    results = [(shape, b.dtype)] + ([] if kind == "inference" else [(c, b.dtype)] * 2)
    b.op([b.argument(a) for a in arrays], results, properties)
    b.compare_with("scaled", 64 + 4 * math.prod(shape))


ROWS: Table = {
    "stablehlo.reduce": Row(EVERY, reduce),
    "stablehlo.reduce_window": Row(EVERY, reduce_window),
    "stablehlo.select_and_scatter": Row(tuple(d for d in SORTED if d != "float8_e8m0fnu"), select_and_scatter),
    "stablehlo.sort": Row(EVERY, sort),
    "chlo.top_k": Row(SORTED, top_k),
    "stablehlo.batch_norm_inference": Row(FLOATS, lambda b: batch_norm(b, "inference")),
    "stablehlo.batch_norm_training": Row(FLOATS, lambda b: batch_norm(b, "training")),
    "stablehlo.batch_norm_grad": Row(FLOATS, lambda b: batch_norm(b, "grad")),
}
