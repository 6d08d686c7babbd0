# SPDX-License-Identifier: Apache-2.0
"""Loops until a condition fails, and over a range of integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, described, message
from ..numpy._primitives import compare, operand
from ..numpy._promote import is_integer, is_weak, result_dtype
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Trace, Tracer, WeakTracer, current_trace, refuse_escaped
from ..trees import flatten
from ..trees.argument_names import names_of_leaves
from .carry import Carry
from .counted import CountedLoop
from .host_values import host_values, probe
from .leaf_types import LeafType, expect_function, type_of, types_of
from .regions import OpenRegion, converted, emit_while, region
from .scans import unroll_factor

__all__ = ["fori_loop", "while_loop"]


@entry_point
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Run ``val = body_fun(val)`` while ``cond_fun(val)`` is true, and return the last ``val``.

    Args:
        cond_fun: takes the carry and returns a bool scalar.
        body_fun: takes the carry and returns the next one: the same tree, with the same shapes and dtypes.
        init_val: the first carry: a tree of arrays and numbers. A Python number takes the dtype of the body's result.

    Returns:
        The last carry.

    Raises:
        TypeError: the body returns another tree. DTypeError, ShapeError: a leaf of the carry changes its type, or the
            condition is not a bool scalar.

    Both functions may use traced values from around them. The gradient of a loop whose number of steps is unknown
    cannot be computed in reverse: use :func:`scan` or :func:`fori_loop` with constant bounds there.

    Source: `jax.lax.while_loop`.

    >>> import shardwise as sw
    >>> halve = lambda x: while_loop(lambda v: v[0].sum() > 1, lambda v: (v[0] / 2, v[1] + 1), (x, 0))
    >>> halve(np.ones(4, np.float32))
    (array([0.25, 0.25, 0.25, 0.25], dtype=float32), np.int64(2))
    """
    expect_function("while_loop", "cond_fun", cond_fun)
    expect_function("while_loop", "body_fun", body_fun)
    carry = Carry("while_loop", init_val)
    trace = current_trace()
    if trace is None:
        return _run(carry, cond_fun, body_fun)

    def goes_on(_: Sequence[Tracer], values: Any) -> Tracer:
        result = cond_fun(values)
        _check_predicate(result)
        return trace.lift(result)

    recorder = WhileRecorder("while_loop", trace, carry, names_of_leaves(body_fun, (init_val,)))
    return recorder.record(lambda _, values: body_fun(values), goes_on)


class WhileRecorder:
    """Records a while op, with a counter before its carry if ``first`` is given."""

    def __init__(self, what: str, trace: Trace, carry: Carry, names: list[str], first: Tracer | None = None) -> None:
        self._what = what
        self._trace = trace
        self._carry = carry
        self._names = names
        self._first = [] if first is None else [first]

    def record(
        self,
        step: Callable[[Sequence[Tracer], Any], Any],
        goes_on: Callable[[Sequence[Tracer], Any], Tracer],
    ) -> Any:
        """Record the op. Both functions take the counter, if any, and the carry. Returns the last carry."""
        trace, carry = self._trace, self._carry
        returned = None
        while returned is None:
            with region(trace, self._what) as body:
                counter, values = self._arguments(body)
                returned = carry.returned(step(counter, values))
                if returned is not None:
                    body.returns([*(i + 1 for i in counter), *converted(trace, returned, carry.types)])
        with region(trace, self._what) as condition:
            condition.returns([goes_on(*self._arguments(condition))])
        init = [*self._first, *converted(trace, carry.leaves, carry.types)]
        return carry.tree(list(emit_while(trace, init, condition, body))[len(self._first) :])

    def _arguments(self, opened: OpenRegion) -> tuple[list[Any], Any]:
        names = iter(self._names)
        counter = []
        for first in self._first:
            weak = first.weak if isinstance(first, WeakTracer) else None
            counter.append(opened.argument(LeafType((), first.dtype, weak), next(names)))
        return counter, self._carry.tree([opened.argument(leaf, name) for leaf, name in zip(self._carry.types, names)])


def _check_predicate(result: Any) -> None:
    rule = "cond_fun must return a bool scalar"
    if len(flatten(result)[0]) != 1 or flatten(result)[0][0] is not result:
        raise DTypeError(message("while_loop", rule, described(result)))
    leaf = type_of("while_loop", result, "the result of cond_fun")
    if leaf.shape != () or leaf.dtype != np.bool_:
        way_out = "compare it with a number" if leaf.shape == () else "reduce it with np.any or np.all"
        raise DTypeError(message("while_loop", rule, leaf, way_out))


