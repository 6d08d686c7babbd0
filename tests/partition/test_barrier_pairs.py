# SPDX-License-Identifier: Apache-2.0
"""An optimization_barrier of several values: each pair of operand and result is sharded on its own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from tests.support.partitioned import execute

SPLITS = ["{}, {}", '{"x"}, {}', '{}, {"x"}', '{"x", "y"}, {}', '{"y"}, {"x"}']


def barrier(n: int, a: str, b: str) -> str:
    types = f"tensor<{n}x7xf32>, tensor<5x{n}xi32>, tensor<f32>"
    first, second, third = types.split(", ")
    return f"""sdy.mesh @mesh = <["x"=2, "y"=3]>
func.func @main(%a: {first} {{sdy.sharding = #sdy.sharding<@mesh, [{a}]>}},
    %b: {second} {{sdy.sharding = #sdy.sharding<@mesh, [{b}]>}}, %c: {third}) -> ({types}) {{
  %h:3 = stablehlo.optimization_barrier %a, %b, %c : {types}
  return %h#0, %h#1, %h#2 : {types}
}}"""


@pytest.mark.parametrize("n", [8, 7, 1, 0])
@pytest.mark.parametrize(("a", "b"), [*itertools.product(SPLITS, SPLITS)])
def test_every_pair_stays_where_it_is(n: int, a: str, b: str) -> None:
    rng = np.random.default_rng(n)
    operands = [rng.normal(size=(n, 7)).astype(np.float32), rng.integers(0, 99, (5, n), np.int32), np.float32(2.5)]
    compiled = _core.passes.compile(_core.ir.parse(barrier(n, a, b)), sw.Mesh({"x": 2, "y": 3})._core)
    assert compiled.collectives() == []
    for results in execute(compiled, [np.asarray(x) for x in operands]):
        for operand, result in zip(operands, results, strict=True):
            np.testing.assert_array_equal(result, operand)
