# SPDX-License-Identifier: Apache-2.0
"""Loops with a known number of steps: a while op that counts, or the steps one after another.

%3:3 = stablehlo.while(%i = %zero, %carry = %init, %ys = %zeros)
cond { %i < length }
do   { %row = dynamic_slice %xs, %i …  dynamic_update_slice %ys, %y, %i …  return %i + 1, … }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..numpy._primitives import compare, convert, splat
from ..recording.tracing import Trace, Tracer, WeakTracer, current_trace
from ..trees import flatten, unflatten
from .carry import Carry, Rows
from .host_values import host_row, host_values, probe
from .leaf_types import LeafType, types_of
from .regions import converted, emit_while, index_dtype, read_row, region, weakened, write_row

__all__ = ["CountedLoop"]

_INDEX = np.dtype(np.int64)


@dataclass(frozen=True)
class CountedLoop:
    """A loop of ``length`` steps.

    Attributes:
        what: the user's function, for messages.
        step: takes a function of the step's number, the carry, and a row of each of the ``xs``; returns the carry and
            ``y``.
        names: of the step's number, of the leaves of the carry, and of the rows.
        xs: arrays whose rows the steps read.
        start: the number of the first step.
        reverse: the last row comes first.
        unroll: how many steps a trip of the while op takes; 0 for all of them.
    """

    what: str
    step: Callable[[Callable[[], Any], Any, list[Any]], Any]
    names: tuple[str, Sequence[str], Sequence[str]]
    xs: Sequence[Any]
    start: int
    length: int
    reverse: bool
    unroll: int

    def run(self, init: Any) -> tuple[Any, Any]:
        """The last carry, and the stacked ``y`` of all steps."""
        trace = current_trace()
        if trace is not None:
            return CountedLoopRecorder(self, trace, init).record()
        return self._run_on_host(init)

    def _run_on_host(self, init: Any) -> tuple[Any, Any]:
        """The loop in Python, on NumPy arrays and Arrays."""
        if self.length == 0:  # the body decides the types of the results even so
            carry, ys = probe(
                lambda init, xs: CountedLoopRecorder(self, _trace(), init, xs).record(), (init, list(self.xs))
            )
            last, none = types_of(self.what, "carry", carry), types_of(self.what, "y", ys)
            values = host_values(flatten(init)[0], last.types)
            empty = [np.zeros(leaf.shape, leaf.dtype) for leaf in none.types]
            return unflatten(last.structure, values), unflatten(none.structure, empty)
        carry = Carry(self.what, init)
        while True:
            rows = Rows(self.what)
            done = self._attempt(carry, rows)
            if done is not None:
                values = host_values(done[0], carry.types, keeps_weak=False)
                return carry.tree(values), rows.tree(done[1])

    def _attempt(self, carry: Carry, rows: Rows) -> tuple[list[Any], list[Any]] | None:
        """The last carry and the stacked rows; None if the types of the carry have changed."""
        values = host_values(carry.leaves, carry.types)
        steps: list[list[Any]] = []
        for i in reversed(range(self.length)) if self.reverse else range(self.length):
            number = partial(int, self.start + i)
            result, y = self.step(number, carry.tree(values), [host_row(x, i) for x in self.xs])
            returned = carry.returned(result)
            if returned is None:
                return None
            values = host_values(returned, carry.types)
            steps.append(host_values(rows.returned(y), rows.types))
        if self.reverse:
            steps.reverse()
        return values, [np.stack([step[k] for step in steps]) for k in range(len(rows.types))]


def _trace() -> Trace:
    trace = current_trace()
    assert trace is not None
    return trace


class CountedLoopRecorder:
    """Records the steps of a counted loop: a while op, and the steps that no whole trip is left for."""

    def __init__(self, loop: CountedLoop, trace: Trace, init: Any, xs: Sequence[Any] | None = None) -> None:
        self._loop = loop
        self._trace = trace
        self._carry = Carry(loop.what, init)
        self._rows = Rows(loop.what)
        self._xs = [trace.lift(x) for x in (loop.xs if xs is None else xs)]

    def record(self) -> tuple[Any, Any]:
        """Record all steps. Returns the last carry and the stacked rows."""
        loop = self._loop
        unroll = loop.unroll
        trips, rest = divmod(loop.length, unroll) if unroll else (0, loop.length)
        if unroll != 1 and trips == 1 and rest == 0:
            trips, rest = 0, loop.length
        split = rest if loop.reverse else trips * unroll  # the rows before it come first in memory
        parts: list[list[Tracer]] = []
        if trips:
            rows = slice(split, None) if loop.reverse else slice(0, split)
            values, ys = self._record_while(trips, unroll, [_rows(x, rows) for x in self._xs])
            parts.append(ys)
        else:
            self._settle()
            values = converted(self._trace, self._carry.leaves, self._carry.types)
        if rest:
            first = 0 if loop.reverse else split
            rows = slice(0, rest) if loop.reverse else slice(split, None)
            done = self._steps(values, [_rows(x, rows) for x in self._xs], rest, self._constant(first))
            assert done is not None  # the types are settled
            values, ys = done
            parts.append(ys)
        if loop.reverse:
            parts.reverse()
        return self._carry.tree(list(values)), self._rows.tree(self._joined(parts))

    def _joined(self, parts: list[list[Tracer]]) -> list[Any]:
        if not parts:
            return [splat(self._trace, 0, (0, *leaf.shape), leaf.dtype) for leaf in self._rows.types]
        return list(parts[0]) if len(parts) == 1 else [np.concatenate(pair) for pair in zip(*parts)]

    def _step(self, number: _Number, values: Sequence[Tracer], rows: list[Tracer]) -> _Done | None:
        """One step; None if it changes the types of the carry."""
        loop, carry = self._loop, self._carry
        given: list[Any] = [weakened(x, leaf) for x, leaf in zip(values, carry.types)]
        for row, name in zip(rows, loop.names[2]):
            row._trace.set_name(row, name)
        result, y = loop.step(lambda: WeakTracer.of(number(), int), carry.tree(given), rows)
        returned = carry.returned(result)
        if returned is None:
            return None
        ys = self._rows.returned(y)
        return converted(self._trace, returned, carry.types), converted(self._trace, ys, self._rows.types)

    def _steps(
        self, values: list[Tracer], blocks: list[Tracer], count: int, number: Callable[[int], Tracer]
    ) -> _Done | None:
        """``count`` steps, one after another, on the rows of the blocks; their ``y`` is stacked."""
        stacks: list[list[Tracer]] = []
        for i in reversed(range(count)) if self._loop.reverse else range(count):
            done = self._step(partial(number, i), values, [_row(block, i) for block in blocks])
            if done is None:
                return None
            values, ys = done
            stacks.append(ys)
        if self._loop.reverse:
            stacks.reverse()
        return values, [_stacked(column) for column in zip(*stacks)]

    def _constant(self, first: int) -> Callable[[int], Tracer]:
        return lambda i: self._trace.constant(np.asarray(self._loop.start + first + i, _INDEX))

    def _settle(self) -> None:
        """Record a step that no op takes, for the types of the carry and of ``y``."""
        done = None
        while done is None:
            with region(self._trace, self._loop.what) as body:
                index = body.argument(LeafType((), _INDEX))
                values = [body.argument(leaf) for leaf in self._carry.types]
                rows = [body.argument(LeafType(x.shape[1:], x.dtype)) for x in self._xs]
                done = self._step(partial(_same, index), values, rows)

    def _record_while(self, trips: int, unroll: int, xs: list[Tracer]) -> _Done:
        """The while op of ``trips`` trips; the carry after it, and the stacked rows."""
        loop, trace, carry = self._loop, self._trace, self._carry
        # A trip that is a step counts as the user does. Rows are counted as in JAX.
        counts_steps = unroll == 1 and not xs and not loop.reverse
        first, dtype = (loop.start, _INDEX) if counts_steps else (0, index_dtype(trips))
        if unroll > 1:
            xs = [x.reshape(trips, unroll, *x.shape[1:]) for x in xs]
        done = None
        while done is None:
            with region(trace, loop.what) as body:
                counter: Any = body.argument(LeafType((), dtype), loop.names[0])
                values = [body.argument(leaf, name) for leaf, name in zip(carry.types, loop.names[1])]
                at = trips - 1 - counter if loop.reverse else counter
                blocks = [read_row(x, at) for x in xs]
                skipped = loop.length - trips * unroll if loop.reverse else 0  # these rows are read after the op
                number = self._number_in_trip(at, unroll, loop.start + skipped - first)
                if unroll == 1:
                    done = self._step(partial(number, 0), values, blocks)
                else:
                    done = self._steps(values, blocks, unroll, number)
                if done is not None:
                    stacks = [body.argument(LeafType((trips, *y.shape), y.dtype)) for y in done[1]]
                    row = at - first if first and stacks else at
                    written = [write_row(stack, y, row) for stack, y in zip(stacks, done[1])]
                    body.returns([counter + 1, *done[0], *written])
        with region(trace, loop.what) as condition:
            counter = condition.argument(LeafType((), dtype), loop.names[0])
            for x in (*done[0], *stacks):
                condition.argument(LeafType(x.shape, x.dtype))
            condition.returns([compare("LT", counter, splat(trace, first + trips, (), dtype))])
        init = [splat(trace, first, (), dtype), *converted(trace, carry.leaves, carry.types)]
        init += [splat(trace, 0, stack.shape, stack.dtype) for stack in stacks]
        _, *results = emit_while(trace, init, condition, body)
        count = len(carry.types)
        ys: list[Any] = results[count:]
        return results[:count], ys if unroll == 1 else [y.reshape(trips * unroll, *y.shape[2:]) for y in ys]

    @staticmethod
    def _number_in_trip(at: Any, unroll: int, start: int) -> Callable[[int], Tracer]:
        """The numbers of the steps of trip ``at``; trip 0 begins with ``start``."""

        def number(i: int) -> Any:
            trip = convert(at, _INDEX) if unroll == 1 else convert(at, _INDEX) * unroll
            return trip + (start + i) if start + i else trip

        return number


_Number = Callable[[], Tracer]
_Done = tuple[list[Tracer], list[Tracer]]  # the carry, and the leaves of y


def _same(x: Tracer) -> Tracer:
    return x


def _rows(x: Any, rows: slice) -> Any:
    return x if rows == slice(0, x.shape[0]) else x[rows]


def _stacked(rows: Sequence[Any]) -> Any:
    return np.stack(rows)


def _row(x: Any, i: int) -> Any:
    return x[i]
