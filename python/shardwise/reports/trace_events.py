# SPDX-License-Identifier: Apache-2.0
"""An estimate as a Chrome trace: JSON that Perfetto and chrome://tracing show.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import message, shown
from .tables import place, short_location

__all__ = ["LiveBytes", "StepSpan", "save_trace", "span_of", "trace_events"]

LiveBytes = Sequence[tuple[float, int]]  # from which time on how many bytes are alive

_MICRO = 1e6  # microseconds in a second: the unit of the format
_PS = 1e12  # picoseconds in a second
_DEVICE = 1  # the number of the one process: all devices do the same
_NO_WAIT = 1e-5  # microseconds: a gap this short is a sum that was rounded


@dataclass(frozen=True)
class StepSpan:
    """A loop, a branch or a call; or executions that no row shows.

    Attributes:
        kind: ``"loop"``, ``"branches"``, ``"branch"`` or ``"call"``, beside their rows; ``"more trips"`` of a loop
            after its first one, ``"more conditions"`` after its first one, or ``"called again"``, a function whose rows
            are those of its first call.
        op: the number of the op in the local program.
        name: of the op, or of the function that it calls.
        start: seconds from the start of the step.
        seconds: how long it takes; of a branch, times its share.
        number: the trips of a loop; how many more trips or conditions; which branch.
        where: its source line, as ``"model.py:31"``.
    """

    kind: str
    op: int
    name: str
    start: float
    seconds: float
    number: int
    where: str

    @property
    def is_computed(self) -> bool:
        """Whether the compute track has it, because no row does."""
        return self.kind in ("more trips", "more conditions", "called again")

    @property
    def label(self) -> str:
        """What the trace shows: ``while, 16 trips``."""
        return {
            "loop": f"{self.name}, {self.number} trip{'' if self.number == 1 else 's'}",
            "branch": f"branch {self.number}",
            "more trips": f"{self.number} more trips",
            "more conditions": f"condition of {self.name}, {self.number} more",
        }.get(self.kind, self.name)


def span_of(row: Mapping[str, Any]) -> StepSpan:
    """Of the extension's numbers."""
    name = row["name"].rpartition(".")[2]
    where = short_location(place(row["file"], row["line"]))
    start, seconds = row["start_ps"] / _PS, row["ps"] / _PS
    return StepSpan(row["kind"], row["op"], name, start, seconds, row["number"], where)


def save_trace(path: str | os.PathLike[str], events: Sequence[dict[str, Any]]) -> None:
    """Write :func:`trace_events` to a file. TypeError unless ``path`` is one: a number is an open file's."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(message("save_trace", "path must be a str or a path", shown(path)))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"displayTimeUnit": "ms", "traceEvents": events}, file)


def trace_events(
    rows: Sequence[Any], spans: Sequence[StepSpan], seconds: float, hardware: str, live: LiveBytes = ()
) -> list[dict[str, Any]]:
    """The events: names of tracks, kernels and transfers, waits of the compute track, and what a kernel waited for.

    The compute track is all of the step. Each stage of a transfer is on the track of its tier of links. Loops, branches
    and calls have a track of their own, where one that is inside another is drawn below it. Live bytes are a counter.
    """
    streams = {"compute": 0}
    for row in rows:
        for stream, _, _ in row.stages:
            streams.setdefault(stream, len(streams))
    tracks = dict(streams)
    if any(not span.is_computed for span in spans):
        tracks["loops and branches"] = len(streams)
    events: list[dict[str, Any]] = [_named("process_name", 0, f"one device of {hardware}")]
    events += [_named("thread_name", track, name) for name, track in tracks.items()]
    for row in rows:
        for i, (stream, start, length) in enumerate(row.stages):
            events.append(_event(row.name, start, length, streams[stream], _arguments(row, i)))
    for span in spans:
        given = {"line": span.where, "number": span.number}
        track = 0 if span.is_computed else tracks["loops and branches"]
        events.append(_event(span.label, span.start, span.seconds, track, given))
    events += _waits(events, seconds)
    events += _flows(rows, streams)
    events += [_counted(time, count) for time, count in live]
    return events


def _named(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": _DEVICE, "tid": track, "args": {"name": name}}


def _event(name: str, start: float, seconds: float, track: int, arguments: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": start * _MICRO, "dur": seconds * _MICRO}
    return {"ph": "X", "name": name, "pid": _DEVICE, "tid": track, **times, "args": arguments}


def _counted(time: float, count: int) -> dict[str, Any]:
    shared = {"ph": "C", "name": "live bytes", "pid": _DEVICE, "tid": 0}
    return {**shared, "ts": time * _MICRO, "args": {"bytes": count}}


def _arguments(row: Any, stage: int) -> dict[str, Any]:
    of = len(row.stages)
    given = {
        "line": short_location(row.where), "variable": row.variable, "ops": " ".join(row.ops), "bound": row.bound,
        "bytes": row.bytes, "flops": row.flops, "axes": row.axes, "cause": row.cause, "executions": row.executions,
        "exposed ms": row.exposed * 1e3, "stage": f"{stage + 1} of {of}" if of > 1 else "",
    }  # fmt: skip
    return {name: value for name, value in given.items() if value not in ("", 0)}


def _waits(events: Sequence[dict[str, Any]], seconds: float) -> Iterator[dict[str, Any]]:
    """What is left of the compute track: it waits for transfers."""
    end = 0.0
    computed = sorted((e["ts"], e["dur"]) for e in events if e["ph"] == "X" and e["tid"] == 0)
    for start, length in [*computed, (seconds * _MICRO, 0.0)]:
        if start > end * (1 + 1e-12) + _NO_WAIT:
            yield _event("wait", end / _MICRO, (start - end) / _MICRO, 0, {})
        end = max(end, start + length)


def _flows(rows: Sequence[Any], streams: dict[str, int]) -> Iterator[dict[str, Any]]:
    """An arrow from the last stage of each exposed transfer to the first kernel after it."""
    kernels = sorted((row for row in rows if row.kind == "kernel"), key=lambda row: row.start)
    exposed = (row for row in rows if row.kind == "transfer" and row.exposed and row.stages)
    for number, row in enumerate(exposed):
        stream, start, length = row.stages[-1]
        end = start + length
        user = next((kernel for kernel in kernels if kernel.start >= end * (1 - 1e-12)), None)
        if user is None:
            continue
        shared = {"name": "waits for", "cat": "flow", "id": number, "pid": _DEVICE}
        yield {"ph": "s", **shared, "tid": streams[stream], "ts": (start + length / 2) * _MICRO}
        yield {"ph": "f", "bp": "e", **shared, "tid": 0, "ts": user.start * _MICRO}
