# SPDX-License-Identifier: Apache-2.0
"""The bytes in the ledger are those that a communicator counts while the program runs.

``tests/support/partitioned.py`` compares them for each case of the op matrix and each random program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.support.counted_bytes import differences, received_in_run

LINE = sw.Mesh({"x": 8})
GRID = sw.Mesh({"x": 2, "y": 4})
RNG = np.random.default_rng(4)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def loss(w: Any, x: Any) -> Any:
    return np.mean(np.maximum(x @ w, 0) ** 2)


def counted_loop(x: Any) -> Any:
    return sw.fori_loop(0, 3, lambda _, x: x + np.sum(x) + np.roll(x, 1, 0), x)


def unknown_loop(x: Any) -> Any:
    return sw.while_loop(lambda x: np.max(np.abs(x)) < 1e4, lambda x: x * 3 + np.sum(x), x)


def branches(x: Any) -> Any:
    return sw.cond(np.max(x) < 3, lambda x: x + np.sum(x), lambda x: np.roll(x, 3, 0), x)


def two_windows(x: Any) -> Any:
    return np.pad(x, ((3, 5), (0, 0)))[1:] + np.concatenate([x[10:], x[:17]])


PROGRAMS: dict[str, tuple[sw.Mesh, Callable[..., Any], list[Any], Any, Any]] = {
    "gradients": (LINE, sw.grad(loss), [floats(12, 5), floats(19, 12)], (P(), P("x")), P()),
    "a sum of one float": (LINE, np.sum, [floats(17)], P("x"), P()),
    "a sum of nine": (GRID, lambda x: np.sum(x, 0), [floats(16, 9)], P("y"), P()),
    "a range of rows": (LINE, lambda x: x[10:40], [floats(64, 16)], P("x"), P("x")),
    "reverse of 33 rows": (GRID, lambda x: x[::-1], [floats(33, 16)], P(("y", "x")), P(("x", "y"))),
    "two windows": (LINE, two_windows, [floats(64, 3)], P("x"), P("x")),
    "transposition": (GRID, lambda x: x + x.T, [floats(12, 12)], P("x", "y"), P("y", "x")),
    "uneven tiles": (GRID, lambda x: x * 2, [floats(33, 33)], P("x", "y"), P("y", "x")),
    "a counted loop": (LINE, counted_loop, [floats(17)], P("x"), P("x")),
    "a loop of unknown trips": (LINE, unknown_loop, [floats(17)], P("x"), P("x")),
    "branches": (LINE, branches, [floats(17)], P("x"), P("x")),
    "argmax": (LINE, lambda x: np.argmax(x, 0), [floats(17, 5)], P("x"), P()),
    "sort": (LINE, lambda x: np.sort(x, 0), [floats(17, 16)], P("x"), P("x")),
    "cumsum": (GRID, lambda x: np.cumsum(x, 0), [floats(17, 5)], P("y", "x"), P("y", "x")),
    "rows by index": (LINE, lambda t, i: t[i], [floats(19, 4), np.arange(11) % 19], (P("x"), P("x")), P("x")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_predicted_bytes_are_counted(name: str) -> None:
    mesh, function, arrays, given, wanted = PROGRAMS[name]
    program = sw.jit(function, mesh=mesh, in_shardings=given, out_shardings=wanted).lower(*arrays).compile()
    executable = received_in_run(program, *arrays)
    assert differences(program._compiled, executable) == []
    ledger = program.collectives()
    assert ledger.rows
    if all(row.bound == "" for row in ledger):
        total = np.sum(list(executable.received().values()), axis=0)
        assert ledger.total_bytes == total.max()
        assert sum(row.sum_bytes * row.count for row in ledger) == total.sum()


def test_an_all_reduce_of_few_elements_is_counted_by_its_largest_part() -> None:
    """One float among 8 devices: one device receives 7 addends, and sends the sum to the 7 others."""
    program = sw.jit(np.sum, mesh=LINE, in_shardings=P("x"), out_shardings=P()).lower(floats(17)).compile()
    [row] = program.collectives()
    assert (row.bytes, row.sum_bytes) == (28, 28 + 7 * 4)
    assert (row.device_axes, row.device_bytes) == ((("x", 8),), (28, *[4] * 7))


def test_the_total_is_that_of_the_device_that_receives_most() -> None:
    """One device receives the row after its last one, the other the row before its first one."""
    shardings = {"in_shardings": P("x"), "out_shardings": P("x")}
    moved = lambda x: np.pad(x[1:], ((0, 1), (0, 0))) * np.pad(x[:-1], ((1, 0), (0, 0)))  # noqa: E731
    program = sw.jit(moved, mesh=sw.Mesh({"x": 2}), **shardings).lower(floats(4, 4)).compile()
    ledger = program.collectives()
    assert [row.device_bytes for row in ledger] == [(16, 0), (0, 16)]
    assert [row.bytes for row in ledger] == [16, 16]
    assert ledger.total_bytes == 16


def test_rows_of_devices_are_in_json() -> None:
    program = sw.jit(np.sum, mesh=LINE, in_shardings=P("x"), out_shardings=P()).lower(floats(17)).compile()
    [row] = program.collectives().to_dict()["collectives"]
    assert (row["sum_bytes"], row["device_axes"], row["device_bytes"]) == (56, [["x", 8]], [28, 4, 4, 4, 4, 4, 4, 4])


@pytest.mark.parametrize("devices", [1 << 10, 1 << 20])
def test_bytes_of_many_devices_are_stated_in_constant_time(devices: int) -> None:
    mesh = sw.Mesh({"x": devices})
    x = sw.ShapeDtypeStruct((4 * devices, 8), np.float32)
    [row] = (
        sw.jit(lambda x: x[1:], mesh=mesh, in_shardings=P("x"), out_shardings=P("x")).lower(x).compile().collectives()
    )
    assert row.bytes == 32
    assert len(row.device_bytes) == (devices if devices <= 65_536 else 0)
