# SPDX-License-Identifier: Apache-2.0
"""GShard's position-wise Mixture-of-Experts layer: Algorithm 1 (the gate) and Algorithm 2 (the layer).

The letters in shapes are the paper's: G groups, S tokens of a group, E experts, C capacity of an expert for one group,
M width of a token, H hidden units of an expert.

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
from ..recording.tracing import current_trace
from .configs import Axes, AxisNames, MoEConfig, axes_of, message
from .layers import einsum, one_hot, replicate_weight, shard_weight, softmax, split_dim

__all__ = ["Gating", "gate_margins", "moe_layer", "top_gating"]


class Gating(NamedTuple):
    """The result of the gate.

    Attributes:
        combine: (G, S, E, C), floating: the weights of the expert outputs.
        dispatch: (G, S, E, C), bool: the experts and slots that each token goes to.
        aux: (G,), floating: the auxiliary loss of each group.
        statistics: ``gates`` (G, S, E); ``experts`` and ``kept`` (G, S, top_k): the experts that each token chose, and
            whether they accepted it; ``tokens_per_expert`` (G, E): the number of accepted tokens; ``dropped`` (G,): the
            number of tokens that no expert accepted.
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


def top_gating(gates: Any, config: MoEConfig, random: Any = None) -> Gating:
    """Algorithm 1 for all groups at once: route each token to experts, and compute the weights of their outputs.

    Args:
        gates: (G, S, E), the softmax of the gate's logits.
        config: the configuration; only ``top_k`` and the capacity are used.
        random: decides whether a token goes to its second expert, with probability ``2 * g2`` (lines 17 and 19): a key
            of :mod:`shardwise.random`, or numbers from [0, 1) of shape (G, S). None: every token goes there.

    Slots are assigned in the order of the tokens, first choices before second choices. If an expert is full, the token
    does not go there (lines 8 and 19). With ``top_k=2``, the two gates are normalized to sum 1 (lines 6 and 16). With
    ``top_k=1``, the gate itself is the weight, as in the Switch Transformer, because a normalized gate has no gradient.

    Raises:
        ShapeError: the shapes do not fit.

    Source: GShard, Algorithm 1; line numbers refer to it.

    >>> gates = np.array([[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]])
    >>> gating = top_gating(gates, MoEConfig(experts=2, model_dim=1, hidden_dim=1, top_k=1, capacity=1))
    >>> gating.combine[0, :, :, 0]
    array([[0.9, 0. ],
           [0. , 0. ],
           [0. , 0.7]])
    >>> gating.statistics["dropped"]
    array([1], dtype=int32)
    """
    _check_gates(gates, config)
    _, size, experts = gates.shape
    capacity = config.capacity_for(size)
    choice1 = np.argmax(gates, axis=-1)
    mask1 = one_hot(choice1, experts)
    gate1 = np.sum(np.where(mask1, gates, 0), axis=-1)  # line 5
    count1 = np.cumsum(mask1, axis=1, dtype=np.int32)  # lines 7 and 11
    total1: Any = np.sum(mask1, axis=1, dtype=np.int32)
    aux = np.mean(np.mean(gates, axis=1) * (total1 / size).astype(gates.dtype), axis=-1)  # lines 3 and 13
    place1 = np.sum(np.where(mask1, count1, 0), axis=-1, dtype=np.int32) - 1
    kept1 = place1 < capacity  # line 8
    if config.top_k == 1:
        choices = [_Choice(choice1, mask1, place1, kept1, gate1)]
    else:
        without_first = np.where(mask1, -1, gates)
        choice2 = np.argmax(without_first, axis=-1)
        mask2 = one_hot(choice2, experts)
        gate2 = np.sum(np.where(mask2, gates, 0), axis=-1)  # line 15
        weight1 = gate1 / (gate1 + gate2)  # line 6
        weight2 = gate2 / (gate1 + gate2)  # line 16
        count2 = np.cumsum(mask2, axis=1, dtype=np.int32) + total1[:, None, :]  # lines 18 and 22
        place2 = np.sum(np.where(mask2, count2, 0), axis=-1, dtype=np.int32) - 1
        kept2 = place2 < capacity
        if random is not None:
            kept2 = kept2 & (2 * weight2 > _uniform(random, weight2))  # lines 17 and 19
        choices = [
            _Choice(choice1, mask1, place1, kept1, weight1),
            _Choice(choice2, mask2, place2, kept2, weight2),
        ]
    return _gating(gates, choices, capacity, aux)


def _gating(gates: Any, choices: list[_Choice], capacity: int, aux: Any) -> Gating:
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
        "dropped": np.sum(~anywhere, axis=1, dtype=np.int32),
    }
    return Gating(reduce(operator.add, weights), reduce(operator.or_, slots), aux, statistics)


