# SPDX-License-Identifier: Apache-2.0
"""Sums of gradients in several stages: the links decide which devices add first."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

from .update_models import step_of

NODES, GPUS, SIZE = 4, 8, 1024
MESH = sw.Mesh({"node": NODES, "gpu": GPUS})
BOTH = ("node", "gpu")
BYTES = SIZE * SIZE * 4
SGD = sw.optim.sgd(0.1)


def loss(params: Any, x: Any, y: Any) -> Any:
    return np.mean((x @ params["w"] - y) ** 2)


def jitted(shard_update: Any, mesh: sw.Mesh = MESH, summed_over: Any = None, **options: Any) -> Any:
    in_shardings = (None, None, P(BOTH), P(BOTH))
    step = step_of(loss, SGD, summed_over)
    return sw.jit(step, mesh=mesh, in_shardings=in_shardings, shard_update=shard_update, **options)


def compiled(shard_update: Any, mesh: sw.Mesh = MESH, **options: Any) -> sw.Program:
    params, batch = {"w": sw.ShapeDtypeStruct((SIZE, SIZE), np.float32)}, sw.ShapeDtypeStruct((32768, SIZE), np.float32)
    program = jitted(shard_update, mesh, **options).lower(params, SGD.init(params), batch, batch).compile()
    assert isinstance(program, sw.Program)
    return program


def gradient(program: sw.Program) -> dict[str, float]:
    """Bytes of the collectives of the gradient, by kind."""
    rows = [row for row in program.collectives() if row.shape and "shard_update" not in row.cause]
    return {row.kind: row.bytes for row in rows}


def test_a_sum_that_is_split_over_nodes_adds_inside_the_nodes_first() -> None:
    """A device sends its 4 MiB over NVLink, and an eighth of them over the network, where it sent all of them."""
    staged, plain = compiled("node"), compiled("node", objective="bytes")
    one_of_all = BYTES / (NODES * GPUS)
    assert gradient(staged) == {"reduce_scatter": 31 * one_of_all, "all_gather": 7 * one_of_all}
    assert gradient(plain) == {"reduce_scatter": BYTES * 3 / 4, "all_reduce": 2 * 7 / 8 * BYTES / 4}
    assert sum(gradient(staged).values()) == sum(gradient(plain).values())
    seconds = [program.estimate(hardware="default").seconds for program in (staged, plain)]
    assert seconds[0] < 0.7 * seconds[1]


@pytest.mark.parametrize("hardware", ["default", "h100_sxm", "gb200_nvl72"])
def test_axes_of_one_tier_are_summed_in_one_stage_each(hardware: str) -> None:
    """Eight devices of one node: the fewest bytes take the least time."""
    mesh = sw.Mesh({"node": 2, "gpu": 4})
    assert set(gradient(compiled("node", mesh))) == {"reduce_scatter", "all_reduce"}
    found, wanted = (gradient(compiled("node", mesh, hardware=hardware, **options)) for options in ({}, BY_BYTES))
    assert sum(found.values()) == sum(wanted.values())


BY_BYTES = {"objective": "bytes"}


@pytest.mark.parametrize("shard_update", ["node", "gpu", BOTH])
def test_stages_add_what_the_unsharded_step_adds(shard_update: Any) -> None:
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(64, 64)).astype(np.float32)}
    x, y = (rng.normal(size=(4096, 64)).astype(np.float32) for _ in range(2))
    arguments = (params, SGD.init(params), x, y)
    found, wanted = jitted(shard_update)(*arguments), jitted(None, summed_over=BOTH)(*arguments)
    np.testing.assert_allclose(np.asarray(found[0]["w"]), np.asarray(wanted[0]["w"]), rtol=0, atol=3e-7)
    if shard_update != "gpu":  # one reduce-scatter of all devices adds them in their order
        np.testing.assert_array_equal(np.asarray(found[0]["w"]), np.asarray(wanted[0]["w"]))


@pytest.mark.parametrize("name", sw.hardware.list())
def test_one_reduce_scatter_is_no_slower_than_its_stages(name: str) -> None:
    """Its tiers are the stages: D bytes inside, and D / M between the M-th parts. So nothing splits it."""
    hardware = sw.hardware.load(name)
    for nodes, gpus in itertools.product((2, 4, 16), (2, 8, 32)):
        mesh = sw.Mesh({"node": nodes, "gpu": gpus})

        def seconds(kind: str, size: int, *axes: str, mesh: sw.Mesh = mesh) -> float:
            return hardware.collective_time(kind, size, mesh, list(axes)).seconds

        size = nodes * gpus * 2**18
        joint = seconds("reduce_scatter", size, "node", "gpu")
        inside_first = seconds("reduce_scatter", size, "gpu") + seconds("reduce_scatter", size // gpus, "node")
        outside_first = seconds("reduce_scatter", size, "node") + seconds("reduce_scatter", size // nodes, "gpu")
        assert joint <= min(inside_first, outside_first) * (1 + 1e-9)
