# SPDX-License-Identifier: Apache-2.0
"""`simplify` folds movements: shardings and bytes do not depend on their spelling, and results keep their bits."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.support.example_programs import EXAMPLES, traced_example

IDS = {
    "reshape": "%i = stablehlo.reshape %t : (tensor<16x64xi32>) -> tensor<16x64x1xi32>",
    "broadcast": "%i = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<16x64xi32>) -> tensor<16x64x1xi32>",
    "transpose": """%b = stablehlo.broadcast_in_dim %t, dims = [1, 2] : (tensor<16x64xi32>) -> tensor<1x16x64xi32>
  %i = stablehlo.transpose %b, dims = [1, 2, 0] : (tensor<1x16x64xi32>) -> tensor<16x64x1xi32>""",
}
GATHER = """"stablehlo.gather"(%e, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 64>}>"""


@pytest.mark.parametrize("spelling", IDS)
def test_a_lookup_keeps_the_batch_however_its_ids_are_spelled(spelling: str) -> None:
    """Table, weights and tokens are split over one axis. The weights are gathered, and the batch stays split."""
    split = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    text = f"""sdy.mesh @mesh = <["x"=8]>
func.func @main(%e: tensor<512x64xf32>, %w: tensor<64x256xf32> {split}, %t: tensor<16x64xi32> {split})
    -> tensor<16x64x256xf32> {{
  {IDS[spelling]}
  %x = {GATHER} : (tensor<512x64xf32>, tensor<16x64x1xi32>) -> tensor<16x64x64xf32>
  %h = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0]
      : (tensor<16x64x64xf32>, tensor<64x256xf32>) -> tensor<16x64x256xf32>
  return %h : tensor<16x64x256xf32>
}}"""
    program = sw.parse(text).compile()
    assert program.output_shardings.spec == P("x", None, None)
    assert program.collectives().total_bytes == 64 * 256 * 4 * 7 / 8


def test_a_loop_gathers_a_weight_once_that_it_multiplies_transposed() -> None:
    def scanned(w: np.ndarray, xs: np.ndarray) -> np.ndarray:
        def body(total: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, None]:
            return total + np.sum(sw.shard(x @ w.T, P("x")) ** 2), None

        return sw.scan(body, np.float32(0), xs)[0]

    shapes = sw.ShapeDtypeStruct((256, 64), np.float32), sw.ShapeDtypeStruct((8, 1024, 64), np.float32)
    jitted = sw.jit(scanned, mesh=sw.Mesh({"x": 8}), in_shardings=(P("x"), P(None, "x")))
    gathers = [row for row in jitted.lower(*shapes).compile().collectives() if row.kind == "all_gather"]
    assert [(row.count, row.bytes) for row in gathers] == [(1, 256 * 64 * 4 * 7 // 8)]


@pytest.mark.parametrize("rows", [33, 1])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_a_product_with_a_transpose_keeps_its_bits(rows: int, dtype: str) -> None:
    """The barrier of the other program keeps the transpose."""
    text = f"""func.func @main(%x: tensor<{rows}x700x{dtype}>, %w: tensor<20x700x{dtype}>)
    -> tensor<{rows}x20x{dtype}> {{
  %1 = stablehlo.transpose %w, dims = [1, 0] : (tensor<20x700x{dtype}>) -> tensor<700x20x{dtype}>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0]
      : (tensor<{rows}x700x{dtype}>, tensor<700x20x{dtype}>) -> tensor<{rows}x20x{dtype}>
  return %2 : tensor<{rows}x20x{dtype}>
}}"""
    folded = sw.parse(text).compile()
    barrier = f"  %b = stablehlo.optimization_barrier %1 : tensor<700x20x{dtype}>\n"
    kept = sw.parse(text.replace("  %2", f"{barrier}  %2").replace("%x, %1", "%x, %b")).compile()
    assert ("transpose" in kept.as_text(), "transpose" in folded.as_text()) == (True, False)
    rng = np.random.default_rng(3)
    numbers = {"f32": np.float32, "f64": np.float64, "bf16": sw.bfloat16}[dtype]
    arguments = [rng.standard_normal(shape).astype(numbers) for shape in ((rows, 700), (20, 700))]
    assert np.asarray(folded(*arguments)).tobytes() == np.asarray(kept(*arguments)).tobytes()


@pytest.mark.parametrize("name", EXAMPLES)
def test_gradients_have_one_form_of_each_movement(name: str) -> None:
    text = traced_example(name).lower().compile().as_text("global")
    assert str(sw.parse(text).apply("simplify")) == str(sw.parse(text))


def test_values_in_another_form_keep_their_names_and_lines() -> None:
    def column(x: np.ndarray) -> np.ndarray:
        x = sw.split(x, 0, "x")
        turned = np.transpose(x[:, None], (1, 0))
        return turned + 1

    program = sw.jit(column, mesh=sw.Mesh({"x": 2})).lower(np.ones(8, np.float32)).compile()
    assert "transpose" not in program.as_text("global")
    explained = str(program.why("turned"))
    assert explained.startswith("turned (")
    assert "test_folded_movements.py" in explained
    assert '[{}, {"x"}]' in explained


def test_why_says_that_a_named_transpose_was_replaced() -> None:
    def product(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        turned = w.T
        return x @ turned

    lowered = sw.jit(product, mesh=sw.Mesh({"x": 2})).lower(np.ones((2, 4), np.float32), np.ones((3, 4), np.float32))
    with pytest.raises(KeyError, match="'turned' is not in the propagated program"):
        lowered.compile().why("turned")
    assert str(lowered.why("turned")).startswith("turned (")
