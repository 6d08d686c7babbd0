# SPDX-License-Identifier: Apache-2.0
"""Reductions of every dtype in a program for JAX give the numbers of the virtual mesh, with NaN and signs of zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.dtypes import numpy_dtype
from shardwise.interop.comparison import compiled_texts, sent
from shardwise.interop.hlo import collectives_of
from tests.interop.process.export_checks import run
from tests.support.exports import exports
from tests.support.partitioned import same_values
from tests.support.run_seed import in_turn

BYTES = ("float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e4m3fn",
         "float8_e4m3", "float8_e3m4", "float4_e2m1fn")  # fmt: skip
FLOATS = (*BYTES, "float16", "bfloat16", "float32", "float64")
INTEGERS = ("int2", "uint2", "int4", "uint4", "int8", "uint16", "bool")
MESH = sw.Mesh({"x": 8})
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: x.max(0),
    "min": lambda x: x.min(0),
    "max in parts": lambda x: sw.shard(x.max(0), P("x")),
    "min in parts": lambda x: sw.shard(x.min(0), P("x")),
    "argmax": lambda x: np.argmax(x, 0),
    "argmin": lambda x: np.argmin(x, 0),
    "sum": lambda x: x.sum(0),
    "sum in parts": lambda x: sw.shard(x.sum(0), P("x")),
    "product": lambda x: x.prod(0),
    "running maximum": lambda x: np.maximum.accumulate(x, 0),
    "running sum": lambda x: np.cumsum(x, 0),
    "sort": lambda x: np.sort(x, 0),
}


def numbers(name: str) -> np.ndarray:
    """Few numbers, exact in each dtype: NaN and both zeros where it has them, and its least number."""
    dtype = numpy_dtype(name)
    x = np.random.default_rng(3).integers(0, 4, (16, 8)).astype(np.float32)
    if name == "float8_e8m0fnu":
        x = np.float32(2) ** x
    elif name in FLOATS:
        x -= np.float32(1.5)
        x[:, 2], x[:, 3] = [-0.0] * 8 + [0.0] * 8, -0.0
    if name in FLOATS and name != "float4_e2m1fn":
        x[5, 0] = np.nan
    return x.astype(dtype)


def every_float(name: str) -> np.ndarray:
    """All values of a dtype of at most a byte, each in one of 8 rows or more."""
    count = 2 ** int(ml_dtypes.finfo(numpy_dtype(name)).bits)
    bits = np.random.default_rng(5).permuted(np.tile(np.arange(count, dtype=np.uint8), (16, 1)), axis=1)
    return bits.view(numpy_dtype(name))


def compare(functions: dict[str, Callable[[Any], Any]], x: np.ndarray) -> None:
    """All results of one program in JAX and on the virtual mesh."""
    both = sw.jit(lambda x: [function(x) for function in functions.values()], mesh=MESH, in_shardings=(P("x"),))
    program = both.lower(x).compile()
    handed = program.to_jax()
    for what, got, want in zip(functions, handed.get(handed(x)), program(x), strict=True):
        assert same_values(got, np.asarray(want)), f"{what}\n{got}\n{want}"


each_dtype = pytest.mark.parametrize("name", in_turn([*FLOATS, *INTEGERS]))


@each_dtype
def test_reductions_over_devices(name: str) -> None:
    compare(REDUCTIONS, numbers(name))


def test_zeros_of_float16_beside_another_reduction() -> None:
    """XLA:CPU returned 0.0 for the minimum of both zeros where it had transposed the elements for an argmin."""
    names = ("max", "min", "argmax", "argmin", "running maximum")
    for what in (("min", "argmin"), ("max", "argmax"), names):
        compare({name: REDUCTIONS[name] for name in what}, numbers("float16"))


@pytest.mark.parametrize("name", in_turn(BYTES))
def test_extremes_of_all_values(name: str) -> None:
    """float8_e8m0fnu has no sign and no zero; NaN of the fnuz formats is the pattern of -0."""
    left_out = ("sum", "sum in parts", "product", "running sum")
    functions = {what: function for what, function in REDUCTIONS.items() if what not in left_out}
    functions["maximum"], functions["minimum"] = lambda x: np.maximum(x[:1], x), lambda x: np.minimum(x[:1], x)
    compare(functions, every_float(name))


@pytest.mark.parametrize("name", ["float8_e8m0fnu", "float4_e2m1fn", "int2"])
def test_narrow_reductions_send_the_bytes_of_the_ledger(name: str) -> None:
    x = numbers(name)
    for what in ("max", "min in parts", "sum", "sum in parts"):
        program = sw.jit(REDUCTIONS[what], mesh=MESH, in_shardings=(P("x"),)).lower(x).compile()
        function = program.to_jax()
        ledger = function.collectives()
        assert sent(collectives_of(compiled_texts(function.lower())[0])) == sent(ledger), what
        assert ledger.total_bytes == program.collectives().total_bytes, what


@pytest.mark.parametrize("name", ["float8_e8m0fnu", "float8_e5m2fnuz", "float4_e2m1fn", "int2"])
@exports
def test_exported_text_of_narrow_reductions(name: str) -> None:
    x = numbers(name)
    program = sw.jit(lambda x: (x.max(0), x.min(0)), mesh=MESH, in_shardings=(P("x"),)).lower(x).compile()
    for got, want in zip(run(program.as_text("export"), program.to_jax(), (x,)), program(x), strict=True):
        assert same_values(got, np.asarray(want))


TYPES = {
    "float8_e8m0fnu": "f8E8M0FNU", "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2",
    "float8_e3m4": "f8E3M4", "float4_e2m1fn": "f4E2M1FN",
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_a_total_order_of_all_values(name: str) -> None:
    values = np.sort(every_float(name)[0].view(np.uint8)).view(numpy_dtype(name))
    x, y = map(np.ascontiguousarray, np.meshgrid(values, values, indexing="ij"))
    kind = f"tensor<{len(x)}x{len(x)}x{TYPES[name]}>"
    program = sw.parse(f"""
