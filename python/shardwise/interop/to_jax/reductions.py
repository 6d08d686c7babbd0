# SPDX-License-Identifier: Apache-2.0
"""Reductions, windows and products in `jax.lax`."""

from __future__ import annotations

from ..._core.ir import Op, Region
from ..source.regions import cumulative_dim, is_narrow_float, is_neutral_of, neutral_of, op_of_combiner, window_of
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .elementwise import binary_function
from .target import emits

__all__ = ["combiner_of"]

_CUMULATIVE = {"lax.add": "cumsum", "lax.mul": "cumprod", "lax.max": "cummax", "lax.min": "cummin"}


def combiner_of(region: Region) -> str | None:
    """The function of `jax.lax` that a region of one op on its two arguments is."""
    name = op_of_combiner(region)
    return None if name is None else binary_function(name, region.arguments[0].type.dtype)


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


def _started(scope: Scope, op: Op, dtype: str, init: str) -> tuple[str, str]:
    """The initial value for XLA, which may leave out one that is not neutral, and what is combined afterwards."""
    name = op_of_combiner(op.regions[0])
    count = len(op.results)
    neutral = neutral_of(name, dtype) if count == 1 and not is_neutral_of(op.operands[1], name) else None
    if neutral is None:
        return init, ""
    shape = op.results[0].type.shape
    return scope.scalar(neutral), f"jnp.broadcast_to({init}, {shape})" if shape else init


@emits("stablehlo.reduce")
def reduce(scope: Scope, op: Op) -> str:
    combiner = _combiner(scope, op)
    x, init = _operands(scope, op)
    dims = tuple(attributes(op)["dimensions"])
    dtype = op.results[0].type.dtype
    is_widened = combiner in ("lax.add", "lax.mul") and is_narrow_float(dtype)
    if is_widened:
        x, init = f'{x}.astype("float32")', f'{init}.astype("float32")'
    first, rest = _started(scope, op, "float32" if is_widened else dtype, init)
    reduced = call("lax.reduce", x, first, combiner, dims)
    reduced = call(combiner, reduced, rest) if rest else reduced
    return f'{reduced}.astype("{dtype}")' if is_widened else reduced


@emits("stablehlo.reduce_window")
def reduce_window(scope: Scope, op: Op) -> str:
    window = window_of(op)
    combiner = _combiner(scope, op)
    count = len(op.results)
    sides = list(map(scope, op.operands))
    is_neutral = count == 1 and is_neutral_of(op.operands[1], op_of_combiner(op.regions[0]))
    cumulative = cumulative_dim(op, window) if is_neutral and combiner in _CUMULATIVE else None
    if cumulative is not None:
        dim, is_reversed = cumulative
        return call(f"lax.{_CUMULATIVE[combiner]}", sides[0], dim, *(["reverse=True"] if is_reversed else []))
    ones = (1,) * len(window["window_dimensions"])
    is_padded = any(map(any, window["padding"])) or window["base_dilation"] != ones
    if is_padded and not is_neutral:  # XLA leaves padding out, where StableHLO reads the initial value
        rows = tuple((*pair, step - 1) for pair, step in zip(window["padding"], window["base_dilation"]))
        sides[:count] = [call("lax.pad", x, init, rows) for x, init in zip(sides, sides[count:])]
        window["padding"], window["base_dilation"] = ((0, 0),) * len(ones), ones
    inputs, inits = sides[:count], sides[count:]
    inits[0], rest = _started(scope, op, op.results[0].type.dtype, inits[0])
    given = (inputs[0], inits[0]) if count == 1 else (listed(inputs), listed(inits))
    default = {"padding": ((0, 0),) * len(ones)}
    options = [
        f"{name}={value}"
        for name, value in window.items()
        if name != "window_dimensions" and value != default.get(name, ones)
    ]
    reduced = call("lax.reduce_window", *given, combiner, window["window_dimensions"], *options)
    return call(combiner, reduced, rest) if rest else reduced


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
