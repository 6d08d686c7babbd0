# SPDX-License-Identifier: Apache-2.0
"""`sw.lax.dot_general` and `sw.lax.ragged_dot` against JAX's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.lax.against_jax import MESH, check, check_gradient
from tests.lax.cases import PRODUCTS, Case
from tests.lax.comparing import WORKER, compare
from tests.support.once_per_run import written_by

RANDOM = np.random.default_rng(0)
X, W = RANDOM.normal(size=(6, 3, 4, 5)), RANDOM.normal(size=(4, 6, 5, 7))
NUMBERS = [
    (((3,), (2,)), ((0, 2), (1, 0))),
    (((3, 0), (2, 1)), ((2,), (0,))),
    (((), ()), ((0,), (1,))),
    (((3,), (2,)), ((), ())),
]


@pytest.fixture(scope="module")
def jax_results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return dict(np.load(written_by(tmp_path_factory, WORKER, "out.npz")))


@pytest.mark.parametrize("case", PRODUCTS, ids=[case.name for case in PRODUCTS])
def test_results_and_gradients_are_those_of_jax(case: Case, jax_results: Any) -> None:
    compare("products", case, jax_results)


@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
def test_dot_general(numbers: Any) -> None:
    check("dot_general", X, W, numbers, rtol=1e-13, atol=1e-14)
    check_gradient("dot_general", X, W, numbers)


@pytest.mark.parametrize(("dtype", "wide"), [(np.int8, np.int32), (sw.bfloat16, np.float32), (np.float32, np.float32)])
def test_sums_are_kept_in_the_preferred_dtype(dtype: Any, wide: Any) -> None:
    # Sums of 64 products up to 100: neither int8 nor bfloat16 holds them.
    x, w = (RANDOM.integers(-10, 11, shape).astype(dtype) for shape in ((8, 64), (64, 4)))
    check("dot_general", x, w, (((1,), (0,)), ((), ())), preferred_element_type=wide)


SIZES = [[2, 0, 4, 1], [0, 0, 0, 7], [7, 0, 0, 0], [1, 2, 1, 1], [0, 0, 0, 0]]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_ragged_dot(sizes: list[int]) -> None:
    rows, matrices = RANDOM.normal(size=(7, 5)), RANDOM.normal(size=(4, 5, 6))
    check("ragged_dot", rows, matrices, np.array(sizes, np.int32), rtol=1e-13, atol=1e-14)
    check_gradient("ragged_dot", rows, matrices, np.array(sizes, np.int32))


def expected_rows(rows: np.ndarray, matrices: np.ndarray, sizes: list[int], first: int = 0) -> np.ndarray:
    expected, begin = np.zeros((rows.shape[0], matrices.shape[2])), 0
    for group, size in enumerate(sizes):
        if first <= group < first + len(matrices):
            expected[begin : begin + size] = rows[begin : begin + size] @ matrices[group - first]
        begin += size
    return expected


@pytest.mark.parametrize("split", [P("x"), P(None, "x"), P(None, None, "y")], ids=str)
def test_ragged_dot_of_split_matrices(split: Any) -> None:
    rows, matrices = RANDOM.normal(size=(7, 5)), RANDOM.normal(size=(4, 5, 6))
    run = sw.jit(lambda x, w, n: sw.lax.ragged_dot(x, sw.shard(w, split), n), mesh=MESH)
    np.testing.assert_allclose(
        run(rows, matrices, np.array([2, 0, 4, 1])), expected_rows(rows, matrices, [2, 0, 4, 1]), rtol=1e-13, atol=1e-14
    )


def test_ragged_dot_of_some_of_the_groups() -> None:
    rows, matrices = RANDOM.normal(size=(9, 5)), RANDOM.normal(size=(2, 5, 6))
    sizes = [2, 3, 1, 2]
    for first in (0, 1, 2):
        found = sw.lax.ragged_dot(rows, matrices, np.array(sizes), group_offset=np.array([first]))
        np.testing.assert_allclose(found, expected_rows(rows, matrices, sizes, first), rtol=1e-13, atol=1e-14)


def test_a_group_sees_no_nan_of_another_one() -> None:
    rows, matrices = np.ones((4, 2)), np.ones((2, 2, 3))
    matrices[1] = np.nan
    found = sw.lax.ragged_dot(rows, matrices, np.array([3, 1]))
    np.testing.assert_array_equal(found, np.array([[2.0] * 3] * 3 + [[np.nan] * 3]))
