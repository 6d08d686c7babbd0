# SPDX-License-Identifier: Apache-2.0
"""Programs on arrays without elements, for which JAX refuses collectives, and XLA drops operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.support.partitioned import same_values

MESH = sw.Mesh({"x": 4, "y": 2})
NO_ROWS = np.zeros(0, np.int32)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum, transpose and product": lambda x: (x.sum(0), x.T, x * 2),
    "product": lambda x: (x.prod(0), x.prod(1), np.cumprod(x, 1)),
    "sums": lambda x: (x.sum(), x.sum(0), x.sum(1)),
    "parts of sums": lambda x: (sw.shard(x.sum(0), P("y")), sw.shard(x.sum(1), P("x"))),
    "any": lambda x: (x > 0).any(0),
    "movement": lambda x: (x[::-1], np.roll(x, 1, 0), np.concatenate([x, x]), x.reshape(-1), np.stack([x, x])),
    "resharding": lambda x: (sw.shard(x, P("y", "x")), sw.replicate(x), sw.shard(x, P(None, ("x", "y")))),
    "products of matrices": lambda x: (x @ x.T, x.T @ x),
    "pad": lambda x: np.pad(x, ((1, 1), (0, 2))),
    "indexing": lambda x: (np.take(x, NO_ROWS, 0), sw.at(x, NO_ROWS).set(0)),
    "sorts": lambda x: (np.sort(x, 0), np.argsort(x, 1, stable=True)),
    "scan": lambda x: sw.scan(lambda c, row: (c + row.sum(), row * 2), x.sum(), x),
    "loop": lambda x: sw.fori_loop(0, 3, lambda i, c: c + 1, x),
}  # fmt: skip


@pytest.mark.parametrize("spec", [P("x"), P("x", "y"), P(None, "x")], ids=str)
@pytest.mark.parametrize("shape", [(0, 4), (7, 0), (8, 0), (0, 0)], ids=str)
def test_programs_on_empty_arrays(shape: tuple[int, int], spec: P) -> None:
    for i, (name, function) in enumerate(FUNCTIONS.items()):
        x = np.zeros(shape, (np.float32, sw.bfloat16, np.int32)[i % 3])
        program = sw.jit(function, mesh=MESH, in_shardings=(spec,)).lower(x).compile()
        handed = program.to_jax()
        found, wanted = (sw.tree.leaves(results) for results in (handed.get(handed(x)), program(x)))
        for got, want in zip(found, map(np.asarray, wanted), strict=True):
            assert same_values(got, want), name
        assert handed.collectives().total_bytes == program.collectives().total_bytes, name


def test_a_script_of_a_program_on_empty_arrays() -> None:
    x = np.zeros((7, 0), np.float32)
    program = sw.jit(FUNCTIONS["sums"], mesh=MESH, in_shardings=(P("x"),)).lower(x).compile()
    names: dict[str, Any] = {"__name__": "script"}
    exec(program.to_source("jax"), names)
    for got, want in zip(names["main"](x), program(x), strict=True):
        assert same_values(got, np.asarray(want))


def test_a_batch_of_products_of_no_elements() -> None:
    """All operands are empty, and the result is not: XLA's partitioner needs an operand that it keeps."""
    x, y = np.zeros((2, 3, 0), np.float32), np.zeros((4, 0, 2), np.float32)
    mesh = sw.Mesh({"x": 2, "y": 3})
    function = sw.jit(lambda x, y: np.einsum("bmk,nkb->bmn", x, y), mesh=mesh, in_shardings=(P("y", "x"), P()))
    handed = function.lower(x, y).compile().to_jax()
    np.testing.assert_array_equal(handed.get(handed(x, y)), np.zeros((2, 3, 4), np.float32))


def test_a_result_without_elements_has_its_cut_on_the_other_mesh() -> None:
    """Axes cut otherwise are another mesh in JAX, where XLA has replicated what has no elements."""
    text = """
sdy.mesh @mesh = <["z"=6]>
func.func @main(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z":(1)2}, {}]>})
    -> (tensor<3x0xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"z":(3)2}]>}) {
  %0 = stablehlo.slice %a [1:4, 0:0] : (tensor<8x2xf32>) -> tensor<3x0xf32>
  return %0 : tensor<3x0xf32>
}"""
    handed = sw.parse(text).compile().to_jax()
    (result,) = [handed.get(x) for x in sw.tree.leaves(handed(np.ones((8, 2), np.float32)))]
    assert result.shape == (3, 0)
