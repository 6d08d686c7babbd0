# SPDX-License-Identifier: Apache-2.0
"""Programs that random programs found wrong once, made smaller."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from tests.op.dtype_values import random_bits

MODES = ({}, {"faithful": True, "poison": True})

# The axis is cut as 2 x 3 and as 3 x 2, so it stays one digit. The index is gathered over a part of it.
BRANCH = """
module @branch {
  sdy.mesh @mesh = <["x"=6]>
  func.func public @main(%x: tensor<1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>},
                         %y: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)3}]>})
      -> (tensor<f32>, tensor<6xf32>, tensor<3xf32>) {
    %i = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.negate %x : tensor<1xf32>
    %1 = stablehlo.dynamic_slice %0, %i, sizes = [1] : (tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    %c = stablehlo.constant dense<1.0> : tensor<1xf32>
    %2 = stablehlo.concatenate %c, %1, %c, dim = 0
      : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
    %3 = sdy.sharding_constraint %2 <@mesh, [{}]> : tensor<3xf32>
    %init = stablehlo.constant dense<0.0> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %init) applies stablehlo.maximum across dimensions = [0]
      : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %5 = stablehlo.convert %4 : (tensor<f32>) -> tensor<i32>
    %6 = "stablehlo.case"(%5) ({
      stablehlo.return %init : tensor<f32>
    }, {
      stablehlo.return %4 : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    return %6, %y, %3 : tensor<f32>, tensor<6xf32>, tensor<3xf32>
  }
}
"""

BITCAST = """
module @bits {
  sdy.mesh @mesh = <["x"=7]>
  func.func public @main(%x: tensor<8x4xi8> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<8xi32>, tensor<16xi32>) {
    %0 = stablehlo.bitcast_convert %x : (tensor<8x4xi8>) -> tensor<8xi32>
    %1 = stablehlo.reverse %0, dims = [0] : tensor<8xi32>
    %2 = stablehlo.concatenate %1, %0, dim = 0 : (tensor<8xi32>, tensor<8xi32>) -> tensor<16xi32>
    return %0, %2 : tensor<8xi32>, tensor<16xi32>
  }
}
"""


def test_a_branch_on_a_value_gathered_over_a_part_of_an_axis() -> None:
    program = sw.parse(BRANCH).compile()
    x, y = np.float32([3]), np.arange(6, dtype=np.float32)
    for mode in MODES:
        value, rest, joined = program.run(x, y, **mode)
        assert value == 1
        np.testing.assert_array_equal(rest, y)
        np.testing.assert_array_equal(joined, np.float32([1, -3, 1]))


def test_a_bitcast_of_several_elements_to_one_is_moved_as_it_is() -> None:
    """A value that was made of a narrower one is made again where it is needed; this has another shape."""

    program = sw.parse(BITCAST).compile()
    x = np.random.default_rng(3).integers(-128, 128, (8, 4)).astype(np.int8)
    wide = x.view(np.int32)[:, 0]
    for mode in MODES:
        first, second = program.run(x, **mode)
        np.testing.assert_array_equal(first, wide)
        np.testing.assert_array_equal(second, np.concatenate([wide[::-1], wide]))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("out", [sw.P(), sw.P("x")], ids=["all_reduce", "reduce_scatter"])
def test_complex_elements_of_one_owner_travel_as_bits(dtype: str, out: sw.P) -> None:
    """A sum of floats makes a signalling NaN quiet, and loses the sign of a zero."""
    rng = np.random.default_rng(4)
    x = random_bits((16, 8), dtype, rng)
    parts = x.view(np.dtype(dtype).type(0).real.dtype)
    parts.view(f"u{parts.itemsize}")[3, :4] = 0x7F800001 if dtype == "complex64" else 0x7FF0000000000001
    parts[5, :4] = -0.0
    rows = rng.permutation(16)[: 2 if out == sw.P() else 8]
    rows[:2] = 3, 5
    mesh = sw.Mesh({"x": 4})
    taken = sw.jit(
        lambda x, i: sw.shard(np.take(x, i, 0), sw.P(unreduced="x")),
        mesh=mesh,
        in_shardings=(sw.P("x"), sw.P()),
        out_shardings=out,
        objective="bytes",
    )
    program = taken.lower(x, rows).compile()
    assert np.asarray(program(x, rows)).tobytes() == x[rows].tobytes()
    assert ("all_reduce" if out == sw.P() else "reduce_scatter") in {row.kind for row in program.collectives()}


@pytest.mark.parametrize("shape", ["", "3x"])
def test_a_signalling_nan_of_a_constant_keeps_its_bits(shape: str) -> None:
    half, brain = f"tensor<{shape}f16>", f"tensor<{shape}bf16>"
    text = f"""
func.func public @main() -> {brain} {{
  %0 = stablehlo.constant dense<0xFC9F> : {half}
  %1 = stablehlo.bitcast_convert %0 : ({half}) -> {brain}
  return %1 : {brain}
}}
"""
    result = np.asarray(sw.parse(text).run())
    assert set(result.reshape(-1).view(np.uint16).tolist()) == {0xFC9F}


SCATTER = """
sdy.mesh @mesh = <["x"=7]>
func.func public @main(%0: tensor<6x8x1xf64> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>},
    %1: tensor<1x4xi8>, %2: tensor<3x4x1x4xf64> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}, {}]>}) -> (
    tensor<6x8x1xf64> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>}) {
  %x = stablehlo.reverse %0, dims = [0, 2] : tensor<6x8x1xf64>
  %u = stablehlo.reverse %2, dims = [0, 2] : tensor<3x4x1x4xf64>
  %3 = "stablehlo.scatter"(%x, %1, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [0, 1, 2], scatter_dims_to_operand_dims = [2], index_vector_dim = 0>}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %m = stablehlo.maximum %a, %b : tensor<f64>
    "stablehlo.return"(%m) : (tensor<f64>) -> ()
  }) : (tensor<6x8x1xf64>, tensor<1x4xi8>, tensor<3x4x1x4xf64>) -> tensor<6x8x1xf64>
  return %3 : tensor<6x8x1xf64>
}
"""


def test_windows_of_a_scatter_are_not_merged_along_an_indexed_dim() -> None:
    """The windows of all devices together reached from -2 into the operand, where those of each device are outside."""
    program = sw.parse(SCATTER).compile()
    x, indices = -np.arange(1.0, 49).reshape(6, 8, 1), np.array([[7, -2, -2, 3]], np.int8)
    for mode in MODES:
        np.testing.assert_array_equal(program.run(x, indices, np.full((3, 4, 1, 4), 5.0), **mode), x[::-1])
