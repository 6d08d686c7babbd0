# SPDX-License-Identifier: Apache-2.0
"""A permutation of whole tiles is a collective_permute in the ledger and in assertions, however it is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.testing import assert_collectives

from ..support.oracles import oracle

jax: Any = oracle("jax")

MESH = sw.Mesh({"x": 4})
X = np.arange(8, dtype=np.float32)


def permuted(pairs: list[tuple[int, int]]) -> Any:
    spec = jax.sharding.PartitionSpec("x")
    mesh = jax.sharding.AbstractMesh((4,), ("x",))
    return sw.from_jax(
        jax.shard_map(lambda x: jax.lax.ppermute(x, "x", pairs), mesh=mesh, in_specs=spec, out_specs=spec)
    )


def compiled(f: Any) -> sw.Program:
    return sw.jit(f, mesh=MESH, in_shardings=P("x"), out_shardings=P("x")).lower(X).compile()


@pytest.mark.parametrize("shift", [1, 2, 3, -1])
def test_a_ring(shift: int) -> None:
    program = compiled(permuted([(i, (i + shift) % 4) for i in range(4)]))
    assert_collectives(program, collective_permute=1, exchange=0, bytes_max=8)
    assert program.collectives().by_kind() == {"collective_permute": 1}
    np.testing.assert_array_equal(program(X), np.roll(X, 2 * shift))


@pytest.mark.parametrize("objective", ["time", "bytes"])
def test_a_ring_with_other_dims_in_a_loop(objective: Any) -> None:
    """The dims of a row could be split instead, one slice after the other."""

    def turned(x: Any) -> Any:
        def turn(x: Any, _: Any) -> Any:
            return np.roll(x[None], 1, axis=1)[0], None

        return sw.scan(turn, x, None, length=4)[0]

    x = np.arange(4 * 2 * 16 * 4, dtype=np.float32).reshape(4, 2, 16, 4)
    program = sw.jit(turned, mesh=MESH, in_shardings=P("x"), out_shardings=P("x"), objective=objective).lower(x)
    made = program.compile()
    tile = 2 * 16 * 4 * 4
    assert [(row.kind, row.bytes, row.count) for row in made.collectives()] == [("collective_permute", tile, 4)]
    assert made.choice_price().bytes == 4 * tile
    np.testing.assert_array_equal(made(x), x)


def test_a_roll_by_whole_tiles() -> None:
    program = compiled(lambda x: np.roll(x, 2))
    assert_collectives(program, collective_permute=1, exchange=0)
    np.testing.assert_array_equal(program(X), np.roll(X, 2))


@pytest.mark.parametrize(
    "f",
    [lambda x: np.roll(x, 1), lambda x: np.roll(x, 3), lambda x: np.concatenate([x[:2], x[:2], x[2:6]])],
    ids=["part of a tile", "more than a tile", "one tile twice"],
)
def test_other_movements_are_exchanges(f: Any) -> None:
    program = compiled(f)
    assert_collectives(program, collective_permute=0)
    np.testing.assert_array_equal(program(X), f(X))
