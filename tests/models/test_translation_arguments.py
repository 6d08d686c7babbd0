# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of the translation model: each error begins with the function that was called."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import models
from shardwise.models import translation
from tests.models import translation_cases as cases

CONFIG = cases.small(target_length=4)
PARAMS = translation.init(np.random.default_rng(0), CONFIG)
SOURCE = np.array([[5, 6, 2], [3, 2, 0]])
SGD = sw.optim.sgd(0.1)
MEMORY = np.ones((2, 3, 8))
TOKENS = r"source must be an integer array of shape \(batch, length\)"


def step(params: Any, source: Any, target: Any = SOURCE, key: Any = None) -> Any:
    state = {"params": params, "optimizer": (), "step": np.int32(0)}
    return translation.train_step(CONFIG, SGD)(state, source, target, key)


CALLS: dict[str, Any] = {
    "loss": lambda params, source, key=None: translation.loss(params, source, SOURCE, CONFIG, key=key),
    "train_step": lambda params, source, key=None: step(params, source, key=key),
    "encode": lambda params, source, key=None: translation.encode(params, source, CONFIG, key=key),
    "decode": lambda params, source, key=None: translation.decode(params, SOURCE, MEMORY, source, CONFIG, key=key),
    "translation": lambda params, source, key=None: translation.translation(params, source, SOURCE, CONFIG, key=key),
    "greedy": lambda params, source: translation.greedy(params, source, CONFIG),
    "sample": lambda params, source, key=None: translation.sample(
        params, source, CONFIG, sw.random.key(0) if key is None else key
    ),
    "beam_search": lambda params, source: translation.beam_search(params, source, CONFIG),
    "flat_beam_search": lambda params, source: translation.flat_beam_search(params, source, CONFIG),
}


@pytest.mark.parametrize("what", CALLS)
def test_wrong_parameters_and_tokens_are_named_by_the_call(what: str) -> None:
    call = CALLS[what]
    rows: list[tuple[type[Exception], str, tuple[Any, Any]]] = [
        (sw.DTypeError, f"{TOKENS}, got float64\\[2, 3\\]", (PARAMS, SOURCE * 1.0)),
        (sw.DTypeError, f"{TOKENS}, got list", (PARAMS, SOURCE.tolist())),
        (sw.ShapeError, f"{TOKENS}, got int64\\[3\\]", (PARAMS, SOURCE[0])),
        (ValueError, "tokens of source must be from 0 to 22, got 29; ", (PARAMS, SOURCE + 23)),
        (ValueError, "tokens of source must be from 0 to 22, got -1; ", (PARAMS, SOURCE - 1)),
        (TypeError, "params must be a dict, got NoneType None", (None, SOURCE)),
        (ValueError, "params must have 'source', 'encoder', 'target', 'decoder', got the keys of an em", ({}, SOURCE)),
        (ValueError, "params must have 'output', got", ({k: v for k, v in PARAMS.items() if k != "output"}, SOURCE)),
    ]
    for kind, text, arguments in rows:
        with pytest.raises(kind, match=f"^{what}: {text}.* \\(at .*test_translation_arguments"):
            call(*arguments)


@pytest.mark.parametrize("what", ["loss", "train_step", "sample", "encode", "decode", "translation"])
@pytest.mark.parametrize("key", [3, "a", np.ones(3), np.ones(2)])
def test_a_key_must_be_one(what: str, key: Any) -> None:
    with pytest.raises(sw.DTypeError, match=rf"^{what}: key must be a random key, uint32\[2\], got "):
        CALLS[what](PARAMS, SOURCE, key=key)


def test_targets_optimizers_states_and_configurations_are_checked() -> None:
    make = translation.train_step
    for kind, text, call in (
        (sw.ShapeError, "loss: source and target must have equally many sentences, got 2 and 1",
         lambda: translation.loss(PARAMS, SOURCE, SOURCE[:1], CONFIG)),
        (ValueError, "train_step: tokens of target must be from 0 to 18, got 25; ",
         lambda: step(PARAMS, SOURCE, SOURCE + 19)),
        (TypeError, "train_step: optimizer must have init and update, got None", lambda: make(CONFIG, None)),
        (TypeError, "init_state: optimizer must have init and update, got None",
         lambda: translation.init_state(PARAMS, None)),
        (ValueError, "init_state: params must have 'source'", lambda: translation.init_state({}, SGD)),
        (ValueError, "train_step: state must have 'params', 'optimizer', 'step', got ",
         lambda: make(CONFIG, SGD)({}, SOURCE, SOURCE, None)),
        (TypeError, "train_step: config must be a TranslationConfig, got NoneType None", lambda: make(None, SGD)),
        (sw.ShapeError, "train_step: accumulate must be an integer of at least 1, got '2'",
         lambda: make(CONFIG, SGD, accumulate="2")),
        (sw.ShapeError, "loss: target must have at least one sentence of at least one token, got int64[2, 0]",
         lambda: translation.loss(PARAMS, SOURCE, SOURCE[:, :0], CONFIG)),
        (ValueError, "decode: tokens of target must be from 0 to 18, got 25; ",
         lambda: translation.decode(PARAMS, SOURCE + 19, MEMORY, SOURCE, CONFIG)),
        (sw.ShapeError, "decode: memory must be the encoded source, of shape (2, 3, 8), got float64[2, 2, 8]",
         lambda: translation.decode(PARAMS, SOURCE, MEMORY[:, :2], SOURCE, CONFIG)),
        (TypeError, "greedy: config must be a TranslationConfig, got NoneType None",
         lambda: translation.greedy(PARAMS, SOURCE, None)),
        (sw.ShapeError, "greedy: steps must be at most target_length, 4, got 9",
         lambda: translation.greedy(PARAMS, SOURCE, CONFIG, steps=9)),
    ):  # fmt: skip
        with pytest.raises(kind, match=f"^{re.escape(text)}"):
            call()


