# SPDX-License-Identifier: Apache-2.0
"""Corners where NumPy's result or its error is easily missed: dtypes of `**`, rounding to tens, one bound of clip."""

from __future__ import annotations

import io
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4})
RANDOM = np.random.default_rng(0)
INTEGERS = (np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64)


def same(found: Any, expected: np.ndarray, **tolerance: float) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found).astype(float), expected.astype(float), **(tolerance or {"rtol": 0}))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 2.0, 0.5])
def test_powers_of_booleans(exponent: Any) -> None:
    x = np.array([True, False, True])
    for found in (sw.jit(lambda x: x**exponent, mesh=MESH)(x), sw.device_put(x, MESH) ** exponent):
        same(found, x**exponent)
    same(sw.jit(lambda x: np.power(x, exponent), mesh=MESH)(x), np.power(x, exponent))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("decimals", [-3, -2, -1, 0, 2])
def test_integers_are_rounded_to_tens(dtype: Any, decimals: int) -> None:
    limits = np.iinfo(dtype)
    x = np.array([0, 4, 5, 6, 15, 25, 35, 45, 100, limits.max // 2, limits.min // 2, 50], dtype)
    same(sw.jit(lambda x: np.round(x, decimals), mesh=MESH, in_shardings=P("x"))(x), np.round(x, decimals))


def test_the_method_clip_takes_one_bound() -> None:
    x = RANDOM.standard_normal(8)
    for clip in (lambda x: x.clip(0), lambda x: x.clip(max=0), lambda x: np.clip(x, min=0), lambda x: x.clip(-1, 1)):
        same(sw.jit(clip, mesh=MESH)(x), clip(x))


ACCUMULATED = (
    np.logaddexp, np.logaddexp2, np.fmax, np.fmin, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_and,
    np.logical_or, np.logical_xor,
)  # fmt: skip


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("ufunc", ACCUMULATED)
def test_accumulate(ufunc: np.ufunc, dtype: Any) -> None:
    is_float = np.dtype(dtype).kind == "f"
    x = RANDOM.random((7, 5)) > 0.3 if dtype is bool else (RANDOM.standard_normal((7, 5)) * 9).astype(int).astype(dtype)
    if is_float:
        x[2, 3], x[0, 0], x[1, 1] = np.nan, -np.inf, np.inf
    if is_float and ufunc.__name__.startswith("bitwise"):
        with pytest.raises(sw.DTypeError):
            sw.jit(ufunc.accumulate, mesh=MESH)(x)
        return
    for axis in (0, 1):
        with np.errstate(invalid="ignore"):
            expected = ufunc.accumulate(x, axis=axis)
        for spec in (P("x"), P(None, "x")):
            function = sw.jit(lambda x, a=axis: ufunc.accumulate(x, axis=a), mesh=MESH, in_shardings=spec)
            same(function(x), expected, rtol=1e-5 if expected.dtype.itemsize > 2 else 1e-2)


@pytest.mark.parametrize("place", [sw.reshard, sw.device_put, sw.shard])
def test_a_traced_value_moves_to_another_mesh_over_the_same_devices(place: Any) -> None:
    x = np.arange(32).reshape(8, 4)
    for other in (sw.Mesh({"a": 2, "b": 2}), sw.Mesh({"a": 4}, device_ids=[2, 0, 3, 1])):
        sharding = sw.NamedSharding(other, P("a"))
        function = sw.jit(lambda x, s=sharding: place(x, s) * 2, mesh=MESH)
        result = function(x)
        np.testing.assert_array_equal(result, x * 2)
        shards = {shard.device: shard.index for shard in result.addressable_shards}
        assert shards == sharding.devices_indices_map((8, 4))
    with pytest.raises(
        sw.MeshError, match=rf"^{place.__name__}: the mesh must be over the 4 devices of the program's mesh"
    ):
        sw.jit(lambda x: place(x, sw.NamedSharding(sw.Mesh({"a": 3}), P("a"))), mesh=MESH)(x)


KEY = sw.random.key(3)


@pytest.mark.parametrize("count", [0, 1, 5, 1626])
def test_a_permutation_has_each_element_once(count: int) -> None:
    drawn = sw.random.permutation(KEY, count)
    np.testing.assert_array_equal(np.sort(drawn), np.arange(count))
    assert count < 5 or not np.array_equal(drawn, np.arange(count))
    for mesh in (MESH, sw.Mesh({"x": 3})):
        traced = sw.jit(lambda k: sw.random.permutation(k, count), mesh=mesh, out_shardings=P("x"))
        np.testing.assert_array_equal(traced(KEY), drawn)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_permutation_moves_lines(axis: int, independent: bool) -> None:
    x = np.arange(24.0).reshape(4, 6)
    drawn = sw.random.permutation(KEY, x, axis, independent)
    np.testing.assert_array_equal(np.sort(drawn, axis), x)
    lines = np.sort(np.moveaxis(drawn, axis, 0).reshape(x.shape[axis], -1), 0)
    assert independent or np.array_equal(lines, np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1))
    for spec in (P("x"), P(None, "x"), P()):
        traced = sw.jit(
            lambda k, x: sw.random.permutation(k, x, axis, independent), mesh=MESH, in_shardings=(None, spec)
        )
        np.testing.assert_array_equal(traced(KEY, x), drawn)


@pytest.mark.parametrize("p", [None, np.array([0.1, 0.0, 0.4, 0.2, 0.3], np.float32)])
def test_choices_without_replacement_differ(p: Any) -> None:
    table = np.array([10, 20, 30, 40, 50])
    for i in range(20):
        drawn = sw.random.choice(sw.random.fold_in(KEY, i), table, (2, 2), replace=False, p=p)
        assert len(set(drawn.reshape(-1))) == 4
        assert p is None or 20 not in drawn
    traced = sw.jit(lambda k: sw.random.choice(k, table, (2, 2), replace=False, p=p), mesh=MESH)
    np.testing.assert_array_equal(traced(sw.random.fold_in(KEY, 19)), drawn)


@pytest.mark.parametrize("dtype", [sw.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4])
def test_a_file_of_a_narrow_dtype_says_how_to_read_it(dtype: Any) -> None:
    x = np.arange(4).astype(dtype)
    file = io.BytesIO()
    np.save(file, sw.device_put(x, MESH))
    file.seek(0)
    loaded = np.load(file)
    identity = sw.jit(lambda x: x, mesh=MESH)
    for call in (identity, lambda x: sw.device_put(x, MESH)):
        with pytest.raises(
            sw.DTypeError, match=r"got \|V\d\[4\].*; if np\.load has lost its narrow dtype, pass x\.view\(dtype\)"
        ):
            call(loaded)
    same(identity(loaded.view(dtype)), x)
