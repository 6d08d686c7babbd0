# SPDX-License-Identifier: Apache-2.0
"""One step of decoding: the decoder for a few new tokens of each sentence, with the keys and values of earlier ones.

Letters in shapes: B sentences, K new tokens of a sentence (its hypotheses), L tokens with keys and values, S tokens of
the source, N heads of size D, M width, V target vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ... import lax, tree
from ...annotations import shard
from ...errors import ShardingWarning, described, warn
from ...shardings.partition_spec import PartitionSpec
from ..attention import attend, heads_of, output_of, queries_of
from ..configs import Axes, MoEConfig, called_with, devices_along, mesh_of, message, users_line
from ..layers import at_least_float32, feed_forward, split_dim
from ..moe import moe_layer
from .config import TranslationConfig
from .model import embed, encode, logits_of, operands_of, sublayer

__all__ = ["Decoder", "Prepared", "decoding_moe", "prepare"]

Layers = list[dict[str, Any]]
IMPOSSIBLE = -1e30  # as a logit
MOST_SLOTS = 16  # of a new token, times those that it fills: a few new tokens leave most of 2,048 experts empty


class Prepared(NamedTuple):
    """What all steps of decoding read.

    Attributes:
        layers: the parameters of the decoder's layers, one by one.
        memory: of each layer, the keys and values (B, S, N, D) of the encoded source.
        source_mask: (B, 1, S), the tokens of the source that are no padding.
    """

    layers: Layers
    memory: Layers
    source_mask: Any


def prepare(params: dict[str, Any], source: Any, config: TranslationConfig, axes: Axes) -> Prepared:
    """Encode the source (B, S), and project it for the attention of every decoder layer."""
    encoded, _, _ = encode(params, source, _with_whole_groups(source, config, axes), axes=axes)
    pairs = operands_of(params["decoder"]["pairs"], encoded, axes)
    layers = [
        tree.map(lambda x: x[i], pairs[name])  # noqa: B023
        for i in range(config.pairs)
        for name in config.pair_names
    ]
    memory = [{name: heads_of(layer["cross"], name, encoded, axes) for name in ("key", "value")} for layer in layers]
    return Prepared(layers, memory, (split_dim(source, 0, axes.groups) != config.pad)[:, None, :])


def _with_whole_groups(source: Any, config: TranslationConfig, axes: Axes) -> TranslationConfig:
    """A configuration whose groups the tokens of the source fill.

    They are those of training if that is possible, or as many whole sentences of one device as fit into such a group.
    """
    (sentences, length), size = source.shape, config.moe.group_size
    if not config.moe_layers or size is None or sentences * length % size == 0:
        return config
    share = _sentences_of_a_device(source, axes)
    fitting = [count for count in range(1, share + 1) if share % count == 0 and count * length <= size]
    size = length * max(fitting, default=1)
    # A capacity as such warns of no empty slots, which no choice of the caller fills.
    return replace(config, moe=replace(config.moe, group_size=size, capacity=config.moe.capacity_for(size)))


def _sentences_of_a_device(source: Any, axes: Axes) -> int:
    """The most sentences of a group if no two devices share one."""
    sentences, devices = source.shape[0], devices_along(mesh_of(source), axes.groups)
    return math.gcd(sentences, -(-sentences // devices))


def decoding_moe(
    what: str, config: TranslationConfig, moe: MoEConfig | None, source: Any, beams: int, axes: Axes
) -> MoEConfig | None:
    """The configuration of the decoder's MoE layers while it decodes ``source`` (B, S).

    Args:
        what: the public function, for a warning.
        config: the configuration of the model.
        moe: the caller's choice, which wins.
        beams: the new tokens of a sentence in a step.
        axes: the mesh axes of the model.

    Returns:
        None where the new tokens of a sentence are a group, with room for all of them in every expert.

    Warns:
        ShardingWarning: a token has many times the slots that it fills.
    """
    if moe is not None and not isinstance(moe, MoEConfig):
        raise TypeError(message(what, "moe must be a MoEConfig or None", described(moe)))
    if moe is not None or not config.moe_layers:
        return moe
    factor = config.decoding_capacity_factor
    if factor is None:
        size, capacity, found = beams, beams, None
        way_out = "set decoding_capacity_factor in the configuration"
    else:
        size = beams * _sentences_of_a_device(source, axes)
        capacity = replace(config.moe, capacity=None, capacity_factor=factor).capacity_for(size)
        found = replace(config.moe, group_size=size, capacity=capacity)
        way_out = "decode more sentences at a time on each device"
    slots, most = config.moe.experts * capacity / size, MOST_SLOTS * config.moe.top_k
    if slots > most:
        warn(
            what,
            f"a new token should have at most {most} slots, of which it fills {config.moe.top_k}",
            f"{slots:g}: {config.moe.experts} experts of capacity {capacity} for groups of {size}",
            way_out,
            category=ShardingWarning,
            place=users_line(),
        )
    return found


class Decoder:
    """The decoder as a function of new tokens, for one shape of cache.

    Args:
        params: the result of :func:`init`.
        config: the configuration.
        moe: the configuration of the MoE layers in decoding, as :func:`decoding_moe` gives it.
        axes: as in :func:`encode`.
        cache_spec: how the cache (B, L, N, D) is split.
    """

    def __init__(
        self, params: dict[str, Any], config: TranslationConfig, moe: MoEConfig | None, axes: Axes, cache_spec: Any
    ) -> None:
        self._params = params
        self._config = config
        self._moe = moe
        self._axes = axes
        self._spec = cache_spec
        if cache_spec is None and axes.annotated:
            self._spec = PartitionSpec(axes.groups, None, axes.hidden, None)

    def empty(self, prepared: Prepared, rows: int) -> Layers:
        """The cache before the first step: of each layer, keys and values (B, ``rows``, N, D) of zeros."""

        def zeros(x: Any) -> Any:
            return self._kept(np.zeros((x.shape[0], rows, *x.shape[2:]), x.dtype, like=x))

        return [tree.map(zeros, layer) for layer in prepared.memory]

    def __call__(
        self, prepared: Prepared, cache: Layers, tokens: Any, positions: Any, row: Any, visible: Any, live: Any
    ) -> tuple[Any, Layers]:
        """Logits of the tokens that follow ``tokens``, and the cache with them.

        Args:
            prepared: the result of :func:`prepare`.
            cache: keys and values of earlier tokens.
            tokens, positions: (B, K), integers: the new tokens and their places in their sentence.
            row: an integer scalar: the row of the cache at which the K new keys and values are written.
            visible: (B, K, L), bool: the rows of the cache that each new token attends to, its own row included.
            live: (B, K), bool: the new tokens of hypotheses that go on. The others take no slots from them.

        Returns:
            Log-probabilities (B, K, V), without padding, which no sentence contains; and the next cache.
        """
        config, axes = self._config, self._axes
        x = embed(self._params["target"], tokens, config, axes, positions=positions)
        written = []
        for layer, stored, memory in zip(prepared.layers, cache, prepared.memory):
            normalised = sublayer(layer, "attention_norm", x, axes)
            new = {name: heads_of(layer["attention"], name, normalised, axes) for name in ("key", "value")}
            stored = {name: self._kept(_write(stored[name], new[name], row)) for name in stored}
            x = x + self._attention(layer["attention"], normalised, stored, visible)
            normalised = sublayer(layer, "cross_norm", x, axes)
            x = x + self._attention(layer["cross"], normalised, memory, prepared.source_mask)
            x = x + self._feed_forward(layer, sublayer(layer, "norm", x, axes), live)
            written.append(stored)
        x = sublayer({"norm": self._params["decoder"]["norm"]}, "norm", x, axes)
        logits = logits_of(self._params, x, config, axes)
        return log_softmax(np.where(np.arange(logits.shape[-1], like=x) == config.pad, IMPOSSIBLE, logits)), written

    def _attention(self, weights: dict[str, Any], x: Any, stored: dict[str, Any], visible: Any) -> Any:
        queries = queries_of(weights, x, self._axes)
        return output_of(weights, attend(queries, stored["key"], stored["value"], visible), self._axes)

    def _feed_forward(self, layer: dict[str, Any], x: Any, live: Any) -> Any:
        if "dense" in layer:
            return feed_forward(layer["dense"], x, axes=self._axes)
        if self._moe is None:
            moe = replace(self._config.moe, group_size=None, capacity=x.shape[1])
            return moe_layer(layer["moe"], x, moe, axes=self._axes)[0]
        return moe_layer(layer["moe"], x, self._moe, axes=self._axes, mask=live)[0]

    def _kept(self, x: Any) -> Any:
        if self._spec is None:
            return x
        with called_with("cache_spec"):
            return shard(x, self._spec)


def _write(stored: Any, new: Any, row: Any) -> Any:
    zero = np.zeros((), np.int32)
    return lax.dynamic_update_slice(stored, new, (zero, row, zero, zero))


def log_softmax(logits: Any) -> Any:
    """``log softmax`` over the last dim, in float32 or wider."""
    wide = at_least_float32(logits)
    shifted = wide - np.max(wide, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))