def _uniform(random: Any, like: Any) -> Any:
    """Numbers from [0, 1) in the shape of ``like``: those given, or drawn from a key."""
    if is_float(np.dtype(random.dtype)):
        if tuple(random.shape) != tuple(like.shape):
            got = f"{tuple(random.shape)} for {tuple(like.shape)} tokens"
            raise ShapeError(message("top_gating", "random must have a number for every token", got, "or pass a key"))
        return random
    return sw_random.uniform(random, tuple(like.shape), np.float32)


def _check_gates(gates: Any, config: MoEConfig) -> None:
    if len(gates.shape) != 3 or gates.shape[2] != config.experts:
        got = f"shape {tuple(gates.shape)} for {config.experts} experts"
        raise ShapeError(message("top_gating", "gates must be (G, S, E)", got, "reshape the tokens into groups"))


def gate_margins(statistics: dict[str, Any], random: Any = None) -> Any:
    """The margin by which each token's gates decide for its experts: (G, S).

    Changing the gates by less than half of the margin does not change the experts of the token. With the ``random``
    that routed it, it does not change the use of the second expert either.
    """
    gates, experts = statistics["gates"], statistics["experts"]
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


def moe_layer(
    params: dict[str, Any],
    x: Any,
    config: MoEConfig,
    *,
    axes: Axes | AxisNames = None,
    random: Any = None,
) -> tuple[Any, Any, dict[str, Any]]:
    """A Mixture-of-Experts layer (Algorithm 2): the weighted sum of the outputs of each token's experts.

    Args:
        params: ``gate`` (M, E), ``wi`` (E, M, H), ``wo`` (E, H, M).
        x: (G, S, M), floating.
        config: the configuration; ``x`` and ``params`` must have its sizes.
        axes: one name or a tuple of names for both groups and experts, or :class:`Axes`. None adds no annotations.
        random: as in :func:`top_gating`.

    Returns:
        The output (G, S, M) in the dtype of ``x``; the auxiliary loss of each group (G,); and the statistics of
        :class:`Gating`. The output is 0 for tokens that no expert accepts, so a residual connection keeps their values.

    Raises:
        ShapeError: the shapes do not fit, or the devices along the axes do not divide the experts.

    With ``axes``, tokens are split by group and weights by expert. The only communication is an all-to-all to the
    experts and one back. The gate of dtypes below float32 is computed in float32.

    Source: GShard, Algorithm 2 and section 3.2; line numbers refer to Algorithm 2.
    """
    axes = axes_of(axes)
    _check_layer(params, x, config, axes)
    x = split_dim(x, 0, axes.groups)
    gate = replicate_weight(params["gate"], axes)
    wi = shard_weight(params["wi"], axes, axes.experts, None, axes.hidden)
    wo = shard_weight(params["wo"], axes, axes.experts, axes.hidden, None)
    logits = einsum("gsm,me->gse", x, gate)
    gates = softmax(logits if x.dtype.itemsize >= 4 else logits.astype(np.float32))  # line 1
    combine, dispatch, aux, statistics = top_gating(gates, config, random)  # line 2
    dispatched = einsum("gsec,gsm->egcm", dispatch.astype(x.dtype), x)  # line 3
    dispatched = split_dim(dispatched, 1, axes.groups)
    to_experts = split_dim(dispatched, 0, axes.experts)  # the first AllToAll
    hidden = np.maximum(einsum("egcm,emh->egch", to_experts, wi), 0)  # lines 5 and 6
    answers = einsum("egch,ehm->gecm", hidden, wo)  # line 7
    answers = split_dim(answers, 1, axes.experts)
    to_groups = split_dim(answers, 0, axes.groups)  # the second AllToAll
    output = einsum("gsec,gecm->gsm", combine.astype(x.dtype), to_groups)  # line 8
    return split_dim(output, 0, axes.groups), aux, statistics


def _check_layer(params: dict[str, Any], x: Any, config: MoEConfig, axes: Axes) -> None:
    m, e, h = config.model_dim, config.experts, config.hidden_dim
    if len(x.shape) != 3 or x.shape[2] != m:
        got = f"shape {tuple(x.shape)} for model_dim {m}"
        raise ShapeError(message("moe_layer", "x must be (G, S, M)", got, "reshape the tokens into groups"))
    for name, shape in {"gate": (m, e), "wi": (e, m, h), "wo": (e, h, m)}.items():
        if tuple(params[name].shape) != shape:
            way_out = "make the parameters with init_moe for this configuration"
            raise ShapeError(
                message("moe_layer", f"{name} must have the shape {shape}", tuple(params[name].shape), way_out)
            )
    trace = current_trace()
    config.check_mesh(trace.mesh if trace is not None else getattr(getattr(x, "sharding", None), "mesh", None), axes)
