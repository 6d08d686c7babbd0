# SPDX-License-Identifier: Apache-2.0
"""The gradient of max pooling on sharded dims: devices receive the windows that have rows of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardwise import _core
from tests.op.catalogue.window import pool
from tests.support.partitioned import SCENARIOS, Scenario, execute, sharding

RNG = np.random.default_rng(12)
# window, stride, low and high padding of the first dim
WINDOWS = [
    (2, 2, 0, 0),
    (2, 1, 0, 0),
    (3, 1, 1, 1),
    (3, 2, 1, 0),
    (3, 3, 0, 2),
    (5, 1, 2, 2),
    (2, 3, 0, 1),
    (4, 2, 1, 1),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_pooled_gradients_are_those_of_one_device(scenario: Scenario) -> None:
    mesh, axes, others = scenario.mesh(), scenario.axes, scenario.others
    choices = [sharding(mesh, [axes, others]), sharding(mesh, [others, axes]), None]
    for turn, (size, stride, low, high) in enumerate(WINDOWS):
        windows = pool((scenario.size + 4, 5), (size, 2), (stride, 1), ((low, high), (1, 0)))
        operand = RNG.integers(0, 5, windows.shapes[0]).astype(np.float32)
        source = RNG.integers(-9, 10, windows.shapes[1]).astype(np.float32)
        init = np.array(turn % 2, np.float32)
        for held in [
            (choices[0], choices[0]),
            (choices[0], choices[2]),
            (choices[2], choices[0]),
            (choices[1], choices[0]),
        ]:
            trace = _core.ir.Trace("pool")
            values = [trace.argument(x.shape, "float32", "", h) for x, h in zip((operand, source, init), (*held, None))]
            module = trace.finish([windows.record(trace, values)], [choices[turn % 3]])
            want = windows.reference(operand, source, init).astype(np.float32)
            for got in execute(_core.passes.compile(module, mesh), [operand, source, init]):
                np.testing.assert_array_equal(got[0], want, f"{size} {stride} {low} {high} {held}")


LINE = _core.mesh.Mesh("mesh", [("x", 8)])
PAIR = _core.mesh.Mesh("mesh", [("x", 2)])


def gradient(mesh: Any, windows: Any, *arrays: np.ndarray) -> tuple[Any, np.ndarray]:
    """All of it sharded along dim 0."""
    rows = sharding(mesh, [("x",), *[()] * (arrays[0].ndim - 1)])
    trace = _core.ir.Trace("pool")
    values = [trace.argument(x.shape, "float32", "", rows if x.ndim else None) for x in arrays]
    compiled = _core.passes.compile(trace.finish([windows.record(trace, values)], [rows]), mesh)
    return compiled, execute(compiled, list(arrays))[0][0]


@pytest.mark.parametrize(
    ("window", "stride", "pads", "source_rows", "operand_rows"),
    [(2, 2, (0, 0), 0, 0), (3, 1, (1, 1), 2, 4), (3, 2, (1, 0), 1, 3), (5, 1, (2, 2), 4, 8)],
)
def test_bytes_of_halos(window: int, stride: int, pads: tuple[int, int], source_rows: int, operand_rows: int) -> None:
    windows = pool((64, 4), (window, 1), (stride, 1), (pads, (0, 0)))
    operand = RNG.integers(0, 5, (64, 4)).astype(np.float32)
    source = RNG.integers(-9, 10, windows.shapes[1]).astype(np.float32)
    compiled, got = gradient(LINE, windows, operand, source, np.array(0, np.float32))
    np.testing.assert_array_equal(got, windows.reference(operand, source, np.float32(0)))
    assert [row["kind"] for row in compiled.collectives()] == ["exchange"] * 2
    assert sum(row["bytes"] for row in compiled.collectives()) == (source_rows + operand_rows) * 16


@pytest.mark.parametrize(("window", "stride", "pad"), [(2, 1, 0), (3, 1, 1), (4, 2, 1), (5, 1, 2)])
def test_windows_over_a_border_add_to_the_right_element(window: int, stride: int, pad: int) -> None:
    """XLA adds the contributions of such windows to a neighbor of the element."""
    size = 4 if window < 4 else 8
    windows = pool((size,), (window,), (stride,), ((pad, pad),))
    operand = np.arange(size, 0, -1).astype(np.float32)
    source = np.float32(10.0) ** np.arange(windows.shapes[1][0])
    _, got = gradient(PAIR, windows, operand, source.astype(np.float32), np.array(0, np.float32))
    np.testing.assert_array_equal(got, windows.reference(operand, source.astype(np.float32), np.float32(0)))
