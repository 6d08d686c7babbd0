# SPDX-License-Identifier: Apache-2.0
"""vjp, jvp, linearize, jacfwd, jacrev and hessian: forms, trees, dtypes, calls outside of jit, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.derivatives.variables import FLOAT0

MESH = sw.Mesh({"x": 2, "y": 2})
X = np.random.default_rng(3).standard_normal(5)
W = np.random.default_rng(4).standard_normal((3, 5))


def near(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-14)


def jitted(fun: Callable[..., Any], *specs: Any) -> Callable[..., Any]:
    return sw.jit(fun, mesh=MESH, in_shardings=specs or None)


# ---- vjp ------------------------------------------------------------------------------------------------------------


def pair(x: Any, w: Any) -> Any:
    return {"a": np.sin(x), "b": w @ x}


def test_vjp_takes_and_gives_trees() -> None:
    value, pull_back = sw.vjp(pair, X, W)
    gx, gw = pull_back({"a": np.ones(5), "b": np.arange(3.0)})
    near(value["b"], W @ X)
    near(gx, np.cos(X) + np.arange(3.0) @ W)
    near(gw, np.outer(np.arange(3.0), X))


def test_vjp_in_a_program_on_sharded_arrays() -> None:
    def f(x: Any, w: Any) -> Any:
        value, pull_back = sw.vjp(pair, x, w)
        return value, pull_back({"a": np.ones(5), "b": value["b"]})

    value, (gx, gw) = jitted(f, P("x"), P("y"))(X, W)
    near(value["a"], np.sin(X))
    near(gx, np.cos(X) + W @ X @ W)
    near(gw, np.outer(W @ X, X))


def test_a_pullback_may_be_called_twice_and_in_a_loop() -> None:
    def f(x: Any) -> Any:
        _, pull_back = sw.vjp(lambda y: y**3, x)
        return sw.scan(lambda c, row: (c + pull_back(row)[0], None), np.zeros(5), np.stack([x, 2 * x]))[0]

    near(jitted(f)(X), 9 * X**3)


def test_a_jitted_function_may_return_a_pullback() -> None:
    value, pull_back = jitted(lambda x: sw.vjp(lambda y: np.tanh(y) * y, x), P("x"))(X)
    near(value, np.tanh(X) * X)
    wanted = np.tanh(X) + X / np.cosh(X) ** 2
    near(pull_back(np.ones(5))[0], wanted)
    near(jitted(lambda f, c: f(c)[0])(pull_back, np.ones(5)), wanted)


def test_the_forward_pass_runs_once() -> None:
    def f(x: Any) -> Any:
        value, pull_back = sw.vjp(np.exp, x)
        return value, pull_back(x), pull_back(value)

    text = jitted(f).lower(X).compile().as_text("local")
    assert text.count("stablehlo.exponential") == 1


def test_has_aux() -> None:
    value, pull_back, aux = sw.vjp(lambda x: (x * x, {"sum": x.sum()}), X, has_aux=True)
    near(value, X * X)
    near(aux["sum"], X.sum())
    near(pull_back(np.ones(5))[0], 2 * X)
    value, tangent, aux = sw.jvp(lambda x: (x * x, {"sum": x.sum()}), (X,), (X,), has_aux=True)
    near(tangent, 2 * X * X)
    near(aux["sum"], X.sum())
    value, push, aux = sw.linearize(lambda x: (x * x, x.sum()), X, has_aux=True)
    near(push(X), 2 * X * X)
    near(aux, X.sum())


def test_one_value_for_two_arguments_has_two_gradients() -> None:
    _, pull_back = sw.vjp(lambda a, b: a * b**2, X, X)
    first, second = pull_back(np.ones(5))
    near(first, X**2)
    near(second, 2 * X * X)


def test_an_integer_has_a_cotangent_of_dtype_float0() -> None:
    value, pull_back = sw.vjp(lambda x, n: (x * n, n + 1), X, np.arange(5))
    gx, gn = pull_back((np.ones(5), np.zeros(5, FLOAT0)))
    near(gx, np.arange(5))
    assert (gn.dtype, gn.shape) == (FLOAT0, (5,))
    assert value[1].dtype == np.int64


def test_an_argument_without_influence_has_zeros() -> None:
    near(sw.vjp(lambda a, b: a, X, W)[1](X)[1], np.zeros((3, 5)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, sw.bfloat16, np.complex64])
def test_dtypes_are_kept(dtype: Any) -> None:
    x = X.astype(dtype)
    value, pull_back = sw.vjp(lambda x: x * x, x)
    assert pull_back(np.asarray(value))[0].dtype == dtype
    assert sw.jvp(lambda x: x * x, (x,), (x,))[1].dtype == dtype


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), ()])
def test_small_shapes(shape: tuple[int, ...]) -> None:
    x = np.full(shape, 3.0)
    near(sw.vjp(lambda x: x * x, x)[1](x)[0], 2 * x * x)
    near(sw.jvp(lambda x: x * x, (x,), (x,))[1], 2 * x * x)
    assert sw.jacfwd(lambda x: x * x)(x).shape == shape * 2
    assert sw.jacrev(lambda x: x * x)(x).shape == shape * 2


# ---- forward mode ---------------------------------------------------------------------------------------------------


def test_jvp_takes_and_gives_trees() -> None:
    value, tangent = sw.jvp(lambda p: pair(*p), ([X, W],), ([np.ones(5), W],))
    near(value["a"], np.sin(X))
    near(tangent["a"], np.cos(X))
    near(tangent["b"], W @ np.ones(5) + W @ X)


def test_jvp_of_a_loop_with_an_unknown_number_of_steps() -> None:
    def f(x: Any) -> Any:
        return sw.while_loop(lambda v: np.sum(v * v) > 1e-3, lambda v: v * 0.5 * np.cos(v), x)

    _, tangent = jitted(lambda x, t: sw.jvp(f, (x,), (t,)), P("x"), None)(X, np.ones(5))
    step = 1e-6
    near(np.round(np.asarray(tangent), 7), np.round((f(X + step) - f(X - step)) / (2 * step), 7))


def test_linearize_of_such_a_loop() -> None:
    def f(x: Any) -> Any:
        return sw.while_loop(lambda v: np.sum(v * v) > 1e-3, lambda v: v * 0.5 * np.cos(v), x)

    value, push = sw.linearize(f, X)
    near(value, f(X))
    near(push(np.ones(5)), np.asarray(sw.jvp(f, (X,), (np.ones(5),))[1]))
    near(jitted(lambda x, t: sw.linearize(f, x)[1](t))(X, X), np.asarray(sw.jvp(f, (X,), (X,))[1]))


def test_linearize_computes_the_factors_once() -> None:
    def f(x: Any, t: Any) -> Any:
        value, push = sw.linearize(lambda x: np.sin(x) * x, x)
        return value, push(t), push(value)

    value, first, second = jitted(f)(X, W[0])
    slope = np.cos(X) * X + np.sin(X)
    near(value, np.sin(X) * X)
    near(first, slope * W[0])
    near(second, slope * np.sin(X) * X)
    text = jitted(f).lower(X, W[0]).compile().as_text("local")
    assert text.count("stablehlo.cosine") == 1


def test_tangents_follow_their_values_and_nothing_is_computed_twice() -> None:
    text = jitted(lambda x, t: sw.jvp(lambda x: np.sin(x) * 3.0, (x,), (t,))).trace(X, X).as_text()
    assert text.count("stablehlo.sine") == 1
    assert text.count("stablehlo.cosine") == 1
    program = jitted(lambda x, t: sw.jvp(lambda x: x @ W.T, (x,), (t,))).lower(X, X).compile().as_text("local")
    assert program.count("stablehlo.dot_general") == 2
    assert "stablehlo.add" not in program


def test_a_tangent_has_the_annotations_of_its_value() -> None:
    def f(x: Any) -> Any:
        return sw.shard(np.sin(x), P("x"))

    text = jitted(lambda x, t: sw.jvp(f, (x,), (t,))).trace(X, X).as_text()
    assert text.count("sdy.sharding_constraint") == 2


# ---- Jacobians ------------------------------------------------------------------------------------------------------


def test_jacobians_of_trees() -> None:
    for transform in (sw.jacfwd, sw.jacrev):
        jacobian = transform(lambda p: pair(p["x"], p["w"]))({"x": X, "w": W})
        near(jacobian["a"]["x"], np.diag(np.cos(X)))
        near(jacobian["a"]["w"], np.zeros((5, 3, 5)))
        near(jacobian["b"]["x"], W)
        near(jacobian["b"]["w"], np.einsum("ij,k->ijk", np.eye(3), X))


def test_argnums_of_jacobians() -> None:
    for transform in (sw.jacfwd, sw.jacrev):
        both = jitted(transform(lambda x, w: w @ x, argnums=(1, 0)))(X, W)
        near(both[0], np.einsum("ij,k->ijk", np.eye(3), X))
        near(both[1], W)
        near(transform(lambda x, w: w @ x, argnums=-2)(X, W), W)


def test_aux_of_jacobians() -> None:
    for transform in (sw.jacfwd, sw.jacrev):
        jacobian, aux = transform(lambda x: (x * x, x.sum()), has_aux=True)(X)
        near(jacobian, np.diag(2 * X))
        near(aux, X.sum())


def test_hessian_of_two_arguments() -> None:
    blocks = jitted(sw.hessian(lambda a, b: np.sum(a * a * b), argnums=(0, 1)))(X, W[0])
    near(blocks[0][0], np.diag(2 * W[0]))
    near(blocks[0][1], np.diag(2 * X))
    near(blocks[1][0], np.diag(2 * X))
    near(blocks[1][1], np.zeros((5, 5)))


def test_holomorphic_functions() -> None:
    z = X + 1j * W[0]
    near(sw.grad(lambda z: np.sum(z**3), holomorphic=True)(z), 3 * z**2)
    near(sw.jacfwd(lambda z: z**3, holomorphic=True)(z), np.diag(3 * z**2))
    near(sw.jacrev(lambda z: z**3, holomorphic=True)(z), np.diag(3 * z**2))


def test_allow_int() -> None:
    value, (gx, gn) = sw.value_and_grad(lambda x, n: (x * n).sum(), (0, 1), allow_int=True)(X, np.arange(5))
    near(gx, np.arange(5))
    assert (gn.dtype, gn.shape) == (FLOAT0, (5,))
    near(value, (X * np.arange(5)).sum())
    assert sw.jacrev(lambda n: n * X, allow_int=True)(np.arange(5)).dtype == FLOAT0


def test_the_program_of_a_jacobian_does_not_grow_with_its_size() -> None:
    lengths = [
        len(jitted(sw.jacrev(lambda x: np.sin(x) * x.sum())).lower(np.ones(n)).compile().as_text("local").splitlines())
        for n in (10, 1000)
    ]
    assert lengths[0] == lengths[1]


# ---- reference mode -------------------------------------------------------------------------------------------------


def test_partitioned_programs_match_the_unpartitioned_ones() -> None:
    def f(x: Any, w: Any) -> Any:
        value, pull_back = sw.vjp(pair, x, w)
        return pull_back(value), sw.jvp(lambda x: np.tanh(x), (x,), (x,)), sw.linearize(np.sin, x)[1](x)

    sw.testing.assert_matches_unpartitioned(f, X, W, mesh=MESH, in_shardings=(P("x"), P("y")))
