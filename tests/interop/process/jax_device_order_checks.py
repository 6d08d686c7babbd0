# SPDX-License-Identifier: Apache-2.0
"""Programs of JAX functions keep the order of the devices in JAX's meshes. The text of JAX does not have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec as Q

import shardwise as sw
from shardwise import P

X = np.arange(32, dtype=np.float32).reshape(8, 4)
ORDERS = {"in order": [*range(8)], "reversed": [*range(7, -1, -1)], "permuted": [3, 0, 6, 1, 7, 4, 2, 5]}
each_order = pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)


def mesh_of(order: list[int]) -> Mesh:
    return Mesh(np.array(jax.devices())[order].reshape(4, 2), ("x", "y"))


def twice(x: Any) -> Any:
    return x * 2 + 1


Function = Callable[[Any], Any]


def constrained(sharding: NamedSharding) -> Function:
    return lambda x: jax.lax.with_sharding_constraint(x * 2, sharding) + 1


def in_a_nested_jit(sharding: NamedSharding) -> Function:
    return lambda x: jax.lax.cond(x.sum() > 0, jax.jit(constrained(sharding)), twice, x)


WAYS: dict[str, Callable[[NamedSharding], Function]] = {
    "constraint": constrained,
    "nested": in_a_nested_jit,
    "in_shardings": lambda sharding: jax.jit(twice, in_shardings=sharding),
    "out_shardings": lambda sharding: jax.jit(twice, out_shardings=sharding),
    "shard_map": lambda sharding: jax.shard_map(
        twice, mesh=sharding.mesh, in_specs=sharding.spec, out_specs=sharding.spec
    ),
    "argument": lambda sharding: twice,
}


@each_order
@pytest.mark.parametrize(
    ("way", "placed"), [(way, placed) for way in WAYS for placed in (False, True) if placed or way != "argument"]
)
def test_a_program_has_the_order_of_jax(way: str, order: list[int], placed: bool) -> None:
    mesh = mesh_of(order)
    sharding = NamedSharding(mesh, Q("x", "y"))
    x = jax.device_put(X, sharding) if placed else X
    function = sw.from_jax(WAYS[way](sharding))
    program = function.lower(x).compile()
    assert program.mesh == sw.Mesh({"x": 4, "y": 2}, order)
    assert program.mesh.device_ids == tuple(order)
    np.testing.assert_array_equal(np.asarray(program(X)), twice(X))
    result = function(x)
    assert result.sharding.mesh.device_ids == tuple(order)
    np.testing.assert_array_equal(np.asarray(result), twice(X))

    found = program.jax_shardings()
    assert list(found.out_shardings.mesh.devices.flat) == list(mesh.devices.flat)
    assert found.in_shardings[0].mesh == found.out_shardings.mesh == mesh
    theirs = jax.jit(twice, **found._asdict())(X)
    shards = {shard.device.id: np.asarray(shard.data) for shard in theirs.addressable_shards}
    for shard in jax.device_put(twice(X), found.out_shardings).addressable_shards:
        np.testing.assert_array_equal(shards[shard.device.id], np.asarray(shard.data))


@each_order
def test_gradients_have_the_order_of_jax(order: list[int]) -> None:
    function = sw.from_jax(constrained(NamedSharding(mesh_of(order), Q("x", "y"))))
    mesh = sw.Mesh({"x": 4, "y": 2}, order)
    program = sw.jit(sw.grad(lambda x: (function(x) ** 2).sum()), mesh=mesh).lower(X).compile()
    np.testing.assert_allclose(np.asarray(program(X)), 4 * twice(X), rtol=1e-6)
    assert program.output_shardings.spec == P("x", "y")


@each_order
def test_a_mesh_without_devices_has_those_of_the_context_or_of_the_arguments(order: list[int]) -> None:
    mesh = mesh_of(order)
    function = sw.from_jax(lambda x: jax.lax.with_sharding_constraint(x * 2 + 1, Q("x")))
    with jax.set_mesh(mesh):
        assert function.lower(X).compile().mesh.device_ids == tuple(order)
    abstract = NamedSharding(mesh.abstract_mesh, Q("x"))
    function = sw.from_jax(lambda x: jax.lax.with_sharding_constraint(x * 2 + 1, abstract))
    x = jax.device_put(X, NamedSharding(mesh, Q(None, "y")))
    program = function.lower(x).compile()
    assert program.mesh.device_ids == tuple(order)
    np.testing.assert_array_equal(np.asarray(program(X)), twice(X))
    inlined = sw.jit(function, mesh=sw.Mesh({"x": 4, "y": 2}, order)).lower(X).compile()
    assert inlined.output_shardings.spec == P("x", None)


def test_one_function_follows_the_mesh_of_the_context() -> None:
    function = sw.from_jax(lambda x: jax.lax.with_sharding_constraint(jnp.sin(x), Q("x")))
    for order in ORDERS.values():
        with jax.set_mesh(mesh_of(order)):
            assert function(X).sharding.mesh.device_ids == tuple(order)


def test_another_order_than_that_of_the_program_is_an_error() -> None:
    function = sw.from_jax(constrained(NamedSharding(mesh_of(ORDERS["reversed"]), Q("x"))))
    rule = r"^from_jax: the shardings of a JAX function must be on the program's mesh, Mesh\('x': 4, 'y': 2\), got Mesh"
    with pytest.raises(sw.MeshError, match=rule):
        sw.jit(function, mesh=sw.Mesh({"x": 4, "y": 2}))(X)


def test_orders_that_jax_refuses_are_an_error_of_jax() -> None:
    """The ValueError comes from the lowering for TPUs, after which there is no second one for CPUs."""
    first, second = (NamedSharding(mesh_of(ORDERS[name]), Q("x")) for name in ("in order", "reversed"))

    def f(x: Any) -> Any:
        return constrained(first)(x) + constrained(second)(x)

    with pytest.raises(ValueError, match=r"^Received incompatible devices for jitted computation"):
        sw.from_jax(f).lower(X)


@each_order
def test_collectives_of_positions(order: list[int]) -> None:
    """The ids in JAX's collectives, and its numbers of devices, are positions of the mesh."""

    def region(x: Any) -> Any:
        moved = jax.lax.ppermute(x, "x", [(0, 1), (1, 2), (3, 0)])
        grouped = jax.lax.psum(moved, "x", axis_index_groups=[[0, 2], [1, 3]])
        return grouped * 10 + jax.lax.axis_index("x") + jax.lax.all_gather(x, "y").sum(0)

    def f(x: Any) -> Any:
        return jax.shard_map(region, mesh=mesh_of(order), in_specs=Q("x", "y"), out_specs=Q("x", "y"), check_vma=False)(
            x
        )

    mesh = sw.Mesh({"x": 4, "y": 2}, order)
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    found = sw.jit(sw.from_jax(f), mesh=mesh, in_shardings=P("x", "y"), out_shardings=P("x", "y"))(x)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(jax.jit(f)(x)))
