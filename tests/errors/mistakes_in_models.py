# SPDX-License-Identifier: Apache-2.0
"""Mistakes in the sizes and arguments of the models."""

from __future__ import annotations

import numpy as np

import shardwise as sw
from shardwise import models
from shardwise.models import translation
from tests.errors.mistakes import MESH, on_mesh, row

CONFIG = models.MoEConfig(experts=8, model_dim=4, hidden_dim=6)
PARAMS = models.init_moe(np.random.default_rng(0), CONFIG)
TOKENS = np.ones((8, 5, 4), np.float32)
BIG = models.TransformerConfig(2, CONFIG, heads=2, head_dim=2, length=5)
PAIRS = translation.TranslationConfig(4, models.MoEConfig(8, 4, 6, capacity=4), heads=2, head_dim=2, target_length=5)
PAIRS_PARAMS = translation.init(np.random.default_rng(0), PAIRS)
SENTENCES = np.full((4, 6), 5, np.int32)
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
    r"moe_layer: random must have a number for every token, got \(5,\) for \(8, 5\) tokens; or pass a key",
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


@row(ValueError, r"MoEConfig: gate must be 'gshard' or 'lingvo', got 'switch'")
def another_gate() -> None:
    models.MoEConfig(experts=8, model_dim=4, hidden_dim=6, gate="switch")


@row(ValueError, r"MoEConfig: dispatch must be 'einsum' or 'gather', got 'sort'")
def another_dispatch() -> None:
    models.MoEConfig(experts=8, model_dim=4, hidden_dim=6, dispatch="sort")


@row(sw.ShapeError, r"MoEConfig: group_size must be an integer of at least 1, got 0")
def groups_of_no_token() -> None:
    models.MoEConfig(experts=8, model_dim=4, hidden_dim=6, group_size=0)


@row(sw.DTypeError, r"moe_layer: mask must be bool, got float32\[8, 5\]; compare it with the padding")
def mask_of_floats() -> None:
    models.moe_layer(PARAMS, TOKENS, CONFIG, mask=np.ones((8, 5), np.float32))


@row(sw.ShapeError, r"TranslationConfig: layers must be a multiple of 4, got 6; use 8")
def half_a_pair_of_layers() -> None:
    translation.TranslationConfig(6, CONFIG)


@row(ValueError, r"TranslationConfig: dropout must be from 0 to below 1, got 1")
def dropout_of_everything() -> None:
    translation.TranslationConfig(4, CONFIG, dropout=1)


@row(TypeError, r"TranslationConfig: moe must be a MoEConfig, got NoneType None")
def no_layer_of_experts() -> None:
    translation.TranslationConfig(4, None)  # type: ignore[arg-type]


@row(ValueError, r"TranslationConfig: decoding_capacity_factor must be a positive number, got nan")
def a_capacity_that_is_no_number() -> None:
    translation.TranslationConfig(4, CONFIG, decoding_capacity_factor=float("nan"))


@row(ValueError, r"TranslationConfig: eos must be a token of both vocabularies, from 0 to 8, got 300")
def an_end_outside_of_the_vocabulary() -> None:
    translation.TranslationConfig(4, CONFIG, source_vocabulary=20, target_vocabulary=9, eos=300)


@row(ValueError, r"TranslationConfig: pad must be a token of both vocabularies, from 0 to 4, got 5")
def padding_outside_of_the_sources_vocabulary() -> None:
    translation.TranslationConfig(4, CONFIG, source_vocabulary=5, target_vocabulary=9, pad=5)


@row(ValueError, r"TranslationConfig: bos must be a token of the target's vocabulary, from 0 to 8, got 9")
def a_start_outside_of_the_targets_vocabulary() -> None:
    translation.TranslationConfig(4, CONFIG, source_vocabulary=20, target_vocabulary=9, bos=9)


@row(ValueError, r"TranslationConfig: pad, bos and eos must be three different tokens, got 2, 1 and 2")
def an_end_that_is_padding() -> None:
    translation.TranslationConfig(4, CONFIG, pad=2)


