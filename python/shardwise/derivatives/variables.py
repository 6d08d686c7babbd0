# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the values that a function is differentiated by, and the leaves of its arguments and results.

with standing_in(trace, [x]) as (variable,):
    y = fun(variable)
    gradient = trace.core.vjp([y._value], [one._value], [variable._value])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..array import Array
from ..array_leaves import lifted_results, numbers_of
from ..dtypes import dtype_name, is_inexact, numpy_dtype, way_to_numbers
from ..errors import DTypeError, ShapeError, described, message
from ..recording.tracing import Trace, Tracer, WeakTracer
from ..trees import flatten, leaf_names, unflatten
from ..trees.argument_names import names_of_leaves
from ..trees.differences import difference
from ..trees.registry import register_pytree_node

__all__ = [
    "FLOAT0",
    "Primals",
    "Results",
    "Types",
    "expect_callable",
    "expect_pair",
    "leaves_like",
    "merged",
    "results_of",
    "standing_in",
    "tracers_of",
    "variable",
    "with_float0",
    "without_float0",
]

# The dtype of the tangents of integers, as in JAX: an array of it has a shape and no elements to speak of.
FLOAT0 = np.dtype([("float0", np.void, 0)])


class _Zeros:
    """Zeros of dtype float0 in the result of a program, which has arrays of numbers alone."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


register_pytree_node(_Zeros, lambda zeros: ((), zeros.shape), lambda shape, _: _Zeros(shape))


def without_float0(tree: Any) -> Any:
    """The tree with nodes in place of arrays of dtype float0, for the result of a program."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [_Zeros(x.shape) if getattr(x, "dtype", None) == FLOAT0 else x for x in leaves])


def with_float0(tree: Any) -> Any:
    """The tree with these arrays again."""
    leaves, structure = flatten(tree, lambda x: isinstance(x, _Zeros))
    return unflatten(structure, [np.zeros(x.shape, FLOAT0) if isinstance(x, _Zeros) else x for x in leaves])


@contextmanager
def standing_in(trace: Trace, values: Sequence[Tracer]) -> Iterator[list[Tracer]]:
    """A variable for each value; the values take their places again at the end."""
    variables = [variable(trace, x) for x in values]
    try:
        yield variables
    finally:  # also where the function raises: its caller may catch the error and go on recording
        trace.core.substitute([x._value for x in variables], [x._value for x in values])


def variable(trace: Trace, x: Tracer) -> Tracer:
    """A stand-in for ``x``, of the same type."""
    made = Tracer(trace, trace.core.variable(x._value), x.shape, x.dtype)
    if x._value in trace.annotations.foreign_types:
        trace.annotations.foreign_types[made._value] = trace.annotations.foreign_types[x._value]
    return WeakTracer.of(made, x.weak) if isinstance(x, WeakTracer) else made


def expect_callable(what: str, fun: Any) -> None:
    """Raise TypeError unless it is a function."""
    if not callable(fun):
        raise TypeError(message(what, "takes a function", repr(fun)))


def expect_pair(what: str, out: Any) -> Any:
    """Raise TypeError unless it is ``(value, aux)``, what a function returns with has_aux=True."""
    if not (isinstance(out, (tuple, list)) and len(out) == 2):
        rule = "with has_aux=True the function must return (value, aux)"
        raise TypeError(message(what, rule, type(out).__name__))
    return out


class Types(NamedTuple):
    """The leaves of a tree without their values: structure, shapes, dtypes, and the name of each leaf."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, structure: Any, leaves: Sequence[Any], names: Iterable[str]) -> Types:
        """The types of leaves that have a shape and a dtype."""
        return cls(structure, tuple(x.shape for x in leaves), tuple(x.dtype for x in leaves), tuple(names))

    @classmethod
    def of_tree(cls, tree: Any, names: Sequence[str] | None = None) -> Types:
        """The types of a tree of arrays and Python numbers."""
        leaves, structure = flatten(tree)
        arrays = [leaf if hasattr(leaf, "dtype") else np.asarray(leaf) for leaf in leaves]
        return cls.of(structure, arrays, leaf_names(tree) if names is None else names)

    @property
    def are_floats(self) -> list[bool]:
        """Which leaves have derivatives."""
        return [is_inexact(dtype) for dtype in self.dtypes]

    def filled(self, floats: Iterable[Any]) -> Any:
        """The tree with these floating leaves; the others have zeros of dtype float0."""
        values = iter(floats)
        leaves = [
            next(values) if is_float else np.zeros(shape, FLOAT0)
            for is_float, shape in zip(self.are_floats, self.shapes)
        ]
        return unflatten(self.structure, leaves)


def merged(is_chosen: Sequence[bool], chosen: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The chosen leaves and the others in their order; ``others`` has a leaf for each place."""
    values = iter(chosen)
    return [next(values) if chosen_here else other for chosen_here, other in zip(is_chosen, others)]