OTHERS = {
    "(19, 8)": {"target_vocabulary": 12},
    "(1, 8, 4, 4)": {"heads": 2},
    "(1, 8)": {"layers": 8},
    "(1, 8, 24)": {"moe": models.MoEConfig(12, 8, 16)},
}


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize("shape", OTHERS)
def test_parameters_of_another_configuration_are_refused(what: str, shape: str) -> None:
    params = translation.init(np.random.default_rng(0), replace(CONFIG, **OTHERS[shape]))
    text = rf"^{what}: params\['.*'\] must have the shape {re.escape(shape)}, got \(.*; make the parameters with init"
    with pytest.raises(sw.ShapeError, match=rf"{text}.* \(at .*test_translation_arguments"):
        CALLS[what](params, SOURCE)


def test_all_parameters_are_looked_at() -> None:
    def loss(params: Any, config: translation.TranslationConfig = CONFIG) -> Any:
        return translation.loss(params, SOURCE, SOURCE, config)

    dense = translation.init(np.random.default_rng(0), replace(CONFIG, dense_hidden_dim=4))
    with pytest.raises(
        ValueError, match=r"^loss: params\['encoder'\]\['pairs'\] must have 'moe', got the keys 'dense', 'w"
    ):
        loss(dense)
    with pytest.raises(
        sw.DTypeError, match=r"^loss: params\['source'\]\['table'\] must be an array of floats, got int64"
    ):
        loss(sw.tree.map(lambda x: x.astype(np.int64), PARAMS))
    with pytest.raises(sw.DTypeError, match=r"^loss: params\['output'\] must be an array of floats, got NoneType None"):
        loss({**PARAMS, "output": None})
    # A table of positions may be longer than the sentences, and other keys are no matter.
    shorter = loss({**PARAMS, "note": 1}, replace(CONFIG, target_length=3))[0]
    assert float(shorter) == float(loss(PARAMS)[0])


NUMBERS: dict[str, Any] = {
    "flat_beam_search: alpha must": lambda x: flat(alpha=x),
    "flat_beam_search: gap must": lambda x: flat(gap=x),
    "sample: temperature must": lambda x: draw(temperature=x),
    "TranslationConfig: dropout must": lambda x: replace(CONFIG, dropout=x),
    "TranslationConfig: label_smoothing must": lambda x: replace(CONFIG, label_smoothing=x),
    "TranslationConfig: aux_weight must": lambda x: replace(CONFIG, aux_weight=x),
    "MoEConfig: capacity_factor must": lambda x: models.MoEConfig(4, 8, 8, capacity_factor=x),
    "TransformerConfig: aux_weight must": lambda x: models.TransformerConfig(2, CONFIG.moe, aux_weight=x),
}
OR_NONE: dict[str, Any] = {
    "flat_beam_search: eos_margin must": lambda x: flat(eos_margin=x),
    "sample: top_p must": lambda x: draw(top_p=x),
    "TranslationConfig: decoding_capacity_factor must": lambda x: replace(CONFIG, decoding_capacity_factor=x),
}


def flat(**options: Any) -> Any:
    return translation.flat_beam_search(PARAMS, SOURCE, CONFIG, **options)


def draw(**options: Any) -> Any:
    return translation.sample(PARAMS, SOURCE, CONFIG, sw.random.key(0), **options)


