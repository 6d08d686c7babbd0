# SPDX-License-Identifier: Apache-2.0
"""Multi-head self-attention."""

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
        params: ``query``, ``key`` and ``value`` (M, N, D) for N heads of size D, and ``output`` (N, D, M).
        x: (G, S, M); each group is one sequence.
        causal: each token attends only to itself and to earlier tokens.
        axes: ``groups`` splits G, and ``hidden`` splits the heads. Otherwise, the weights are replicated.

    Returns:
        (G, S, M), in the dtype of ``x``.

    Raises:
        ShapeError: the shapes do not fit each other.

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
