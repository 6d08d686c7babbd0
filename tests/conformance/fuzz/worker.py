# SPDX-License-Identifier: Apache-2.0
"""Reads texts in a process of its own: one JSON request a line, one word of an answer a line.

    {"kind": "program", "text": "module …"}     → {"outcome": "read"} or {"outcome": "refused"}
                                                  {"outcome": "wrong", "why": "…"}: not as an input may end
    {"kind": "run", "text": "module …"}         → also {"outcome": "ran"}, or {"outcome": "stopped"} by the time limit

Kinds: program, run, module, mesh, sharding (the last three are JSON). A program to run that is not small is only read.
The process has a limit of memory; what passes it ends in MemoryError, which is wrong too.
"""

from __future__ import annotations

import json
import math
import resource
import signal
import sys
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import _core

GIGABYTES = 3
RUN_SECONDS = 0.5
MOST_ELEMENTS = 1 << 14  # of a value of a program that runs
MOST_DEVICES = 64
READERS = {
    "program": _core.ir.parse,
    "module": _core.ir.module_from_json,
    "mesh": _core.mesh.Mesh.from_json,
    "sharding": _core.mesh.Sharding.from_json,
}


class StoppedError(Exception):
    """The time limit of a run."""


def stop(*_: object) -> None:
    raise StoppedError


def run(text: str) -> dict[str, Any]:
    """Compile and run a program that can be read, on ones."""
    answer = read("program", text)
    if answer["outcome"] != "read":
        return answer
    module = sw.parse(text)
    types = [value.type for op in module._core.ops for value in (*op.operands, *op.results)]
    try:
        types += module._core.argument_types
    except sw.UnsupportedError:  # a module without functions
        return {"outcome": "refused"}
    if any(math.prod(type.shape) > MOST_ELEMENTS for type in types):
        return answer
    signal.setitimer(signal.ITIMER_REAL, RUN_SECONDS)
    try:
        program = module.compile()
        if program.mesh.size > MOST_DEVICES:
            return answer
        for options in ({}, {"faithful": True, "poison": True}):
            program.run(*[np.ones(aval.shape, aval.dtype) for aval in program._traced.in_avals], **options)
    except StoppedError:
        return {"outcome": "stopped"}
    except (sw.InternalError, sw.OutOfMemoryError) as error:
        return {"outcome": "wrong", "why": f"{type(error).__name__}: {error}"}
    except sw.Error:
        return {"outcome": "refused"}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return {"outcome": "ran"}


def read(kind: str, text: str) -> dict[str, Any]:
    if kind == "run":
        return run(text)
    try:
        value = READERS[kind](text)
    except (_core.error.InternalError, _core.error.OutOfMemoryError) as error:
        return {"outcome": "wrong", "why": f"{type(error).__name__}: {error}"}
    except _core.error.ParseError as error:
        if kind == "program" and min(error.line, error.column) < 1:
            return {"outcome": "wrong", "why": f"without a place: {error}"}
        return {"outcome": "refused"}
    except _core.error.Error as error:
        # JSON has no lines: what is wrong with its values is an error of their kind.
        return {"outcome": "refused"} if kind != "program" else {"outcome": "wrong", "why": f"{type(error)}: {error}"}
    except UnicodeEncodeError:
        return {"outcome": "refused"}  # a lone surrogate is no text
    return check(kind, value)


def check(kind: str, value: Any) -> dict[str, Any]:
    """What was read is whole: it verifies, and reads back from its own text."""
    try:
        if kind in ("program", "module"):
            value.verify()
            again = _core.ir.parse(value.text())
            if not again.structurally_equal(value):
                return {"outcome": "wrong", "why": "reads back as another program"}
        elif READERS[kind](value.to_json()) != value:
            return {"outcome": "wrong", "why": "reads back as another value"}
    except (_core.error.Error, MemoryError) as error:
        return {"outcome": "wrong", "why": f"what was read is not whole: {type(error).__name__}: {error}"}
    return {"outcome": "read"}


def serve() -> None:
    limit = GIGABYTES << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, stop)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = read(request["kind"], request["text"])
        except Exception as error:
            answer = {"outcome": "wrong", "why": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
