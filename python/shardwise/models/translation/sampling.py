# SPDX-License-Identifier: Apache-2.0
"""Decoding of one hypothesis for each sentence: greedy, or drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import lax, random as sw_random
from ...control_flow import while_loop
from ...errors import ShapeError
from ..configs import Axes, AxisNames, MoEConfig, axes_of, check_number, message, positive
from ..layers import one_hot, softmax, split_dim
from .checks import check_call
from .config import TranslationConfig
from .steps import IMPOSSIBLE, Decoder, decoding_moe, prepare

__all__ = ["Translations", "greedy", "sample"]


class Translations(NamedTuple):
    """What a search found.

    Attributes:
        tokens: (B, k, T), integers: each hypothesis up to ``config.eos``, and then ``config.pad``.
        lengths: (B, k), int32: its tokens, the end included; 0 where there is no hypothesis.
        scores: (B, k): its log-probability under the model with the token ``config.pad`` left out, and the
            probabilities of the others renormalized; in a beam search also normalized by length. -inf where there is no
            hypothesis; NaN where the model's logits are NaN, as after training that diverged.
    """

    tokens: Any
    lengths: Any
    scores: Any


def greedy(
    params: dict[str, Any],
    source: Any,
    config: TranslationConfig,
    *,
    steps: int | None = None,
    moe: MoEConfig | None = None,
    axes: Axes | AxisNames = None,
    cache_spec: Any = None,
) -> Translations:
    """Translate by the most likely token of each step, until the end of each sentence or ``steps`` tokens.

    Args:
        params: the result of :func:`init`.
        source: (B, S), integers, with padding. Where its tokens do not fill groups of ``config.moe.group_size``, the
            encoder routes them in smaller groups of whole sentences, in which experts drop other tokens.
        config: the configuration.
        steps: the largest number of tokens, the end included (T). None: ``config.target_length``.
        moe: the configuration of the decoder's MoE layers. None: as ``config.decoding_capacity_factor`` says.
        axes: as in :func:`encode`.
        cache_spec: the :class:`shardwise.PartitionSpec` of the keys and values (B, T, N, D). None: sentences are split
            like groups, and heads like hidden units.

    Returns:
        One hypothesis for each sentence (k = 1).

    Raises:
        ShapeError: ``steps`` is below 1 or above ``config.target_length``. And those of :func:`loss` for parameters and
        tokens.
    """
    check_call("greedy", params, source, config)
    count = checked_steps("greedy", steps, config)

    def most_likely(log_probabilities: Any, t: Any) -> Any:
        return np.argmax(log_probabilities, axis=-1)

    return _decoded("greedy", (params, source, config), most_likely, count, (moe, axes_of(axes), cache_spec))


def sample(
    params: dict[str, Any],
    source: Any,
    config: TranslationConfig,
    key: Any,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    steps: int | None = None,
    moe: MoEConfig | None = None,
    axes: Axes | AxisNames = None,
    cache_spec: Any = None,
) -> Translations:
    """Translate by tokens drawn from the model's distribution, until the end of each sentence or ``steps`` tokens.

    Args:
        params, source, config, steps, moe, axes, cache_spec: as in :func:`greedy`.
        key: a key of :mod:`shardwise.random`; the tokens are the same on every mesh.
        temperature: the logits are divided by it; 0 takes the most likely token and needs no key.
        top_k: draw from the ``top_k`` most likely tokens only.
        top_p: draw from the fewest most likely tokens whose probabilities add up to ``top_p``.

    Returns:
        One hypothesis for each sentence (k = 1); its score is its log-probability under the model, as in
        :class:`Translations`, whatever the temperature, ``top_k`` and ``top_p``.

    Raises:
        ValueError: an option outside of its range. ShapeError: as in :func:`greedy`.

    Source: Fan et al. 2018 for ``top_k``; Holtzman et al. 2020 for ``top_p``.
    """
    check_call("sample", params, source, config, key=key)
    _check_options(temperature, top_k, top_p, key)
    count = checked_steps("sample", steps, config)

    def drawn(log_probabilities: Any, t: Any) -> Any:
        if temperature == 0:
            return np.argmax(log_probabilities, axis=-1)
        # Less their largest one, logits cannot all overflow; padding stays impossible at any temperature.
        shifted = log_probabilities - np.max(log_probabilities, axis=-1, keepdims=True)
        is_word = np.arange(config.target_vocabulary, like=shifted) != config.pad
        logits = _allowed(np.where(is_word, shifted / temperature, IMPOSSIBLE), top_k, top_p)
        return sw_random.categorical(sw_random.fold_in(key, t), logits)

    return _decoded("sample", (params, source, config), drawn, count, (moe, axes_of(axes), cache_spec))


def _decoded(
    what: str, model: tuple[Any, Any, TranslationConfig], choose: Callable[[Any, Any], Any], count: int, options: Any
) -> Translations:
    """Translate by the token that ``choose`` takes from the log-probabilities (B, V) of each step ``t``."""
    params, source, config = model
    moe, axes, cache_spec = options
    decoder = Decoder(params, config, decoding_moe(what, config, moe, source, 1, axes), axes, cache_spec)
    prepared = prepare(params, source, config, axes)
    rows = source.shape[0]

    def new(state: dict[str, Any]) -> dict[str, Any]:
        t = state["t"]
        visible = split_dim(
            np.broadcast_to(np.arange(count, dtype=np.int32, like=source) <= t, (rows, 1, count)), 0, axes.groups
        )
        places = np.zeros((rows, 1), np.int32, like=source) + t
        found, cache = decoder(
            prepared, state["cache"], state["token"], places, t, visible, state["open"][:, None]
        )  # fmt: skip
        log_probabilities = found[:, 0]
        token = np.where(state["open"], choose(log_probabilities, t), config.pad).astype(np.int32)
        chosen = np.sum(np.where(one_hot(token, config.target_vocabulary), log_probabilities, 0), axis=-1)
        return {
            "t": t + 1,
            "token": token[:, None],
            "tokens": lax.dynamic_update_slice(state["tokens"], token[:, None], (np.zeros((), np.int32), t)),
            "score": state["score"] + np.where(state["open"], chosen, 0),
            "length": state["length"] + state["open"].astype(np.int32),
            "open": state["open"] & (token != config.eos),
            "cache": cache,
        }

    start = split_dim(np.full((rows, 1), config.bos, np.int32, like=source), 0, axes.groups)
    wide = np.promote_types(np.dtype(params["target"]["table"].dtype), np.float32)
    first = {
        "t": np.zeros((), np.int32),
        "token": start,
        "tokens": split_dim(np.full((rows, count), config.pad, np.int32, like=source), 0, axes.groups),
        "score": np.zeros(rows, wide, like=source),
        "length": np.zeros(rows, np.int32, like=source),
        "open": np.ones(rows, np.bool_, like=source),
        "cache": decoder.empty(prepared, count),
    }
    last = while_loop(lambda state: (state["t"] < count) & np.any(state["open"]), new, first)
    return Translations(last["tokens"][:, None], last["length"][:, None], last["score"][:, None])


def checked_steps(what: str, steps: int | None, config: TranslationConfig) -> int:
    """The largest number of target tokens, which the table of positions bounds."""
    if steps is None:
        return config.target_length
    positive(what, steps=steps)
    if steps > config.target_length:
        must_hold = f"steps must be at most target_length, {config.target_length}"
        raise ShapeError(message(what, must_hold, steps, "make the configuration with a larger target_length"))
    return steps


def _check_options(temperature: float, top_k: int | None, top_p: float | None, key: Any) -> None:
    check_number("sample", "temperature", temperature, "must not be negative", lambda x: 0 <= x < math.inf)
    if key is None and temperature > 0:
        raise ValueError(
            message("sample", "a key is needed to draw tokens", None, "pass sw.random.key(0), or temperature=0")
        )
    if top_k is not None:
        positive("sample", top_k=top_k)
    if top_p is not None:
        check_number("sample", "top_p", top_p, "must be above 0 and at most 1", lambda x: 0 < x <= 1)


def _allowed(logits: Any, top_k: int | None, top_p: float | None) -> Any:
    """The logits (B, V) with those of other tokens so low that they are never drawn."""
    size = logits.shape[-1]
    if top_k is not None and top_k < size:
        least = lax.top_k(logits, top_k)[0][:, -1:]
        logits = np.where(logits >= least, logits, IMPOSSIBLE)
    if top_p is not None and top_p < 1:
        ordered = lax.top_k(logits, size)[0]
        probabilities = softmax(ordered)
        # A token counts if those before it add up to less than top_p, so the first one always does.
        before = np.cumsum(probabilities, axis=-1) - probabilities
        least = np.min(np.where(before < top_p, ordered, np.inf), axis=-1, keepdims=True)
        logits = np.where(logits >= least, logits, IMPOSSIBLE)
    return logits
