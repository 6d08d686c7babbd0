# SPDX-License-Identifier: Apache-2.0
"""Steps of models that have more kinds of ops than the layers of :mod:`tests.memory_limit.programs`."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from tests.memory_limit.programs import GRID, MESH, Model, _descent, _layers, _random, _stacked, layer


def _dropped(weights: Any, x: Any) -> Any:
    for i, (up, down) in enumerate(weights):
        kept = sw.random.bernoulli(sw.random.fold_in(sw.random.key(0), i), 0.9, x.shape)
        x = x + np.where(kept, np.tanh(np.tanh(x @ up) @ down) / np.float32(0.9), np.float32(0))
    return (x * x).sum()


def _checkpointed(weights: Any, x: Any) -> Any:
    body = sw.checkpoint(layer)
    return (sw.scan(lambda x, w: (body(x, *w), None), x, weights)[0] ** 2).sum()


def _convolved(weights: Any, x: Any) -> Any:
    for kernel, scale in weights:
        made = sw.lax.conv(x, kernel, (1, 1), "SAME")
        centered = made - made.mean(axis=(0, 2, 3), keepdims=True)
        deviation = np.sqrt((centered**2).mean(axis=(0, 2, 3), keepdims=True) + np.float32(1e-5))
        x = x + sw.nn.relu(centered / deviation * scale)
    return (x * x).sum()


def _recurrent(weights: Any, x: Any) -> Any:
    """One layer of many steps: each reads rows of ``x``, and all states are read behind them."""
    (up, down), *_ = weights

    def body(state: Any, row: Any) -> Any:
        state = np.tanh(row @ up + np.tanh(state) @ down @ up)
        return state, state

    rows = x.reshape(-1, 16, x.shape[-1]).swapaxes(0, 1)
    _, states = sw.scan(body, rows[0] @ up, rows)
    return ((states @ down) ** 2).sum()


def _mixed(weights: Any, x: Any) -> Any:
    """Each token goes to one of eight experts."""
    for gate, up, down in weights:
        scores = sw.nn.softmax(x @ gate)
        chosen = (scores == scores.max(axis=-1, keepdims=True)).astype(np.float32)
        sent = np.einsum("gse,gsc->egsc", chosen, x)
        made = np.einsum("egsf,efc->egsc", np.tanh(np.einsum("egsc,ecf->egsf", sent, up)), down)
        x = x + np.einsum("gse,egsc->gsc", chosen * scores, made)
    return (x * x).sum()


def _entropy(weights: Any, tokens: Any) -> Any:
    """Rows of a table, layers, and the table once more for the logits."""
    table, layers = weights
    x = table[tokens]
    for up, down in layers:
        x = layer(x, up, down)
    logits = np.einsum("bsc,vc->bsv", x, table)
    chosen = np.take_along_axis(sw.nn.log_softmax(logits), tokens[..., None], axis=-1)
    return -chosen.mean()


def _attend(x: Any, read: Any, q: Any, k: Any, v: Any) -> Any:
    return np.einsum("bqk,bkc->bqc", sw.nn.softmax(np.einsum("bqc,bkc->bqk", x @ q, read @ k)), read @ v)


def _translated(weights: Any, x: Any) -> Any:
    """An encoder, and a decoder that reads its result in each layer."""
    encoder, decoder = weights
    made, source = x, x[:, ::-1]
    for q, k, v, _ in encoder:
        source = source + np.tanh(_attend(source, source, q, k, v))
    for q, k, v, o in decoder:
        made = made + np.tanh(_attend(made, made, q, k, v) @ o)
        made = made + np.tanh(_attend(made, source, k, q, v))
    return (made * made).sum()


def _nested(weights: Any, x: Any) -> Any:
    def pair(x: Any, two: Any) -> Any:
        return sw.scan(lambda x, w: (layer(x, *w), None), x, two)[0], None

    return (sw.scan(pair, x, sw.tree.map(lambda w: w.reshape(3, 2, *w.shape[1:]), weights))[0] ** 2).sum()


def _narrow(weights: Any, x: Any) -> Any:
    x = x.astype(sw.bfloat16)
    for up, down in weights:
        x = layer(x, up.astype(sw.bfloat16), down.astype(sw.bfloat16))
    return (x.astype(np.float32) ** 2).sum()


def _between(weights: Any, x: Any) -> Any:
    """Hidden values over one axis, and rows over both between the layers."""
    for up, down in weights:
        hidden = sw.shard(np.tanh(x @ up), P("d", "t"))
        x = sw.shard(x + np.tanh(hidden @ down), P(("d", "t")))
    return (x * x).sum()


def _branches_of_trips(weights: Any, x: Any) -> Any:
    def body(x: Any, w: Any) -> Any:
        return sw.cond(x.sum() > 0, lambda x: layer(x, *w), lambda x: np.tanh(x @ w[0]) @ w[1], x), None

    return (sw.scan(body, x, weights)[0] ** 2).sum()


def _adam(weights: Any, state: Any, x: Any) -> Any:
    def loss(weights: Any) -> Any:
        x_split = sw.split(x, 0, "d")
        for up, down in weights:
            x_split = layer(x_split, up, down)
        return (x_split * x_split).sum()

    updates, state = sw.optim.adam(1e-3).update(sw.grad(loss)(weights), state, weights)
    return sw.optim.apply_updates(weights, updates), state


_X = _random(2048, 32)
_SQUARES = tuple(_random(32, 32, scale=0.1) + i / 50 for i in range(4))
_EXPERTS = [(_random(32, 8), _random(8, 32, 64, scale=0.1), _random(8, 64, 32, scale=0.1) + i / 50) for i in range(3)]
_KERNELS = [(_random(8, 8, 3, 3, scale=0.1) + i / 50, np.ones((8, 1, 1), np.float32)) for i in range(5)]
_TOKENS = np.random.default_rng(7).integers(0, 256, (64, 32)).astype(np.int32)
_SPLIT = [(P(None, "t"), P("t"))] * 6
_ADAMS = _layers(6, 32, 64)

MORE_MODELS = [
    Model("dropout", _descent(_dropped), (_layers(6, 32, 64), _X), 0.5),
    Model("checkpointed", _descent(_checkpointed), (_stacked(_layers(12, 32, 64)), _X), 0.98),
    Model("convolutions", _descent(_convolved), (_KERNELS, _random(16, 8, 16, 16)), 0.6),
    Model("recurrent", _descent(_recurrent), (_layers(1, 32, 64), _X), 0.95),
    Model("experts", _descent(_mixed), (_EXPERTS, _random(8, 128, 32)), 0.6),
    Model("cross entropy", _descent(_entropy), ((_random(256, 32, scale=0.1), _layers(4, 32, 64)), _TOKENS), 0.8),
    Model("translation", _descent(_translated), (([_SQUARES] * 2, [_SQUARES] * 2), _random(64, 16, 32)), 0.6),
    Model("nested scans", _descent(_nested), (_stacked(_layers(6, 32, 64)), _X), 0.9),
    Model("bfloat16", _descent(_narrow), (_layers(6, 32, 64), _X), 0.5),
    Model("sequence", _descent(_between), (_layers(6, 32, 64), _X), 0.6,
          {"mesh": GRID, "in_shardings": (_SPLIT, P("d"))}),
    Model("branches of trips", _descent(_branches_of_trips), (_stacked(_layers(6, 32, 64)), _X), 0.9),
    Model("Adam", _adam, (_ADAMS, sw.optim.adam(1e-3).init(_ADAMS), _X), 0.6, {"mesh": MESH, "donate_argnums": (0, 1)}),
]  # fmt: skip
