# SPDX-License-Identifier: Apache-2.0
"""Counted loops: the recorded program numbers its steps and rows as the loop in Python does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise.control_flow.counted import CountedLoop

MESH = sw.Mesh({"x": 2})
X = np.arange(10.0).reshape(5, 2)


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 0])
@pytest.mark.parametrize("has_rows", [False, True])
def test_steps_are_numbered_from_the_start(start: int, reverse: bool, unroll: int, has_rows: bool) -> None:
    def step(number: Any, carry: Any, rows: list[Any]) -> Any:
        row = rows[0] if rows else 1.0
        return carry * 2 + row * number(), number() * 10

    def run(x: Any) -> Any:
        xs = [x] if has_rows else []
        loop = CountedLoop("loop", step, ("i", ["c"], ["x"] * len(xs)), xs, start, 5, reverse, unroll)
        return loop.run(np.zeros(2))

    recorded, expected = sw.jit(run, mesh=MESH)(X), run(X)
    assert sw.tree.structure(recorded) == sw.tree.structure(expected)
    for ours, theirs in zip(sw.tree.leaves(recorded), sw.tree.leaves(expected)):
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_array_equal(ours, theirs)
