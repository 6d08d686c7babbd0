# SPDX-License-Identifier: Apache-2.0
"""Sorts and top_k of `sw.lax` against JAX's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.lax.against_jax import JAX, MESH, check, check_gradient, placements

RANDOM = np.random.default_rng(0)
X = RANDOM.permutation(np.concatenate([np.arange(13.0), [2, 2, 5, np.nan, -np.inf, np.inf]]))[:18].reshape(3, 6)


@pytest.mark.parametrize("k", [0, 1, 4, 6])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64], ids=lambda d: np.dtype(d).name)
def test_top_k(k: int, dtype: Any) -> None:
    with np.errstate(invalid="ignore"):
        x = np.nan_to_num(X, nan=2, posinf=9, neginf=-9).astype(dtype)
    check("top_k", x, k=k)


def test_top_k_of_nan_and_infinities() -> None:
    check("top_k", X, k=5)


def test_top_k_along_another_dim() -> None:
    found, places = sw.lax.top_k(X[:, :4], 2, axis=0)
    np.testing.assert_array_equal(found, np.sort(X[:, :4], 0)[::-1][:2])
    assert (places.shape, places.dtype) == ((2, 4), np.int32)


def test_gradient_of_top_k() -> None:
    check_gradient("top_k", RANDOM.permutation(12.0 * np.arange(12)).reshape(3, 4), k=2)


def test_sort_of_one_array() -> None:
    for dimension in (0, 1, -1):
        check("sort", X, dimension=dimension)


@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_sort_of_several_arrays_by_several_keys(num_keys: int) -> None:
    keys = [RANDOM.integers(0, 3, (5, 6)), RANDOM.integers(0, 3, (5, 6)).astype(np.float32), RANDOM.normal(size=(5, 6))]
    with JAX.enable_x64(True):
        expected = [np.asarray(x) for x in JAX.lax.sort(tuple(map(JAX.numpy.asarray, keys)), 1, num_keys=num_keys)]
    plain = sw.lax.sort(tuple(keys), 1, num_keys=num_keys)
    assert all(map(np.array_equal, plain, expected))
    for spec in placements(keys[0]):
        run = sw.jit(lambda a, b, c, s=spec: sw.lax.sort((sw.shard(a, s), b, c), 1, num_keys=num_keys), mesh=MESH)
        assert all(map(np.array_equal, run(*keys), expected))


def test_sort_key_val() -> None:
    check("sort_key_val", X, np.arange(18).reshape(3, 6))


def test_argsort_by_keys_is_lexsort_from_the_first_key() -> None:
    keys = [RANDOM.integers(0, 3, 30), RANDOM.integers(0, 3, 30), RANDOM.normal(size=30)]
    found = sw.lax.argsort(tuple(keys))
    np.testing.assert_array_equal(found, np.lexsort(keys[::-1]))
    assert found.dtype == np.int32
