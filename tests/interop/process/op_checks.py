# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of ops, handed over to JAX in every scenario: what StableHLO and XLA do differently.

`tests.conformance.jax.handover` has all rows.
"""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.jax.handover import op_failures
from tests.op.cases import CASES

ROWS = [
    ("scatter-add", "float32"),  # windows that are outside in part
    ("scatter-subtract", "float32"),
    ("scatter-replace", "int16"),
    ("gather", "int32"),  # slices at the end
    ("reduce-ends", "float32"),  # initial values that are not neutral
    ("reduce-argmax", "int8"),
    ("rng_bit_generator-three_fry", "float32"),  # bits that JAX does not generate
    ("real", "float32"),
]


@pytest.mark.parametrize(("op", "dtype"), ROWS)
def test_an_op_gives_the_numbers_of_numpy(op: str, dtype: str) -> None:
    cases = [case for case in CASES if case.id == op]
    assert cases
    for case in cases:
        assert op_failures(case, dtype) == []


def test_the_order_of_arguments_in_a_region_matters() -> None:
    """A scatter that subtracts what is there from the update is no scatter of JAX; a sum may add them in any order."""

    def program(op: str) -> sw.Program:
        return sw.parse(f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4xf32>, %i: tensor<1x1xi32>, %u: tensor<1xf32>) -> tensor<4xf32> {{
  %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    %n = stablehlo.{op} %new, %old : tensor<f32>
    stablehlo.return %n : tensor<f32>
  }}) : (tensor<4xf32>, tensor<1x1xi32>, tensor<1xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}}""").compile()

    arguments = np.float32([1, 2, 3, 4]), np.int32([[2]]), np.float32([10])
    added = program("add").to_jax()
    np.testing.assert_array_equal(added.get(added(*arguments)), [1, 2, 13, 4])
    with pytest.raises(sw.UnsupportedError, match=r"^to_jax: a scatter must add, subtract, multiply"):
        program("subtract").to_jax()
