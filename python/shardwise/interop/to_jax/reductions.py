# SPDX-License-Identifier: Apache-2.0
"""Reductions, windows and products in `jax.lax`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.ir import Op, Region, Value
from .elementwise import binary_function, is_narrow_float
from .scope import Scope, call, listed
from .table import attributes, emits

__all__ = ["combiner_of"]

_CUMULATIVE = {"lax.add": "cumsum", "lax.mul": "cumprod", "lax.max": "cummax", "lax.min": "cummin"}


def combiner_of(region: Region) -> str | None:
    """The function of `jax.lax` that a region of one op on its two arguments is."""
    if len(region.ops) != 1 or len(region.arguments) != 2 or region.results != region.ops[0].results:
        return None
    op = region.ops[0]
    if op.operands not in (region.arguments, region.arguments[::-1]):
        return None
    return binary_function(op.name, region.arguments[0].type.dtype)


def _combiner(scope: Scope, op: Op) -> str:
    known = combiner_of(op.regions[0])
    if known is not None:
        return known
    count = len(op.results)
    name = scope.function("combine", op.regions[0])
    if count == 1:
        return name
    # JAX gives the reducer a tuple of each side
    sides = ", ".join([*(f"a[{i}]" for i in range(count)), *(f"b[{i}]" for i in range(count))])
    return f"lambda a, b: {name}({sides})"


def _operands(scope: Scope, op: Op) -> tuple[str, str]:
    count = len(op.results)
    inputs, inits = list(map(scope, op.operands[:count])), list(map(scope, op.operands[count:]))
    return (inputs[0], inits[0]) if count == 1 else (listed(inputs), listed(inits))


@emits("stablehlo.reduce")
def reduce(scope: Scope, op: Op) -> str:
    combiner = _combiner(scope, op)
    x, init = _operands(scope, op)
    dims = tuple(attributes(op)["dimensions"])
    dtype = op.results[0].type.dtype
    if combiner in ("lax.add", "lax.mul") and is_narrow_float(dtype):
        reduced = call("lax.reduce", f'{x}.astype("float32")', f'{init}.astype("float32")', combiner, dims)
        return f'{reduced}.astype("{dtype}")'
    return call("lax.reduce", x, init, combiner, dims)


def _window_attributes(op: Op) -> dict[str, Any]:
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


@emits("stablehlo.reduce_window")
def reduce_window(scope: Scope, op: Op) -> str:
    window = _window_attributes(op)
    combiner = _combiner(scope, op)
    count = len(op.results)
    sides = list(map(scope, op.operands))
    is_neutral = count == 1 and _is_neutral(op.operands[1], combiner)
    cumulative = _cumulative(op, combiner, window) if is_neutral else None
    if cumulative is not None:
        return cumulative.format(x=sides[0])
    ones = (1,) * len(window["window_dimensions"])
    is_padded = any(map(any, window["padding"])) or window["base_dilation"] != ones
    if is_padded and not is_neutral:  # XLA leaves padding out, where StableHLO reads the initial value
        rows = tuple((*pair, step - 1) for pair, step in zip(window["padding"], window["base_dilation"]))
        sides[:count] = [call("lax.pad", x, init, rows) for x, init in zip(sides, sides[count:])]
        window["padding"], window["base_dilation"] = ((0, 0),) * len(ones), ones
    inputs, inits = sides[:count], sides[count:]
    given = (inputs[0], inits[0]) if count == 1 else (listed(inputs), listed(inits))
    default = {"padding": ((0, 0),) * len(ones)}
    options = [
        f"{name}={value}"
        for name, value in window.items()
        if name != "window_dimensions" and value != default.get(name, ones)
    ]
    return call("lax.reduce_window", *given, combiner, window["window_dimensions"], *options)


def _neutral(combiner: str, dtype: np.dtype[Any]) -> Any:
    """The neutral element of a combiner; None if it is unknown."""
    if combiner in ("lax.add", "lax.bitwise_or", "lax.bitwise_xor"):
        return dtype.type(0)
    if combiner == "lax.mul":
        return dtype.type(1)
    if combiner == "lax.bitwise_and":
        return np.bool_(True) if dtype.kind == "b" else ~dtype.type(0)
    if combiner in ("lax.max", "lax.min") and dtype.kind == "b":
        return np.bool_(combiner == "lax.min")
    if combiner in ("lax.max", "lax.min") and dtype.kind in "iu":
        return np.iinfo(dtype).min if combiner == "lax.max" else np.iinfo(dtype).max
    if combiner in ("lax.max", "lax.min"):
        return dtype.type(-np.inf if combiner == "lax.max" else np.inf)
    return None


def _is_neutral(init: Value, combiner: str) -> bool:
    made = init.defining_op
    if made is None or made.name != "stablehlo.constant":
        return False
    value = np.asarray(attributes(made)["value"])
    return bool(value == _neutral(combiner, value.dtype))


def _cumulative(op: Op, combiner: str, window: dict[str, Any]) -> str | None:
    """A window over all elements up to each one, along one dim, as a cumulative op."""
    shape, sizes, padding = op.operands[0].type.shape, window["window_dimensions"], window["padding"]
    ones = (1,) * len(shape)
    dims = [d for d, size in enumerate(sizes) if size != 1]
    is_plain = all(window[name] == ones for name in ("window_strides", "base_dilation", "window_dilation"))
    if combiner not in _CUMULATIVE or len(dims) != 1 or not is_plain:
        return None
    (dim,) = dims
    n = shape[dim]
    if sizes[dim] != n or any(any(pair) for d, pair in enumerate(padding) if d != dim):
        return None
    if is_narrow_float(op.results[0].type.dtype) or op.results[0].type.dtype == "bool":
        return None
    if padding[dim] == (n - 1, 0):
        return f"lax.{_CUMULATIVE[combiner]}({{x}}, {dim})"
    return f"lax.{_CUMULATIVE[combiner]}({{x}}, {dim}, reverse=True)" if padding[dim] == (0, n - 1) else None


@emits("stablehlo.dot_general")
def dot_general(scope: Scope, op: Op) -> str:
    fields = attributes(op)["dot_dimension_numbers"].fields
    contracting = (fields.get("lhs_contracting_dimensions", ()), fields.get("rhs_contracting_dimensions", ()))
    batch = (fields.get("lhs_batching_dimensions", ()), fields.get("rhs_batching_dimensions", ()))
    dtype = op.results[0].type.dtype
    sides = list(map(scope, op.operands))
    accumulated = "float32" if is_narrow_float(dtype) else dtype
    is_default = all(operand.type.dtype == accumulated for operand in op.operands)
    options = [] if is_default else [f'preferred_element_type="{accumulated}"']
    text = call("lax.dot_general", *sides, (contracting, batch), *options)
    return text if accumulated == dtype else f'{text}.astype("{dtype}")'
