# SPDX-License-Identifier: Apache-2.0
"""LLaMA as a NumPy function on shapes, with the layouts that the scaling book asks about.

Layers are alike, so that their weights are stacked, and sw.scan runs one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from tests.estimate.scaling_book import Shape

Tree = dict[str, Any]


@dataclass(frozen=True)
class Config:
    """The hyperparameters, by the book's letters: L, D, F, N, K, H and V."""

    layers: int
    width: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    vocabulary: int


LLAMA3_70B = Config(80, 8192, 28672, 64, 8, 128, 128256)
LLAMA2_13B = Config(40, 5120, 13824, 40, 40, 128, 32000)
# Part 4, question 1.
BOOK_16B = Config(64, 4096, 4 * 4096, 32, 32, 128, 32000)

_IN, _OUT = ("q", "k", "v", "up", "gate"), ("o", "down")  # whose hidden dim is the last one, or the first one


def weights(model: Config, dtype: Any) -> Tree:
    """The shapes of all parameters."""
    q, kv = model.heads * model.head, model.kv_heads * model.head
    sizes = {
        "q": (model.width, q), "k": (model.width, kv), "v": (model.width, kv), "o": (q, model.width),
        "up": (model.width, model.hidden), "gate": (model.width, model.hidden), "down": (model.hidden, model.width),
    }  # fmt: skip
    return {
        "layers": {name: Shape((model.layers, *size), dtype) for name, size in sizes.items()},
        "embed": Shape((model.vocabulary, model.width), dtype),
        "out": Shape((model.width, model.vocabulary), dtype),
    }


def layout(model_axes: Any = None, data_axes: Any = None) -> Tree:
    """The book's layout: hidden dims along ``model_axes`` (tensor parallelism), others along ``data_axes`` (FSDP)."""
    layers = {name: P(None, data_axes, model_axes) for name in _IN} | {
        name: P(None, model_axes, data_axes) for name in _OUT
    }
    return {"layers": layers, "embed": P(model_axes, data_axes), "out": P(data_axes, model_axes)}


def feed_forward(x: Any, w: Tree) -> Any:
    """The gated block: three products."""
    gate = np.dot(x, w["gate"])
    return np.dot(gate / (1 + np.exp(-gate)) * np.dot(x, w["up"]), w["down"])


def products_of_a_layer(x: Any, w: Tree) -> Any:
    """A layer without attention itself, as the book counts 2 operations for each parameter and token.

    The keys and values are used elementwise, so that their products are there.
    """
    queries, keys, values = np.dot(x, w["q"]), np.dot(x, w["k"]), np.dot(x, w["v"])
    grouped = queries.reshape(*keys.shape, -1) * (keys * values)[..., None]
    x = x + np.dot(grouped.reshape(queries.shape), w["o"])
    return x + feed_forward(x, w)


def loss(params: Tree, tokens: Any, activations: Any = None) -> Any:
    """The mean of the logits of all tokens (any scalar would do): every product of a step, forward and backward.

    Args:
        tokens: of shape (tokens,).
        activations: the sharding of activations between layers.
    """

    def layer(x: Any, w: Tree) -> Any:
        x = x if activations is None else sw.shard(x, activations)
        return products_of_a_layer(x, w), None

    x, _ = sw.scan(layer, params["embed"][tokens], params["layers"])
    return np.mean(np.dot(x, params["out"]))


def decode(params: Tree, caches: Tree, tokens: Any) -> Any:
    """One more token of each sequence; the caches of keys and values are only read.

    Args:
        caches: ``{"k", "v"}`` of shape (layers, sequences, context, kv_heads, head).
        tokens: of shape (sequences,).

    Returns:
        The logits, and the new rows of the caches.
    """
    dtype = sw.bfloat16

    def layer(x: Any, args: tuple[Tree, Tree]) -> Any:
        w = {name: value.astype(dtype) for name, value in args[0].items()}
        cached = {name: value.astype(dtype) for name, value in args[1].items()}
        sequences, _, kv_heads, head = cached["k"].shape
        queries = np.dot(x, w["q"]).reshape(sequences, kv_heads, -1, head)
        new = {name: np.dot(x, w[name]) for name in ("k", "v")}
        scores = np.einsum("bkgh,bskh->bkgs", queries, cached["k"])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("bkgs,bskh->bkgh", scores / scores.sum(-1, keepdims=True), cached["v"])
        x = x + np.dot(mixed.reshape(sequences, -1), w["o"])
        return x + feed_forward(x, w), new

    x, new = sw.scan(layer, params["embed"][tokens].astype(dtype), (params["layers"], caches))
    return np.dot(x, params["out"].astype(dtype)), new
