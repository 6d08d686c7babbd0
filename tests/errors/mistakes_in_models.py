# SPDX-License-Identifier: Apache-2.0
"""Mistakes in the sizes and arguments of the models."""

from __future__ import annotations

import numpy as np

import shardwise as sw
from shardwise import models
from tests.errors.mistakes import MESH, on_mesh, row

CONFIG = models.MoEConfig(experts=8, model_dim=4, hidden_dim=6)
PARAMS = models.init_moe(np.random.default_rng(0), CONFIG)
TOKENS = np.ones((8, 5, 4), np.float32)
BIG = models.TransformerConfig(2, CONFIG, heads=2, head_dim=2, length=5)
BIG_PARAMS = models.init_transformer(np.random.default_rng(0), BIG)


@row(sw.ShapeError, r"MoEConfig: experts must be an integer of at least 1, got 0")
def no_experts() -> None:
    models.MoEConfig(experts=0, model_dim=4, hidden_dim=6)


@row(sw.ShapeError, r"MoEConfig: capacity must be an integer of at least 1, got 0")
def capacity_zero() -> None:
    models.MoEConfig(experts=8, model_dim=4, hidden_dim=6, capacity=0)


@row(ValueError, r"MoEConfig: top_k must be 1 or 2, got 3")
def three_experts_for_a_token() -> None:
    models.MoEConfig(experts=8, model_dim=4, hidden_dim=6, top_k=3)


@row(sw.ShapeError, r"MoEConfig: experts must be at least top_k, 2, got 1; use more experts, or top_k=1")
def one_expert_for_two_choices() -> None:
    models.MoEConfig(experts=1, model_dim=4, hidden_dim=6)


@row(ValueError, r"MoEConfig: capacity_factor must be a positive number, got -1.0")
def negative_capacity_factor() -> None:
    models.MoEConfig(experts=8, model_dim=4, hidden_dim=6, capacity_factor=-1.0)


@row(sw.ShapeError, r"capacity_for: group_size must be an integer of at least 1, got 0")
def capacity_for_no_tokens() -> None:
    CONFIG.capacity_for(0)


@row(sw.ShapeError, r"TransformerConfig: layers must be an integer of at least 1, got 0")
def no_layers() -> None:
    models.TransformerConfig(0, CONFIG)


@row(ValueError, r"TransformerConfig: aux_weight must not be negative, got -0.1")
def negative_aux_weight() -> None:
    models.TransformerConfig(2, CONFIG, aux_weight=-0.1)


@row(sw.ShapeError, r"parameter_bytes_per_device: devices must divide the experts, got 3 devices for 8 experts")
def devices_that_do_not_divide_the_experts() -> None:
    BIG.parameter_bytes_per_device(3)


@row(
    sw.ShapeError, r"moe_layer: experts must be a multiple of the 8 devices along 'data', 'model', got 6; use 8 experts"
)
def experts_that_the_devices_do_not_divide() -> None:
    config = models.MoEConfig(experts=6, model_dim=4, hidden_dim=6)
    params = models.init_moe(np.random.default_rng(0), config)
    on_mesh(lambda x: models.moe_layer(params, x, config, axes=("data", "model"))[0])(TOKENS)


@row(sw.ShardingError, r"axes: must be None, axis names, or Axes\(...\), got 3")
def axes_of_a_number() -> None:
    models.moe_layer(PARAMS, TOKENS, CONFIG, axes=3)  # type: ignore[arg-type]


@row(sw.ShardingError, r'^split: an axis must be of mesh @mesh, got "rows"; use one of', located=False)
def axis_that_the_mesh_lacks() -> None:
    on_mesh(lambda x: models.moe_layer(PARAMS, x, CONFIG, axes="rows")[0])(TOKENS)


@row(
    sw.ShapeError,
    r"moe_layer: x must be \(G, S, M\), got shape \(5, 4\) for model_dim 4; reshape the tokens into groups",
)
def tokens_without_groups() -> None:
    models.moe_layer(PARAMS, TOKENS[0], CONFIG)


@row(
    sw.ShapeError, r"moe_layer: wi must have the shape \(8, 4, 6\), got \(8, 6, 4\); make the parameters with init_moe"
)
def parameters_of_another_shape() -> None:
    models.moe_layer({**PARAMS, "wi": PARAMS["wo"]}, TOKENS, CONFIG)


@row(sw.ShapeError, r"top_gating: gates must be \(G, S, E\), got shape \(2, 3, 4\) for 8 experts; reshape")
def gates_of_other_experts() -> None:
    models.top_gating(np.ones((2, 3, 4)), CONFIG)


@row(
    sw.ShapeError,
    r"top_gating: random must have a number for every token, got \(5,\) for \(8, 5\) tokens; or pass a key",
)
def random_numbers_of_one_group() -> None:
    models.moe_layer(PARAMS, TOKENS, CONFIG, random=np.ones(5))


@row(sw.ShapeError, r"attention: x must be \(G, S, M\) and query \(M, N, D\), got \(8, 5, 3\) and \(4, 2, 2\); reshape")
def attention_of_another_width() -> None:
    models.attention(BIG_PARAMS["blocks"][0]["attention"], TOKENS[..., :3])


@row(
    sw.ShapeError,
    r"transformer: tokens must be \(G, S\) with S up to the config's length, got shape \(8, 9\) for length 5",
)
def sequences_that_are_too_long() -> None:
    models.transformer(BIG_PARAMS, np.ones((8, 9), np.int32), BIG)


@row(sw.ShapeError, r"transformer: random must have the shape \(1, 8, 5\), got \(8, 5\); or pass a key")
def random_numbers_of_no_layer() -> None:
    models.transformer(BIG_PARAMS, np.ones((8, 5), np.int32), BIG, random=np.ones((8, 5)))


@row(TypeError, r"init: takes a numpy.random.Generator or a key, got 0")
def a_seed_in_place_of_a_generator() -> None:
    models.init_moe(0, CONFIG)


@row(sw.TracerConversionError, r"np.arange: argument n must be static: sw.jit\(f, static_argnames='n'\)")
def arange_of_a_traced_length() -> None:
    sw.jit(lambda n: np.arange(n, like=n), mesh=MESH)(np.int32(3))
