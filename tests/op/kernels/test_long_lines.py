# SPDX-License-Identifier: Apache-2.0
"""Loops that need longer lines than the table of op cases has: folds, single elements, products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from tests.op.dtype_values import Array

ONE = sw.Mesh({"x": 1})
SIZES = [1, 31, 32, 33, 64, 127, 300]


def run(f: Callable[..., Any], *arguments: Any) -> Any:
    return sw.jit(f, mesh=ONE)(*arguments)


def views(rows: int, columns: int, dtype: str) -> list[Array]:
    """(rows, columns): row-major, transposed, and every other column."""
    rng = np.random.default_rng(rows * columns)
    if dtype == "bool":
        whole = rng.integers(0, 8, (rows, 2 * columns)) > 0
    else:
        whole = rng.integers(-99 if dtype[0] != "u" else 0, 99, (rows, 2 * columns)).astype(dtype)
    dense = np.ascontiguousarray(whole[:, :columns])
    return [dense, np.ascontiguousarray(dense.T).T, whole[:, ::2]]


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]
)
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extrema_of_long_lines(name: str, dtype: str) -> None:
    function = getattr(np, name)
    for size in SIZES:
        for x in views(5, size, dtype):
            got = run(lambda x: tuple(function(x, axis=axis) for axis in (0, 1)), x)
            for axis in (0, 1):
                np.testing.assert_array_equal(np.asarray(got[axis]), function(x, axis=axis))
        for x in views(size, 40, dtype):
            np.testing.assert_array_equal(np.asarray(run(lambda x: function(x, axis=0), x)), function(x, axis=0))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "uint16", "float32", "float64"])
@pytest.mark.parametrize("name", ["sum", "prod", "any", "all"])
def test_sums_and_bits_of_long_lines(name: str, dtype: str) -> None:
    function = getattr(np, name)
    for size in SIZES:
        for x in views(5, size, dtype):
            x = np.where(x == 0, x, x**0) if name == "prod" and dtype[0] == "f" else x
            with np.errstate(over="ignore"):
                got = run(lambda x: tuple(function(x, axis=axis) for axis in (0, 1, None)), x)
                expected = [function(x, axis=axis) for axis in (0, 1, None)]
            for one, other in zip(got, expected, strict=True):
                np.testing.assert_array_equal(np.asarray(one), other)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extrema_of_nans_and_signed_zeros(dtype: str) -> None:
    x = np.full((4, 200), -0.0, dtype)
    x[1, 150] = 0.0
    x[2, [70, 190]] = np.nan
    x[3, 199] = np.inf
    largest, places = run(lambda x: (np.max(x, axis=1), np.argmax(x, axis=1)), x)
    np.testing.assert_array_equal(np.signbit(np.asarray(largest)), [True, False, False, False])
    np.testing.assert_array_equal(np.asarray(largest), [0, 0, np.nan, np.inf])
    np.testing.assert_array_equal(np.asarray(places), np.argmax(x, axis=1))
    smallest, places = run(lambda x: (np.min(x, axis=1), np.argmin(x, axis=1)), -x)
    np.testing.assert_array_equal(np.signbit(np.asarray(smallest))[:2], [False, True])
    np.testing.assert_array_equal(np.asarray(places), np.argmin(-x, axis=1))
    columns = run(lambda x: np.max(x, axis=0), np.ascontiguousarray(x.T))
    np.testing.assert_array_equal(np.asarray(columns), np.asarray(largest))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("size", [1, 2, 8, 31, 32])
def test_arguments_of_many_short_rows(dtype: str, size: int) -> None:
    x = np.random.default_rng(size).integers(-3, 4, (3000, size)).astype(dtype)
    if x.dtype.kind == "f":
        x[::7, size // 2], x[::11, size - 1], x[::13] = np.nan, np.nan, -np.inf
        x[x == 0] *= -1
    for y in (x, np.repeat(x, 2, axis=1)[:, ::2]):
        largest, smallest = run(lambda y: (np.argmax(y, axis=1), np.argmin(y, axis=1)), y)
        np.testing.assert_array_equal(np.asarray(largest), np.argmax(x, axis=1))
        np.testing.assert_array_equal(np.asarray(smallest), np.argmin(x, axis=1))


@pytest.mark.parametrize("rows", [100, 700, 5000])
@pytest.mark.parametrize("columns", [90, 700, 1500])
def test_column_sums_of_merged_shards_have_the_bits_of_each_shard(rows: int, columns: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 4 * columns)).astype("float32")
    split = sw.jit(lambda x: x.sum(axis=0), mesh=sw.Mesh({"x": 4}), in_shardings=sw.P(None, "x"))
    program = split.lower(x).compile()
    np.testing.assert_array_equal(np.asarray(program(x)), np.asarray(program.run(x, faithful=True)))
    each = [np.asarray(run(lambda x: x.sum(axis=0), part)) for part in np.split(x, 4, axis=1)]
    np.testing.assert_array_equal(np.asarray(program(x)), np.concatenate(each))


@pytest.mark.parametrize("size", [127, 128, 129, 300, 5000])
def test_sums_of_rows_have_one_order(size: int) -> None:
    """16 lanes over 128 elements, lanes combined pairwise, then two results of the same number of chunks."""
    x = np.random.default_rng(size).standard_normal((6, size)).astype("float32")

    def total(row: Array) -> np.float32:
        stack: list[tuple[int, np.float32]] = []
        for begin in range(0, size, 128):
            lanes = np.zeros(16, "float32")
            for i, item in enumerate(row[begin : begin + 128]):
                lanes[i % 16] += item
            for half in (8, 4, 2, 1):
                lanes[:half] += lanes[half : 2 * half]
            value, level = lanes[0], 0
            while stack and stack[-1][0] == level:
                value, level = stack.pop()[1] + value, level + 1
            stack.append((level, value))
        sum_ = stack.pop()[1]
        while stack:
            sum_ = stack.pop()[1] + sum_
        return np.float32(sum_)

    want = [total(row) for row in x]
    np.testing.assert_array_equal(np.asarray(run(lambda x: x.sum(axis=1), x)), want)
    np.testing.assert_array_equal(np.asarray(run(lambda x: x.sum(axis=1), np.repeat(x, 3, axis=1)[:, ::3])), want)


def test_float_sums_have_the_same_bits_on_every_number_of_devices() -> None:
    x = np.random.default_rng(0).standard_normal((1000, 300)).astype("float32")
    whole = np.asarray(run(lambda x: x.sum(axis=0), x))
    split = sw.jit(lambda x: x.sum(axis=0), mesh=sw.Mesh({"x": 3}), in_shardings=sw.P(None, "x"))
    np.testing.assert_array_equal(np.asarray(split(x)), whole)


# ---- single elements ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
def test_single_elements(dtype: str) -> None:
    x = np.arange(7 * 12).reshape(7, 12).astype(dtype)
    rng = np.random.default_rng(1)
    for index in ("int32", "int64", "uint8"):
        i, j = rng.integers(0, 7, (3, 50)).astype(index), rng.integers(0, 12, (3, 50)).astype(index)
        for y in (x, np.ascontiguousarray(x.T).T, np.repeat(x, 2, axis=1)[:, ::2]):
            np.testing.assert_array_equal(np.asarray(run(lambda y, i, j: y[i, j], y, i, j)), y[i, j])
            np.testing.assert_array_equal(np.asarray(run(lambda y, i: y[:, 3][i], y, i)), y[:, 3][i])
            got = run(lambda y, j: np.take_along_axis(y, j, axis=1), y[:3], j)
            np.testing.assert_array_equal(np.asarray(got), np.take_along_axis(y[:3], j.astype(int), axis=1))
    np.testing.assert_array_equal(np.asarray(run(lambda x, i: x[i, i], x, np.zeros((0,), int))), x[:0, 0])


def test_single_elements_beyond_the_end_are_clamped_or_dropped() -> None:
    x, ids = np.arange(9.0), np.array([0, 8, 9, -10, -1, 4, 4])
    np.testing.assert_array_equal(np.asarray(run(lambda x, i: np.take(x, i, mode="clip"), x, np.maximum(ids, 0))),
                                  [0, 8, 8, 0, 0, 4, 4])  # fmt: skip
    added = x.copy()
    np.add.at(added, [0, 8, 8, 4, 4], 1)
    got = run(lambda x, i: x.at[i].add(1.0), x, ids)
    np.testing.assert_array_equal(np.asarray(got), added)
    replaced = x.copy()
    replaced[[0, 8, 4]] = -1
    np.testing.assert_array_equal(np.asarray(run(lambda x, i: x.at[i].set(-1.0), x, ids)), replaced)


# ---- products with vectors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [0, 1, 2, 33, 5000])
def test_products_with_vectors(dtype: str, k: int) -> None:
    rng = np.random.default_rng(k)

    def draw(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(dtype)

    tolerance = (1e-5 if dtype == "float32" else 1e-13) * max(k, 1) ** 0.5
    m, wide = 19, draw(19, 2 * k)
    for a in (draw(m, k), draw(k, m).T, wide[:, :k], wide[:, ::2]):
        for x in (draw(k), draw(2 * k)[::2], draw(k)[::-1]):
            np.testing.assert_allclose(np.asarray(run(np.matmul, a, x)), a @ x, atol=tolerance)
            np.testing.assert_allclose(np.asarray(run(np.matmul, x, a.T)), x @ a.T, atol=tolerance)
            np.testing.assert_allclose(np.asarray(run(np.dot, x, a[0])), x @ a[0], atol=tolerance)
    batch, columns = draw(4, m, k), draw(4, k, 1)
    np.testing.assert_allclose(np.asarray(run(np.matmul, batch, columns)), batch @ columns, atol=tolerance)
    np.testing.assert_allclose(
        np.asarray(run(lambda a, b: np.matmul(a.transpose(0, 2, 1), b), columns, batch.transpose(0, 2, 1).copy())),
        columns.transpose(0, 2, 1) @ batch.transpose(0, 2, 1),
        atol=tolerance,
    )


def test_a_product_with_a_vector_ignores_old_memory_and_keeps_nans() -> None:
    a = np.ones((40, 40), np.float32)
    a[3, 5] = np.nan
    run(lambda x: x * np.float32(np.nan), a)  # leaves NaNs in the pool of buffers
    got = np.asarray(run(np.matmul, a, np.ones(40, np.float32)))
    np.testing.assert_array_equal(np.isnan(got), np.arange(40) == 3)


# ---- integers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("bits", [3, 31, 52, 63])
def test_quotients_and_remainders_of_integers(dtype: str, bits: int) -> None:
    rng = np.random.default_rng(bits)
    info = np.iinfo(dtype)
    high = min(int(info.max), 2**bits)
    low = max(int(info.min), -high)
    a = rng.integers(low, high, 500, endpoint=True, dtype=dtype)
    b = np.where(
        rng.integers(0, 3, 500) == 0, rng.integers(0, 7, 500).astype(dtype) - np.array(info.min < 0, dtype), a // 3
    )
    b[:70:9] = 0
    a[::50], a[1::50] = info.max if bits == 63 else high, low
    quotients, remainders = run(lambda a, b: (a // b, np.fmod(a, b)), a, b)
    columns = [[int(x) for x in np.asarray(v)] for v in (a, b, quotients, remainders)]
    assert [len(column) for column in columns] == [500] * 4
    for x, y, quotient, remainder in zip(*columns):
        if y == 0:
            assert remainder == 0  # np.fmod's; the op's own is in the table of op cases
            continue
        magnitude = abs(x) % abs(y)
        assert remainder == (magnitude if x >= 0 else -magnitude)
        wrapped = (x // y - int(info.min)) % 2**info.bits + int(info.min)
        assert quotient == wrapped, (x, y)


@pytest.mark.parametrize("dtype", ["int2", "int4", "int8", "int16", "int32", "int64"])
def test_floor_division_and_remainder_of_corners(dtype: str) -> None:
    to = np.dtype(getattr(ml_dtypes, dtype) if dtype in ("int2", "int4") else dtype)
    bits = int(dtype[3:])
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    values = sorted({v for v in (low, low + 1, -7, -3, -2, -1, 0, 1, 2, 3, 7, high - 1, high) if low <= v <= high})
    pairs = [(a, b) for a in values for b in values]
    x, y = (np.array([pair[i] for pair in pairs]).astype(to) for i in (0, 1))
    quotients, remainders = run(lambda x, y: (x // y, x % y), x, y)
    assert len(quotients) == len(remainders) == len(pairs) >= 16
    for (a, b), quotient, remainder in zip(pairs, np.asarray(quotients), np.asarray(remainders)):
        wrapped = (a // b - low) % 2**bits + low if b else 0
        assert (int(quotient), int(remainder)) == (wrapped, a % b if b else 0), (a, b)


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "uint8", "int32"])
def test_shifts_that_are_a_rotation_and_shifts_that_are_not(dtype: str) -> None:
    x = np.random.default_rng(2).integers(0, 2**31 if dtype != "uint8" else 256, 200).astype(dtype)
    width = x.itemsize * 8
    for left, right in ((3, width - 3), (width - 1, 1), (3, 2), (0, width)):
        shift = lambda x, left=left, right=right: (x << x.dtype.type(left)) | (x >> x.dtype.type(right % 99))  # noqa: E731
        expected = (x << x.dtype.type(left)) | (x >> x.dtype.type(right) if right < width else x * 0)
        if dtype == "int32":
            expected = (x << np.int32(left)) | (x >> np.int32(min(right, 31)))
        np.testing.assert_array_equal(np.asarray(run(shift, x)), expected)
        swapped = lambda x, left=left, right=right: (x >> x.dtype.type(right)) | (x << x.dtype.type(left))  # noqa: E731
        np.testing.assert_array_equal(np.asarray(run(swapped, x)), expected)
    other = run(lambda x, y: (x << x.dtype.type(3)) | (y >> x.dtype.type(width - 3)), x, x[::-1].copy())
    np.testing.assert_array_equal(np.asarray(other), (x << x.dtype.type(3)) | (x[::-1] >> x.dtype.type(width - 3)))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_quotients_of_long_integers(dtype: str) -> None:
    """Blocks of 64 numbers below 2^51 are divided in double precision, others are not."""
    rng = np.random.default_rng(3)
    name, signs = ("i64", [-1, 1]) if dtype == "int64" else ("ui64", [1])
    text = f"""func.func public @main(%x: tensor<256x{name}>, %y: tensor<256x{name}>) -> tensor<256x{name}> {{
      %0 = stablehlo.divide %x, %y : tensor<256x{name}>
      return %0 : tensor<256x{name}>
    }}"""
    program = sw.parse(text).compile(ONE)
    for bits in (7, 50, 51, 52, 53, 62):
        near = [sign * (2**bits + step) for sign in signs for step in (-2, -1, 0, 1)]
        x = np.asarray([near[i] for i in rng.integers(0, len(near), 256)], dtype)
        divisors = [*near, *(sign * small for sign in signs for small in (1, 2, 3, 7))]
        y = np.asarray([divisors[i] for i in rng.integers(0, len(divisors), 256)], dtype)
        want = [abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x, y)]
        np.testing.assert_array_equal(np.asarray(program.run(x, y)), np.asarray(want, dtype), err_msg=str(bits))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_the_smallest_index_of_equal_values_wins(order: str, shared: bool) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(0, 4, (5, 300)).astype(np.float32)
    row = {"ascending": np.arange(300), "descending": np.arange(300)[::-1], "shuffled": rng.permutation(300)}[order]
    places = np.ascontiguousarray(np.broadcast_to(row, x.shape)).astype(np.int32)
    indices = "%b = stablehlo.broadcast_in_dim %i, dims = [1] : (tensor<300xi32>) -> tensor<5x300xi32>"
    if not shared:
        indices = "%b = stablehlo.add %i, %i : tensor<5x300xi32>"
    given = "tensor<300xi32>" if shared else "tensor<5x300xi32>"
    text = f"""func.func public @main(%x: tensor<5x300xf32>, %i: {given}) -> tensor<5xi32> {{
      {indices}
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.reduce(%x init: %low), (%b init: %zero) across dimensions = [1]
        : (tensor<5x300xf32>, tensor<5x300xi32>, tensor<f32>, tensor<i32>) -> (tensor<5xf32>, tensor<5xi32>)
       reducer(%a: tensor<f32>, %c: tensor<f32>) (%d: tensor<i32>, %e: tensor<i32>) {{
        %1 = stablehlo.compare GT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %2 = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %3 = stablehlo.or %1, %2 : tensor<i1>
        %4 = stablehlo.compare EQ, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %5 = stablehlo.compare LT, %d, %e : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %6 = stablehlo.and %4, %5 : tensor<i1>
        %7 = stablehlo.or %3, %6 : tensor<i1>
        %8 = stablehlo.select %3, %a, %c : tensor<i1>, tensor<f32>
        %9 = stablehlo.select %7, %d, %e : tensor<i1>, tensor<i32>
        stablehlo.return %8, %9 : tensor<f32>, tensor<i32>
      }}
      return %0#1 : tensor<5xi32>
    }}"""
    found = sw.parse(text).compile(ONE).run(x, row.astype(np.int32) if shared else places)
    best = [int(row[line == line.max()].min()) * (1 if shared else 2) for line in x]
    np.testing.assert_array_equal(np.asarray(found), best)


@pytest.mark.parametrize("k", [1, 10, 300, 999, 1000])
@pytest.mark.parametrize("order", ["drawn", "ascending", "descending", "equal"])
def test_top_k_of_long_rows(order: str, k: int) -> None:
    x = np.random.default_rng(5).integers(-200, 200, (3, 1000)).astype(np.float32)
    x = {"drawn": x, "ascending": np.sort(x), "descending": -np.sort(x), "equal": np.full_like(x, 2)}[order]
    text = f"""func.func public @main(%x: tensor<3x1000xf32>) -> (tensor<3x{k}xf32>, tensor<3x{k}xi32>) {{
      %0, %1 = chlo.top_k(%x, k = {k}) : tensor<3x1000xf32> -> (tensor<3x{k}xf32>, tensor<3x{k}xi32>)
      return %0, %1 : tensor<3x{k}xf32>, tensor<3x{k}xi32>
    }}"""
    values, places = sw.parse(text).compile(ONE).run(x)
    want = np.argsort(-x, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(np.asarray(places), want)
    np.testing.assert_array_equal(np.asarray(values), np.take_along_axis(x, want, axis=1))


def test_a_function_of_a_broadcast_row_is_row_major() -> None:
    x = np.arange(60, dtype=np.float32)
    found = run(lambda x: np.negative(np.broadcast_to(x[:20], (7, 20))), x)
    np.testing.assert_array_equal(found, -np.broadcast_to(x[:20], (7, 20)))
    assert np.asarray(found).flags.c_contiguous


# Blocks of 512 indices are tested at once, and those that are inside take a loop without a test of each index.
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("outside", [(), (0,), (511, 512), (1300,)])
def test_elements_at_many_indices(dtype: str, outside: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    table, updates = rng.integers(-99, 99, 700).astype(dtype), rng.integers(-9, 9, 1301).astype(dtype)
    ids = rng.integers(-700, 700, 1301)
    for place, index in zip(outside, (5000, -5000)):
        ids[place] = index
    wrapped = np.where(ids < 0, ids + 700, ids)
    inside = (wrapped >= 0) & (wrapped < 700)
    for base in (table, np.repeat(table, 2)[::2]):
        np.testing.assert_array_equal(np.asarray(run(lambda x, i: x[i], base, ids)), base[np.clip(wrapped, 0, 699)])
    expected = table.copy()
    np.add.at(expected, wrapped[inside], updates[inside])
    added = run(lambda x, i, u: x.at[i].add(u), table, ids, updates)
    np.testing.assert_array_equal(np.asarray(added), expected)
    expected[wrapped[inside]] = updates[inside]
    replaced = run(lambda x, i, u: x.at[i].set(u), np.asarray(added), ids, updates)
    np.testing.assert_array_equal(np.asarray(replaced), expected)
