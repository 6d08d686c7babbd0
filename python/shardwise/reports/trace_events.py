# SPDX-License-Identifier: Apache-2.0
"""An estimate as a Chrome trace: JSON that Perfetto and chrome://tracing show.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from .tables import short_location

__all__ = ["save_trace", "trace_events"]

_MICRO = 1e6  # microseconds in a second: the unit of the format
_DEVICE = 1  # the number of the one process: all devices do the same


def save_trace(
    path: str | os.PathLike[str], rows: Sequence[Any], further: Sequence[Any], seconds: float, hardware: str
) -> None:
    """Write :func:`trace_events` to a file."""
    document = {"displayTimeUnit": "ms", "traceEvents": trace_events(rows, further, seconds, hardware)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)


def trace_events(rows: Sequence[Any], further: Sequence[Any], seconds: float, hardware: str) -> list[dict[str, Any]]:
    """The events: names of tracks, kernels and transfers, waits of the compute track, and what a kernel waited for."""
    streams = {"compute": 0}
    for row in rows:
        streams.setdefault(row.stream, len(streams))
    events: list[dict[str, Any]] = [_named("process_name", 0, f"one device of {hardware}")]
    events += [_named("thread_name", track, stream) for stream, track in streams.items()]
    events += [_event(row.name, row.start, row.seconds, streams[row.stream], _arguments(row)) for row in rows]
    for trips in further:
        name = f"{trips.trips - 1} more trips"
        events.append(_event(name, trips.start, trips.seconds, 0, {"trips": trips.trips}))
    events += _waits(events, seconds)
    events += _flows(rows, streams)
    return events


def _named(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": _DEVICE, "tid": track, "args": {"name": name}}


def _event(name: str, start: float, seconds: float, track: int, arguments: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": start * _MICRO, "dur": seconds * _MICRO}
    return {"ph": "X", "name": name, "pid": _DEVICE, "tid": track, **times, "args": arguments}


def _arguments(row: Any) -> dict[str, Any]:
    given = {
        "line": short_location(row.where), "variable": row.variable, "ops": " ".join(row.ops), "bound": row.bound,
        "bytes": row.bytes, "flops": row.flops, "axes": row.axes, "cause": row.cause, "executions": row.executions,
        "exposed ms": row.exposed * 1e3,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value not in ("", 0)}


def _waits(events: Sequence[dict[str, Any]], seconds: float) -> Iterator[dict[str, Any]]:
    """What is left of the compute track: it waits for transfers."""
    end = 0.0
    computed = sorted((e["ts"], e["dur"]) for e in events if e["ph"] == "X" and e["tid"] == 0)
    for start, length in [*computed, (seconds * _MICRO, 0.0)]:
        if start > end * (1 + 1e-12):
            yield _event("wait", end / _MICRO, (start - end) / _MICRO, 0, {})
        end = max(end, start + length)


def _flows(rows: Sequence[Any], streams: dict[str, int]) -> Iterator[dict[str, Any]]:
    """An arrow from each exposed transfer to the first kernel after it."""
    kernels = sorted((row for row in rows if row.kind == "kernel"), key=lambda row: row.start)
    for number, row in enumerate(row for row in rows if row.kind == "transfer" and row.exposed):
        end = row.start + sum(row.parts.values())
        user = next((kernel for kernel in kernels if kernel.start >= end * (1 - 1e-12)), None)
        if user is None:
            continue
        shared = {"name": "waits for", "cat": "flow", "id": number, "pid": _DEVICE}
        inside = row.start + row.seconds / 2
        yield {"ph": "s", **shared, "tid": streams[row.stream], "ts": inside * _MICRO}
        yield {"ph": "f", "bp": "e", **shared, "tid": 0, "ts": user.start * _MICRO}