class Primals:
    """The arguments that a function is differentiated by, as traced values."""

    def __init__(self, trace: Trace, what: str, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        leaves, structure = flatten(args)
        names = names_of_leaves(fun, args)
        for leaf, name in zip(leaves, names):
            if not isinstance(leaf, (Tracer, Array)) and numbers_of(leaf) is None:
                rule = "an argument to differentiate by must be an array of numbers"
                way_out = way_to_numbers(leaf) or "bind it with functools.partial"
                raise DTypeError(message(what, rule, f"{described(leaf)} for {name}", way_out))
        self._all = [trace.lift(leaf) for leaf in leaves]
        self.types = Types.of(structure, self._all, names)

    @property
    def floats(self) -> list[Tracer]:
        """The leaves with derivatives."""
        return [x for x, is_float in zip(self._all, self.types.are_floats) if is_float]

    @property
    def float_names(self) -> list[str]:
        """Their names."""
        return [name for name, is_float in zip(self.types.names, self.types.are_floats) if is_float]

    def with_floats(self, floats: Sequence[Tracer]) -> Any:
        """The arguments, with other floating leaves."""
        return unflatten(self.types.structure, merged(self.types.are_floats, floats, self._all))


class Results:
    """The traced leaves of a function's result."""

    def __init__(self, leaves: list[Tracer], types: Types) -> None:
        self.leaves = leaves
        self.types = types

    @property
    def tree(self) -> Any:
        """The result."""
        return unflatten(self.types.structure, self.leaves)

    @property
    def floats(self) -> list[int]:
        """The values of the leaves with derivatives."""
        return [x._value for x, is_float in zip(self.leaves, self.types.are_floats) if is_float]


def results_of(trace: Trace, what: str, out: Any) -> Results:
    """The result of a function as traced leaves; DTypeError for a leaf that is no array."""
    leaves, structure = lifted_results(trace, what, out)
    return Results(leaves, Types.of(structure, leaves, [f"result{name}" for name in leaf_names(out)]))


def leaves_like(what: str, given: Any, types: Types, kind: str) -> list[Any]:
    """The floating leaves of ``given``, whose tree and types must be ``types``; Python numbers become arrays.

    Raises:
        ShapeError: another tree, or another shape. DTypeError: another dtype; of an integer, float0.
    """
    leaves, structure = flatten(given)
    if structure != types.structure:
        rule = f"a {kind} must have the tree of its value"
        got = difference(given, unflatten(types.structure, list(types.dtypes)), lambda _: False)
        raise ShapeError(message(what, rule, got))
    floats = []
    for leaf, shape, dtype, name in zip(leaves, types.shapes, types.dtypes, types.names):
        if not is_inexact(dtype):
            _expect_float0(what, leaf, dtype, kind, name)
            continue
        array = leaf if isinstance(leaf, (Tracer, Array)) else numbers_of(leaf)
        if array is None:
            raise DTypeError(message(what, f"a {kind} must be an array of numbers", f"{described(leaf)} for {name}"))
        if array.shape != shape:
            rule = f"a {kind} must have the shape of its value"
            raise ShapeError(message(what, rule, f"{list(array.shape)} for {list(shape)} of {name}"))
        if array.dtype != dtype:
            if type(leaf) not in (bool, int, float, complex):
                rule = f"a {kind} must have the dtype of its value"
                got = f"{array.dtype.name} for {dtype.name} of {name}"
                raise DTypeError(message(what, rule, got, f"convert it with astype({dtype_name(dtype)!r})"))
            array = np.asarray(leaf, dtype)
        floats.append(array)
    return floats


def _expect_float0(what: str, leaf: Any, dtype: np.dtype[Any], kind: str, name: str) -> None:
    found = getattr(leaf, "dtype", None)
    if found == FLOAT0:
        return
    rule = f"the {kind} of an integer must have dtype float0"
    got = f"{described(leaf)} for {dtype.name} of {name}"
    raise DTypeError(message(what, rule, got, "pass np.zeros(shape, jax.dtypes.float0)"))


def tracers_of(trace: Trace, values: Sequence[int]) -> list[Tracer]:
    """Values of the program as tracers."""
    types = [trace.core.type_of(value) for value in values]
    return [Tracer(trace, v, tuple(t.shape), numpy_dtype(t.dtype)) for v, t in zip(values, types)]
