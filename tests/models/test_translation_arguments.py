# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of the translation model: each error begins with the function that was called."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
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


def test_scores_leave_out_the_token_of_padding() -> None:
    found = translation.greedy(PARAMS, SOURCE, CONFIG, steps=1)
    memory, _, _ = translation.encode(PARAMS, SOURCE, CONFIG)
    start = np.full((2, 1), CONFIG.bos)
    logits = translation.decode(PARAMS, start, memory, SOURCE, CONFIG)[0][:, -1].astype(np.float64)
    logits[:, CONFIG.pad] = -np.inf
    best = logits.max(axis=-1)
    np.testing.assert_allclose(found.scores[:, 0], -np.log(np.exp(logits - best[:, None]).sum(axis=-1)), rtol=1e-5)