sdy.mesh @mesh = <["x"=1]>
func.func @main(%x: {kind}, %y: {kind}) -> tensor<{len(x)}x{len(x)}xi1> {{
  %r = stablehlo.compare LT, %x, %y, TOTALORDER : ({kind}, {kind}) -> tensor<{len(x)}x{len(x)}xi1>
  return %r : tensor<{len(x)}x{len(x)}xi1>
}}""").compile()
    function = program.to_jax()
    np.testing.assert_array_equal(function.get(function(x, y)), np.asarray(program(x, y)))


def test_a_region_on_integers_of_less_than_a_byte_is_refused() -> None:
    """XLA has no reduction of int2; a region may add to one, which int8 would not wrap."""
    program = sw.parse("""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<8x4xi2> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<4xi2> {
  %zero = stablehlo.constant dense<0> : tensor<i2>
  %r = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<i2>, %b: tensor<i2>):
    %c = stablehlo.add %a, %b : tensor<i2>
    %d = stablehlo.add %c, %c : tensor<i2>
    stablehlo.return %d : tensor<i2>
  }) : (tensor<8x4xi2>, tensor<i2>) -> tensor<4xi2>
  return %r : tensor<4xi2>
}""").compile()
    rule = "to_jax: a reduction of integers of less than a byte must apply one op, or choose one of its arguments"
    with pytest.raises(sw.UnsupportedError, match=rule):
        program.to_jax()


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64", "complex64"])
def test_parts_of_real_and_complex_numbers(name: str) -> None:
    """StableHLO has parts of real numbers, which JAX's functions refuse."""
    x = np.arange(-4, 4).astype(numpy_dtype(name)) * (1 + 2j if name == "complex64" else 1)
    x = x.astype(numpy_dtype(name))
    mlir = {"bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "complex<f32>"}[name]
    kind, part = f"tensor<8x{mlir}>", f"tensor<8x{'f32' if name == 'complex64' else mlir}>"
    program = sw.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: {kind} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> ({part}, {part}) {{
  %r = stablehlo.real %x : ({kind}) -> {part}
  %i = stablehlo.imag %x : ({kind}) -> {part}
  return %r, %i : {part}, {part}
}}""").compile()
    function = program.to_jax()
    for got, want in zip(function.get(function(x)), (x.real, x.imag), strict=True):
        assert same_values(got, want)


@each_dtype
def test_scripts_for_mpi4py_give_the_numbers(name: str) -> None:
    """On one rank; NumPy may take either zero for a maximum or a minimum."""
    x = numbers(name)
    functions = {what: f for what, f in REDUCTIONS.items() if name != "float8_e8m0fnu" or "sum" not in what}
    program = sw.jit(lambda x: [f(x) for f in functions.values()], mesh=sw.Mesh({"x": 1})).lower(x).compile()
    script: dict[str, Any] = {"__name__": "script"}
    exec(program.to_source("mpi4py"), script)
    for what, got, want in zip(functions, script["main"](x), program(x), strict=True):
        assert got.dtype == want.dtype, what
        found, expected = (np.asarray(y).astype(np.float64) for y in (got, want))
        limit = 1e-6 if name in ("float32", "float64") else 0
        np.testing.assert_allclose(found, expected, rtol=limit, atol=0, err_msg=what)
