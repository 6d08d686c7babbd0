# SPDX-License-Identifier: Apache-2.0
"""Rows of padding that a value claims to hold zeros; a poisoned run checks each claim."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

X = np.array([1, 2, -5], np.float32)


@pytest.mark.parametrize("shape", [(3, 1), (1, 3)])
@pytest.mark.parametrize("poison", [False, True])
def test_a_dim_that_reshape_adds_has_no_zeros_behind_its_end(shape: tuple[int, int], poison: bool) -> None:
    """The zeros after the third row of x are none of the size-1 dim: summed there, x counted twice."""
    axis = shape.index(1)

    def total(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = sw.shard(sw.shard(x, P()), P("x"))
        matrix = sw.shard(rows.reshape(shape), P("x", "y") if axis == 1 else P("y", "x"))
        return matrix.sum(axis=axis), matrix.sum()

    program = sw.jit(total, mesh=sw.Mesh({"x": 2, "y": 2})).lower(X).compile()
    rows, everything = program.run(X, poison=poison)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(everything, X.sum())
