# SPDX-License-Identifier: Apache-2.0
"""Reductions, windows and products in `jax.lax`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..._core.ir import Op, Region, Value
from ...dtypes import numpy_dtype
from ..source.narrow_dtypes import is_narrow_float, is_small_integer
from ..source.regions import (
    cumulative_dim,
    is_neutral_of,
    loses_everywhere,
    neutral_of,
    op_of_combiner,
    window_of,
)
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .elementwise import binary_function
from .movement import empty
from .narrow import Form, converted, form_of_choice, form_of_dims, returned, rows_returned
from .target import emits

__all__ = ["combiner_of"]

_CUMULATIVE = {"lax.add": "cumsum", "lax.mul": "cumprod", "lax.max": "cummax", "lax.min": "cummin"}


def combiner_of(region: Region) -> str | None:
    """The function of `jax.lax` that a region of one op on its two arguments is."""
    name = op_of_combiner(region)
    return None if name is None else binary_function(name, region.arguments[0].type.dtype)


def _function(scope: Scope, op: Op, form: Form | None) -> str:
    """What combines the elements of one side with those of the other: ``combine(a, i, b, j)``."""
    known = "lax.max" if form is not None and form.reducer else combiner_of(op.regions[0])
    return known or scope.function("combine", op.regions[0])


def _combiner(function: str, count: int) -> str:
    """The same for JAX, which gives a tuple of each side if there are several results."""
    if count == 1:
        return function
    sides = ", ".join([*(f"a[{i}]" for i in range(count)), *(f"b[{i}]" for i in range(count))])
    return f"lambda a, b: {function}({sides})"


def _forms(scope: Scope, op: Op) -> list[Form | None]:
    """The dtype in which each operand is reduced. An error for a region on integers that XLA cannot reduce."""
    region, dtypes = op.regions[0], [result.type.dtype for result in op.results]
    name = op_of_combiner(region)
    if name is not None:
        return [form_of_dims(scope, dtypes[0], name)]
    forms = [form_of_choice(region, dtype) for dtype in dtypes]
    for form, dtype in zip(forms, dtypes):
        if form is None and is_small_integer(dtype):
            rule = "a reduction of integers of less than a byte must apply one op, or choose one of its arguments"
            raise scope.refusal(
                op, rule, f"a region of {len(region.ops)} ops on {dtype}", "convert them to int8 before"
            )
    return forms


def _is_neutral(op: Op, form: Form | None) -> bool:
    """Whether the initial value is known to change nothing."""
    if len(op.results) != 1 or is_small_integer(op.results[0].type.dtype) or (form is not None and form.reducer):
        return False
    return is_neutral_of(op.operands[1], op_of_combiner(op.regions[0]))


def _neutral(op: Op, form: Form | None) -> Any:
    """The neutral element of the one op of a region; None if it is unknown."""
    if form is not None and form.reducer:
        return np.uint8(0)
    return neutral_of(op_of_combiner(op.regions[0]), op.results[0].type.dtype if form is None else form.dtype)


def _started(scope: Scope, op: Op, form: Form | None, init: str) -> tuple[str, str]:
    """The initial value for XLA, which may leave out one that is not neutral, and what is combined afterwards."""
    if len(op.results) != 1 or _is_neutral(op, form):
        return init, ""
    neutral = _neutral(op, form)
    if neutral is None:
        return init, ""
    shape = op.results[0].type.shape
    return scope.scalar(neutral), f"jnp.broadcast_to({init}, {shape})" if shape else init


def _returned(op: Op, forms: list[Form | None], combiner: str, reduced: str, rest: str) -> str:
    """The results in their own dtypes. ``rest``: what is still to combine."""
    reduced = call(combiner, reduced, rest) if rest else reduced
    if len(forms) == 1:
        return returned(forms[0], reduced)
    return rows_returned(forms, reduced) if any(forms) else reduced


@emits("stablehlo.reduce")
def reduce(scope: Scope, op: Op) -> str:
    forms = _forms(scope, op)
    function = _function(scope, op, forms[0])
    count = len(op.results)
    sides = list(map(converted, [*forms, *forms], map(scope, op.operands)))
    inputs, inits = sides[:count], sides[count:]
    dims = tuple(attributes(op)["dimensions"])
    if not _may_be_left_out(op, forms[0]):
        reduced = call(scope.helper("reduce_from"), function, listed(inputs), listed(inits), dims)
        return _returned(op, forms, "", f"{reduced}[0]" if count == 1 else reduced, "")
    combiner = _combiner(function, count)
    inits[0], rest = _started(scope, op, forms[0], inits[0])
    given = (inputs[0], inits[0]) if count == 1 else (listed(inputs), listed(inits))
    return _returned(op, forms, combiner, call("lax.reduce", *given, combiner, dims), rest)


def _may_be_left_out(op: Op, form: Form | None) -> bool:
    """Whether `_started` knows what to give XLA instead of the initial value, or if it loses against any element."""
    if len(op.results) == 1:
        return _is_neutral(op, form) or bool(form and form.reducer) or _neutral(op, form) is not None
    limits = _limits(op.operands[len(op.results)])
    return limits is not None and loses_everywhere(op.regions[0], *limits)


def _limits(value: Value) -> tuple[bool, bool] | None:
    """Whether a constant is the least and the largest number of its dtype, or infinite; None for another value."""
    source, dtype = value.defining_op, value.type.dtype
    if source is None or source.name != "stablehlo.constant" or "complex" in dtype or dtype == "bool":
        return None
    number = np.asarray(attributes(source)["value"])
    limits = (ml_dtypes.finfo if "float" in dtype else ml_dtypes.iinfo)(numpy_dtype(dtype))
    return bool(number <= limits.min), bool(number >= limits.max)


@emits("stablehlo.reduce_window")
def reduce_window(scope: Scope, op: Op) -> str:
    window = window_of(op)
    forms = _forms(scope, op)
    count = len(op.results)
    combiner = _combiner(_function(scope, op, forms[0]), count)
    sides = list(map(converted, [*forms, *forms], map(scope, op.operands)))
    is_neutral = _is_neutral(op, forms[0])
    cumulative = cumulative_dim(op, window) if is_neutral and combiner in _CUMULATIVE else None
    if cumulative is not None:
        dim, is_reversed = cumulative
        options = ["reverse=True"] if is_reversed else []
        return returned(forms[0], call(f"lax.{_CUMULATIVE[combiner]}", sides[0], dim, *options))
    ones = (1,) * len(window["window_dimensions"])
    is_padded = any(map(any, window["padding"])) or window["base_dilation"] != ones
    if is_padded and not is_neutral:  # XLA leaves padding out, where StableHLO reads the initial value
        rows = tuple((*pair, step - 1) for pair, step in zip(window["padding"], window["base_dilation"]))
        sides[:count] = [call("lax.pad", x, init, rows) for x, init in zip(sides, sides[count:])]
        window["padding"], window["base_dilation"] = ((0, 0),) * len(ones), ones
    inputs, inits = sides[:count], sides[count:]
    inits[0], rest = _started(scope, op, forms[0], inits[0])
    given = (inputs[0], inits[0]) if count == 1 else (listed(inputs), listed(inits))
    default = {"padding": ((0, 0),) * len(ones)}
    options = [
        f"{name}={value}"
        for name, value in window.items()
        if name != "window_dimensions" and value != default.get(name, ones)
    ]
    reduced = call("lax.reduce_window", *given, combiner, window["window_dimensions"], *options)
    return _returned(op, forms, combiner, reduced, rest)


@emits("stablehlo.dot_general")
def dot_general(scope: Scope, op: Op) -> str:
    if any(0 in operand.type.shape for operand in op.operands):  # XLA drops them, and its partitioner needs one
        return empty(scope, op.results[0])
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
