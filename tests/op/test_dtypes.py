# SPDX-License-Identifier: Apache-2.0
"""Every dtype is stored, moved and converted bit for bit; narrow numbers compute with one rounding per op."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from shardwise.dtypes import is_float, numpy_dtype
from tests.op.dtype_values import (
    ALL_DTYPES,
    COMPLEX,
    NARROW_FLOATS,
    NARROW_INTEGERS,
    Array,
    all_patterns,
    bits_of,
    mlir_name,
    random_bits,
    width_of,
)
from tests.support.partitioned import ONE_DEVICE, run

MESH = sw.Mesh({"x": 4, "y": 2})

# Every op that only moves elements, in a program whose arguments and results are split differently.
MOVEMENT = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(
    %a: tensor<7x4xT> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<7x4xT> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
    %p: tensor<7x4xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %i: tensor<3xi32>, %k: tensor<i32>
) -> (
    tensor<4x7xT> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    tensor<28xT> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}]>},
    tensor<7x4xT> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
    tensor<3x2xT>, tensor<9x5xT> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, tensor<14x4xT>, tensor<3x4xT>,
    tensor<2x4xT>, tensor<7x4xT>, tensor<7x4xT>, tensor<7x4xT>, tensor<2x7x4xT>, tensor<7x4xT>
) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<7x4xT>) -> tensor<4x7xT>
  %1 = stablehlo.reshape %a : (tensor<7x4xT>) -> tensor<28xT>
  %2 = stablehlo.reverse %a, dims = [0] : tensor<7x4xT>
  %3 = stablehlo.slice %a [1:7:2, 1:3] : (tensor<7x4xT>) -> tensor<3x2xT>
  %s = stablehlo.slice %b [0:1, 0:1] : (tensor<7x4xT>) -> tensor<1x1xT>
  %fill = stablehlo.reshape %s : (tensor<1x1xT>) -> tensor<T>
  %4 = stablehlo.pad %a, %fill, low = [1, 0], high = [1, 1], interior = [0, 0]
    : (tensor<7x4xT>, tensor<T>) -> tensor<9x5xT>
  %5 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<7x4xT>, tensor<7x4xT>) -> tensor<14x4xT>
  %ids = stablehlo.reshape %i : (tensor<3xi32>) -> tensor<3x1xi32>
  %6 = "stablehlo.gather"(%a, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
    : (tensor<7x4xT>, tensor<3x1xi32>) -> tensor<3x4xT>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %7 = stablehlo.dynamic_slice %a, %k, %zero, sizes = [2, 4]
    : (tensor<7x4xT>, tensor<i32>, tensor<i32>) -> tensor<2x4xT>
  %8 = stablehlo.dynamic_update_slice %b, %7, %k, %zero
    : (tensor<7x4xT>, tensor<2x4xT>, tensor<i32>, tensor<i32>) -> tensor<7x4xT>
  %9 = stablehlo.select %p, %a, %b : tensor<7x4xi1>, tensor<7x4xT>
  %10 = "stablehlo.scatter"(%b, %ids, %6) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%old: tensor<T>, %new: tensor<T>):
      stablehlo.return %new : tensor<T>
  }) : (tensor<7x4xT>, tensor<3x1xi32>, tensor<3x4xT>) -> tensor<7x4xT>
  %11 = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<7x4xT>) -> tensor<2x7x4xT>
  %12:3 = stablehlo.while(%n = %zero, %left = %a, %right = %b) : tensor<i32>, tensor<7x4xT>, tensor<7x4xT>
   cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %next, %right, %left : tensor<i32>, tensor<7x4xT>, tensor<7x4xT>
  }
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12#1
    : tensor<4x7xT>, tensor<28xT>, tensor<7x4xT>, tensor<3x2xT>, tensor<9x5xT>, tensor<14x4xT>, tensor<3x4xT>,
      tensor<2x4xT>, tensor<7x4xT>, tensor<7x4xT>, tensor<7x4xT>, tensor<2x7x4xT>, tensor<7x4xT>
}
"""


