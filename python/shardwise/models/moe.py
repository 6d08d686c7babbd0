# SPDX-License-Identifier: Apache-2.0
"""GShard's position-wise Mixture-of-Experts layer, Algorithm 2.

The letters in shapes are the paper's: G groups, S tokens of a group, E experts, C capacity of an expert for one group,
M width of a token, H hidden units of an expert.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..dtypes import is_float
from ..errors import ShapeError, ShardingWarning, described, warn
from ..manual import manual
from ..recording.tracing import current_trace
from ..shardings.partition_spec import PartitionSpec
from .checks import check_config, check_floats, check_keys, check_mask, check_random
from .configs import (
    MOST_SLOTS,
    Axes,
    AxisNames,
    MoEConfig,
    axes_of,
    check_dispatch,
    devices_along,
    mesh_of,
    message,
    users_line,
)
from .gating import top_gating
from .layers import as_operand, at_least_float32, einsum, replicate_weight, shard_weight, softmax, split_dim

__all__ = ["moe_layer"]


def moe_layer(
    params: dict[str, Any],
    x: Any,
    config: MoEConfig,
    *,
    axes: Axes | AxisNames = None,
    random: Any = None,
    mask: Any = None,
    dispatch: str | None = None,
) -> tuple[Any, Any, dict[str, Any]]:
    """A Mixture-of-Experts layer (Algorithm 2): the weighted sum of the outputs of each token's experts.

    Args:
        params: ``gate`` (M, E), ``wi`` (E, M, H), ``wo`` (E, H, M).
        x: (G, S, M), floating. With ``config.group_size``, any (rows, length, M) whose tokens fill whole groups.
        config: the configuration; ``x`` and ``params`` must have its sizes.
        axes: one name or a tuple of names for both groups and experts, or :class:`Axes`. None adds no annotations.
        random: a key, or numbers from [0, 1) for each token, as in :func:`top_gating`.
        mask: as in :func:`top_gating`, for each token.
        dispatch: ``"einsum"`` or ``"gather"``; None for the configuration's. Both give the same bits, except where
            groups and experts are split over different axes, or hidden units are split: there, sums may be rounded in
            another order. Where the devices do not divide the groups, ``"gather"`` multiplies as ``"einsum"`` does.

    Returns:
        The output in the shape and dtype of ``x``; the auxiliary loss of each group (G,); and the statistics of
        :class:`Gating`. The output is 0 for tokens that no expert accepts, so a residual connection keeps their values.

    Raises:
        ShapeError: the shapes do not fit, or the devices along the axes do not divide the experts.
        ValueError: another ``dispatch``. DTypeError: ``mask`` is not bool, or ``random`` neither a key nor floating.

    With ``axes``, tokens are split by group and weights by expert. The only communication is an all-to-all to the
    experts and one back. The gate of dtypes below float32 is computed in float32. A warning tells when the capacity,
    rounded up, leaves more than a quarter of the slots empty: then, a larger ``group_size`` saves flops and bytes.

    Source: GShard, Algorithm 2 and section 3.2; line numbers refer to Algorithm 2.
    """
    check_config("moe_layer", config, MoEConfig)
    check_keys("moe_layer", "params", params, ("gate", "wi", "wo"))
    check_floats("moe_layer", "x", x)
    axes = axes_of(axes)
    dispatch = config.dispatch if dispatch is None else dispatch
    check_dispatch("moe_layer", dispatch)
    _check_layer(params, x, config, axes)
    shape = tuple(x.shape)
    check_mask("moe_layer", mask, "(G, S)", shape[:2])
    check_random("moe_layer", random, shape[:2])
    x, random, mask = _in_groups(x, random, mask, config, axes)
    _warn_of_empty_slots(config, x.shape[1])
    # Else a device has parts of the rows of others' groups, and the manual region cannot be cut.
    groups_are_whole = x.shape[0] % devices_along(mesh_of(x), axes.groups) == 0
    gate = replicate_weight(as_operand(params["gate"], x), axes)
    wi = shard_weight(as_operand(params["wi"], x), axes, axes.experts, None, axes.hidden)
    wo = shard_weight(as_operand(params["wo"], x), axes, axes.experts, axes.hidden, None)
    gates = softmax(at_least_float32(einsum("gsm,me->gse", x, gate)))  # line 1
    combine, to_slots, aux, statistics = top_gating(gates, config, random, mask)  # line 2
    if dispatch == "gather" and groups_are_whole:
        dispatched = _gathered(to_slots, x, axes)
    else:
        dispatched = einsum("gsec,gsm->egcm", to_slots.astype(x.dtype), x)  # line 3
    dispatched = split_dim(dispatched, 1, axes.groups)
    to_experts = split_dim(dispatched, 0, axes.experts)  # the first AllToAll
    hidden = np.maximum(einsum("egcm,emh->egch", to_experts, wi), 0)  # lines 5 and 6
    answers = einsum("egch,ehm->gecm", hidden, wo)  # line 7
    answers = split_dim(answers, 1, axes.experts)
    to_groups = split_dim(answers, 0, axes.groups)  # the second AllToAll
    output = einsum("gsec,gecm->gsm", combine.astype(x.dtype), to_groups)  # line 8
    output = split_dim(output, 0, axes.groups)
    if config.group_size is not None:
        output = split_dim(output.reshape(shape), 0, axes.groups)
    return output, aux, statistics


def _in_groups(x: Any, random: Any, mask: Any, config: MoEConfig, axes: Axes) -> tuple[Any, Any, Any]:
    """Tokens, their random numbers and their mask by groups. Whole groups stay on their device: nothing is sent."""
    rows = split_dim(x, 0, axes.groups)
    if config.group_size is None:
        return rows, random, mask
    tokens, size = x.shape[0] * x.shape[1], config.group_size
    if tokens % size:
        got = f"{x.shape[0]} * {x.shape[1]} tokens in groups of {size}"
        way_out = f"use a group_size such as {math.gcd(tokens, size)}"
        raise ShapeError(message("moe_layer", "the tokens must fill whole groups", got, way_out))
    groups = (tokens // size, size)
    if random is not None and is_float(np.dtype(random.dtype)):
        random = random.reshape(groups)
    if mask is not None:
        mask = mask.reshape(groups)
    return split_dim(rows.reshape(*groups, x.shape[2]), 0, axes.groups), random, mask


def _warn_of_empty_slots(config: MoEConfig, size: int) -> None:
    most = MOST_SLOTS * config.top_k * config.capacity_factor
    slots = config.slots_per_token(size)
    if config.capacity is None and config.has_empty_slots(size):
        enough = next(s for s in itertools.count(size + 1) if not config.has_empty_slots(s))
        warn(
            "moe_layer",
            f"a token should have at most {most:.3g} slots, of which it fills {config.top_k}",
            f"{slots:.3g}: {config.experts} experts of capacity {config.capacity_for(size)} for groups of {size}",
            f"use a group_size of at least {enough} tokens",
            category=ShardingWarning,
            place=users_line(),
        )


def _gathered(to_slots: Any, x: Any, axes: Axes) -> Any:
    """The tokens of all slots (E, G, C, M), read by their index: each device reads its own groups only.

    The compiler cannot know that the indices stay within a group; the manual region says so (section 3.2).
    """
    sources = np.argmax(to_slots, axis=1).astype(np.int32)  # (G, E, C): the token of each slot, if it has one
    filled = np.any(to_slots, axis=1)

    def read(x: Any, sources: Any, filled: Any) -> Any:
        groups, experts, capacity = sources.shape
        rows = np.take_along_axis(x, sources.reshape(groups, experts * capacity, 1), axis=1)
        slots = rows.reshape(groups, experts, capacity, x.shape[2])
        return np.where(filled[..., None], slots, 0)

    if axes.groups is not None and current_trace() is not None:
        names = (axes.groups,) if isinstance(axes.groups, str) else axes.groups
        spec = PartitionSpec(axes.groups)
        read = manual(read, in_specs=(spec, spec, spec), out_specs=spec, axes=names)
    return np.swapaxes(read(x, sources, filled), 0, 1)


def _check_layer(params: dict[str, Any], x: Any, config: MoEConfig, axes: Axes) -> None:
    m, e, h = config.model_dim, config.experts, config.hidden_dim
    if len(x.shape) != 3 or x.shape[2] != m:
        got = f"shape {tuple(x.shape)} for model_dim {m}"
        raise ShapeError(message("moe_layer", "x must be (G, S, M)", got, "reshape the tokens into groups"))
    if x.shape[1] == 0:
        raise ShapeError(message("moe_layer", "x must have tokens", described(x)))
    for name, shape in {"gate": (m, e), "wi": (e, m, h), "wo": (e, h, m)}.items():
        if tuple(params[name].shape) != shape:
            way_out = "make the parameters with init_moe for this configuration"
            raise ShapeError(
                message("moe_layer", f"{name} must have the shape {shape}", tuple(params[name].shape), way_out)
            )
    config.check_mesh(mesh_of(x), axes)
