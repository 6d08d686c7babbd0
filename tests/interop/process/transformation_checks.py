# SPDX-License-Identifier: Apache-2.0
"""A handed-over program as a part of functions that JAX transforms, and the arrays that it donates."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4, "y": 2})
X = np.arange(40, dtype=np.float32).reshape(10, 4)
W = np.arange(12, dtype=np.float32).reshape(4, 3)


def layer(x: Any, w: Any) -> Any:
    return {"y": x @ w, "largest": x.max(0), "total": x.sum()}


PROGRAM = sw.jit(layer, mesh=MESH, in_shardings=(P("x"), P(None, "y"))).lower(X, W).compile()


def expect_layer(found: Any, x: np.ndarray = X) -> None:
    assert {name: value.shape for name, value in found.items()} == {"y": (10, 3), "largest": (4,), "total": ()}
    for name, want in layer(x, W).items():
        np.testing.assert_array_equal(np.asarray(found[name]), want)


def test_a_call_inside_of_jit_has_the_shapes_of_the_user() -> None:
    """10 rows on 4 devices and 3 columns on 2: outside of jit, both are padded."""
    function = PROGRAM.to_jax()
    expect_layer(jax.jit(function)(X, W))
    expect_layer(jax.jit(lambda x, w: function(x + 1, w))(X - 1, W))
    expect_layer(jax.jit(lambda x: function(x, W))(X))
    placed = function.put(X, W)
    assert placed[0].shape == (12, 4)
    expect_layer(jax.jit(function)(*placed))
    expect_layer(jax.jit(lambda x: function(x, placed[1]))(X))
    expect_layer(function.get(jax.jit(function)(X, W)))
    assert function(X, W)["y"].shape == (12, 4)


def test_arguments_of_another_type_are_refused_while_jax_traces() -> None:
    function = PROGRAM.to_jax()
    with pytest.raises(sw.ShapeError, match=r"argument x must be float32\[10, 4\] as compiled, got float32\[9, 4\]"):
        jax.jit(function)(X[1:], W)
    with pytest.raises(sw.DTypeError, match=r"argument x must be float32\[10, 4\] as compiled, got int32\[10, 4\]"):
        jax.jit(function)(X.astype(np.int32), W)


def test_the_collectives_of_a_call_inside_of_jit_are_those_of_the_program() -> None:
    function = PROGRAM.to_jax()
    text = jax.jit(function).lower(X, W).as_text()
    alone = function.as_text()
    for name in ("all_reduce", "all_gather", "all_to_all", "collective_permute"):
        assert text.count(f"stablehlo.{name}") == alone.count(f"stablehlo.{name}")
    assert text.count("stablehlo.all_reduce") == 2


def test_calls_in_loops_and_of_several_programs() -> None:
    table = np.arange(64, dtype=np.float32).reshape(8, 8)  # closed over
    double = sw.jit(lambda x: 2 * x + table, mesh=MESH, in_shardings=(P("x"),)).lower(table).compile().to_jax()
    halve = sw.jit(lambda x: x / 2, mesh=sw.Mesh({"z": 8}), in_shardings=(P("z"),)).lower(table).compile().to_jax()

    def steps(x: Any) -> Any:
        x = jax.lax.fori_loop(0, 3, lambda i, x: double(x), x)
        return halve(x)

    with jax.set_mesh(jax.make_mesh((8,), ("other",))):
        np.testing.assert_array_equal(np.asarray(jax.jit(steps)(table)), (8 * table + 7 * table) / 2)
    np.testing.assert_array_equal(double.get(double(table)), 3 * table)
    shape = jax.eval_shape(double, jax.ShapeDtypeStruct((8, 8), np.float32))
    assert (shape.shape, shape.dtype) == ((8, 8), np.float32)


def test_vmap_of_a_program() -> None:
    batch = np.stack([X, X[::-1], -X])
    found = jax.vmap(PROGRAM.to_jax(), in_axes=(0, None))(batch, W)
    for i, x in enumerate(batch):
        expect_layer({name: value[i] for name, value in found.items()}, x)


NO_DERIVATIVE = (
    r"^to_jax: a program has no derivative in JAX, where it moves floats as bits, got a call inside of jax\.grad, "
    r"jax\.vjp or jax\.jvp; compile sw\.grad\(f\) or sw\.value_and_grad\(f\), and hand that over \(at .*{}:\d+\)"
).format(__file__.rpartition("/")[2])


@pytest.mark.parametrize("name", ["grad", "jit of grad", "grad of jit", "jvp", "vjp"])
def test_a_derivative_in_jax_is_refused(name: str) -> None:
    """It would be zero where a maximum or narrow floats travel as bits."""
    function = PROGRAM.to_jax()

    def loss(x: Any) -> Any:
        return function(x, W)["largest"].sum()

    x = jnp.asarray(X)
    calls = {
        "grad": lambda: jax.grad(loss)(x),
        "jit of grad": lambda: jax.jit(jax.grad(loss))(x),
        "grad of jit": lambda: jax.grad(jax.jit(loss))(x),
        "jvp": lambda: jax.jvp(loss, (x,), (x,)),
        "vjp": lambda: jax.vjp(loss, x),
    }
    with pytest.raises(sw.UnsupportedError, match=NO_DERIVATIVE):
        calls[name]()


def test_a_gradient_of_shardwise_inside_of_jit() -> None:
    def loss(x: Any, w: Any) -> Any:
        return ((x @ w) ** 2).mean()

    step = sw.jit(sw.value_and_grad(loss, 1), mesh=MESH, in_shardings=(P("x"), None))
    function = step.lower(X, W).compile().to_jax()
    value, gradient = jax.jit(function)(X / 40, W)
    wanted, slope = jax.value_and_grad(loss, 1)(X / 40, W)
    np.testing.assert_allclose(value, wanted, rtol=1e-6)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5)


def test_what_jax_cannot_trace_is_an_error() -> None:
    there = sw.NamedSharding(sw.Mesh({"u": 8}, device_ids=[3, 0, 6, 1, 7, 4, 2, 5], name="mixed"), P("u"))
    wide = np.arange(8, dtype=np.float64)

    def printed(x: Any) -> Any:
        sw.debug.print("{}", x)
        return x

    outside = r"; .*call the program outside of JAX's transformations \(at "
    inside = r"^to_jax: inside of a transformation of JAX, such as jax\.jit, "
    cases = [
        (sw.jit(lambda x: x + 1, mesh=MESH, in_shardings=(there,)), X[:8], "every value must be on the program's mesh"),
        (sw.jit(printed, mesh=MESH), X, "a program must not print, got debug.print"),
        (sw.jit(lambda x: np.argmax(x), mesh=MESH), X, "a program with values of 64 bits needs x64, got jax_enable"),
    ]  # fmt: skip
    for jitted, x, rule in cases:
        function = jitted.lower(x).compile().to_jax()
        with pytest.raises(sw.UnsupportedError, match=inside + rule + ".*" + outside):
            jax.jit(function)(x)
    function = sw.jit(lambda x: x + 1, mesh=MESH).lower(wide).compile().to_jax()
    with jax.enable_x64(True):
        found = jax.jit(function)(wide)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(np.asarray(found), wide + 1)


# ---- donation ----------------------------------------------------------------------------------------------------


def test_an_array_that_is_donated_must_not_be_another_argument() -> None:
    """JAX would free it twice, which ends the process."""
    add = sw.jit(lambda a, b, c: a + b + c, mesh=MESH, in_shardings=(P("x"),) * 3, donate_argnums=(0, 1))
    function = add.lower(X, X, X).compile().to_jax()
    (a, b, c) = function.put(X, X, X)
    rule = "to_jax: argument {} is donated, so its array must not be another argument, got one array for {} and {}; "
    for args, names in (((a, a, c), "aab"), ((a, b, a), "aac"), ((a, b, b), "bbc")):
        with pytest.raises(ValueError, match=rule.format(*names)):
            function(*args)
    np.testing.assert_array_equal(function.get(function(X, X, c)), 3 * X)
    np.testing.assert_array_equal(function.get(function(a, jnp.copy(b), c)), 3 * X)
    assert (a.is_deleted(), b.is_deleted(), c.is_deleted()) == (True, False, False)


def test_an_array_that_is_not_donated_may_be_passed_twice() -> None:
    add = sw.jit(lambda a, b, c: a + b + c, mesh=MESH, in_shardings=(P("x"),) * 3, donate_argnums=2)
    function = add.lower(X, X, X).compile().to_jax()
    (a, _, c) = function.put(X, X, X)
    np.testing.assert_array_equal(function.get(function(a, a, c)), 3 * X)
    same = jnp.asarray(X)  # on one device: it is copied
    np.testing.assert_array_equal(function.get(function(same, same, same)), 3 * X)
