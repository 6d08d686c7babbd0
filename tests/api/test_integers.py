# SPDX-License-Identifier: Apache-2.0
"""Integers beside Python ints that are arguments, and arrays read as other bits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"data": 4, "model": 2})
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "multiply": lambda a, n: n * a,
    "less": operator.lt,
    "at least": lambda a, n: n >= a,
    "equal": operator.eq,
    "and": operator.and_,
    "shift": operator.lshift,
    "power": operator.pow,
    "maximum": np.maximum,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_python_int_arguments_mean_what_numpy_says(name: str, dtype: Any) -> None:
    x = np.array([0, 1, 2, 100]).astype(dtype)
    program = sw.jit(FUNCTIONS[name], mesh=MESH)
    refused = 0
    for n in (0, 5, -1, 127, 300, -129, 2**40):
        try:
            expected = FUNCTIONS[name](x, n)
        except (OverflowError, ValueError):
            refused += 1
            with pytest.raises((OverflowError, ValueError), match=r"^call: .*, got -?\d+; convert"):
                program(x, n)
        else:
            result = np.asarray(program(x, n))
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result, expected)
    assert (refused > 0) is (name not in ("less", "at least", "equal"))


def test_python_ints_that_are_computed_are_not_refused() -> None:
    f = sw.jit(lambda x, n: x[: x.size // 2] + (n - 299), mesh=MESH)
    np.testing.assert_array_equal(f(np.arange(4, dtype=np.int8), 300), [1, 2])


def test_array_view_reads_the_bits() -> None:
    x = np.array([1.0, -2.5, 0.0, np.inf], np.float32)
    placed = sw.device_put(x, sw.NamedSharding(MESH, P("data")))
    np.testing.assert_array_equal(placed.view(np.int32), x.view(np.int32))
    assert placed.view(np.int32).sharding == placed.sharding
    assert placed.view() is placed
    np.testing.assert_array_equal(placed.view("uint32").view(np.float32), x)
    program = sw.jit(lambda x: x.view(np.int32) >> 23, mesh=MESH, in_shardings=P("data")).lower(x).compile()
    assert program.collectives().rows == ()
    np.testing.assert_array_equal(program(x), x.view(np.int32) >> 23)
