# SPDX-License-Identifier: Apache-2.0
"""Random keys of JAX (`jax.random.key`) as arguments and results of programs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4})
X = np.arange(1, 9, dtype=np.float32)


def data_of(key: Any) -> Any:
    return np.asarray(jax.random.key_data(key))


def drop(key: Any, x: Any) -> Any:
    used, rest = jax.random.split(key)
    return jnp.sum(x**2 * jax.random.bernoulli(used, 0.5, x.shape)), rest


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_a_key_goes_in_and_a_key_comes_out(impl: str) -> None:
    key = jax.random.key(3, impl=impl)
    value, rest = sw.from_jax(drop, mesh=MESH)(key, X)
    expected, expected_rest = drop(key, X)
    np.testing.assert_allclose(np.asarray(value), expected)
    assert rest.dtype == expected_rest.dtype == key.dtype
    assert np.array_equal(data_of(rest), data_of(expected_rest))


def test_a_step_returns_the_key_of_the_next_step() -> None:
    @sw.jit(mesh=MESH)
    def step(x: Any, key: Any) -> Any:
        value, key = sw.from_jax(drop)(key, sw.split(x, 0, "x"))
        return x + value, key

    x, key = X, jax.random.key(0)
    expected, expected_key = X, key
    for _ in range(3):
        x, key = step(x, key)
        value, expected_key = drop(expected_key, expected)
        expected = expected + value
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-6)
    assert np.array_equal(data_of(key), data_of(expected_key))


def test_a_traced_function_sees_the_data_of_a_key() -> None:
    seen = []

    @sw.jit(mesh=MESH)
    def f(keys: Any) -> Any:
        seen.append(keys)
        return sw.from_jax(lambda keys: jax.vmap(jax.random.bits)(keys))(keys)

    keys = jax.random.split(jax.random.key(1), 5)
    assert np.array_equal(np.asarray(f(keys)), np.asarray(jax.vmap(jax.random.bits)(keys)))
    assert (seen[0].data.shape, seen[0].data.dtype, seen[0].impl) == ((5, 2), np.uint32, "threefry2x32")
    assert repr(seen[0]).startswith("RandomKey(Tracer<uint32[5,2]>, impl=")


def test_gradients_beside_a_key() -> None:
    loss = lambda x, key: sw.from_jax(drop)(key, x)[0]  # noqa: E731
    key = jax.random.key(7)
    found = sw.jit(sw.grad(loss), mesh=MESH)(X, key)
    np.testing.assert_allclose(np.asarray(found), jax.grad(lambda x: drop(key, x)[0])(X))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("how", ["key", "shape"])
@pytest.mark.parametrize("way", ["from_jax", "jit"])
def test_a_program_for_the_shape_of_a_key_takes_keys(way: str, how: str, impl: str) -> None:
    state = {"key": jax.random.key(3, impl=impl), "x": X}
    function = lambda state: drop(state["key"], state["x"])  # noqa: E731
    staged = sw.from_jax(function, mesh=MESH) if way == "from_jax" else sw.jit(sw.from_jax(function), mesh=MESH)
    given = jax.eval_shape(lambda: state) if how == "shape" else state
    traced = staged.trace(given)
    assert traced.in_names == ["state['key']", "state['x']"]
    value, rest = traced.lower().compile()(state)
    expected, expected_rest = function(state)
    np.testing.assert_allclose(np.asarray(value), expected)
    assert np.array_equal(data_of(rest), data_of(expected_rest))
    value, rest = staged.eval_shape(given)
    assert (value.shape, value.dtype) == ((), np.float32)
    assert (rest.data.shape, rest.data.dtype, rest.impl) == (data_of(expected_rest).shape, np.uint32, impl)


def test_the_shape_of_keys_keeps_its_sharding_and_shapes_of_numbers_are_leaves() -> None:
    mesh = jax.sharding.AbstractMesh((4,), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    keys = jax.random.split(jax.random.key(1), 8)
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding) for x in (X, keys, X)]
    draws = sw.from_jax(lambda x, keys, y: x + jax.vmap(jax.random.normal)(keys) + y)
    program = sw.jit(draws).lower(*shapes).compile()
    assert [sharding.spec for sharding in program.input_shardings] == [P("x"), P("x", None), P("x")]
    expected = X + jax.vmap(jax.random.normal)(keys) + X
    np.testing.assert_allclose(np.asarray(program(X, keys, X)), expected, rtol=1e-6)
    assert sw.tree.leaves(shapes[1])[0].shape == (8, 2)
    assert sw.tree.leaves(shapes[0]) == [shapes[0]]


def test_a_shape_is_no_key_to_run_on() -> None:
    shape = jax.eval_shape(lambda: jax.random.key(0))
    with pytest.raises(sw.ShapeError, match=r"a program runs on arrays, got ShapeDtypeStruct\(.* for key"):
        sw.from_jax(drop, mesh=MESH)(shape, X)


def test_a_key_is_an_argument_with_a_name() -> None:
    program = sw.from_jax(drop, mesh=MESH).lower(jax.random.key(0), X).compile()
    assert [str(sharding.spec) for sharding in program.input_shardings] == ["P(None)", "P(None)"]
    assert "uint32[2]" in str(program.memory())
