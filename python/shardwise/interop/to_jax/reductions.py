# SPDX-License-Identifier: Apache-2.0
"""Reductions, windows and products in `jax.lax`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .elementwise import binary_function, is_narrow_float
from .scope import Scope, call, listed
from .table import Op, Region, emits

__all__ = ["combiner_of"]

_CUMULATIVE = {"lax.add": ("cumsum", 0.0), "lax.mul": ("cumprod", 1.0), "lax.max": ("cummax", -np.inf),
               "lax.min": ("cummin", np.inf)}  # fmt: skip


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
    dims = tuple(op.attributes["dimensions"])
    dtype = op.results[0].type.dtype
    if combiner in ("lax.add", "lax.mul") and is_narrow_float(dtype):
        reduced = call("lax.reduce", f'{x}.astype("float32")', f'{init}.astype("float32")', combiner, dims)
        return f'{reduced}.astype("{dtype}")'
    return call("lax.reduce", x, init, combiner, dims)


def _window_attributes(op: Op) -> dict[str, Any]:
    ndim = len(op.operands[0].type.shape)
    ones = (1,) * ndim
    attributes = op.attributes
    given = attributes.get("padding")
    padding = np.zeros((ndim, 2), int) if given is None else np.asarray(given).reshape(ndim, 2)
    return {
        "window_dimensions": tuple(attributes["window_dimensions"]),
        "window_strides": tuple(attributes.get("window_strides", ones)),
        "padding": tuple((int(low), int(high)) for low, high in padding),
        "base_dilation": tuple(attributes.get("base_dilations", ones)),
        "window_dilation": tuple(attributes.get("window_dilations", ones)),
    }


@emits("stablehlo.reduce_window")
def reduce_window(scope: Scope, op: Op) -> str:
    window = _window_attributes(op)
    combiner = _combiner(scope, op)
    x, init = _operands(scope, op)
    cumulative = _cumulative(op, combiner, window)
    if cumulative is not None:
        return cumulative.format(x=x)
    ones = (1,) * len(window["window_dimensions"])
    options = [f"{name}={value}" for name, value in window.items() if name != "window_dimensions" and value != ones]
    return call("lax.reduce_window", x, init, combiner, window["window_dimensions"], *options)


def _cumulative(op: Op, combiner: str, window: dict[str, Any]) -> str | None:
    """A window over all elements up to each one, along one dim, as a cumulative op."""
    if len(op.results) != 1 or combiner not in _CUMULATIVE:
        return None
    shape = op.operands[0].type.shape
    ones = (1,) * len(shape)
    if any(window[name] != ones for name in ("window_strides", "base_dilation", "window_dilation")):
        return None
    dims = [d for d, size in enumerate(window["window_dimensions"]) if size != 1]
    name, neutral = _CUMULATIVE[combiner]
    init = op.operands[1].defining_op
    if len(dims) != 1 or init is None or init.name != "stablehlo.constant" or not op.operands[1].type.dtype.startswith(
        ("float32", "float64")
    ):
        return None
    (dim,) = dims
    n = shape[dim]
    others = [pair for d, pair in enumerate(window["padding"]) if d != dim]
    if float(init.attributes["value"]) != neutral or window["window_dimensions"][dim] != n or any(map(any, others)):
        return None
    if window["padding"][dim] == (n - 1, 0):
        return f"lax.{name}({{x}}, {dim})"
    return f"lax.{name}({{x}}, {dim}, reverse=True)" if window["padding"][dim] == (0, n - 1) else None


@emits("stablehlo.dot_general")
def dot_general(scope: Scope, op: Op) -> str:
    fields = op.attributes["dot_dimension_numbers"].fields
    contracting = (fields.get("lhs_contracting_dimensions", ()), fields.get("rhs_contracting_dimensions", ()))
    batch = (fields.get("lhs_batching_dimensions", ()), fields.get("rhs_batching_dimensions", ()))
    dtype = op.results[0].type.dtype
    sides = list(map(scope, op.operands))
    accumulated = "float32" if is_narrow_float(dtype) else dtype
    precision = [] if not accumulated.startswith("float") else ['precision="highest"']
    options = [*precision, f'preferred_element_type="{accumulated}"']
    text = call("lax.dot_general", *sides, (contracting, batch), *options)
    return text if accumulated == dtype else f'{text}.astype("{dtype}")'
