# SPDX-License-Identifier: Apache-2.0
"""Multi-head attention: of a sequence to itself, or to another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from .checks import check_floats, check_keys, check_mask
from .configs import Axes, AxisNames, axes_of, called_with, message
from .layers import as_operand, at_least_float32, dropout, einsum, number_like, shard_weight, softmax, split_dim

__all__ = ["attend", "attention", "heads_of", "output_of", "queries_of"]


def attention(
    params: dict[str, Any],
    x: Any,
    *,
    memory: Any = None,
    mask: Any = None,
    causal: bool = False,
    axes: Axes | AxisNames = None,
    key: Any = None,
    rate: float = 0.0,
) -> Any:
    """Multi-head attention of the tokens of ``x`` to themselves, or to those of ``memory``.

    Args:
        params: ``query``, ``key`` and ``value`` (M, N, D) for N heads of size D, and ``output`` (N, D, M).
        x: (G, S, M); each group is one sequence.
        memory: (G, T, M): the sequences that ``x`` attends to. None: ``x`` itself, with T = S.
        mask: (G, T), bool: the tokens that are attended to, without padding. None: all.
        causal: each token attends only to itself and to earlier tokens.
        axes: ``groups`` splits G, and ``hidden`` splits the heads. Otherwise, the weights are replicated.
        key: the key of :mod:`shardwise.random` for dropout. None: no dropout.
        rate: the share of attention weights that dropout sets to zero.

    Returns:
        (G, S, M), in the dtype of ``x``.

    Raises:
        ShapeError: the shapes do not fit each other.

    Source: GShard, section 2.1; Vaswani et al. 2017, section 3.2.
    """
    check_keys("attention", "params", params, ("query", "key", "value", "output"))
    seen = x if memory is None else memory
    for name, value in (("x", x), ("memory", seen)):
        check_floats("attention", name, value, "GSM" if name == "x" else "GTM")
    if seen.shape[0] != x.shape[0]:
        got = f"{seen.shape[0]} and {x.shape[0]}"
        raise ShapeError(message("attention", "memory must have the groups of x", got))
    check_mask("attention", mask, "(G, T)", seen.shape[:2])
    axes = axes_of(axes)
    x = split_dim(x, 0, axes.groups)
    memory = x if memory is None else split_dim(memory, 0, axes.groups)
    queries = queries_of(params, x, axes)
    keys, values = (heads_of(params, name, memory, axes) for name in ("key", "value"))
    visible = None if mask is None else mask[:, None, :]
    if causal:
        earlier = np.arange(x.shape[1], like=x)[:, None] >= np.arange(memory.shape[1], like=x)
        visible = earlier if visible is None else visible & earlier
    return output_of(params, attend(queries, keys, values, visible, key=key, rate=rate), axes)


def heads_of(params: dict[str, Any], name: str, x: Any, axes: Axes) -> Any:
    """The queries, keys or values of tokens (G, S, M): (G, S, N, D)."""
    shape = params[name].shape
    if len(x.shape) != 3 or len(shape) != 3 or x.shape[2] != shape[0]:
        raise ShapeError(
            message("attention", f"x must be (G, S, M) and {name} (M, N, D)", f"{x.shape} and {shape}", "reshape them")
        )
    return einsum("gsm,mnd->gsnd", x, shard_weight(as_operand(params[name], x), axes, None, axes.hidden, None))


def queries_of(params: dict[str, Any], x: Any, axes: Axes) -> Any:
    """The queries (G, S, N, D) of tokens, scaled by the square root of D."""
    queries = heads_of(params, "query", x, axes)
    return queries * number_like(queries.shape[3] ** -0.5, queries)


def attend(queries: Any, keys: Any, values: Any, visible: Any, *, key: Any = None, rate: float = 0.0) -> Any:
    """The values (G, T, N, D) that queries (G, S, N, D) attend to, where ``visible`` (S, T) or (G, S, T) is true."""
    scores = at_least_float32(einsum("gsnd,gtnd->gnst", queries, keys))
    if visible is not None:
        scores = np.where(visible if len(visible.shape) == 2 else visible[:, None], scores, -1e30)
    with called_with("attention"):
        weights = dropout(key, softmax(scores), rate)
    return einsum("gnst,gtnd->gsnd", as_operand(weights, values), values)


def output_of(params: dict[str, Any], attended: Any, axes: Axes) -> Any:
    """The output (G, S, M) of what all heads attended to (G, S, N, D)."""
    weight = shard_weight(as_operand(params["output"], attended), axes, axes.hidden, None, None)
    return einsum("gsnd,ndm->gsm", attended, weight)
