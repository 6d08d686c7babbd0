# SPDX-License-Identifier: Apache-2.0
"""Gathers and scatters of `sw.lax` against JAX's: dimension numbers, batching dims, modes, gradients."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise.lax import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from tests.lax.against_jax import JAX, MESH, placements

X = np.random.default_rng(0).normal(size=(5, 6, 3))
MODES = ["clip", "fill", "promise_in_bounds", None]

# Dimension numbers, indices, slice sizes. Some indices are beyond the borders.
GATHERS: dict[str, tuple[GatherDimensionNumbers, np.ndarray, tuple[int, ...]]] = {
    "rows": (GatherDimensionNumbers((1, 2), (0,), (0,)), np.array([[0], [4], [2], [7], [-1]]), (1, 6, 3)),
    "points": (
        GatherDimensionNumbers((), (0, 1, 2), (0, 1, 2)), np.array([[1, 2, 0], [4, 5, 2], [5, 0, 0]]), (1, 1, 1),
    ),
    "windows": (GatherDimensionNumbers((0, 2, 3), (), (1, 0)), np.array([[1, 1], [4, 3], [0, -2]]), (2, 3, 3)),
    "batching": (
        GatherDimensionNumbers((1,), (1,), (1,), (0,), (0,)), np.array([[0], [5], [2], [6], [1]]), (1, 1, 3),
    ),
}  # fmt: skip


def inside(indices: np.ndarray, sizes: tuple[int, ...], mapped: tuple[int, ...]) -> np.ndarray:
    return np.clip(indices, 0, [X.shape[d] - sizes[d] for d in mapped])


def theirs(numbers: Any) -> Any:
    return getattr(JAX.lax, type(numbers).__name__)(**asdict(numbers))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GATHERS)
def test_gather(name: str, mode: Any) -> None:
    numbers, indices, sizes = GATHERS[name]
    if mode in ("promise_in_bounds", None):
        indices = inside(indices, sizes, numbers.start_index_map)
    with JAX.enable_x64(True):
        expected = JAX.lax.gather(X, indices, theirs(numbers), slice_sizes=sizes, mode=mode)
    found = sw.lax.gather(X, indices, numbers, sizes, mode=mode)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, expected)
    for spec in placements(X):
        run = sw.jit(lambda x, i, s=spec: sw.lax.gather(sw.shard(x, s), i, numbers, sizes, mode=mode), mesh=MESH)
        np.testing.assert_array_equal(run(X, indices), expected)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool, np.float32], ids=lambda d: np.dtype(d).name)
def test_what_is_outside_is_filled_by_dtype(dtype: Any) -> None:
    numbers, indices, sizes = GATHERS["rows"]
    x = (X * 10).astype(np.int32).astype(dtype)
    for options in ({}, {"fill_value": 1}):
        expected = JAX.lax.gather(x, indices, theirs(numbers), slice_sizes=sizes, mode="fill", **options)
        np.testing.assert_array_equal(sw.lax.gather(x, indices, numbers, sizes, mode="fill", **options), expected)


def updates_of(name: str) -> tuple[ScatterDimensionNumbers, np.ndarray, np.ndarray, tuple[int, ...]]:
    gather, indices, sizes = GATHERS[name]
    numbers = ScatterDimensionNumbers(
        gather.offset_dims, gather.collapsed_slice_dims, gather.start_index_map, gather.operand_batching_dims,
        gather.start_indices_batching_dims,
    )  # fmt: skip
    shape = np.shape(sw.lax.gather(X, indices, gather, sizes))
    return numbers, indices, np.random.default_rng(1).normal(size=shape), sizes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GATHERS)
@pytest.mark.parametrize("function", ["scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"])
def test_scatter(function: str, name: str, mode: Any) -> None:
    numbers, indices, updates, sizes = updates_of(name)
    if mode == "promise_in_bounds":
        indices = inside(indices, sizes, numbers.scatter_dims_to_operand_dims)
    ours, jaxs = getattr(sw.lax, function), getattr(JAX.lax, function)
    with JAX.enable_x64(True):
        expected = np.asarray(jaxs(X, indices, updates, theirs(numbers), mode=mode))
    if function == "scatter" and name == "windows":
        updates = np.ones_like(updates)  # where windows overlap, JAX may write them in any order
        with JAX.enable_x64(True):
            expected = np.asarray(jaxs(X, indices, updates, theirs(numbers), mode=mode))
    np.testing.assert_allclose(ours(X, indices, updates, numbers, mode=mode), expected, rtol=1e-14)
    for spec in placements(X):
        run = sw.jit(lambda x, i, u, s=spec: ours(sw.shard(x, s), i, u, numbers, mode=mode), mesh=MESH)
        np.testing.assert_allclose(run(X, indices, updates), expected, rtol=1e-14)


@pytest.mark.parametrize("name", GATHERS)
def test_gradients(name: str) -> None:
    numbers, indices, updates, sizes = updates_of(name)
    gather = GATHERS[name][0]

    def loss(library: Any, lax: Any, gathering: Any, scattering: Any) -> Any:
        def of(x: Any, u: Any) -> Any:
            y = lax.scatter_add(x, indices, u, scattering, mode="drop")
            return (library.cos(lax.gather(y, indices, gathering, slice_sizes=sizes, mode="clip")) * u).sum()

        return of

    with JAX.enable_x64(True):
        expected = JAX.grad(loss(JAX.numpy, JAX.lax, theirs(gather), theirs(numbers)), (0, 1))(X, updates)
    for spec in placements(X):
        run = sw.jit(
            lambda x, u, s=spec: sw.grad(loss(np, sw.lax, gather, numbers), (0, 1))(sw.shard(x, s), u), mesh=MESH
        )
        of_x, of_updates = run(X, updates)
        np.testing.assert_allclose(of_x, expected[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(of_updates, expected[1], rtol=1e-12, atol=1e-12)


def test_modes_have_jaxs_names() -> None:
    assert GatherScatterMode.from_any("drop") is GatherScatterMode.FILL_OR_DROP
    assert GatherScatterMode.from_any(GatherScatterMode.CLIP) is GatherScatterMode.CLIP
    with pytest.raises(ValueError, match="mode must be one of JAX's"):
        GatherScatterMode.from_any("wrap")
