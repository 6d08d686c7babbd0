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
    split_dim: int  # of the first argument; the next argument is split along the next dim

    @property
    def name(self) -> str:
        return self.function.__name__


PROGRAMS: list[Handed] = []


def program(
    *arguments: Any, exact: bool = False, split_dim: int = 0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the decorated function with these arguments."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append(Handed(function, arguments, exact, split_dim))
        return function

    return add


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def integers(*shape: int, dtype: Any = np.int32) -> np.ndarray:
    return RNG.integers(-9, 9, shape).astype(dtype)


@program(normal(16, 6), normal(6, 10), normal(10, 4))
def mlp(x: Any, w1: Any, w2: Any) -> Any:
    return np.tanh(x @ w1) @ w2


@program(normal(16, 24), normal(16, 24))
def sums_together(x: Any, y: Any) -> Any:
    """All but the first sum of each kind wait for a link, and travel together."""
    scaled = [(x * k, y / k) for k in (1, 2, 3)]
    largest = [np.max(v, axis=0) for v, _ in scaled]
    return [np.sum(v, axis=0) for v, _ in scaled], [np.sum(v, axis=1) for _, v in scaled], largest


@program(normal(17, 5), normal(5, 7))
def uneven_product(x: Any, w: Any) -> Any:
    return np.maximum(x @ w, 0), x.sum(0)


@program(normal(13, 6), exact=True)
def movement(x: Any) -> Any:
    return x.T, x[::-1], x[2:11:3], np.concatenate([x, x], 1), np.roll(x, 3, 0), x.reshape(6, 13)


@program(integers(12, 5), split_dim=1)
def integer_sums(x: Any) -> Any:
    return x.sum(0), x.prod(1), np.cumsum(x, 0), (x * x) @ x.T


@program(normal(12, 7), exact=True)
def extremes(x: Any) -> Any:
    return x.max(0), x.min(), np.argmax(x, 0), np.argmin(x, 1), np.maximum(x, -x).max(1)


SPECIAL = np.resize(np.float32([0.0, -0.0, np.nan, 1, -1, -0.0, 0.0, np.inf, -np.inf, -0.0, -0.0]), (12, 7))


@program(SPECIAL, exact=True)
def special_extremes(x: Any) -> Any:
    return x.max(0), x.min(1), np.maximum(x, -x), np.minimum(x[::-1], x).min()


@program(normal(4, 4), normal(4, 4))
def contractions(x: Any, y: Any) -> Any:
    return (
        np.einsum("ij,ji->", x, y),
        np.einsum("ij,ij->", x, y),
        np.einsum("ij,kj->ik", x, y),
        np.einsum("i,j->ij", x[0], y[0]),
    )


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


@program(normal(5, 8, 3), normal(8, 3), split_dim=1)
def gradient_of_a_scan(xs: Any, h: Any) -> Any:
    def loss(xs: Any, h: Any) -> Any:
        return (sw.scan(lambda h, x: (np.tanh(h * x),) * 2, h, xs)[1] ** 2).sum()

    return sw.value_and_grad(loss, (0, 1))(xs, h)


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


@program(normal(12, 8), normal(8, 4), normal(4, 8, 6) / 2)
def mixture_of_experts(x: Any, router: Any, experts: Any) -> Any:
    gates = x @ router
    gates = np.exp(gates - gates.max(1, keepdims=True))
    gates = gates / gates.sum(1, keepdims=True)
    best = (np.argmax(gates, 1)[:, None] == np.arange(4)).astype(np.float32)
    return np.einsum("be,bd,edf->bf", best * gates, x, experts), best.sum(0)


@program(normal(12, 10), normal(10), normal(10))
def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


@program(normal(10, 5), integers(10) % 5)
def cross_entropy(logits: Any, labels: Any) -> Any:
    def loss(logits: Any) -> Any:
        shifted = logits - logits.max(1, keepdims=True)
        rows = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        return -np.take_along_axis(rows, labels[:, None] % 5, 1).mean()

    return sw.value_and_grad(loss)(logits)


@program(integers(13, 5), exact=True)
def sorts(x: Any) -> Any:
    return np.sort(x, 0), np.argsort(x, 1, stable=True), np.sort(x, 1)[:, ::-1], np.median(x.astype(np.float64), 1)


@program(normal(12, 4), exact=True, split_dim=1)
def selections(x: Any) -> Any:
    return np.where(x > 0, x, -x), np.clip(x, -0.5, 0.5), np.triu(x), np.sign(x), np.isfinite(x), np.abs(x).max()


@program(normal(16, 3), normal(4, 4, 3))
def batched_products(x: Any, y: Any) -> Any:
    return np.matmul(y, y.transpose(0, 2, 1)), np.einsum("abk,ck->cab", y, x), np.tensordot(x, y, ([1], [2]))


@program(normal(5, 5) + 5 * np.eye(5, dtype=np.float32), normal(5, 4))
def linear_algebra(a: Any, b: Any) -> Any:
    spd = a @ a.T
    return np.linalg.cholesky(spd), spd @ b, np.kron(a[:2], b[:1]), np.linalg.matrix_power(a, 3)


WELL = normal(8, 4, 4) + 4 * np.eye(4, dtype=np.float32)


@program(WELL)
def factorizations(a: Any) -> Any:
    values, vectors = np.linalg.eigh(a, "U")
    rotated = np.abs(np.linalg.qr(a).Q), np.linalg.qr(a[:, :3], "complete").R ** 2
    return rotated, values, np.abs(vectors), np.linalg.svd(a[:, :, :2]).S, np.linalg.svdvals(a)


@program(WELL + 1j * normal(8, 4, 4), normal(8, 4, 3) + 1j * normal(8, 4, 3))
def solvers(a: Any, b: Any) -> Any:
    upper = np.linalg.cholesky(a @ np.conj(np.swapaxes(a, 1, 2)), upper=True)
    return np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.det(a), *np.linalg.slogdet(a), upper


@program(WELL, normal(8, 4, 3))
def gradients_of_solvers(a: Any, b: Any) -> Any:
    def loss(a: Any, b: Any) -> Any:
        triangle = np.linalg.cholesky(np.swapaxes(a, 1, 2) @ a)
        return (np.linalg.solve(a, b) ** 2).sum() + triangle.sum() + np.linalg.det(a).mean() / 256

    return sw.grad(loss, (0, 1))(a, b)


@program(normal(6, 8))
def fourier(x: Any) -> Any:
    spectrum = np.fft.rfft(x)
    return np.abs(spectrum), np.fft.irfft(spectrum), np.fft.fft2(x).imag


@program(normal(8, 6) + 1j * normal(8, 6))
def complex_numbers(z: Any) -> Any:
    return z.conj() * z, np.abs(z), z.sum(0), np.exp(1j * z.real), z.imag.T, z @ z.T


@program(normal(12, 6), np.int32(3))
def dynamic_slices(x: Any, i: Any) -> Any:
    return x[i], sw.at(x, i).set(0.0), np.take(x, i, 1), np.roll(x, i, 0)


@program(normal(8, 5), normal(8, 5))
def transcendental(x: Any, y: Any) -> Any:
    return np.sin(x) * np.cos(y), np.arctan2(x, y), np.log1p(np.abs(x)), np.expm1(y), np.hypot(x, y), np.cbrt(x)


@program(normal(7, 9))
def differences(x: Any) -> Any:
    return np.diff(x, axis=0), x[1:, 1:] - x[:-1, :-1], np.gradient(x, axis=1), np.cumsum(x[::-1], 0)[::-1]


@program(normal(3, 8, 8))
def stencil(x: Any) -> Any:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    return sum(padded[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)) / 9


@program(normal(6, 8), normal(8, 8) / 3, normal(8, 8) / 3)
def checkpointed_layers(x: Any, w1: Any, w2: Any) -> Any:
    def loss(weights: Any) -> Any:
        h = x
        for w in weights:
            h = sw.checkpoint(lambda h, w: np.tanh(h @ w))(h, w)
        return (h**2).sum()

    return sw.grad(loss)((w1, w2))


@program(normal(12, 4))
def mapped(x: Any) -> Any:
    return sw.vmap(lambda row: (row / np.linalg.norm(row)).cumsum())(x)


@program(normal(16, 4), normal(4), np.float32(0.1))
def optimizer_steps(x: Any, w: Any, rate: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        w, velocity = state
        gradient = sw.grad(lambda w: ((x @ w - 1) ** 2).mean())(w)
        velocity = 0.9 * velocity + gradient
        return w - rate * velocity, velocity

    return sw.fori_loop(0, 3, step, (w, np.zeros(4, np.float32)))


@program(integers(9, 6, dtype=np.int64), integers(9, 6, dtype=np.int64) % 3 + 1, exact=True)
def integer_arithmetic(x: Any, y: Any) -> Any:
    return x // y, x % y, np.fmod(x, y), x & y, ~x | y, np.bitwise_count(x), (x * y).astype(np.int8)


@program(normal(20), integers(20) % 4)
def histogram(x: Any, bins: Any) -> Any:
    return sw.at(np.zeros(4, np.float32), bins % 4).add(x), (bins[:, None] % 4 == np.arange(4)).sum(0)


@program(normal(8, 6), exact=True)
def joined_and_split(x: Any) -> Any:
    return np.stack([x, -x], 1), np.split(x, 2)[1], np.tile(x, (2, 1)), np.repeat(x, 2, 0), np.vstack([x, x[:3]])


@program(normal(6, 4), normal(6, 4))
def mixed_reductions(x: Any, y: Any) -> Any:
    return np.maximum(x, y).min(1), (x * y).sum(), np.var(x, 0), np.outer(x[0], y[0]), np.trace(x[:4])


@program(normal(9, 6), exact=True)
def barriers(x: Any) -> Any:
    return sw.propagation_barrier(x, "none") * 2, sw.propagation_barrier(x + 1, "forward").max(0)
