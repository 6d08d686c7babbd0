# SPDX-License-Identifier: Apache-2.0
"""Models as plain NumPy functions: GShard's Mixture-of-Experts layer and the Transformer around it.

Every function takes NumPy arrays, traced values and sharded arrays. ``axes`` names the mesh axes for annotations.
Without it, or outside of :func:`shardwise.jit`, the functions are plain NumPy. Parameters are dicts of arrays.

>>> import numpy as np, shardwise as sw
>>> from shardwise import models
>>> config = models.MoEConfig(experts=4, model_dim=8, hidden_dim=16)
>>> params = models.init_moe(np.random.default_rng(0), config)
>>> x = np.ones((4, 6, 8), np.float32)
>>> output, aux, statistics = models.moe_layer(params, x, config)
>>> output.shape, aux.shape
((4, 6, 8), (4,))
"""

from __future__ import annotations

from . import translation
from .attention import attention
from .configs import Axes, MoEConfig, TransformerConfig
from .gating import Gating, gate_margins, top_gating
from .initial import (
    init_attention,
    init_embedding,
    init_feed_forward,
    init_layer_norm,
    init_moe,
    init_transformer,
    transformer_shapes,
)
from .layers import cross_entropy, embedding, feed_forward, layer_norm, one_hot, softmax
from .moe import moe_layer
from .routing import RoutingComparison, compare_routing
from .transformer import next_token_loss, transformer, transformer_block

__all__ = [
    "Axes",
    "Gating",
    "MoEConfig",
    "RoutingComparison",
    "TransformerConfig",
    "attention",
    "compare_routing",
    "cross_entropy",
    "embedding",
    "feed_forward",
    "gate_margins",
    "init_attention",
    "init_embedding",
    "init_feed_forward",
    "init_layer_norm",
    "init_moe",
    "init_transformer",
    "layer_norm",
    "moe_layer",
    "next_token_loss",
    "one_hot",
    "softmax",
    "top_gating",
    "transformer",
    "transformer_block",
    "transformer_shapes",
    "translation",
]


def __dir__() -> list[str]:
    return sorted(__all__)
