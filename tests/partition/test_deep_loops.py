# SPDX-License-Identifier: Apache-2.0
"""Reports of nests of loops: their work is linear in the depth, and the predicted memory is that of a run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise._core import runtime
from shardwise.process.processes import ALONE

MESH = sw.Mesh({"x": 4})
X = np.linspace(0.1, 1, 64, dtype=np.float32).reshape(8, 8)
Body = Callable[[Any], Any]


def fori(body: Body) -> Body:
    return lambda c: sw.fori_loop(0, 2, lambda _, c: body(c), c)


def scan(body: Body) -> Body:
    def trip(c: Any, row: Any) -> Any:
        a, b = body(c)
        return (a + row, b), a

    def run(c: Any) -> Any:
        c, rows = sw.scan(trip, c, np.stack([c[0], c[1]]))
        return c[0] + rows.sum(axis=0), c[1]

    return run


def loop(body: Body) -> Body:
    return lambda c: sw.while_loop(lambda c: np.sum(c[0]) < 1e3, lambda c: (body(c)[0] * 2 + 1, c[1]), c)


def branch(body: Body) -> Body:
    return lambda c: sw.fori_loop(0, 2, lambda i, c: sw.cond(c[0][0, 0] > 0, body, lambda c: (c[1], c[0]), c), c)


WRAPPERS: dict[str, Callable[[Body], Body]] = {"fori_loop": fori, "scan": scan, "while_loop": loop, "cond": branch}
BODIES: dict[str, Body] = {
    "swap": lambda c: (c[1], c[0]),
    "new values": lambda c: (np.tanh(c[0] @ c[1]), c[0]),
    "in place": lambda c: (np.sin(c[0]), c[1] * 2),
    "kept": lambda c: (c[0], c[1] + np.sum(c[0])),
}


def nest(wrapper: str, body: str, depth: int) -> sw.Program:
    def f(x: Any) -> Any:
        inner = BODIES[body]
        for _ in range(depth):
            inner = WRAPPERS[wrapper](inner)
        return inner((x, x * 2))

    return sw.jit(f, mesh=MESH, in_shardings=P("x")).lower(X).compile()


@pytest.mark.parametrize("wrapper", ["fori_loop", "scan", "while_loop"])
@pytest.mark.parametrize("body", BODIES)
def test_the_work_of_a_rehearsal_is_linear_in_the_depth(wrapper: str, body: str) -> None:
    counts = [nest(wrapper, body, depth)._on(ALONE).executable.rehearsed_steps() for depth in (5, 10, 20, 40)]
    first, second, third = (b - a for a, b in pairwise(counts))
    assert 0 < second <= 2.5 * first
    assert third <= 2.5 * second
    assert counts[-1] < 4000


def test_all_reports_of_forty_levels() -> None:
    program = nest("fori_loop", "kept", 40)
    assert program.memory().peak_bytes > 0
    assert 1 <= len(program.collectives()) <= 4
    assert len(program.as_text()) < 200_000
    assert program.why("x").values[0].sharding == '[{"x"}, {}]'
    assert program.work().flops > 0


@pytest.mark.parametrize("wrapper", ["fori_loop", "scan", "cond"])  # these while loops may not end
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("depth", [1, 3])
def test_the_predicted_memory_of_a_nest_is_that_of_a_run(wrapper: str, body: str, depth: int) -> None:
    program = nest(wrapper, body, depth)
    executable = program._on(ALONE).executable
    argument = sw.device_put(X, sw.NamedSharding(MESH, P("x")))
    before = runtime.live_buffer_bytes()
    runtime.restart_peak_buffer_bytes()
    results = executable.run([argument._data])
    ran = runtime.restart_peak_buffer_bytes() - before
    predicted, of_arguments, *_ = executable.memory(per_device=False)
    assert results
    # A branch that does not run, and a trip of a scan, may need more than this run did.
    assert ran <= predicted - of_arguments + 64
    if wrapper == "fori_loop":
        assert predicted - of_arguments <= ran + 256
