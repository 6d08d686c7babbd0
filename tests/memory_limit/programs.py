# SPDX-License-Identifier: Apache-2.0
"""Programs whose values are computed again under a memory limit: steps of small models, with arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"d": 8})
GRID = sw.Mesh({"d": 4, "t": 2})


@dataclass(frozen=True)
class Model:
    """A function of arrays, and how it is compiled.

    Attributes:
        step: takes the arguments.
        arguments: NumPy arrays, or trees of them.
        least: the share of the unlimited peak within which the program can run at least.
        options: of ``jit``.
    """

    name: str
    step: Callable[..., Any]
    arguments: tuple[Any, ...]
    least: float
    options: dict[str, Any] = field(default_factory=dict)

    def jitted(self, **more: Any) -> Any:
        return sw.jit(self.step, **{"mesh": MESH, **self.options, **more})


def _random(*shape: int, scale: float = 1.0) -> Any:
    return (np.random.default_rng(sum(shape)).normal(size=shape) * scale).astype(np.float32)


def layer(x: Any, up: Any, down: Any) -> Any:
    return x + np.tanh(np.tanh(x @ up) @ down)


def _unrolled_loss(weights: Any, x: Any) -> Any:
    for up, down in weights:
        x = layer(x, up, down)
    return (x * x).sum()


def _scanned_loss(weights: Any, x: Any) -> Any:
    return (sw.scan(lambda x, w: (layer(x, *w), None), x, weights)[0] ** 2).sum()


def _descent(loss: Any) -> Any:
    def step(weights: Any, x: Any) -> Any:
        value, gradients = sw.value_and_grad(loss)(weights, sw.split(x, 0, "d"))
        return value, sw.tree.map(lambda w, g: w - np.float32(0.1) * g, weights, gradients)

    return step


def _accumulated(weights: Any, batches: Any) -> Any:
    def one(total: Any, x: Any) -> Any:
        gradients = sw.grad(_scanned_loss)(weights, sw.split(x, 0, "d"))
        return sw.tree.map(lambda a, b: a + b, total, gradients), None

    return sw.scan(one, sw.tree.map(np.zeros_like, weights), batches)[0]


def _attention(weights: Any, x: Any) -> Any:
    for q, k, v, o in weights:
        scores = np.einsum("bqc,bkc->bqk", x @ q, x @ k)
        scores = np.exp(scores - sw.stop_gradient(scores.max(axis=-1, keepdims=True)))
        x = x + np.tanh(np.einsum("bqk,bkc->bqc", scores / scores.sum(axis=-1, keepdims=True), x @ v) @ o)
    return (x * x).sum()


def _branches(weights: Any, x: Any) -> Any:
    for w in weights:
        x = sw.cond(x.sum() > 0, lambda x, up, down: layer(x, up, down), lambda x, up, down: layer(x, up, -down), x, *w)
    return (x * x).sum()


def _history(weights: Any, x: Any) -> Any:
    """Each trip reads the carry of the one before, and the loss all states."""

    def body(carry: Any, w: Any) -> Any:
        x, before = carry
        made = layer(x, *w) + np.tanh(before)
        return (made, x), made

    (x, _), states = sw.scan(body, (x, x * np.float32(0.5)), weights)
    return (x * x).sum() + (states**3).sum()


def _layers(count: int, width: int, hidden: int) -> Any:
    return [(_random(width, hidden, scale=0.1) + i / 50, _random(hidden, width, scale=0.1)) for i in range(count)]


def _stacked(layers: Any) -> Any:
    return tuple(np.stack(part) for part in zip(*layers))


_X = _random(2048, 32)
_SQUARES = tuple(_random(32, 32, scale=0.1) + i / 50 for i in range(4))
_SHARDED = {"mesh": MESH, "in_shardings": ((P(None, "d"), P(None, None, "d")), P("d"))}

MODELS = [
    Model("unrolled", _descent(_unrolled_loss), (_layers(6, 32, 64), _X), 0.5),
    Model("scanned", _descent(_scanned_loss), (_stacked(_layers(6, 32, 64)), _X), 0.6),
    Model("scanned, donated", _descent(_scanned_loss), (_stacked(_layers(6, 32, 64)), _X), 0.6, {"donate_argnums": 0}),
    Model("one trip more", _descent(_scanned_loss), (_stacked(_layers(7, 32, 64)), _random(2047, 32)), 0.5),
    Model("sharded weights", _descent(_scanned_loss), (_stacked(_layers(8, 64, 64)), _random(512, 64)), 0.6, _SHARDED),
    Model("accumulated", _accumulated, (_stacked(_layers(6, 32, 64)), _random(3, 2048, 32)), 0.6),
    Model("attention", _descent(_attention), ([_SQUARES] * 4, _random(64, 16, 32)), 0.5),
    Model("branches", _descent(_branches), (_layers(5, 32, 64), _X), 0.5),
    Model("history", _descent(_history), (_stacked(_layers(6, 32, 64)), _X), 0.8),
    Model("two axes", _descent(_scanned_loss), (_stacked(_layers(6, 32, 64)), _X), 0.5, {"mesh": GRID}),
]  # fmt: skip
