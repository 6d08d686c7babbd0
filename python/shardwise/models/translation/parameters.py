# SPDX-License-Identifier: Apache-2.0
"""Parameters of the translation model, as arrays or as shapes.

    {"source": {"table", "positions"}, "encoder": {"pairs", "norm"},
     "target": {"table", "positions"}, "decoder": {"pairs", "norm"}, "output" (V, M) unless tied}

All pairs of layers have the same shapes, so ``pairs`` stacks them in a new first dim, and one loop runs over it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ...array import ShapeDtypeStruct
from ...trees import flatten, unflatten
from .. import initial
from ..initial import Weight
from .config import TranslationConfig, check_config, float_dtype

__all__ = ["expected_shapes", "init", "shapes"]


def _layer(config: TranslationConfig, feed_forward: str, is_decoder: bool) -> dict[str, Any]:
    width = config.moe.model_dim
    hidden = config.moe.hidden_dim if feed_forward == "dense" else config.dense_hidden_dim
    layer: dict[str, Any] = {}
    for part in ("attention", "cross") if is_decoder else ("attention",):
        layer[f"{part}_norm"] = initial.layer_norm_weights(width)
        layer[part] = initial.attention_weights(width, config.heads, config.head_dim)
    layer["norm"] = initial.layer_norm_weights(width)
    if hidden is None:
        layer["moe"] = initial.moe_weights(config.moe)
    else:
        layer["dense"] = initial.feed_forward_weights(width, hidden)
    return layer


def _half(config: TranslationConfig, is_decoder: bool) -> dict[str, Any]:
    pair = {name: _layer(config, name, is_decoder) for name in config.pair_names}
    leaves, tree = flatten(pair)
    stacked = [replace(w, shape=(config.pairs, *w.shape)) for w in leaves]
    return {"pairs": unflatten(tree, stacked), "norm": initial.layer_norm_weights(config.moe.model_dim)}


def _weights(config: TranslationConfig) -> dict[str, Any]:
    width = config.moe.model_dim
    tree: dict[str, Any] = {
        "source": initial.embedding_weights(config.source_vocabulary, config.source_length, width),
        "encoder": _half(config, False),
        "target": initial.embedding_weights(config.target_vocabulary, config.target_length, width),
        "decoder": _half(config, True),
    }
    if not config.tied:
        tree["output"] = Weight((config.target_vocabulary, width), width**-0.5)
    return tree


def init(source: Any, config: TranslationConfig, dtype: Any = np.float32) -> dict[str, Any]:
    """Make parameters of the translation model from a NumPy Generator or a key of :mod:`shardwise.random`.

    Args:
        source: a Generator or a key.
        config: the configuration.
        dtype: the dtype of all parameters.
    """
    check_config("init", config)
    return initial.drawn(_weights(config), source, float_dtype("init", "dtype", dtype))  # type: ignore[no-any-return]


def shapes(
    config: TranslationConfig, dtype: Any = np.float32, struct: Callable[[Any, Any], Any] = ShapeDtypeStruct
) -> dict[str, Any]:
    """The tree of :func:`init` as shapes without data, to compile models that do not fit into memory.

    ``struct`` makes a leaf from a shape and a dtype.
    """
    check_config("shapes", config)
    dtype = float_dtype("shapes", "dtype", dtype)
    leaves, tree = flatten(_weights(config))
    return unflatten(tree, [struct(w.shape, dtype) for w in leaves])  # type: ignore[no-any-return]


@cache
def expected_shapes(config: TranslationConfig) -> Any:
    """The tree of the shapes of a model's parameters."""
    return initial.shapes_of(_weights(config))
