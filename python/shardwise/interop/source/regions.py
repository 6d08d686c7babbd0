# SPDX-License-Identifier: Apache-2.0
"""Combiners, and windows of reductions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..._core.ir import Op, Region, Value
from ...dtypes import is_integer, numpy_dtype
from .target import attributes

__all__ = ["cumulative_dim", "is_narrow_float", "is_neutral_of", "neutral_of", "op_of_combiner", "window_of"]

Window = dict[str, Any]
_ADD, _MUL, _MAX, _MIN, _AND, _OR, _XOR = (
    f"stablehlo.{name}" for name in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
)


def is_narrow_float(dtype: str) -> bool:
    """Whether sums of this dtype are accumulated in float32."""
    return dtype in ("float16", "bfloat16") or dtype.startswith("float8")


def op_of_combiner(region: Region) -> str | None:
    """The op of a region that applies one op to its two arguments, in their order unless that does not matter."""
    if len(region.ops) != 1 or len(region.arguments) != 2 or region.results != region.ops[0].results:
        return None
    op = region.ops[0]
    is_reversed = op.definition.commutative and op.operands == region.arguments[::-1]
    return op.name if is_reversed or op.operands == region.arguments else None


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
