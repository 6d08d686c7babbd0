# SPDX-License-Identifier: Apache-2.0
"""Reductions by one op and by regions of several operands, and batch norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from shardwise import _core
from shardwise.dtypes import is_float, is_inexact, numpy_dtype
from tests.op import references as ref
from tests.op.batch_norm_references import EPSILON, grad, inference, training
from tests.op.case import ALL, FLOATS, INTEGERS, Application, OpCase
from tests.op.catalogue.instance import EVERY, Build, Row, Table, ints
from tests.op.catalogue.scalar_regions import combiner
from tests.op.catalogue.values import integer_ends
from tests.op.dtype_values import ALL_DTYPES, COMPLEX
from tests.op.inputs import Shape, dtype_of, extreme, near_one, plain, within
from tests.op.references import Array

EnumValue = _core.ir.EnumValue


# ---- cases -----------------------------------------------------------------------------------------------------------


def reduce_cases(reducer: str) -> Callable[[int, str], list[Application]]:
    def applications(n: int, dtype: str) -> list[Application]:
        rows: list[tuple[Shape, Shape]] = [((n, 4), (0,)), ((n, 4), (1,)), ((n, 3), (0, 1)), ((3, n, 2), (1,))]
        return [
            Application(
                (shape, ()),
                partial(ref.REDUCTIONS[reducer], dims=dims),
                {"dimensions": dims},
                region=f"stablehlo.{reducer}",
                label=f"{shape}{dims}",
            )
            for shape, dims in rows
        ]

    return applications


def _reduction(reducer: str, dtypes: tuple[str, ...], draw: Any, kind: str, **options: Any) -> OpCase:
    return OpCase(
        "stablehlo.reduce", dtypes, reduce_cases(reducer), draw, kind, variant=reducer, combine=reducer, **options
    )


def _direction(name: str) -> dict[str, Any]:
    return {"comparison_direction": EnumValue("stablehlo", "comparison_direction", name)}


def _argument_region(trace: Any, left: list[int], right: list[int], direction: str) -> list[int]:
    """As JAX writes it."""

    def emit(op: str, *operands: int, **attrs: Any) -> int:
        return int(trace.emit("stablehlo." + op, list(operands), attrs or None)[0])

    (value, index), (other, other_index) = left, right
    better = emit("compare", value, other, **_direction(direction))
    wins = emit("or", better, emit("compare", value, value, **_direction("NE")))
    equal = emit("compare", value, other, **_direction("EQ"))
    first = emit("and", equal, emit("compare", index, other_index, **_direction("LT")))
    wins_index = emit("or", wins, first)
    return [emit("select", wins, value, other), emit("select", wins_index, index, other_index)]


def region_of(trace: Any, rows: str, dtypes: Sequence[str]) -> int:
    """The function of ref.ROWS as a region."""
    region = int(trace.begin_region())
    arguments = [trace.region_argument((), dtype) for dtype in (*dtypes, *dtypes)]
    left, right = arguments[: len(dtypes)], arguments[len(dtypes) :]
    if rows in ("argmax", "argmin"):
        results = _argument_region(trace, left, right, "GT" if rows == "argmax" else "LT")
    elif rows == "affine":
        scaled = trace.emit("stablehlo.multiply", [left[1], right[0]])[0]
        product = trace.emit("stablehlo.multiply", [left[0], right[0]])[0]
        results = [product, trace.emit("stablehlo.add", [scaled, right[1]])[0]]
    else:
        results = [left[0], right[1], trace.emit("stablehlo.add", [left[2], right[2]])[0]]
    trace.end_region(results)
    return region


def _rows(
    rows: str, shape: Shape, dims: Shape, inits: Sequence[Array], result: int, label: str = "", **options: Any
) -> Application:
    count = len(inits)
    dtypes = [x.dtype.name for x in inits]
    attrs = {"dimensions": dims}

    def reference(*operands: Array) -> Array:
        wide = [ref.wide(x) if rows == "affine" and is_float(x.dtype) else x for x in operands]
        return ref.fold_rows(ref.ROWS[rows], wide[:count], wide[count:], dims)[result]

    def record(trace: Any, operands: Sequence[int]) -> int:
        region = region_of(trace, rows, dtypes)
        return int(trace.emit_op("stablehlo.reduce", list(operands), attrs, regions=[region])[result][0])

    fixed = {**options.pop("fixed", {}), **{count + i: x for i, x in enumerate(inits)}}
    return Application(
        (*(shape,) * count, *((),) * count),
        reference,
        attrs,
        rows=rows,
        record=record,
        dtypes=(*dtypes, *dtypes),
        fixed=fixed,
        label=f"{shape}{dims}[{result}] {label}",
        **options,
    )


def _argument(rows: str) -> Callable[[int, str], list[Application]]:
    def applications(n: int, dtype: str) -> list[Application]:
        to = dtype_of(dtype)
        worst = ref.neutral("maximum" if rows == "argmax" else "minimum", to)
        better = np.asarray(1, to)  # than some elements: counts as one of them
        every: list[tuple[Shape, Shape, str, str]] = [
            ((n, 4), (0,), "int32", "iota"),
            ((4, n), (1,), "int64", "iota"),
            ((3, n, 2), (1,), "uint32", "iota"),
            ((n, 3), (0, 1), "int32", "shuffled"),
            ((n, 17), (0,), "int64", "repeated"),
            ((5, n), (1,), "int8", "shuffled"),
        ]
        found = []
        for shape, dims, index, kind in every:
            rng = np.random.default_rng(n)
            indices = ref.iota(shape, dims[0], np.int64)
            if kind == "shuffled":
                indices = rng.permutation(math.prod(shape)).reshape(shape)
            elif kind == "repeated":
                indices = rng.integers(0, 3, shape)
            for result in (0, 1):
                init = worst if kind != "repeated" else better
                inits = (init, np.asarray(0 if kind == "iota" else 2, index))
                found.append(
                    _rows(
                        rows, shape, dims, inits, result, kind,
                        fixed={1: indices.astype(index)}, differentiable=result == 0,
                    )
                )  # fmt: skip
        return found

    return applications


def _affine(n: int, dtype: str) -> list[Application]:
    to = dtype_of(dtype)
    inits = np.asarray(1, to), np.asarray(3 if to != np.bool_ else 1, to)
    cases: list[tuple[Shape, Shape]] = [((n, 4), (0,)), ((3, n), (1,)), ((2, n, 3), (1, 2)), ((n, 2), (1, 0))]
    return [_rows("affine", shape, dims, inits, i) for shape, dims in cases for i in (0, 1)]


def _ends(n: int, dtype: str) -> list[Application]:
    to = dtype_of(dtype)
    inits = np.asarray(1, to), np.asarray(0, to), np.asarray(1, "int32")
    cases: list[tuple[Shape, Shape]] = [((n, 4), (0,)), ((n, 3), (0, 1))]
    return [_rows("ends", shape, dims, inits, i, differentiable=i < 2) for shape, dims in cases for i in (0, 1, 2)]


def _several(rows: str, dtypes: tuple[str, ...], applications: Any, draw: Any, kind: str = "exact") -> OpCase:
    return OpCase("stablehlo.reduce", dtypes, applications, draw, kind, variant=rows, gradient_draw=plain)


def batch_norm_cases(
    name: str, reference: Callable[..., Array], results: int
) -> Callable[[int, str], list[Application]]:
    def row(shape: Shape, feature: int, result: int) -> Application:
        attrs = {"epsilon": EPSILON, "feature_index": feature}
        per_feature = (shape[feature],)
        operands: tuple[Shape, ...] = (shape, *(per_feature,) * {"inference": 4, "training": 2, "grad": 3}[name])
        if name == "grad":
            operands = (*operands, shape)

        def record(trace: Any, values: Sequence[int]) -> int:
            return int(trace.emit_op(f"stablehlo.batch_norm_{name}", list(values), attrs)[result][0])

        return Application(
            operands, partial(reference, feature=feature, result=result), attrs,
            record=record, result=result, label=f"{shape}{feature}[{result}]",
        )  # fmt: skip

    def applications(n: int, dtype: str) -> list[Application]:
        shapes: list[tuple[Shape, int]] = [((n, 3), 1), ((4, n), 1), ((2, n, 3), 2), ((n, 5), 0)]
        return [row(shape, feature, i) for shape, feature in shapes for i in range(results)]

    return applications


def _batch_norm_op(name: str, reference: Callable[..., Array], results: int) -> OpCase:
    return OpCase(
        f"stablehlo.batch_norm_{name}",
        FLOATS,
        batch_norm_cases(name, reference, results),
        within(0.5, 3),
        "magnitude",
        64,
    )


CASES: list[OpCase] = [
    _reduction("add", ALL, plain, "sum"),
    _reduction("multiply", ALL, near_one, "product"),
    _reduction("maximum", ALL, extreme, "exact", gradient_draw=plain),
    _reduction("minimum", ALL, extreme, "exact", gradient_draw=plain),
    _reduction("and", (*INTEGERS, "bool"), plain, "exact"),
    _reduction("or", (*INTEGERS, "bool"), plain, "exact"),
    _several("argmax", ALL, _argument("argmax"), extreme),
    _several("argmin", ALL, _argument("argmin"), extreme),
    _several("affine", ALL, _affine, near_one, "rows"),
    _several("ends", ALL, _ends, extreme),
    _batch_norm_op("inference", inference, 1),
    _batch_norm_op("training", training, 3),
    _batch_norm_op("grad", grad, 3),
]


# ---- random instances ------------------------------------------------------------------------------------------------


ANY_FLOAT = tuple(d for d in ALL_DTYPES if is_float(numpy_dtype(d)))


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


def draw_reduce(b: Build) -> None:
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


def draw_batch_norm(b: Build, kind: str) -> None:
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


DRAWS: Table = {
    "stablehlo.reduce": Row(EVERY, draw_reduce),
    "stablehlo.batch_norm_inference": Row(ANY_FLOAT, lambda b: draw_batch_norm(b, "inference")),
    "stablehlo.batch_norm_training": Row(ANY_FLOAT, lambda b: draw_batch_norm(b, "training")),
    "stablehlo.batch_norm_grad": Row(ANY_FLOAT, lambda b: draw_batch_norm(b, "grad")),
}
