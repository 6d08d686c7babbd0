# SPDX-License-Identifier: Apache-2.0
"""dot_general's algorithm: what each one rounds, takes apart and adds, against NumPy; the rest is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from tests.conformance.shardy.client import ShardyOracle
from tests.support.partitioned import execute

MESH = _core.mesh.Mesh("mesh", [("x", 2)])
Split = Callable[[np.ndarray], list[np.ndarray]]


def program(
    precision: str, accumulation: str, products: int = 1, *, dtype: str = "f32", result: str = "f32",
    imprecise: str = "false", extra: str = "", sharding: str = "",
) -> str:  # fmt: skip
    return f"""module {{
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%arg0: tensor<5x64x{dtype}>{sharding}, %arg1: tensor<64x7x{dtype}>) -> tensor<5x7x{result}> {{
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]{extra}, algorithm = <lhs_precision_type = \
{precision}, rhs_precision_type = {precision}, accumulation_type = {accumulation}, lhs_component_count = 1, \
rhs_component_count = 1, num_primitive_operations = {products}, allow_imprecise_accumulation = {imprecise}> : \
(tensor<5x64x{dtype}>, tensor<64x7x{dtype}>) -> tensor<5x7x{result}>
    return %0 : tensor<5x7x{result}>
  }}
}}
"""


def run(text: str, *args: np.ndarray) -> np.ndarray:
    (found,) = execute(_core.passes.compile(sw.parse(text)._core, MESH), list(args))[0]
    return np.asarray(found)


def bfloat16(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


def float16(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16).astype(np.float32)


def tfloat32(x: np.ndarray) -> np.ndarray:
    """10 bits of mantissa, ties to even."""
    mantissa, exponent = np.frexp(x.astype(np.float64))
    return np.ldexp(np.rint(mantissa * 2**11), exponent - 11).astype(np.float32)


def parts(x: np.ndarray, rounded: Callable[[np.ndarray], np.ndarray], count: int) -> list[np.ndarray]:
    found = []
    for _ in range(count):
        found.append(rounded(x))
        x = x - found[-1]
    return found


def inputs(scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return tuple((rng.normal(size=shape) * scale).astype(np.float32) for shape in ((5, 64), (64, 7)))  # type: ignore[return-value]


ALGORITHMS = [
    ("f32", 1, lambda x: x, 1, 24),
    ("bf16", 1, bfloat16, 1, 8),
    ("f16", 1, float16, 1, 11),
    ("tf32", 1, tfloat32, 1, 11),
    ("bf16", 3, bfloat16, 2, 15),
    ("tf32", 3, tfloat32, 2, 20),
    ("bf16", 6, bfloat16, 3, 21),
    ("bf16", 9, bfloat16, 3, 22),
]


@pytest.mark.parametrize(("precision", "products", "rounded", "count", "bits"), ALGORITHMS)
def test_an_algorithm_rounds_and_adds_as_it_says(
    precision: str, products: int, rounded: Callable[[np.ndarray], np.ndarray], count: int, bits: int
) -> None:
    x, y = inputs()
    found = run(program(precision, "f32", products), x, y)
    assert found.dtype == np.float32
    lhs, rhs = parts(x, rounded, count), parts(y, rounded, count)
    kept = {1: 0, 3: 1, 6: 2, 9: 4}[products]
    pairs = [(i, j) for i in range(count) for j in range(count) if i + j <= kept]
    assert len(pairs) == products
    expected = sum(lhs[i].astype(np.float64) @ rhs[j].astype(np.float64) for i, j in pairs)
    terms = np.abs(x).astype(np.float64) @ np.abs(y)
    np.testing.assert_array_less(np.abs(found - expected), 8 * 2.0**-24 * terms)
    # The error is as small as the algorithm promises, and not smaller: the operands really are rounded.
    exact = x.astype(np.float64) @ y
    worst = float((np.abs(found - exact) / terms).max())
    assert worst < 2.0 ** (1 - bits)
    assert bits > 20 or worst > 2.0 ** (-bits - 5)


def test_the_default_is_the_algorithm_of_the_dtype() -> None:
    x, y = inputs()
    with_algorithm = program("f32", "f32")
    without = re.sub(r", algorithm = <.*?>", "", with_algorithm)
    assert "algorithm" not in without
    np.testing.assert_array_equal(run(with_algorithm, x, y), run(without, x, y))
    wide = [a.astype(np.float64) for a in (x, y)]
    options = {"dtype": "f64", "result": "f64"}
    np.testing.assert_array_equal(run(program("f64", "f64", **options), *wide), wide[0] @ wide[1])
    narrowed = run(program("f32", "f32", **options), *wide)
    assert narrowed.dtype == np.float64
    np.testing.assert_array_equal(narrowed, run(with_algorithm, x, y))


def test_narrow_operands_are_not_rounded_again() -> None:
    x, y = (a.astype(ml_dtypes.bfloat16) for a in inputs())
    found = run(program("bf16", "f32", dtype="bf16"), x, y)
    np.testing.assert_array_equal(found, run(program("f32", "f32"), *(a.astype(np.float32) for a in (x, y))))


@pytest.mark.parametrize(("precision", "products"), [("bf16", 3), ("bf16", 6), ("bf16", 9), ("tf32", 3)])
def test_infinities_and_nans_stay_what_they_are(precision: str, products: int) -> None:
    x, y = inputs()
    x[0, 0], x[1, 1], x[2, 2], x[2, 3] = np.inf, np.nan, np.inf, -np.inf
    y[0], y[2], y[3] = -1.0039, 2.0, 2.0
    x[3, 0] = 3.4e38  # rounds up to an infinity
    y[0, 6] = 0
    found = run(program(precision, "f32", products), x, y)
    np.testing.assert_array_equal(found[0], [-np.inf] * 6 + [np.nan])
    assert np.isnan(found[1:3]).all()
    assert np.isneginf(found[3, :6]).all() or np.isfinite(found[3, :6]).all()
    assert np.isfinite(found[3, 6])
    assert np.isfinite(found[4]).all()


@pytest.mark.parametrize("axes", ['[{"x"}, {}]', '[{}, {"x"}]'])
@pytest.mark.parametrize("products", [1, 3, 9])
def test_an_algorithm_is_partitioned(axes: str, products: int) -> None:
    x, y = inputs()
    sharding = f" {{sdy.sharding = #sdy.sharding<@mesh, {axes}>}}"
    whole = run(program("bf16", "f32", products), x, y)
    found = run(program("bf16", "f32", products, sharding=sharding), x, y)
    np.testing.assert_allclose(found, whole, rtol=0, atol=float(8 * 2.0**-24 * (np.abs(x) @ np.abs(y)).max()))


def test_the_text_of_an_algorithm_reads_and_prints_back(shardy: ShardyOracle) -> None:
    text = program("bf16", "f32", 3)
    module = sw.parse(text)
    assert str(module) == text
    assert shardy.parse(module.as_text(generic=True)) == shardy.parse(text)


REFUSED = [
    (program("f16", "f16"), "lhs_precision_type = f16"),
    (program("bf16", "bf16"), "lhs_precision_type = bf16"),
    (program("bf16", "f32", 2), "num_primitive_operations = 2"),
    (program("f8E5M2", "f32"), "lhs_precision_type = f8E5M2"),
    (program("f8E5M2", "f32", imprecise="true"), "allow_imprecise_accumulation = true"),
]


@pytest.mark.parametrize(("text", "given"), REFUSED, ids=[given for _, given in REFUSED])
def test_what_no_kernel_computes_is_refused_when_it_is_compiled(text: str, given: str) -> None:
    module = sw.parse(text)
    assert given in str(module.propagate())
    with pytest.raises(sw.UnsupportedError) as caught:
        _core.passes.compile(module._core, MESH)
    message = str(caught.value)
    assert message.startswith(
        "stablehlo.dot_general: an algorithm that runs must be one of f16_f16_f32, bf16_bf16_f32 (also x3, x6, x9), "
        "tf32_tf32_f32 (also x3), f32_f32_f32 and f64_f64_f64, got #stablehlo.dot_algorithm<"
    ), message
    assert given in message
    assert "; leave it out, or use one of these" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (program("tf32", "f32", dtype="f64"),
         "this algorithm is for operands of at most 32 bits, got f64 for #stablehlo.dot_algorithm<"),
        (program("f32", "f32", dtype="i32", result="i32"),
         "an algorithm is for products of floats, got i32 to i32; leave it out"),
    ],
)  # fmt: skip
def test_operands_that_an_algorithm_does_not_take(text: str, message: str) -> None:
    with pytest.raises(sw.UnsupportedError) as caught:
        _core.passes.compile(sw.parse(text)._core, MESH)
    assert str(caught.value).startswith(f"stablehlo.dot_general: {message}")


def test_a_precision_beside_an_algorithm_must_be_the_default(shardy: ShardyOracle) -> None:
    shardy.parse(program("bf16", "f32", 3, extra=", precision = [DEFAULT, DEFAULT]"))
    sw.parse(program("bf16", "f32", 3, extra=", precision = [DEFAULT, DEFAULT]"))
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(program("bf16", "f32", 3, extra=", precision = [DEFAULT, HIGHEST]"))
    assert re.sub(r"( \(at [^)]+\))+$", "", str(caught.value)) == (
        "4:10: stablehlo.dot_general: the precision must be DEFAULT where an algorithm is given, got HIGHEST; "
        "leave one of them out"
    )


@pytest.mark.parametrize("precision", ["DEFAULT", "HIGH", "HIGHEST"])
def test_a_precision_is_at_least_that_of_the_dtype(precision: str) -> None:
    x, y = inputs()
    text = re.sub(r", algorithm = <.*?>", f", precision = [{precision}, {precision}]", program("f32", "f32"))
    np.testing.assert_array_equal(run(text, x, y), run(program("f32", "f32"), x, y))
