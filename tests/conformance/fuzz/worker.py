# SPDX-License-Identifier: Apache-2.0
"""Reads texts in a process of its own: one JSON request a line, one word of an answer a line.

    {"kind": "program", "text": "module …"}     → {"outcome": "read"} or {"outcome": "refused"}
                                                  {"outcome": "wrong", "why": "…"}: not as an input may end

Kinds: program, module, mesh, sharding (the last three are JSON). The process has a limit of memory; what passes it ends
in MemoryError, which is wrong too.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

from shardwise import _core

GIGABYTES = 3
READERS = {
    "program": _core.ir.parse,
    "module": _core.ir.module_from_json,
    "mesh": _core.mesh.Mesh.from_json,
    "sharding": _core.mesh.Sharding.from_json,
}


def read(kind: str, text: str) -> dict[str, Any]:
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
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = read(request["kind"], request["text"])
        except Exception as error:
            answer = {"outcome": "wrong", "why": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
