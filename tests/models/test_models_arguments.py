# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of the layers and of the Transformer: each error begins with the call, and has its line."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import models

RNG = np.random.default_rng(0)
CONFIG = models.MoEConfig(4, 8, 16)
GROUPED = replace(CONFIG, group_size=16)
X = RNG.normal(size=(2, 8, 8)).astype(np.float32)
MOE = models.init_moe(RNG, CONFIG)
ATTENTION = models.init_attention(RNG, 8, 2, 4)
TABLES = models.init_embedding(RNG, 5, 6, 8)
DECODER = models.TransformerConfig(2, CONFIG, vocabulary=11, length=8)
PARAMS = models.init_transformer(RNG, DECODER)
TOKENS = RNG.integers(0, 11, (2, 8))
TARGETS = np.zeros((2, 8), np.int64)


def moe(*arguments: Any, **options: Any) -> Any:
    return models.moe_layer(*arguments, **options)


def attend(**options: Any) -> Any:
    return models.attention(ATTENTION, **{"x": X, **options})


def entropy(targets: Any = TARGETS, logits: Any = X, **options: Any) -> Any:
    return models.cross_entropy(logits, targets, **options)


def decode(params: Any = PARAMS, tokens: Any = TOKENS, config: Any = DECODER, **options: Any) -> Any:
    return models.transformer(params, tokens, config, **options)


def blocks(params: Any, count: int) -> Any:
    return {**params, "blocks": params["blocks"][:1] * count}


