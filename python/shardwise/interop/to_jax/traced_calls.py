# SPDX-License-Identifier: Apache-2.0
"""A handed-over program as a part of a function that JAX transforms.

    jax.jit(lambda x: fn(x).sum())(x)      traces fn with the shape of the user, uneven dims included

No array has devices there, so arguments are padded, and results cropped, by ops of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.ir import current_location
from ...errors import UnsupportedError, composed, message
from ..optional import jax
from ..source.script import Border, Script
from .placing import expect_type

__all__ = ["cropped_in_jax", "expect_traceable", "is_traced", "on_other_mesh", "padded_in_jax", "without_derivative"]


def is_traced(leaves: Sequence[Any]) -> bool:
    """Whether JAX traces the call that has these arguments."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)


def on_other_mesh(script: Script, names: Sequence[str]) -> str | None:
    """The first argument or result on another mesh than the program's, or along other cuts of it.

    ``names`` are those of the arguments to check; closed-over arrays come last.
    """
    borders = [*zip(names, script.inputs), *((f"result {i}", x) for i, x in enumerate(script.outputs))]
    return next((name for name, border in borders if border.other is not None), None)


def expect_traceable(script: Script, names: Sequence[str]) -> None:
    """Raise UnsupportedError for a program that JAX cannot trace as a part of another function."""
    outside = "call the program outside of JAX's transformations"
    inside = "inside of a transformation of JAX, such as jax.jit, "
    other = on_other_mesh(script, names)
    if other is not None:
        rule = f"{inside}every value must be on the program's mesh"
        raise UnsupportedError(message("to_jax", rule, f"{other} on another one", outside))
    if len(script.outputs) > script.visible[1]:
        raise UnsupportedError(message("to_jax", f"{inside}a program must not print", "debug.print", outside))
    if script.needs_x64 and not jax.config.jax_enable_x64:
        rule = f"{inside}a program with values of 64 bits needs x64"
        way_out = 'call jax.config.update("jax_enable_x64", True), or ' + outside
        raise UnsupportedError(message("to_jax", rule, "jax_enable_x64=False", way_out))


def padded_in_jax(leaf: Any, border: Border, name: str) -> Any:
    """An argument that JAX traces, with zeros behind its end; one that `put` has placed stays as it is."""
    x = leaf if isinstance(leaf, (jax.core.Tracer, jax.Array)) else np.asarray(leaf)
    if x.shape == border.padded and x.dtype == border.dtype:
        return x
    expect_type(name, x, border)
    return jax.numpy.pad(x, [(0, p - n) for n, p in zip(border.shape, border.padded)])


def cropped_in_jax(x: Any, border: Border) -> Any:
    """A result without its padding."""
    return x if x.shape == border.shape else x[tuple(map(slice, border.shape))]


def without_derivative(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with an error for its derivative. That of bits is zero, and floats travel as bits in places."""
    place = current_location()  # JAX may ask for the derivative later

    def refused(primals: Any, tangents: Any) -> Any:
        rule = "a program has no derivative in JAX, where it moves floats as bits"
        way_out = "compile sw.grad(f) or sw.value_and_grad(f), and hand that over"
        got = "a call inside of jax.grad, jax.vjp or jax.jvp"
        raise UnsupportedError(composed("to_jax", rule, got, way_out, *place))

    whole: Any = jax.custom_jvp(function)
    whole.defjvp(refused)
    return whole  # type: ignore[no-any-return]
