# SPDX-License-Identifier: Apache-2.0
"""Corners that random instances found: dtypes without a zero, scalars that a bitcast splits, results placed apart."""

from __future__ import annotations

from typing import Any

import ml_dtypes
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


@pytest.mark.parametrize(
    ("dtype", "name", "parts"), [("uint64", "ui64", ("2", "ui32")), ("float16", "f16", ("4", "i4"))]
)
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
    func.func public @main(%x: tensor<8x3x3xf6E2M3FN> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {"x"}]>},
        %s: tensor<8x1x2xf6E2M3FN> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {?}, {"y", ?}]>},
        %zero: tensor<f6E2M3FN>) -> tensor<8x3x3xf6E2M3FN> {
      %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 1, 1, 2>,
        window_strides = array<i64: 1, 3, 2>, padding = dense<[[0, 0], [0, 0], [0, 1]]> : tensor<3x2xi64>}> ({
      ^bb0(%a: tensor<f6E2M3FN>, %b: tensor<f6E2M3FN>):
        %1 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f6E2M3FN>, tensor<f6E2M3FN>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      }, {
      ^bb0(%a: tensor<f6E2M3FN>, %b: tensor<f6E2M3FN>):
        %1 = stablehlo.add %a, %b : tensor<f6E2M3FN>
        stablehlo.return %1 : tensor<f6E2M3FN>
      }) : (tensor<8x3x3xf6E2M3FN>, tensor<8x1x2xf6E2M3FN>, tensor<f6E2M3FN>) -> tensor<8x3x3xf6E2M3FN>
      return %0 : tensor<8x3x3xf6E2M3FN>
    }"""
    rng = np.random.default_rng(2)
    x, s = (rng.integers(-7, 7, shape).astype(ml_dtypes.float6_e2m3fn) for shape in ((8, 3, 3), (8, 1, 2)))
    want = np.zeros_like(x)
    want[np.arange(8), 0, np.argmax(x[:, 0, :2].astype(np.float32), 1)] += s[:, 0, 0]
    want[:, 0, 2] += s[:, 0, 1]
    np.testing.assert_array_equal(run(text, x, s, want.dtype.type(0)), want)
