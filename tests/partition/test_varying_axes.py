# SPDX-License-Identifier: Apache-2.0
"""Which values of a manual region vary along its axes: a result whose spec does not name such an axis is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.support.oracles import oracle

MESH = sw.Mesh({"x": 2, "y": 4})
X = np.arange(64.0).reshape(8, 8)
W = np.arange(8.0) + 1


def checked(body: Callable[..., Any], in_specs: Any, out_specs: Any, *args: Any, **options: Any) -> Any:
    return sw.jit(sw.shard_map(body, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options), mesh=MESH)(*args)


def test_the_error_names_the_axis_the_line_and_the_way_out() -> None:
    def body(x: Any) -> Any:
        total = x.sum()
        return total * 2, x

    line = body.__code__.co_firstlineno + 2
    with pytest.raises(sw.ShardingError) as caught:
        checked(body, P("x"), (P(), P("x")), X)
    assert str(caught.value).endswith(
        "shard_map: result[0] must not vary along a manual axis that its spec [] does not name, got float64[], which "
        "varies along 'x'; name 'x' in its spec and combine the shards outside, or pass check_vma=False to return the "
        f"first device's value (at {__file__}:{line})"
    )
    with pytest.raises(sw.ShardingError, match=r"^manual: result must not vary .* varies along 'x' and 'y'; name"):
        sw.manual(lambda x: x[0, 0], MESH, P("x", "y"), P())(X)


def test_without_the_check_the_first_device_gives_the_value() -> None:
    found = checked(lambda x: x.sum(), P(("x", "y")), P(), X, check_vma=False)
    assert float(found) == X[0].sum()
    found = checked(lambda x: x.sum(axis=1), P("x", "y"), P("x"), X, check_vma=False)
    np.testing.assert_array_equal(found, X[:, :2].sum(axis=1))
    by_hand = sw.manual(lambda x: x.sum(), MESH, P("x"), P(), check_vma=False)
    assert float(by_hand(X)) == X[:4].sum()
    with pytest.raises(sw.ShardingError, match="shard_map: check_vma must be True or False, got 'no'"):
        checked(lambda x: x, P(), P(), X, check_vma="no")


def counted(x: Any, w: Any) -> Any:
    """The third carry varies after three steps only: x reaches it through the other two."""
    return sw.fori_loop(0, 4, lambda i, c: (c[0] + x[0, 0], c[1] + c[0], c[2] + c[1]), (w[0], w[0], w[0]))[2]


def while_of(x: Any, w: Any) -> Any:
    """The number of steps depends on the shard, and so does a carry that the body computes from equal values."""
    return sw.while_loop(lambda c: c[0] < x.sum(), lambda c: (c[0] + 100, c[1] * 2), (w[0], w[1]))[1]


VARYING: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise": lambda x, w: w[0] + x[0, 0],
    "loop": counted,
    "while": while_of,
    "scan": lambda x, w: sw.scan(lambda c, row: (c + row.sum(), None), w[0], x)[0],
    "stacked": lambda x, w: sw.scan(lambda c, row: (c, row.sum()), w[0], x[:4])[1],
    "branch": lambda x, w: sw.cond(w[0] > 0, lambda: x[0, 0], lambda: w[0]),
    "predicate": lambda x, w: sw.cond(x[0, 0] > 0, lambda: w[0] * 2, lambda: w[0]),
    "gradient": lambda x, w: sw.grad(lambda v: (v * v).sum())(x[0]),
    "vmap": lambda x, w: sw.vmap(lambda v: v * x[0, 0])(w),
    "checkpoint": lambda x, w: sw.checkpoint(lambda v: v * x[0, 0])(w),
    "index": lambda x, w: w[x[0, 0].astype(np.int32) // 32],
    "sort": lambda x, w: np.sort(x[0] * w),
    "nested": lambda x, w: sw.manual(lambda v: v * 2, MESH, P(), P(), axes={"y"})(x[0]),
}
EQUAL: dict[str, Callable[[Any, Any], Any]] = {
    "constant": lambda x, w: np.ones(3) + x.shape[0],
    "argument": lambda x, w: w,
    "loop": lambda x, w: sw.fori_loop(0, 4, lambda i, c: (c[0] * 2, c[1] + x[0, 0]), (w[0], w[0]))[0],
    "while": lambda x, w: sw.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] + x[0, 0]), (w[0], w[0]))[0],
    "scan": lambda x, w: sw.scan(lambda c, v: (c + v, x), w[0], w)[0],
    "branch": lambda x, w: sw.cond(w[0] > 0, lambda: (w[1], x[0, 0]), lambda: (w[2], x[0, 0]))[0],
    "vmap": lambda x, w: sw.vmap(lambda v, z: (v * 2, v + z), in_axes=(0, None))(w, x[0, 0])[0],
    "checkpoint": lambda x, w: sw.checkpoint(lambda v, z: (v * 2, z * 2))(w, x)[0],
    "nested": lambda x, w: sw.manual(lambda v, z: (v * 2, z), MESH, P(), P(), axes={"y"})(w, x)[0],
    "random": lambda x, w: sw.random.uniform(sw.random.key(1), (3,)) + w[:3],
}


# As in JAX, the gradient of what is equal on all devices is the sum over them; unchecked, it is that of each device.
SUMMED: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, w: sw.grad(lambda v: (v * x[0]).sum())(w),
    "sum": lambda x, w: sw.grad(lambda v, z: (v * v).sum() + z[0, 0])(w, x),
    "loop": lambda x, w: sw.grad(lambda v: sw.scan(lambda c, row: (c + row @ v, None), 0.0, x)[0])(w),
    "branch": lambda x, w: sw.grad(lambda v: sw.cond(x[0, 0] > 0, lambda: (v * x[1]).sum(), lambda: 2 * v[0]))(w),
    "checkpoint": lambda x, w: sw.grad(lambda v: (sw.checkpoint(np.sin)(v) * x[0]).sum())(w),
    "pull back": lambda x, w: sw.vjp(lambda v: v * x[0], w)[1](w)[0],
}


@pytest.mark.parametrize("name", VARYING)
def test_what_depends_on_the_shard_varies(name: str) -> None:
    axes = {"axis_names": {"x"}} if name == "nested" else {}
    with pytest.raises(sw.ShardingError, match=r"shard_map: result must not vary .* which varies along 'x'; name 'x'"):
        checked(VARYING[name], (P("x"), P()), P(), X, W, **axes)
    found = checked(VARYING[name], (P("x"), P()), P(), X, W, check_vma=False, **axes)
    values = np.asarray(checked(lambda *args: VARYING[name](*args)[None], (P("x"), P()), P("x"), X, W, **axes))
    np.testing.assert_allclose(found, values[0])  # that of the first device
    assert not np.array_equal(values[0], values[1])


@pytest.mark.parametrize("name", EQUAL)
def test_what_does_not_depend_on_the_shard_is_equal_everywhere(name: str) -> None:
    axes = {"axis_names": {"x"}} if name == "nested" else {}
    found = checked(EQUAL[name], (P("x"), P()), P(), X, W, **axes)
    unchecked = checked(EQUAL[name], (P("x"), P()), P(), X, W, check_vma=False, **axes)
    np.testing.assert_array_equal(found, unchecked)


@pytest.mark.parametrize("name", SUMMED)
def test_a_gradient_by_what_is_equal_is_the_sum_over_the_devices(name: str) -> None:
    function = SUMMED[name]
    total = checked(function, (P("x"), P()), P(), X, W)
    of_each = checked(lambda x, w: function(x, w)[None], (P("x"), P()), P("x"), X, W, check_vma=False)
    assert not np.array_equal(np.asarray(of_each)[0], np.asarray(of_each)[1]) or name == "sum"
    np.testing.assert_allclose(total, np.asarray(of_each).sum(0), rtol=1e-12)


def test_axes_are_told_apart() -> None:
    def body(x: Any, w: Any) -> Any:
        return x.sum(axis=1), w.sum()

    with pytest.raises(sw.ShardingError, match=r"result\[1\] .* varies along 'y'; name 'y'"):
        checked(body, (P("x"), P("y")), (P("x"), P()), X, W)
    with pytest.raises(sw.ShardingError, match=r"varies along 'y'; name 'y'"):
        checked(lambda x: x.sum(axis=1), P("x", "y"), P("x"), X)
    partial = checked(lambda x: x.sum(axis=1), P("x"), P("x"), X, axis_names={"x"})
    np.testing.assert_array_equal(partial, X.sum(axis=1))


def test_nested_regions_check_their_own_axes() -> None:
    inner = sw.manual(lambda v: v.sum(), MESH, P("y"), P(), axes={"y"})
    with pytest.raises(sw.ShardingError, match=r"manual: result must not vary .* along 'y'; name 'y'"):
        checked(lambda x: inner(x) + x, P("x"), P("x"), X, axis_names={"x"})
    spread = sw.manual(lambda v: v * 2, MESH, P("y"), P("y"), axes={"y"})
    found = checked(lambda x, w: (spread(x), spread(w)), (P("x"), P()), (P("x"), P()), X, W, axis_names={"x"})
    np.testing.assert_array_equal(found[0], X * 2)
    np.testing.assert_array_equal(found[1], W * 2)


def test_collectives_of_jax_remove_and_add_axes() -> None:
    jax = oracle("jax")
    mesh = jax.sharding.AbstractMesh((2, 4), ("x", "y"))
    spec = jax.sharding.PartitionSpec

    def region(body: Any, in_spec: Any, out_spec: Any) -> Any:
        return jax.shard_map(body, mesh=mesh, in_specs=in_spec, out_specs=out_spec, axis_names={"y"})

    total = sw.from_jax(region(lambda v: jax.lax.psum(v.sum(), "y"), spec("y"), spec()))
    gathered = sw.from_jax(region(lambda v: v * 2, spec("y"), spec("y")))
    w = W.astype(np.float32)
    found = checked(
        lambda x, w: (total(w), gathered(w), total(x[0]) + x[0]),
        (P("x"), P()),
        (P(), P(), P("x")),
        X.astype(np.float32),
        w,
        axis_names={"x"},
    )
    np.testing.assert_array_equal(found[0], w.sum())
    np.testing.assert_array_equal(found[1], 2 * w)
    with pytest.raises(sw.ShardingError, match="varies along 'x'"):
        checked(lambda x: total(x[0]), P("x"), P(), X.astype(np.float32), axis_names={"x"})


def test_a_gradient_of_a_region_is_that_of_the_whole_program() -> None:
    def loss(w: Any, x: Any) -> Any:
        body = sw.shard_map(lambda v, z: (v * 3, z @ v), mesh=MESH, in_specs=(P(), P("x")), out_specs=(P(), P("x")))
        tripled, product = body(w, x)
        return (tripled * product).sum()

    found = sw.jit(sw.grad(loss), mesh=MESH)(W, X)
    np.testing.assert_allclose(found, 3 * (X @ W) + X.T @ (3 * W))
