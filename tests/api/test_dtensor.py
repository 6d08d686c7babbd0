# SPDX-License-Identifier: Apache-2.0
"""PyTorch's placements: what they mean as specs, and that the words of distribute_tensor do what PyTorch's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import shardwise as sw
from shardwise import NamedSharding, P, dtensor
from shardwise.dtensor import DeviceMesh, Partial, Replicate, Shard, distribute_tensor, init_device_mesh, redistribute

MESH = sw.Mesh({"dp": 2, "tp": 4})
X = np.arange(128, dtype=np.float32).reshape(16, 8)


@pytest.mark.parametrize(
    ("placements", "spec"),
    [
        ([Replicate(), Replicate()], P(None, None)),
        ([Shard(0), Replicate()], P("dp", None)),
        ([Shard(1), Shard(0)], P("tp", "dp")),
        ([Shard(0), Shard(0)], P(("dp", "tp"), None)),
        ([Shard(-1), Shard(-2)], P("tp", "dp")),
        ((Shard(0), Partial()), P("dp", None, unreduced="tp")),
        ([Partial("max"), Partial("max")], P(None, None, unreduced={"dp", "tp"}, reducer="max")),
        ([Partial("product"), Shard(1)], P(None, "tp", unreduced="dp", reducer="prod")),
        ([Partial("band"), Replicate()], P(None, None, unreduced="dp", reducer="and")),
    ],
)
def test_placements_are_specs(placements: Any, spec: P) -> None:
    assert dtensor.spec(MESH, placements, 2) == spec


ANY = st.one_of(st.builds(Shard, st.integers(0, 2)), st.just(Replicate()), st.just(Partial("min")))
PLACEMENTS = st.lists(ANY, min_size=3, max_size=3)


@given(PLACEMENTS)
def test_a_spec_gives_its_placements_back(placements: list[Any]) -> None:
    mesh = sw.Mesh({"a": 2, "b": 3, "c": 2})
    sharding = NamedSharding(mesh, dtensor.spec(mesh, placements, 3))
    assert list(dtensor.placements(sharding)) == placements


@given(PLACEMENTS)
def test_tiles_lie_where_pytorch_puts_them(placements: list[Any]) -> None:
    # PyTorch cuts the local tensor by each mesh dim in turn, the first one outermost.
    mesh = sw.Mesh({"a": 2, "b": 3, "c": 2})
    placements = [Replicate() if isinstance(placement, Partial) else placement for placement in placements]
    x = np.arange(12**3).reshape(12, 12, 12)
    placed = distribute_tensor(x, mesh, placements)
    for index, shard in zip(np.ndindex(2, 3, 2), placed.addressable_shards, strict=True):
        local = x
        for at, size, placement in zip(index, (2, 3, 2), placements):
            if isinstance(placement, Shard):
                local = np.array_split(local, size, axis=placement.dim)[at]
        np.testing.assert_array_equal(shard.data, local)


def test_meshes_by_pytorchs_words() -> None:
    assert DeviceMesh("cpu", [[3, 1], [2, 0]], mesh_dim_names=("dp", "tp")) == sw.Mesh({"dp": 2, "tp": 2}, [3, 1, 2, 0])
    assert DeviceMesh("cuda", np.arange(4)) == sw.Mesh({"dim_0": 4})
    assert init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp")) == MESH
    assert init_device_mesh("cpu", (2, 4)).axis_names == ("dim_0", "dim_1")


def test_distribute_and_redistribute() -> None:
    placed = distribute_tensor(X, MESH, [Shard(0), Shard(1)])
    assert placed.sharding == NamedSharding(MESH, P("dp", "tp"))
    moved = redistribute(placed, placements=[Shard(1), Replicate()])
    assert dtensor.placements(moved) == (Shard(1), Replicate())
    np.testing.assert_array_equal(moved, X)
    assert distribute_tensor(X, MESH).sharding.is_fully_replicated
    with sw.set_mesh(MESH):
        assert dtensor.placements(distribute_tensor(X, placements=[Shard(0), Replicate()])) == (Shard(0), Replicate())


def test_in_a_program_placements_are_constraints_and_partial_is_unreduced() -> None:
    def f(x: Any) -> Any:
        return redistribute(x * 2, placements=[Shard(0), Partial()]) + 1

    text = sw.jit(f, mesh=MESH).trace(X).as_text()
    assert '<@mesh, [{"dp"}, {}], unreduced={"tp"}>' in text
    np.testing.assert_array_equal(sw.jit(f, mesh=MESH)(X), X * 2 + 1)


@pytest.mark.parametrize(
    ("placements", "kind", "text"),
    [
        ([Shard(0)], sw.ShardingError, "distribute_tensor: placements must be one for each of the 2 dims of Mesh"),
        ([Shard(0), "x"], sw.ShardingError, "use Shard"),
        (
            [Shard(2), Replicate()],
            sw.ShapeError,
            r"dim of Shard must be an integer in \[-2, 2\), got 2",
        ),
        ([Partial("avg"), Replicate()], sw.ShardingError, "reduce_op of Partial must be one of sum, product"),
        ([Partial("sum"), Partial("max")], sw.ShardingError, "combine in one way"),
        (
            [Partial(), Replicate()],
            sw.ShardingError,
            "tensor: a tensor outside of a traced function cannot be Partial",
        ),
    ],
)
def test_placements_that_mean_nothing_are_refused(placements: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        distribute_tensor(X, MESH, placements)


HALF = sw.sub("tp", pre=1, size=2)


@pytest.mark.parametrize("spec", [P(("tp", "dp")), P(HALF), P(sw.open("tp")), P(unreduced=HALF)], ids=repr)
def test_what_placements_cannot_say(spec: P) -> None:
    with pytest.raises(sw.ShardingError, match="placements need"):
        dtensor.placements(NamedSharding(MESH, spec))


def test_placements_and_a_mesh_must_be_known() -> None:
    with pytest.raises(sw.ShardingError, match="placements must be given"):
        redistribute(X, MESH)
    with pytest.raises(sw.MeshError, match="no mesh given"):
        distribute_tensor(X)
    with pytest.raises(sw.MeshError, match="init_device_mesh: mesh_dim_names must be one for each"):
        init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp",))
