# SPDX-License-Identifier: Apache-2.0
"""Functions with derivative rules of their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from ..errors import ShapeError, UnsupportedError, message, shown
from ..finite_differences import refuse_differences
from ..process.traceback_filtering import entry_point
from ..recording.tracing import current_trace
from .custom_calls import CustomCall
from .rules import ForwardRule, ReverseRule, added, zeros_like
from .variables import expect_callable

__all__ = ["custom_jvp", "custom_vjp"]


class _CustomFunction:
    """A function whose derivative is a rule of the user's."""

    _what = ""
    _define = ""

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ) -> None:
        expect_callable(self._what, fun)
        update_wrapper(self, fun)
        self._fun = fun
        self._rule: Callable[[CustomCall], Any] | None = None
        self._nondiff = _positions(self._what, fun, nondiff_argnums, nondiff_argnames)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else partial(self, instance)

    @entry_point
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._rule is None:
            name = getattr(self._fun, "__name__", "f")
            rule = "a rule must be defined before the function is called"
            raise AttributeError(message(self._what, rule, f"none of {name}", f"call {name}.{self._define} first"))
        positional = _positional(self._what, self._fun, args, kwargs)
        trace = current_trace()
        if trace is None:
            refuse_differences()
            return self._fun(*positional)
        return CustomCall(trace, self._what, self._fun, positional, self._nondiff).record(self._rule)


def _positions(what: str, fun: Callable[..., Any], numbers: Any, names: Any) -> frozenset[int]:
    listed = list(numbers) if isinstance(numbers, Iterable) else [numbers]
    for number in listed:
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 0:
            raise ShapeError(message(what, "nondiff_argnums must be positions from 0 on", shown(number)))
    found = {int(number) for number in listed}
    for name in [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names):
        parameters = list(inspect.signature(fun).parameters)
        if name not in parameters:
            raise ShapeError(message(what, "nondiff_argnames must name parameters of the function", shown(name)))
        found.add(parameters.index(name))
    return frozenset(found)


def _positional(what: str, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments by position, with defaults."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):  # a builtin without one
        signature = None
    if signature is None:
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        rule = "arguments of the function must have positions"
        raise TypeError(message(what, rule, f"keyword arguments {', '.join(bound.kwargs)}"))
    return bound.args


def _refuse_symbolic_zeros(what: str, symbolic_zeros: bool) -> None:
    if symbolic_zeros:
        rule = "rules are called with arrays of zeros"
        raise UnsupportedError(message(what, rule, "symbolic_zeros=True", "leave it out"))


class custom_vjp(_CustomFunction):  # noqa: N801 - JAX's name
    """A function with a reverse-mode rule of its own. A decorator.

    ``f.defvjp(fwd, bwd)`` sets the rule. ``fwd`` takes the arguments of ``f`` and returns ``(value, residuals)``;
    ``bwd`` takes the residuals and a cotangent of the value, and returns a tuple with a cotangent for each argument,
    or None for zeros. Both are recorded where the function is differentiated, and may be differentiated again.

    Args:
        fun: a function of trees of arrays that returns a tree of arrays.
        nondiff_argnums: the positions of arguments that are no arrays. ``bwd`` takes them first.
        nondiff_argnames: the names of such arguments.

    Raises:
        TypeError: ``fun`` is not a function, or ``fwd`` or ``bwd`` return no pair or tuple. AttributeError: the
            function is called before it has a rule. ShapeError, DTypeError: ``fwd`` returns a value of another type
            than ``fun``, or ``bwd`` a cotangent of another type than the argument. UnsupportedError: forward mode, or
            a gradient by a value that the function closes over.

    Source: `jax.custom_vjp`.

    >>> import shardwise as sw
    >>> @custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (np.clip(g, -1, 1),))
    >>> np.asarray(sw.grad(lambda x: (clipped(x) * np.array([0.5, 7.0])).sum())(np.zeros(2)))
    array([0.5, 1. ])
    """

    _what = "custom_vjp"
    _define = "defvjp"

    @entry_point
    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rule: ``fwd(*args) -> (value, residuals)``, ``bwd(*nondiff_args, residuals, g) -> cotangents``.

        Args:
            fwd: computes the value, and what ``bwd`` needs.
            bwd: computes the cotangents of the arguments to differentiate.
            symbolic_zeros: must be False.
            optimize_remat: has no effect: unused ops of ``fwd`` are removed in any case.
        """
        expect_callable(self._what, fwd)
        expect_callable(self._what, bwd)
        _refuse_symbolic_zeros(self._what, symbolic_zeros)
        self._rule = partial(ReverseRule, fwd, bwd)


class custom_jvp(_CustomFunction):  # noqa: N801 - JAX's name
    """A function with a forward-mode rule of its own, which serves reverse mode as well. A decorator.

    ``f.defjvp(rule)`` sets the rule: it takes a tuple of the arguments and one of their tangents, and returns
    ``(value, tangent)``. The tangent must be linear in those of the arguments: a gradient is its transpose.

    Args:
        fun: a function of trees of arrays that returns a tree of arrays.
        nondiff_argnums: the positions of arguments that are no arrays. The rule takes them first.
        nondiff_argnames: the names of such arguments.

    Raises:
        TypeError: ``fun`` is not a function, or the rule returns no pair. AttributeError: the function is called before
            it has a rule. ShapeError, DTypeError: the rule returns a value of another type than ``fun``, or a tangent
            of another type than the value. UnsupportedError: a derivative by a value that the function closes over.

    Source: `jax.custom_jvp`.

    >>> import shardwise as sw
    >>> @custom_jvp
    ... def root(x):
    ...     return np.sqrt(x)
    >>> @root.defjvp
    ... def rule(primals, tangents):
    ...     y = root(*primals)
    ...     return y, tangents[0] / (2 * np.maximum(y, 1.0))
    >>> np.asarray(sw.grad(lambda x: root(x).sum())(np.array([0.0, 4.0])))
    array([0.5 , 0.25])
    """

    _what = "custom_jvp"
    _define = "defjvp"

    @entry_point
    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule: ``jvp(*nondiff_args, primals, tangents) -> (value, tangent)``. Returns it: a decorator.

        Args:
            jvp: the rule.
            symbolic_zeros: must be False.
        """
        expect_callable(self._what, jvp)
        _refuse_symbolic_zeros(self._what, symbolic_zeros)
        self._rule = partial(ForwardRule, jvp)
        return jvp

    @entry_point
    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument: ``jvps[i](tangent, value, *primals)`` is its part of the tangent.

        Args:
            jvps: a function for each argument, or None where the value does not depend on it.
        """
        if self._nondiff:
            raise TypeError(
                message(self._what, "defjvps takes functions without nondiff_argnums", sorted(self._nondiff))
            )
        for part in jvps:
            if part is not None:
                expect_callable(self._what, part)
        self._rule = partial(ForwardRule, partial(_sum_of_parts, self, jvps))


def _sum_of_parts(
    function: custom_jvp, jvps: Sequence[Callable[..., Any] | None], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    value = function(*primals)
    parts = [part(t, value, *primals) for part, t in zip(jvps, tangents) if part is not None]
    if not parts:
        return value, zeros_like(value)
    return value, added(parts)
