# SPDX-License-Identifier: Apache-2.0
"""Narrow activations of the translation model: the loss and every search, in plain NumPy and jitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import models
from shardwise.models import translation
from tests.models import translation_cases as cases

RNG = np.random.default_rng(0)
MOE = models.MoEConfig(4, 8, 16, capacity=8)
SOURCE, TARGET = cases.sentences(RNG, 4, 5, 9), cases.sentences(RNG, 4, 4, 9)
SEARCHES: dict[str, Any] = {
    "greedy": lambda params, config: translation.greedy(params, SOURCE, config),
    "sample": lambda params, config: translation.sample(params, SOURCE, config, sw.random.key(0), top_k=5, top_p=0.9),
    "beam_search": lambda params, config: translation.beam_search(params, SOURCE, config, beams=2),
    "flat_beam_search": lambda params, config: translation.flat_beam_search(params, SOURCE, config, beams=2),
}
# The activations, the dtype of the weights, and how far the loss may be from that of float64.
PRECISIONS = [
    (None, "float32", 1e-5),
    ("bfloat16", "float32", 2e-2),
    ("float16", "float32", 2e-3),
    (None, "bfloat16", 2e-2),
    (None, "float16", 2e-3),
]


def model(activations: str | None, dtype: str, **options: Any) -> tuple[translation.TranslationConfig, Any]:
    sizes = {"source_vocabulary": 9, "target_vocabulary": 9, "source_length": 5, "target_length": 4}
    config = cases.small(**sizes, moe=MOE, activations=activations, dropout=0.0, **options)
    return config, translation.init(np.random.default_rng(1), config, np.dtype(dtype))


def called(function: Any, params: Any, is_jitted: bool) -> Any:
    run = sw.jit(function, mesh=sw.Mesh({"x": 1})) if is_jitted else function
    return sw.tree.map(np.asarray, run(params))


@pytest.mark.parametrize("is_jitted", [False, True], ids=["numpy", "jitted"])
@pytest.mark.parametrize(("activations", "dtype", "tolerance"), PRECISIONS)
def test_loss_is_near_that_of_float64(activations: str | None, dtype: str, tolerance: float, is_jitted: bool) -> None:
    config, params = model(activations, dtype, layers=8, tied=True)
    wide, _ = model(None, "float64", layers=8, tied=True)
    expected, _ = translation.loss(sw.tree.map(lambda x: x.astype(np.float64), params), SOURCE, TARGET, wide)
    found, log = called(lambda p: translation.loss(p, SOURCE, TARGET, config), params, is_jitted)
    assert found.dtype == log["aux"].dtype == np.float32
    assert float(found) == pytest.approx(float(expected), rel=tolerance)


@pytest.mark.parametrize("is_jitted", [False, True], ids=["numpy", "jitted"])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(("activations", "dtype"), [row[:2] for row in PRECISIONS[:3]])
def test_searches_score_in_float32(activations: str | None, dtype: str, search: str, is_jitted: bool) -> None:
    config, params = model(activations, dtype)
    found = called(lambda p: SEARCHES[search](p, config), params, is_jitted)
    assert found.scores.dtype == np.float32
    best = found.tokens[:, 0]
    assert np.all(found.lengths[:, 0] > 0)
    # The scores are those of the whole decoder in float64, but for the rounding of activations.
    wide, _ = model(None, "float64")
    weights = sw.tree.map(lambda x: x.astype(np.float64), params)
    expected = [
        sum(cases.next_log_probabilities(weights, SOURCE[i : i + 1], list(row[:t]), wide)[row[t]] for t in range(n))
        for i, (row, n) in enumerate(zip(best, found.lengths[:, 0]))
    ]
    penalty = ((5 + found.lengths[:, 0]) / 6) ** (0.8 if "beam" in search else 0)
    np.testing.assert_allclose(found.scores[:, 0], expected / penalty, atol=0.1)


@pytest.mark.parametrize("is_jitted", [False, True], ids=["numpy", "jitted"])
def test_logits_are_at_least_float32(is_jitted: bool) -> None:
    found = {}
    for activations, dtype in (("bfloat16", "float32"), (None, "float64")):
        config, params = model(activations, dtype)
        encoded, _, _ = called(lambda p, c=config: translation.encode(p, SOURCE, c), params, is_jitted)
        decode = lambda p, c=config, m=encoded: translation.decode(p, TARGET, m, SOURCE, c)[0]  # noqa: E731
        found[dtype] = encoded.dtype.name, called(decode, params, is_jitted).dtype.name
    assert found == {"float32": ("bfloat16", "float32"), "float64": ("float64", "float64")}
