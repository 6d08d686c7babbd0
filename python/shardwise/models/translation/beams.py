# SPDX-License-Identifier: Apache-2.0
"""Beam search, with its hypotheses in rows of their own or flattened into one sequence (GShard, appendix A.1).

Letters in shapes: B sentences, k beams, T steps, L = k T rows of the flat cache, V target vocabulary.

Both searches score hypotheses alike. They differ in what they do when a hypothesis extends another one. Beam search
copies the keys and values of its tokens. Flat beam search leaves them in place and copies the mask that selects its
rows of the cache. Its attention is k times longer: it reads the bytes that the other search copies.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from ... import lax, tree
from ...control_flow import while_loop
from ..configs import Axes, AxisNames, MoEConfig, axes_of, check_number, is_not_negative, positive
from ..layers import split_dim
from .checks import check_call
from .config import TranslationConfig
from .sampling import Translations, checked_steps
from .steps import IMPOSSIBLE, Decoder, Prepared, decoding_moe, prepare

__all__ = ["beam_search", "flat_beam_search"]

NEVER = IMPOSSIBLE  # the score of a hypothesis that does not exist
State = dict[str, Any]


def flat_beam_search(
    params: dict[str, Any],
    source: Any,
    config: TranslationConfig,
    *,
    beams: int = 4,
    steps: int | None = None,
    alpha: float = 0.8,
    gap: float = 3.0,
    eos_margin: float | None = None,
    moe: MoEConfig | None = None,
    axes: Axes | AxisNames = None,
    cache_spec: Any = None,
) -> Translations:
    """Translate by the ``beams`` best hypotheses, with a cache of keys and values that is never reordered.

    Args:
        params, source, config, steps, moe, axes: as in :func:`greedy`.
        beams: the number of hypotheses that go on, and that are returned (k).
        alpha: the scores of hypotheses that ended are divided by ``((5 + length) / 6) ** alpha``.
        gap: a sentence is done when its best hypothesis is this much less likely than all that ended.
        eos_margin: a hypothesis may end only where the end is at most this much less likely than the best token, in
            logarithms. None: everywhere, or with one beam where :func:`greedy` ends. ``math.inf``: everywhere.
        cache_spec: how the keys and values (B, k T, N, D) are split, as in :func:`greedy`.

    Returns:
        The hypotheses of each sentence: those that ended, the best one first. If fewer than k ended within the steps,
        the best of those that go on follow, without an end, as :func:`greedy` returns them; their scores are
        normalized by all T tokens. Scores are as in :class:`Translations`: padding is left out of the model's
        probabilities.

    Raises:
        ShapeError: ``beams`` or ``steps`` are below 1, or ``steps`` above ``config.target_length``.
        ValueError: ``gap`` or ``eos_margin`` are negative, or ``alpha`` is not finite.

    All steps run in one ``while_loop``. The result of a sentence that is done does not change while others go on.
    With one beam and no ``eos_margin``, a sentence is done as soon as its hypothesis ends: the tokens are those of
    :func:`greedy` for all inputs, and with ``alpha=0`` the scores, too.

    Source: GShard, appendix A.1; Wu et al. 2016, section 7, for the normalization; Lingvo's
    ``flat_beam_search_helper.py`` for ``gap``.
    """
    given = (params, source, config, moe, axes_of(axes), cache_spec)
    return _search("flat_beam_search", _Flat, given, (beams, steps, alpha, gap, eos_margin))


def beam_search(
    params: dict[str, Any],
    source: Any,
    config: TranslationConfig,
    *,
    beams: int = 4,
    steps: int | None = None,
    alpha: float = 0.8,
    gap: float = 3.0,
    eos_margin: float | None = None,
    moe: MoEConfig | None = None,
    axes: Axes | AxisNames = None,
    cache_spec: Any = None,
) -> Translations:
    """Translate by the ``beams`` best hypotheses, each with its own keys and values, which follow it.

    Arguments, result and errors are those of :func:`flat_beam_search`, and so are the hypotheses and, but for the last
    bits, their scores. ``cache_spec`` is of (B k, T, N, D).
    """
    given = (params, source, config, moe, axes_of(axes), cache_spec)
    return _search("beam_search", _Reordered, given, (beams, steps, alpha, gap, eos_margin))


class _Layout(Protocol):
    """Where the tokens of hypotheses are, and how a hypothesis finds its own."""

    def __init__(
        self, decoder: Decoder, prepared: Prepared, source: Any, sizes: tuple[int, int], axes: Axes
    ) -> None: ...

    def start(self) -> State:
        """The state before the first step."""

    def extend(self, state: State, tokens: Any, t: Any, live: Any) -> tuple[Any, State]:
        """Log-probabilities (B, k, V) after the new tokens (B, k) of step ``t``, and the state with them.

        ``live`` (B, k), bool, are the hypotheses that exist, in sentences that are not done.
        """

    def trace(self, state: State) -> Any:
        """What tells the tokens of each hypothesis: (B, k, ...)."""

    def follow(self, state: State, parent: Any) -> State:
        """The state in which hypothesis j extends hypothesis ``parent[b, j]``."""

    def read(self, state: State, traces: Any) -> Any:
        """The tokens (B, k, T + 1) that traces tell of, the start first, and zeros behind them."""


class _Flat:
    """One sequence of all hypotheses: row t·k + j is token t of hypothesis j. Only masks are reordered."""

    def __init__(self, decoder: Decoder, prepared: Prepared, source: Any, sizes: tuple[int, int], axes: Axes) -> None:
        self._decoder, self._prepared, self._source, self._axes = decoder, prepared, source, axes
        self._beams, self._steps = sizes

    def start(self) -> State:
        sentences, rows = self._source.shape[0], self._beams * self._steps
        history = np.zeros((sentences, rows), np.int32, like=self._source)
        mask = np.zeros((sentences, self._beams, rows), np.bool_, like=self._source)
        return {
            "history": split_dim(history, 0, self._axes.groups),
            "mask": split_dim(mask, 0, self._axes.groups),
            "cache": self._decoder.empty(self._prepared, rows),
        }

    def extend(self, state: State, tokens: Any, t: Any, live: Any) -> tuple[Any, State]:
        rows = np.arange(self._beams * self._steps, dtype=np.int32, like=tokens)
        own = rows == (t * self._beams + np.arange(self._beams, dtype=np.int32, like=tokens))[:, None]
        mask = state["mask"] | own
        first = t * self._beams
        history = lax.dynamic_update_slice(state["history"], tokens, (np.zeros((), np.int32), first))
        places = np.sum(mask, axis=-1, dtype=np.int32) - 1
        found, cache = self._decoder(self._prepared, state["cache"], tokens, places, first, mask, live)
        return found, {"history": history, "mask": mask, "cache": cache}

    def trace(self, state: State) -> Any:
        return state["mask"]

    def follow(self, state: State, parent: Any) -> State:
        return {**state, "mask": _rows(state["mask"], parent)}

    def read(self, state: State, traces: Any) -> Any:
        places = np.cumsum(traces, axis=-1, dtype=np.int32) - 1
        at = traces[..., None] & (places[..., None] == np.arange(self._steps + 1, dtype=np.int32, like=places))
        return np.sum(np.where(at, state["history"][:, None, :, None], 0), axis=2, dtype=np.int32)


class _Reordered:
    """A row for each hypothesis: its tokens, keys and values are copied when another hypothesis extends it."""

    def __init__(self, decoder: Decoder, prepared: Prepared, source: Any, sizes: tuple[int, int], axes: Axes) -> None:
        self._decoder, self._source, self._axes = decoder, source, axes
        self._beams, self._steps = sizes
        repeat = lambda x: split_dim(np.repeat(x, self._beams, axis=0), 0, axes.groups)  # noqa: E731
        memory, mask = tree.map(repeat, (prepared.memory, prepared.source_mask))
        self._prepared = prepared._replace(memory=memory, source_mask=mask)

    def start(self) -> State:
        shape = (self._source.shape[0], self._beams, self._steps + 1)
        history = np.zeros(shape, np.int32, like=self._source)
        return {
            "history": split_dim(history, 0, self._axes.groups),
            "cache": self._decoder.empty(self._prepared, self._steps),
        }

    def extend(self, state: State, tokens: Any, t: Any, live: Any) -> tuple[Any, State]:
        zero = np.zeros((), np.int32)
        history = lax.dynamic_update_slice(state["history"], tokens[..., None], (zero, zero, t))
        new = tokens.reshape(-1, 1)
        earlier = np.arange(self._steps, dtype=np.int32, like=tokens) <= t
        visible = np.broadcast_to(earlier, (new.shape[0], 1, self._steps))
        found, cache = self._decoder(
            self._prepared, state["cache"], new, np.zeros_like(new) + t, t, visible, live.reshape(-1, 1)
        )
        return found.reshape(*tokens.shape, -1), {"history": history, "cache": cache}

    def trace(self, state: State) -> Any:
        return state["history"]

    def follow(self, state: State, parent: Any) -> State:
        def moved(x: Any) -> Any:
            hypotheses = x.reshape(*parent.shape, -1)
            return _rows(hypotheses, parent).reshape(x.shape)

        return {"history": _rows(state["history"], parent), "cache": tree.map(moved, state["cache"])}

    def read(self, state: State, traces: Any) -> Any:
        return traces


def _rows(x: Any, index: Any) -> Any:
    """Row ``index[b, j]`` of ``x[b]`` for each b and j: (B, k, n) from (B, m, n) and (B, k)."""
    return np.take_along_axis(x, index[..., None], axis=1)


def _search(what: str, layout_of: type[_Layout], given: tuple[Any, ...], options: tuple[Any, ...]) -> Translations:
    params, source, config, moe, axes, cache_spec = given
    beams, steps, alpha, gap, eos_margin = options
    check_call(what, params, source, config)
    positive(what, beams=beams)
    check_number(what, "alpha", alpha, "must be finite", math.isfinite)
    for name, value in (("gap", gap), ("eos_margin", 0 if eos_margin is None else eos_margin)):
        check_number(what, name, value, "must not be negative", is_not_negative)
    count = checked_steps(what, steps, config)
    decoder = Decoder(params, config, decoding_moe(what, config, moe, source, beams, axes), axes, cache_spec)
    layout = layout_of(decoder, prepare(params, source, config, axes), source, (beams, count), axes)
    is_greedy = beams == 1 and eos_margin is None

    def step(state: State) -> State:
        live = state["open"][:, None] & ~_is_missing(state["score"])
        found, placed = layout.extend(state["hypotheses"], state["tokens"], state["t"], live)
        may_end = _may_end(found, config.eos, is_greedy, eos_margin)
        best = _merged(state, layout.trace(placed), _ended(state, found[..., config.eos], may_end, alpha))
        score, parent, tokens = _going_on(state["score"], found, config.eos)
        least = np.min(best["raw"], axis=-1)
        # The best live hypothesis cannot win any more when it is far below the least likely of those that ended.
        can_win = _is_missing(least) if is_greedy else np.max(score, axis=-1) >= least - gap
        is_open = state["open"] & can_win
        hypotheses = layout.follow(placed, parent)
        return {
            "t": state["t"] + 1,
            "tokens": tokens,
            "score": score,
            "open": is_open,
            "best": best,
            "hypotheses": hypotheses,
        }

    first = _first(layout, source, params, config, (beams, axes))
    last = while_loop(lambda state: (state["t"] < count) & np.any(state["open"]), step, first)
    return _result(layout, last, config, (count, alpha))


def _first(
    layout: _Layout, source: Any, params: dict[str, Any], config: TranslationConfig, sizes: tuple[int, Axes]
) -> State:
    """Before the first step, only hypothesis 0 exists, or all k would be the same."""
    beams, axes = sizes
    shape = (source.shape[0], beams)
    wide = np.promote_types(np.dtype(params["target"]["table"].dtype), np.float32)
    never = split_dim(np.full(shape, NEVER, wide, like=source), 0, axes.groups)
    hypotheses = layout.start()
    return {
        "t": np.zeros((), np.int32),
        "tokens": split_dim(np.full(shape, config.bos, np.int32, like=source), 0, axes.groups),
        "score": np.where(np.arange(beams, like=source) == 0, np.zeros_like(never), never),
        "open": np.ones(shape[0], np.bool_, like=source),
        "best": {
            "trace": layout.trace(hypotheses),
            "length": np.zeros(shape, np.int32, like=source),
            "raw": never,
            "norm": never,
        },
        "hypotheses": hypotheses,
    }


def _is_missing(score: Any) -> Any:
    """Whether there is no hypothesis. NaN is the score of one: what a search of a broken model returns tells of it."""
    return score <= NEVER / 2


def _may_end(found: Any, eos: int, is_greedy: bool, eos_margin: float | None) -> Any:
    """Whether each hypothesis may end after the step with log-probabilities ``found`` (B, k, V): (B, k), bool."""
    if is_greedy:
        return np.argmax(found, axis=-1) == eos
    if eos_margin is None:
        return True
    return found[..., eos] >= np.max(found, axis=-1) - eos_margin


def _ended(state: State, end: Any, may_end: Any, alpha: float) -> State:
    """The hypotheses if they end in this step: their length, log-probability, and normalized score, all (B, k).

    ``end`` (B, k) is the log-probability of the end.
    """
    length = state["t"] + 1
    raw = state["score"] + end
    exists = ~_is_missing(state["score"]) & may_end
    return {
        "length": np.zeros_like(state["tokens"]) + length,
        "raw": np.where(exists, raw, NEVER),
        "norm": np.where(exists, _normalized(raw, length, alpha), NEVER),
    }


def _normalized(raw: Any, length: Any, alpha: float) -> Any:
    return raw / ((5 + length.astype(raw.dtype)) / 6) ** alpha


def _merged(state: State, trace: Any, ended: State) -> State:
    """The best k hypotheses of those that ended before and in this step; unchanged for a sentence that is done."""
    old = state["best"]
    joined = {name: np.concatenate([old[name], value], axis=1) for name, value in {**ended, "trace": trace}.items()}
    norm, order = lax.top_k(joined["norm"], old["norm"].shape[1])
    new = {
        "trace": _rows(joined["trace"], order),
        "length": np.take_along_axis(joined["length"], order, axis=1),
        "raw": np.take_along_axis(joined["raw"], order, axis=1),
        "norm": norm,
    }
    return tree.map(  # type: ignore[no-any-return]
        lambda a, b: np.where(state["open"].reshape(-1, *[1] * (a.ndim - 1)), a, b), new, old
    )


def _going_on(score: Any, found: Any, eos: int) -> tuple[Any, Any, Any]:
    """The k best continuations that do not end: log-probability, the hypothesis that goes on, and its next token."""
    size = found.shape[-1]
    tokens = np.arange(size, dtype=np.int32, like=found)
    if found.shape[1] == 1:
        # Without the score, which may round different log-probabilities to equal sums.
        best, token = lax.top_k(np.where(tokens == eos, NEVER, found)[:, 0], 1)
        return score + best, np.zeros_like(token), token
    candidates = np.where(tokens == eos, NEVER, score[..., None] + found)
    best, index = lax.top_k(candidates.reshape(found.shape[0], -1), found.shape[1])
    # A hypothesis that never existed stays at NEVER, from which sums of log-probabilities would lead away.
    return np.where(_is_missing(best), NEVER, best), index // size, index % size


def _result(layout: _Layout, last: State, config: TranslationConfig, options: tuple[int, float]) -> Translations:
    """The hypotheses that ended, and in places that are left those that go on after the last step."""
    count, alpha = options
    best, hypotheses = last["best"], last["hypotheses"]
    ended = ~_is_missing(best["raw"])
    # Hypotheses are in order, those that do not exist behind the others, in both lists.
    place = np.arange(ended.shape[1], dtype=np.int32, like=ended)
    behind = np.maximum(place - np.sum(ended, axis=-1, keepdims=True, dtype=np.int32), 0)

    def filled(of_ended: Any, of_live: Any) -> Any:
        return np.where(ended, of_ended, np.take_along_axis(of_live, behind, axis=1))

    score = filled(best["raw"], last["score"])
    exists = ~_is_missing(score)
    norm = np.where(ended, best["norm"], _normalized(score, np.full_like(behind, count), alpha))
    traces = np.where(ended[..., None], best["trace"], _rows(layout.trace(hypotheses), behind))
    tokens = layout.read(hypotheses, traces)[..., 1:]
    lengths = np.where(exists, np.where(ended, best["length"], count), 0)
    final = filled(np.full_like(last["tokens"], config.eos), last["tokens"])
    places = np.arange(count, dtype=np.int32, like=tokens)
    end = lengths[..., None] - 1
    tokens = np.where(places < end, tokens, np.where(places == end, final[..., None], config.pad)).astype(np.int32)
    return Translations(tokens, lengths, np.where(exists, norm, -np.inf))
