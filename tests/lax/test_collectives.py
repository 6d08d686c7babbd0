# SPDX-License-Identifier: Apache-2.0
"""`sw.lax` in manual regions. JAX is the oracle in tests/conformance/jax/manual; here, what that does not reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, lax
from shardwise.testing import assert_collectives

MESH = sw.Mesh({"x": 4, "y": 2})
OVER_X = P("x")
X = np.arange(64, dtype=np.float32).reshape(16, 4) - 20


def mapped(body: Callable[..., Any], ins: Any = OVER_X, outs: Any = OVER_X, **options: Any) -> Any:
    return sw.jit(sw.shard_map(body, mesh=MESH, in_specs=ins, out_specs=outs, **options), mesh=MESH)


def parts(x: np.ndarray = X, count: int = 4) -> list[np.ndarray]:
    return np.split(x, count)


def test_groups_have_sums_of_their_own() -> None:
    groups = [[0, 2], [3, 1]]
    a, b, c, d = parts()
    np.testing.assert_array_equal(
        mapped(lambda x: lax.psum(x, "x", axis_index_groups=groups))(X), np.concatenate([a + c, b + d, a + c, b + d])
    )
    np.testing.assert_array_equal(
        mapped(lambda x: lax.pmax(x, "x", axis_index_groups=groups))(X),
        np.concatenate([np.maximum(a, c), np.maximum(b, d)] * 2),
    )
    # In the order of the group: device 3 has the first place of the second one.
    gathered = mapped(lambda x: lax.all_gather(x, "x", axis=1, axis_index_groups=groups, tiled=True))(X)
    np.testing.assert_array_equal(gathered, np.concatenate([np.concatenate(p, 1) for p in ((a, c), (d, b)) * 2]))
    scattered = mapped(lambda x: lax.psum_scatter(x, "x", axis_index_groups=groups, tiled=True))(X)
    np.testing.assert_array_equal(scattered, np.concatenate([(a + c)[:2], (d + b)[2:], (a + c)[2:], (d + b)[:2]]))


def test_groups_along_one_of_two_manual_axes() -> None:
    x = np.arange(8, dtype=np.int32).reshape(4, 2)
    found = mapped(lambda x: lax.psum(x, "x", axis_index_groups=[[0, 3], [1, 2]]), P("x", "y"), P("x", "y"))(x)
    np.testing.assert_array_equal(found, [x[0] + x[3], x[1] + x[2], x[1] + x[2], x[0] + x[3]])


def test_several_axes_count_in_the_order_of_their_names() -> None:
    """The last one is the fastest, in axis_index, all_gather and ppermute."""
    number = mapped(lambda x: x * 0 + lax.axis_index(("y", "x")), P(("x", "y")), P(("x", "y")))
    places = np.asarray(number(np.zeros(8, np.int32)))
    np.testing.assert_array_equal(places, [0, 4, 1, 5, 2, 6, 3, 7])
    x = np.arange(8, dtype=np.int32)
    gathered = mapped(lambda x: lax.all_gather(x, ("y", "x"), tiled=True), P(("x", "y")), P())(x)
    np.testing.assert_array_equal(np.asarray(gathered)[places], x)
    ring = [(i, (i + 1) % 8) for i in range(8)]
    moved = np.asarray(mapped(lambda x: lax.ppermute(x, ("y", "x"), ring), P(("x", "y")), P(("x", "y")))(x))
    by_place = np.empty_like(x)
    by_place[places] = moved
    expected = np.empty_like(x)
    expected[places] = x
    np.testing.assert_array_equal(by_place, np.roll(expected, 1))


def test_a_device_that_is_no_target_gets_zeros() -> None:
    found = mapped(lambda x: lax.ppermute(x, "x", [(0, 3), (2, 0)]))(X)
    a, _, c, _ = parts()
    np.testing.assert_array_equal(found, np.concatenate([c, np.zeros((8, 4), np.float32), a]))


def test_pshuffle_names_the_source_of_each_device() -> None:
    found = mapped(lambda x: lax.pshuffle(x, "x", [2, 0, 3, 1]))(X)
    np.testing.assert_array_equal(found, np.concatenate([parts()[i] for i in (2, 0, 3, 1)]))


def test_numbers_and_trees() -> None:
    assert np.asarray(mapped(lambda x: x[:1] * lax.psum(1, ("x", "y")))(np.ones(4, np.int32))).tolist() == [8] * 4

    def body(x: Any) -> Any:
        summed = lax.psum({"sum": x, "twice": (x * 2,)}, "x")
        return summed["sum"], summed["twice"][0]

    once, twice = mapped(body, P("x"), P())(X)
    np.testing.assert_array_equal(once, sum(parts()))
    np.testing.assert_array_equal(twice, 2 * sum(parts()))
    assert mapped(lambda x: x * lax.axis_size(("x", "y")))(X).dtype == np.float32


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int32, np.uint8, sw.bfloat16], ids=lambda d: np.dtype(d).name
)
def test_dtypes_stay(dtype: Any) -> None:
    x = np.arange(8).astype(dtype)
    for function in (lax.psum, lax.pmax, lax.pmin):
        assert mapped(lambda x, f=function: f(x, "x"), P("x"), P())(x).dtype == dtype
    mean = mapped(lambda x: lax.pmean(x, "x"), P("x"), P())(x)
    assert mean.dtype == (dtype if np.dtype(dtype).kind not in "iu" else np.float64)
    np.testing.assert_array_equal(np.asarray(mean, np.float64), [3, 4])


def test_sums_of_booleans_count() -> None:
    x = np.array([1, 0, 1, 1, 0, 0, 1, 0], bool)
    total = mapped(lambda x: lax.psum(x, "x"), P("x"), P())(x)
    assert total.dtype == np.int32
    np.testing.assert_array_equal(total, [3, 1])
    np.testing.assert_array_equal(mapped(lambda x: lax.pmean(x, "x"), P("x"), P())(x), [0.75, 0.25])
    scattered = mapped(lambda x: lax.psum_scatter(x, "y", tiled=True), P(), P("y"))(x)
    np.testing.assert_array_equal(scattered, 2 * x.astype(np.int32))


def test_untiled_forms() -> None:
    x = np.arange(4 * 4 * 4, dtype=np.float32).reshape(16, 4)
    stacked = mapped(lambda x: lax.all_gather(x, "x", axis=-1), P("x"), P())(x)
    np.testing.assert_array_equal(stacked, np.stack(parts(x), -1))
    # Device p gets row p of the sum.
    scattered = mapped(lambda x: lax.psum_scatter(x, "x")[None], P("x"), P("x"))(x)
    np.testing.assert_array_equal(scattered, sum(parts(x)))
    for split, concat in ((0, 0), (0, 1), (1, 0), (1, 1)):
        found = mapped(lambda x, s=split, c=concat: lax.all_to_all(x, "x", s, c)[None], P("x"), P("x"))(x)
        expected = [np.stack([np.take(part, p, split) for part in parts(x)], concat) for p in range(4)]
        np.testing.assert_array_equal(found, np.stack(expected))


def test_gradients_are_those_of_the_function_of_whole_arrays() -> None:
    def through_ring(x: Any) -> Any:
        moved = lax.ppermute(np.sin(x), "x", [(i, (i + 1) % 4) for i in range(4)])
        return moved * lax.psum(x, "x") + lax.all_gather(x, "x", tiled=True).sum()

    def whole(x: Any) -> Any:
        return np.roll(np.sin(x), 4, 0) * np.tile(x.reshape(4, 4, 4).sum(0), (4, 1)) + x.sum()

    region = sw.shard_map(through_ring, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    x = X.astype(np.float64) / 10
    weights = np.random.default_rng(0).normal(size=x.shape)
    found = sw.jit(sw.grad(lambda x: (region(x) * weights).sum()), mesh=MESH)(x)
    expected = sw.jit(sw.grad(lambda x: (whole(x) * weights).sum()), mesh=MESH)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_they_run_in_scans_and_under_vmap() -> None:
    ring = [(i, (i + 1) % 4) for i in range(4)]

    def body(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            part, total = carry
            part = lax.ppermute(part, "x", ring)
            return (part, total + part), lax.psum(part.sum(), "x")

        (_, total), sums = sw.scan(step, (x, x), None, length=3)
        return total + sums.sum() * 0

    np.testing.assert_array_equal(mapped(body)(X), np.tile(sum(parts()), (4, 1)))
    region = sw.shard_map(lambda x: x - lax.pmax(x, "x"), mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    batch = np.stack([X, 2 * X, -X])
    expected = np.stack([x - np.tile(np.max(parts(x), 0), (4, 1)) for x in batch])
    np.testing.assert_array_equal(sw.jit(sw.vmap(region), mesh=MESH)(batch), expected)


def test_derivatives_inside_a_region_are_those_of_jax() -> None:
    """What random_regions compares with JAX, by hand: of a value that all devices have, the sum over them."""
    x = X.astype(np.float64)

    def by_both(x: Any) -> Any:
        def loss(w: Any, x: Any) -> Any:
            return (lax.psum(w * x, "x") * x).sum()

        by_w, by_x = sw.grad(loss, (0, 1))(np.float64(3), x)
        return by_w, by_x

    by_w, by_x = mapped(by_both, P("x"), (P(), P("x")))(x)
    total = sum(parts(x))
    np.testing.assert_allclose(by_w, (total * total).sum())
    np.testing.assert_allclose(by_x, np.tile(6 * total, (4, 1)))
    # Unchecked, the sum of the cotangents is not known to be the same: psum is its own transpose.
    unchecked = mapped(lambda x: sw.grad(lambda y: lax.psum((y * y).sum(), "x"))(x), check_vma=False)
    np.testing.assert_allclose(unchecked(x), 4 * 2 * x)
    np.testing.assert_allclose(mapped(lambda x: sw.grad(lambda y: lax.psum((y * y).sum(), "x"))(x))(x), 2 * x)


def test_derivatives_of_collectives_in_a_vmap() -> None:
    x = np.arange(1.0, 5)
    ours = sw.vmap(sw.grad(lambda y: lax.psum(y * y, "i")), axis_name="i")
    np.testing.assert_allclose(ours(x), 8 * x)
    gathered = sw.vmap(sw.grad(lambda y: (lax.all_gather(y, "i") ** 2).sum()), axis_name="i")
    np.testing.assert_allclose(gathered(x), 8 * x)
    ring = [(i, (i + 1) % 4) for i in range(4)]
    moved = sw.vmap(sw.grad(lambda y: lax.ppermute(y, "i", ring) * y * y), axis_name="i")
    np.testing.assert_allclose(moved(x), 2 * np.roll(x, 1) * x + np.roll(x * x, -1))


@pytest.mark.parametrize("reduced", [lax.pmax, lax.pmin])
def test_extrema_have_a_derivative_around_a_region_alone(reduced: Any) -> None:
    with pytest.raises(sw.UnsupportedError, match="only sums over devices have a derivative inside a manual region"):
        mapped(lambda x: sw.grad(lambda y: reduced(y, "x").sum())(x))(X.astype(np.float64))
    region = sw.shard_map(lambda x: reduced(x, "x"), mesh=MESH, in_specs=P("x"), out_specs=P())
    by_x = sw.jit(sw.grad(lambda x: region(x).sum()), mesh=MESH)(X.astype(np.float64))
    assert np.asarray(by_x).sum() == 16


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("is_large", [True, False])
def test_branches_keep_apart_what_is_equal_on_all_devices(is_large: bool, check_vma: bool) -> None:
    """The sum of one branch and the product of the other have one type; the cotangent of the sum alone is summed."""
    weight = np.random.default_rng(0).normal(size=(4, 4))

    def with_sum(x: Any) -> Any:
        return x - lax.psum(np.sin(x), "x") + 0 * lax.axis_index("x")

    def with_product(x: Any) -> Any:
        return x @ weight + 0 * lax.axis_index("x")

    def branched(x: Any) -> Any:
        is_above = lax.psum(np.abs(x).sum(), "x") > (0 if is_large else 1e6)
        return sw.cond(is_above, with_sum, with_product, x)

    def by(function: Any) -> Any:
        body = sw.shard_map(
            lambda x: sw.grad(lambda x: np.sin(function(x)).sum())(x), mesh=MESH, in_specs=P("x"), out_specs=P("x"),
            check_vma=check_vma,
        )  # fmt: skip
        return np.asarray(sw.jit(body, mesh=MESH)(X.astype(np.float64) / 50))

    np.testing.assert_allclose(by(branched), by(with_sum if is_large else with_product), rtol=1e-12)


def test_a_condition_that_differs_runs_both_branches() -> None:
    """No device waits for one that took the other branch; the collective has all of them."""

    def body(x: Any) -> Any:
        return sw.cond(lax.axis_index("x") > 1, lambda: x - lax.psum(x, "x"), lambda: lax.ppermute(x, "x", [(1, 0)]))

    _, b, c, d = parts()
    expected = [b, np.zeros_like(b), c - sum(parts()), d - sum(parts())]
    np.testing.assert_array_equal(mapped(body)(X), np.concatenate(expected))
    by_example = sw.vmap(lambda s, x: sw.cond(s > 0, lambda: lax.psum(x, "x"), lambda: x), in_axes=(0, None))
    found = mapped(lambda x: by_example(np.array([1.0, -1.0]), x), P("x"), P(None, "x"))(X)
    np.testing.assert_array_equal(found, np.stack([np.tile(sum(parts()), (4, 1)), X]))


def test_other_axes_are_partitioned_automatically() -> None:
    def body(x: Any) -> Any:
        return lax.psum(sw.split(x @ np.ones((4, 6), np.float32), 1, "y"), "x")

    program = mapped(body, P("x"), P(), axis_names={"x"}).lower(X).compile()
    np.testing.assert_array_equal(program(X), sum(parts()) @ np.ones((4, 6), np.float32))
    (row,) = program.collectives().rows
    assert (row.kind, row.bytes) == ("all_reduce", 2 * 4 * 3 * 4 * 3 / 4)  # 4 x 3 of the 4 x 6


def test_text_does_not_depend_on_the_number_of_devices() -> None:
    """Groups are axes, not lists of a million devices."""
    mesh = sw.Mesh({"x": 1 << 10, "y": 1 << 10})
    body = sw.shard_map(
        lambda x: lax.psum(x, "x") + lax.axis_index("y") + lax.axis_size("y"), mesh=mesh, in_specs=P("x", "y"),
        out_specs=P(None, "y"),
    )  # fmt: skip
    traced = sw.jit(body, mesh=mesh).trace(sw.ShapeDtypeStruct((1 << 12, 1 << 12), np.int32))
    assert len(traced.as_text()) < 2000
    assert_collectives(traced.lower().compile(), all_reduce=1)


def test_a_parsed_text_is_the_same_program() -> None:
    function = mapped(lambda x: lax.ppermute(lax.psum(x, "x", axis_index_groups=[[0, 3], [1, 2]]), "x", [(0, 1)]))
    text = function.trace(X).as_text()
    assert "shardwise.along" in text
    np.testing.assert_array_equal(sw.parse(text).compile()(X), function(X))
