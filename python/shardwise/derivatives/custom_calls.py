# SPDX-License-Identifier: Apache-2.0
"""Calls of functions with derivative rules of their own, as part of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..array import Array
from ..array_leaves import as_weak, numbers_of
from ..dtypes import dtype_name
from ..errors import DTypeError, described, message
from ..recording.tracing import Trace, Tracer, WeakTracer
from ..trees import flatten, unflatten
from .variables import Types, results_of, tracers_of

__all__ = ["CustomCall", "CustomRegion", "custom_region", "weakened"]


class CustomRegion:
    """A region that is being recorded."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.index = trace.core.begin_region()
        self.results: list[Tracer] = []

    def argument_like(self, x: Tracer) -> Tracer:
        """A new argument of the type of ``x``."""
        value = self._trace.core.region_argument(x.shape, dtype_name(x.dtype))
        return weakened(Tracer(self._trace, value, x.shape, x.dtype), x)


@contextmanager
def custom_region(trace: Trace, manual_axes: tuple[str, ...]) -> Iterator[CustomRegion]:
    """Record a region inside these manual axes."""
    outer = trace.manual_axes
    opened = CustomRegion(trace)
    trace.manual_axes = manual_axes
    try:
        yield opened
    finally:  # the caller of a function that raised may go on recording
        trace.manual_axes = outer
        trace.core.end_region([x._value for x in opened.results])


def weakened(x: Tracer, like: Tracer) -> Tracer:
    """``x``, as a number whose dtype gives way if that of ``like`` does."""
    return WeakTracer.of(x, like.weak) if isinstance(like, WeakTracer) else x


class CustomCall:
    """One call: what its rule is recorded for, if the program is differentiated.

    Attributes:
        trace: the program.
        what: the public function that errors name.
        name: the name of the function.
        nondiff: the arguments that are no arrays.
        inputs: the types of the other arguments, a tuple of trees.
        outputs: the types of the value.
        manual_axes: those around the call.
    """

    def __init__(
        self, trace: Trace, what: str, fun: Callable[..., Any], args: tuple[Any, ...], nondiff: frozenset[int]
    ) -> None:
        self.trace = trace
        self.what = what
        self.name = str(getattr(fun, "__name__", "f"))
        self.nondiff = [arg for i, arg in enumerate(args) if i in nondiff]
        self.manual_axes = trace.manual_axes
        self._fun = fun
        self._args = args
        self._positions = [i for i in range(len(args)) if i not in nondiff]
        chosen = tuple(args[i] for i in self._positions)
        leaves, structure = flatten(chosen)
        for leaf in leaves:
            if not isinstance(leaf, (Tracer, Array)) and numbers_of(leaf) is None:
                rule, way_out = f"an argument of {self.name} must be an array", "name it in nondiff_argnums"
                raise DTypeError(message(what, rule, described(leaf), way_out))
        self.leaves = [as_weak(trace.lift(leaf), leaf) for leaf in leaves]
        self.inputs = Types.of(structure, self.leaves, [f"an argument of {self.name}"] * len(leaves))
        self.outputs = self.inputs
        self.captured: list[Tracer] = []

    def record(self, rule: Callable[[CustomCall], Any]) -> Any:
        """Record the function as an op that refers to its derivative."""
        trace = self.trace
        with custom_region(trace, self.manual_axes) as body:
            arguments = [body.argument_like(x) for x in self.leaves]
            results = results_of(trace, self.what, self._fun(*self.placed(arguments)))
            body.results = results.leaves
        self.outputs = results.types
        captured = [value for value, _ in trace.core.capture(body.index)]
        self.captured = tracers_of(trace, captured)
        attrs = {"name": self.name, "derivative": trace.derivatives.add(rule(self))}
        types = [(x.shape, dtype_name(x.dtype)) for x in results.leaves]
        operands = [*(x._value for x in self.leaves), *captured]
        rows = trace.core.emit_op("shardwise.custom_derivative", operands, attrs, types, [body.index])
        made = [weakened(Tracer(trace, value, shape, x.dtype), x) for x, (value, shape, _) in zip(results.leaves, rows)]
        return unflatten(results.types.structure, made)

    def placed(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments, with these leaves."""
        args = list(self._args)
        for i, argument in zip(self._positions, self.primals(leaves)):
            args[i] = argument
        return args

    def primals(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments to differentiate by, with these leaves."""
        return tuple(unflatten(self.inputs.structure, leaves))

    def described_derivative(self, regions: list[int]) -> tuple[Any, ...]:
        """The derivative in the form that ``Trace.core.vjp`` reads."""
        others = len(self.captured)
        has_gradient = self.inputs.are_floats + [False] * others
        is_closed_over = [False] * len(self.leaves) + [True] * others
        return self.name, regions, has_gradient, self.outputs.are_floats, is_closed_over
