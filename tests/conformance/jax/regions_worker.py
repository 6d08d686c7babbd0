# SPDX-License-Identifier: Apache-2.0
"""Writes JAX programs with loops and branches, their inputs and what JAX computes, into an .npz file.

python -m tests.conformance.jax.regions_worker OUT.npz
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

RANDOM = np.random.default_rng(0)
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
W = np.eye(4, dtype=np.float32) / 2 + np.float32(0.1)
ROWS = RANDOM.standard_normal((50, 3, 4)).astype(np.float32)


def rnn(h: Any, w: Any, rows: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = jnp.tanh(h @ w + row)
        return h, 2 * h

    return lax.scan(step, h, rows)


def nested(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return lax.cond(i % 2 == 0, lambda v: lax.fori_loop(0, i, lambda j, u: u + j, v), lambda v: 2 * v, c)

    return lax.fori_loop(0, 5, body, x)


def newton(x: Any) -> Any:
    """The square root of each element, in as many steps as the slowest needs."""
    root = lax.while_loop(
        lambda c: jnp.any(jnp.abs(c[0] - c[1]) > 1e-5), lambda c: (c[1], (c[1] + x / c[1]) / 2), (x, x + 1)
    )
    return root[1]


def updates(x: Any, rows: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return c.at[i % 3].set(rows[i, 0]).at[:, i % 4].add(rows[i, :, 1])

    return lax.fori_loop(0, 20, body, x)


@jax.jit
def layer(h: Any, w: Any) -> Any:
    return jnp.tanh(jnp.clip(h @ w, -2, 2))


def layers(h: Any, w: Any) -> Any:
    for _ in range(3):
        h = layer(h, w)
    return layer(w, w), h


def scanned_layers(h: Any, w: Any) -> Any:
    def step(h: Any, i: Any) -> Any:
        h = lax.cond(i < 3, lambda v: layer(v, w), lambda v: lax.while_loop(lambda u: u.sum() > 0, layer_less, v), h)
        return h, lax.optimization_barrier(h)

    return lax.scan(step, h, jnp.arange(5))


def layer_less(u: Any) -> Any:
    return layer(u, W) - 1


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "fori_loop": (lambda x: lax.fori_loop(0, 10, lambda i, c: c * 0.9 + i, x), (X,)),
    "while_loop": (lambda x: lax.while_loop(lambda c: jnp.sum(c) < 1000, lambda c: c * 1.5 + 1, x), (X,)),
    "newton": (newton, (X + 2,)),
    "scan": (rnn, (X, W, ROWS)),
    "scan_in_reverse": (lambda rows: lax.scan(lambda c, v: (c + v, c * v), rows[0], rows, reverse=True), (ROWS,)),
    "gradient_of_scan": (jax.grad(lambda *a: jnp.sum(rnn(*a)[1]), argnums=(0, 1, 2)), (X, W, ROWS)),
    "map": (lambda rows: lax.map(lambda row: jnp.dot(row, W), rows), (ROWS,)),
    "associative_scan": (lambda rows: lax.associative_scan(jnp.add, rows), (ROWS,)),
    "cond": (lambda p, x: lax.cond(p > 0, lambda v: v + 1, jnp.sin, x), (np.int32(1), X)),
    "cond_of_false": (lambda p, x: lax.cond(p > 0, lambda v: v + 1, jnp.sin, x), (np.int32(-1), X)),
    "switch": (lambda p, x: lax.switch(p, [jnp.cos, jnp.sin, jnp.tanh], x), (np.int32(1), X)),
    "switch_above": (lambda p, x: lax.switch(p, [jnp.cos, jnp.sin, jnp.tanh], x), (np.int32(7), X)),
    "nested": (nested, (X,)),
    "vmap_of_while": (jax.vmap(lambda v: lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c * 1.5 + 1, v)), (X,)),
    "searchsorted": (lambda x: jnp.searchsorted(x[0], x[1]), (X,)),
    "uniform": (lambda seed: jax.random.uniform(jax.random.PRNGKey(seed), (5,)), (np.int32(3),)),
    "updates": (updates, (X, ROWS)),
    "layers": (layers, (X, W)),
    "gradient_of_layers": (jax.grad(lambda h, w: layers(h, w)[1].sum(), argnums=(0, 1)), (X, W)),
    "checkpoint": (jax.grad(lambda h, w: jax.checkpoint(layer)(h, w).sum(), argnums=1), (X, W)),
    "scanned_layers": (scanned_layers, (X + 2, W)),
}


def main(path: str) -> None:
    arrays: dict[str, Any] = {}
    for name, (function, arguments) in PROGRAMS.items():
        lowered = jax.jit(function).lower(*arguments)
        arrays[f"{name}/text"] = np.asarray(lowered.as_text())
        for i, argument in enumerate(arguments):
            arrays[f"{name}/argument/{i}"] = np.asarray(argument)
        for i, result in enumerate(jax.tree.leaves(lowered.compile()(*arguments))):
            arrays[f"{name}/result/{i}"] = np.asarray(result)
    np.savez(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
