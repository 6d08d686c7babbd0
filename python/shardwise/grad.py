# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode gradients, as part of the program that is being traced."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from .array import Array
from .array_leaves import numbers_of
from .derivatives.variables import Types, expect_callable, merged, standing_in
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
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Make a function that returns the value and the gradient of ``fun``, as in JAX.

    Args:
        fun: a function that returns a scalar of a floating dtype.
        argnums: the position or positions of the arguments to differentiate with respect to: trees of floating arrays.
        has_aux: ``fun`` returns ``(value, aux)``.
        holomorphic: ``fun`` is holomorphic: the arguments to differentiate and the value are complex.
        allow_int: arguments to differentiate may hold integers, whose gradients are zeros of dtype float0.

    Returns:
        A function that returns ``(value, gradient)``; with ``has_aux``, ``((value, aux), gradient)``. The gradient has
        the tree of the argument; if ``argnums`` is a sequence, it is a tuple of gradients.

    Raises:
        ShapeError: ``fun`` does not return a scalar.
        DTypeError: the result, or an argument to differentiate, is not floating, or not complex with ``holomorphic``.

    Ops without a derivative (comparisons, rounding, integer ops) contribute zero. Inside :func:`shardwise.jit`, the
    gradient is part of the same program. Outside, it runs as a program of its own, on the mesh of the arguments, else
    of :func:`set_mesh`, else on one device.
    """
    return _with_value(_Options("value_and_grad", argnums, has_aux, holomorphic, allow_int), fun)


class _Options(NamedTuple):
    """The options of :func:`value_and_grad`, for a call of the public function ``what``."""

    what: str
    argnums: int | Sequence[int]
    has_aux: bool
    holomorphic: bool
    allow_int: bool


def _with_value(options: _Options, fun: Callable[..., Any]) -> Callable[..., Any]:
    what, argnums, has_aux = options[:3]
    expect_callable(what, fun)
    positions = parameter_positions(what, "argnums", argnums)
    programs: dict[Any, JitFunction] = {}

    def recorded(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        assert trace is not None
        return _differentiate(trace, options, fun, args, kwargs, positions)

    @entry_point
    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        for i in positions:
            if not -len(args) <= i < len(args):
                rule = f"argnums must be in [{-len(args)}, {len(args)}), the positional arguments"
                raise ShapeError(message(what, rule, i))
        if current_trace() is None:
            value, aux, floats = run_as_program(what, recorded, fun, programs, args, kwargs)
        else:
            value, aux, floats = recorded(*args, **kwargs)
        gradients = [Types.of_tree(args[i]).filled(floats[i % len(args)]) for i in positions]
        if current_trace() is None and unpartitioned_mesh() is not None and not options.allow_int:
            _check_by_differences(fun, args, kwargs, positions, gradients, has_aux)
        gradient = gradients[0] if isinstance(argnums, (int, np.integer)) else tuple(gradients)
        return ((value, aux) if has_aux else value), gradient

    return wrapped


@entry_point
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Make a function that returns the gradient of a scalar function, as in JAX.

    The arguments are those of :func:`value_and_grad`. With ``has_aux``, the result is ``(gradient, aux)``.

    >>> import shardwise as sw
    >>> f = sw.jit(grad(lambda x: (x * x).sum()), mesh=sw.Mesh({"d": 2}))
    >>> np.asarray(f(np.array([1.0, 2.0])))
    array([2., 4.])
    """
    with_value = _with_value(_Options("grad", argnums, has_aux, holomorphic, allow_int), fun)

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
    options: _Options,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    positions: tuple[int, ...],
) -> tuple[Any, Any, dict[int, list[Tracer]]]:
    """The value, aux, and by position the gradients of the floating leaves."""
    what = options.what
    lifted = list(args)
    distinct = list(dict.fromkeys(i % len(args) for i in positions))
    arguments = {i: _leaves(trace, options, fun, args, i) for i in distinct}
    floats = [x for leaves, _, are_floats in arguments.values() for x, known in zip(leaves, are_floats) if known]
    names = [
        name
        for i, (_, _, are_floats) in arguments.items()
        for name, known in zip(names_of_argument(fun, args, i), are_floats)
        if known
    ]
    with standing_in(trace, floats) as wrt:  # a variable for each value, so that f(x, x) has two
        variables = iter(wrt)
        for i, (leaves, tree, are_floats) in arguments.items():
            lifted[i] = unflatten(tree, merged(are_floats, list(islice(variables, sum(are_floats))), leaves))
        out = fun(*lifted, **kwargs)
        _check_form(what, out, options.has_aux)
        value, aux = out if options.has_aux else (out, None)
        value = trace.lift(value)
        _check_scalar(options, value)
        op_count = trace.core.op_count
        seed = trace.constant(np.ones((), value.dtype))
        with headed(what), called_as(what, "grad", "vjp"):
            results = trace.core.vjp([value._value], [seed._value], [x._value for x in wrt], trace.derivatives)
        trace.name_gradients(results, names, op_count)
    gradients = iter(Tracer(trace, g, x.shape, x.dtype) for g, x in zip(results, wrt))
    return value, aux, {i: list(islice(gradients, sum(known))) for i, (_, _, known) in arguments.items()}


def _leaves(
    trace: Trace, options: _Options, fun: Callable[..., Any], args: tuple[Any, ...], i: int
) -> tuple[list[Tracer], Any, list[bool]]:
    """The traced leaves of argument ``i``, its structure, and which are floating; DTypeError if one is not."""
    leaves, structure = flatten(args[i])
    for k, leaf in enumerate(leaves):
        array = leaf if isinstance(leaf, (Tracer, Array)) else numbers_of(leaf)
        kind = "complex" if options.holomorphic else "floating"
        is_allowed = array is not None and (
            is_complex(array.dtype) if options.holomorphic else is_inexact(array.dtype) or options.allow_int
        )
        if not is_allowed:
            name = names_of_argument(fun, args, i)[k]
            rule = f"an argument to differentiate by must be {kind}"
            way_out = f"{way_to_numbers(leaf) or 'convert it with astype'}, or {_left_out(name)}"
            raise DTypeError(message(options.what, rule, f"{described(leaf)} for {name}", way_out))
    lifted = [trace.lift(leaf) for leaf in leaves]
    return lifted, structure, [is_inexact(x.dtype) for x in lifted]


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


def _check_scalar(options: _Options, value: Tracer) -> None:
    what = options.what
    if value.shape != ():
        raise ShapeError(
            message(
                what,
                "the function must return a scalar",
                f"shape {value.shape}",
                "reduce it, for example with .sum()",
            )
        )
    if options.holomorphic:
        if not is_complex(value.dtype):
            rule = "with holomorphic=True the function must return a complex scalar"
            raise DTypeError(message(what, rule, value.dtype.name))
    elif not is_float(value.dtype):
        way_out = "pass holomorphic=True, or return its real part" if is_complex(value.dtype) else ""
        raise DTypeError(message(what, "the function must return a floating scalar", value.dtype.name, way_out))
