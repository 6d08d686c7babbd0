# SPDX-License-Identifier: Apache-2.0
"""Transforms inside transforms, written once for NumPy with Shardwise and for `jax.numpy` with JAX.

Each layer makes a function of a vector from a function of a vector, so that every two of them nest:

    grad       x -> grad(lambda y: sum(sin(f(y))))(x)
    scan       x -> scan(lambda c, s: (sin(f(c)) * s + c, c), x, [0.5, 1.0])
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SIZE = 5
X = np.random.default_rng(5).uniform(-1, 1, SIZE)

Function = Callable[[Any], Any]


class Library(NamedTuple):
    """NumPy's functions, the transforms, control flow, and an annotation of a vector."""

    np: Any
    transforms: Any
    lax: Any
    annotated: Function


def base(to: Library) -> Function:
    def f(x: Any) -> Any:
        y = to.annotated(to.np.sin(x) * x[::-1])
        return y + 0.5 * to.np.tanh(to.np.sum(x) * y)

    return f


def _jit(to: Library, f: Function) -> Function:
    return to.transforms.jit(f)  # type: ignore[no-any-return]


def _grad(to: Library, f: Function) -> Function:
    return to.transforms.grad(lambda y: to.np.sum(to.np.sin(f(y))))  # type: ignore[no-any-return]


def _vjp(to: Library, f: Function) -> Function:
    def g(x: Any) -> Any:
        value, pull_back = to.transforms.vjp(f, x)
        return value + pull_back(to.np.cos(x))[0]

    return g


def _jvp(to: Library, f: Function) -> Function:
    def g(x: Any) -> Any:
        value, tangent = to.transforms.jvp(f, (x,), (to.np.cos(x),))
        return value - tangent

    return g


def _vmap(to: Library, f: Function) -> Function:
    def g(x: Any) -> Any:
        return to.np.sum(to.transforms.vmap(f)(to.np.stack([x, 0.5 * x, 1 - x])), axis=0)

    return g


def _jacfwd(to: Library, f: Function) -> Function:
    return lambda x: to.transforms.jacfwd(f)(x) @ x


def _jacrev(to: Library, f: Function) -> Function:
    return lambda x: x @ to.transforms.jacrev(f)(x)


def _checkpoint(to: Library, f: Function) -> Function:
    return to.transforms.checkpoint(f)  # type: ignore[no-any-return]


def _scan(to: Library, f: Function) -> Function:
    def g(x: Any) -> Any:
        last, rows = to.lax.scan(lambda c, s: (to.np.sin(f(c)) * s + c, c), x, to.np.asarray([0.5, 1.0]))
        return last + to.np.sum(rows, axis=0)

    return g


def _cond(to: Library, f: Function) -> Function:
    return lambda x: to.lax.cond(to.np.sum(x) > 0.1, f, lambda y: y * y, x)


def _while(to: Library, f: Function) -> Function:
    def g(x: Any) -> Any:
        def goes_on(carry: Any) -> Any:
            i, y = carry
            return (i < 2) & (to.np.sum(y * y) < 1e3)

        return to.lax.while_loop(goes_on, lambda carry: (carry[0] + 1, to.np.sin(f(carry[1])) + x), (0, x))[1]

    return g


def _custom_vjp(to: Library, f: Function) -> Function:
    g = to.transforms.custom_vjp(lambda x: f(x))
    g.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * ct * to.np.cos(x),))
    return g  # type: ignore[no-any-return]


def _custom_jvp(to: Library, f: Function) -> Function:
    g = to.transforms.custom_jvp(lambda x: f(x))
    g.defjvp(lambda primals, tangents: (f(primals[0]), 3 * tangents[0] * to.np.cos(primals[0])))
    return g  # type: ignore[no-any-return]


LAYERS: dict[str, Callable[[Library, Function], Function]] = {
    "jit": _jit,
    "grad": _grad,
    "vjp": _vjp,
    "jvp": _jvp,
    "vmap": _vmap,
    "jacfwd": _jacfwd,
    "jacrev": _jacrev,
    "checkpoint": _checkpoint,
    "scan": _scan,
    "cond": _cond,
    "while": _while,
    "custom_vjp": _custom_vjp,
    "custom_jvp": _custom_jvp,
}

PAIRS = list(itertools.product(LAYERS, repeat=2))
TRIPLES = random.Random(0).sample(list(itertools.product(LAYERS, repeat=3)), 40)
NESTED = [*PAIRS, *TRIPLES]


def nested(to: Library, names: tuple[str, ...]) -> Function:
    """The layers of these names, the outermost first."""
    f = base(to)
    for name in reversed(names):
        f = LAYERS[name](to, f)
    return f
