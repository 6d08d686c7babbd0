# SPDX-License-Identifier: Apache-2.0
"""Branches: one of several functions runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, ShardingError, described, message
from ..numpy._primitives import convert, splat, truth
from ..numpy._promote import is_integer, result_dtype
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Trace, Tracer, current_trace, refuse_escaped
from ..trees import flatten, unflatten
from .host_values import host_values, known_mesh, probe
from .leaf_types import LeafType, Leaves, check_trees, check_types, expect_function, fits, type_of, types_of
from .regions import OpenRegion, converted, region, weakened

__all__ = ["cond", "switch"]

_INDEX = np.dtype(np.int32)


@entry_point
def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """Run ``true_fun(*operands)`` if ``pred`` is true, else ``false_fun(*operands)``; as `jax.lax.cond`.

    In a traced function both functions are recorded, and one of them runs. `np.where` computes both sides, which is
    faster for cheap elementwise choices, and chooses per element.

    Args:
        pred: a scalar bool, or a number, which is true unless it is zero.
        true_fun: takes the operands and returns a tree of arrays.
        false_fun: takes the operands and returns a tree with the same structure, shapes and dtypes.
        operands: trees of arrays and numbers. Both functions may also use values from around them.

    Returns:
        The result of one of the functions. A Python number in it takes the dtype that the other function returns.

    Raises:
        TypeError: the functions return different trees. DTypeError, ShapeError: they return different types, or
            ``pred`` is not a scalar.

    Source: `jax.lax.cond`.

    >>> cond(True, lambda x: x + 1, lambda x: x * 10, np.arange(3))
    array([1, 2, 3])
    """
    expect_function("cond", "true_fun", true_fun)
    expect_function("cond", "false_fun", false_fun)
    leaf = _scalar("cond", "pred", pred)
    if leaf.shape != ():
        rule, way_out = "pred must be a scalar bool or number", "reduce it with np.any or np.all, or use np.where"
        raise DTypeError(message("cond", rule, leaf, way_out))
    branches = _Branches("cond", (false_fun, true_fun), ("false_fun", "true_fun"), operands)
    trace = current_trace()
    if trace is None:
        return branches.run(int(bool(_concrete(pred))))
    return branches.record(trace, convert(truth(trace.lift(pred)), _INDEX))


@entry_point
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Run ``branches[index](*operands)``; as `jax.lax.switch`.

    Args:
        index: a scalar integer. Below 0 it counts as 0, and past the last branch as the last one.
        branches: functions of the operands that return trees with the same structure, shapes and dtypes.
        operands: trees of arrays and numbers. The functions may also use values from around them.

    Returns:
        The result of that branch. A Python number in it takes the dtype that the other branches return.

    Raises:
        TypeError: the branches return different trees. DTypeError, ShapeError: they return different types, ``index``
            is not an integer scalar, or there are no branches.

    Source: `jax.lax.switch`.

    >>> switch(7, [lambda x: x, lambda x: -x], np.arange(3))
    array([ 0, -1, -2])
    """
    functions = _listed(branches)
    for i, function in enumerate(functions):
        expect_function("switch", f"branches[{i}]", function)
    leaf = _scalar("switch", "index", index)
    if leaf.shape != () or not is_integer(leaf.dtype):
        raise DTypeError(message("switch", "index must be an integer scalar", leaf))
    if not functions:
        raise ShapeError(message("switch", "needs at least one branch", "none"))
    if len(functions) == 1:
        return functions[0](*operands)
    names = tuple(f"branches[{i}]" for i in range(len(functions)))
    choice = _Branches("switch", functions, names, operands)
    trace = current_trace()
    last = len(functions) - 1
    if trace is None:
        return choice.run(max(0, min(int(_concrete(index)), last)))
    traced = trace.lift(index)
    last = min(last, int(np.iinfo(traced.dtype).max))
    first, final = (splat(trace, bound, (), traced.dtype) for bound in (0, last))
    return choice.record(trace, convert(trace.emit("stablehlo.clamp", (first, traced, final)), _INDEX))


def _listed(branches: Any) -> tuple[Callable[..., Any], ...]:
    try:
        return tuple(branches)
    except TypeError:
        raise TypeError(message("switch", "branches must be a sequence of functions", described(branches))) from None


def _scalar(what: str, name: str, value: Any) -> LeafType:
    if len(flatten(value)[0]) != 1 or flatten(value)[0][0] is not value:
        raise DTypeError(message(what, f"{name} must be a scalar", described(value)))
    return type_of(what, value, name)


def _concrete(x: Any) -> Any:
    if isinstance(x, Tracer):
        refuse_escaped(x)
    return np.asarray(x)


