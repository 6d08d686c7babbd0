# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode derivatives of functions with any results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import called_as, headed
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Trace
from .linear_functions import LinearFunction, LinearPart, recorded
from .variables import Primals, expect_callable, expect_pair, results_of, standing_in, tracers_of

__all__ = ["vjp"]


@entry_point
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``fun``, and a function that maps a cotangent of the value to those of the arguments.

    The value is computed once. The returned function runs the backward pass alone, each time that it is called.

    Args:
        fun: a function of trees of arrays that returns a tree of arrays.
        primals: its arguments. Integers have cotangents of dtype float0, which are zeros.
        has_aux: ``fun`` returns ``(value, aux)``.

    Returns:
        ``(value, vjp_fun)``, with ``has_aux`` ``(value, vjp_fun, aux)``. ``vjp_fun`` takes a tree of the shapes and
        dtypes of the value, and returns a tuple with a tree for each argument.

    Raises:
        TypeError: ``fun`` is not a function, or does not return a pair with ``has_aux``. DTypeError: an argument or a
            result is not an array. ``vjp_fun`` raises ShapeError or DTypeError for a cotangent of another tree, shape
            or dtype.

    Source: `jax.vjp`.

    >>> import numpy as np
    >>> import shardwise as sw
    >>> value, pull_back = vjp(lambda x: np.sin(x), np.zeros(2))
    >>> np.asarray(pull_back(np.array([1.0, 2.0]))[0])
    array([1., 2.])
    """
    expect_callable("vjp", fun)
    return recorded("vjp", fun, lambda trace, args: _recorded(trace, fun, args, has_aux), primals)


def _recorded(trace: Trace, fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> Any:
    arguments = Primals(trace, "vjp", fun, primals)
    with standing_in(trace, arguments.floats) as variables:
        out = fun(*arguments.with_floats(variables))
        value, aux = expect_pair("vjp", out) if has_aux else (out, None)
        results = results_of(trace, "vjp", value)
        with headed("vjp"), called_as("vjp", "grad"):
            region, captured = trace.core.pullback(results.floats, [x._value for x in variables], trace.derivatives)
    part = LinearPart(
        what="vjp",
        kind="cotangent",
        trace=trace,
        region=region,
        inputs=results.types,
        outputs=arguments.types,
        is_unary=True,
        names=[f"gradient of {name}" for name in arguments.float_names],
    )
    pull_back = LinearFunction(part, tracers_of(trace, captured))
    return (results.tree, pull_back, aux) if has_aux else (results.tree, pull_back)
