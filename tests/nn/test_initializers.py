# SPDX-License-Identifier: Apache-2.0
"""`sw.nn.initializers` against JAX's: the same numbers, on every mesh."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.nn.against_jax import JAX, MESH, of_jax

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


BFLOAT16 = [("he_uniform", (), {}), ("he_normal", (), {}), ("uniform", (), {}), ("truncated_normal", (), {})]
ORTHOGONAL = [(shape, axis) for shape in ((5, 3), (3, 5), (4, 4), (2, 3, 4)) for axis in (0, -1)]
KEY = sw.random.PRNGKey(3)


@cache
def expected(kind: str) -> list[np.ndarray]:
    """JAX's numbers of all cases: one program of XLA is compiled sooner than many."""
    if kind == "orthogonal":
        draws = [(THEIRS.orthogonal(1.5, axis), shape, np.float32) for shape, axis in ORTHOGONAL]
    else:
        rows, dtype = (CASES, np.float32) if kind == "float32" else (BFLOAT16, sw.bfloat16)
        draws = [(getattr(THEIRS, name)(*args, **options), SHAPE, dtype) for name, args, options in rows]
    return of_jax(lambda key: [init(key, shape, dtype) for init, shape, dtype in draws], [KEY])


@pytest.mark.parametrize("case", range(len(CASES)), ids=[f"{n}-{i}" for i, (n, *_) in enumerate(CASES)])
def test_numbers_are_those_of_jax(case: int) -> None:
    name, args, options = CASES[case]
    init = getattr(OURS, name)(*args, **options)
    found, theirs = init(KEY, SHAPE), expected("float32")[case]
    assert type(found) is np.ndarray
    assert found.dtype == np.float32
    if "uniform" in name:
        np.testing.assert_array_max_ulp(found, theirs, 1)
    np.testing.assert_allclose(found, theirs, rtol=2e-6, atol=2e-7)
    for spec in (P("x", "y"), P(None, None, ("x", "y"))):
        run = sw.jit(lambda key, s=spec: sw.shard(init(key, SHAPE), s), mesh=MESH)
        np.testing.assert_allclose(run(KEY), found, rtol=1e-6)


@pytest.mark.parametrize("case", range(len(BFLOAT16)), ids=[name for name, *_ in BFLOAT16])
def test_bfloat16(case: int) -> None:
    found = getattr(OURS, BFLOAT16[case][0])()(KEY, SHAPE, sw.bfloat16)
    assert found.dtype == sw.bfloat16
    theirs = expected("bfloat16")[case].astype(float)
    np.testing.assert_allclose(found.astype(float), theirs, rtol=1e-2, atol=1e-3)


def test_zeros_and_ones() -> None:
    for name in ("zeros", "ones"):
        for dtype in (np.float32, np.int8, sw.bfloat16):
            found, theirs = (getattr(of, name)(None, (2, 3), dtype) for of in (OURS, THEIRS))
            np.testing.assert_array_equal(found, np.asarray(theirs))
        assert getattr(OURS, name)(None, 3).dtype == np.float32


@pytest.mark.parametrize("case", range(len(ORTHOGONAL)), ids=map(str, ORTHOGONAL))
def test_orthogonal(case: int) -> None:
    shape, column_axis = ORTHOGONAL[case]
    init = OURS.orthogonal(1.5, column_axis)
    np.testing.assert_allclose(init(KEY, shape), expected("orthogonal")[case], atol=2e-5)
    rows = np.moveaxis(init(KEY, shape, np.float64), column_axis, -1).reshape(-1, shape[column_axis])
    gram = rows.T @ rows if rows.shape[0] >= rows.shape[1] else rows @ rows.T
    np.testing.assert_allclose(gram, 2.25 * np.eye(len(gram)), atol=1e-12)
    traced = sw.jit(lambda key: sw.shard(init(key, shape), P("x")), mesh=MESH)(KEY)
    np.testing.assert_allclose(traced, init(KEY, shape), atol=2e-5)


@pytest.mark.parametrize("shape", [(3, 2, 4), (2, 5, 3, 3), (1, 2, 3, 2, 2)], ids=str)
def test_delta_orthogonal(shape: Any) -> None:
    theirs = of_jax(lambda key: THEIRS.delta_orthogonal(2.0)(key, shape), [KEY])[0]
    np.testing.assert_allclose(OURS.delta_orthogonal(2.0)(KEY, shape), theirs, atol=1e-5)


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
