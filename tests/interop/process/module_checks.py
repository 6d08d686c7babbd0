# SPDX-License-Identifier: Apache-2.0
"""Modules and jitted functions of Equinox and of Flax as functions, arguments and results of `from_jax`.

Flax is not installed: its newest version needs a newer JAX than the oldest that is supported. Stand-ins have what
`flax.nnx.jit` and `flax.nnx.Variable` have.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 2})
X = np.arange(12, dtype=np.float32).reshape(4, 3)
MLP = eqx.nn.MLP(3, 2, 4, 2, key=jax.random.key(0))


def same(found: Any, expected: Any) -> None:
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected):
        if callable(other) or isinstance(other, (bool, float)):
            assert one is other
        else:
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-6)


def predict(model: Any, x: Any) -> Any:
    return jax.vmap(model)(x)


def loss(model: Any, x: Any) -> Any:
    return jnp.sum(predict(model, x) ** 2)


def step(model: Any, x: Any) -> Any:
    value, gradient = eqx.filter_value_and_grad(loss)(model, x)
    return value, eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradient))


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "module": (MLP, (X[0],)),
    "jitted module": (eqx.filter_jit(MLP), (X[0],)),
    "method": (MLP.__call__, (X[0],)),
    "vmap": (eqx.filter_vmap(MLP), (X,)),
    "argument": (predict, (MLP, X)),
    "argument of filter_jit": (eqx.filter_jit(predict), (MLP, X)),
    "in a tree": (lambda tree, x: predict(tree["model"], x), ({"model": MLP}, X)),
    "gradient": (eqx.filter_grad(loss), (MLP, X)),
    "step": (eqx.filter_jit(step), (MLP, X)),
    "dropout": (eqx.filter_jit(lambda m, x, k: m(x, key=k)), (eqx.nn.Dropout(0.5), X, jax.random.key(1))),
    "inference": (
        eqx.filter_jit(lambda m, x: m(x)), (eqx.nn.inference_mode(eqx.nn.Dropout(0.5)), X),
    ),
    "number": (eqx.filter_jit(lambda x, n: x.reshape(n, -1)), (X, 2)),
    "partial": (functools.partial(eqx.filter_jit(predict), MLP), (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_equinox(name: str) -> None:
    function, arguments = CASES[name]
    expected = function(*arguments)
    wrapped = sw.from_jax(function, mesh=MESH)
    same(wrapped(*arguments), expected)
    same(wrapped(*arguments), expected)
    program = wrapped.lower(*arguments).compile()
    assert program.mesh == MESH


@pytest.mark.parametrize("name", CASES)
def test_equinox_in_jit(name: str) -> None:
    function, arguments = CASES[name]
    expected = function(*arguments)
    jitted = sw.jit(sw.from_jax(function), mesh=MESH)
    same(jitted(*arguments), expected)
    same(jitted(*arguments), expected)
    program = jitted.lower(*arguments).compile()
    assert program.mesh == MESH


def test_specs_of_a_jit_of_a_function_of_jax() -> None:
    jitted = sw.jit(sw.from_jax(predict), mesh=MESH, in_shardings=(None, P("x")), out_shardings=P("x"))
    same(jitted(MLP, X), predict(MLP, X))
    program = jitted.lower(MLP, X).compile()
    assert program.input_shardings[-1].spec == P("x", None)
    assert program.collectives().rows == ()


def test_steps_of_training_follow_each_other() -> None:
    """The result of a step, a module with sharded arrays, is the argument of the next one."""
    wrapped = sw.from_jax(eqx.filter_jit(step), mesh=MESH)
    model, expected = MLP, MLP
    for _ in range(3):
        value, model = wrapped(model, X)
        wanted, expected = step(expected, X)
        same(value, wanted)
    assert isinstance(model, eqx.nn.MLP)
    assert model.activation is MLP.activation
    same(model, expected)


def test_a_module_is_an_argument_inside_a_program() -> None:
    function = sw.jit(lambda x: sw.from_jax(predict)(MLP, x) + 1, mesh=MESH, in_shardings=P("x"))
    same(function(X), predict(MLP, X) + 1)


def test_static_leaves_are_part_of_the_program() -> None:
    traces = []

    def power(tree: Any, x: Any) -> Any:
        traces.append(tree["how"])
        return x**2 if tree["how"] == "square" else x**3

    wrapped = sw.from_jax(power, mesh=MESH)
    for how in ("square", "cube", "square"):
        same(wrapped({"how": how}, X), power({"how": how}, X))
    assert len(traces) == 2 + 3


def test_jit_of_a_module_says_partition() -> None:
    with pytest.raises(
        sw.DTypeError, match=r"argument m\.activation must .*params, static = eqx\.partition\(model, eqx"
    ):
        sw.jit(lambda m, x: sw.from_jax(predict)(m, x), mesh=MESH)(MLP, X)
    params, static = eqx.partition(MLP, eqx.is_array)
    function = sw.jit(lambda p, x: sw.from_jax(lambda p, x: predict(eqx.combine(p, static), x))(p, x), mesh=MESH)
    same(function(params, X), predict(MLP, X))


# ---- what Flax has --------------------------------------------------------------------------------------------------


class JitWrapped:
    """As that of `flax.nnx.jit`: it looks like a jitted function, and holds one of the same arguments."""

    def __init__(self, fun: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, fun)
        self.jitted_fn = jax.jit(fun, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.jitted_fn(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        return self.jitted_fn.lower(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        return self.jitted_fn.trace(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        return self.jitted_fn.eval_shape(*args, **kwargs)


def test_a_wrapper_of_a_jitted_function_has_its_static_arguments() -> None:
    function = JitWrapped(lambda x, n: x.reshape(n, -1), static_argnums=1)
    assert isinstance(function, jax.stages.Wrapped)
    same(sw.from_jax(function, mesh=MESH)(X, 2), X.reshape(2, -1))
    same(
        sw.from_jax(JitWrapped(lambda x, n: x.reshape(n, -1), static_argnames="n"), mesh=MESH)(X, n=6), X.reshape(6, -1)
    )
    with pytest.raises(ValueError, match="from_jax: the function must not donate arguments"):
        sw.from_jax(JitWrapped(lambda x: x * 2, donate_argnums=0), mesh=MESH)(X)


class Variable:
    def __init__(self, value: Any) -> None:
        self.value = value

    def get_value(self) -> Any:
        return self.value


jax.tree_util.register_pytree_node(Variable, lambda v: ((v.value,), None), lambda _, children: Variable(*children))


@pytest.fixture
def nnx(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = types.ModuleType("flax.nnx")
    module.Variable = Variable  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flax.nnx", module)
    return


def count(module: dict[str, Variable], x: Any) -> Any:
    module["count"].value = module["count"].value + 1
    return x * module["scale"].value


def scale(module: dict[str, Variable], x: Any) -> Any:
    module["count"].value = jax.jit(lambda v: v)(module["count"].value)  # assigns what it was given, as nnx.jit
    return x * module["scale"].value


@pytest.mark.usefixtures("nnx")
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_an_update_in_place_is_refused(wrap: Callable[..., Any]) -> None:
    module = {"count": Variable(jnp.zeros(2)), "scale": Variable(jnp.ones(()) * 3)}
    with pytest.raises(
        sw.UnsupportedError, match=r"must not update the variables .* of Variable \[0\]\[0\]\['count'\]; pa"
    ):
        sw.from_jax(lambda m, x: count(m, wrap(jnp.sin)(x)), mesh=MESH)(module, X)
    same(sw.from_jax(scale, mesh=MESH)(module, X), X * 3)


def test_attributes_of_the_function_are_those_of_the_wrapper() -> None:
    assert sw.from_jax(MLP).width_size == 4

    def function(x: Any) -> Any:
        return x

    function.version = 2  # type: ignore[attr-defined]
    assert (sw.from_jax(function).version, sw.jit(function).version) == (2, 2)
    with pytest.raises(AttributeError, match="'JitFunction' object has no attribute 'nothing'"):
        sw.jit(function).nothing  # noqa: B018


def test_a_compiled_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"from_jax: takes a function, got a compiled one; pass the function before"):
        sw.from_jax(jax.jit(jnp.sin).lower(X).compile())


# ---- the reference of tests ------------------------------------------------------------------------------------------


def test_functions_of_jax_are_compared_with_one_device() -> None:
    program = sw.testing.assert_matches_unpartitioned(sw.from_jax(jnp.cumsum), X[0], mesh=MESH, in_shardings=P("x"))
    assert program.mesh == MESH
    inside = lambda x: np.sum(sw.from_jax(jnp.tanh)(x) ** 2)  # noqa: E731
    sw.testing.assert_matches_unpartitioned(sw.grad(inside), X, mesh=MESH, in_shardings=P("x"))
    model = sw.from_jax(lambda x: predict(MLP, x))
    sw.testing.assert_matches_unpartitioned(model, X, mesh=MESH, in_shardings=P("x"))