ROWS: list[tuple[type[Exception], str, Any]] = [
    (TypeError, "moe_layer: params must be a dict, got NoneType None", lambda: moe(None, X, CONFIG)),
    (ValueError, "moe_layer: params must have 'wi', 'wo', got the keys 'gate'",
     lambda: moe({"gate": MOE["gate"]}, X, CONFIG)),
    (TypeError, "moe_layer: config must be a MoEConfig, got NoneType None", lambda: moe(MOE, X, None)),
    (sw.DTypeError, "moe_layer: x must be an array of floats, got int64[2, 8, 8]",
     lambda: moe(MOE, X.astype(np.int64), CONFIG)),
    (sw.DTypeError, "moe_layer: random must be a key, or an array of a number for each token, got int 3; make a key",
     lambda: moe(MOE, X, CONFIG, random=3)),
    (sw.DTypeError, "moe_layer: random must be a key, or an array of a number for each token, got int64[2, 8]; make a",
     lambda: moe(MOE, X, CONFIG, random=TOKENS)),
    (sw.ShapeError, "moe_layer: random must have a number for every token, got (8, 2) for (2, 8) tokens; or pass a key",
     lambda: moe(MOE, X, GROUPED, random=np.ones((8, 2)))),
    (sw.ShapeError, "moe_layer: mask must be (G, S) = (2, 8), got bool[8, 2]",
     lambda: moe(MOE, X, GROUPED, mask=np.ones((8, 2), bool))),
    (sw.DTypeError, "moe_layer: mask must be bool, got list [True]; compare it with the padding",
     lambda: moe(MOE, X, CONFIG, mask=[True])),
    (sw.DTypeError, "top_gating: mask must be bool, got float32[2, 8]; compare it with the padding",
     lambda: models.top_gating(X[..., :4], CONFIG, mask=X[..., 0])),
    (sw.DTypeError, "top_gating: random must be a key, or an array of a number for each token, got int 3; make a key",
     lambda: models.top_gating(X[..., :4], CONFIG, 3)),
    (sw.ShapeError, "gate_margins: random must have a number for every token, got (2, 7) for (2, 8) tokens; or pass a",
     lambda: models.gate_margins(models.top_gating(X[..., :4], CONFIG).statistics, np.ones((2, 7)))),
    (sw.ShardingError, 'axes: an axis must be used once, got "x" again in dim 2; use another axis',
     lambda: sw.jit(lambda x: moe(MOE, x, CONFIG, axes=models.Axes("x", "x", "x"))[0], mesh=sw.Mesh({"x": 2}))(X)),
    (sw.ShapeError, "moe_layer: x must have tokens, got float32[2, 0, 8]", lambda: moe(MOE, X[:, :0], CONFIG)),
    (sw.ShardingError, "Axes: groups must be None, or names of axes, got 3", lambda: models.Axes(3)),
    (ValueError, "attention: params must have 'query', 'key', 'value', 'output', got the keys of an empty dict",
     lambda: models.attention({}, X)),
    (sw.DTypeError, "attention: x must be an array of floats, got int64[2, 8, 8]",
     lambda: attend(x=X.astype(np.int64))),
    (sw.ShapeError, "attention: memory must have the groups of x, got 1 and 2", lambda: attend(memory=X[:1])),
    (sw.ShapeError, "attention: mask must be (G, T) = (2, 8), got bool[2, 3]",
     lambda: attend(mask=np.ones((2, 3), bool))),
    (sw.DTypeError, "attention: mask must be bool, got float64[2, 8]; compare it with the padding",
     lambda: attend(mask=np.ones((2, 8)))),
    (sw.DTypeError, "attention: a key must be uint32[2], got int64[]", lambda: attend(key=3, rate=0.5)),
    (ValueError, "feed_forward: params must have 'wo', got the keys 'wi'",
     lambda: models.feed_forward({"wi": np.ones((8, 4))}, X)),
    (sw.ShapeError, "feed_forward: params['wi'] must be (M, H) = (8, 4), got (6, 4)",
     lambda: models.feed_forward(models.init_feed_forward(RNG, 6, 4), X)),
    (sw.ShapeError, "feed_forward: x must be (G, S, M), got float32[8, 8]",
     lambda: models.feed_forward(models.init_feed_forward(RNG, 8, 4), X[0])),
    (sw.ShapeError, "layer_norm: params['bias'] must be (M,) = (8,), got (1,)",
     lambda: models.layer_norm({"scale": np.ones(8), "bias": np.ones(1)}, X)),
    (TypeError, "layer_norm: epsilon must be a number, got str 'a'",
     lambda: models.layer_norm(models.init_layer_norm(8), X, epsilon="a")),
    (sw.DTypeError, "embedding: tokens must be an integer array of shape (G, S), got float64[2, 2]",
     lambda: models.embedding(TABLES, np.ones((2, 2)))),
    (ValueError, "embedding: tokens must be from 0 to 4, got 7",
     lambda: models.embedding(TABLES, np.full((2, 2), 7))),
    (ValueError, "embedding: tokens must be from 0 to 4, got -1",
     lambda: models.embedding(TABLES, np.full((2, 2), -1))),
    (sw.ShapeError, "embedding: tokens must have at most 6 columns, got int64[2, 7]",
     lambda: models.embedding(TABLES, np.zeros((2, 7), np.int64))),
    (sw.DTypeError, "cross_entropy: targets must be integers, got float64[2, 8]", lambda: entropy(TARGETS * 1.0)),
    (sw.DTypeError, "cross_entropy: logits must be an array of floats, got int64[2, 8]",
     lambda: entropy(TARGETS[0], TARGETS)),
    (sw.ShapeError, "cross_entropy: targets must be (...) = (2, 8), got int64[2]", lambda: entropy(TARGETS[:, 0])),
    (ValueError, "cross_entropy: targets must be from 0 to 7, got 9", lambda: entropy(TARGETS + 9)),
    (sw.ShapeError, "cross_entropy: mask must be (...) = (2, 8), got bool[3]",
     lambda: entropy(mask=np.ones(3, bool))),
    (ValueError, "cross_entropy: smoothing must be from 0 to below 1, got 2.0",
     lambda: entropy(smoothing=2.0)),
    (TypeError, "transformer: params must be a dict, got NoneType None", lambda: decode(None)),
    (TypeError, "transformer: config must be a TransformerConfig, got NoneType None", lambda: decode(config=None)),
    (ValueError, "transformer: params['blocks'] must be a list of 2, got 4", lambda: decode(blocks(PARAMS, 4))),
    (ValueError, "transformer: params['blocks'] must be a list of 4, got 2",
     lambda: decode(config=replace(DECODER, layers=4))),
    (sw.ShapeError, "transformer: params['blocks'][0]['attention']['query'] must have the shape (8, 2, 8), got "
     "(8, 4, 8); make the parameters with init_transformer", lambda: decode(config=replace(DECODER, heads=2))),
    (ValueError, "transformer: tokens must be from 0 to 10, got 60", lambda: decode(tokens=TOKENS * 0 + 60)),
    (sw.DTypeError, "transformer: tokens must be integers, got float64[2, 8]", lambda: decode(tokens=TOKENS * 1.0)),
    (sw.DTypeError, "transformer: random must be a key, or an array of a number for each MoE layer and token, got int",
     lambda: decode(random=5)),
    (sw.ShapeError, "next_token_loss: tokens must be (G, S + 1) with S at least 1, got int64[2, 1]",
     lambda: models.next_token_loss(PARAMS, TOKENS[:, :1], DECODER)),
    (TypeError, "TransformerConfig: moe must be a MoEConfig, got NoneType None",
     lambda: models.TransformerConfig(2, None)),
    (TypeError, "init_moe: config must be a MoEConfig, got int 4", lambda: models.init_moe(RNG, 4)),
    (TypeError, "init_transformer: config must be a TransformerConfig, got MoEConfig",
     lambda: models.init_transformer(RNG, CONFIG)),
    (TypeError, "transformer_shapes: config must be a TransformerConfig, got NoneType None",
     lambda: models.transformer_shapes(None)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "call"), ROWS, ids=[text[:60] for _, text, _ in ROWS])
def test_a_wrong_argument_is_named_at_the_callers_line(kind: type[Exception], text: str, call: Any) -> None:
    with pytest.raises(kind, match=rf"^{re.escape(text)}.*\(at .*test_models_arguments"):
        call()


def test_targets_that_the_mask_leaves_out_may_be_anything() -> None:
    mask = np.zeros((2, 8), bool)
    mask[0] = True
    targets = np.where(mask, 3, -100)
    assert float(entropy(targets, mask=mask)) == pytest.approx(float(entropy(np.full((1, 8), 3), X[:1])), rel=1e-6)
    with pytest.raises(ValueError, match=r"^cross_entropy: targets must be from 0 to 7, got -100"):
        entropy(targets)


def test_lists_of_names_are_axes() -> None:
    axes = models.Axes(["x"], ["x", "y"])
    assert (axes.groups, axes.experts, axes.hidden) == (("x",), ("x", "y"), None)
