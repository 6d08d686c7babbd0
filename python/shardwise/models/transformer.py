# SPDX-License-Identifier: Apache-2.0
"""GShard's sparse Transformer as a next-token predictor: attention, and alternating dense and MoE layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import random as sw_random
from ..dtypes import is_float
from ..errors import DTypeError, ShapeError, described
from .attention import attention
from .checks import check_config, check_ids, check_shapes
from .configs import Axes, AxisNames, TransformerConfig, axes_of, message
from .initial import expected_transformer
from .layers import cross_entropy, einsum, embedding, feed_forward, layer_norm, replicate_weight, split_dim
from .moe import moe_layer

__all__ = ["next_token_loss", "transformer", "transformer_block"]


def transformer_block(
    params: dict[str, Any],
    x: Any,
    config: TransformerConfig,
    *,
    axes: Axes | AxisNames = None,
    random: Any = None,
) -> tuple[Any, Any, dict[str, Any] | None]:
    """One block: ``x + attention(norm(x))``, then the same with an MoE layer (``params["moe"]``) or a dense layer.

    Args:
        params: one of the ``blocks`` of :func:`init_transformer`.
        x: (G, S, M).
        config: the configuration.
        axes: as in :func:`moe_layer`.
        random: as in :func:`top_gating`.

    Returns:
        The output (G, S, M); the auxiliary loss (G,) and the statistics of the MoE layer, both None in a dense block.

    Source: GShard, figure 3 (layer norms before each part instead of after it).
    """
    axes = axes_of(axes)
    normalised = layer_norm(params["attention_norm"], x, axes=axes)
    x = x + attention(params["attention"], normalised, causal=config.causal, axes=axes)
    normalised = layer_norm(params["norm"], x, axes=axes)
    if "moe" not in params:
        return x + feed_forward(params["dense"], normalised, axes=axes), None, None
    answer, aux, statistics = moe_layer(params["moe"], normalised, config.moe, axes=axes, random=random)
    return x + answer, aux, statistics


def transformer(
    params: dict[str, Any],
    tokens: Any,
    config: TransformerConfig,
    *,
    axes: Axes | AxisNames = None,
    random: Any = None,
) -> tuple[Any, Any, list[dict[str, Any]]]:
    """Predict the logits of the next token for each token.

    Args:
        params: the result of :func:`init_transformer`.
        tokens: (G, S), integers below ``config.vocabulary``; each sequence is a group of the MoE layers.
        config: the configuration; S may be smaller than ``config.length``.
        axes: as in :func:`moe_layer`. Other weights are replicated, and other values are split by group.
        random: a key, or numbers from [0, 1) of shape (``config.moe_layers``, G, S). None: no random routing.

    Returns:
        The logits (G, S, V); the auxiliary loss, a scalar: the mean over groups and MoE layers; and a list of the
        statistics of these layers.

    Raises:
        ShapeError: the shapes of tokens or random numbers do not fit.
    """
    check_config("transformer", config, TransformerConfig)
    check_shapes("transformer", "params", params, expected_transformer(config), "init_transformer")
    check_ids("transformer", "tokens", tokens, "", config.vocabulary)
    axes = axes_of(axes)
    if len(tokens.shape) != 2 or tokens.shape[1] > config.length:
        got = f"shape {tuple(tokens.shape)} for length {config.length}"
        raise ShapeError(message("transformer", "tokens must be (G, S) with S up to the config's length", got))
    if random is not None and getattr(random, "dtype", None) is None:
        rule = "random must be a key, or an array of a number for each MoE layer and token"
        raise DTypeError(message("transformer", rule, described(random), "make a key with sw.random.key(seed)"))
    randoms = _per_layer(random, config, tuple(tokens.shape))
    # Annotated once for both uses of the table, so that its two gradients are added before they are reduced.
    embedded = {name: replicate_weight(array, axes) for name, array in params["embedding"].items()}
    x = split_dim(embedding(embedded, split_dim(tokens, 0, axes.groups)), 0, axes.groups)
    aux_losses: list[Any] = []
    statistics: list[dict[str, Any]] = []
    for layer, block in enumerate(params["blocks"]):
        draw = randoms[len(statistics)] if config.is_moe(layer) else None
        x, aux, found = transformer_block(block, x, config, axes=axes, random=draw)
        if found is not None:
            aux_losses.append(np.mean(aux))
            statistics.append(found)
    x = layer_norm(params["norm"], x, axes=axes)
    logits = einsum("gsm,vm->gsv", x, embedded["table"])
    return split_dim(logits, 0, axes.groups), sum(aux_losses) / len(aux_losses), statistics


def next_token_loss(
    params: dict[str, Any],
    tokens: Any,
    config: TransformerConfig,
    *,
    axes: Axes | AxisNames = None,
    random: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The training loss: the mean cross-entropy of the next tokens plus ``config.aux_factor`` times the auxiliary loss.

    Args:
        params: the result of :func:`init_transformer`.
        tokens: (G, S + 1), integers; the last S are the targets.
        config, axes, random: as in :func:`transformer`.

    Returns:
        The loss, and a dict with ``cross_entropy`` and ``aux``, and with ``tokens_per_expert`` and ``dropped`` as lists
        over the MoE layers.

    Source: GShard, section 2.2 (L = nll + k * aux).
    """
    check_ids("next_token_loss", "tokens", tokens, "GS")
    if tokens.shape[1] < 2:
        raise ShapeError(message("next_token_loss", "tokens must be (G, S + 1) with S at least 1", described(tokens)))
    logits, aux, statistics = transformer(params, tokens[:, :-1], config, axes=axes, random=random)
    entropy = cross_entropy(logits, tokens[:, 1:])
    parts = {
        "cross_entropy": entropy,
        "aux": aux,
        "tokens_per_expert": [found["tokens_per_expert"] for found in statistics],
        "dropped": [found["dropped"] for found in statistics],
    }
    return entropy + config.aux_factor * aux, parts


def _per_layer(random: Any, config: TransformerConfig, shape: tuple[int, ...]) -> Any:
    """The numbers that route each layer's tokens: (layers of experts, G, S), or None for each."""
    if random is None:
        return [None] * config.moe_layers
    wanted = (config.moe_layers, *shape)
    if not is_float(np.dtype(random.dtype)):
        return sw_random.uniform(random, wanted, np.float32)
    if tuple(random.shape) != wanted:
        way_out = "or pass a key"
        raise ShapeError(message("transformer", f"random must have the shape {wanted}", tuple(random.shape), way_out))
    return random
