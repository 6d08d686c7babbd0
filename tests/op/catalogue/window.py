# SPDX-License-Identifier: Apache-2.0
"""Windows: the prefix form of cumulative ops, windows of every other kind, and the gradient of pooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from shardwise import _core
from shardwise.dtypes import is_float, is_inexact, is_signed, numpy_dtype
from tests.op import references as ref, window_references
from tests.op.case import ALL, FLOATS, INTEGERS, Application, OpCase
from tests.op.catalogue.instance import EVERY, Build, Row, Table, dense_ints, ints, tensor
from tests.op.catalogue.reduce import combiners, compare_combined, drawn, neutral
from tests.op.catalogue.scalar_regions import combiner, comparison
from tests.op.dtype_values import ALL_DTYPES, COMPLEX
from tests.op.inputs import Shape, dtype_of, extreme, near_one, plain
from tests.op.references import Array
from tests.op.window_references import select_and_scatter

EnumValue = _core.ir.EnumValue
Pads = tuple[tuple[int, int], ...]


# ---- cases -----------------------------------------------------------------------------------------------------------


Padding = tuple[tuple[int, int], ...]


def neutral_init(reducer: str, dtype: str) -> Array:
    return ref.neutral("or" if dtype == "bool" and reducer == "add" else reducer, dtype_of(dtype))


def weak_init(reducer: str, dtype: str) -> Array | None:
    """An init value that changes some results and not all; None where every one does."""
    to = dtype_of(dtype)
    if reducer in ("add", "multiply"):
        return None
    if to == np.bool_:
        return np.asarray(reducer in ("minimum", "and"))
    value = {"maximum": 1 if to.kind == "u" else -1, "minimum": 20 if to.kind == "u" else 1, "and": ~1, "or": 1}[
        reducer
    ]
    return np.asarray(value).astype(to)


def _window_case(
    reducer: str, dtype: str, shape: Shape, sizes: Shape, padding: Padding, neutral: bool = False,
    *, differentiable: bool = True, **lists: Shape,
) -> Application:  # fmt: skip
    attrs = {"window_dimensions": sizes, "padding": np.array(padding, np.int64).reshape(-1, 2)}
    attrs |= {{"strides": "window_strides"}.get(name, name): value for name, value in lists.items()}
    init = neutral_init(reducer, dtype) if neutral else weak_init(reducer, dtype)
    return Application(
        (shape, ()),
        partial(window_references.reduce_window, reducer=reducer, sizes=sizes, padding=padding, **lists),
        attrs,
        region=f"stablehlo.{reducer}",
        fixed={} if init is None else {1: init},
        baked=neutral,
        differentiable=differentiable,
        label=f"{shape}{sizes}{padding}{lists}{neutral}",
    )


def prefix_cases(reducer: str) -> Callable[[int, str], list[Application]]:
    """Along the dims, forward and in reverse, from a neutral constant; then from any init value."""

    def applications(n: int, dtype: str) -> list[Application]:
        w = max(n, 1)
        forward, reverse, none = (w - 1, 0), (0, w - 1), (0, 0)
        rows: list[tuple[Shape, Shape, Padding, bool]] = [
            ((n, 4), (w, 1), (forward, none), True),
            ((n, 4), (w, 1), (reverse, none), True),
            ((n,), (w,), (forward,), True),
            ((2, n, 3), (1, w, 1), (none, reverse, none), True),
            ((3, n), (1, w), (none, forward), True),
            ((n, 3), (w, 3), (forward, (0, 2)), True),
            ((n, 3), (w, 2), (reverse, (1, 0)), True),
            ((n, 4), (w, 1), (forward, none), False),
            ((3, n), (1, w), (none, reverse), False),
            ((n, 3), (w, 2), (reverse, (1, 0)), False),
        ]
        return [_window_case(reducer, dtype, *row) for row in rows]

    return applications


def window_cases(reducer: str) -> Callable[[int, str], list[Application]]:
    def applications(n: int, dtype: str) -> list[Application]:
        make = partial(_window_case, reducer, dtype)
        finite = reducer in ("add", "multiply")  # the maximum of what comes before the first row is not
        return [
            make((n, 4), (2, 3), ((1, 0), (1, 1)), strides=(1, 2)),
            make((n, 3), (3, 1), ((2, 2), (0, 0)), strides=(2, 1), window_dilations=(2, 1)),
            make((n, 3), (2, 2), ((1, -1), (0, 0)), base_dilations=(2, 1)),
            make((n, 4), (2, 2), ((-1, 1), (2, 2)), base_dilations=(3, 2), window_dilations=(1, 2), strides=(2, 3)),
            make((n, 3), (1, 2), ((0, 0), (0, 0))),
            make((n, 3), (1, 1), ((0, 0), (0, 0)), strides=(3, 1)),
            make((n, 2), (max(n, 1), 1), ((max(n, 1), -1), (0, 0)), True, differentiable=finite),
            make((n, 3), (2, 2), ((0, 0), (1, 0)), True),
        ]

    return applications


def _reduce_windows(reducer: str, dtypes: tuple[str, ...], draw: Any, kind: str, **options: Any) -> list[OpCase]:
    options["has_range"] = True
    return [
        OpCase("stablehlo.reduce_window", dtypes, rows(reducer), draw, kind, variant=f"{reducer}-{name}", **options)
        for name, rows in (("prefix", prefix_cases), ("windows", window_cases))
    ]


def _region(trace: Any, op: str, dtype: str, attrs: dict[str, Any] | None = None) -> int:
    region = int(trace.begin_region())
    arguments = [trace.region_argument((), dtype) for _ in range(2)]
    trace.end_region([trace.emit(op, arguments, attrs)[0]])
    return region


def pool(shape: Shape, sizes: Shape, strides: Shape, pads: Pads, dtype: str = "float32") -> Application:
    windows = tuple(
        max((n + low + high - size) // step + 1, 0) if n + low + high >= size else 0
        for n, size, step, (low, high) in zip(shape, sizes, strides, pads)
    )

    def reference(operand: Array, source: Array, init: Array) -> Array:
        return select_and_scatter(operand, source, init, sizes, strides, pads)

    def record(trace: Any, operands: Sequence[int]) -> int:
        to = dtype_of(dtype)
        kind = "FLOAT" if is_float(to) else "SIGNED" if is_signed(to) else "UNSIGNED"
        compare = {
            "comparison_direction": EnumValue("stablehlo", "comparison_direction", "GE"),
            "compare_type": EnumValue("stablehlo", "comparison_type", kind),
        }
        regions = [_region(trace, "stablehlo.compare", dtype, compare), _region(trace, "stablehlo.add", dtype)]
        attrs = {"window_dimensions": sizes, "window_strides": strides, "padding": np.array(pads, np.int64)}
        return int(trace.emit_op("stablehlo.select_and_scatter", list(operands), attrs, regions=regions)[0][0])

    return Application((shape, windows, ()), reference, record=record, label=f"{shape}{sizes}{strides}{pads}")


def select_and_scatter_cases(n: int, dtype: str) -> list[Application]:
    none = (0, 0)
    return [
        pool((n, 6, 3), (1, 2, 1), (1, 2, 1), (none,) * 3, dtype),
        pool((2, n, 4), (1, 3, 2), (1, 2, 1), (none, (1, 1), (0, 1)), dtype),
        pool((n, 4), (2, 2), (1, 1), ((1, 1), none), dtype),
    ]


CASES: list[OpCase] = [
    *_reduce_windows("add", ALL, plain, "sum"),
    *_reduce_windows("multiply", ALL, near_one, "product"),
    *_reduce_windows("maximum", ALL, extreme, "exact", gradient_draw=plain),
    *_reduce_windows("minimum", ALL, extreme, "exact", gradient_draw=plain),
    *_reduce_windows("and", (*INTEGERS, "bool"), plain, "exact"),
    *_reduce_windows("or", (*INTEGERS, "bool"), plain, "exact"),
    OpCase("stablehlo.select_and_scatter", (*FLOATS, "int32"), select_and_scatter_cases, plain, "magnitude", 8),
]


# ---- random instances ------------------------------------------------------------------------------------------------


ORDERED = tuple(d for d in ALL_DTYPES if d not in COMPLEX)


def windows(b: Build, shape: Shape) -> tuple[str, Shape, int] | None:
    """Properties of a window over a shape; nothing where it would not fit. Some dims have windows of one element."""
    ways = [b.pick(("any", "any", "any", "any", "element", "element", "holes")) for _ in shape]
    sizes = [b.pick((1, 2, 3)) if way == "any" else 1 for way in ways]
    strides = [b.pick((1, 1, 2, 3)) if way == "any" else 1 for way in ways]
    base = [{"any": b.pick((1, 1, 1, 2)), "element": 1, "holes": 2}[way] for way in ways]
    spread = [b.pick((1, 1, 1, 2)) if way == "any" else 1 for way in ways]
    pads = [[b.below(-1, 2), b.below(-1, 3)] if way == "any" else [0, 0] for way in ways]
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


def draw_reduce_window(b: Build) -> None:
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


def draw_select_and_scatter(b: Build) -> None:
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


DRAWS: Table = {
    "stablehlo.reduce_window": Row(EVERY, draw_reduce_window),
    "stablehlo.select_and_scatter": Row(tuple(d for d in ORDERED if d != "float8_e8m0fnu"), draw_select_and_scatter),
}
