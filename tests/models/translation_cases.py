# SPDX-License-Identifier: Apache-2.0
"""Small translation models, and what tests compute of them without the package's own searches."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import models
from shardwise.models import translation

MESHES = [
    ("1", sw.Mesh({"x": 1}), None),
    ("8", sw.Mesh({"x": 8}), "x"),
    ("2x4", sw.Mesh({"x": 2, "y": 4}), models.Axes("x", "x", "y")),
    ("6", sw.Mesh({"x": 6}), "x"),
]


def small(**options: Any) -> translation.TranslationConfig:
    moe = models.MoEConfig(24, 8, 16, capacity=8)
    sizes: dict[str, Any] = {"heads": 4, "head_dim": 4, "source_vocabulary": 23, "target_vocabulary": 19}
    sizes |= {"source_length": 7, "target_length": 6}
    return translation.TranslationConfig(**{"layers": 4, "moe": moe, **sizes, **options})


def sentences(rng: np.random.Generator, count: int, length: int, vocabulary: int, eos: int = 2) -> np.ndarray:
    """Random sentences with their end, and padding behind it."""
    tokens = rng.integers(3, vocabulary, (count, length))
    for row, size in zip(tokens, rng.integers(1, length, count)):
        row[size] = eos
        row[size + 1 :] = 0
    return tokens


def next_log_probabilities(params: Any, source: np.ndarray, prefix: list[int], config: Any) -> np.ndarray:
    """Log-probabilities (V,) after a prefix, from the whole decoder without a cache, for one sentence (1, S)."""
    memory, _, _ = translation.encode(params, source, config)
    logits, _, _ = translation.decode(params, np.array([[config.bos, *prefix]]), memory, source, config)
    last = np.where(np.arange(config.target_vocabulary) == config.pad, -np.inf, logits[0, -1])
    return last - last.max() - math.log(np.exp(last - last.max()).sum())


def normalized(score: float, length: int, alpha: float) -> float:
    return score / ((5 + length) / 6) ** alpha


def beam_search(
    params: Any,
    source: np.ndarray,
    config: Any,
    beams: int,
    steps: int,
    alpha: float,
    gap: float,
    margin: float = math.inf,
) -> list[tuple[float, list[int]]]:
    """The n-best of one sentence by a beam search over prefixes in lists: (normalized score, tokens).

    Those that ended, and in places that are left those that go on.
    """
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, float, list[int]]] = []
    for _ in range(steps):
        going: list[tuple[float, list[int]]] = []
        for score, prefix in live:
            found = next_log_probabilities(params, source, prefix, config)
            tokens = [*prefix, config.eos]
            raw = score + found[config.eos]
            if found[config.eos] >= found.max() - margin:
                ended.append((normalized(raw, len(tokens), alpha), raw, tokens))
            going += [(score + x, [*prefix, t]) for t, x in enumerate(found) if t not in (config.eos, config.pad)]
        ended = sorted(ended, key=lambda row: -row[0])[:beams]
        live = sorted(going, key=lambda row: -row[0])[:beams]
        if len(ended) == beams and live[0][0] < min(raw for _, raw, _ in ended) - gap:
            break
    going_on = [(normalized(score, steps, alpha), prefix) for score, prefix in live[: beams - len(ended)]]
    return [*((norm, tokens) for norm, _, tokens in ended), *going_on]


def best_of_all(
    params: Any, source: np.ndarray, config: Any, steps: int, alpha: float
) -> list[tuple[float, list[int]]]:
    """Every sentence of at most ``steps`` tokens with its normalized score, the best one first."""
    words = [t for t in range(config.target_vocabulary) if t not in (config.eos, config.pad)]
    found = []
    for length in range(steps):
        for prefix in itertools.product(words, repeat=length):
            tokens = [*prefix, config.eos]
            rows = [next_log_probabilities(params, source, tokens[:i], config) for i in range(len(tokens))]
            score = sum(row[t] for row, t in zip(rows, tokens))
            found.append((normalized(score, len(tokens), alpha), tokens))
    return sorted(found, key=lambda row: -row[0])


# Twenty tokens of two sentences are a group: 24 groups of a batch of 48 sentences, for 8 and 6 devices.
TRAINED = small(
    layers=8,
    moe=models.MoEConfig(24, 8, 16, group_size=20, capacity_factor=1.5),
    source_length=10,
    target_length=10,
    dropout=0.0,
    label_smoothing=0.1,
    aux_weight=0.05,
)


def first_params() -> dict[str, Any]:
    return translation.init(np.random.default_rng(11), TRAINED, np.float64)


def training_batch(step: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(step)
    return sentences(rng, 48, 10, TRAINED.source_vocabulary), sentences(rng, 48, 10, TRAINED.target_vocabulary)