@pytest.mark.parametrize("text", [*NUMBERS, *OR_NONE])
@pytest.mark.parametrize("value", ["a", True, [0.5]])
def test_options_must_be_numbers(text: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{text} be a number, got .* \(at .*test_translation_arguments"):
        {**NUMBERS, **OR_NONE}[text](value)


@pytest.mark.parametrize("text", NUMBERS)
def test_some_options_may_not_be_none(text: str) -> None:
    with pytest.raises(TypeError, match=rf"^{text} be a number, got NoneType None \(at .*test_translation_arguments"):
        NUMBERS[text](None)


@pytest.mark.parametrize("text", [*NUMBERS, *OR_NONE])
def test_nan_is_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match=rf"^{text} .*, got nan \(at .*test_translation_arguments"):
        {**NUMBERS, **OR_NONE}[text](float("nan"))


def test_configurations_dtypes_and_layouts_are_refused_at_the_callers_line() -> None:
    rng, mesh = np.random.default_rng(0), sw.Mesh({"x": 2})
    greedy: Any = translation.greedy

    def on_mesh(**options: Any) -> Any:
        return sw.jit(lambda p, s: greedy(p, s, CONFIG, **options), mesh=mesh)(PARAMS, SOURCE)

    adam = sw.optim.adam(0.1)
    state = {"params": PARAMS, "optimizer": adam.init(PARAMS), "step": np.int32(0)}
    rows: list[tuple[type[Exception], str, Any]] = [
        (sw.DTypeError, "init: dtype must be a floating dtype, got 'int32'",
         lambda: translation.init(rng, CONFIG, "int32")),
        (TypeError, "init: config must be a TranslationConfig, got NoneType None",
         lambda: translation.init(rng, None)),
        (TypeError, "shapes: config must be a TranslationConfig, got int 3", lambda: translation.shapes(3)),
        (sw.DTypeError, "shapes: dtype must be a floating dtype, got 'floaty'",
         lambda: translation.shapes(CONFIG, "floaty")),
        (sw.DTypeError, "TranslationConfig: activations must be a floating dtype, got 'bf16'",
         lambda: replace(CONFIG, activations="bf16")),
        (sw.ShapeError, "TranslationConfig: layers must be a multiple of 4, got 6; use 8",
         lambda: replace(CONFIG, layers=6)),
        (sw.ShapeError, "parameter_bytes_per_device: devices must be an integer of at least 1, got 0",
         lambda: CONFIG.parameter_bytes_per_device(0)),
        (TypeError, "greedy: moe must be a MoEConfig or None, got str 'einsum'",
         lambda: greedy(PARAMS, SOURCE, CONFIG, moe="einsum")),
        (sw.ShapeError, "greedy: source must have at least one sentence of at least one token, got int64[2, 0]",
         lambda: greedy(PARAMS, SOURCE[:, :0], CONFIG)),
        (sw.ShardingError, 'split: an axis must be of mesh @mesh, got "z"; use one of "x"', lambda: on_mesh(axes="z")),
        (sw.ShardingError, "cache_spec: a spec for 4 dims must have at most 4 entries, got ",
         lambda: on_mesh(cache_spec=sw.P("x", None, None, None, None))),
        (ValueError, "train_step: the state must be one of this chain, got a state of 2 parts for 5 ",
         lambda: translation.train_step(CONFIG, sw.optim.gshard_adafactor())(state, SOURCE, SOURCE, None)),
    ]  # fmt: skip
    for kind, text, call in rows:
        with pytest.raises(kind, match=rf"^{re.escape(text)}.*\(at .*test_translation_arguments"):
            call()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint64])
def test_tokens_of_any_integer_dtype_are_those_of_int64(dtype: Any) -> None:
    config = cases.small(source_vocabulary=400, target_vocabulary=300, target_length=4, pad=0, bos=299, eos=2)
    params = translation.init(np.random.default_rng(0), config)
    expected = float(translation.loss(params, SOURCE, SOURCE, config)[0])
    tokens = SOURCE.astype(dtype)
    assert float(translation.loss(params, tokens, tokens, config)[0]) == expected
    run = sw.jit(lambda p, s: translation.loss(p, s, s, config, axes="x")[0], mesh=sw.Mesh({"x": 2}))
    assert float(run(params, tokens)) == pytest.approx(expected, rel=1e-6)
    scores = translation.greedy(params, tokens, config).scores
    np.testing.assert_array_equal(scores, translation.greedy(params, SOURCE, config).scores)


def test_sharded_tokens_are_read_with_weights_of_numpy() -> None:
    tokens = sw.device_put(SOURCE, sw.Mesh({"x": 2}))
    found = translation.loss(PARAMS, tokens, tokens, CONFIG)[0]
    assert float(found) == pytest.approx(float(translation.loss(PARAMS, SOURCE, SOURCE, CONFIG)[0]), rel=1e-6)
    scores = np.asarray(translation.greedy(PARAMS, tokens, CONFIG).scores)
    np.testing.assert_allclose(scores, translation.greedy(PARAMS, SOURCE, CONFIG).scores, rtol=1e-5)


def test_scores_leave_out_the_token_of_padding() -> None:
    found = translation.greedy(PARAMS, SOURCE, CONFIG, steps=1)
    memory, _, _ = translation.encode(PARAMS, SOURCE, CONFIG)
    start = np.full((2, 1), CONFIG.bos)
    logits = translation.decode(PARAMS, start, memory, SOURCE, CONFIG)[0][:, -1].astype(np.float64)
    logits[:, CONFIG.pad] = -np.inf
    best = logits.max(axis=-1)
    np.testing.assert_allclose(found.scores[:, 0], -np.log(np.exp(logits - best[:, None]).sum(axis=-1)), rtol=1e-5)
