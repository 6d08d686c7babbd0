# SPDX-License-Identifier: Apache-2.0
"""Stacks that are gathered for a scan: in its trips, beside the products, where the estimate is lower."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"data": 4})


def loss(w: Any, x: Any, y: Any) -> Any:
    def layer(x: Any, w: Any) -> Any:
        return x + np.tanh(x @ w), None

    return np.mean((sw.scan(layer, x, w)[0] - y) ** 2)


def step(w: Any, x: Any, y: Any) -> Any:
    return w - np.float32(0.1) * sw.grad(loss)(w, x, y)


def compiled(layers: int, width: int, rows: int, **options: Any) -> sw.Program:
    shapes = [
        sw.ShapeDtypeStruct(shape, np.float32) for shape in ((layers, width, width), (rows, width), (rows, width))
    ]
    options = {"shard_update": "data", "in_shardings": (None, P("data"), P("data")), **options}
    return sw.jit(step, mesh=MESH, **options).lower(*shapes).compile()


def gathers_of(program: sw.Program) -> list[tuple[int, float]]:
    """How often each runs, and its bytes in all."""
    return [(row.count, row.count * row.bytes) for row in program.collectives() if row.kind == "all_gather"]


@pytest.mark.parametrize("hardware", ["default", "h100_sxm", "tpu_v5e"])
def test_weights_of_layers_are_gathered_beside_products(hardware: str) -> None:
    program = compiled(16, 4096, 32768, hardware=hardware)
    assert gathers_of(program) == [(16, 16 * 4096 * 4096 * 4 * 3 / 4)]
    (row,) = [row for row in program.estimate(hardware).rows if row.name == "all_gather"]
    # That of the first trip has nothing beside it.
    assert 0 < row.exposed < 0.1 * row.executions * row.seconds


@pytest.mark.parametrize("layers", [1, 2, 7])
@pytest.mark.parametrize("width", [16, 18])
def test_numbers_are_those_of_the_gathered_stack(layers: int, width: int) -> None:
    rng = np.random.default_rng(layers)
    shapes = (layers, width, width), (64, width), (64, width)
    arguments = [rng.normal(size=shape).astype(np.float32) / 4 for shape in shapes]
    program = compiled(layers, width, 64)
    assert gathers_of(program)[0][0] == layers
    found = np.asarray(program(*arguments))
    # Without the switch, the steps of all devices are summed, not their gradients.
    wanted = np.asarray(sw.jit(step, mesh=MESH, in_shardings=(None, P("data"), P("data")))(*arguments))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2**-21)
    np.testing.assert_array_equal(np.asarray(program.run(*arguments, poison=True)), found)


def test_a_stack_that_a_loop_around_its_scans_reads_again_stays() -> None:
    """In the trips of the scans it would be gathered for each microbatch."""

    def accumulated(w: Any, xs: Any, ys: Any) -> Any:
        def add(total: Any, batch: Any) -> Any:
            return total + sw.grad(loss)(w, *batch), None

        total, _ = sw.scan(add, np.zeros_like(w), (xs, ys))
        return w - np.float32(0.1) * total

    shapes = [sw.ShapeDtypeStruct(shape, np.float32) for shape in ((8, 2048, 2048), *[(4, 16384, 2048)] * 2)]
    in_shardings = (None, P(None, "data"), P(None, "data"))
    options: Any = {"shard_update": "data", "in_shardings": in_shardings}
    program = sw.jit(accumulated, mesh=MESH, **options).lower(*shapes).compile()
    assert gathers_of(program) == [(1, 8 * 2048 * 2048 * 4 * 3 / 4)]


def test_rows_that_are_kept_are_gathered_memory() -> None:
    groups = {row.key: row.bytes for row in compiled(16, 4096, 4096).memory().group_by("category")}
    assert groups["gathered",] >= 16 * 4096 * 4096 * 4
