# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode gradients, as part of the program that is being traced."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import islice
from typing import Any

import numpy as np

from .array import Array
from .array_leaves import numbers_of
from .dtypes import is_complex, is_float, is_inexact, way_to_numbers
from .errors import DTypeError, ShapeError, called_as, described, headed, message
from .finite_differences import check_gradients, held_constant
from .jit import JitFunction, run_as_program
from .jit.options import parameter_positions
from .numpy._primitives import complex_of, imag_part, real_part
from .process.traceback_filtering import entry_point
from .recording.tracing import Trace, Tracer, WeakTracer, current_trace
from .trees import flatten, unflatten
from .trees.argument_names import names_of_argument
from .unpartitioned import as_numpy, unpartitioned_mesh
from .user_code.static_arguments import static_field

__all__ = ["grad", "stop_gradient", "value_and_grad"]


@entry_point
def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make a function that returns the value and the gradient of ``fun``, as in JAX.

    Args:
        fun: a function that returns a scalar of a floating dtype.
        argnums: the position or positions of the arguments to differentiate with respect to: trees of floating arrays.
        has_aux: ``fun`` returns ``(value, aux)``.

    Returns:
        A function that returns ``(value, gradient)``; with ``has_aux``, ``((value, aux), gradient)``. The gradient has
        the tree of the argument; if ``argnums`` is a sequence, it is a tuple of gradients.

    Raises:
        ShapeError: ``fun`` does not return a scalar.
        DTypeError: the result, or an argument to differentiate, is not floating.

    Ops without a derivative (comparisons, rounding, integer ops) contribute zero. Inside :func:`shardwise.jit`, the
    gradient is part of the same program. Outside, it runs as a program of its own, on the mesh of the arguments, else
    of :func:`set_mesh`, else on one device.
    """
    return _with_value("value_and_grad", fun, argnums, has_aux)


def _with_value(what: str, fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool) -> Callable[..., Any]:
    """:func:`value_and_grad` for a call of the public function ``what``."""
    if not callable(fun):
        raise TypeError(message(what, "takes a function", repr(fun)))
    positions = parameter_positions(what, "argnums", argnums)

    programs: dict[Any, JitFunction] = {}

    @entry_point
    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is None:
            result = run_as_program(what, wrapped, fun, programs, args, kwargs)
            if unpartitioned_mesh() is not None:
                gradients = [result[1]] if isinstance(argnums, (int, np.integer)) else result[1]
                _check_by_differences(fun, args, kwargs, positions, gradients, has_aux)
            return result
        for i in positions:
            if not -len(args) <= i < len(args):
                rule = f"argnums must be in [{-len(args)}, {len(args)}), the positional arguments"
                raise ShapeError(message(what, rule, i))
        value, aux, gradients = _differentiate(trace, what, fun, args, kwargs, positions, has_aux)
        gradient = gradients[0] if isinstance(argnums, (int, np.integer)) else tuple(gradients)
        return ((value, aux) if has_aux else value), gradient

    return wrapped


@entry_point
def grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Make a function that returns the gradient of a scalar function, as in JAX.

    The arguments are those of :func:`value_and_grad`. With ``has_aux``, the result is ``(gradient, aux)``.

    >>> import shardwise as sw
    >>> f = sw.jit(grad(lambda x: (x * x).sum()), mesh=sw.Mesh({"d": 2}))
    >>> np.asarray(f(np.array([1.0, 2.0])))
    array([2., 4.])
    """
    with_value = _with_value("grad", fun, argnums, has_aux)

    @entry_point
    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = with_value(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


@entry_point
def stop_gradient(x: Any) -> Any:
    """Return ``x`` unchanged and block its gradient, as if it were a constant.

    Args:
        x: a tree of arrays and numbers. Leaves that are not floating have no gradient anyway.

    Source: `jax.lax.stop_gradient`.

    >>> import shardwise as sw
    >>> f = sw.jit(grad(lambda x: (x * stop_gradient(x)).sum()), mesh=sw.Mesh({"d": 2}))
    >>> np.asarray(f(np.array([1.0, 2.0])))
    array([1., 2.])
    """
    leaves, tree = flatten(x)
    return unflatten(tree, [_without_gradient(leaf) for leaf in leaves])


def _without_gradient(x: Any) -> Any:
    if not isinstance(x, Tracer):
        return held_constant(x)
    if not is_inexact(x.dtype):
        return x
    if is_complex(x.dtype):
        stopped = complex_of(_without_gradient(real_part(x)), _without_gradient(imag_part(x)))
        return WeakTracer.of(stopped, x.weak) if isinstance(x, WeakTracer) else stopped
    # Integers have no derivative, so the bits of a float read as an integer have none either.
    stopped = x.view(f"uint{8 * x.dtype.itemsize}").view(x.dtype)
    return WeakTracer.of(stopped, x.weak) if isinstance(x, WeakTracer) else stopped


def _check_by_differences(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    positions: tuple[int, ...],
    gradients: Sequence[Any],
    has_aux: bool,
) -> None:
    kwargs = as_numpy(kwargs)

    def value(*args: Any) -> Any:
        out = fun(*args, **kwargs)
        return out[0] if has_aux else out

    check_gradients(value, as_numpy(args), positions, gradients)


def _differentiate(
    trace: Trace,
    what: str,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    positions: tuple[int, ...],
    has_aux: bool,
) -> tuple[Tracer, Any, list[Any]]:
    lifted = list(args)
    distinct = list(dict.fromkeys(i % len(args) for i in positions))
    trees: dict[int, tuple[Any, int]] = {}  # position → structure and number of leaves
    values: list[Tracer] = []
    wrt: list[Tracer] = []  # a variable for each value, so that f(x, x) has two
    names: list[str] = []
    try:
        for i in distinct:
            names += names_of_argument(fun, args, i)
            tracers, tree = _floating(trace, what, fun, args, i)
            values += tracers
            variables = [_variable(trace, x) for x in tracers]
            wrt += variables
            lifted[i] = unflatten(tree, variables)
            trees[i] = (tree, len(tracers))
        out = fun(*lifted, **kwargs)
        _check_form(what, out, has_aux)
        value, aux = out if has_aux else (out, None)
        value = trace.lift(value)
        _check_scalar(what, value)
        op_count = trace.core.op_count
        with headed(what), called_as(what, "grad", "vjp"):
            results = _append_vjp(trace, value, trace.constant(np.ones((), value.dtype)), wrt)
        trace.name_gradients(results, names, op_count)
    finally:  # even if the function raised: its caller may catch the error and keep recording
        trace.core.substitute([variable._value for variable in wrt], [x._value for x, _ in zip(values, wrt)])
    gradients = iter(Tracer(trace, g, x.shape, x.dtype) for g, x in zip(results, wrt))
    by_position = {i: unflatten(tree, list(islice(gradients, count))) for i, (tree, count) in trees.items()}
    return value, aux, [by_position[i % len(args)] for i in positions]


def _floating(
    trace: Trace, what: str, fun: Callable[..., Any], args: tuple[Any, ...], i: int
) -> tuple[list[Tracer], Any]:
    """The leaves of argument ``i`` as traced values, and its structure; DTypeError if one is not floating."""
    leaves, structure = flatten(args[i])
    for k, leaf in enumerate(leaves):
        array = leaf if isinstance(leaf, (Tracer, Array)) else numbers_of(leaf)
        if array is None or not is_inexact(array.dtype):
            name = names_of_argument(fun, args, i)[k]
            rule = "an argument to differentiate by must be floating"
            way_out = f"{way_to_numbers(leaf) or 'convert it with astype'}, or {_left_out(name)}"
            raise DTypeError(message(what, rule, f"{described(leaf)} for {name}", way_out))
    return [trace.lift(leaf) for leaf in leaves], structure


def _left_out(name: str) -> str:
    """The error's advice: how to exclude a leaf from differentiation."""
    if re.search(r"\.\w+$", name):
        return static_field()
    parameter = re.split(r"[.\[]", name, maxsplit=1)[0]
    return "leave it out of argnums" if name == parameter else f"take it out of {parameter}"


def _check_form(what: str, out: Any, has_aux: bool) -> None:
    if has_aux and not (isinstance(out, (tuple, list)) and len(out) == 2):
        raise TypeError(message(what, "with has_aux=True the function must return (value, aux)", type(out).__name__))
    value = out[0] if has_aux else out
    if value is None or isinstance(value, (tuple, list, dict)):
        raise ShapeError(
            message(
                what,
                "the function must return a scalar",
                type(value).__name__,
                "return (value, aux) and pass has_aux=True for further results",
            )
        )


def _check_scalar(what: str, value: Tracer) -> None:
    if value.shape != ():
        raise ShapeError(
            message(
                what,
                "the function must return a scalar",
                f"shape {value.shape}",
                "reduce it, for example with .sum()",
            )
        )
    if not is_float(value.dtype):
        raise DTypeError(message(what, "the function must return a floating scalar", value.dtype.name))


def _variable(trace: Trace, x: Tracer) -> Tracer:
    variable = Tracer(trace, trace.core.variable(x._value), x.shape, x.dtype)
    if x._value in trace.annotations.foreign_types:
        trace.annotations.foreign_types[variable._value] = trace.annotations.foreign_types[x._value]
    return WeakTracer.of(variable, x.weak) if isinstance(x, WeakTracer) else variable


def _append_vjp(trace: Trace, value: Tracer, seed: Tracer, wrt: list[Tracer]) -> list[int]:
    return trace.core.vjp([value._value], [seed._value], [x._value for x in wrt], trace.derivatives)
