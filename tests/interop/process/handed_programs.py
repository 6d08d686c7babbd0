# SPDX-License-Identifier: Apache-2.0
"""Programs in NumPy that are handed over to JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import shardwise as sw

__all__ = ["PROGRAMS", "Handed"]

RNG = np.random.default_rng(7)


class Handed(NamedTuple):
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    exact: bool  # in every bit
    turn: int  # which dim of the first argument is sharded

    @property
    def name(self) -> str:
        return self.function.__name__


PROGRAMS: list[Handed] = []


def program(*arguments: Any, exact: bool = False, turn: int = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the decorated function with these arguments."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append(Handed(function, arguments, exact, turn))
        return function

    return add


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def integers(*shape: int, dtype: Any = np.int32) -> np.ndarray:
    return RNG.integers(-9, 9, shape).astype(dtype)


@program(normal(16, 6), normal(6, 10), normal(10, 4))
def mlp(x: Any, w1: Any, w2: Any) -> Any:
    return np.tanh(x @ w1) @ w2


@program(normal(17, 5), normal(5, 7))
def uneven_product(x: Any, w: Any) -> Any:
    return np.maximum(x @ w, 0), x.sum(0)


@program(normal(13, 6), exact=True)
def movement(x: Any) -> Any:
    return x.T, x[::-1], x[2:11:3], np.concatenate([x, x], 1), np.roll(x, 3, 0), x.reshape(6, 13)


@program(integers(12, 5), turn=1)
def integer_sums(x: Any) -> Any:
    return x.sum(0), x.prod(1), np.cumsum(x, 0), (x * x) @ x.T


@program(normal(12, 7), exact=True)
def extremes(x: Any) -> Any:
    return x.max(0), x.min(), np.argmax(x, 0), np.argmin(x, 1), np.maximum(x, -x).max(1)


@program(integers(11, 4) > 0, exact=True)
def booleans(x: Any) -> Any:
    return x.any(0), x.all(1), np.logical_xor(x[0], x[1]), x.sum()


@program(normal(8, 12, dtype=sw.bfloat16), normal(12, 6, dtype=sw.bfloat16))
def narrow_floats(x: Any, w: Any) -> Any:
    return x @ w, x.sum(0), x.max(1), x.T


@program(normal(9, 4, dtype=np.float64))
def wide_floats(x: Any) -> Any:
    return np.exp(-x * x).sum(0), np.sqrt(np.abs(x)), x.mean(1)


@program(normal(10, 6), integers(7) % 10)
def indexing(x: Any, i: Any) -> Any:
    return x[i], np.take(x, i % 6, axis=1)


@program(normal(10, 6), integers(7) % 10)
def scattering(x: Any, i: Any) -> Any:
    return sw.at(x, i).add(1.5), sw.at(x, i).set(0.0), sw.at(x, i).max(x[:7])


@program(normal(9, 6), normal(6, 6) / 3)
def scanned(xs: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h @ w + x)
        return h, h.sum()

    return sw.scan(step, np.zeros(6, np.float32), xs)


@program(normal(8, 4))
def branches(x: Any) -> Any:
    first = sw.cond(x.sum() > 0, lambda: np.sin(x), lambda: x * 2)
    return first, sw.switch(2, [lambda: x[0], lambda: x[1], lambda: x.sum(0)])


@program(normal(8, 4))
def loop_of_unknown_length(x: Any) -> Any:
    return sw.while_loop(lambda c: np.abs(c).max() > 0.1, lambda c: c * 0.5, x)


@program(normal(16, 6), normal(6, 8), normal(8, 3))
def gradients(x: Any, w1: Any, w2: Any) -> Any:
    def loss(weights: Any) -> Any:
        return ((np.tanh(x @ weights[0]) @ weights[1]) ** 2).mean()

    return sw.value_and_grad(loss)([w1, w2])


@program(normal(6, 8, 4), normal(6, 8, 4))
def attention(q: Any, k: Any) -> Any:
    scores = np.einsum("bqd,bkd->bqk", q, k) / 2
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bqk,bkd->bqd", scores / scores.sum(-1, keepdims=True), k)


@program(normal(12, 5), exact=True)
def random_bits(x: Any) -> Any:
    return sw.random.bits(sw.random.key(7), (12, 5)), np.where(x > 0, x, 0)


@program(normal(12, 5))
def products(x: Any) -> Any:
    return x.prod(0), np.cumprod(x, 1), x.std(0), np.linalg.norm(x)


@program(integers(5, 8, dtype=np.int8), integers(5, 8, dtype=np.uint8), exact=True)
def small_integers(x: Any, y: Any) -> Any:
    return x.sum(1), y // 3, x >> 1, y << 2, x.astype(np.float32) / 4, y.max(0), x**2


@program(normal(12, 9))
def resharded(x: Any) -> Any:
    y = sw.shard(x, sw.P(None, "x")) * 2
    z = sw.shard(y, sw.P("x"))
    return z + 1, sw.replicate(y).sum(1)


@program(normal(23, 6), exact=True)
def exchanges(x: Any) -> Any:
    joined = np.concatenate([x[-2:], x, x[::-3]])
    return x[3:], x[::-2], np.pad(x, ((3, 2), (1, 0)), constant_values=7.0), joined, np.roll(x, (-5, 1), (0, 1)), x[0]


@program(normal(23, 6, dtype=sw.bfloat16), exact=True)
def exchanges_with_holes(x: Any) -> Any:
    return sw.grad(lambda y: (y[1::3] * 2).sum())(x), x[1:] - x[:-1], np.stack([x, x[::-1]])
