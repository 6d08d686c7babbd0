# SPDX-License-Identifier: Apache-2.0
"""Gradients are named after the argument's leaf in the ledger, in memory() and in errors, through every transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shardwise as sw
from shardwise import P

F32 = np.float32
MESH = sw.Mesh({"data": 4})
X = sw.ShapeDtypeStruct((64, 16), F32)
W = sw.ShapeDtypeStruct((16, 16), F32)
PARAMS = {"w1": W, "w2": W}
STACKED = {"w1": sw.ShapeDtypeStruct((3, 16, 16), F32), "w2": sw.ShapeDtypeStruct((3, 16, 16), F32)}
NAMES = {"gradient of params['w1']", "gradient of params['w2']"}


def layer(params: Any, x: Any) -> Any:
    return np.tanh(x @ params["w1"]) @ params["w2"]


def plain(params: Any, x: Any) -> Any:
    return (layer(params, x) ** 2).sum()


def used_twice(params: Any, x: Any) -> Any:
    return (layer(params, layer(params, x)) ** 2).sum()


def of_checkpoint(params: Any, x: Any) -> Any:
    return (sw.checkpoint(layer)(params, x) ** 2).sum()


def of_scan(params: Any, x: Any) -> Any:
    return (sw.scan(lambda h, weights: (layer(weights, h), None), x, params)[0] ** 2).sum()


def of_scan_with_one_layer(params: Any, x: Any) -> Any:
    return (sw.scan(lambda h, _: (layer(params, h), None), x, length=3)[0] ** 2).sum()


def of_checkpoint_in_scan(params: Any, x: Any) -> Any:
    return (sw.scan(lambda h, weights: (sw.checkpoint(layer)(weights, h), None), x, params)[0] ** 2).sum()


def of_cond(params: Any, x: Any) -> Any:
    return (sw.cond(x[0, 0] > 0, lambda: layer(params, x), lambda: layer(params, x * 2)) ** 2).sum()


def of_jit(params: Any, x: Any) -> Any:
    return (sw.jit(layer)(params, x) ** 2).sum()


def in_jax(params: Any, x: Any) -> Any:
    return ((jnp.tanh(x @ params["w1"]) @ params["w2"]) ** 2).sum()


def in_jax_by_scan(params: Any, x: Any) -> Any:
    return (jax.lax.scan(lambda h, w: (jnp.tanh(h @ w["w1"]) @ w["w2"], None), x, params)[0] ** 2).sum()


def of_jax(params: Any, x: Any) -> Any:
    return sw.from_jax(in_jax)(params, x)


def of_jax_scan(params: Any, x: Any) -> Any:
    return sw.from_jax(in_jax_by_scan)(params, x)


def compiled(step: Callable[..., Any], params: Any) -> sw.Program:
    jitted = sw.jit(step, mesh=MESH, in_shardings=(P(), P("data")), out_shardings=P())
    return jitted.lower(params, X).compile()


def sums(program: sw.Program) -> set[str]:
    """The names of the sums over devices of whole matrices."""
    rows = [part for row in program.collectives() for part in row.separate()]
    return {row.name for row in rows if row.kind in ("all_reduce", "reduce_scatter") and len(row.shape) > 1}


@pytest.mark.parametrize(
    ("loss", "params"),
    [
        (plain, PARAMS),
        (used_twice, PARAMS),
        (of_checkpoint, PARAMS),
        (of_scan, STACKED),
        (of_scan_with_one_layer, PARAMS),
        (of_checkpoint_in_scan, STACKED),
        (of_cond, PARAMS),
        (of_jit, PARAMS),
        (of_jax, PARAMS),
        (of_jax_scan, STACKED),
    ],
)
def test_the_sums_of_weight_gradients_are_named(loss: Callable[..., Any], params: Any) -> None:
    assert sums(compiled(sw.grad(loss), params)) == NAMES
    assert sums(compiled(lambda params, x: sw.value_and_grad(loss)(params, x)[1], params)) == NAMES


@pytest.mark.parametrize(("loss", "params"), [(in_jax, PARAMS), (in_jax_by_scan, STACKED)])
@pytest.mark.parametrize("has_aux", [False, True])
def test_gradients_of_jax_are_named(loss: Callable[..., Any], params: Any, has_aux: bool) -> None:
    def function(params: Any, x: Any) -> Any:
        return (loss(params, x), x.sum()) if has_aux else loss(params, x)

    for derived in (jax.grad(function, has_aux=has_aux), jax.value_and_grad(function, has_aux=has_aux)):
        assert sums(compiled(sw.from_jax(derived), params)) == NAMES
        assert sums(compiled(sw.from_jax(jax.jit(derived)), params)) == NAMES


@pytest.mark.parametrize(("loss", "params"), [(in_jax, PARAMS), (in_jax_by_scan, STACKED)])
@pytest.mark.parametrize("form", ["plain", "jitted", "called", "recomputed"])
def test_gradients_inside_a_step_of_jax_are_named(loss: Callable[..., Any], params: Any, form: str) -> None:
    """Only the update tells what they are: JAX keeps no other word of it."""
    own = jax.checkpoint(loss) if form == "recomputed" else loss

    def step(params: Any, momentum: Any, x: Any) -> Any:
        value, gradients = jax.value_and_grad(own)(params, x)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        return jax.tree.map(lambda w, m: w - 0.1 * m, params, momentum), momentum, value

    jitted = jax.jit(step)
    forms = {"jitted": jitted, "called": lambda params, momentum, x: jitted(params, momentum, x)}
    function = sw.from_jax(forms.get(form, step))
    compiled = sw.jit(function, mesh=MESH, in_shardings=(None, None, P("data"))).lower(params, params, X).compile()
    assert sums(compiled) == NAMES
    categories = {row.value: row.category for row in compiled.memory()}
    assert categories["params['w1']"] == "weights"
    assert categories["momentum['w1']"] == "optimizer state"


def test_what_only_looks_like_an_update_is_no_gradient() -> None:
    def block(h: Any, w: Any) -> Any:
        return h + jnp.tanh(h @ w)

    def step(h: Any, w: Any, x: Any) -> Any:
        # The cotangent of h is no update of the weight.
        return h + jax.grad(lambda h: (block(h, w) * x).sum())(h), w

    rows = P(None, "data"), P("data")
    for function, shapes in ((block, (W, W)), (step, (W, W, W))):
        jitted = sw.jit(sw.from_jax(function), mesh=MESH, in_shardings=(*rows, *[None] * (len(shapes) - 2)))
        assert "gradient of w" not in sums(jitted.lower(*shapes).compile())
    assert sums(sw.jit(sw.from_jax(block), mesh=MESH, in_shardings=rows).lower(W, W).compile()) == {""}


def test_gradients_by_several_arguments() -> None:
    def loss(a: Any, b: Any) -> Any:
        return ((a @ b) ** 2).sum()

    for derived in (sw.grad(loss, argnums=(0, 1)), sw.from_jax(jax.grad(loss, argnums=(0, 1)))):
        jitted = sw.jit(derived, mesh=MESH, in_shardings=(P(None, "data"), P("data")), out_shardings=P())
        rows = jitted.lower(W, W).compile().collectives().rows
        assert {"gradient of a", "gradient of b"} <= {row.name for row in rows}


def test_the_printed_cause_has_the_name() -> None:
    ledger = compiled(sw.grad(plain), PARAMS).collectives()
    assert "reduction in dot_general, gradient of params['w1']" in repr(ledger)
    assert {row.gradient for row in ledger if row.kind == "all_reduce" and len(row.shape) > 1} == NAMES


def test_rows_of_memory_are_named() -> None:
    for loss, params in ((plain, PARAMS), (of_checkpoint, PARAMS)):
        memory = compiled(sw.grad(loss), params).memory()
        assert NAMES & {row.value for row in memory}


def test_a_name_in_the_forward_pass_is_not_that_of_gradients() -> None:
    def loss(w: Any, x: Any) -> Any:
        h = sw.name(x @ w, "hidden")
        return (np.tanh(h) ** 2).sum()

    program = compiled(sw.grad(loss), W)
    assert len(program.why("hidden").values) == 1
    assert sums(program) == {"gradient of w"}
    assert program.why("gradient of w").values[-1].type == "tensor<16x16xf32>"


def test_a_gradient_that_is_two_arguments_has_one_name() -> None:
    """The cotangent of a sum is that of both."""

    def loss(a: Any, b: Any, x: Any) -> Any:
        return (np.tanh(x @ (a + b)) ** 2).sum()

    jitted = sw.jit(sw.grad(loss, argnums=(0, 1)), mesh=MESH, in_shardings=(P(), P(), P("data")), out_shardings=P())
    assert len(sums(jitted.lower(W, W, X).compile())) == 1


def test_a_gradient_of_very_many_addends_needs_no_stack() -> None:
    def loss(w: Any) -> Any:
        total = w
        for _ in range(40_000):
            total = total + w
        return total.sum()

    traced = sw.jit(sw.grad(loss), mesh=MESH).trace(np.ones(4, F32))
    assert traced.out_info.shape == (4,)
