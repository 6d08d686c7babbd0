# SPDX-License-Identifier: Apache-2.0
"""The encoder-decoder Transformer of GShard, figure 3: pairs of layers, the second of each with experts.

Letters in shapes: B sentences, S tokens of a source, T tokens of a target, M width, V target vocabulary.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import random as sw_random
from ...control_flow import scan
from ..attention import attention
from ..configs import Axes, AxisNames, axes_of, devices_along, mesh_of
from ..layers import (
    as_operand,
    at_least_float32,
    dropout,
    einsum,
    embedding,
    feed_forward,
    layer_norm,
    replicate_weight,
    shard_weight,
    split_dim,
)
from ..moe import moe_layer
from .checks import check_call, check_memory
from .config import TranslationConfig

__all__ = ["decode", "encode", "translation"]

Statistics = dict[str, Any]


class Keys:
    """Keys of :mod:`shardwise.random` for the parts of a model; without a key, all of them are None."""

    def __init__(self, key: Any) -> None:
        self._key = key
        self._count = 0

    def next(self) -> Any:
        """The key of the next part."""
        if self._key is None:
            return None
        self._count += 1
        return sw_random.fold_in(self._key, self._count)

    def rows(self, count: int) -> Any:
        """A key for each of ``count`` rows of a loop: uint32[count, 2]."""
        key = self.next()
        return None if key is None else sw_random.split(key, count)


def embed(
    params: dict[str, Any], tokens: Any, config: TranslationConfig, axes: Axes, key: Any = None, positions: Any = None
) -> Any:
    """Tokens (B, S) as activations (B, S, M), in the dtype that the configuration asks for."""
    x = embedding(params, tokens, positions=positions, axes=axes)
    if config.activations is not None:
        x = x.astype(np.dtype(config.activations))
    return dropout(key, x, config.dropout)


def sublayer(layer: dict[str, Any], name: str, x: Any, axes: Axes) -> Any:
    """The input of a part of a layer: the norm before it, as figure 3 but for its place."""
    return layer_norm(layer[name], x, axes=axes)


def routed(
    layer: dict[str, Any], x: Any, mask: Any, config: TranslationConfig, axes: Axes, key: Any
) -> tuple[Any, Any, Statistics]:
    """An MoE layer; its auxiliary loss as a scalar, and what is logged of its load."""
    output, aux, found = moe_layer(layer["moe"], x, config.moe, axes=axes, random=key, mask=mask)
    load = np.sum(found["tokens_per_expert"], axis=0, dtype=np.int32)
    return output, np.mean(aux), {"load": load, "dropped": np.sum(found["dropped"], dtype=np.int32)}


def run_layer(
    layer: dict[str, Any], x: Any, config: TranslationConfig, axes: Axes, key: Any, **seen: Any
) -> tuple[Any, Any, Statistics]:
    """One layer: self-attention, in the decoder attention to the encoder's output, and a feed-forward part.

    Args:
        layer: its parameters; ``cross`` makes it a decoder layer, ``moe`` one of experts.
        x: (B, S, M).
        config, axes: as in :func:`translation`.
        key: the key of its dropout and routing, or None.
        seen: ``mask`` (B, S), the tokens that are no padding; and for the decoder ``memory`` and its ``memory_mask``.

    Returns:
        The output (B, S, M), and of the MoE layer its auxiliary loss and statistics; of a dense one None and {}.
    """
    keys = Keys(key)
    is_decoder = "cross" in layer
    attended = attention(
        layer["attention"],
        sublayer(layer, "attention_norm", x, axes),
        mask=seen["mask"],
        causal=is_decoder,
        axes=axes,
        key=keys.next(),
        rate=config.dropout,
    )
    x = x + dropout(keys.next(), attended, config.dropout)
    if is_decoder:
        attended = attention(
            layer["cross"],
            sublayer(layer, "cross_norm", x, axes),
            memory=seen["memory"],
            mask=seen["memory_mask"],
            axes=axes,
            key=keys.next(),
            rate=config.dropout,
        )
        x = x + dropout(keys.next(), attended, config.dropout)
    normalised = sublayer(layer, "norm", x, axes)
    aux, statistics = None, Statistics()
    if "dense" in layer:
        output = feed_forward(layer["dense"], normalised, axes=axes)
    else:
        output, aux, statistics = routed(layer, normalised, seen["mask"], config, axes, keys.next())
    return x + dropout(keys.next(), output, config.dropout), aux, statistics


def _run_pairs(
    half: dict[str, Any], x: Any, config: TranslationConfig, axes: Axes, keys: Keys, **seen: Any
) -> tuple[Any, Any, Statistics]:
    """All layers of the encoder or the decoder, in a loop over pairs: (output, auxiliary loss, statistics)."""

    def pair(x: Any, row: dict[str, Any]) -> tuple[Any, Any]:
        layer_keys = Keys(row.get("key"))
        first, second = config.pair_names
        x, _, _ = run_layer(row["pair"][first], x, config, axes, layer_keys.next(), **seen)
        x, aux, statistics = run_layer(row["pair"][second], x, config, axes, layer_keys.next(), **seen)
        return split_dim(x, 0, axes.groups), {} if aux is None else {"aux": aux, **statistics}

    rows = {"pair": sharded_pairs(operands_of(half["pairs"], x, axes), axes)}
    key = keys.rows(config.pairs)
    x, found = scan(pair, x, rows if key is None else {**rows, "key": key})
    aux = np.mean(found.pop("aux")) if found else np.zeros((), at_least_float32(x).dtype, like=x)
    return layer_norm(half["norm"], x, axes=axes), aux, found


def operands_of(pairs: dict[str, Any], x: Any, axes: Axes) -> dict[str, Any]:
    """The stacked parameters of pairs, with the weights of products in the dtype of ``x``.

    The loop over pairs then gathers narrow rows; rows that it converts itself would be gathered before. Experts that
    no two devices share are never gathered: the loop converts them, row by row, in less memory.
    """
    mesh = mesh_of(x)
    shares = mesh is not None and devices_along(mesh, axes.experts) * devices_along(mesh, axes.hidden) < mesh.size

    def converted(part: str, name: str, weight: Any) -> Any:
        is_kept = part.endswith("norm") or (part == "moe" and name != "gate" and not shares)
        return weight if is_kept else as_operand(weight, x)

    return {
        kind: {part: {n: converted(part, n, w) for n, w in weights.items()} for part, weights in layer.items()}
        for kind, layer in pairs.items()
    }


def sharded_pairs(pairs: dict[str, Any], axes: Axes) -> dict[str, Any]:
    """The stacked parameters of pairs with annotations for their experts, so that the loop over pairs keeps them."""
    if "moe" not in pairs:
        return pairs
    moe = pairs["moe"]["moe"]
    experts = {
        "gate": moe["gate"],
        "wi": shard_weight(moe["wi"], axes, None, axes.experts, None, axes.hidden),
        "wo": shard_weight(moe["wo"], axes, None, axes.experts, axes.hidden, None),
    }
    return {**pairs, "moe": {**pairs["moe"], "moe": experts}}


def encode(
    params: dict[str, Any], source: Any, config: TranslationConfig, *, axes: Axes | AxisNames = None, key: Any = None
) -> tuple[Any, Any, Statistics]:
    """Encode source sentences.

    Args:
        params: the result of :func:`init`.
        source: (B, S), integers below ``config.source_vocabulary``; ``config.pad`` after the end of a sentence.
        config: the configuration.
        axes: as in :func:`shardwise.models.moe_layer`.
        key: the key of dropout and of the second experts. None: no dropout, and all second experts.

    Returns:
        The encoded tokens (B, S, M); the auxiliary loss, a scalar: the mean over groups and MoE layers; and statistics
        by MoE layer: ``load`` (L/4, E), the tokens that each expert accepted, and ``dropped`` (L/4,). Without experts
        (``config.dense_hidden_dim``), the loss is 0, and there are no statistics.

    Raises:
        DTypeError, ShapeError: tokens are no integers (batch, length), or ``key`` is no key. ValueError: parameters are
        missing, or a token of a NumPy array is outside of the vocabulary. TypeError: no dict, or no configuration.
    """
    check_call("encode", params, source, config, key=key)
    axes, keys = axes_of(axes), Keys(key)
    source = split_dim(source, 0, axes.groups)
    x = embed(params["source"], source, config, axes, keys.next())
    return _run_pairs(params["encoder"], x, config, axes, keys, mask=source != config.pad)


def decode(
    params: dict[str, Any],
    target: Any,
    memory: Any,
    source: Any,
    config: TranslationConfig,
    *,
    axes: Axes | AxisNames = None,
    key: Any = None,
) -> tuple[Any, Any, Statistics]:
    """Predict the next target token after each target token.

    Args:
        params, config, axes, key: as in :func:`encode`.
        target: (B, T), integers below ``config.target_vocabulary``: ``config.bos``, tokens, and padding.
        memory: (B, S, M), the result of :func:`encode` for ``source`` (B, S).

    Returns:
        The logits (B, T, V), in float32 or wider; the auxiliary loss; and statistics, as of :func:`encode`.

    Raises:
        As :func:`encode`; and ShapeError: target, memory and source have different sentences.
    """
    check_call("decode", params, source, config, target=target, key=key, has_target=True)
    check_memory("decode", memory, source, config)
    axes, keys = axes_of(axes), Keys(key)
    target, source = split_dim(target, 0, axes.groups), split_dim(source, 0, axes.groups)
    # Annotated once for both uses of a tied table, so that its two gradients are added before they are reduced.
    tables = {name: replicate_weight(array, axes) for name, array in params["target"].items()}
    x = embed(tables, target, config, axes, keys.next())
    seen = {"mask": target != config.pad, "memory": memory, "memory_mask": source != config.pad}
    x, aux, statistics = _run_pairs(params["decoder"], x, config, axes, keys, **seen)
    return logits_of({**params, "target": tables}, x, config, axes), aux, statistics


def logits_of(params: dict[str, Any], x: Any, config: TranslationConfig, axes: Axes) -> Any:
    """The logits (B, T, V) of the decoder's output (B, T, M), in float32 or wider."""
    if config.tied:
        table = as_operand(params["target"]["table"], x)
    else:
        table = replicate_weight(as_operand(params["output"], x), axes)
    logits = at_least_float32(einsum("gsm,vm->gsv", x, table))
    return split_dim(logits, 0, axes.groups)


def translation(
    params: dict[str, Any],
    source: Any,
    target: Any,
    config: TranslationConfig,
    *,
    axes: Axes | AxisNames = None,
    key: Any = None,
) -> tuple[Any, Any, dict[str, Statistics]]:
    """Predict the next target token after each target token: :func:`encode`, then :func:`decode`.

    Args:
        params, source, target, config, axes, key: as in both of them.

    Returns:
        The logits (B, T, V), in float32 or wider; the auxiliary loss, a scalar: the mean over groups and MoE layers;
        and the statistics of ``encoder`` and ``decoder``.

    Raises:
        As :func:`encode` and :func:`decode`.
    """
    check_call("translation", params, source, config, target=target, key=key, has_target=True)
    keys = Keys(key)
    memory, aux, statistics = encode(params, source, config, axes=axes, key=keys.next())
    logits, decoder_aux, found = decode(params, target, memory, source, config, axes=axes, key=keys.next())
    return logits, (aux + decoder_aux) / 2, {"encoder": statistics, "decoder": found}
