# SPDX-License-Identifier: Apache-2.0
"""GShard's gate, Algorithm 1: which tokens go to which slot of which expert, for all groups at once.

The letters in shapes are the paper's: G groups, S tokens of a group, E experts, C capacity of an expert for one group.

    dispatch  (G, S, E, C)   1 where token s of group g goes to slot c of expert e
    combine   (G, S, E, C)   the weight of that expert's output
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from .. import random as sw_random
from ..dtypes import is_float
from ..errors import ShapeError
from .checks import check_mask, check_random
from .configs import MoEConfig, message
from .layers import one_hot

__all__ = ["Gating", "gate_margins", "top_gating"]


class Gating(NamedTuple):
    """The result of the gate.

    Attributes:
        combine: (G, S, E, C), floating: the weights of the expert outputs.
        dispatch: (G, S, E, C), bool: the experts and slots that each token goes to.
        aux: (G,), floating: the auxiliary loss of each group.
        statistics: ``gates`` (G, S, E); ``experts`` and ``kept`` (G, S, top_k): the experts that each token chose, and
            whether they accepted it; ``tokens_per_expert`` (G, E): the number of accepted tokens; ``dropped`` (G,): the
            number of tokens that no expert accepted, without padding.
    """

    combine: Any
    dispatch: Any
    aux: Any
    statistics: dict[str, Any]


class _Choice(NamedTuple):
    """The k-th expert of every token, all (G, S) but ``mask``, which is the expert as (G, S, E)."""

    expert: Any
    mask: Any
    place: Any  # in the expert's room, from 0 on; beyond it for a token that comes too late
    kept: Any
    weight: Any


def top_gating(gates: Any, config: MoEConfig, random: Any = None, mask: Any = None) -> Gating:
    """Algorithm 1 for all groups at once: route each token to experts, and compute the weights of their outputs.

    Args:
        gates: (G, S, E), the softmax of the gate's logits.
        config: the configuration; only ``top_k``, ``gate`` and the capacity are used.
        random: decides whether a token goes to its second expert, with probability ``2 * g2`` (lines 17 and 19): a key
            of :mod:`shardwise.random`, or numbers from [0, 1) of shape (G, S). None: every token goes there.
        mask: (G, S), bool: the tokens to route, without padding. The others take no slot, and the auxiliary loss does
            not count them. None: all tokens.

    Slots are assigned in the order of the tokens, first choices before second choices. If an expert is full, the token
    does not go there (lines 8 and 19). With ``top_k=2``, the two gates are normalized to sum 1 (lines 6 and 16). With
    ``top_k=1``, the gate itself is the weight, as in the Switch Transformer, because a normalized gate has no gradient.

    With ``gate="lingvo"``, a token whose draw rejects its second expert takes no slot there, and the auxiliary loss is
    multiplied by E². In Algorithm 1, such a token keeps its slot empty (line 22).

    Raises:
        ShapeError: the shapes do not fit. DTypeError: ``mask`` is not bool, or ``random`` neither a key nor floating.

    Source: GShard, Algorithm 1; line numbers refer to it. Lingvo's ``Top2GatingOnLogits`` for the variant.

    >>> gates = np.array([[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]])
    >>> gating = top_gating(gates, MoEConfig(experts=2, model_dim=1, hidden_dim=1, top_k=1, capacity=1))
    >>> gating.combine[0, :, :, 0]
    array([[0.9, 0. ],
           [0. , 0. ],
           [0. , 0.7]])
    >>> gating.statistics["dropped"]
    array([1], dtype=int32)
    """
    _check_gates(gates, random, mask, config)
    _, size, experts = gates.shape
    capacity = config.capacity_for(size)
    choice1 = np.argmax(gates, axis=-1)
    mask1 = _routed(one_hot(choice1, experts), mask)
    total1: Any = np.sum(mask1, axis=1, dtype=np.int32)
    aux = _auxiliary_loss(gates, total1, mask, config)
    gate1 = np.sum(np.where(mask1, gates, 0), axis=-1)  # line 5
    place1 = _places(mask1)
    first = _Choice(choice1, mask1, place1, _accepted(place1, capacity, mask), gate1)  # line 8
    if config.top_k == 1:
        return _gating(gates, [first], capacity, aux, mask)
    choice2 = np.argmax(np.where(mask1, -1, gates), axis=-1)
    mask2 = _routed(one_hot(choice2, experts), mask)
    gate2 = np.sum(np.where(mask2, gates, 0), axis=-1)  # line 15
    # A token of padding has the gates 0: its weights must not be 0 / 0.
    both = gate1 + gate2 if mask is None else np.where(mask, gate1 + gate2, 1)
    weight2 = gate2 / both  # line 16
    drawn = None if random is None else 2 * weight2 > _uniform(random, weight2)  # line 17
    if drawn is not None and config.gate == "lingvo":
        mask2 = mask2 & drawn[..., None]
    place2 = _places(mask2, total1)
    kept2 = _accepted(place2, capacity, mask)  # line 19
    second = _Choice(choice2, mask2, place2, kept2 if drawn is None else kept2 & drawn, weight2)
    return _gating(gates, [first._replace(weight=gate1 / both), second], capacity, aux, mask)  # line 6


def _routed(chosen: Any, mask: Any) -> Any:
    return chosen if mask is None else chosen & mask[..., None]


def _places(mask: Any, before: Any = None) -> Any:
    """The place of each token in the room of its expert, after ``before`` (G, E) others (lines 7, 11, 18 and 22)."""
    counts = np.cumsum(mask, axis=1, dtype=np.int32)
    if before is not None:
        counts = counts + before[:, None, :]
    return np.sum(np.where(mask, counts, 0), axis=-1, dtype=np.int32) - 1


def _accepted(places: Any, capacity: int, mask: Any) -> Any:
    return places < capacity if mask is None else (places < capacity) & mask


def _auxiliary_loss(gates: Any, chosen: Any, mask: Any, config: MoEConfig) -> Any:
    """The mean over experts of the share of first choices times the mean gate (lines 3 and 13): (G,)."""
    if mask is None:
        share, mean = (chosen / gates.shape[1]).astype(gates.dtype), np.mean(gates, axis=1)
    else:
        tokens = np.maximum(np.sum(mask, axis=1, dtype=np.int32), 1)[:, None]
        share = (chosen / tokens).astype(gates.dtype)
        mean = np.sum(np.where(mask[..., None], gates, 0), axis=1) / tokens.astype(gates.dtype)
    aux = np.mean(mean * share, axis=-1)
    return aux if config.gate == "gshard" else aux * config.experts**2


def _gating(gates: Any, choices: list[_Choice], capacity: int, aux: Any, mask: Any) -> Gating:
    """Masks and weights of the choices (lines 9 and 20), and statistics of the tokens."""
    sent = [choice.mask & choice.kept[..., None] for choice in choices]
    slots = [
        tokens[..., None] & one_hot(choice.place, capacity)[:, :, None, :] for tokens, choice in zip(sent, choices)
    ]
    weights = [np.where(slot, choice.weight[..., None, None], 0) for slot, choice in zip(slots, choices)]
    anywhere = reduce(operator.or_, [choice.kept for choice in choices])
    statistics = {
        "gates": gates,
        "experts": np.stack([choice.expert for choice in choices], axis=-1),
        "kept": np.stack([choice.kept for choice in choices], axis=-1),
        "tokens_per_expert": reduce(operator.add, [np.sum(tokens, axis=1, dtype=np.int32) for tokens in sent]),
        "dropped": np.sum(~anywhere if mask is None else mask & ~anywhere, axis=1, dtype=np.int32),
    }
    return Gating(reduce(operator.add, weights), reduce(operator.or_, slots), aux, statistics)


def _uniform(random: Any, like: Any) -> Any:
    """Numbers from [0, 1) in the shape of ``like``: those given, or drawn from a key."""
    if is_float(np.dtype(random.dtype)):
        return random
    return sw_random.uniform(random, tuple(like.shape), np.float32)


def _check_gates(gates: Any, random: Any, mask: Any, config: MoEConfig) -> None:
    if len(gates.shape) != 3 or gates.shape[2] != config.experts:
        got = f"shape {tuple(gates.shape)} for {config.experts} experts"
        raise ShapeError(message("top_gating", "gates must be (G, S, E)", got, "reshape the tokens into groups"))
    check_mask("top_gating", mask, "(G, S)", gates.shape[:2])
    check_random("top_gating", random, gates.shape[:2])


def gate_margins(statistics: dict[str, Any], random: Any = None) -> Any:
    """The margin by which each token's gates decide for its experts: (G, S).

    Changing the gates by less than half of the margin does not change the experts of the token. With the ``random``
    that routed it, it does not change the use of the second expert either.
    """
    gates, experts = statistics["gates"], statistics["experts"]
    check_random("gate_margins", random, gates.shape[:2])
    rest, ordered = gates, []
    for k in range(experts.shape[-1] + 1):
        best = np.max(rest, axis=-1)
        ordered.append(best)
        chosen = experts[..., k] if k < experts.shape[-1] else np.argmax(rest, axis=-1)
        rest = np.where(one_hot(chosen, gates.shape[-1]), -1, rest)
    margin = ordered[0] - ordered[1]
    if experts.shape[-1] == 2:
        margin = np.minimum(margin, ordered[1] - ordered[2])
        if random is not None:
            # Asked when 2 g2 / (g1 + g2) > u; in units of gates, since a change of a gate moves the ratio by more.
            both = ordered[0] + ordered[1]
            margin = np.minimum(margin, np.abs(2 * ordered[1] - _uniform(random, both) * both))
    return margin
