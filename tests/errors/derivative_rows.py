# SPDX-License-Identifier: Apache-2.0
"""Rows of test_called_names.py: wrong calls of transforms with derivatives, of their results, and of rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import shardwise as sw

X = np.arange(8, dtype=np.float32).reshape(4, 2)

DERIVATIVE_ROWS: list[tuple[str, str, Callable[[], Any]]] = []


def add(name: str, fault: str, call: Callable[[], Any]) -> None:
    DERIVATIVE_ROWS.append((name, fault, call))


def until_it_is_large(x: Any) -> Any:
    return sw.while_loop(lambda c: c.sum() < 99, lambda c: c * 2, x).sum()


for derivative in (sw.vjp, sw.jvp, sw.linearize, sw.jacfwd, sw.jacrev, sw.hessian, sw.custom_vjp, sw.custom_jvp):
    add(derivative.__name__, "type", lambda d=derivative: d(3, (), ()))
add("hessian", "dtype", lambda: sw.hessian(np.sin)(np.arange(3)))
add("vjp", "word", lambda: sw.vjp(np.sin, "a"))
add("vjp", "result", lambda: sw.vjp(lambda x: "text", X))
add("vjp", "aux", lambda: sw.vjp(np.sin, X, has_aux=True))
add("vjp", "tree", lambda: sw.vjp(np.sin, X)[1]((X, X)))
add("vjp", "shape", lambda: sw.vjp(np.sin, X)[1](X[:1]))
add("vjp", "dtype", lambda: sw.vjp(np.sin, X)[1](X.astype(np.float64)))
add("vjp", "count", lambda: sw.vjp(np.sin, X)[1](X, X))
add("vjp", "loop", lambda: sw.vjp(until_it_is_large, X))
add("jvp", "primals", lambda: sw.jvp(np.sin, X, X))
add("jvp", "tree", lambda: sw.jvp(np.sin, (X,), (X, X)))
add("jvp", "shape", lambda: sw.jvp(np.sin, (X,), (X[:1],)))
add("jvp", "dtype", lambda: sw.jvp(np.sin, (X,), (np.ones((4, 2), int),)))
add("jvp", "integer", lambda: sw.jvp(np.sin, (np.arange(3),), (np.arange(3),)))
add("jvp", "aux", lambda: sw.jvp(np.sin, (X,), (X,), has_aux=True))
add("linearize", "aux", lambda: sw.linearize(np.sin, X, has_aux=True))
add("linearize", "shape", lambda: sw.linearize(np.sin, X)[1](X[:1]))
for jacobian in (sw.jacfwd, sw.jacrev):
    add(jacobian.__name__, "dtype", lambda j=jacobian: j(np.sin)(np.arange(3)))
    add(jacobian.__name__, "argnums", lambda j=jacobian: j(np.sin, argnums=2)(X))
    add(jacobian.__name__, "holomorphic", lambda j=jacobian: j(np.sin, holomorphic=True)(X))
    add(jacobian.__name__, "aux", lambda j=jacobian: j(np.sin, has_aux=True)(X))
add("jacrev", "result", lambda: sw.jacrev(lambda x: x > 0)(X))
for custom in (sw.custom_vjp, sw.custom_jvp):
    add(custom.__name__, "argnums", lambda c=custom: c(np.sin, nondiff_argnums=(-1,)))
    add(custom.__name__, "argnames", lambda c=custom: c(until_it_is_large, nondiff_argnames=("y",)))


def with_reverse_rule(fwd: Any, bwd: Any) -> Any:
    function = sw.custom_vjp(lambda x: x.sum())
    function.defvjp(fwd, bwd)
    return sw.grad(function)(X)


def with_forward_rule(rule: Any) -> Any:
    function = sw.custom_jvp(lambda x: x.sum())
    function.defjvp(rule)
    return sw.grad(function)(X)


add("custom_vjp", "word", lambda: sw.custom_vjp(np.sin).defvjp(np.sin, 3))
add("custom_vjp", "zeros", lambda: sw.custom_vjp(np.sin).defvjp(np.sin, np.sin, symbolic_zeros=True))
add("custom_vjp", "pair", lambda: with_reverse_rule(lambda x: x, lambda _, g: (g,)))
add("grad", "reverse-value", lambda: with_reverse_rule(lambda x: (x, None), lambda _, g: (g,)))
add("custom_vjp", "tuple", lambda: with_reverse_rule(lambda x: (x.sum(), None), lambda _, g: g))
add("grad", "reverse-shape", lambda: with_reverse_rule(lambda x: (x.sum(), None), lambda _, g: (g,)))
add("grad", "reverse-tree", lambda: with_reverse_rule(lambda x: (x.sum(), x), lambda x, g: ([x],)))
add("custom_jvp", "pair", lambda: with_forward_rule(lambda p, t: p[0].sum()))
add("grad", "forward-value", lambda: with_forward_rule(lambda p, t: (p[0], t[0])))
add("grad", "forward-shape", lambda: with_forward_rule(lambda p, t: (p[0].sum(), t[0])))
add("custom_jvp", "defjvps", lambda: sw.custom_jvp(np.add, nondiff_argnums=(1,)).defjvps(np.sin))
add("vmap", "name", lambda: sw.vmap(np.sin, axis_name=3))  # type: ignore[arg-type]
add("vmap", "size", lambda: sw.vmap(np.sin, axis_size=-1))
add("vmap", "other-size", lambda: sw.vmap(np.sin, axis_size=3)(X))
add("vmap", "mesh-axis", lambda: sw.vmap(np.sin, spmd_axis_name=3))  # type: ignore[arg-type]
add("lax.psum", "vmap", lambda: sw.vmap(lambda x: sw.lax.psum(x, "j"), axis_name="i")(X))