def moved(a: Array, b: Array, p: Array, i: Array, k: int) -> list[Array]:
    """What the program above gives, on arrays with one more dim: the bytes of an element."""
    padded = np.broadcast_to(b[0, 0], (9, 5, a.shape[-1])).copy()
    padded[1:8, :4] = a
    updated, scattered = b.copy(), b.copy()
    updated[k : k + 2] = a[k : k + 2]
    scattered[i] = a[i]
    return [
        a.transpose(1, 0, 2), a.reshape(28, -1), a[::-1], a[1:7:2, 1:3], padded, np.concatenate([a, b]), a[i],
        a[k : k + 2], updated, np.where(p[..., None], a, b), scattered, np.stack([a, a]), b,
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_movement_keeps_every_bit(dtype: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (random_bits((7, 4), dtype, rng) for _ in range(2))
    if dtype == "bool":
        a, b = a != 0, b != 0
    p, i, k = rng.integers(0, 2, (7, 4)) == 1, np.array([5, 0, 3], np.int32), np.int32(4)
    text = MOVEMENT.replace("xT>", f"x{mlir_name(dtype)}>").replace("<T>", f"<{mlir_name(dtype)}>")
    program = sw.parse(text).compile()
    want = moved(bits_of(a), bits_of(b), p, i, 4)
    for got, expected in zip(program(a, b, p, i, k), want, strict=True):
        np.testing.assert_array_equal(bits_of(np.asarray(got)), expected)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_an_array_keeps_its_dtype_and_bits(dtype: str) -> None:
    x = random_bits((6, 3), dtype, np.random.default_rng(5))
    x = x != 0 if dtype == "bool" else x
    placed = sw.device_put(x, sw.NamedSharding(MESH, sw.P("x", "y")))
    assert placed.dtype == x.dtype
    np.testing.assert_array_equal(bits_of(np.asarray(placed)), bits_of(x))
    constant = sw.jit(lambda y: (x, y), mesh=MESH)(placed)[0]  # a constant of the program
    np.testing.assert_array_equal(bits_of(np.asarray(constant)), bits_of(x))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_a_constant_is_printed_and_read_again(dtype: str) -> None:
    x = random_bits((6,), dtype, np.random.default_rng(6))
    x = x != 0 if dtype == "bool" else x
    traced = sw.jit(lambda y: (y, np.stack([x, y])), mesh=MESH).trace(x)
    again = sw.parse(traced.as_text())
    assert again.as_text() == traced.as_text()
    np.testing.assert_array_equal(bits_of(np.asarray(again.run(x)[1])), bits_of(np.stack([x, x])))


# ---- conversions ----------------------------------------------------------------------------------------------------


def converted(x: Array, dtype: str) -> Array:
    return np.asarray(sw.jit(lambda y: y.astype(numpy_dtype(dtype)), mesh=MESH)(x))


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_narrow_floats_widen_exactly(dtype: str) -> None:
    x = all_patterns(dtype)
    np.testing.assert_array_equal(converted(x, "float32"), x.astype(np.float32))
    np.testing.assert_array_equal(converted(x, "float64"), x.astype(np.float64))
    back = bits_of(converted(x.astype(np.float32), dtype))
    is_nan = np.isnan(x.astype(np.float32))
    np.testing.assert_array_equal(back[~is_nan], bits_of(x)[~is_nan])


def floats_around(dtype: str) -> Array:
    """Values of a narrow float, the middles between neighbours, and what is a little beside them."""
    values = np.unique(all_patterns(dtype).astype(np.float32))
    values = values[np.isfinite(values)]
    middles = (values[1:] + values[:-1]) / 2
    with np.errstate(over="ignore"):
        beyond = values[-1] * np.array([1.01, 1.05, 1.25, 1.5, 2, 1e6], np.float32)
    points = np.concatenate([values, middles, beyond, -beyond, np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45])])
    with np.errstate(all="ignore"):
        return np.concatenate([points, np.nextafter(points, np.float32(0)), np.nextafter(points, np.float32(np.inf))])


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_conversions_to_narrow_floats_round_as_ml_dtypes(dtype: str, source: str) -> None:
    x = floats_around(dtype).astype(source)
    with np.errstate(all="ignore"):
        want = x.astype(numpy_dtype(dtype))
    np.testing.assert_array_equal(bits_of(converted(x, dtype)), bits_of(want))


def test_conversions_to_narrow_integers_wrap_integers_and_saturate_floats() -> None:
    x = np.arange(-20, 20, dtype=np.int32)
    np.testing.assert_array_equal(converted(x, "int4").astype(np.int32), (x + 8) % 16 - 8)
    np.testing.assert_array_equal(converted(x, "uint2").astype(np.int32), x % 4)
    y = np.array([-np.inf, -9.5, -2.5, -0.5, 2.9, 7.5, 1e9, np.nan], np.float32)
    assert converted(y, "int4").astype(int).tolist() == [-8, -8, -2, 0, 2, 7, 7, 0]
    assert converted(y, "uint4").astype(int).tolist() == [0, 0, 0, 0, 2, 7, 15, 0]


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers_convert_by_their_parts(dtype: str) -> None:
    z = np.array([1.5 - 2j, 0j, 0.25 + 3j, -7 + 1j], dtype)
    with pytest.warns(np.exceptions.ComplexWarning, match="drops the imaginary parts"):
        np.testing.assert_array_equal(converted(z, "float32"), z.real.astype(np.float32))
    np.testing.assert_array_equal(converted(z, "bool"), z != 0)
    np.testing.assert_array_equal(converted(z.real, dtype), z.real.astype(dtype))
    np.testing.assert_array_equal(converted(z, "complex64"), z.astype(np.complex64))


