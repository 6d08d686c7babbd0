# SPDX-License-Identifier: Apache-2.0
"""Corners that random instances found: dtypes without a zero, scalars that a bitcast splits, results placed apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw


def run(text: str, *arrays: Any) -> Any:
    program = sw.parse(text).compile()
    once, faithful = (np.asarray(program.run(*arrays, **mode)) for mode in ({}, {"faithful": True, "poison": True}))
    np.testing.assert_array_equal(once, faithful)
    return once


@pytest.mark.parametrize("index", range(5))
def test_one_row_of_a_sharded_operand_without_zeros(index: int) -> None:
    """Its devices cannot add zeros to the row of another one."""
    text = """sdy.mesh @mesh = <["x"=3]>
    func.func public @main(%x: tensor<5xf8E8M0FNU> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %i: tensor<i32>)
        -> (tensor<f8E8M0FNU>, tensor<1xf8E8M0FNU>) {
      %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 0 : i64, batch_dims = 0 : i64}>
        : (tensor<5xf8E8M0FNU>, tensor<i32>) -> tensor<f8E8M0FNU>
      %1 = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<5xf8E8M0FNU>, tensor<i32>) -> tensor<1xf8E8M0FNU>
      return %0, %1 : tensor<f8E8M0FNU>, tensor<1xf8E8M0FNU>
    }"""
    x = np.array([0.25, np.nan, 4, 2**-127, 2**100], np.float32).astype("float8_e8m0fnu")
    program = sw.parse(text).compile()
    for mode in ({}, {"faithful": True, "poison": True}):
        row, part = (np.asarray(found) for found in program.run(x, np.int32(index), **mode))
        assert row.tobytes() == part.tobytes() == x[index].tobytes()


@pytest.mark.parametrize(("dtype", "name", "parts"), [("uint64", "ui64", ("2", "ui32")), ("float16", "f16", ("4", "i4"))])
def test_a_bitcast_splits_a_scalar(dtype: str, name: str, parts: tuple[str, str]) -> None:
    count, narrow = parts
    text = f"""func.func public @main(%x: tensor<{name}>) -> tensor<{name}> {{
      %0 = stablehlo.bitcast_convert %x : (tensor<{name}>) -> tensor<{count}x{narrow}>
      %1 = stablehlo.bitcast_convert %0 : (tensor<{count}x{narrow}>) -> tensor<{name}>
      return %1 : tensor<{name}>
    }}"""
    x = np.array(12345, np.int64).astype(dtype)
    assert run(text, x).tobytes() == x.tobytes()


def test_rng_draws_bools() -> None:
    text = """func.func public @main(%low: tensor<i1>, %high: tensor<i1>) -> tensor<400xi1> {
      %shape = stablehlo.constant dense<400> : tensor<1xi64>
      %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM
        : (tensor<i1>, tensor<i1>, tensor<1xi64>) -> tensor<400xi1>
      return %0 : tensor<400xi1>
    }"""
    assert 150 < np.count_nonzero(run(text, np.False_, np.True_)) < 250


def test_two_results_of_windows_that_only_one_user_places() -> None:
    """Propagation placed only the places that windows select, not the numbers beside them."""
    text = """sdy.mesh @mesh = <["x"=4, "y"=2]>
    func.func public @main(%x: tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
        %s: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"y"}]>}) -> tensor<8x3xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 1, 2>,
        window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      }, {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<8x3xf32>, tensor<8x2xf32>, tensor<f32>) -> tensor<8x3xf32>
      return %0 : tensor<8x3xf32>
    }"""
    rng = np.random.default_rng(2)
    x, s = rng.normal(size=(8, 3)).astype(np.float32), rng.normal(size=(8, 2)).astype(np.float32)
    want = np.zeros_like(x)
    rows = np.arange(8)
    want[rows, np.argmax(x[:, :2], 1)] += s[:, 0]
    want[:, 2] += s[:, 1]
    np.testing.assert_array_equal(run(text, x, s), want)
