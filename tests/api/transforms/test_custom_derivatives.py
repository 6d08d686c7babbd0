# SPDX-License-Identifier: Apache-2.0
"""custom_vjp and custom_jvp: rules in each transform, nondiff arguments, trees, closures, and texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 2, "y": 2})
X = np.random.default_rng(3).standard_normal(5)


def near(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-14)


def clipping() -> Any:
    f = sw.custom_vjp(lambda x, bound: x * 2, nondiff_argnums=(1,))
    f.defvjp(lambda x, bound: (x * 2, x), lambda bound, x, g: (np.clip(g * x, -bound, bound),))
    return f


def test_a_reverse_rule_takes_the_place_of_the_gradient() -> None:
    f = clipping()
    near(f(X, 0.5), X * 2)
    near(sw.grad(lambda x: f(x, 0.5).sum())(X), np.clip(X, -0.5, 0.5))
    near(sw.grad(lambda x: f(x, bound=0.25).sum())(X), np.clip(X, -0.25, 0.25))


def test_a_rule_for_each_example() -> None:
    f = clipping()
    rows = np.stack([X, 3 * X])
    gradient = sw.jit(sw.grad(lambda x: sw.vmap(lambda r: f(r, 1.0))(x).sum()), mesh=MESH, in_shardings=P("x"))
    near(gradient(rows), np.clip(rows, -1, 1))


def test_examples_share_an_argument_whose_gradient_is_their_sum() -> None:
    f = sw.custom_vjp(lambda x, w: x * w)
    f.defvjp(lambda x, w: (x * w, (x, w)), lambda res, g: (g * res[1], 10 * g * res[0]))
    rows = np.stack([X, 3 * X])
    by_w = sw.grad(lambda w: sw.vmap(f, in_axes=(0, None))(rows, w).sum())(np.ones(5))
    near(by_w, 40 * X)
    constant = sw.custom_vjp(lambda x, w: x * w)
    constant.defvjp(lambda x, w: (x * w, None), lambda _, g: (np.ones(5), np.ones(5)))
    near(sw.grad(lambda w: sw.vmap(constant, in_axes=(0, None))(rows, w).sum())(np.ones(5)), np.full(5, 2.0))


def test_a_rule_in_loops_branches_and_checkpoints() -> None:
    f = clipping()

    def loss(x: Any) -> Any:
        x, _ = sw.scan(lambda c, _: (f(c, 9.0), None), x, None, length=2)
        x = sw.cond(x.sum() > 100.0, lambda y: y, lambda y: f(y, 9.0), x)
        return sw.checkpoint(lambda y: f(y, 9.0))(x).sum()

    # g · 8x · 4x · 2x · x backwards through values x, 2x, 4x, 8x
    near(sw.grad(loss)(0.1 * X), np.prod([c * 0.1 * X for c in (8, 4, 2, 1)], axis=0))


def test_a_rule_is_differentiated_again() -> None:
    f = sw.custom_vjp(lambda x: np.sin(x))
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * x**3,))
    near(sw.grad(lambda x: sw.grad(lambda y: f(y).sum())(x).sum())(X), 3 * X**2)
    near(sw.jvp(sw.grad(lambda y: f(y).sum()), (X,), (np.ones(5),))[1], 3 * X**2)
    near(sw.hessian(lambda y: f(y).sum())(X), np.diag(3 * X**2))


def test_a_forward_rule_serves_both_modes() -> None:
    f = sw.custom_jvp(lambda x, w: x * w)
    f.defjvp(lambda p, t: (f(*p), 3 * t[0] * p[1] + 5 * t[1] * p[0]))
    w = np.arange(5.0)
    near(sw.jvp(f, (X, w), (np.ones(5), w))[1], 3 * w + 5 * w * X)
    gx, gw = sw.grad(lambda x, w: f(x, w).sum(), (0, 1))(X, w)
    near(gx, 3 * w)
    near(gw, 5 * X)
    near(sw.vjp(f, X, w)[1](X)[1], 5 * X * X)
    near(sw.linearize(f, X, w)[1](X, w), 3 * w * X + 5 * w * X)
    near(sw.grad(lambda x: sw.grad(lambda x: f(x * x, x).sum())(x).sum())(X), 22 * X)


def test_rules_for_each_argument() -> None:
    f = sw.custom_jvp(lambda x, w: x * w)
    f.defjvps(lambda t, y, x, w: t * y, None)
    near(sw.jvp(f, (X, X), (np.ones(5), X))[1], X * X)
    near(sw.grad(lambda x, w: f(x, w).sum(), 1)(X, X), np.zeros(5))


def test_trees_and_none() -> None:
    f = sw.custom_vjp(lambda p, n: {"y": p["a"] * p["b"], "n": n + 1})

    def fwd(p: Any, n: Any) -> Any:
        return {"y": p["a"] * p["b"], "n": n + 1}, (p, "kept")

    def bwd(residuals: Any, g: Any) -> Any:
        p, word = residuals
        assert word == "kept"
        return {"a": g["y"] * p["b"], "b": None}, None

    f.defvjp(fwd, bwd)
    gradient = sw.grad(lambda p: f(p, 3)["y"].sum())({"a": X, "b": 2 * X})
    near(gradient["a"], 2 * X)
    near(gradient["b"], np.zeros(5))


def test_methods() -> None:
    class Layer:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        call = sw.custom_vjp(lambda self, x: x * self.scale, nondiff_argnums=(0,))
        call.defvjp(lambda self, x: (x * self.scale, None), lambda self, _, g: (g * 7 * self.scale,))

    layer = Layer(2.0)
    near(sw.grad(lambda x: layer.call(x).sum())(X), np.full(5, 14.0))


def test_rules_in_a_manual_region() -> None:
    f = sw.custom_vjp(lambda x: sw.lax.psum(x, "x"))
    f.defvjp(lambda x: (sw.lax.psum(x, "x"), None), lambda _, g: (3 * g,))
    region = sw.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P())
    x = np.arange(4.0)
    near(sw.jit(region, mesh=MESH)(x), x[:2] + x[2:])
    near(sw.jit(sw.grad(lambda x: (region(x) * np.array([1.0, 5.0])).sum()), mesh=MESH)(x), [3, 15, 3, 15])


def test_a_rule_is_recorded_only_where_it_is_needed() -> None:
    calls = []
    f = sw.custom_vjp(lambda x: x * x)

    def fwd(x: Any) -> Any:
        calls.append("fwd")
        return f(x), x

    f.defvjp(fwd, lambda x, g: (g * x,))
    near(sw.jit(f, mesh=MESH)(X), X * X)
    assert calls == []
    near(sw.grad(lambda x: f(x).sum())(X), X)
    assert calls == ["fwd"]


def test_a_text_of_the_program_runs_without_the_rule() -> None:
    f = clipping()
    text = sw.jit(lambda x: f(x, 1.0), mesh=MESH).trace(X).as_text()
    near(sw.parse(text).compile(mesh=MESH)(X), X * 2)


def test_gradients_of_such_a_function_are_not_compared_with_differences() -> None:
    f = clipping()
    sw.testing.assert_matches_unpartitioned(sw.grad(lambda x: f(x, 0.1).sum()), X, mesh=MESH, in_shardings=P("x"))


@pytest.mark.parametrize(("custom", "name"), [(sw.custom_vjp, "defvjp"), (sw.custom_jvp, "defjvp")])
def test_a_function_without_a_rule_refuses_calls(custom: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"a rule must be defined .* call sin\.{name} first"):
        custom(np.sin)(X)


def test_a_value_that_the_function_closes_over_has_no_gradient() -> None:
    def f(x: Any) -> Any:
        inner = sw.custom_vjp(lambda y: y * x)
        inner.defvjp(lambda y: (y * x, None), lambda _, g: (g,))
        return inner(x).sum()

    with pytest.raises(sw.UnsupportedError, match="must not close over a value that is differentiated"):
        sw.grad(f)(X)
    near(sw.grad(lambda y: sw.jit(f)(X) + y.sum())(X), np.ones(5))


@pytest.mark.parametrize("transform", [sw.jacfwd, sw.hessian])
def test_forward_mode_refuses_a_reverse_rule(transform: Any) -> None:
    f = clipping()
    if transform is sw.hessian:
        near(transform(lambda x: f(x, 9.0).sum())(X), np.diag(np.ones(5)))
        return
    with pytest.raises(sw.UnsupportedError, match="reverse rule alone"):
        transform(lambda x: f(x, 1.0))(X)
