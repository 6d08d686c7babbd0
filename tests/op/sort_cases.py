# SPDX-License-Identifier: Apache-2.0
"""Rows of cases.py for sort and top_k: comparators by keys as JAX writes them, and one that is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shardwise import _core
from shardwise.dtypes import is_signed
from tests.op.case import ALL, NUMBERS, Application, OpCase
from tests.op.inputs import Shape, dtype_of, extreme, plain
from tests.op.references import Array, is_float

EnumValue = _core.ir.EnumValue

# ---- references -----------------------------------------------------------------------------------------------------


def total(x: Array) -> Array:
    """Integers in the order of TOTALORDER: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    if not is_float(x.dtype):
        return x.astype(object) if x.dtype.kind != "b" else x.astype(int)
    signed = x.view(f"i{x.itemsize}").astype(object)
    return np.where(signed < 0, -1 - (signed + 2 ** (8 * x.itemsize - 1)), signed)


def numbers(x: Array) -> Array:
    """The same with -0 as 0 and every NaN as one, after infinity."""
    if not is_float(x.dtype):
        return total(x)
    x = np.where(x == 0, np.zeros((), x.dtype), x)
    return total(np.where(np.isnan(x), np.full((), np.nan, x.dtype), x).astype(x.dtype))


def places(keys: Sequence[Array], dim: int, descending: bool = False) -> Array:
    """The stable order along a dim by keys, the first one primary."""
    found = np.zeros(keys[0].shape, np.int64)
    for row in np.ndindex(*(1 if d == dim else size for d, size in enumerate(found.shape))):
        line = tuple(slice(None) if d == dim else i for d, i in enumerate(row))
        columns = [list(key[line]) for key in keys]
        found[line] = sorted(
            range(found.shape[dim]),
            key=lambda k: tuple(-int(c[k]) if descending else int(c[k]) for c in columns),
        )
    return found


# ---- comparators ----------------------------------------------------------------------------------------------------

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


def _application(kind: str, dtype: str, shape: Shape, dim: int, count: int, result: int) -> Application:
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


def _sorts(kind: str) -> Callable[[int, str], list[Application]]:
    least = 2 if kind in ("two", "magnitude") else 1

    def applications(n: int, dtype: str) -> list[Application]:
        rows: list[tuple[Shape, int, int, int]] = [
            ((n,), 0, least, 0),
            ((n, 4), 0, least, 0),
            ((3, n), -1, 2, 1),
            ((2, n, 3), 1, 3, 0),
        ]
        return [_application(kind, dtype, *row) for row in rows]

    return applications


def _top_k(n: int, dtype: str) -> list[Application]:
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


SORTS = [
    OpCase("chlo.top_k", ALL, _top_k, extreme),
    OpCase("stablehlo.sort", ALL, _sorts("total"), extreme, variant="total"),
    OpCase("stablehlo.sort", NUMBERS, _sorts("descending"), extreme, variant="descending"),
    OpCase("stablehlo.sort", ("float32", "float64", "float16"), _sorts("numbers"), extreme, variant="numbers"),
    OpCase("stablehlo.sort", ("float32", "float64", "int8"), _sorts("two"), extreme, variant="two"),
    OpCase("stablehlo.sort", ("float32", "float64"), _sorts("magnitude"), plain, variant="magnitude"),
]
