# SPDX-License-Identifier: Apache-2.0
"""`sw.nn.initializers` against JAX's: the same numbers, on every mesh."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.nn.against_jax import JAX, MESH, QUICK

OURS, THEIRS = sw.nn.initializers, JAX.nn.initializers
SHAPE = (3, 4, 5)
SCALED = [f"{name}_{kind}" for name in ("glorot", "xavier", "lecun", "he", "kaiming") for kind in ("uniform", "normal")]
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *((name, (), {}) for name in SCALED),
    ("lecun_normal", (), {"in_axis": (0, 1), "out_axis": 2}),
    ("he_uniform", (), {"in_axis": 1, "out_axis": 2, "batch_axis": 0}),
    *(("variance_scaling", (0.7, mode, "normal"), {}) for mode in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg")),
    ("uniform", (), {}),
    ("uniform", (3.0,), {}),
    ("normal", (0.3,), {}),
    ("truncated_normal", (0.3,), {"lower": -1.0, "upper": 2.5}),
    ("constant", (7.5,), {}),
    ("constant", (np.arange(5),), {}),
]


def draws(name: str, args: Any, options: Any, dtype: Any, shape: Any = SHAPE) -> tuple[np.ndarray, np.ndarray, Any]:
    init = getattr(OURS, name)(*args, **options)
    theirs = getattr(THEIRS, name)(*args, **options)
    with JAX.enable_x64(np.dtype(dtype).itemsize == 8):
        run = JAX.jit(lambda key: theirs(key, shape, dtype), compiler_options=QUICK)
        expected = np.asarray(run(JAX.random.PRNGKey(3)))
    found = init(sw.random.PRNGKey(3), shape, dtype)
    assert type(found) is np.ndarray
    assert found.dtype == expected.dtype
    return found, expected, init


@pytest.mark.parametrize(("name", "args", "options"), CASES, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(CASES)])
def test_numbers_are_those_of_jax(name: str, args: Any, options: Any) -> None:
    found, expected, init = draws(name, args, options, np.float32)
    if "uniform" in name:
        np.testing.assert_array_max_ulp(found, expected, 1)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-7)
    found = init(sw.random.PRNGKey(3), SHAPE)
    for spec in (P(), P("x", "y"), P(None, None, ("x", "y"))):
        run = sw.jit(lambda key, s=spec: sw.shard(init(key, SHAPE), s), mesh=MESH)
        np.testing.assert_allclose(run(sw.random.PRNGKey(3)), found, rtol=1e-6)


@pytest.mark.parametrize("name", ["he_uniform", "he_normal", "uniform", "normal", "truncated_normal"])
def test_bfloat16(name: str) -> None:
    found, expected, _ = draws(name, (), {}, sw.bfloat16)
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-2, atol=1e-3)


def test_zeros_and_ones() -> None:
    for name in ("zeros", "ones"):
        for dtype in (np.float32, np.int8, sw.bfloat16):
            found, expected = (getattr(of, name)(None, (2, 3), dtype) for of in (OURS, THEIRS))
            np.testing.assert_array_equal(found, np.asarray(expected))
        assert getattr(OURS, name)(None, 3).dtype == np.float32


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("column_axis", [0, -1])
def test_orthogonal(shape: Any, column_axis: int) -> None:
    found, expected, init = draws("orthogonal", (1.5, column_axis), {}, np.float32, shape)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    wide = init(sw.random.PRNGKey(3), shape, np.float64)
    rows = np.moveaxis(wide, column_axis, -1).reshape(-1, shape[column_axis])
    gram = rows.T @ rows if rows.shape[0] >= rows.shape[1] else rows @ rows.T
    np.testing.assert_allclose(gram, 2.25 * np.eye(len(gram)), atol=1e-12)
    traced = sw.jit(lambda key: sw.shard(init(key, shape), P("x")), mesh=MESH)(sw.random.PRNGKey(3))
    np.testing.assert_allclose(traced, init(sw.random.PRNGKey(3), shape), atol=2e-5)


@pytest.mark.parametrize("shape", [(3, 2, 4), (2, 5, 3, 3), (1, 2, 3, 2, 2)], ids=str)
def test_delta_orthogonal(shape: Any) -> None:
    found, expected, _ = draws("delta_orthogonal", (2.0,), {}, np.float32, shape)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_is_refused() -> None:
    key = sw.random.key(0)
    with pytest.raises(ValueError, match=r"nn.initializers.variance_scaling: mode must be one of fan_in, fan_out"):
        OURS.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(sw.ShapeError, match=r"nn.initializers.he_normal: with the default in_axis"):
        OURS.he_normal()(key, (3,))
    with pytest.raises(sw.ShapeError, match=r"nn.initializers.normal: a shape must be"):
        OURS.normal()(key, (3, -1))
    with pytest.raises(sw.DTypeError, match=r"nn.initializers.uniform: dtype must be floating, got int32"):
        OURS.uniform()(key, (3,), np.int32)
    with pytest.raises(sw.DTypeError, match=r"nn.initializers.normal: a key must be uint32\[2\]"):
        OURS.normal()(3, (3,))
    with pytest.raises(sw.DTypeError, match=r"nn.initializers.orthogonal: dtype must be float32 or float64"):
        OURS.orthogonal()(key, (3, 3), sw.bfloat16)
    with pytest.raises(sw.ShapeError, match=r"nn.initializers.delta_orthogonal: a shape must have 1 to 3 window dims"):
        OURS.delta_orthogonal()(key, (3, 3))
    with pytest.raises(sw.ShapeError, match=r"nn.initializers.constant: value must broadcast to the shape"):
        OURS.constant(np.ones(3))(key, (2,))
