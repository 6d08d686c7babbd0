# SPDX-License-Identifier: Apache-2.0
"""Sorts and top_k: comparators by keys as JAX writes them, and one that is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shardwise import _core
from shardwise.dtypes import is_float, is_inexact, is_signed, numpy_dtype
from tests.op.case import ALL, NUMBERS, Application, OpCase
from tests.op.catalogue.instance import EVERY, Build, Row, Table
from tests.op.catalogue.scalar_regions import FORMS, comparator
from tests.op.dtype_values import ALL_DTYPES, COMPLEX
from tests.op.inputs import Shape, dtype_of, extreme, plain
from tests.op.references import Array
from tests.op.sort_references import numbers, places, total

EnumValue = _core.ir.EnumValue


# ---- cases -----------------------------------------------------------------------------------------------------------


KEYS: dict[str, Callable[..., list[Array]]] = {
    "total": lambda x, *_: [total(x)],
    "descending": lambda x, *_: [total(x)],
    "numbers": lambda x, *_: [numbers(x)],
    "two": lambda x, y, *_: [numbers(x), total(y)],
    "magnitude": lambda x, y, *_: [total(y) ** 2],  # of a second operand: no key of one of them
}


def _compare(trace: Any, direction: str, kind: str, a: int, b: int) -> int:
    attrs = {
        "comparison_direction": EnumValue("stablehlo", "comparison_direction", direction),
        "compare_type": EnumValue("stablehlo", "comparison_type", kind),
    }
    return int(trace.emit("stablehlo.compare", [a, b], attrs)[0])


def _canonical(trace: Any, x: int, dtype: np.dtype[Any]) -> int:
    zero, nan = (int(trace.constant(np.asarray(v, dtype))[0]) for v in (0, np.nan))
    nonzero = int(trace.emit("stablehlo.select", [_compare(trace, "EQ", "FLOAT", x, zero), zero, x])[0])
    return int(trace.emit("stablehlo.select", [_compare(trace, "NE", "FLOAT", x, x), nan, nonzero])[0])


def _comparator(trace: Any, kind: str, dtypes: Sequence[str]) -> int:
    region = int(trace.begin_region())
    arguments = [trace.region_argument((), dtype) for dtype in dtypes for _ in range(2)]
    to = dtype_of(dtypes[0])
    plainly = "TOTALORDER" if is_float(to) else "SIGNED" if is_signed(to) else "UNSIGNED"
    a, b, *others = arguments
    if kind in ("numbers", "two") and is_float(to):
        a, b = _canonical(trace, a, to), _canonical(trace, b, to)
    less = _compare(trace, "GT" if kind == "descending" else "LT", plainly, a, b)
    if kind == "two":
        tie = _compare(trace, "EQ", plainly, a, b)
        after = _compare(trace, "LT", "SIGNED", *others[:2])
        both = trace.emit("stablehlo.and", [tie, after])[0]
        less = trace.emit("stablehlo.or", [less, both])[0]
    if kind == "magnitude":
        squares = [trace.emit("stablehlo.multiply", [x, x])[0] for x in others[:2]]
        less = _compare(trace, "LT", "SIGNED", *squares)
    trace.end_region([less])
    return region


def _sort_case(kind: str, dtype: str, shape: Shape, dim: int, count: int, result: int) -> Application:
    dtypes = (dtype, "int32", "int8")[:count]
    rng = np.random.default_rng(3)
    fixed = {i: rng.integers(-2, 3, shape).astype(dtypes[i]) for i in range(1, count) if kind in ("two", "magnitude")}

    def reference(*operands: Array) -> Array:
        order = places(KEYS[kind](*operands), dim % len(shape), kind == "descending")
        return np.take_along_axis(operands[result], order, dim)

    def record(trace: Any, operands: Sequence[int]) -> int:
        region = _comparator(trace, kind, dtypes)
        attrs = {"dimension": dim, "is_stable": True}
        return int(trace.emit_op("stablehlo.sort", list(operands), attrs, regions=[region])[result][0])

    return Application(
        (shape,) * count, reference, record=record, dtypes=dtypes, fixed=fixed, result=result,
        differentiable=result == 0, label=f"{kind} {shape} {dim} {count}[{result}]",
    )  # fmt: skip


def sort_cases(kind: str) -> Callable[[int, str], list[Application]]:
    least = 2 if kind in ("two", "magnitude") else 1

    def applications(n: int, dtype: str) -> list[Application]:
        rows: list[tuple[Shape, int, int, int]] = [
            ((n,), 0, least, 0),
            ((n, 4), 0, least, 0),
            ((3, n), -1, 2, 1),
            ((2, n, 3), 1, 3, 0),
        ]
        return [_sort_case(kind, dtype, *row) for row in rows]

    return applications


def top_k_cases(n: int, dtype: str) -> list[Application]:
    found = []
    for shape, k in [((n,), n), ((3, n), n // 2), ((n, 5), 2), ((n, 2, 3), 3), ((2, n), min(n, 1))]:
        for result in (0, 1):

            def reference(x: Array, k: int = k, result: int = result) -> Array:
                order = places([total(x)], x.ndim - 1, descending=True)[..., :k]
                return order.astype(np.int32) if result else np.take_along_axis(x, order, -1)

            def record(trace: Any, operands: Sequence[int], k: int = k, result: int = result) -> int:
                return int(trace.emit_op("chlo.top_k", list(operands), {"k": k})[result][0])

            found.append(
                Application(
                    (shape,), reference, record=record, result=result, differentiable=result == 0,
                    label=f"{shape} {k}[{result}]",
                )
            )  # fmt: skip
    return found


CASES: list[OpCase] = [
    OpCase("chlo.top_k", ALL, top_k_cases, extreme, special_points="family"),
    OpCase("stablehlo.sort", ALL, sort_cases("total"), extreme, variant="total"),
    OpCase("stablehlo.sort", NUMBERS, sort_cases("descending"), extreme, variant="descending"),
    OpCase("stablehlo.sort", ("float32", "float64", "float16"), sort_cases("numbers"), extreme, variant="numbers"),
    OpCase("stablehlo.sort", ("float32", "float64", "int8"), sort_cases("two"), extreme, variant="two"),
    OpCase("stablehlo.sort", ("float32", "float64"), sort_cases("magnitude"), plain, variant="magnitude"),
]


# ---- random instances ------------------------------------------------------------------------------------------------


TOTALLY_ORDERED = ("float32", "float64", *COMPLEX)
ORDERED = tuple(d for d in ALL_DTYPES if d not in COMPLEX)


def draw_sort(b: Build) -> None:
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
    counted = dim - len(shape) if b.chance(0.3) else dim  # from the end
    properties = f"dimension = {counted} : i64, is_stable = true"
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


def draw_top_k(b: Build) -> None:
    shape = b.filled_shape(1, 3)
    k = b.below(0, shape[-1])
    to = (*shape[:-1], k)
    x = b.argument(b.wild(shape) if not is_inexact(numpy_dtype(b.dtype)) else b.tame(shape))
    b.op([x], [(to, b.dtype), (to, "int32")], f"k = {k} : i64")


DRAWS: Table = {
    "stablehlo.sort": Row(EVERY, draw_sort),
    "chlo.top_k": Row(ORDERED, draw_top_k),
}
