# SPDX-License-Identifier: Apache-2.0
"""Constants of dtypes without kernels keep every bit from text to text, and jaxlib reads them as it reads the first."""

from __future__ import annotations

import random

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from shardwise.dtypes import numpy_dtype
from tests.conformance.shardy.client import ShardyOracle

NARROW = {
    "i2": 2, "i4": 4, "ui2": 2, "ui4": 4, "f4E2M1FN": 4, "f6E2M3FN": 6, "f6E3M2FN": 6, "f8E3M4": 8, "f8E4M3": 8,
    "f8E4M3B11FNUZ": 8, "f8E4M3FN": 8, "f8E4M3FNUZ": 8, "f8E5M2": 8, "f8E5M2FNUZ": 8, "f8E8M0FNU": 8,
}  # fmt: skip


def program(*constants: str) -> str:
    lines = [f"  %{i} = stablehlo.constant {text}" for i, text in enumerate(constants)]
    return "func.func public @main() {\n" + "\n".join(lines) + "\n  return\n}\n"


def raw(data: bytes) -> str:
    return f'"0x{data.hex().upper()}"'


def check_round_trip(oracle: ShardyOracle, text: str) -> str:
    printed = str(sw.parse(text))
    assert str(sw.parse(printed)) == printed
    assert oracle.parse(printed) == oracle.parse(text)
    return printed


@pytest.mark.parametrize("dtype", NARROW)
def test_every_bit_pattern_of_a_narrow_dtype_is_kept(shardy: ShardyOracle, dtype: str) -> None:
    patterns = bytes(range(2 ** NARROW[dtype]))
    chunks = [patterns[i : i + 64] for i in range(0, len(patterns), 64)]
    listed = program(*(f"dense<{raw(chunk)}> : tensor<{len(chunk)}x{dtype}>" for chunk in chunks))
    assert '"0x' not in check_round_trip(shardy, listed)
    check_round_trip(shardy, program(f"dense<{raw(patterns * 128)}> : tensor<{len(patterns) * 128}x{dtype}>"))


@pytest.mark.parametrize("part", ["f32", "f64"])
def test_complex_constants_are_kept(shardy: ShardyOracle, part: str) -> None:
    rng = random.Random(part)
    size = 8 if part == "f32" else 16
    few, many = (f"dense<{raw(rng.randbytes(n * size))}> : tensor<{n}xcomplex<{part}>>" for n in (7, 300))
    listed = f"dense<[[(1.0,-2.5)], [(0.1,-0.0)]]> : tensor<2x1xcomplex<{part}>>"
    splat = f"dense<(1.0,2.0)> : tensor<4xcomplex<{part}>>"
    printed = check_round_trip(shardy, program(few, many, listed, splat, f"dense<> : tensor<0xcomplex<{part}>>"))
    assert "dense<(1.000000e+00,2.000000e+00)>" in printed


@pytest.mark.parametrize(
    "attribute",
    ["3 : ui8", "200 : ui8", "-1 : i8", "7 : index", "1.5 : f8E4M3FN", "0x7F : f8E4M3FN", "array<i32: 1, -2>",
     "array<i1: true, false>", "array<i8>", "dense<[1, 0]> : tensor<2xindex>", "dense<0> : tensor<1xindex>",
     "dense<> : tensor<0xindex>", "tensor<4xcomplex<f32>>", "-1.5 : bf16"],
)  # fmt: skip
def test_attributes_of_all_types_are_kept(shardy: ShardyOracle, attribute: str) -> None:
    config = f"mhlo.backend_config = {{a = {attribute}}}"
    call = f"%0 = stablehlo.custom_call @f(%a) {{{config}}} : (tensor<4xf32>) -> tensor<4xf32>"
    check_round_trip(shardy, f"func.func public @main(%a: tensor<4xf32>) {{\n  {call}\n  return\n}}\n")


def test_attributes_of_two_types_differ() -> None:
    def of(attribute: str) -> sw.Module:
        return sw.parse(
            "func.func public @main() {\n  stablehlo.custom_call @f() {a = " + attribute + "} : () -> ()\n  return\n}\n"
        )

    texts = ["3 : ui8", "3 : i8", "3 : index", "3", "array<i32: 3>", "array<i8: 3>", "dense<3> : tensor<1xindex>",
             "dense<3> : tensor<1xi64>"]  # fmt: skip
    assert len({str(of(text)) for text in texts}) == len(texts)
    for a in texts:
        for b in texts:
            assert (of(a) == of(b)) == (a == b)


def test_a_program_with_tokens_is_propagated() -> None:
    text = """sdy.mesh @m = <["x"=2]>
func.func public @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %t: !stablehlo.token)
    -> (tensor<4xf32>, !stablehlo.token) {
  %0 = stablehlo.after_all %t, %t : !stablehlo.token
  %1 = "stablehlo.send"(%x, %0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
    is_host_transfer = true}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  %2 = stablehlo.tanh %x : tensor<4xf32>
  return %2, %1 : tensor<4xf32>, !stablehlo.token
}"""
    propagated = _core.passes.run_passes(_core.ir.parse(text), ["propagate"])
    assert [str(s) for s in propagated.result_shardings] == ['<@m, [{"x"}]>', "<@m, []>"]
    assert str(sw.parse(propagated.text())) == propagated.text()


@pytest.mark.parametrize("dtype", ["complex<f32>", "i4", "f8E4M3FN", "ui2", "f8E8M0FNU"])
def test_values_of_every_kind_are_computed_with(dtype: str) -> None:
    value = "(1.0,0.0)" if "complex" in dtype else "1.0" if dtype.startswith("f") else "1"
    text = f"""func.func public @main(%x: tensor<4x{dtype}>) -> tensor<4x{dtype}> {{
  %0 = stablehlo.constant dense<{value}> : tensor<4x{dtype}>
  %1 = stablehlo.add %x, %0 : tensor<4x{dtype}>
  %2 = stablehlo.reshape %1 : (tensor<4x{dtype}>) -> tensor<2x2x{dtype}>
  %3 = stablehlo.reshape %2 : (tensor<2x2x{dtype}>) -> tensor<4x{dtype}>
  return %3 : tensor<4x{dtype}>
}}"""
    module = _core.ir.parse(text)
    assert _core.passes.run_passes(module, ["simplify", "propagate"]).text()
    program = sw.parse(text).compile(sw.Mesh({"x": 2}))
    x = np.full(4, 1, numpy_dtype(module.argument_types[0].dtype))
    assert np.asarray(program(x)).astype(np.complex64).tolist() == [2] * 4
