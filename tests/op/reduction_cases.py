# SPDX-License-Identifier: Apache-2.0
"""The op cases of reduce with several operands: argmax and argmin pairs, and regions that no collective knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shardwise import _core
from tests.op import references as ref
from tests.op.case import ALL, Application, OpCase
from tests.op.inputs import Shape, dtype_of, extreme, near_one, plain
from tests.op.references import Array, is_float

EnumValue = _core.ir.EnumValue


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


SEVERAL = [
    _several("argmax", ALL, _argument("argmax"), extreme),
    _several("argmin", ALL, _argument("argmin"), extreme),
    _several("affine", ALL, _affine, near_one, "rows"),
    _several("ends", ALL, _ends, extreme),
]
