# SPDX-License-Identifier: Apache-2.0
"""Live bytes over the time of an estimate: where the moments of a rehearsed run stand in the schedule.

A rehearsal runs the ops in the order of the program, and knows no times. A buffer is allocated when the kernel starts
that makes its value, and freed when the last kernel before that ends:

    %3 = dot_general %x, %w     4 MiB      kernel from 10 us to 30 us        at 10 us
    %4 = exponential %3         4 MiB      kernel from 30 us to 34 us        at 30 us
    %3 is freed                                                             at 34 us

A transfer may start long before or after its neighbours in the program: its buffer is allocated between those of the
kernels around it. A loop is rehearsed until its trips repeat, so that the moments of its second trip stand in the
second trip of the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .trace_events import StepSpan

__all__ = ["TimedOps", "live_bytes"]


@dataclass(frozen=True)
class TimedOps:
    """When ops run: a kernel, a transfer, or an op with regions, which allocates what it returns when it begins.

    Attributes:
        numbers: of the ops in the local program.
        start, end: seconds from the start of the step.
        is_transfer: whether it is issued out of the order of the program.
    """

    numbers: Sequence[int]
    start: float
    end: float
    is_transfer: bool = False


def live_bytes(
    moments: Sequence[tuple[Any, int]],
    module: Any,
    timed: Iterable[TimedOps],
    spans: Sequence[StepSpan],
    seconds: float,
) -> list[tuple[float, int]]:
    """The bytes that are alive from each time on, until ``seconds``: the highest of them is that of the moments.

    Args:
        moments: of a rehearsal: the value whose buffer is allocated or freed, and all bytes that are alive then.
        module: the local program.
        timed: when its ops run.
        spans: its loops, branches and calls.
        seconds: the estimate.
    """
    times = {number: ops for ops in timed for number in ops.numbers}
    times |= {span.op: TimedOps((span.op,), span.start, span.start) for span in spans if not span.is_computed}
    loops = _loops(spans)
    nests, trips = _nests(module, loops), _Trips(loops)
    wanted: list[tuple[float, bool]] = []  # the time of each moment, and whether the others have to keep to it
    live, end = 0, 0.0
    for value, size in moments:
        op = value.defining_op
        ops = None if op is None else times.get(op.number)
        # A loop allocates what it stacks up in its first trip.
        if op is None or ops is None or size <= live or trips.is_inside(op.number):
            wanted.append((end, False))
        else:
            place = trips.enter(nests[op.number], value.number)
            wanted.append((place(ops.start), not ops.is_transfer))
            end = end if ops.is_transfer else max(end, place(ops.end))
        live = size
    points = zip(_in_order(wanted, seconds), (size for _, size in moments))
    return list(_distinct([*points, (seconds, live)]))


def _in_order(wanted: Sequence[tuple[float, bool]], seconds: float) -> list[float]:
    """No time is before the one that precedes it, or after the next one that others keep to."""
    limits, limit = [], seconds
    for time, is_kept in reversed(wanted):
        limits.append(limit)
        limit = min(time, seconds) if is_kept else limit
    times, now = [], 0.0
    for (time, is_kept), limit in zip(wanted, reversed(limits)):
        now = max(now, min(time, seconds if is_kept else limit))
        times.append(now)
    return times


def _distinct(points: Sequence[tuple[float, int]]) -> Iterator[tuple[float, int]]:
    """Of the sizes at one time the highest and the last."""
    i = 0
    while i < len(points):
        time, highest = points[i]
        last = i
        while last + 1 < len(points) and points[last + 1][0] == time:
            last += 1
            highest = max(highest, points[last][1])
        if highest != points[last][1]:
            yield time, highest
        yield points[last]
        i = last + 1


@dataclass(frozen=True)
class _Loop:
    """Its first trip takes from ``start`` to ``end``, and ``more`` further ones ``each`` so long."""

    start: float
    end: float
    more: int = 0
    each: float = 0.0

    def shifted(self, time: float, trip: int) -> float:
        """A time of the first trip, in another one, which may be shorter; those after the last one are the last one."""
        trip = min(trip, self.more)
        if trip == 0:
            return time
        shrunk = min(1.0, self.each / (self.end - self.start)) if self.end > self.start else 0.0
        return self.end + (trip - 1) * self.each + (time - self.start) * shrunk


def _loops(spans: Sequence[StepSpan]) -> dict[int, _Loop]:
    found = {span.op: _Loop(span.start, span.start + span.seconds) for span in spans if span.kind == "loop"}
    for span in spans:
        if span.kind == "more trips":
            found[span.op] = _Loop(found[span.op].start, span.start, span.number, span.seconds / span.number)
    return found


# The loops around an op from the outside in, each with the position in it of the op, or of the loop with the op in it.
_Nest = tuple[tuple[int, int], ...]


def _nests(module: Any, loops: Mapping[int, _Loop]) -> dict[int, _Nest]:
    found: dict[int, _Nest] = {}

    def visit(region: Any, around: _Nest, loop: int | None) -> None:
        for op in region.ops:
            nest = around if loop is None else (*around, (loop, len(found)))
            found[op.number] = nest
            for inner in op.regions:
                visit(inner, *((nest, op.number) if op.number in loops else (around, loop)))

    for function in module.functions:
        visit(function.body, (), None)
    return found


class _Trips:
    """The trip of each loop that a rehearsal is in: it goes back in the program when another one begins."""

    def __init__(self, loops: Mapping[int, _Loop]) -> None:
        self._loops = loops
        self._inside: list[tuple[int, int, tuple[int, int]]] = []  # loop, trip, position and value that came last

    def is_inside(self, loop: int) -> bool:
        return any(loop == inside for inside, _, _ in self._inside)

    def enter(self, nest: _Nest, value: int) -> Callable[[float], float]:
        """A value of an op is made: a time of the op in all first trips becomes that of these trips."""
        inside: list[tuple[int, int, tuple[int, int]]] = []
        is_same = True  # trip of the loops around
        for depth, (loop, position) in enumerate(nest):
            # A loop that is inside this one makes several values at one position.
            last = (position, value if depth == len(nest) - 1 else -1)
            before = self._inside[depth] if is_same and depth < len(self._inside) else None
            if before is None or before[0] != loop:
                is_same = False
                inside.append((loop, 0, last))
                continue
            is_next = last < before[2] if last[1] < 0 else last <= before[2]
            is_same = not is_next
            inside.append((loop, before[1] + is_next, last))
        self._inside = inside

        def shifted(time: float) -> float:
            for loop, trip, _ in reversed(inside):
                time = self._loops[loop].shifted(time, trip)
            return time

        return shifted
