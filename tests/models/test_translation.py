# SPDX-License-Identifier: Apache-2.0
"""The translation model: the numbers of a JAX program of its own on every mesh, its parts, and the paper's sizes."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import models
from shardwise.models import translation
from tests.models import translation_cases as cases
from tests.support.once_per_run import written_by
from tests.support.run_seed import in_turn, is_whole

# experts of all layers, and billions of weights: table 1 of the paper, its misprints 36684 and 12228 corrected
TABLE_1 = {
    "600B": (36864, 600, 0.04),
    "200B": (12288, 200, 0.04),
    "150B": (9216, 150, 0.04),
    "50B": (3072, 50, 0.04),
    "37B": (2304, 37, 0.069),
    "12.5B": (768, 12.5, 0.062),
    "1T": (61440, 1000, 0.04),
}


JAX_MESHES = in_turn(cases.MESHES)


@pytest.fixture(scope="module")
def jax_numbers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, "tests.models.translation_worker", "translation.npz"))


def assert_leaves(found: Any, file: Any, name: str) -> None:
    leaves = sw.tree.leaves(found)
    assert len(leaves) == sum(key.startswith(f"{name}/") for key in file.files)
    for i, leaf in enumerate(leaves):
        expected = file[f"{name}/{i}"]
        assert np.max(np.abs(np.asarray(leaf) - expected)) <= 1e-9 * max(1e-3, np.max(np.abs(expected))), (name, i)


# ---- the same model in JAX ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mesh", "axes"), [m[1:] for m in JAX_MESHES], ids=[m[0] for m in JAX_MESHES])
def test_twenty_steps_are_those_of_a_jax_program(mesh: sw.Mesh, axes: Any, jax_numbers: Any) -> None:
    config, params = cases.TRAINED, cases.first_params()
    optimizer = sw.optim.sgd(0.1)
    step = sw.jit(translation.train_step(config, optimizer, axes=axes), mesh=mesh)
    gradients = sw.grad(lambda p, *batch: translation.loss(p, *batch, config, axes=axes)[0])
    assert_leaves(sw.jit(gradients, mesh=mesh)(params, *cases.training_batch(0)), jax_numbers, "gradient")
    state, losses, dropped = translation.init_state(params, optimizer), [], 0
    for i in range(20):
        state, log = step(state, *cases.training_batch(i), None)
        losses.append(float(log["loss"]))
        dropped += int(np.sum(np.asarray(log["decoder"]["dropped"])))
    np.testing.assert_allclose(losses, jax_numbers["losses"], rtol=1e-9)
    assert_leaves(state["params"], jax_numbers, "params")
    assert dropped > 0  # overflow is part of what is compared


# ---- parts ----------------------------------------------------------------------------------------------------------


def batch(seed: int = 0, rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return cases.sentences(rng, rows, 7, 23), cases.sentences(rng, rows, 6, 19)


def test_dropout_and_routing_by_key_are_alike_on_every_mesh() -> None:
    config = cases.small(dropout=0.3)
    params = translation.init(np.random.default_rng(0), config, np.float64)
    source, target = batch()
    key = sw.random.key(7)
    expected, log = translation.loss(params, source, target, config, key=key)
    assert expected != translation.loss(params, source, target, config)[0]
    assert expected != translation.loss(params, source, target, config, key=sw.random.key(8))[0]
    for _, mesh, axes in cases.MESHES:
        function = lambda p, s, t, k, axes=axes: translation.loss(p, s, t, config, axes=axes, key=k)  # noqa: E731
        value, found = sw.jit(function, mesh=mesh)(params, source, target, key)
        assert float(value) == pytest.approx(float(expected), rel=1e-12)
        for name in ("encoder", "decoder"):
            np.testing.assert_array_equal(np.asarray(found[name]["load"]), log[name]["load"])


def test_padding_of_a_source_changes_no_logit() -> None:
    config = replace(cases.small(), source_length=12)
    params = translation.init(np.random.default_rng(0), config, np.float64)
    source, target = batch()
    longer = np.pad(source, ((0, 0), (0, 5)))
    logits, aux, _ = translation.translation(params, source, target, config)
    padded, padded_aux, _ = translation.translation(params, longer, target, config)
    np.testing.assert_allclose(padded, logits, rtol=1e-11, atol=1e-12)
    assert padded_aux == pytest.approx(aux, rel=1e-12)


def test_a_later_target_token_changes_no_earlier_logit() -> None:
    config = cases.small()
    params = translation.init(np.random.default_rng(0), config, np.float64)
    source, target = np.full((1, 5), 7), np.array([[1, 5, 6, 7, 8, 9]])
    changed = target.copy()
    changed[0, 4] = 10
    first, second = (translation.translation(params, source, t, config)[0][0] for t in (target, changed))
    np.testing.assert_allclose(first[:4], second[:4], rtol=1e-12, atol=1e-14)
    assert np.max(np.abs(first[4] - second[4])) > 1e-3


def test_a_tied_table_has_the_gradients_of_both_of_its_uses() -> None:
    config, mesh = cases.small(dropout=0.0), sw.Mesh({"x": 4})
    params = translation.init(np.random.default_rng(0), config, np.float64)
    params["output"] = params["target"]["table"]
    tied = {name: part for name, part in params.items() if name != "output"}
    found = [
        sw.jit(sw.grad(lambda p, c=c: translation.loss(p, *batch(), c, axes="x")[0]), mesh=mesh)(p)
        for c, p in ((config, params), (replace(config, tied=True), tied))
    ]
    apart, together = (sw.tree.map(np.asarray, gradient) for gradient in found)
    apart["target"]["table"] = apart["target"]["table"] + apart.pop("output")
    rows = list(zip(sw.tree.leaves(together), sw.tree.leaves(apart), strict=True))
    assert max(np.max(np.abs(a - b)) for a, b in rows) <= 1e-13


def test_label_smoothing_is_cross_entropy_with_the_smoothed_distribution() -> None:
    rng = np.random.default_rng(0)
    logits, targets, mask = rng.standard_normal((3, 4, 7)), rng.integers(0, 7, (3, 4)), rng.random((3, 4)) < 0.7
    wanted = 0.8 * np.eye(7)[targets] + 0.2 / 7
    losses = -(wanted * np.log(models.softmax(logits))).sum(-1)
    found = models.cross_entropy(logits, targets, mask=mask, smoothing=0.2)
    assert found == pytest.approx(losses[mask].mean(), rel=1e-12)


def test_accumulated_gradients_are_those_of_the_batch() -> None:
    config = cases.small(layers=8, dropout=0.0, aux_weight=0.05)
    params = translation.init(np.random.default_rng(0), config, np.float64)
    optimizer = sw.optim.sgd(0.5)
    results = []
    for parts, axes in ((1, None), (4, None), (4, "x")):
        step = translation.train_step(config, optimizer, axes=axes, accumulate=parts)
        step = sw.jit(step, mesh=sw.Mesh({"x": 4 if axes else 1}))
        results.append(step(translation.init_state(params, optimizer), *batch(), None))
    for name in ("loss", "aux", "cross_entropy", "correct"):
        found = [float(log[name]) for _, log in results]
        np.testing.assert_allclose(found, found[0], rtol=1e-12, err_msg=name)
    loads = [np.asarray(log["encoder"]["load"]).tolist() for _, log in results]
    assert loads == [loads[0]] * 3
    joined = [np.concatenate([np.ravel(x) for x in sw.tree.leaves(state["params"])]) for state, _ in results]
    np.testing.assert_allclose(joined, np.stack([joined[0]] * 3), rtol=1e-10, atol=1e-13)


def test_a_run_that_a_checkpoint_resumes_on_other_devices_goes_on(tmp_path: Path) -> None:
    config = cases.small(dropout=0.1)
    params = translation.init(np.random.default_rng(0), config, np.float64)
    optimizer = sw.optim.gshard_adafactor(0.1)
    first = translation.init_state(params, optimizer)
    steps = {n: sw.jit(translation.train_step(config, optimizer, axes="x"), mesh=sw.Mesh({"x": n})) for n in (8, 4)}
    key, state, losses = sw.random.key(1), first, []
    for i in range(6):
        if i == 3:
            sw.save(tmp_path, state, step=i)
        state, log = steps[8](state, *batch(i), key)
        losses.append(float(log["loss"]))
    resumed, found = sw.load(tmp_path, like=first), []
    for i in range(3, 6):
        resumed, log = steps[4](resumed, *batch(i), key)
        found.append(float(log["loss"]))
    np.testing.assert_allclose(found, losses[3:], rtol=1e-9)
    assert int(np.asarray(resumed["step"])) == 6


# ---- the same model without experts ---------------------------------------------------------------------------------


def work_by_hidden_units(config: Any) -> float:
    """The flops that a forward pass grows by for each token, pair of layers and hidden unit of ``config.moe``."""
    totals = []
    for hidden in (16, 32):
        wide = config.dense_hidden_dim and 2 * hidden
        sized = replace(config, moe=replace(config.moe, hidden_dim=hidden), dense_hidden_dim=wide)
        run = sw.jit(lambda p, s, t, c=sized: translation.translation(p, s, t, c)[0], mesh=sw.Mesh({"x": 1}))
        source, target = (sw.ShapeDtypeStruct((16, length), np.int32) for length in (7, 6))
        program = run.lower(translation.shapes(sized), source, target).compile()
        totals.append(sum(row.flops for row in program.work()))
    return (totals[1] - totals[0]) / (16 * (7 + 6) * config.pairs * 16)


def test_a_dense_model_of_equal_work_computes_as_much_for_a_token() -> None:
    moe = models.MoEConfig(8, 8, 16, group_size=4)
    assert moe.slots_per_token(4) == 2  # the experts compute no more than what tokens fill
    experts = cases.small(layers=8, moe=moe)
    dense = replace(experts, dense_hidden_dim=2 * 16)
    # Per hidden unit, a dense layer has 4 flops for each of 8 numbers, and one maximum: once, and twice in the second.
    assert work_by_hidden_units(experts) == work_by_hidden_units(dense) == 3 * (4 * 8 + 1)
    assert experts.expert_flops_per_token() == dense.expert_flops_per_token() == 2 * 4 * 8 * 16
    counts = dense.parameter_counts()
    assert (counts["experts"], counts["gates"], dense.moe_layers) == (0, 0, 0)
    assert sum(leaf.size for leaf in sw.tree.leaves(translation.shapes(dense))) == sum(counts.values())
    assert dense.parameter_bytes_per_device(3) == 4 * sum(counts.values())  # no expert that devices would divide


def test_a_dense_model_trains_and_searches_on_a_mesh_as_in_numpy() -> None:
    config = cases.small(layers=8, dense_hidden_dim=32, dropout=0.1)
    params = translation.init(np.random.default_rng(0), config, np.float64)
    source, target = batch()
    key, mesh, axes = sw.random.key(0), sw.Mesh({"x": 4}), models.Axes("x")
    expected, log = translation.loss(params, source, target, config, key=key)
    run = sw.jit(lambda p, s, t, k: translation.loss(p, s, t, config, axes=axes, key=k), mesh=mesh)
    assert float(run(params, source, target, key)[0]) == pytest.approx(float(expected), rel=1e-12)
    assert (log["aux"], log["encoder"], log["decoder"]) == (0, {}, {})
    search = lambda p, s, axes: translation.flat_beam_search(p, s, config, beams=2, axes=axes)  # noqa: E731
    found = sw.jit(lambda p, s: search(p, s, axes), mesh=mesh)(params, source)
    np.testing.assert_array_equal(np.asarray(found.tokens), search(params, source, None).tokens)
    gradient = sw.grad(lambda p: translation.loss(p, source, target, config)[0])
    leaves = sw.tree.leaves(sw.jit(gradient, mesh=sw.Mesh({"x": 1}))(params))
    assert all(np.any(np.asarray(leaf) != 0) for leaf in leaves)


def test_parameters_may_be_closed_over() -> None:
    config = cases.small(target_length=4)
    params = translation.init(np.random.default_rng(0), config)
    source = cases.sentences(np.random.default_rng(1), 4, 7, 19)
    target = source[:, :4]
    for mesh, axes in ((sw.Mesh({"x": 1}), None), (sw.Mesh({"x": 4}), "x")):
        run = sw.jit(lambda s, a=axes: translation.flat_beam_search(params, s, config, axes=a), mesh=mesh)
        expected = translation.flat_beam_search(params, source, config)
        np.testing.assert_array_equal(np.asarray(run(source).tokens), expected.tokens)
        loss = sw.jit(lambda s, t, a=axes: translation.loss(params, s, t, config, axes=a)[0], mesh=mesh)
        assert float(loss(source, target)) == pytest.approx(float(translation.loss(params, source, target, config)[0]))
    decoder = models.TransformerConfig(2, models.MoEConfig(4, 8, 16))
    weights = models.init_transformer(np.random.default_rng(0), decoder)
    run = sw.jit(lambda tokens: models.next_token_loss(weights, tokens, decoder)[0], mesh=sw.Mesh({"x": 1}))
    assert float(run(source)) == pytest.approx(float(models.next_token_loss(weights, source, decoder)[0]))


# ---- precision ------------------------------------------------------------------------------------------------------


def step_program(config: Any, mesh: sw.Mesh, axes: Any, rows: int) -> Any:
    optimizer = sw.optim.gshard_adafactor()
    state = translation.init_state(translation.shapes(config), optimizer)
    source, target = (
        sw.ShapeDtypeStruct((rows, length), np.int32) for length in (config.source_length, config.target_length)
    )
    step = sw.jit(translation.train_step(config, optimizer, axes=axes), mesh=mesh, donate_argnums=0)
    return step.lower(state, source, target, sw.random.key(0)).compile()


def test_bfloat16_halves_exchanges_and_keeps_weights_and_update() -> None:
    sizes = {"moe": models.MoEConfig(8, 64, 128, group_size=56), "source_length": 14, "target_length": 14}
    texts, received = {}, {}
    for activations in (None, "float32", "bfloat16"):
        config = cases.small(**sizes, activations=activations)
        program = step_program(config, sw.Mesh({"x": 8}), "x", 64)
        texts[activations] = re.sub(r'loc\(.*?\)|".*?"', "", program.as_text("local"))
        rows = [row for row in program.collectives() if row.kind == "all_to_all"]
        received[activations] = sum(row.bytes * row.count for row in rows)
        dtypes = [x.dtype for x in sw.tree.leaves(translation.shapes(config))]
        assert set(dtypes) == {np.dtype(np.float32)}
    assert texts[None] == texts["float32"]
    assert received["bfloat16"] == received["float32"] / 2


def test_bfloat16_trains_like_float32() -> None:
    losses = {}
    for activations in ("float32", "bfloat16"):
        config = cases.small(activations=activations, dropout=0.0)
        params = translation.init(np.random.default_rng(0), config)
        optimizer = sw.optim.adam(0.02)
        step = sw.jit(translation.train_step(config, optimizer, axes="x"), mesh=sw.Mesh({"x": 4}))
        state = translation.init_state(params, optimizer)
        for _ in range(15):
            state, log = step(state, *batch(), sw.random.key(0))
        losses[activations] = float(log["loss"])
        assert {leaf.dtype.name for leaf in sw.tree.leaves(state["params"])} == {"float32"}
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.05)
    assert losses["bfloat16"] < 2.5


# ---- the paper's sizes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLE_1)
def test_parameters_are_those_of_table_1(name: str) -> None:
    experts, billions, tolerance = TABLE_1[name]
    config = translation.configs[name]
    counts = config.parameter_counts()
    assert config.moe_layers * config.moe.experts == experts
    assert counts["experts"] == experts * 2 * 1024 * 8192
    assert sum(counts.values()) / 1e9 == pytest.approx(billions, rel=tolerance)
    assert counts["attention"] == (config.layers // 2 * 4 + config.layers // 2 * 8) * 1024 * 2048
    assert config.expert_flops_per_token() == 2 * 4 * 1024 * 8192
    leaves = sw.tree.leaves(translation.shapes(config))
    assert sum(leaf.size for leaf in leaves) == sum(counts.values())


def test_sixteen_times_the_experts_add_three_percent_to_a_device() -> None:
    small, large = (translation.configs[name] for name in ("37B", "600B"))
    ratio = large.parameter_bytes_per_device(2048) / small.parameter_bytes_per_device(128)
    assert 1.02 < ratio <= 1.035
    assert large.parameter_bytes_per_device(2048) / 2**30 == pytest.approx(4.57, abs=0.01)


LENGTHS = [(2048, 100), (512, 96), (128, 96), (128, 200), (2048, 1000), (2048, 128), (12, 128)]


@pytest.mark.parametrize(("experts", "length"), LENGTHS)
def test_groups_of_any_length_leave_few_slots_empty(experts: int, length: int) -> None:
    moe = translation.TranslationConfig.gshard(experts, 12, length).moe
    assert moe.group_size is not None
    assert moe.group_size % length == 0
    assert 2 <= moe.slots_per_token(moe.group_size) <= 2.5


def test_a_given_size_of_groups_or_capacity_stays() -> None:
    moe = models.MoEConfig(2048, 1024, 8192)
    assert translation.TranslationConfig.gshard(2048, 12, moe=moe).moe.group_size is None
    assert models.TransformerConfig.gshard(2048, 12, group_size=256).moe.group_size == 256
    assert models.TransformerConfig.gshard(2048, 12, capacity=2).moe.group_size is None


@cache
def program_of_the_paper(name: str) -> Any:
    """The training step on as many devices as a layer has experts, with 2,048 tokens for each."""
    config = translation.configs[name]
    return step_program(config, sw.Mesh({"x": config.moe.experts}), "x", config.moe.experts * 16)


@pytest.mark.parametrize("name", [*TABLE_1] if is_whole() else ["600B", "1T"])
def test_a_step_exchanges_tokens_four_times_for_each_moe_layer(name: str) -> None:
    config, program = translation.configs[name], program_of_the_paper(name)
    devices = config.moe.experts
    wide = 2 if config.activations else 4
    slots = 2 * config.moe.experts * (2048 // config.moe.group_size)
    received = slots * 1024 * wide * (devices - 1) // devices
    rows = [row for row in program.collectives() if row.kind != "all_reduce"]
    exchanges = [row for row in rows if row.kind == "all_to_all" and row.bytes == received]
    assert sum(row.count for row in exchanges) == 4 * config.layers // 2
    # Where that sends less than all-reduces of the tables' gradients, each device sums a few columns of them: of ids
    # and gradients of all tokens.
    of_tables = {(16, 128), (16, 128, 1024), (64000, 1024 // devices), (32000, 1024 // devices)}
    assert {row.shape for row in rows if row not in exchanges} in (set(), of_tables)


def test_a_million_devices_compile_like_2048() -> None:
    axes, mesh = models.Axes(("data", "x"), "x"), sw.Mesh({"data": 512, "x": 2048})
    program = step_program(translation.configs["600B"], mesh, axes, 16 * mesh.size)
    assert program.collectives().by_kind()["all_to_all"] == 72
    # With one row of a table for each device, multiplications by the rows of a device fall away.
    assert abs(program.op_count - program_of_the_paper("600B").op_count) <= 4


def test_memory_by_category_sums_to_the_peak() -> None:
    program = program_of_the_paper("600B")
    memory = program.memory()
    groups = {row.category: row.bytes for row in memory.group_by("category")}
    assert sum(groups.values()) == memory.peak_bytes
    assert groups["weights"] == translation.configs["600B"].parameter_bytes_per_device(2048)


# ---- a task ---------------------------------------------------------------------------------------------------------


def reversed_sentences(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    source = np.zeros((2, rows, 7), np.int32)
    for i, size in enumerate(rng.integers(2, 7, rows)):
        words = rng.integers(3, 11, size)
        source[:, i, :size] = words, words[::-1]
        source[:, i, size] = 2
    return source[0], source[1]


# Steps, and the least share of tokens that are right after them.
LESSON = (300, 0.99) if is_whole() else (60, 0.3)


def curve(devices: int, steps: int, dtype: Any = np.float32) -> tuple[Any, Any, list[float]]:
    """The configuration, the state and the losses after some steps of the lesson."""
    sizes = {"source_vocabulary": 11, "target_vocabulary": 11, "source_length": 7, "target_length": 7, "head_dim": 8}
    moe = models.MoEConfig(8, 32, 64, group_size=56, capacity_factor=1.5)
    config = cases.small(**sizes, moe=moe, dropout=0.0)
    optimizer = sw.optim.adam(sw.optim.warmup_cosine_decay_schedule(0.0, 5e-3, LESSON[0] // 10, LESSON[0]))
    state = translation.init_state(translation.init(np.random.default_rng(0), config, dtype), optimizer)
    step = sw.jit(translation.train_step(config, optimizer, axes="x"), mesh=sw.Mesh({"x": devices}))
    rng, key, losses = np.random.default_rng(1), sw.random.key(0), []
    for _ in range(steps):
        state, log = step(state, *reversed_sentences(rng, 64), key)
        losses.append(float(log["loss"]))
    return config, state, losses


def test_the_model_learns_to_reverse() -> None:
    steps, share = LESSON
    config, state, _ = curve(8, steps)
    source, target = reversed_sentences(np.random.default_rng(2), 256)
    found = translation.greedy(sw.tree.map(np.asarray, state["params"]), source, config).tokens[:, 0]
    assert np.mean(found[target > 0] == target[target > 0]) > share


def test_the_curve_of_eight_devices_is_that_of_one() -> None:
    # In float64, so that rounding reroutes no token: a rerouted one moves all later losses.
    many, alone = (curve(devices, 40, np.float64)[2] for devices in (8, 1))
    np.testing.assert_allclose(many, alone, rtol=1e-8)