@row(sw.ShapeError, r"TranslationConfig: dense_hidden_dim must be an integer of at least 1, got 0")
def a_dense_layer_without_hidden_units() -> None:
    translation.TranslationConfig(4, CONFIG, dense_hidden_dim=0)


@row(sw.DTypeError, r"TranslationConfig: activations must be a floating dtype, got 'int32'")
def activations_of_integers() -> None:
    translation.TranslationConfig(4, CONFIG, activations="int32")


@row(sw.ShapeError, r"parameter_bytes_per_device: devices must divide the experts, got 3 devices for 8 experts")
def devices_that_do_not_divide_the_experts_of_a_translation() -> None:
    PAIRS.parameter_bytes_per_device(3)


@row(sw.ShapeError, r"encode: source must be an integer array of shape \(batch, length\), got int32\[4\]")
def one_source_sentence_without_its_batch() -> None:
    translation.encode(PAIRS_PARAMS, SENTENCES[:, 0], PAIRS)


@row(sw.ShapeError, r"translation: target must be \(B, T\) with at most 5 tokens, got shape \(4, 6\); cut the sent")
def target_sentences_that_are_too_long() -> None:
    translation.translation(PAIRS_PARAMS, SENTENCES, SENTENCES, PAIRS)


@row(sw.ShapeError, r"greedy: steps must be at most target_length, 5, got 6; make the configuration with a larger")
def more_steps_than_positions() -> None:
    translation.greedy(PAIRS_PARAMS, SENTENCES, PAIRS, steps=6)


@row(ValueError, r"sample: a key is needed to draw tokens; pass sw.random.key\(0\), or temperature=0")
def samples_without_a_key() -> None:
    translation.sample(PAIRS_PARAMS, SENTENCES, PAIRS, None)


@row(ValueError, r"sample: temperature must not be negative, got -1")
def samples_below_zero() -> None:
    translation.sample(PAIRS_PARAMS, SENTENCES, PAIRS, sw.random.key(0), temperature=-1)


@row(ValueError, r"sample: top_p must be above 0 and at most 1, got 0")
def samples_of_no_probability() -> None:
    translation.sample(PAIRS_PARAMS, SENTENCES, PAIRS, sw.random.key(0), top_p=0)


@row(sw.ShapeError, r"flat_beam_search: beams must be an integer of at least 1, got 0")
def no_beams() -> None:
    translation.flat_beam_search(PAIRS_PARAMS, SENTENCES, PAIRS, beams=0)


@row(ValueError, r"beam_search: alpha must be finite, got nan")
def lengths_to_the_power_of_nan() -> None:
    translation.beam_search(PAIRS_PARAMS, SENTENCES, PAIRS, alpha=float("nan"))


@row(sw.ShapeError, r"decode: memory must be the encoded source, of shape \(4, 6, 4\), got float64\[4, 6, 5\]; pass")
def memory_of_another_width() -> None:
    translation.decode(PAIRS_PARAMS, SENTENCES[:, :5], np.ones((4, 6, 5)), SENTENCES, PAIRS)


@row(ValueError, r"moe_layer: dispatch must be 'einsum' or 'gather', got 'gathr'")
def a_misspelt_dispatch() -> None:
    models.moe_layer(PARAMS, TOKENS, CONFIG, dispatch="gathr")


@row(ValueError, r"beam_search: gap must not be negative, got -1")
def negative_gap() -> None:
    translation.beam_search(PAIRS_PARAMS, SENTENCES, PAIRS, gap=-1)


@row(sw.ShapeError, r"train_step: accumulate must be an integer of at least 1, got 0")
def accumulation_of_no_part() -> None:
    translation.train_step(PAIRS, sw.optim.sgd(0.1), accumulate=0)


@row(sw.ShapeError, r"train_step: accumulate must divide the batch, got 4 sentences in 3 parts")
def accumulation_of_uneven_parts() -> None:
    optimizer = sw.optim.sgd(0.1)
    step = translation.train_step(PAIRS, optimizer, accumulate=3)
    step(translation.init_state(PAIRS_PARAMS, optimizer), SENTENCES, SENTENCES[:, :5], None)
