# SPDX-License-Identifier: Apache-2.0
"""An array that functions of JAX close over is one buffer of the program, however often and in whatever it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.interop.jax_functions import JaxFunction

from ..support.oracles import oracle

jax: Any = oracle("jax")
jnp = jax.numpy

MESH = sw.Mesh({"x": 4})
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
CLOSED = np.cos(np.arange(64, dtype=np.float32)).reshape(8, 8)


def add(x: Any) -> Any:
    return x + CLOSED


def multiply(x: Any) -> Any:
    return x * jnp.array(CLOSED)


JITTED = jax.jit(add)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "twice in one function": sw.from_jax(lambda x: multiply(add(x))),
    "in two functions": lambda x: sw.from_jax(multiply)(sw.from_jax(add)(x)),
    "in JAX and in NumPy": lambda x: sw.from_jax(add)(x) * CLOSED,
    "in NumPy and in JAX": lambda x: sw.from_jax(add)(x * CLOSED.copy()),
    "jit in jit": sw.from_jax(jax.jit(lambda x: multiply(jax.jit(add)(x)))),
    "jit in scan": sw.from_jax(
        lambda x: multiply(jax.lax.scan(lambda c, _: (jax.jit(add)(c), None), x, None, length=2)[0])
    ),
    "jit in cond": sw.from_jax(lambda x: jax.lax.cond(x.sum() > 0, jax.jit(add), jax.jit(multiply), x)),
    "jit in while_loop": sw.from_jax(
        lambda x: jax.lax.while_loop(lambda c: c[0, 0] < 9, lambda c: jax.jit(add)(c) + 1, multiply(x))
    ),
    "jit in checkpoint": sw.from_jax(jax.grad(lambda x: jax.checkpoint(jax.jit(lambda x: jnp.sin(add(x))))(x).sum())),
    "gradient of jit": sw.from_jax(jax.jit(jax.grad(jax.jit(lambda x: multiply(jax.jit(add)(x) @ CLOSED).sum())))),
    "one jitted function twice": sw.from_jax(lambda x: JITTED(JITTED(x))),
    "gradient": sw.from_jax(jax.grad(lambda x: multiply(x @ CLOSED).sum())),
    "gradient around it": lambda x: sw.grad(lambda x: (sw.from_jax(lambda x: multiply(x @ CLOSED))(x) ** 2).sum())(x),
    "scan": sw.from_jax(lambda x: multiply(jax.lax.scan(lambda c, _: (add(c), None), x, None, length=2)[0])),
    "cond": sw.from_jax(lambda x: jax.lax.cond(x.sum() > 0, add, multiply, x)),
    "vmap": sw.from_jax(lambda x: jax.vmap(lambda row: row @ CLOSED)(multiply(x))),
    "checkpoint": sw.from_jax(jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(multiply(x)))(add(x)).sum())),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_array_is_held_once(name: str) -> None:
    compiled = sw.jit(FUNCTIONS[name], mesh=MESH, in_shardings=P("x")).lower(X).compile()
    assert len(compiled._traced._call.hoisted) == 1
    assert len([row for row in compiled.memory() if row.op == "argument"]) == 2
    assert 'dense<"0x' not in compiled.as_text("global")
    assert "hidden_0" in compiled.to_source("jax")
    assert "hidden_1" not in compiled.to_source("jax")
    jax_function = FUNCTIONS[name]
    if isinstance(jax_function, JaxFunction):
        np.testing.assert_allclose(np.asarray(compiled(X)), jax_function._fun(X), rtol=1e-5, atol=1e-5)
