# SPDX-License-Identifier: Apache-2.0
"""Training steps of three whole models for JAX to lower: a convolutional net, a Transformer and an LSTM.

Each step is (state, batch) -> (loss, state). The state holds parameters, Adam's moments and count, and what else the
model carries: running statistics, a random key. Only training_worker.py imports this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

Tree = Any
RATE, BETA1, BETA2 = 1e-2, 0.9, 0.99
EPSILON = 1e-4  # a gradient that is rounding errors alone must not become a step of RATE
DROP, MOMENTUM = 0.1, 0.9
WORDS, WIDTH, HEADS, HIDDEN = 24, 16, 4, 32


def adam_state(params: Tree) -> Tree:
    zeros = jax.tree.map(np.zeros_like, params)
    return {"params": params, "first": zeros, "second": zeros, "count": np.int32(0)}


def adam(state: Tree, grads: Tree) -> Tree:
    count = state["count"] + 1
    first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, state["first"], grads)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, state["second"], grads)
    steps = count.astype(jnp.float32)
    scale1, scale2 = 1 / (1 - BETA1**steps), 1 / (1 - BETA2**steps)

    def moved(p: Any, m: Any, v: Any) -> Any:
        return p - RATE * (m * scale1) / (jnp.sqrt(v * scale2) + EPSILON)

    params = jax.tree.map(moved, state["params"], first, second)
    return {"params": params, "first": first, "second": second, "count": count}


def cross_entropy(logits: Any, labels: Any, smoothing: float = 0.0) -> Any:
    targets = jax.nn.one_hot(labels, logits.shape[-1]) * (1 - smoothing) + smoothing / logits.shape[-1]
    return -jnp.sum(targets * jax.nn.log_softmax(logits), -1)


# A convolutional net with batch norm.


def batch_norm(x: Any, norm: Tree, running: Tree) -> tuple[Any, Tree]:
    mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
    running = {
        "mean": MOMENTUM * running["mean"] + (1 - MOMENTUM) * mean,
        "variance": MOMENTUM * running["variance"] + (1 - MOMENTUM) * variance,
    }
    return (x - mean) * lax.rsqrt(variance + 1e-5) * norm["scale"] + norm["offset"], running


def convolve(x: Any, kernel: Any, stride: int) -> Any:
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def conv_net_state(random: np.random.Generator) -> Tree:
    params: Tree = {"dense": drawn(random, 16, 10), "bias": zeros(10)}
    running: Tree = {}
    for name, shape in (("stem", (3, 3, 3, 8)), ("down", (3, 3, 8, 16)), ("deep", (3, 3, 16, 16))):
        params[name] = {"kernel": drawn(random, *shape), "scale": ones(shape[-1]), "offset": zeros(shape[-1])}
        running[name] = {"mean": zeros(shape[-1]), "variance": ones(shape[-1])}
    return {"adam": adam_state(params), "running": running}


def conv_net_step(state: Tree, images: Any, labels: Any) -> Any:
    def loss(params: Tree) -> Any:
        running = {}
        x, running["stem"] = batch_norm(
            convolve(images, params["stem"]["kernel"], 1), params["stem"], state["running"]["stem"]
        )
        x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x, running["down"] = batch_norm(
            convolve(x, params["down"]["kernel"], 2), params["down"], state["running"]["down"]
        )
        x = jax.nn.relu(x)
        y, running["deep"] = batch_norm(
            convolve(x, params["deep"]["kernel"], 1), params["deep"], state["running"]["deep"]
        )
        x = jnp.mean(jax.nn.relu(x + y), (1, 2))
        return jnp.mean(cross_entropy(x @ params["dense"] + params["bias"], labels)), running

    (value, running), grads = jax.value_and_grad(loss, has_aux=True)(state["adam"]["params"])
    return value, {"adam": adam(state["adam"], grads), "running": running}


# A Transformer encoder-decoder with dropout.


def layer_norm(x: Any, scale: Any) -> Any:
    return jax.nn.standardize(x, epsilon=1e-5) * scale


def attention(x: Any, memory: Any, mask: Any, weights: Tree) -> Any:
    query = jnp.einsum("bqd,dhk->bqhk", x, weights["query"])
    key = jnp.einsum("bmd,dhk->bmhk", memory, weights["key"])
    value = jnp.einsum("bmd,dhk->bmhk", memory, weights["value"])
    scores = jnp.einsum("bqhk,bmhk->bhqm", query, key) * query.shape[-1] ** -0.5
    shares = jax.nn.softmax(jnp.where(mask, scores, -1e9), -1)
    return jnp.einsum("bhqm,bmhk,hkd->bqd", shares, value, weights["out"])


def dropped(key: Any, x: Any) -> Any:
    return jnp.where(jax.random.bernoulli(key, 1 - DROP, x.shape), x / (1 - DROP), 0)


def feed_forward(x: Any, weights: Tree) -> Any:
    return jax.nn.gelu(x @ weights["up"]) @ weights["down"]


def attention_weights(random: np.random.Generator, layers: int) -> Tree:
    shapes = dict.fromkeys(("query", "key", "value"), (layers, WIDTH, HEADS, WIDTH // HEADS))
    shapes["out"] = (layers, HEADS, WIDTH // HEADS, WIDTH)
    return {name: drawn(random, *shape, scale=0.25) for name, shape in shapes.items()}


def layer_weights(random: np.random.Generator, layers: int, attentions: tuple[str, ...]) -> Tree:
    weights: Tree = {name: attention_weights(random, layers) for name in attentions}
    weights["mlp"] = {"up": drawn(random, layers, WIDTH, HIDDEN), "down": drawn(random, layers, HIDDEN, WIDTH)}
    return weights | {"norms": ones(layers, len(attentions) + 1, WIDTH)}


def transformer_state(random: np.random.Generator) -> Tree:
    params = {
        "embedding": drawn(random, WORDS, WIDTH, scale=0.5),
        "positions": drawn(random, 8, WIDTH, scale=0.5),
        "encoder": layer_weights(random, 2, ("self",)),
        "decoder": layer_weights(random, 2, ("self", "cross")),
        "norm": ones(WIDTH),
    }
    return {"adam": adam_state(params), "key": np.array([0, 3], np.uint32)}


def transformer_step(state: Tree, source: Any, target: Any) -> Any:
    key, *keys = jax.random.split(state["key"], 3)
    present = (source != 0)[:, None, None, :]  # word 0 is padding
    inputs, labels = target[:, :-1], target[:, 1:]
    causal = jnp.tril(jnp.ones((inputs.shape[1],) * 2, bool))

    def encoder_layer(x: Any, layer: Tree) -> Any:
        weights, layer_key = layer
        y = layer_norm(x, weights["norms"][0])
        x = x + dropped(layer_key, attention(y, y, present, weights["self"]))
        return x + feed_forward(layer_norm(x, weights["norms"][1]), weights["mlp"]), None

    def loss(params: Tree) -> Any:
        def embedded(ids: Any) -> Any:
            return params["embedding"][ids] + params["positions"][: ids.shape[1]]

        memory, _ = lax.scan(encoder_layer, embedded(source), (params["encoder"], jax.random.split(keys[0], 2)))

        def decoder_layer(x: Any, layer: Tree) -> Any:
            weights, layer_key = layer
            first, second = jax.random.split(layer_key)
            y = layer_norm(x, weights["norms"][0])
            x = x + dropped(first, attention(y, y, causal, weights["self"]))
            y = attention(layer_norm(x, weights["norms"][1]), memory, present, weights["cross"])
            x = x + dropped(second, y)
            return x + feed_forward(layer_norm(x, weights["norms"][2]), weights["mlp"]), None

        layers = (params["decoder"], jax.random.split(keys[1], 2))
        x, _ = lax.scan(jax.checkpoint(decoder_layer), embedded(inputs), layers)
        losses = cross_entropy(layer_norm(x, params["norm"]) @ params["embedding"].T, labels, smoothing=0.1)
        counted = labels != 0
        return jnp.sum(jnp.where(counted, losses, 0)) / jnp.sum(counted)

    value, grads = jax.value_and_grad(loss)(state["adam"]["params"])
    return value, {"adam": adam(state["adam"], grads), "key": key}


# An LSTM of two layers that predicts the next word.


def lstm_state(random: np.random.Generator) -> Tree:
    params: Tree = {"embedding": drawn(random, WORDS, WIDTH, scale=0.5), "out": drawn(random, WIDTH, WORDS)}
    for name in ("lower", "upper"):
        bias = np.stack([zeros(WIDTH), ones(WIDTH), zeros(WIDTH), zeros(WIDTH)])  # it remembers at first
        weights = {"input": drawn(random, WIDTH, 4, WIDTH), "hidden": drawn(random, WIDTH, 4, WIDTH)}
        params[name] = weights | {"bias": bias}
    return {"adam": adam_state(params)}


def lstm_cell(weights: Tree, carry: Any, x: Any) -> Any:
    hidden, cell = carry
    gates = jnp.einsum("bd,dgh->bgh", x, weights["input"]) + jnp.einsum("bd,dgh->bgh", hidden, weights["hidden"])
    enter, keep, new, leave = jnp.moveaxis(gates + weights["bias"], 1, 0)
    cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
    hidden = jax.nn.sigmoid(leave) * jnp.tanh(cell)
    return (hidden, cell), hidden


def lstm_step(state: Tree, words: Any) -> Any:
    def loss(params: Tree) -> Any:
        x = jnp.swapaxes(params["embedding"][words[:, :-1]], 0, 1)
        zeros = jnp.zeros(x.shape[1:])
        for name in ("lower", "upper"):
            _, x = lax.scan(lambda carry, row, name=name: lstm_cell(params[name], carry, row), (zeros, zeros), x)
        return jnp.mean(cross_entropy(x @ params["out"], words[:, 1:].T))

    value, grads = jax.value_and_grad(loss)(state["adam"]["params"])
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1, 0.5 / norm), grads)
    return value, {"adam": adam(state["adam"], grads)}


def drawn(random: np.random.Generator, *shape: int, scale: float | None = None) -> Any:
    scale = np.prod(shape[:-1]) ** -0.5 if scale is None else scale
    return (random.normal(size=shape) * scale).astype(np.float32)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def replicated(path: tuple[Any, ...], leaf: Any) -> P:
    return P()


def tensor_parallel(path: tuple[Any, ...], leaf: Any) -> P:
    """Heads and hidden units over "model"; Adam's moments as their parameters."""
    model = {"query": 2, "key": 2, "value": 2, "out": 1, "up": 2, "down": 1, "embedding": 0}
    dim = model.get(getattr(path[-1], "key", ""))
    return P() if dim is None or leaf.ndim <= dim else P(*[None] * dim, "model")


