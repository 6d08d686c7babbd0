# SPDX-License-Identifier: Apache-2.0
"""Forward-mode derivatives: the tangent of a function's value along tangents of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import dtype_name
from ..errors import UnsupportedError, called_as, headed, message, shown
from ..jit import JitFunction, run_as_program
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Trace, Tracer, current_trace
from ..trees.argument_names import names_of_leaves
from .linear_functions import LinearFunction, LinearPart, recorded
from .variables import (
    Primals,
    Results,
    Types,
    expect_callable,
    expect_pair,
    leaves_like,
    results_of,
    standing_in,
    tracers_of,
)

__all__ = ["jvp", "linearize"]


@entry_point
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The value of ``fun`` and its derivative along ``tangents``, in one pass.

    Args:
        fun: a function of trees of arrays that returns a tree of arrays.
        primals: a tuple or list of its arguments.
        tangents: a tangent for each: the same tree, shapes and dtypes. That of an integer has dtype float0.
        has_aux: ``fun`` returns ``(value, aux)``.

    Returns:
        ``(value, tangent)``, with ``has_aux`` ``(value, tangent, aux)``. The tangent of an integer result is zeros of
        dtype float0.

    Raises:
        TypeError: ``fun`` is not a function, or primals and tangents are not tuples or lists. ShapeError, DTypeError: a
            tangent has another tree, shape or dtype. UnsupportedError: ``fun`` calls a function of
            :class:`shardwise.custom_vjp`.

    Loops may have any number of steps, also :func:`shardwise.while_loop`.

    Source: `jax.jvp`.

    >>> import numpy as np
    >>> import shardwise as sw
    >>> value, tangent = jvp(lambda x: x * x, (np.array([1.0, 2.0]),), (np.ones(2),))
    >>> np.asarray(tangent)
    array([2., 4.])
    """
    expect_callable("jvp", fun)
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise TypeError(message("jvp", f"{name} must be a tuple or a list", shown(given), "write (x,)"))
    arguments = tuple(primals)
    floats = leaves_like("jvp", tuple(tangents), Types.of_tree(arguments, names_of_leaves(fun, arguments)), "tangent")
    trace = current_trace()
    if trace is None:
        programs: dict[Any, JitFunction] = {}
        recorder = _Recorder(fun, has_aux)
        made = run_as_program("jvp", recorder, recorder, programs, (*arguments, tuple(floats)), {})
    else:
        made = _recorded(trace, fun, arguments, floats, has_aux)
    value, of_value, *aux = made
    return value, Types.of_tree(value).filled(of_value), *aux


class _Recorder:
    """Records the value and its tangent into the current program. Its parameters are those of ``fun``, and tangents."""

    def __init__(self, fun: Callable[..., Any], has_aux: bool) -> None:
        self.__wrapped__ = fun
        self._has_aux = has_aux

    def __call__(self, *args: Any) -> Any:
        trace = current_trace()
        assert trace is not None
        return _recorded(trace, self.__wrapped__, args[:-1], args[-1], self._has_aux)


def _recorded(
    trace: Trace, fun: Callable[..., Any], primals: tuple[Any, ...], tangents: Sequence[Any], has_aux: bool
) -> tuple[Any, ...]:
    """The value, the tangents of its floating leaves, and aux if there is one."""
    arguments = Primals(trace, "jvp", fun, primals)
    directions = [trace.lift(x) for x in tangents]
    with standing_in(trace, arguments.floats) as variables:
        out = fun(*arguments.with_floats(variables))
        value, aux = expect_pair("jvp", out) if has_aux else (out, None)
        results = results_of(trace, "jvp", value)
        with headed("jvp"), called_as("jvp", "grad", "vjp"):
            made = trace.core.jvp(
                results.floats, [x._value for x in variables], [x._value for x in directions], trace.derivatives
            )
    of_value = tracers_of(trace, made)
    return (results.tree, of_value, aux) if has_aux else (results.tree, of_value)


@entry_point
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``fun``, and the linear function that maps tangents of the arguments to that of the value.

    The value is computed once, as are the factors that do not depend on the tangents. Use it in place of :func:`jvp`
    for several tangents at one point.

    Args:
        fun: a function of trees of arrays that returns a tree of arrays.
        primals: its arguments. The tangents of integers have dtype float0.
        has_aux: ``fun`` returns ``(value, aux)``.

    Returns:
        ``(value, jvp_fun)``, with ``has_aux`` ``(value, jvp_fun, aux)``. ``jvp_fun`` takes a tangent for each argument
        and returns the tangent of the value.

    Raises:
        TypeError, DTypeError, UnsupportedError: as :func:`jvp`. ``jvp_fun`` raises ShapeError or DTypeError for a
            tangent of another tree, shape or dtype.

    A function with a loop of an unknown number of steps is evaluated again for each tangent.

    Source: `jax.linearize`.

    >>> import numpy as np
    >>> import shardwise as sw
    >>> value, push_forward = linearize(lambda x: np.sin(x), np.zeros(2))
    >>> np.asarray(push_forward(np.array([1.0, 2.0])))
    array([1., 2.])
    """
    expect_callable("linearize", fun)
    return recorded("linearize", fun, lambda trace, args: _linearized(trace, fun, args, has_aux), primals)


def _linearized(trace: Trace, fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> Any:
    arguments = Primals(trace, "linearize", fun, primals)
    with standing_in(trace, arguments.floats) as variables:
        out = fun(*arguments.with_floats(variables))
        value, aux = expect_pair("linearize", out) if has_aux else (out, None)
        results = results_of(trace, "linearize", value)
        with headed("linearize"), called_as("linearize", "grad", "vjp"):
            found = _transposed_twice(trace, results, variables)
    region, captured = found or _evaluated_again(trace, fun, arguments, has_aux)
    part = LinearPart(
        what="linearize",
        kind="tangent",
        trace=trace,
        region=region,
        inputs=arguments.types,
        outputs=results.types,
        is_unary=False,
        names=[""] * len(results.floats),
    )
    push_forward = LinearFunction(part, tracers_of(trace, captured))
    return (results.tree, push_forward, aux) if has_aux else (results.tree, push_forward)


def _transposed_twice(trace: Trace, results: Results, variables: Sequence[Tracer]) -> tuple[int, list[int]] | None:
    """The transpose of the pullback, which has all that does not depend on tangents. None for uncounted loops."""
    derivatives = trace.derivatives.of_forward_mode
    try:
        region, captured = trace.core.pullback(results.floats, [x._value for x in variables], derivatives)
        return trace.core.transpose(region, len(captured), derivatives), captured
    except UnsupportedError:
        return None


def _evaluated_again(trace: Trace, fun: Callable[..., Any], arguments: Primals, has_aux: bool) -> tuple[int, list[int]]:
    """The function and its tangent as one region of the arguments and tangents."""
    region = trace.core.begin_region()
    results: list[int] = []
    try:
        inner = [
            Tracer(trace, trace.core.region_argument(x.shape, dtype_name(x.dtype)), x.shape, x.dtype)
            for x in arguments.floats
        ]
        out = fun(*arguments.with_floats(inner))
        results = results_of(trace, "linearize", out[0] if has_aux else out).floats
    finally:
        trace.core.end_region(results)
    captured = [value for value, _ in trace.core.capture(region)]
    with headed("linearize"), called_as("linearize", "jvp"):
        made = trace.core.push_forward(region, len(inner), trace.derivatives)
    return made, [*(x._value for x in arguments.floats), *captured]
