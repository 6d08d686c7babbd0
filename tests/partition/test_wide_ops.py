# SPDX-License-Identifier: Apache-2.0
"""Ops of thousands of operands compile in a short time."""

from __future__ import annotations

import time

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4, "y": 2})
COLUMNS = P(None, "y")


def seconds_of_concatenate(count: int, *, of_one: bool) -> float:
    """The time to compile a concatenate of so many operands: of one value, or of as many arguments."""
    joined = sw.jit(lambda *xs: np.concatenate([sw.shard(x, COLUMNS) for x in xs] * (count // len(xs))), mesh=MESH)
    lowered = joined.lower(*[sw.ShapeDtypeStruct((8, 16), np.float32)] * (1 if of_one else count))
    start = time.process_time()
    lowered.compile()
    return time.process_time() - start


@pytest.mark.parametrize("of_one", [True, False], ids=["one value", "arguments"])
def test_a_concatenate_takes_no_quadratic_time(of_one: bool) -> None:
    few, many = (min(seconds_of_concatenate(count, of_one=of_one) for _ in range(2)) for count in (500, 8000))
    assert many < 120 * few  # in quadratic time, 16 times as many take 256 times as long
