# SPDX-License-Identifier: Apache-2.0
"""Decoding of the translation model: searches against lists of prefixes and all sentences, and what they send."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import models
from shardwise.models import translation
from shardwise.models.translation import steps
from tests.models import translation_cases as cases
from tests.support.run_seed import in_turn, is_whole

SEEDS = range(200 if is_whole() else 2)


def few(**options: Any) -> translation.TranslationConfig:
    """A vocabulary so small that every sentence can be tried; rooms so large that no token is dropped."""
    moe = models.MoEConfig(4, 8, 16, capacity=8)
    return cases.small(**{"moe": moe, "target_vocabulary": 5, "target_length": 5, "source_vocabulary": 9, **options})


def random_model(seed: int, config: Any, rows: int = 2, scale: float = 3.0) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    params = translation.init(rng, config, np.float64)
    # Larger logits: with those of a fresh model, all tokens are nearly alike.
    params["output"] = params["output"] * scale
    return params, cases.sentences(rng, rows, config.source_length, config.source_vocabulary)


def rows_of(found: translation.Translations, sentence: int) -> list[tuple[float, list[int]]]:
    rows = zip(
        np.asarray(found.scores)[sentence], np.asarray(found.tokens)[sentence], np.asarray(found.lengths)[sentence]
    )
    return [(score, list(tokens[:length])) for score, tokens, length in rows if length > 0]


def assert_same(found: list[tuple[float, list[int]]], expected: list[tuple[float, list[int]]]) -> None:
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    np.testing.assert_allclose([s for s, _ in found], [s for s, _ in expected], rtol=1e-12)


# ---- the searches ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("beams", [1, 2, 4, 8])
def test_both_searches_find_what_a_search_over_lists_finds(seed: int, beams: int) -> None:
    config = cases.small(target_vocabulary=7, target_length=5)
    params, source = random_model(seed, config)
    alpha, gap = (0.0, 0.8, 1.0)[seed % 3], (0.0, 3.0)[seed % 2]
    # Without a margin, one beam is greedy.
    options = {"beams": beams, "alpha": alpha, "gap": gap, "eos_margin": math.inf if beams == 1 else None}
    expected = [cases.beam_search(params, row[None], config, beams, 5, alpha, gap) for row in source]
    flat = translation.flat_beam_search(params, source, config, **options)
    reordered = translation.beam_search(params, source, config, **options)
    assert_same(rows_of(flat, 0) + rows_of(flat, 1), expected[0] + expected[1])
    assert_same(rows_of(reordered, 0) + rows_of(reordered, 1), expected[0] + expected[1])


@pytest.mark.parametrize("seed", range(60 if is_whole() else 6))
@pytest.mark.parametrize("search", [translation.flat_beam_search, translation.beam_search])
def test_ends_are_likely_enough_and_places_that_are_left_are_filled(search: Any, seed: int) -> None:
    config = few(target_length=4) if seed % 2 else cases.small(target_vocabulary=7, target_length=4)
    params, source = random_model(seed, config)
    margin, steps, beams = (0.0, 0.5, 1.0)[seed % 3], 1 + seed % 3, (8, 6, 8)[seed % 3]
    options = {"beams": beams, "alpha": 0.8, "gap": 3.0, "eos_margin": margin, "steps": steps}
    found = search(params, source, config, **options)
    expected = [cases.beam_search(params, row[None], config, beams, steps, 0.8, 3.0, margin) for row in source]
    assert_same(rows_of(found, 0) + rows_of(found, 1), expected[0] + expected[1])


@pytest.mark.parametrize("seed", range(3))
def test_a_wide_flat_beam_finds_the_best_of_all_sentences(seed: int) -> None:
    config = few(target_length=4)
    params, source = random_model(seed, config, rows=1)
    # 27 hypotheses of three tokens: with as many beams, none is lost.
    found = translation.flat_beam_search(params, source, config, beams=27, gap=100.0)
    expected = cases.best_of_all(params, source, config, 4, 0.8)
    assert len(expected) == 1 + 3 + 9 + 27
    assert_same(rows_of(found, 0), expected[:27])


def models_for_greedy() -> list[tuple[Any, Any, np.ndarray]]:
    """Models of which some sentences end within the steps and some do not, with ties, and with full experts."""
    found = []
    for seed in range(6):
        config = cases.small(target_length=6, decoding_capacity_factor=0.5 if seed % 3 == 2 else None)
        found.append((config, *random_model(seed, config, rows=4, scale=(3.0, 30.0)[seed % 2])))
    config, params, source = found[0]
    never = {**params, "output": params["output"].copy()}
    never["output"][config.eos] = -100 * np.abs(never["output"]).max()
    found.append((config, never, source))
    found.append((config, {**params, "output": np.zeros_like(params["output"])}, source))
    narrow = replace(config, activations="bfloat16")
    found.append((narrow, sw.tree.map(lambda x: x.astype(np.float32), params), source))
    return found


@pytest.mark.parametrize("search", [translation.flat_beam_search, translation.beam_search])
@pytest.mark.parametrize("is_jitted", [False, True], ids=["numpy", "mesh"])
def test_one_beam_is_greedy(search: Any, is_jitted: bool) -> None:
    ended = []
    for config, params, source in models_for_greedy():

        def called(f: Any, p: Any = params, s: Any = source, c: Any = config, **options: Any) -> Any:
            if not is_jitted:
                return f(p, s, c, **options)
            run = sw.jit(lambda p, s: f(p, s, c, axes="x", **options), mesh=sw.Mesh({"x": 4}))
            return sw.tree.map(np.asarray, run(p, s))

        greedy = called(translation.greedy)
        found = called(search, beams=1, alpha=0.0)
        np.testing.assert_array_equal(found.tokens, greedy.tokens)
        np.testing.assert_array_equal(found.lengths, greedy.lengths)
        np.testing.assert_allclose(found.scores, greedy.scores, rtol=1e-12)
        # Other options only change the scores.
        found = called(search, beams=1, alpha=0.8, gap=0.5)
        np.testing.assert_array_equal(found.tokens, greedy.tokens)
        np.testing.assert_allclose(found.scores, greedy.scores / ((5 + greedy.lengths) / 6) ** 0.8, rtol=1e-6)
        ended.append(np.any(greedy.tokens == config.eos, axis=-1).mean())
    assert min(ended) == 0 < max(ended)


@pytest.mark.parametrize("seed", range(3))
def test_greedy_takes_the_most_likely_tokens(seed: int) -> None:
    config = cases.small(target_length=6)
    params, source = random_model(seed, config, rows=4)
    prefixes: list[list[int]] = [[] for _ in source]
    for prefix, row in zip(prefixes, source):
        while len(prefix) < 6 and prefix[-1:] != [config.eos]:
            prefix.append(int(np.argmax(cases.next_log_probabilities(params, row[None], prefix, config))))
    greedy = translation.greedy(params, source, config)
    assert [rows_of(greedy, i)[0][1] for i in range(4)] == prefixes


@pytest.mark.parametrize("search", [translation.flat_beam_search, translation.beam_search])
@pytest.mark.parametrize("seed", range(3))
def test_hypotheses_that_go_on_follow_those_that_ended(search: Any, seed: int) -> None:
    config = few(target_length=5)
    params, source = random_model(seed, config, rows=1)

    def prefixes(length: int) -> list[tuple[float, list[int]]]:
        """The four most likely prefixes, which do not end, by a beam search over lists."""
        live: list[tuple[float, list[int]]] = [(0.0, [])]
        for _ in range(length):
            going = []
            for score, prefix in live:
                row = cases.next_log_probabilities(params, source, prefix, config)
                going += [(score + x, [*prefix, t]) for t, x in enumerate(row) if t not in (config.eos, config.pad)]
            live = sorted(going, key=lambda row: -row[0])[:4]
        return live

    # One step: of four places, one has the end, and the three other tokens go on.
    first = cases.next_log_probabilities(params, source, [], config)
    found = rows_of(search(params, source, config, beams=4, steps=1), 0)
    assert_same(found, [(first[config.eos], [config.eos]), *prefixes(1)])
    # No end is likely enough: all places have hypotheses that go on.
    norm = params["decoder"]["norm"]
    params["decoder"]["norm"] = {"scale": np.zeros_like(norm["scale"]), "bias": np.ones_like(norm["bias"])}
    params["output"] = np.repeat(np.linspace(0.1, 0.3, 5)[[0, 3, 1, 4, 2], None], 8, axis=1)
    found = rows_of(search(params, source, config, beams=4, steps=3, eos_margin=0.0, alpha=0.0), 0)
    assert_same(found, prefixes(3))


@pytest.mark.parametrize("spec", in_turn([None, sw.P("x", None, "y"), sw.P("x", "y"), sw.P(None, ("x", "y"))]))
def test_searches_on_meshes_find_numpys_sentences(spec: Any) -> None:
    config = cases.small(target_length=4)
    params, source = random_model(1, config, rows=4)
    mesh, axes = sw.Mesh({"x": 2, "y": 2}), models.Axes("x", "x", "y")
    for search, options in (
        (translation.flat_beam_search, {"beams": 2}),
        (translation.beam_search, {"beams": 2}),
        (translation.greedy, {}),
    ):
        expected = search(params, source, config, **options)
        run = sw.jit(lambda p, s, f=search, o=options: f(p, s, config, axes=axes, cache_spec=spec, **o), mesh=mesh)
        found = run(params, source)
        np.testing.assert_array_equal(np.asarray(found.tokens), expected.tokens)
        np.testing.assert_allclose(np.asarray(found.scores), expected.scores, rtol=1e-12)


def test_keys_and_values_are_split_without_other_axes() -> None:
    config = cases.small(target_length=4)
    params, source = random_model(1, config, rows=4)
    mesh = sw.Mesh({"x": 2})
    for search in (translation.greedy, translation.beam_search, translation.flat_beam_search):
        texts = [
            sw.jit(lambda p, s, f=search, c=spec: f(p, s, config, cache_spec=c), mesh=mesh)
            .trace(params, source)
            .as_text()
            for spec in (None, sw.P(None, "x"))
        ]
        assert ['[{}, {"x"}, {}, {}]' in text for text in texts] == [False, True]
        with pytest.raises(sw.ShardingError, match='an axis must be of mesh @mesh, got "z"'):
            sw.jit(lambda p, s, f=search: f(p, s, config, cache_spec=sw.P("z")), mesh=mesh)(params, source)


def test_scores_of_a_model_that_diverged_are_nan() -> None:
    config = cases.small(target_length=4)
    params, source = random_model(1, config, rows=4)
    params["output"] = params["output"] * np.nan
    for search, options in (
        (translation.flat_beam_search, {"beams": 2}),
        (translation.beam_search, {"beams": 2}),
        (translation.flat_beam_search, {"beams": 1}),
        (translation.greedy, {}),
    ):
        run = sw.jit(lambda p, s, f=search, o=options: f(p, s, config, axes="x", **o), mesh=sw.Mesh({"x": 2}))
        for found in (search(params, source, config, **options), run(params, source)):
            assert np.all(np.isnan(np.asarray(found.scores)))
            assert np.all(np.asarray(found.lengths) > 0)


# ---- capacity in decoding -------------------------------------------------------------------------------------------


def test_without_drops_scores_are_those_of_the_whole_decoder() -> None:
    config = cases.small(layers=8, target_length=5)
    params, source = random_model(2, config, rows=3)
    roomy = replace(config, decoding_capacity_factor=12.0)  # 24 experts: room for all tokens in each of them
    for search in (translation.greedy, translation.beam_search, translation.flat_beam_search):
        alone, grouped = (search(params, source, c) for c in (config, roomy))
        np.testing.assert_array_equal(grouped.tokens, alone.tokens)
        np.testing.assert_allclose(grouped.scores, alone.scores, rtol=1e-12)
    found = translation.greedy(params, source, roomy)
    expected = [
        sum(cases.next_log_probabilities(params, source[i : i + 1], tokens[:t], config)[tokens[t]] for t in range(n))
        for i, (n, tokens) in enumerate(zip(found.lengths[:, 0], found.tokens[:, 0].tolist()))
    ]
    np.testing.assert_allclose(found.scores[:, 0], expected, rtol=1e-12)


def test_any_number_of_sentences_is_translated() -> None:
    config, params = cases.TRAINED, cases.first_params()  # two sentences are a group
    source, _ = cases.training_batch(0)
    for search in (translation.greedy, translation.beam_search, translation.flat_beam_search):
        whole = search(params, source[:4], config)
        odd = search(params, source[:3], config)
        # The first two are in their group, or, with an odd number of sentences, each in its own.
        alone = replace(config, moe=replace(config.moe, group_size=10, capacity=config.moe.capacity_for(10)))
        expected = search(params, source[:3], alone)
        np.testing.assert_array_equal(odd.tokens, expected.tokens)
        np.testing.assert_allclose(odd.scores, expected.scores, rtol=1e-12)
        assert not np.array_equal(odd.scores, whole.scores[:3])
        # Two devices hold 3 and 2 of the 5 sentences, so each group is a single sentence.
        run = sw.jit(lambda p, s, f=search: f(p, s, config, axes="x"), mesh=sw.Mesh({"x": 2}))
        single = search(params, source[:6], alone)
        np.testing.assert_array_equal(np.asarray(run(params, source[:5]).tokens), single.tokens[:5])


def test_full_experts_drop_alike_in_both_searches_and_on_a_mesh() -> None:
    config = cases.small(target_length=4, decoding_capacity_factor=1.0)
    params, source = random_model(1, config, rows=8)
    flat, reordered = (f(params, source, config) for f in (translation.flat_beam_search, translation.beam_search))
    np.testing.assert_array_equal(flat.tokens, reordered.tokens)
    np.testing.assert_allclose(flat.scores, reordered.scores, rtol=1e-12)
    roomy = translation.flat_beam_search(params, source, replace(config, decoding_capacity_factor=None))
    assert np.max(np.abs(flat.scores - roomy.scores)) > 1e-3
    # Each of two devices is a batch of its own.
    parts = [translation.flat_beam_search(params, source[rows], config) for rows in (slice(4), slice(4, 8))]
    run = sw.jit(lambda p, s: translation.flat_beam_search(p, s, config, axes="x"), mesh=sw.Mesh({"x": 2}))
    found = run(params, source)
    np.testing.assert_array_equal(np.asarray(found.tokens), np.concatenate([part.tokens for part in parts]))
    np.testing.assert_allclose(np.asarray(found.scores), np.concatenate([part.scores for part in parts]), rtol=1e-12)


def test_tokens_of_done_sentences_take_no_slots() -> None:
    config = cases.small(decoding_capacity_factor=0.01)  # one slot for each expert
    params, source = random_model(0, config, rows=1)
    many = np.repeat(source, 6, axis=0)
    found = {}
    for rows, live in ((1, [1]), (6, [0, 0, 0, 0, 0, 1]), (6, [1, 1, 1, 1, 1, 1])):
        prepared = steps.prepare(params, many[:rows], config, models.Axes())
        moe = steps.decoding_moe("test", config, None, many[:rows], 1, models.Axes())
        decoder = steps.Decoder(params, config, moe, models.Axes(), None)
        tokens, zero = np.full((rows, 1), config.bos), np.zeros((rows, 1), np.int32)
        visible, going_on = np.ones((rows, 1, 1), np.bool_), np.array(live, np.bool_)[:, None]
        logits, _ = decoder(prepared, decoder.empty(prepared, 1), tokens, zero, np.int32(0), visible, going_on)
        found[sum(live), rows] = logits[-1]
    np.testing.assert_allclose(found[1, 6], found[1, 1], rtol=1e-12)
    assert np.max(np.abs(found[6, 6] - found[1, 1])) > 1e-3


@pytest.mark.parametrize("search", [translation.beam_search, translation.flat_beam_search])
def test_the_papers_models_exchange_two_slots_for_a_token(search: Any) -> None:
    config = replace(translation.configs["600B"], layers=4)

    def exchanges(factor: float | None, sentences: int) -> list[tuple[str, float]]:
        """The all-to-alls of a step with 4 beams, and this many sentences a device."""
        chosen = replace(config, decoding_capacity_factor=factor)
        run = sw.jit(lambda p, s: search(p, s, chosen, axes="x"), mesh=sw.Mesh({"x": 2048}), out_shardings=sw.P("x"))
        source = sw.ShapeDtypeStruct((2048 * sentences, 128), np.int32)
        rows = run.lower(translation.shapes(chosen), source).compile().collectives()
        return [(row.kind, row.bytes) for row in rows if row.bound == "per trip" and row.shape != ()]

    assert config.decoding_capacity_factor == 1
    # 256 sentences are 1,024 tokens: one slot of 1,024 floats of each expert is two slots for each token.
    assert exchanges(1.0, 256) == [("all_to_all", 2 * 1024 * 1024 * 4 * 2047 / 2048)] * 2
    assert exchanges(1.0, 16) == [("all_to_all", 2048 * 1024 * 4 * 2047 / 2048)] * 2
    text = f"^{search.__name__}: a new token should have at most 32 slots, of which it fills 2, got 2048: .* set decod"
    with pytest.warns(sw.ShardingWarning, match=text) as warned:
        assert exchanges(None, 16) == [("all_to_all", 64 * 2048 * 1024 * 4 * 2047 / 2048)] * 2
    assert warned[0].filename == __file__


def test_a_warning_tells_of_too_few_sentences() -> None:
    config = cases.small(moe=models.MoEConfig(256, 4, 4, capacity=8), decoding_capacity_factor=1.0)
    params, source = random_model(0, config, rows=4)
    text = "^greedy: .* got 64: 256 experts of capacity 1 for groups of 4; decode more sentences at a time on each"
    with pytest.warns(sw.ShardingWarning, match=text):
        translation.greedy(params, source, config)


# ---- sampling -------------------------------------------------------------------------------------------------------


def test_samples_follow_the_models_distribution() -> None:
    config = few(target_length=1)
    params, source = random_model(3, config, rows=1)
    many = np.repeat(source, 4000, axis=0)
    log_probabilities = cases.next_log_probabilities(params, source, [], config)
    for options in ({}, {"temperature": 0.5}, {"top_k": 2}, {"top_p": 0.6}):
        logits = log_probabilities / options.get("temperature", 1.0)
        order, wanted = np.argsort(-logits), np.exp(logits - logits.max())
        kept = options.get("top_k", 5)
        if "top_p" in options:
            share = np.cumsum(wanted[order]) / wanted.sum()
            kept = 1 + int(np.sum(share < options["top_p"]))
        wanted[order[kept:]] = 0
        found = translation.sample(params, many, config, sw.random.key(0), **options)
        counts = np.bincount(found.tokens[:, 0, 0], minlength=5) / 4000
        np.testing.assert_allclose(counts, wanted / wanted.sum(), atol=0.03)
        np.testing.assert_allclose(found.scores[:, 0], log_probabilities[found.tokens[:, 0, 0]], rtol=1e-12)


def test_extreme_temperatures_draw_the_best_token_or_any_but_padding() -> None:
    config = few(target_length=1, pad=4)
    params, source = random_model(3, config, rows=1)
    many = sw.tree.map(lambda x: x.astype(np.float32), params), np.repeat(source, 400, axis=0)
    with np.errstate(over="ignore"):  # of all logits but the largest
        cold = translation.sample(*many, config, sw.random.key(0), temperature=1e-42)
    np.testing.assert_array_equal(cold.tokens, translation.greedy(*many, config).tokens)
    hot = translation.sample(*many, config, sw.random.key(0), temperature=1e35).tokens
    np.testing.assert_allclose(np.bincount(hot[:, 0, 0], minlength=5) / 400, [0.25, 0.25, 0.25, 0.25, 0], atol=0.1)


def test_a_key_draws_the_same_sentences_on_every_mesh() -> None:
    config = cases.small()
    params, source = random_model(4, config, rows=8)
    expected = translation.sample(params, source, config, sw.random.key(5), top_p=0.9)
    for _, mesh, axes in cases.MESHES:
        run = sw.jit(lambda p, s, k, a=axes: translation.sample(p, s, config, k, top_p=0.9, axes=a), mesh=mesh)
        found = run(params, source, sw.random.key(5))
        np.testing.assert_array_equal(np.asarray(found.tokens), expected.tokens)


# ---- programs -------------------------------------------------------------------------------------------------------


def flat_program(config: Any, mesh: sw.Mesh | None = None, axes: Any = "x") -> Any:
    shapes = translation.shapes(config)
    source = sw.ShapeDtypeStruct((16, config.source_length), np.int32)
    run = sw.jit(
        lambda p, s: translation.flat_beam_search(p, s, config, beams=4, axes=axes),
        mesh=mesh or sw.Mesh({"x": 8}),
        out_shardings=sw.P("x"),
    )
    return run.lower(shapes, source).compile()


def test_a_step_sends_two_exchanges_for_each_moe_layer_and_nothing_else() -> None:
    config = cases.small(layers=8, moe=models.MoEConfig(8, 8, 16, capacity=8))
    in_loop = [row for row in flat_program(config).collectives() if row.bound == "per trip"]
    assert [row.kind for row in in_loop].count("all_to_all") == 2 * 2
    # The condition of the loop: whether any sentence is open. Its result is one bool.
    others = [(row.kind, row.dtype, row.shape) for row in in_loop if row.kind != "all_to_all"]
    assert others == [("all_reduce", "bool", ())]


CARRIES = {"stablehlo.while", "stablehlo.return", "stablehlo.constant"}  # have the cache in their types, and read none


HEADS = sw.Mesh({"x": 2, "y": 4}), models.Axes("x", "x", "y")


@pytest.mark.parametrize("activations", [None, "bfloat16"])
@pytest.mark.parametrize("split", ["sentences", "heads"])
def test_only_updates_and_products_read_the_cache(split: str, activations: str | None) -> None:
    config = cases.small(moe=models.MoEConfig(8, 8, 16, capacity=8), activations=activations)
    program = flat_program(config) if split == "sentences" else flat_program(config, *HEADS)
    # 16 sentences on 8 or 2 devices, 4 beams of 6 steps, 4 heads or 1 of 4
    shape = "2x24x4x4" if split == "sentences" else "8x24x1x4"
    cache = f"tensor<{shape}x{'bf16' if activations else 'f32'}>"
    readers = set()
    for line in program.as_text("local").splitlines():
        inputs = line.split("->")[0] if "->" in line else line
        if cache in inputs.partition(" : ")[2]:
            readers |= set(re.findall(r"(?:stablehlo|shardwise)\.\w+", line))
    assert readers - CARRIES == {"stablehlo.dynamic_update_slice", "stablehlo.dot_general"}
