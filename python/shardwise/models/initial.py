# SPDX-License-Identifier: Apache-2.0
"""Initial parameters of the models.

>>> params = init_feed_forward(np.random.default_rng(0), model_dim=4, hidden_dim=8)
>>> {name: array.shape for name, array in params.items()}
{'wi': (4, 8), 'wo': (8, 4)}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .. import random as sw_random
from ..array import ShapeDtypeStruct
from ..trees import flatten, unflatten
from .checks import check_config
from .configs import MoEConfig, TransformerConfig, message

__all__ = [
    "init_attention",
    "init_embedding",
    "init_feed_forward",
    "init_layer_norm",
    "init_moe",
    "init_transformer",
    "transformer_shapes",
]


@dataclass(frozen=True)
class Weight:
    """One array of parameters: its shape, and the deviation of its elements, or the one element it starts from."""

    shape: tuple[int, ...]
    deviation: float = 0.0
    constant: float = 0.0


def attention_weights(model_dim: int, heads: int, head_dim: int) -> dict[str, Weight]:
    into = Weight((model_dim, heads, head_dim), model_dim**-0.5)
    output = Weight((heads, head_dim, model_dim), (heads * head_dim) ** -0.5)
    return {"query": into, "key": into, "value": into, "output": output}


def feed_forward_weights(model_dim: int, hidden_dim: int) -> dict[str, Weight]:
    return {
        "wi": Weight((model_dim, hidden_dim), (2 / model_dim) ** 0.5),
        "wo": Weight((hidden_dim, model_dim), hidden_dim**-0.5),
    }


def moe_weights(config: MoEConfig) -> dict[str, Weight]:
    dense = feed_forward_weights(config.model_dim, config.hidden_dim)
    experts = {name: Weight((config.experts, *w.shape), w.deviation) for name, w in dense.items()}
    return {"gate": Weight((config.model_dim, config.experts), config.model_dim**-0.5), **experts}


def layer_norm_weights(model_dim: int) -> dict[str, Weight]:
    return {"scale": Weight((model_dim,), constant=1.0), "bias": Weight((model_dim,))}


def embedding_weights(vocabulary: int, length: int, model_dim: int) -> dict[str, Weight]:
    deviation = model_dim**-0.5  # the table is also the last layer: its logits then have deviation 1
    return {"table": Weight((vocabulary, model_dim), deviation), "positions": Weight((length, model_dim), deviation)}


def _transformer(config: TransformerConfig) -> dict[str, Any]:
    width = config.moe.model_dim
    blocks = []
    for layer in range(config.layers):
        block: dict[str, Any] = {
            "attention_norm": layer_norm_weights(width),
            "attention": attention_weights(width, config.heads, config.head_dim),
            "norm": layer_norm_weights(width),
        }
        if config.is_moe(layer):
            block["moe"] = moe_weights(config.moe)
        else:
            block["dense"] = feed_forward_weights(width, config.moe.hidden_dim)
        blocks.append(block)
    return {
        "embedding": embedding_weights(config.vocabulary, config.length, width),
        "blocks": blocks,
        "norm": layer_norm_weights(width),
    }


def shapes_of(weights: Any) -> Any:
    """The tree of the shapes of a tree of weights."""
    if isinstance(weights, Weight):
        return weights.shape
    if isinstance(weights, list):
        return [shapes_of(inner) for inner in weights]
    return {key: shapes_of(inner) for key, inner in weights.items()}


@cache
def expected_transformer(config: TransformerConfig) -> Any:
    """The tree of the shapes of a Transformer's parameters."""
    return shapes_of(_transformer(config))


def drawn(weights: Any, source: Any, dtype: Any) -> Any:
    """Arrays for a tree of weights, from a NumPy Generator or a key."""
    dtype = np.dtype(dtype)
    leaves, tree = flatten(weights)
    if isinstance(source, np.random.Generator):
        normals: Callable[[int, tuple[int, ...]], Any] = lambda i, shape: source.standard_normal(shape)  # noqa: E731
    elif hasattr(source, "dtype"):
        keys = sw_random.split(source, len(leaves))
        normals = lambda i, shape: sw_random.normal(keys[i], shape, dtype)  # noqa: E731
    else:
        raise TypeError(message("init", "takes a numpy.random.Generator or a key", repr(source)))
    arrays = []
    for i, w in enumerate(leaves):
        drawn = normals(i, w.shape) * w.deviation if w.deviation else np.full(w.shape, w.constant)
        arrays.append(drawn.astype(dtype))
    return unflatten(tree, arrays)


def init_attention(source: Any, model_dim: int, heads: int, head_dim: int, dtype: Any = np.float32) -> dict[str, Any]:
    """Make parameters for :func:`shardwise.models.attention`, from a NumPy Generator or a key."""
    return drawn(attention_weights(model_dim, heads, head_dim), source, dtype)  # type: ignore[no-any-return]


def init_feed_forward(source: Any, model_dim: int, hidden_dim: int, dtype: Any = np.float32) -> dict[str, Any]:
    """Make parameters for :func:`shardwise.models.feed_forward`, from a NumPy Generator or a key."""
    return drawn(feed_forward_weights(model_dim, hidden_dim), source, dtype)  # type: ignore[no-any-return]


def init_moe(source: Any, config: MoEConfig, dtype: Any = np.float32) -> dict[str, Any]:
    """Make parameters for :func:`shardwise.models.moe_layer`, from a NumPy Generator or a key."""
    check_config("init_moe", config, MoEConfig)
    return drawn(moe_weights(config), source, dtype)  # type: ignore[no-any-return]


def init_layer_norm(model_dim: int, dtype: Any = np.float32) -> dict[str, Any]:
    """Make parameters for :func:`shardwise.models.layer_norm`: ones and zeros."""
    return {"scale": np.ones(model_dim, dtype), "bias": np.zeros(model_dim, dtype)}


def init_embedding(
    source: Any, vocabulary: int, length: int, model_dim: int, dtype: Any = np.float32
) -> dict[str, Any]:
    """Make parameters for :func:`shardwise.models.embedding`, from a NumPy Generator or a key."""
    return drawn(embedding_weights(vocabulary, length, model_dim), source, dtype)  # type: ignore[no-any-return]


def init_transformer(source: Any, config: TransformerConfig, dtype: Any = np.float32) -> dict[str, Any]:
    """Make parameters for :func:`shardwise.models.transformer`: ``embedding``, a list of ``blocks``, and ``norm``.

    Args:
        source: a NumPy Generator, or a key of :mod:`shardwise.random`.
        config: the configuration.
        dtype: a floating dtype.
    """
    check_config("init_transformer", config, TransformerConfig)
    return drawn(_transformer(config), source, dtype)  # type: ignore[no-any-return]


def transformer_shapes(
    config: TransformerConfig, dtype: Any = np.float32, struct: Callable[[Any, Any], Any] = ShapeDtypeStruct
) -> dict[str, Any]:
    """The tree of :func:`init_transformer` as shapes without data, to compile models that do not fit into memory.

    ``struct`` makes a leaf from a shape and a dtype.
    """
    check_config("transformer_shapes", config, TransformerConfig)
    leaves, tree = flatten(_transformer(config))
    return unflatten(tree, [struct(w.shape, dtype) for w in leaves])  # type: ignore[no-any-return]
