# SPDX-License-Identifier: Apache-2.0
"""Equal reductions are computed, and communicated, once."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 8})
X = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)


def compiled(function: Any) -> Any:
    return sw.jit(function, mesh=MESH, in_shardings=(P(None, "x"),)).lower(X).compile()


def test_mean_and_variance_share_one_reduction() -> None:
    """Each all-reduce of 32 float32 sends 2 · 7/8 of 128 bytes; np.var needs the mean, too."""
    program = compiled(lambda x: (np.mean(x, axis=1), np.var(x, axis=1)))
    ledger = program.collectives()
    assert [row.kind for row in ledger.rows] == ["all_reduce", "all_reduce"]
    assert sum(row.bytes * row.count for row in ledger.rows) == 448
    mean, variance = program(X)
    np.testing.assert_allclose(mean, X.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(variance, X.var(axis=1), rtol=1e-5)


def test_reductions_that_differ_stay() -> None:
    program = compiled(lambda x: (np.sum(x, axis=1), np.max(x, axis=1), np.sum(x[:, ::2], axis=1)))
    assert len(program.collectives().rows) == 3
