# SPDX-License-Identifier: Apache-2.0
"""Convolutions of `sw.lax`: those of JAX, whole and split along each kind of dim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, lax
from shardwise.testing import assert_collectives
from tests.lax.cases import ALL, IMAGES, KERNEL, LAST, Case
from tests.lax.comparing import WORKER, compare, compare_placed
from tests.support.once_per_run import written_by

CASES = ALL["convolution"]


@pytest.fixture(scope="module")
def jax_results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return dict(np.load(written_by(tmp_path_factory, WORKER, "out.npz")))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_results_and_gradients_are_those_of_jax(case: Case, jax_results: Any) -> None:
    compare("convolution", case, jax_results)


@pytest.mark.parametrize("name", ["same", "transpose, same", "patches", "conv"])
def test_placed_arrays(name: str) -> None:
    compare_placed(next(case for case in CASES if case.name == name))


def test_a_split_batch_moves_nothing_and_a_split_space_its_halo() -> None:
    def convolved(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=LAST)

    mesh = sw.Mesh({"x": 4})
    x, kernel = np.ones(IMAGES, np.float32), np.ones(KERNEL, np.float32)
    batch = sw.jit(convolved, mesh=mesh, in_shardings=(P("x"), P()), out_shardings=P("x"))
    assert_collectives(batch.lower(x, kernel).compile())
    space = sw.jit(convolved, mesh=mesh, in_shardings=(P(None, "x"), P()), out_shardings=P(None, "x"))
    rows = space.lower(x, kernel).compile().collectives().rows
    # A device receives a row of each neighbour: 4 images of 6 x 3 float32.
    assert sum(row.bytes for row in rows) == 2 * 4 * 6 * 3 * 4


def test_precisions_are_kept_for_other_libraries() -> None:
    def convolved(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=LAST, precision=("high", None))

    arrays = np.ones(IMAGES, np.float32), np.ones(KERNEL, np.float32)
    text = sw.jit(convolved, mesh=sw.Mesh({"x": 1})).trace(*arrays).as_text()
    assert "precision HIGH" in text
    assert "precision DEFAULT" in text
    np.testing.assert_array_equal(sw.parse(text).compile()(*arrays), convolved(*arrays))
    assert "precision" not in sw.jit(
        lambda x, k: lax.conv(x, k, (1, 1), "VALID", precision="default"), mesh=sw.Mesh({"x": 1})
    ).trace(np.ones((1, 3, 4, 4)), np.ones((2, 3, 2, 2))).as_text()  # fmt: skip


def test_under_vmap_and_in_a_scan() -> None:
    case = next(case for case in CASES if case.name == "default order")
    x, kernel = case.arrays()
    batch = np.stack([x, 2 * x, -x])
    mesh = sw.Mesh({"x": 2})
    expected = np.stack([lax.conv_general_dilated(row, kernel, (2,), "SAME") for row in batch])
    found = sw.jit(sw.vmap(lambda x: lax.conv_general_dilated(x, kernel, (2,), "SAME")), mesh=mesh)(batch)
    np.testing.assert_array_equal(found, expected)
    scanned = sw.jit(
        lambda xs: sw.scan(lambda c, x: (c, lax.conv_general_dilated(x, kernel, (2,), "SAME")), 0, xs)[1], mesh=mesh
    )(batch)
    np.testing.assert_array_equal(scanned, expected)


def test_numbers_of_dims() -> None:
    numbers = lax.conv_dimension_numbers(IMAGES, KERNEL, LAST)
    assert numbers == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    assert (numbers.lhs_spec, numbers.rhs_spec) == ((0, 3, 1, 2), (3, 2, 0, 1))
    assert lax.conv_dimension_numbers(IMAGES, KERNEL, numbers) == numbers
    assert lax.conv_dimension_numbers(IMAGES, KERNEL, None) == ((0, 1, 2, 3),) * 3


def test_pads_of_names() -> None:
    for name, pads in {"SAME": [(0, 1), (1, 2)], "same_lower": [(1, 0), (2, 1)], "VALID": [(0, 0)] * 2}.items():
        assert lax.padtype_to_pads([8, 5], [3, 4], [2, 1], name) == pads
    assert lax.padtype_to_pads(np.array([8]), (3,), (9,), "SAME") == [(0, 0)]
