# SPDX-License-Identifier: Apache-2.0
"""The custom calls ApproxTopK and mhlo.topk: exact, on shards without their operand gathered, and their errors.

tests/conformance/jax/corpus.py compares the texts of lax.approx_max_k and approx_min_k with JAX.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw

RNG = np.random.default_rng(0)
ROWS = RNG.permutation(8 * 64).reshape(8, 64)

APPROX = """sdy.mesh @mesh = <["x"=4]>
func.func @compare(%a: tensor<{e}>, %b: tensor<{e}>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {{
  %0 = {comparison} : (tensor<{c}>, tensor<{c}>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
}}
func.func @main(%x: tensor<8x64x{e}> {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}, %i: tensor<8x64xi32>)
    -> (tensor<{shape}x{e}>, tensor<{shape}xi32>) {{
  %least = stablehlo.constant dense<0> : tensor<{e}>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %least, %none) {{called_computations = [{called}],
    mhlo.backend_config = {{aggregate_to_topk = {final}, recall_target = 0.95 : f32, reduction_dim = {dim} : i64,
    top_k = 3 : i64}}}} : (tensor<8x64x{e}>, tensor<8x64xi32>, tensor<{e}>, tensor<i32>)
    -> (tensor<{shape}x{e}>, tensor<{shape}xi32>)
  return %0#0, %0#1 : tensor<{shape}x{e}>, tensor<{shape}xi32>
}}
"""
DEFAULTS = {
    "e": "i32",
    "c": "i32",
    "comparison": "stablehlo.compare GT, %a, %b, SIGNED",
    "sharding": '[{}, {"x"}]',
    "shape": "8x3",
    "dim": "1",
    "final": "true",
    "called": "@compare",
}


def approx(**options: Any) -> str:
    return APPROX.format(**{**DEFAULTS, **options})


def both_modes(text: str, *arrays: Any) -> list[np.ndarray]:
    program = sw.parse(text, "f.mlir").compile()
    found = [np.asarray(x) for x in program.run(*arrays)]
    for x, y in zip(found, program.run(*arrays, faithful=True, poison=True)):
        np.testing.assert_array_equal(x, np.asarray(y))
    return found


@pytest.mark.parametrize("sharding", ['[{}, {"x"}]', '[{"x"}, {}]'])
@pytest.mark.parametrize(
    ("element", "comparison", "sign"),
    [
        ("i32", "stablehlo.compare GT, %a, %b, SIGNED", -1),
        ("i32", "stablehlo.compare LT, %a, %b, SIGNED", 1),
        ("f32", "stablehlo.compare GT, %a, %b, FLOAT", -1),
        ("f32", "stablehlo.compare LT, %a, %b, FLOAT", 1),
    ],
)
def test_the_first_elements_of_each_row(sharding: str, element: str, comparison: str, sign: int) -> None:
    dtype = {"i32": np.int32, "f32": np.float32}[element]
    places = RNG.integers(0, 1000, ROWS.shape, np.int32)  # any numbers, which travel along
    text = approx(e=element, c=element, comparison=comparison, sharding=sharding)
    values, taken = both_modes(text, ROWS.astype(dtype), places)
    order = np.argsort(sign * ROWS, axis=1)[:, :3]
    np.testing.assert_array_equal(values, np.take_along_axis(ROWS, order, 1))
    np.testing.assert_array_equal(taken, np.take_along_axis(places, order, 1))


def test_the_order_may_be_that_of_another_operand() -> None:
    keys = RNG.permutation(8 * 64).reshape(8, 64).astype(np.int32)
    text = approx(comparison="stablehlo.compare LT, %i, %j, SIGNED", dim="0", shape="3x64")
    values, taken = both_modes(text, ROWS.astype(np.int32), keys)
    order = np.argsort(keys, axis=0)[:3]
    np.testing.assert_array_equal(values, np.take_along_axis(ROWS, order, 0))
    np.testing.assert_array_equal(taken, np.take_along_axis(keys, order, 0))


def test_shards_send_their_winners_alone() -> None:
    text = approx(e="f32", c="f32", comparison="stablehlo.compare GT, %a, %b, FLOAT")
    iota = "%i = stablehlo.iota dim = 1 : tensor<8x64xi32>"
    text = text.replace(", %i: tensor<8x64xi32>)\n", ")\n").replace("  %least", f"  {iota}\n  %least", 1)
    x = ROWS.astype(np.float32)
    values, places = both_modes(text, x)
    np.testing.assert_array_equal(places, np.argsort(-x, axis=1)[:, :3])
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :3])
    ledger = sw.parse(text).compile().collectives()
    assert 0 < sum(row.total_bytes for row in ledger.rows) <= 2 * 8 * 12 * 4 * 4  # 12 winners of a row on 4 devices


TOP_K = """func.func @main(%x: tensor<4x16xf32>) -> (tensor<4x{k}xf32>, tensor<4x3xi32>) {{
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {{mhlo.attributes = {{k = 3 : i64, largest = {largest}}},
    mhlo.version = 1 : i64}} : (tensor<4x16xf32>) -> (tensor<4x{k}xf32>, tensor<4x3xi32>)
  return %0#0, %0#1 : tensor<4x{k}xf32>, tensor<4x3xi32>
}}
"""


@pytest.mark.parametrize("largest", [True, False])
def test_top_k_of_older_texts(largest: bool) -> None:
    x = RNG.normal(size=(4, 16)).astype(np.float32)
    values, places = both_modes(TOP_K.format(largest=str(largest).lower(), k=3), x)
    order = np.argsort(-x if largest else x, axis=1)[:, :3]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


FIX = "lower it with JAX again (at f.mlir:"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            approx(called="@missing"),
            "custom_call @ApproxTopK: called_computations must be a function of the module that compares two scalars "
            "of each operand, got (tensor<8x64xi32>, tensor<8x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<8x3xi32>, "
            f"tensor<8x3xi32>); {FIX}10)",
        ),
        (
            approx(dim="2"),
            "custom_call @ApproxTopK: reduction_dim must be a dim of the operands, got 2 for (tensor<8x64xi32>, "
            f"tensor<8x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<8x3xi32>, tensor<8x3xi32>); {FIX}10)",
        ),
        (
            approx(shape="8x4"),
            "custom_call @ApproxTopK: results must have top_k = 3 elements along reduction_dim, got (tensor<8x64xi32>, "
            f"tensor<8x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<8x4xi32>, tensor<8x4xi32>); {FIX}10)",
        ),
        (
            approx(shape="7x3"),
            "custom_call @ApproxTopK: operands, scalars and results must fit, apart from reduction_dim, got "
            "(tensor<8x64xi32>, tensor<8x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<7x3xi32>, tensor<7x3xi32>); "
            f"{FIX}10)",
        ),
        (
            approx().replace("reduction_dim = ", "dim = "),
            "custom_call @ApproxTopK: mhlo.backend_config must have the integer reduction_dim, got none; "
            f"{FIX}10)",
        ),
        (
            TOP_K.format(largest="true", k=2),
            "custom_call @mhlo.topk: results must be the k = 3 elements of each row, and int32 places, got "
            f"(tensor<4x16xf32>) -> (tensor<4x2xf32>, tensor<4x3xi32>); {FIX}2)",
        ),
    ],
)  # fmt: skip
def test_calls_that_do_not_fit_are_errors(text: str, message: str) -> None:
    with pytest.raises(sw.ShapeError) as refused:
        sw.parse(text, "f.mlir").compile()
    assert str(refused.value) == message