def _run(carry: Carry, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any]) -> Any:
    """The loop in Python, on NumPy arrays and Arrays."""
    values = None
    while values is None:
        values = _attempt(carry, cond_fun, body_fun)
    return carry.tree(host_values(values, carry.types, keeps_weak=False))


def _attempt(carry: Carry, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any]) -> list[Any] | None:
    """The last carry; None if the types of the carry have changed."""
    values, has_run = host_values(carry.leaves, carry.types), False
    while True:
        goes_on = cond_fun(carry.tree(values))
        _check_predicate(goes_on)
        if not goes_on:
            if not has_run and any(leaf.weak for leaf in carry.types):  # the body decides the dtypes even so
                init = carry.tree(carry.leaves)
                result = probe(lambda init: while_loop(cond_fun, body_fun, init), (init,))
                carry.types = types_of("while_loop", "carry", result).types
            return values
        returned = carry.returned(body_fun(carry.tree(values)))
        if returned is None:
            return None
        values, has_run = host_values(returned, carry.types), True


@entry_point
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """Run ``val = body_fun(i, val)`` for ``i`` in ``range(lower, upper)``, and return the last ``val``.

    Args:
        lower: the first ``i``: an integer, or a traced integer scalar.
        upper: the end of the range. There is no step for ``upper <= lower``.
        body_fun: takes ``i`` and the carry, and returns the next carry: the same tree, with the same shapes and dtypes.
            If both bounds are constants, ``i`` is like a Python int: the dtype of an array beside it wins.
        init_val: the first carry: a tree of arrays and numbers. A Python number takes the dtype of the body's result.
        unroll: for constant bounds, how many steps each trip of the loop takes; 0 or True for all of them.

    Returns:
        The last carry.

    Raises:
        TypeError: the body returns another tree. DTypeError, ShapeError: a leaf of the carry changes its type, a bound
            is not an integer scalar, or ``unroll`` is given with a traced bound.

    Source: `jax.lax.fori_loop`.

    >>> fori_loop(0, 5, lambda i, total: total + i, np.float32(0.5))
    np.float32(10.5)
    """
    expect_function("fori_loop", "body_fun", body_fun)
    for name, bound in (("lower", lower), ("upper", upper)):
        if isinstance(bound, (int, np.integer)) and not -(2**63) <= int(bound) < 2**63:
            raise DTypeError(message("fori_loop", "bounds must fit int64", f"{bound} for {name}"))
        leaf = type_of("fori_loop", bound, name)
        if leaf.shape != () or not is_integer(leaf.dtype):
            raise DTypeError(message("fori_loop", "bounds must be integer scalars", f"{leaf} for {name}"))
    if isinstance(lower, Tracer) or isinstance(upper, Tracer):
        return _over_traced_range(lower, upper, body_fun, init_val, unroll)
    start, end = int(np.asarray(lower)), int(np.asarray(upper))
    index, *names = names_of_leaves(body_fun, (0, init_val))
    loop = CountedLoop(
        what="fori_loop",
        step=lambda number, carry, _: (body_fun(number(), carry), None),
        names=(index, names, ()),
        xs=(),
        start=start,
        length=max(end - start, 0),
        reverse=False,
        unroll=1 if unroll is None else unroll_factor("fori_loop", unroll),
    )
    return loop.run(init_val)[0]


def _over_traced_range(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, unroll: Any) -> Any:
    trace = current_trace()
    if trace is None:
        refuse_escaped(lower if isinstance(lower, Tracer) else upper)
    if unroll not in (None, False, 1):
        raise ShapeError(message("fori_loop", "unroll needs constant bounds", unroll, "leave it out"))
    dtype = result_dtype(lower, upper)
    if not is_integer(dtype):
        got = f"{type_of('fori_loop', lower, 'lower')} and {type_of('fori_loop', upper, 'upper')}"
        raise DTypeError(
            message("fori_loop", "bounds must have a common integer dtype", got, "convert one with astype")
        )
    first, end = operand(trace, lower, dtype), operand(trace, upper, dtype)
    if is_weak(lower) and is_weak(upper):
        first = WeakTracer.of(first, int)
    names = names_of_leaves(body_fun, (0, init_val))
    recorder = WhileRecorder("fori_loop", trace, Carry("fori_loop", init_val), names, first)
    return recorder.record(
        lambda counter, values: body_fun(counter[0], values), lambda counter, _: compare("LT", counter[0], end)
    )
