# SPDX-License-Identifier: Apache-2.0
"""Narrow activations of the translation model: the loss and every search, what is gathered, and the report."""

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


# ---- what is gathered, and the report -------------------------------------------------------------------------------

SIZES = {"moe": models.MoEConfig(8, 64, 128, group_size=56), "source_length": 14, "target_length": 14, "head_dim": 16}
IN_FLOAT32 = re.compile(r"'table'|'positions'|norm'\]")  # looked up or added, not multiplied
EXPERTS_OF_Y = models.Axes("x", "y")  # on a 2x4 mesh, two devices have each expert


def step_of(activations: str, mesh: sw.Mesh, axes: Any, specs: Any = None, **options: Any) -> Any:
    config = cases.small(**SIZES, layers=8, activations=activations, target_vocabulary=16, source_vocabulary=32)
    optimizer = sw.optim.adam(1e-3)
    state = translation.init_state(translation.shapes(config), optimizer)
    source = sw.ShapeDtypeStruct((64, 14), np.int32)
    if specs is not None:
        shardings = sw.tree.map(specs, state)
        options = {"in_shardings": (shardings, sw.P("x"), sw.P("x"), None), "out_shardings": (shardings, None)}
    step = sw.jit(translation.train_step(config, optimizer, axes=axes), mesh=mesh, donate_argnums=0, **options)
    return step.lower(state, source, source, sw.random.key(0)).compile()


@pytest.mark.parametrize(
    ("mesh", "axes"), [(sw.Mesh({"x": 8}), "x"), (sw.Mesh({"x": 2, "y": 4}), EXPERTS_OF_Y)], ids=["8", "2x4"]
)
def test_shard_update_gathers_the_weights_of_products_in_bfloat16(mesh: sw.Mesh, axes: Any) -> None:
    gathered: dict[str, dict[str, tuple[str, float]]] = {}
    for activations in ("float32", "bfloat16"):
        program = step_of(activations, mesh, axes, shard_update="x")
        rows = [row for row in program.collectives() if "gather of state['params']" in row.cause]
        gathered[activations] = {row.cause: (row.dtype, row.bytes * row.count) for row in rows}
    multiplied = {leaf: row for leaf, row in gathered["float32"].items() if not IN_FLOAT32.search(leaf)}
    assert len(multiplied) >= 31
    assert {dtype for dtype, _ in gathered["float32"].values()} == {"float32"}
    for leaf, (dtype, size) in gathered["bfloat16"].items():
        if leaf in multiplied:
            assert (dtype, size) == ("bfloat16", multiplied.pop(leaf)[1] / 2), leaf
        else:
            assert dtype == "float32"
    assert not multiplied


def test_split_weights_are_gathered_and_their_gradients_reduced_in_bfloat16() -> None:
    def split_somewhere(leaf: Any) -> Any:
        """Experts by expert, other large weights by their last dim that 8 devices divide."""
        if len(leaf.shape) == 4 and leaf.shape[1] == 8:
            return sw.P(None, "x")
        dims = [i for i, size in enumerate(leaf.shape) if size % 8 == 0]
        return sw.P(*[None] * dims[-1], "x") if dims and leaf.size >= 512 else sw.P()

    received = {}
    for activations in ("float32", "bfloat16"):
        program = step_of(activations, sw.Mesh({"x": 8}), "x", split_somewhere)
        # Without tables and positions, of 16, 32 and 14 rows.
        for kind in ("all_gather", "reduce_scatter"):
            rows = [row for row in program.collectives() if row.kind == kind and row.shape[0] not in (14, 16, 32)]
            assert {row.dtype for row in rows} == {activations}
            received[kind, activations] = sum(row.bytes * row.count for row in rows)
    for kind in ("all_gather", "reduce_scatter"):
        assert received[kind, "bfloat16"] == received[kind, "float32"] / 2 > 0


def test_the_report_of_precision_is_read_off_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    config = cases.small(**SIZES)
    narrow = replace(config, activations="bfloat16")
    assert set(translation.precision(config).values()) == {"float32"}
    expected = {
        "weights": "float32",
        "weights in products": "bfloat16",
        "weights in lookups": "float32",
        "weights elsewhere": "float32",
        "activations in products": "bfloat16",
        "exponentials, logarithms, roots": "float32",
        "products in gradients": "bfloat16",
        "gradients": "float32",
    }
    assert translation.precision(narrow) == expected
    assert translation.precision(replace(narrow, tied=True)) == expected
    # A model whose last product keeps its weight wide has another report.
    wide = lambda weight, x: weight  # noqa: E731
    monkeypatch.setattr("shardwise.models.translation.model.as_operand", wide)
    changed = translation.precision(narrow)
    assert changed["weights in products"] == "bfloat16 and float32"
    assert changed["products in gradients"] == "bfloat16 and float32"


def test_precision_refuses_what_is_no_model() -> None:
    with pytest.raises(TypeError, match=r"^precision: config must be a TranslationConfig, got"):
        translation.precision(SIZES)
    with pytest.raises(sw.DTypeError, match=r"^precision: dtype must be a floating dtype, got 'int32'"):
        translation.precision(cases.small(), "int32")