# ---- arithmetic of narrow numbers -----------------------------------------------------------------------------------


def apply(name: str, operands: list[Array], result: str | None = None, shape: Any = None, **attrs: Any) -> Array:
    """One op on whole arrays."""
    trace = _core.ir.Trace("op")
    values = [trace.argument(x.shape, x.dtype.name, "", None) for x in operands]
    value, _, _ = trace.emit(name, values, attrs or None, shape or (operands[0].shape if result else None), result)
    return run(trace.finish([value], [None]), ONE_DEVICE, operands)[0]


def wrapped(x: Array, dtype: str) -> Array:
    """Integers modulo 2^width, in the range of the dtype."""
    count = 1 << width_of(dtype)
    low = 0 if dtype.startswith("u") else -count // 2
    return (x - low) % count + low


def truncated(a: Array, b: Array) -> Array:
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.maximum(np.abs(b), 1))


def logical_right(a: Array, b: Array, width: int) -> Array:
    return np.where((b < 0) | (b >= width), 0, (a % (1 << width)) >> np.clip(b, 0, width))


def arithmetic_right(a: Array, b: Array, width: int) -> Array:
    signed = (a + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    return signed >> np.where((b < 0) | (b >= width), width, b)


INTEGER_OPS: dict[str, Any] = {
    "add": lambda a, b, w: a + b,
    "subtract": lambda a, b, w: a - b,
    "multiply": lambda a, b, w: a * b,
    "divide": lambda a, b, w: np.where(b == 0, -1, truncated(a, b)),
    "remainder": lambda a, b, w: np.where(b == 0, a, a - truncated(a, b) * b),
    "maximum": lambda a, b, w: np.maximum(a, b),
    "minimum": lambda a, b, w: np.minimum(a, b),
    "and": lambda a, b, w: a & b,
    "or": lambda a, b, w: a | b,
    "xor": lambda a, b, w: a ^ b,
    "shift_left": lambda a, b, w: np.where((b < 0) | (b >= w), 0, a << np.clip(b, 0, w)),
    "shift_right_logical": logical_right,
    "shift_right_arithmetic": arithmetic_right,
    "power": lambda a, b, w: np.where(b >= 0, a ** np.maximum(b, 0), np.where(np.abs(a) == 1, a ** np.abs(b), 0)),
    "abs": lambda a, b, w: np.abs(a),
    "negate": lambda a, b, w: -a,
    "sign": lambda a, b, w: np.sign(a),
    "not": lambda a, b, w: ~a,
    "popcnt": lambda a, b, w: np.array([bin(v % (1 << w)).count("1") for v in a]),
    "count_leading_zeros": lambda a, b, w: np.array([w - (v % (1 << w)).bit_length() for v in a.tolist()]),
}
UNARY = {"abs", "negate", "sign", "not", "popcnt", "count_leading_zeros"}


@pytest.mark.parametrize("dtype", NARROW_INTEGERS)
def test_narrow_integers_wrap_once_per_op(dtype: str) -> None:
    values = all_patterns(dtype)
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
    ops = {op: f for op, f in INTEGER_OPS.items() if not (dtype.startswith("u") and op in ("abs", "sign"))}
    assert len(ops) >= len(INTEGER_OPS) - 2
    for op, reference in ops.items():
        got = apply("stablehlo." + op, [a] if op in UNARY else [a, b])
        assert got.dtype == a.dtype
        want = wrapped(reference(wide_a, wide_b, width_of(dtype)), dtype)
        np.testing.assert_array_equal(got.astype(np.int64), want, err_msg=f"{op} of {dtype}")
        assert np.all(bits_of(got) < 1 << width_of(dtype))


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_narrow_floats_round_once_per_op(dtype: str) -> None:
    values = all_patterns(dtype)
    rng = np.random.default_rng(9)
    a, b = rng.choice(values, 2000), rng.choice(values, 2000)
    x, y = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        for op, want in {
            "add": x + y, "subtract": x - y, "multiply": x * y, "divide": x / y, "maximum": np.maximum(x, y),
            "minimum": np.minimum(x, y), "negate": -x, "abs": np.abs(x), "floor": np.floor(x), "sqrt": np.sqrt(x),
        }.items():  # fmt: skip
            got = apply("stablehlo." + op, [a] if op in ("negate", "abs", "floor", "sqrt") else [a, b])
            rounded = want.astype(a.dtype).astype(np.float32)
            np.testing.assert_array_equal(got.astype(np.float32), rounded, err_msg=f"{op} of {dtype}")


@pytest.mark.parametrize("dtype", [*NARROW_FLOATS, *NARROW_INTEGERS])
def test_reductions_of_narrow_numbers_round_once(dtype: str) -> None:
    x = random_bits((40, 3), dtype, np.random.default_rng(2))
    wide = x.astype(np.float32 if is_float(x.dtype) else np.int64)
    kept = np.where(np.isfinite(wide), wide, 1).astype(x.dtype)
    wide = kept.astype(wide.dtype)
    sharding = sw.NamedSharding(MESH, sw.P("x"))
    for reduce in (np.max, np.min):
        got = np.asarray(sw.jit(lambda y, f=reduce: f(y, axis=0), mesh=MESH)(sw.device_put(kept, sharding)))
        np.testing.assert_array_equal(got.astype(wide.dtype), reduce(wide, axis=0))
    if dtype == "float8_e8m0fnu":  # it has no zero to fill padding with
        return
    zero = np.zeros((), x.dtype)
    trace = _core.ir.Trace("sum")
    values = [trace.argument(y.shape, dtype, "", None) for y in (kept, zero)]
    total, _, _ = trace.emit("stablehlo.reduce", values, {"dimensions": (0,)}, None, None, "stablehlo.add")
    (got,) = run(trace.finish([total], [None]), ONE_DEVICE, [kept, zero])
    with np.errstate(all="ignore"):
        exact = wide.sum(0, dtype=np.float64 if is_float(x.dtype) else np.int64)
        want = exact.astype(x.dtype).astype(wide.dtype) if is_float(x.dtype) else wrapped(exact, dtype)
    np.testing.assert_array_equal(got.astype(wide.dtype), want)


# ---- bits -----------------------------------------------------------------------------------------------------------

PAIRS = [("int8", "int4"), ("uint8", "uint2"), ("int4", "int2"), ("float32", "uint4"), ("int64", "uint2"),
         ("float4_e2m1fn", "uint4"), ("float8_e5m2", "uint8"), ("uint16", "float4_e2m1fn")]  # fmt: skip


@pytest.mark.parametrize(("wide", "narrow"), PAIRS)
def test_bitcast_convert_groups_the_lowest_bits_first(wide: str, narrow: str) -> None:
    x = random_bits((5,), wide, np.random.default_rng(4))
    parts, step = width_of(wide) // width_of(narrow), width_of(narrow)
    number = [int.from_bytes(bytes(row), "little") for row in bits_of(x)]
    want = np.array([[n >> (k * step) & ((1 << step) - 1) for k in range(parts)] for n in number], np.uint8)
    shape = (5, parts) if parts > 1 else (5,)
    split = apply("stablehlo.bitcast_convert", [x], narrow, shape)
    np.testing.assert_array_equal(bits_of(split).reshape(5, parts), want)
    back = apply("stablehlo.bitcast_convert", [split], wide, (5,))
    np.testing.assert_array_equal(bits_of(back), bits_of(x))


# ---- products -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("float8_e4m3fn", "float8_e5m2", "float32"),
        ("float32", "int32", "float32"),
        ("int4", "int4", "int32"),
        ("int4", "int8", "int32"),
        ("float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn"),
        ("complex64", "complex64", "complex64"),
        ("complex128", "complex128", "complex128"),
        ("bfloat16", "float8_e5m2", "bfloat16"),
    ],
)
def test_products_of_any_two_dtypes(left: str, right: str, result: str) -> None:
    text = f"""
    sdy.mesh @mesh = <["x"=4, "y"=2]>
    func.func @main(%a: tensor<6x10x{mlir_name(left)}> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{"x"}}]>}},
                    %b: tensor<10x5x{mlir_name(right)}>) -> tensor<6x5x{mlir_name(result)}> {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<6x10x{mlir_name(left)}>, tensor<10x5x{mlir_name(right)}>) -> tensor<6x5x{mlir_name(result)}>
      return %0 : tensor<6x5x{mlir_name(result)}>
    }}"""
    rng = np.random.default_rng(7)

    def small(shape: tuple[int, ...], dtype: str) -> Array:
        real = rng.integers(-2, 3, shape).astype(np.float32)
        return (real + 1j * rng.integers(-2, 3, shape) if dtype.startswith("complex") else real).astype(
            numpy_dtype(dtype)
        )

    a, b = small((6, 10), left), small((10, 5), right)
    wide = np.complex128 if left.startswith("complex") else np.float64
    want = (a.astype(wide) @ b.astype(wide)).astype(numpy_dtype(result))
    got = np.asarray(sw.parse(text).compile()(a, b))
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.astype(wide), want.astype(wide))


def test_ml_dtypes_has_every_dtype_of_the_core() -> None:
    assert ALL_DTYPES
    for name in ALL_DTYPES:
        assert numpy_dtype(name).name == name
        assert hasattr(ml_dtypes, name) or hasattr(np, name) or name == "bool"