@dataclass(frozen=True)
class Model:
    """`batch` draws the other arguments of a step. Each is sharded along dim 0 over the batch's axis of the layout."""

    step: Callable[..., Any]
    state: Callable[[np.random.Generator], Tree]
    batch: Callable[[np.random.Generator], tuple[Any, ...]]
    layouts: tuple[str, ...] = ("whole", "data")  # "whole" has no mesh; the others are keys of LAYOUTS


def image_batch(random: np.random.Generator) -> tuple[Any, ...]:
    return random.normal(size=(16, 8, 8, 3)).astype(np.float32), random.integers(0, 10, 16, np.int32)


def sentence_batch(random: np.random.Generator) -> tuple[Any, ...]:
    source, target = random.integers(1, WORDS, (2, 16, 7), np.int32)
    lengths = random.integers(3, 8, (2, 16, 1))
    return np.where(np.arange(7) < lengths[0], source, 0), np.where(np.arange(7) < lengths[1], target, 0)


def word_batch(random: np.random.Generator) -> tuple[Any, ...]:
    return (random.integers(0, WORDS, (16, 9), np.int32),)


MODELS = {
    "conv_net": Model(conv_net_step, conv_net_state, image_batch),
    "transformer": Model(transformer_step, transformer_state, sentence_batch, ("whole", "data", "data and model")),
    "lstm": Model(lstm_step, lstm_state, word_batch),
}
# The mesh, the axis of the batch, and the sharding of each leaf of the state.
LAYOUTS = {
    "data": ({"data": 8}, "data", replicated),
    "data and model": ({"data": 4, "model": 2}, "data", tensor_parallel),
}
