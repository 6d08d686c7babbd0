# SPDX-License-Identifier: Apache-2.0
"""Convolutions of texts: reversed windows, wider results, dynamic_conv; and which dims stay sharded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardwise import _core
from tests.op.convolution_references import convolution
from tests.support.partitioned import execute, same_bits

MESH = _core.mesh.Mesh("mesh", [("x", 4)])
RNG = np.random.default_rng(4)
NUMBERS = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"


def text(window: str, lhs: str, rhs: str, result: str, features: int = 1, sharding: str = "") -> str:
    return f"""sdy.mesh @mesh = <["x"=4]>
func.func public @main(%x: tensor<{lhs}> {sharding}, %w: tensor<{rhs}>) -> tensor<{result}> {{
  %0 = stablehlo.convolution(%x, %w) dim_numbers = {NUMBERS}, window = {{{window}}}
    {{batch_group_count = 1 : i64, feature_group_count = {features} : i64}}
    : (tensor<{lhs}>, tensor<{rhs}>) -> tensor<{result}>
  return %0 : tensor<{result}>
}}"""


def run(program: str, *arrays: Any) -> Any:
    module = _core.ir.parse(program)
    once, faithful = execute(_core.passes.compile(module, module.mesh), arrays)
    assert same_bits(once[0], faithful[0])
    return once[0]


@pytest.mark.parametrize("reverse", [(True, False), (False, True), (True, True)])
def test_reversed_windows(reverse: tuple[bool, bool]) -> None:
    x, w = RNG.normal(size=(2, 5, 6, 2)), RNG.normal(size=(3, 2, 2, 3))
    flags = ", ".join(str(flag).lower() for flag in reverse)
    window = f"stride = [2, 1], pad = [[1, 1], [0, 2]], rhs_dilate = [1, 2], reverse = [{flags}]"
    found = run(text(window, "2x5x6x2xf64", "3x2x2x3xf64", "2x3x6x3xf64"), x, w)
    want = convolution(x, w, NUMBERS, (2, 1), ((1, 1), (0, 2)), (1, 1), (1, 2), reverse=reverse)
    np.testing.assert_allclose(found, want.astype(np.float64), rtol=1e-13, atol=1e-13)


def test_sums_of_bytes_in_int32_and_of_bools() -> None:
    x, w = RNG.integers(-128, 128, (1, 4, 4, 8)).astype(np.int8), RNG.integers(-128, 128, (2, 2, 8, 2)).astype(np.int8)
    found = run(text("", "1x4x4x8xi8", "2x2x8x2xi8", "1x3x3x2xi32"), x, w)
    ones = ((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))
    np.testing.assert_array_equal(found, convolution(x.astype(np.int32), w.astype(np.int32), NUMBERS, *ones))
    x, w = x > 100, w > 60
    found = run(text("", "1x4x4x8xi1", "2x2x8x2xi1", "1x3x3x2xi1"), x, w)
    np.testing.assert_array_equal(found, convolution(x.astype(np.int32), w.astype(np.int32), NUMBERS, *ones) > 0)


@pytest.mark.parametrize(
    ("dims", "window", "shapes", "kinds"),
    [
        ('{"x"}, {}, {}, {}', "", ("4x6x6x3", "3x3x3x8", "4x4x4x8"), []),
        ('{}, {"x"}, {}, {}', "stride = [2, 2]", ("2x8x6x3", "2x2x3x4", "2x4x3x4"), []),  # each block its windows
        ('{}, {"x"}, {}, {}', "pad = [[1, 1], [1, 1]]", ("2x8x6x3", "3x3x3x4", "2x8x6x4"), ["exchange"]),
        ('{}, {}, {}, {"x"}', "", ("2x6x6x8", "3x3x8x3", "2x4x4x3"), ["all_reduce"]),
    ],
)
def test_what_a_convolution_keeps_sharded(dims: str, window: str, shapes: tuple[str, str, str], kinds: Any) -> None:
    held = f"{{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"
    program = text(window, *(f"{shape}xf32" for shape in shapes), sharding=held)
    module = _core.ir.parse(program)
    found = _core.passes.compile(module, module.mesh)
    assert [row["kind"] for row in found.collectives()] == kinds
    # Their sums are exact: BLAS may take the rows of one device in another order than those of all devices together.
    x, w = (RNG.integers(-9, 10, [int(n) for n in shape.split("x")]).astype(np.float32) for shape in shapes[:2])
    whole = run(text(window, *(f"{shape}xf32" for shape in shapes)), x, w)
    np.testing.assert_allclose(run(program, x, w), whole, rtol=1e-4, atol=1e-4)


def test_a_dynamic_convolution_with_constant_padding_runs() -> None:
    program = """func.func public @main(%x: tensor<1x6x1xf32>, %w: tensor<2x1x1xf32>) -> tensor<1x7x1xf32> {
      %p = stablehlo.constant dense<1> : tensor<1x2xi64>
      %0 = "stablehlo.dynamic_conv"(%x, %w, %p) <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
        feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
        : (tensor<1x6x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>) -> tensor<1x7x1xf32>
      return %0 : tensor<1x7x1xf32>
    }"""
    x, w = RNG.normal(size=(1, 6, 1)).astype(np.float32), RNG.normal(size=(2, 1, 1)).astype(np.float32)
    found = _core.passes.compile(_core.ir.parse(program), MESH)
    want = np.correlate(np.pad(x.ravel(), 1), w.ravel(), "valid")
    np.testing.assert_allclose(execute(found, [x, w])[0][0].ravel(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_complex_convolutions(dtype: str, groups: int) -> None:
    def drawn(*shape: int) -> Any:
        return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)

    x, w = drawn(2, 5, 4, 4), drawn(2, 3, 4 // groups, 8)
    part = "f32" if dtype == "complex64" else "f64"
    shapes = [f"{shape}xcomplex<{part}>" for shape in ("2x5x4x4", f"2x3x{4 // groups}x8", "2x4x2x8")]
    found = run(text("", *shapes, features=groups), x, w)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(1, 2))  # b, y, x, f, tap, tap
    parts = zip(np.split(windows, groups, axis=3), np.split(w, groups, axis=3))
    want = np.concatenate([np.einsum("byxikl,klio->byxo", seen, kernel) for seen, kernel in parts], axis=3)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
def test_a_convolution_of_narrow_integers_wraps(dtype: str) -> None:
    kept = 15 if dtype.endswith("4") else 3
    x, w = (RNG.integers(0, kept + 1, shape).astype(np.uint8).astype(dtype) for shape in ((1, 4, 4, 6), (2, 2, 6, 2)))
    name = dtype.replace("uint", "ui").replace("int", "i")
    found = run(text("", f"1x4x4x6x{name}", f"2x2x6x2x{name}", f"1x3x3x2x{name}"), x, w)
    ones = ((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))
    want = convolution(x.astype(np.int64), w.astype(np.int64), NUMBERS, *ones)
    assert same_bits(found, want.astype(np.int8).astype(dtype))


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float32"])
def test_a_convolution_of_each_feature_alone(dtype: str, each: int) -> None:
    """The numbers of outputs of a feature; products of integers wrap."""
    high = 10 if dtype == "float32" else int(np.iinfo(dtype).max)
    x, w = (RNG.integers(0, high, shape).astype(dtype) for shape in ((2, 5, 4, 7), (2, 3, 1, 7 * each)))
    name = {"uint8": "ui8", "uint16": "ui16", "int32": "i32", "float32": "f32"}[dtype]
    found = run(text("", f"2x5x4x7x{name}", f"2x3x1x{7 * each}x{name}", f"2x4x2x{7 * each}x{name}", features=7), x, w)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), (2, 3), axis=(1, 2))
    kernel = w.astype(np.int64).reshape(2, 3, 7, each)
    with np.errstate(over="ignore"):
        want = np.einsum("byxfkl,klfo->byxfo", windows, kernel).reshape(2, 4, 2, 7 * each).astype(dtype)
    assert same_bits(found, want)


def test_a_method_is_found_for_a_dim_of_several_factors() -> None:
    """The group is known only from dims that have other factors too; windows cross shards along "x"."""
    body = """{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [f, b, 0]x[0, o, i]->[b, 0, f], window = {stride = [2],
        pad = [[-1, 0]]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
        : (tensor<2x6x5xf32>, tensor<2x4x2xf32>) -> tensor<3x2x4xf32>
      return %0 : tensor<3x2x4xf32>
    }"""
    arguments = [("2x6x5", '{}, {"z"}, {"x"}'), ("2x4x2", '{"z"}, {}, {"x"}')]
    held = [f"tensor<{shape}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}" for shape, dims in arguments]
    program = f"""sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
    func.func public @main(%x: {held[0]}, %w: {held[1]})
        -> (tensor<3x2x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"z"}}, {{}}, {{"x"}}]>}}) {body}"""
    whole = f"func.func public @main(%x: tensor<2x6x5xf32>, %w: tensor<2x4x2xf32>) -> tensor<3x2x4xf32> {body}"
    x, w = RNG.normal(size=(2, 6, 5)).astype(np.float32), RNG.normal(size=(2, 4, 2)).astype(np.float32)
    want = execute(_core.passes.compile(_core.ir.parse(whole), MESH), [x, w])[0][0]
    np.testing.assert_allclose(run(program, x, w), want, rtol=1e-5, atol=1e-5)
