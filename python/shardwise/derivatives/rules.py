# SPDX-License-Identifier: Apache-2.0
"""Derivative rules of the user's, recorded where a program is differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..array import Array
from ..array_leaves import numbers_of
from ..errors import DTypeError, ShapeError, UnsupportedError, described, message
from ..numpy._primitives import splat
from ..recording.tracing import Tracer
from ..trees import flatten, leaf_names, unflatten
from ..trees.differences import difference
from .custom_calls import CustomCall, custom_region
from .variables import FLOAT0, Results, Types, leaves_like, results_of

__all__ = ["ForwardRule", "ReverseRule", "added", "zeros_like"]


class ReverseRule:
    """The rule of a custom_vjp function."""

    is_reverse_only = True

    def __init__(self, fwd: Callable[..., Any], bwd: Callable[..., Any], call: CustomCall) -> None:
        self._fwd = fwd
        self._bwd = bwd
        self._call = call

    def refuse_forward_mode(self) -> NoReturn:
        """Raise UnsupportedError: the cotangents need not be linear."""
        rule = "forward mode cannot pass a function of custom_vjp, which has a reverse rule alone"
        way_out = "use sw.custom_jvp, or differentiate in reverse mode"
        raise UnsupportedError(message("jvp", rule, self._call.name, way_out))

    def recorded(self) -> tuple[Any, ...]:
        """The forward and the backward program, as regions of the program."""
        call = self._call
        with custom_region(call.trace, call.manual_axes) as forward:
            arguments = [forward.argument_like(x) for x in call.leaves]
            for x in call.captured:
                forward.argument_like(x)
            out = self._fwd(*call.placed(arguments))
            value, residuals = _expect_pair(call, "fwd", out, "(value, residuals)")
            results = _value_of(call, "fwd", value)
            leaves, structure = flatten(residuals)
            is_array = [isinstance(x, (Tracer, Array)) or numbers_of(x) is not None for x in leaves]
            traced = [call.trace.lift(x) for x, array in zip(leaves, is_array) if array]
            forward.results = [*results.leaves, *traced]
        with custom_region(call.trace, call.manual_axes) as backward:
            held = iter([backward.argument_like(x) for x in traced])
            given = unflatten(structure, [next(held) if array else x for x, array in zip(leaves, is_array)])
            floats = [x for x, is_float in zip(results.leaves, call.outputs.are_floats) if is_float]
            cotangent = call.outputs.filled([backward.argument_like(x) for x in floats])
            made = self._bwd(*call.nondiff, given, cotangent)
            backward.results = self._gradients(made)
        return call.described_derivative([forward.index, backward.index])

    def _gradients(self, made: Any) -> list[Tracer]:
        """What bwd returned, for each floating leaf of the arguments."""
        call = self._call
        arguments = call.primals(call.leaves)
        if not isinstance(made, (tuple, list)) or len(made) != len(arguments):
            rule = f"bwd must return a tuple with a cotangent for each of the {len(arguments)} arguments"
            got = f"{len(made)}" if isinstance(made, (tuple, list)) else described(made)
            raise TypeError(message(call.what, rule, got, "write (g,) for one argument"))
        gradients = []
        for i, (argument, cotangent) in enumerate(zip(arguments, made)):
            types = Types.of_tree(argument, [f"argument {i}{name}" for name in leaf_names(argument)])
            gradients += self._gradients_of(types, cotangent)
        return gradients

    def _gradients_of(self, types: Types, cotangent: Any) -> list[Tracer]:
        trace = self._call.trace
        given = [None] * len(types.dtypes) if cotangent is None else self._leaves_of(types, cotangent)
        found = []
        for x, is_float, shape, dtype, name in zip(given, types.are_floats, types.shapes, types.dtypes, types.names):
            if not is_float:
                continue
            if x is None:
                found.append(splat(trace, 0, shape, dtype))
                continue
            one = Types(flatten(0)[1], (shape,), (dtype,), (name,))
            found += [trace.lift(y) for y in leaves_like(self._call.what, x, one, "cotangent")]
        return found

    def _leaves_of(self, types: Types, cotangent: Any) -> list[Any]:
        leaves, structure = flatten(cotangent, lambda x: x is None)
        example = unflatten(types.structure, list(types.dtypes))
        if structure == types.structure:
            return leaves
        rule = "bwd must return cotangents with the trees of the arguments"
        raise ShapeError(message(self._call.what, rule, difference(cotangent, example, lambda x: x is None)))


class ForwardRule:
    """The rule of a custom_jvp function."""

    def __init__(self, jvp: Callable[..., Any], call: CustomCall) -> None:
        self._jvp = jvp
        self._call = call

    def recorded(self) -> tuple[Any, ...]:
        """The program of values and tangents, as a region of the program."""
        call = self._call
        with custom_region(call.trace, call.manual_axes) as body:
            arguments = [body.argument_like(x) for x in call.leaves]
            for x in call.captured:
                body.argument_like(x)
            floats = [x for x, is_float in zip(call.leaves, call.inputs.are_floats) if is_float]
            tangents = tuple(call.inputs.filled([body.argument_like(x) for x in floats]))
            out = self._jvp(*call.nondiff, call.primals(arguments), tangents)
            value, tangent = _expect_pair(call, "the rule", out, "(value, tangent)")
            results = _value_of(call, "the rule", value)
            made = leaves_like(call.what, tangent, call.outputs, "tangent")
            body.results = [*results.leaves, *(call.trace.lift(x) for x in made)]
        return call.described_derivative([body.index])


def _expect_pair(call: CustomCall, who: str, out: Any, form: str) -> Any:
    if not (isinstance(out, (tuple, list)) and len(out) == 2):
        raise TypeError(message(call.what, f"{who} must return {form}", described(out)))
    return out


def _value_of(call: CustomCall, who: str, value: Any) -> Results:
    results = results_of(call.trace, call.what, value)
    known = call.outputs
    rule = f"{who} must return the value of {call.name}"
    if results.types.structure != known.structure:
        example = unflatten(known.structure, list(known.dtypes))
        raise ShapeError(message(call.what, rule, difference(value, example, lambda _: False)))
    for shape, dtype, wanted, of, name in zip(
        results.types.shapes, results.types.dtypes, known.shapes, known.dtypes, known.names
    ):
        if shape != wanted:
            raise ShapeError(message(call.what, rule, f"{list(shape)} for {list(wanted)} of {name}"))
        if dtype != of:
            raise DTypeError(message(call.what, rule, f"{dtype.name} for {of.name} of {name}"))
    return results


def zeros_like(tree: Any) -> Any:
    """Zeros of the floating leaves, and of the others zeros of dtype float0."""
    types = Types.of_tree(tree)
    floats = [np.zeros(s, d) for s, d, is_float in zip(types.shapes, types.dtypes, types.are_floats) if is_float]
    return types.filled(floats)


def added(trees: list[Any]) -> Any:
    """The sum of trees of tangents; leaves of dtype float0 stay."""
    columns = zip(*(flatten(tree)[0] for tree in trees))
    sums = []
    for column in columns:
        total = column[0]
        for x in column[1:]:
            total = total if getattr(x, "dtype", None) == FLOAT0 else total + x
        sums.append(total)
    return unflatten(flatten(trees[0])[1], sums)
