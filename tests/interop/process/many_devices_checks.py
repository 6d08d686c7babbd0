# SPDX-License-Identifier: Apache-2.0
"""Exchanges among 24 and 32 devices: what JAX sends is at most 1.5 times the exact bytes. In a process of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

ROWS, COLUMNS = P("x"), P(None, "x")
LINE, GRID = sw.Mesh({"x": 24}), sw.Mesh({"x": 4, "y": 6})


def compiled(x: Any, mesh: sw.Mesh, given: P, wanted: P) -> Any:
    return sw.jit(lambda x: x, mesh=mesh, in_shardings=given, out_shardings=wanted).lower(x).compile()


@pytest.mark.parametrize(
    ("mesh", "shape", "given", "wanted"),
    [
        *[(LINE, (n, n), ROWS, COLUMNS) for n in (5, 17, 18, 25, 47, 50, 65, 97, 100, 130)],
        *[(LINE, (n, n), COLUMNS, ROWS) for n in (25, 65, 100)],
        (LINE, (49, 73), ROWS, COLUMNS),
        (LINE, (50, 7), ROWS, COLUMNS),
        (GRID, (50, 49), P("x"), P("y")),
        (GRID, (50, 49), P("x"), P(None, ("x", "y"))),
        (GRID, (50, 49), P(("x", "y")), P(None, ("y", "x"))),
        (sw.Mesh({"x": 32}), (65, 65), ROWS, COLUMNS),
    ],
    ids=str,
)
def test_an_uneven_reshard_sends_at_most_half_more_than_needed(mesh: sw.Mesh, shape: Any, given: P, wanted: P) -> None:
    program = compiled(sw.ShapeDtypeStruct(shape, np.float32), mesh, given, wanted)
    exact = program.collectives()
    assert exact.by_kind() == {"exchange": 1}
    sent = program.to_jax().collectives()
    assert exact.total_bytes <= sent.total_bytes <= 1.5 * exact.total_bytes
    assert len(sent.rows) <= 16


@pytest.mark.parametrize(
    ("mesh", "shape", "given", "wanted", "kind"),
    [
        (LINE, (50, 53), ROWS, COLUMNS, "all_to_all"),
        (LINE, (11, 11), ROWS, COLUMNS, "collective_permute"),
        (GRID, (14, 13), P("x"), P("y"), "collective_permute"),
    ],
    ids=str,
)
def test_an_uneven_reshard_moves_every_element(mesh: sw.Mesh, shape: Any, given: P, wanted: P, kind: str) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    program = compiled(x, mesh, given, wanted)
    function = program.to_jax()
    np.testing.assert_array_equal(function.get(function(x)), x)
    ledger = function.collectives()
    assert {row.kind for row in ledger} == {kind}
    report = sw.interop.compare(program, function, x)
    assert [(row.kind, row.bytes) for row in report.theirs] == [(row.kind, row.bytes) for row in ledger]
