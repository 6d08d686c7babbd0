# SPDX-License-Identifier: Apache-2.0
"""Losses with loops and branches, in terms of NumPy and of the control flow and gradients of JAX.

Each takes the modules (`numpy` and `shardwise`, or `jax.numpy` and a namespace of JAX's functions) before its arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.conformance.jax.control_flow_programs import Program

__all__ = ["LOSSES"]

LOSSES: list[Program] = []
RNG = np.random.default_rng(14)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


C, C2, X, X2 = normal(4), normal(4), normal(6, 4), normal(6, 4)
W, V, BATCH = normal(4, 4) / 2, normal(4, 4) / 2, normal(8, 4)


def loss(*inputs: np.ndarray) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the decorated function with these arrays."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        LOSSES.append(Program(function, inputs))
        return function

    return add


def cell(m: Any, w: Any) -> Callable[[Any, Any], Any]:
    def step(h: Any, x: Any) -> Any:
        h = m.tanh(h @ w + x)
        return h, h * x

    return step


# ---- scan -----------------------------------------------------------------------------------------------------------


@loss(C, X, W)
def scan_with_captured_weights(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    last, ys = lax.scan(cell(m, w), c, xs)
    return (ys * ys).sum() + last.sum()


@loss(C, X, W)
def scan_backwards(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    last, ys = lax.scan(cell(m, w), c, xs, reverse=True)
    return (ys * ys).sum() + last.sum()


@loss(C, X, W)
def scan_by_fours_with_a_rest(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    return lax.scan(cell(m, w), c, xs, unroll=4)[1].sum()


@loss(C, X, W)
def last_carry_alone(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    return lax.scan(cell(m, w), c, xs)[0].sum()


@loss(C)
def scan_without_arrays(m: Any, lax: Any, c: Any) -> Any:
    return lax.scan(lambda h, _: (m.sin(h) * h, None), c, None, length=5)[0].sum()


@loss(C, normal(0, 4))
def scan_of_nothing(m: Any, lax: Any, c: Any, xs: Any) -> Any:
    last, ys = lax.scan(lambda h, x: (h * x, h), c, xs)
    return (last * last).sum() + ys.sum()


@loss(C, normal(1, 4), W)
def scan_of_one_row(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    return lax.scan(cell(m, w), c, xs)[1].sum()


@loss(C, X)
def carries_of_mixed_dtypes(m: Any, lax: Any, c: Any, xs: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        h, count, half = carry
        return (m.sin(h) * x, count + 1, half * 1.5), half.astype(m.float32) * count.astype(m.float32)

    (h, count, half), ys = lax.scan(step, (c, 0, m.ones(4, m.float16)), xs)
    return h.sum() + ys.sum() + half.astype(m.float32).sum() * count.astype(m.float32)


@loss(C, C2, X)
def a_carry_that_does_not_change(m: Any, lax: Any, c: Any, d: Any, xs: Any) -> Any:
    (h, kept), ys = lax.scan(lambda carry, x: ((m.sin(carry[0] * carry[1]) + x, carry[1]), carry[0]), (c, d), xs)
    return (h * kept).sum() + ys.sum()


@loss(C, C2, X)
def carries_that_change_places(m: Any, lax: Any, c: Any, d: Any, xs: Any) -> Any:
    (a, b), _ = lax.scan(lambda carry, x: ((carry[1] * x, m.sin(carry[0])), None), (c, d), xs)
    return a.sum() + (b * b).sum()


@loss(C, X, W)
def an_array_that_is_scanned_and_captured(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    return lax.scan(lambda h, x: (m.tanh(h @ w) + x * xs.sum(), None), c, xs)[0].sum()


@loss(C, W)
def an_expensive_invariant(m: Any, lax: Any, c: Any, w: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, h: m.sin(h @ m.tanh(w @ w)), c).sum()


@loss(C, {"w": W, "v": V, "b": C2}, X)  # type: ignore[arg-type]
def a_tree_of_weights(m: Any, lax: Any, c: Any, weights: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        return m.tanh(h @ weights["w"] + x @ weights["v"] + weights["b"]), {"h": h, "x": (h * x).sum()}

    last, ys = lax.scan(step, c, xs)
    return last.sum() + ys["h"].sum() * ys["x"].sum()


# ---- other loops ----------------------------------------------------------------------------------------------------


@loss(C, W)
def fori_loop_from_zero(m: Any, lax: Any, c: Any, w: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, h: m.sin(h @ w) * (i + 1), c).sum()


@loss(C, X)
def fori_loop_over_neighbours(m: Any, lax: Any, c: Any, xs: Any) -> Any:
    return lax.fori_loop(1, 5, lambda i, h: m.sin(h + xs[i] * xs[i - 1]), c).sum()


@loss(X, W)
def mapped_rows(m: Any, lax: Any, xs: Any, w: Any) -> Any:
    return (lax.map(lambda x: m.exp(m.sin(x @ w) @ w), xs) * xs).sum()


@loss(X)
def associative_products(m: Any, lax: Any, xs: Any) -> Any:
    return m.sin(lax.associative_scan(lambda a, b: a * b, xs)).sum()


@loss(C, X, W)
def a_loop_in_a_loop(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    def outer(h: Any, x: Any) -> Any:
        inner, sums = lax.scan(lambda g, y: (m.tanh(g @ w + y * x), g.sum()), h, xs)
        return inner * h, sums.sum()

    last, sums = lax.scan(outer, c, xs)
    return last.sum() + (sums * sums).sum()


# ---- branches -------------------------------------------------------------------------------------------------------


def either(m: Any, lax: Any, sign: float, c: Any, w: Any) -> Any:
    return lax.cond(sign * (c * c).sum() > 0, lambda: m.sin(m.exp(c @ w) @ w).sum(), lambda: (m.exp(c) * 2).sum())


@loss(C, W)
def the_first_of_two_branches(m: Any, lax: Any, c: Any, w: Any) -> Any:
    return either(m, lax, 1.0, c, w)


@loss(C, W)
def the_second_of_two_branches(m: Any, lax: Any, c: Any, w: Any) -> Any:
    return either(m, lax, -1.0, c, w)


@loss(C, W)
def one_of_three_branches(m: Any, lax: Any, c: Any, w: Any) -> Any:
    def branch(index: int) -> Any:
        branches = [
            lambda a: m.sin(a @ w).sum(),
            lambda a: m.float32(3),
            lambda a: m.tanh(m.exp(a @ w) @ w).sum(),
        ]
        return lax.switch(index, branches, c)

    return branch(0) + 2 * branch(1) + 3 * branch(2) + 4 * branch(7)


@loss(C, X, W)
def a_branch_in_a_loop(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda: m.tanh(m.exp(h @ w) @ w + x), lambda: h * x), h

    return lax.scan(step, c, xs)[1].sum()


@loss(C, X, W)
def a_loop_in_a_branch(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    return lax.cond((c * c).sum() > 0, lambda: lax.scan(cell(m, w), c, xs)[1].sum(), lambda: c.sum())


# ---- gradients of gradients -----------------------------------------------------------------------------------------


@loss(C, X, W)
def a_gradient_of_a_scan(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    inner = lax.grad(lambda c, w: (lax.scan(cell(m, w), c, xs)[1] ** 2).sum(), argnums=(0, 1))(c, w)
    return (inner[0] ** 2).sum() + inner[1].sum()


@loss(C, W)
def a_gradient_of_a_gradient(m: Any, lax: Any, c: Any, w: Any) -> Any:
    first = lax.grad(lambda c: lax.fori_loop(0, 3, lambda i, h: m.sin(h @ w) * h, c).sum())
    return lax.grad(lambda c: (first(c) ** 2).sum())(c).sum()


@loss(C, W)
def a_gradient_of_a_branch(m: Any, lax: Any, c: Any, w: Any) -> Any:
    return (lax.grad(lambda c: either(m, lax, 1.0, c, w))(c) ** 2).sum()


@loss(C, X, W)
def a_gradient_in_a_scan(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        return h - 0.1 * lax.grad(lambda h: m.tanh(h @ w + x).sum())(h), h

    return lax.scan(step, c, xs)[1].sum()


@loss(C, X, W)
def a_gradient_of_a_loop_in_a_loop(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        return h - 0.1 * lax.grad(lambda h: lax.fori_loop(0, 3, lambda i, g: m.tanh(g @ w + x), h).sum())(h), h

    return lax.scan(step, c, xs)[1].sum()


# ---- checkpoint -----------------------------------------------------------------------------------------------------


@loss(C, X, W)
def a_checkpointed_body(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    return (lax.scan(lax.checkpoint(cell(m, w)), c, xs)[1] ** 2).sum()


@loss(C, W)
def a_checkpoint_in_a_checkpoint(m: Any, lax: Any, c: Any, w: Any) -> Any:
    inner = lax.checkpoint(lambda d: m.sin(m.exp(d @ w) @ w))
    return lax.checkpoint(lambda c: inner(m.sin(c)) * c)(c).sum()


@loss(C, X, W)
def a_checkpointed_scan(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    return lax.checkpoint(lambda c: lax.scan(cell(m, w), c, xs)[1].sum())(c)


@loss(C, X, W)
def a_checkpointed_branch_in_a_loop(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda: m.tanh(m.exp(h @ w) @ w + x), lambda: h * x), h

    return lax.scan(lax.checkpoint(step), c, xs)[1].sum()


@loss(C, X, W)
def a_gradient_of_a_checkpointed_body(m: Any, lax: Any, c: Any, xs: Any, w: Any) -> Any:
    return (lax.grad(lambda c: lax.scan(lax.checkpoint(cell(m, w)), c, xs)[1].sum())(c) ** 2).sum()


# ---- batches --------------------------------------------------------------------------------------------------------


@loss(BATCH, normal(5, 8, 4), W)
def a_batch_of_sequences(m: Any, lax: Any, h: Any, xs: Any, w: Any) -> Any:
    last, ys = lax.scan(cell(m, w), h, xs)
    return (last * last).sum() + ys.sum()
