# SPDX-License-Identifier: Apache-2.0
"""Combiners, and windows of reductions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..._core.ir import Op, Region, Value
from ...dtypes import is_integer, numpy_dtype
from .narrow_dtypes import is_narrow_float
from .target import attributes

__all__ = [
    "cumulative_dim", "direction_of", "is_neutral_of", "loses_everywhere", "neutral_of", "op_of_combiner", "window_of",
]  # fmt: skip

Window = dict[str, Any]
_ADD, _MUL, _MAX, _MIN, _AND, _OR, _XOR = (
    f"stablehlo.{name}" for name in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
)


def op_of_combiner(region: Region) -> str | None:
    """The op of a region that applies one op to its two arguments, in their order unless that does not matter."""
    if len(region.ops) != 1 or len(region.arguments) != 2 or region.results != region.ops[0].results:
        return None
    op = region.ops[0]
    is_reversed = op.definition.commutative and op.operands == region.arguments[::-1]
    return op.name if is_reversed or op.operands == region.arguments else None


def loses_everywhere(region: Region, is_least: bool, is_largest: bool) -> bool:
    """Whether initial values of which the first is an extreme number lose against any elements, but for ties.

    The region must choose between its two sides, by a comparison of their first values: argmax and argmin.
    """
    count = len(region.results)
    a, b = region.arguments[:count], region.arguments[count:]
    tests = [_chosen_by(value, x, y) for value, x, y in zip(region.results, a, b)]
    chosen = [_alternatives(test) for test in tests if test is not None]
    if len(chosen) < count:
        return False
    losing = [*["GT", "GE"] * is_least, *["LT", "LE"] * is_largest]
    first = [x for x in chosen[0] if not _is_comparison(x, "NE", a[0], a[0])]  # a NaN is chosen
    is_lost = len(first) == 1 and any(_is_comparison(first[0], direction, a[0], b[0]) for direction in losing)
    rests = [[x for x in each if x not in chosen[0]] for each in chosen]
    return (
        is_lost
        and all({*chosen[0]} <= {*each} for each in chosen)
        and all(_decides_ties(x, a[0], b[0]) for rest in rests for x in rest)
    )


def direction_of(op: Op) -> str:
    """The direction of a comparison; "" for another op."""
    return str(attributes(op)["comparison_direction"].value) if op.name == "stablehlo.compare" else ""


def _chosen_by(value: Value, a: Value, b: Value) -> Value | None:
    """What chooses a, and not b, as a value of a region; None if it is made otherwise."""
    op = value.defining_op
    is_choice = op is not None and op.name == "stablehlo.select" and op.operands[1:] == [a, b]
    return op.operands[0] if op is not None and is_choice else None


def _alternatives(test: Value) -> list[Value]:
    """The conditions of which one must hold."""
    op = test.defining_op
    is_either = op is not None and op.name == "stablehlo.or"
    return [x for side in op.operands for x in _alternatives(side)] if op is not None and is_either else [test]


def _is_comparison(value: Value, direction: str, left: Value, right: Value) -> bool:
    op = value.defining_op
    return op is not None and direction_of(op) == direction and op.operands == [left, right]


def _decides_ties(test: Value, a: Value, b: Value) -> bool:
    """Whether a condition holds only if both sides are equal."""
    op = test.defining_op
    return op is not None and op.name == "stablehlo.and" and any(_is_comparison(x, "EQ", a, b) for x in op.operands)


def window_of(op: Op) -> Window:
    """The attributes of a window, with defaults."""
    ndim = len(op.operands[0].type.shape)
    ones = (1,) * ndim
    own = attributes(op)
    given = own.get("padding")
    padding = np.zeros((ndim, 2), int) if given is None else np.asarray(given).reshape(ndim, 2)
    return {
        "window_dimensions": tuple(own["window_dimensions"]),
        "window_strides": tuple(own.get("window_strides", ones)),
        "padding": tuple((int(low), int(high)) for low, high in padding),
        "base_dilation": tuple(own.get("base_dilations", ones)),
        "window_dilation": tuple(own.get("window_dilations", ones)),
    }


def _neutral(name: str | None, dtype: np.dtype[Any]) -> Any:
    """The neutral element of a combiner; None if it is unknown."""
    if dtype.kind == "b":
        return {_ADD: False, _OR: False, _XOR: False, _MAX: False, _MUL: True, _AND: True, _MIN: True}.get(name or "")
    if name in (_ADD, _OR, _XOR):
        return dtype.type(0)
    if name == _MUL:
        return dtype.type(1)
    if name == _AND:
        return ~dtype.type(0)
    if name in (_MAX, _MIN):
        limits: Any = ml_dtypes.iinfo(dtype) if is_integer(dtype) else None  # type: ignore[no-untyped-call]
        low, high = (limits.min, limits.max) if limits is not None else (-np.inf, np.inf)
        return dtype.type(low if name == _MAX else high)
    return None


def neutral_of(name: str | None, dtype: str) -> Any:
    """The neutral element of a combiner as a scalar of the dtype; None if it has none that is known."""
    kind = numpy_dtype(dtype)
    value = _neutral(name, kind)
    if value is None or value != value:  # infinity in a dtype without one
        return None
    return kind.type(value)


def is_neutral_of(init: Value, name: str | None) -> bool:
    """Whether a value is the constant that changes nothing when it is combined."""
    made = init.defining_op
    if made is None or made.name != "stablehlo.constant":
        return False
    value = np.asarray(attributes(made)["value"])
    return bool(value == _neutral(name, value.dtype))


def cumulative_dim(op: Op, window: Window) -> tuple[int, bool] | None:
    """For a window over all elements up to each one: its dim, and whether it runs backwards."""
    shape, sizes, padding = op.operands[0].type.shape, window["window_dimensions"], window["padding"]
    ones = (1,) * len(shape)
    dims = [d for d, size in enumerate(sizes) if size != 1]
    is_plain = all(window[name] == ones for name in ("window_strides", "base_dilation", "window_dilation"))
    if len(dims) != 1 or not is_plain:
        return None
    (dim,) = dims
    n = shape[dim]
    if sizes[dim] != n or any(any(pair) for d, pair in enumerate(padding) if d != dim):
        return None
    if is_narrow_float(op.results[0].type.dtype) or op.results[0].type.dtype == "bool":
        return None
    return (dim, False) if padding[dim] == (n - 1, 0) else (dim, True) if padding[dim] == (0, n - 1) else None
