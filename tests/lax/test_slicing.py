# SPDX-License-Identifier: Apache-2.0
"""Dynamic slices and updates of `sw.lax` against JAX's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.lax.against_jax import MESH, check, check_gradient, placements

X = np.arange(35, dtype=np.float64).reshape(5, 7)
STARTS = [(0, 0), (1, 3), (4, 6), (-2, -3), (100, -100), (np.int32(2), np.int32(-1))]


@pytest.mark.parametrize("starts", STARTS)
def test_slices(starts: Any) -> None:
    check("dynamic_slice", X, starts, slice_sizes=(2, 4))
    check("dynamic_slice", X, np.array(starts), slice_sizes=(5, 1))
    check("dynamic_slice", X, starts, slice_sizes=(0, 7))


@pytest.mark.parametrize("starts", STARTS)
def test_updates(starts: Any) -> None:
    check("dynamic_update_slice", X, -X[:2, :3], starts)
    check("dynamic_update_slice", X, -X, starts)


@pytest.mark.parametrize("start", [0, 2, 9, -1, -9])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_slices_of_one_dim(start: int, axis: int) -> None:
    check("dynamic_slice_in_dim", X, start, slice_size=3, axis=axis)
    check("dynamic_index_in_dim", X, start, axis=axis)
    check("dynamic_index_in_dim", X, start, axis=axis, keepdims=False)
    check("dynamic_update_slice_in_dim", X, -np.take(X, [0, 1], axis), start, axis)
    check("dynamic_update_index_in_dim", X, -np.take(X, 0, axis), start, axis)


def test_starts_of_every_integer_dtype() -> None:
    for dtype in (np.int8, np.uint8, np.int32, np.uint32, np.int64):
        check("dynamic_slice", X, (dtype(3), dtype(200 if np.dtype(dtype).kind == "u" else 100)), slice_sizes=(2, 4))


def test_starts_are_wider_than_their_dtype() -> None:
    long = np.arange(500)
    np.testing.assert_array_equal(sw.lax.dynamic_slice(long, (np.int8(-3),), (3,)), [497, 498, 499])
    np.testing.assert_array_equal(sw.lax.dynamic_index_in_dim(long, np.int8(-1)), [499])
    for start in ((np.uint64(2**63 + 5), np.int32(0)), (np.uint64(2**64 - 1), np.uint64(0))):
        np.testing.assert_array_equal(sw.lax.dynamic_slice(X, start, (1, 7)), X[4:])


def test_starts_that_a_program_computes() -> None:
    for spec in placements(X):
        run = sw.jit(lambda x, i, s=spec: sw.lax.dynamic_slice(sw.shard(x, s), (i, i + 1), (2, 3)), mesh=MESH)
        np.testing.assert_array_equal(run(X, np.int32(1)), X[1:3, 2:5])


def test_gradients() -> None:
    check_gradient("dynamic_slice", X, (1, 9), slice_sizes=(2, 4))
    check_gradient("dynamic_update_slice", X, -X[:2, :3], (1, 9))


@pytest.mark.parametrize(
    "config", [[(1, 2, 0), (0, 0, 3)], [(-1, 0, 2), (-3, -2, 0)], [(-5, 0, 0), (2, -4, 1)]], ids=str
)
def test_pads(config: Any) -> None:
    check("pad", X, np.float64(7.5), config)
    check("pad", X.astype(np.int8), np.int8(-1), config)
    check_gradient("pad", X, np.float64(0), config)
