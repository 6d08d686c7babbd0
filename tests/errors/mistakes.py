# SPDX-License-Identifier: Apache-2.0
"""What the table of mistakes is made of: a row is a program, the class of its error and a pattern of the message."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import shardwise as sw

MESH = sw.Mesh({"data": 4, "model": 2})
X = np.ones((8, 6), np.float32)
N = np.ones((8, 6), np.int32)
V = np.arange(4.0)
UNKNOWN = "this needs the value of a traced array, which is unknown during tracing"
on_mesh = partial(sw.jit, mesh=MESH)  # no frame of its own, so that errors are at the row's lines


@dataclass(frozen=True)
class Row:
    program: Callable[[], Any]
    error: type[Exception]
    pattern: str
    located: bool  # whether the message ends with a line of the program


ROWS: list[Row] = []


def row(error: type[Exception], pattern: str, located: bool = True) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add the decorated program to ROWS."""

    def add(program: Callable[[], Any]) -> Callable[[], Any]:
        ROWS.append(Row(program, error, pattern, located))
        return program

    return add


def says(error: type[Exception], text: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add a row with the whole message, but for its place."""
    return row(error, f"^{re.escape(text)} \\(at ")
