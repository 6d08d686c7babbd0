# SPDX-License-Identifier: Apache-2.0
"""Attention of every token of a sequence to the others, in several heads."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from .configs import Axes, AxisNames, axes_of, message
from .layers import einsum, shard_weight, softmax, split_dim

__all__ = ["attention"]


def attention(params: dict[str, Any], x: Any, *, causal: bool = False, axes: Axes | AxisNames = None) -> Any:
    """Multi-head self-attention.

    Args:
        params: ``query``, ``key``, ``value`` (M, N, D) for N heads of D, and ``output`` (N, D, M).
        x: (G, S, M): every group is one sequence.
        causal: a token sees itself and those before it.
        axes: ``groups`` splits G; ``hidden`` splits the heads; the weights are replicated otherwise.

    Returns:
        (G, S, M), in ``x``'s dtype.

    Raises:
        ShapeError: shapes that do not fit each other.

    Source: GShard, section 2.1; Vaswani et al. 2017, section 3.2.
    """
    axes = axes_of(axes)
    shape = params["query"].shape
    if len(x.shape) != 3 or len(shape) != 3 or x.shape[2] != shape[0]:
        raise ShapeError(
            message("attention", "x must be (G, S, M) and query (M, N, D)", f"{x.shape} and {shape}", "reshape them")
        )
    query, key, value = (
        shard_weight(params[name], axes, None, axes.hidden, None) for name in ("query", "key", "value")
    )
    output = shard_weight(params["output"], axes, axes.hidden, None, None)
    x = split_dim(x, 0, axes.groups)
    queries = einsum("gsm,mnd->gnsd", x, query) * shape[2] ** -0.5
    keys = einsum("gsm,mnd->gnsd", x, key)
    values = einsum("gsm,mnd->gnsd", x, value)
    scores = einsum("gnsd,gntd->gnst", queries, keys)
    if causal:
        places = np.arange(x.shape[1], like=x)
        scores = np.where(places[:, None] >= places, scores, float(-1e30 if x.dtype.itemsize > 2 else -6e4))
    attended = einsum("gnst,gntd->gnsd", softmax(scores), values)
    return einsum("gnsd,ndm->gsm", attended, output)
