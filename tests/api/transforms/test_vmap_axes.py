# SPDX-License-Identifier: Apache-2.0
"""vmap with axis_name, axis_size and spmd_axis_name: collectives over the examples against NumPy on all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 2, "y": 2})
ROWS = np.random.default_rng(2).standard_normal((4, 4)) + 3.0
ODD = np.random.default_rng(2).standard_normal((5, 3)) + 3.0

# The function of an example, and the same on all rows.
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "psum": (lambda r: r / sw.lax.psum(r, "i"), lambda x: x / x.sum(0)),
    "psum of a number": (lambda r: r * sw.lax.psum(2, "i"), lambda x: x * 2 * len(x)),
    "pmean": (lambda r: r - sw.lax.pmean(r, "i"), lambda x: x - x.mean(0)),
    "pmax": (lambda r: sw.lax.pmax(r, "i") - sw.lax.pmin(r, "i"), lambda x: (x.max(0) - x.min(0)) * np.ones_like(x)),
    "axis_index": (lambda r: r * sw.lax.axis_index("i"), lambda x: x * np.arange(len(x))[:, None]),
    "axis_size": (lambda r: r * sw.lax.axis_size("i"), lambda x: x * len(x)),
    "all_gather": (lambda r: sw.lax.all_gather(r, "i") @ r, lambda x: np.einsum("jk,ik->ij", x, x)),
    "all_gather of dim 1": (lambda r: sw.lax.all_gather(r, "i", axis=1).sum(1), lambda x: x.sum(0) * np.ones_like(x)),
    "ppermute": (
        lambda r: sw.lax.ppermute(r, "i", [(0, 1), (1, 2)]),
        lambda x: np.concatenate([x[:1] * 0, x[:2], x[3:] * 0]),
    ),
    "loop": (
        lambda r: sw.fori_loop(0, 3, lambda _, c: c / sw.lax.psum(c, "i") + r, r),
        lambda x: (lambda f: f(f(f(x))))(lambda c: c / c.sum(0) + x),
    ),
    "branch": (
        lambda r: sw.cond(sw.lax.psum(r.sum(), "i") > 0, lambda: sw.lax.psum(r, "i") * r, lambda: r),
        lambda x: x.sum(0) * x,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rows", [ROWS, ODD], ids=["even", "uneven"])
def test_a_collective_over_the_examples(case: str, rows: np.ndarray) -> None:
    of_example, of_all = CASES[case]
    found = sw.jit(sw.vmap(of_example, axis_name="i"), mesh=MESH, in_shardings=P("x"))(rows)
    np.testing.assert_allclose(np.asarray(found), of_all(rows), rtol=1e-12)


def test_collectives_that_cut_a_dim() -> None:
    exchanged = sw.vmap(lambda r: sw.lax.all_to_all(r, "i", 0, 0), axis_name="i")(ROWS)
    np.testing.assert_array_equal(np.asarray(exchanged), ROWS.T)
    scattered = sw.vmap(lambda r: sw.lax.psum_scatter(r, "i"), axis_name="i")(ROWS)
    np.testing.assert_allclose(np.asarray(scattered), ROWS.sum(0), rtol=1e-12)
    groups = sw.vmap(lambda r: sw.lax.psum(r, "i", axis_index_groups=[[0, 1], [2, 3]]), axis_name="i")(ROWS)
    np.testing.assert_allclose(np.asarray(groups)[[0, 2]], [ROWS[:2].sum(0), ROWS[2:].sum(0)], rtol=1e-12)


def test_a_vmap_in_a_vmap() -> None:
    cube = np.random.default_rng(1).standard_normal((2, 3, 4))

    def f(r: Any) -> Any:
        both = sw.lax.psum(r, ("outer", "inner"))
        return (
            both
            + 2 * sw.lax.psum(r, "outer")
            + sw.lax.all_gather(r, "outer")[0]
            + sw.lax.axis_index(("outer", "inner"))
        )

    found = sw.vmap(sw.vmap(f, axis_name="inner"), axis_name="outer")(cube)
    wanted = cube.sum((0, 1)) + 2 * cube.sum(0) + cube[0] + np.arange(6).reshape(2, 3, 1)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12)


def test_derivatives_around_a_vmap_with_collectives() -> None:
    def f(x: Any) -> Any:
        return sw.vmap(lambda r: r / sw.lax.psum(r * r, "i"), axis_name="i")(x)

    def plain(x: Any) -> Any:
        return x / np.sum(x * x, axis=0)

    for transform in (sw.jacrev, sw.jacfwd):
        found = sw.jit(transform(f), mesh=MESH, in_shardings=P("x"))(ROWS)
        np.testing.assert_allclose(np.asarray(found), np.asarray(transform(plain)(ROWS)), rtol=1e-12, atol=1e-14)


def test_a_collective_of_a_vmap_is_differentiated_inside() -> None:
    """All examples add to the sum, and each has the cotangents of all."""
    found = sw.vmap(lambda r: sw.grad(lambda y: sw.lax.psum(y * y, "i").sum())(r), axis_name="i")(ROWS)
    np.testing.assert_allclose(found, 2 * len(ROWS) * ROWS)
    with pytest.raises(sw.UnsupportedError, match="only sums over devices have a derivative"):
        sw.vmap(lambda r: sw.grad(lambda y: sw.lax.pmax(y * y, "i").sum())(r), axis_name="i")(ROWS)


def test_a_vmap_of_a_collective_in_a_manual_region() -> None:
    region = sw.shard_map(
        lambda part: sw.vmap(lambda r: sw.lax.psum(r, "x"), in_axes=1, out_axes=1)(part),
        mesh=MESH, in_specs=P("x"), out_specs=P(),
    )  # fmt: skip
    np.testing.assert_allclose(np.asarray(sw.jit(region, mesh=MESH)(ROWS)), ROWS[:2] + ROWS[2:], rtol=1e-12)


def test_axis_size_without_a_mapped_argument() -> None:
    found = sw.vmap(lambda x: x * sw.lax.axis_index("i"), in_axes=None, axis_name="i", axis_size=3)(ROWS[0])
    np.testing.assert_array_equal(np.asarray(found), ROWS[0] * np.arange(3)[:, None])
    assert sw.vmap(lambda: np.float32(2), axis_size=3)().shape == (3,)


def test_one_example() -> None:
    found = sw.vmap(lambda r: sw.lax.psum(r, "i") + sw.lax.all_gather(r, "i")[0], axis_name="i")(ROWS[:1])
    np.testing.assert_allclose(np.asarray(found), 2 * ROWS[:1])


def test_the_mesh_axes_of_the_examples() -> None:
    def texts(**options: Any) -> list[str]:
        mapped = sw.vmap(lambda r: sw.shard(r * 2, P("y")), **options)
        lines = sw.jit(mapped, mesh=MESH).trace(ROWS).as_text().splitlines()
        return [line.split("<@mesh, ")[1].split(">")[0] for line in lines if "sharding_constraint" in line]

    assert texts() == ['[{?}, {"y"}]']
    assert texts(spmd_axis_name="x") == ['[{"x"}, {"y"}]']
    with pytest.raises(sw.ShardingError):
        texts(spmd_axis_name="y")


def test_partitioned_programs_match_the_unpartitioned_ones() -> None:
    function = sw.vmap(lambda r: r / sw.lax.psum(r, "i"), axis_name="i")
    sw.testing.assert_matches_unpartitioned(function, ROWS, mesh=MESH, in_shardings=P("x"))


@pytest.mark.parametrize("batches", [1, 2], ids=["one vmap", "two vmaps"])
def test_a_sharding_group_of_batched_and_other_values(batches: int) -> None:
    """Members that vmap does not batch have another shape: they are a group of their own."""
    mesh, shared = sw.Mesh({"x": 4}), np.ones((8, 4), np.float32)

    def one(x: Any) -> Any:
        batched = np.sin(x)
        sw.sharding_group((batched, shared * 2, x * 3), 7)
        return sw.split(batched, 0, "x") + shared

    function: Any = one
    for _ in range(batches):
        function = sw.vmap(function)
    x = np.linspace(0, 1, 32 * 3**batches, dtype=np.float32).reshape((3,) * batches + (8, 4))
    np.testing.assert_allclose(sw.jit(function, mesh=mesh)(x), np.sin(x) + 1, rtol=1e-6)
    # Several vmaps of one function give members of other shapes.
    both = sw.jit(lambda x: (function(x), function(x[:2]), one(x[(0,) * batches])), mesh=mesh)(x)
    for found, right in zip(both, (x, x[:2], x[(0,) * batches]), strict=True):
        np.testing.assert_allclose(found, np.sin(right) + 1, rtol=1e-6)