class _Branches:
    """The functions to choose from, and what they are called with."""

    def __init__(
        self, what: str, functions: Sequence[Callable[..., Any]], names: Sequence[str], operands: tuple[Any, ...]
    ) -> None:
        self._what = what
        self._functions = functions
        self._names = names
        self._operands = operands

    # ---- outside a traced function ----------------------------------------------------------------------------------

    def run(self, chosen: int) -> Any:
        """Call one function; the others are recorded for the types of their results."""
        operands: Any = types_of(self._what, "operands", self._operands)
        values = host_values(operands.leaves, operands.types)
        result = self._functions[chosen](*unflatten(operands.structure, values))
        parts = types_of(self._what, "result", result)
        results = [result if i == chosen else self._probed(i) for i in range(len(self._functions))]
        if any(other is _UNKNOWN for other in results):
            return unflatten(parts.structure, host_values(parts.leaves, parts.types, keeps_weak=False))
        types = self._settled(results)
        return unflatten(parts.structure, host_values(parts.leaves, types, keeps_weak=False))

    def _probed(self, i: int) -> Any:
        """The result of a function that does not run, as tracers."""
        try:
            return probe(self._functions[i], self._operands)
        except ShardingError:  # without a mesh, an annotation is not checked
            if known_mesh(self._operands) is None:
                return _UNKNOWN
            raise

    # ---- in a traced function ---------------------------------------------------------------------------------------

    def record(self, trace: Trace, index: Tracer) -> Any:
        """Record the case op that takes the branch of this index, which is in range."""
        operands = types_of(self._what, "operands", self._operands)
        leaves = [weakened(trace.lift(x), leaf) for x, leaf in zip(operands.leaves, operands.types)]
        arguments = unflatten(operands.structure, leaves)
        recorded = [self._recorded(trace, function, arguments) for function in self._functions]
        types = self._settled([result for _, result in recorded])
        regions = [
            opened if _has_types(opened, types) else self._recorded(trace, function, arguments, types)[0]
            for (opened, _), function in zip(recorded, self._functions)
        ]
        made = trace.emit_op("stablehlo.case", [index], None, (), [opened.index for opened in regions])
        return unflatten(flatten(recorded[0][1])[1], made)

    def _recorded(
        self, trace: Trace, function: Callable[..., Any], arguments: Any, types: Sequence[LeafType] | None = None
    ) -> tuple[OpenRegion, Any]:
        """A branch as a region, and its result. ``types``: of its results; by default those that they have."""
        with region(trace, self._what) as opened:
            result = function(*arguments)
            parts = types_of(self._what, "result", result)
            opened.returns(converted(trace, parts.leaves, parts.types if types is None else types))
        return opened, result

    # ---- types ------------------------------------------------------------------------------------------------------

    def _settled(self, results: Sequence[Any]) -> list[LeafType]:
        """The types that all branches return; Python numbers take the dtype of the arrays beside them."""
        count = "both" if len(results) == 2 else "all"
        found = [types_of(self._what, "result", result) for result in results]
        rule = f"{count} branches must return the same tree"
        for name, other in zip(self._names[1:], found[1:]):
            check_trees(self._what, rule, (found[0], other), (self._names[0], name))
        types = [_common([parts.types[k] for parts in found]) for k in range(len(found[0].types))]
        for name, parts in zip(self._names, found):
            wrong = [k for k, leaf in enumerate(parts.types) if not fits(leaf, types[k])]
            if wrong:
                other_name = self._name_of_type(found, wrong[0], types[wrong[0]])
                text = f"{{0}} of {other_name} and {{1}} of {name} at {{place}}"
                check_types(self._what, f"{count} branches must return the same types", types, parts, text)
        return types

    def _name_of_type(self, found: list[Leaves], k: int, wanted: LeafType) -> str:
        """The first branch whose result ``k`` has this type."""
        return next((name for name, parts in zip(self._names, found) if fits(parts.types[k], wanted)), self._names[0])


class _Unknown:
    """The result of a branch whose types are not known."""


_UNKNOWN = _Unknown()


def _common(types: Sequence[LeafType]) -> LeafType:
    """The type of a result: that of the first array, or what Python numbers have in common."""
    strong = next((leaf for leaf in types if leaf.weak is None), None)
    if strong is not None:
        return strong
    return LeafType(types[0].shape, result_dtype(*(leaf.weak(0) for leaf in types if leaf.weak is not None)))


def _has_types(opened: OpenRegion, types: Sequence[LeafType]) -> bool:
    return all(x.dtype == leaf.dtype for x, leaf in zip(opened.results, types))
