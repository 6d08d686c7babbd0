# SPDX-License-Identifier: Apache-2.0
"""The parts of the Transformer against loops and formulas; the whole on meshes, in training, at the paper's sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import optree
import pytest

import shardwise as sw
from shardwise import models

MESHES = [
    ("8", sw.Mesh({"x": 8}), "x"),
    ("4x2", sw.Mesh({"x": 4, "y": 2}), ("x", "y")),
    ("2x2x2, hidden units too", sw.Mesh({"x": 2, "y": 2, "z": 2}), models.Axes(("x", "y"), ("x", "y"), "z")),
    ("permuted devices", sw.Mesh({"x": 8}, device_ids=[3, 1, 4, 0, 7, 5, 2, 6]), "x"),
]
MODES: list[dict[str, bool]] = [{}, {"faithful": True}, {"poison": True}, {"faithful": True, "poison": True}]


def config_of(layers: int = 3, experts: int = 8, **options: Any) -> models.TransformerConfig:
    layer = models.MoEConfig(experts, 8, 16)
    return models.TransformerConfig(layers, layer, heads=2, head_dim=4, vocabulary=50, length=12, **options)


def case(config: models.TransformerConfig, groups: int, dtype: Any = np.float64) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    params = models.init_transformer(rng, config, dtype)
    tokens = rng.integers(0, config.vocabulary, (groups, config.length + 1))
    return params, tokens, rng.random((config.moe_layers, groups, config.length))


# ---- parts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_a_weighted_mean_of_values(causal: bool) -> None:
    rng = np.random.default_rng(0)
    params = models.init_attention(rng, 6, 2, 3, np.float64)
    x = rng.standard_normal((2, 5, 6))
    found = models.attention(params, x, causal=causal)
    expected = np.zeros_like(x)
    for g in range(2):
        for head in range(2):
            q, k, v = (x[g] @ params[name][:, head] for name in ("query", "key", "value"))
            for s in range(5):
                seen = s + 1 if causal else 5
                weights = np.exp(q[s] @ k[:seen].T / math.sqrt(3))
                expected[g, s] += weights / weights.sum() @ v[:seen] @ params["output"][head]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_layer_norm_has_mean_zero_and_deviation_one() -> None:
    rng = np.random.default_rng(0)
    x = 5 + 3 * rng.standard_normal((4, 6, 64))
    params = {"scale": np.full(64, 2.0), "bias": np.full(64, 7.0)}
    found = models.layer_norm(params, x)
    np.testing.assert_allclose(found.mean(axis=-1), 7, rtol=1e-9)
    np.testing.assert_allclose(found.std(axis=-1), 2, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint32])
def test_indices_of_a_narrow_dtype_have_one_one(dtype: Any) -> None:
    indices, size = np.array([[0, 2, 44], [100, 127, 3]], dtype), 40000
    expected = np.zeros((2, 3, size), np.bool_)
    np.put_along_axis(expected, indices.astype(np.int64)[..., None], True, axis=-1)
    np.testing.assert_array_equal(models.one_hot(indices, size), expected)
    run = sw.jit(lambda i: models.one_hot(sw.split(i, 0, "x"), size), mesh=sw.Mesh({"x": 2}))
    np.testing.assert_array_equal(np.asarray(run(indices)), expected)
    logits = np.random.default_rng(0).standard_normal((2, 3, size))
    found, wide = (models.cross_entropy(logits, i, smoothing=0.1) for i in (indices, indices.astype(np.int64)))
    assert found == wide


def test_cross_entropy_is_the_negative_log_likelihood() -> None:
    rng = np.random.default_rng(0)
    logits, targets = 100 * rng.standard_normal((3, 4, 7)), rng.integers(0, 7, (3, 4))
    expected = 0.0
    for g, s in np.ndindex(3, 4):
        row = logits[g, s]
        expected += (row.max() + math.log(np.exp(row - row.max()).sum()) - row[targets[g, s]]) / 12
    assert models.cross_entropy(logits, targets) == pytest.approx(expected, rel=1e-13)


def test_feed_forward_and_embedding() -> None:
    rng = np.random.default_rng(0)
    params = models.init_feed_forward(rng, 4, 6, np.float64)
    x = rng.standard_normal((2, 3, 4))
    np.testing.assert_allclose(
        models.feed_forward(params, x), np.maximum(x @ params["wi"], 0) @ params["wo"], rtol=1e-12
    )
    table = models.init_embedding(rng, 10, 5, 4, np.float64)
    found = models.embedding(table, np.array([[3, 9, 0]]))
    np.testing.assert_array_equal(found[0], table["table"][[3, 9, 0]] + table["positions"][:3])


def test_every_other_feed_forward_is_one_of_experts() -> None:
    for layers, expected in ((1, [True]), (2, [False, True]), (3, [True, False, True]), (4, [False, True] * 2)):
        config = config_of(layers)
        params = models.init_transformer(np.random.default_rng(0), config)
        assert ["moe" in block for block in params["blocks"]] == expected
        assert config.moe_layers == sum(expected)


@pytest.mark.parametrize("draw", ["generator", "key"])
def test_initial_weights_keep_the_size_of_activations(draw: str) -> None:
    source = np.random.default_rng(1) if draw == "generator" else sw.random.key(1)
    config = models.MoEConfig(4, 256, 512)
    params = models.init_moe(source, config, np.float32)
    assert {name: x.shape for name, x in params.items()} == {"gate": (256, 4), "wi": (4, 256, 512), "wo": (4, 512, 256)}
    assert all(x.dtype == np.float32 for x in params.values())
    x = np.random.default_rng(2).standard_normal((64, 256))
    hidden = np.maximum(x @ params["wi"][0], 0)
    assert np.std(hidden @ params["wo"][0]) == pytest.approx(1, rel=0.15)
    assert np.std(x @ params["gate"]) == pytest.approx(1, rel=0.2)
    again = models.init_moe(np.random.default_rng(1) if draw == "generator" else sw.random.key(1), config)
    assert optree.tree_all(optree.tree_map(np.array_equal, params, again))


# ---- the whole ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mesh", "axes"), [m[1:] for m in MESHES], ids=[m[0] for m in MESHES])
def test_transformer_gives_numpys_numbers(mesh: sw.Mesh, axes: Any) -> None:
    config = config_of()
    params, tokens, random = case(config, 8)

    def function(params, tokens, random):
        logits, aux, statistics = models.transformer(params, tokens[:, :-1], config, axes=axes, random=random)
        return logits, aux, [(s["experts"], s["kept"]) for s in statistics]

    logits, aux, routing = function(params, tokens, random)
    program = sw.jit(function, mesh=mesh).lower(params, tokens, random).compile()
    for mode in MODES:
        found, found_aux, found_routing = program.run(params, tokens, random, **mode)
        assert np.max(np.abs(np.asarray(found) - logits)) <= 1e-12 * np.max(np.abs(logits))
        assert float(found_aux) == pytest.approx(float(aux), rel=1e-12)
        for ours, theirs in zip(optree.tree_leaves(found_routing), optree.tree_leaves(routing)):
            np.testing.assert_array_equal(np.asarray(ours), theirs)


def moved(params: Any, accessor: Any, step: np.ndarray) -> Any:
    """The parameters with one of them moved by ``step``."""
    return optree.tree_map_with_accessor(lambda a, x: x + step if a == accessor else x, params)


@pytest.mark.parametrize(("mesh", "axes"), [m[1:] for m in MESHES], ids=[m[0] for m in MESHES])
def test_gradients_of_the_transformer_are_directional_derivatives(mesh: sw.Mesh, axes: Any) -> None:
    config = config_of(2)
    params, tokens, random = case(config, 8)

    def loss(params, tokens, random):
        return models.next_token_loss(params, tokens, config, axes=axes, random=random)[0]

    gradients = sw.jit(sw.grad(loss), mesh=mesh)(params, tokens, random)
    rng = np.random.default_rng(1)
    assert optree.tree_structure(gradients) == optree.tree_structure(params)
    for accessor, gradient in zip(optree.tree_accessors(params), optree.tree_leaves(gradients)):
        step = 1e-6 * rng.standard_normal(gradient.shape)

        sides = [
            float(loss(moved(params, accessor, step), tokens, random)),
            float(loss(moved(params, accessor, -step), tokens, random)),
        ]
        derivative = float(np.sum(np.asarray(gradient) * step))
        assert derivative == pytest.approx((sides[0] - sides[1]) / 2, rel=1e-4, abs=1e-11), accessor.codify("params")


def test_a_later_token_does_not_change_an_earlier_logit() -> None:
    rng = np.random.default_rng(0)
    layer = models.MoEConfig(4, 8, 16, capacity=12)  # room for all, or tokens would lose their places to later ones
    for causal in (True, False):
        config = models.TransformerConfig(2, layer, heads=2, head_dim=4, vocabulary=50, length=6, causal=causal)
        params = models.init_transformer(rng, config, np.float64)
        tokens = rng.integers(0, 50, (1, 6))
        changed = tokens.copy()
        changed[0, 4] = (tokens[0, 4] + 1) % 50
        first, second = (models.transformer(params, t, config)[0][0] for t in (tokens, changed))
        assert np.array_equal(first[:4], second[:4]) == causal
        assert not np.array_equal(first[4], second[4])


def test_training_by_sgd_lowers_the_loss_alike_on_every_mesh() -> None:
    config = config_of(2)
    params, _, _ = case(config, 8)
    rng = np.random.default_rng(2)
    # Each token says which one follows.
    start = rng.integers(0, 50, (20, 8, 1))
    batches = (start + 7 * np.arange(13)) % 50

    def step(axes):
        def step(params, tokens, key):
            def loss(params):
                return models.next_token_loss(params, tokens, config, axes=axes, random=key)[0]

            value, gradients = sw.value_and_grad(loss)(params)
            return value, optree.tree_map(lambda p, g: p - 0.5 * g, params, gradients)

        return step

    histories = []
    for mesh, axes in ((sw.Mesh({"x": 1}), None), (sw.Mesh({"x": 8}), "x"), (sw.Mesh({"x": 4, "y": 2}), ("y", "x"))):
        train, state, losses = sw.jit(step(axes), mesh=mesh), params, []
        for i in range(60):
            value, state = train(state, batches[i % 20], sw.random.key(i))
            losses.append(float(value))
        histories.append(losses)
    assert np.mean(histories[0][-5:]) < 0.7 * histories[0][0]
    for other in histories[1:]:
        # Sums of other order are other last bits, which routing may amplify; the course must be the same.
        np.testing.assert_allclose(other[:5], histories[0][:5], rtol=1e-9)
        np.testing.assert_allclose(other[-5:], histories[0][-5:], rtol=0.1)


# ---- the paper's sizes ----------------------------------------------------------------------------------------------


def test_counts_are_those_of_the_paper_and_of_the_arrays() -> None:
    table = ((2048, 36, 600), (2048, 12, 200), (512, 36, 150), (128, 12, 12.5), (2048, 60, 1000))
    for experts, layers, billions in table:  # table 1 of the paper
        counts = models.TransformerConfig.gshard(experts, layers).parameter_counts()
        assert counts["experts"] == layers // 2 * experts * 2 * 1024 * 8192
        assert sum(counts.values()) / 1e9 == pytest.approx(billions, rel=0.06)
    for config in (models.TransformerConfig.gshard(2048, 36), config_of(3), config_of(4, experts=5)):
        shapes = optree.tree_leaves(models.transformer_shapes(config))
        assert sum(x.size for x in shapes) == sum(config.parameter_counts().values())
    config = config_of(3)
    arrays = models.init_transformer(np.random.default_rng(0), config)
    shapes_of = [optree.tree_map(lambda x: x.shape, tree) for tree in (arrays, models.transformer_shapes(config))]
    assert shapes_of[0] == shapes_of[1]


@pytest.mark.parametrize("layers", [36, 60])
def test_a_training_step_of_the_paper_compiles_for_2048_devices(layers: int) -> None:
    config = models.TransformerConfig.gshard(2048, layers)
    struct = sw.ShapeDtypeStruct
    params = models.transformer_shapes(config)

    def step(params, tokens, random):
        def loss(params):
            return models.next_token_loss(params, tokens, config, axes="x", random=random)[0]

        value, gradients = sw.value_and_grad(loss)(params)
        return value, optree.tree_map(lambda p, g: p - 0.1 * g, params, gradients)

    rows = 2048 * 16  # a group of 2,048 tokens a device
    args = (params, struct((rows, 129), np.int32), struct((layers // 2, rows, 128), np.float32))
    program = sw.jit(step, mesh=sw.Mesh({"x": 2048})).lower(*args).compile()
    kinds = program.collectives().by_kind()
    assert set(kinds) == {"all_to_all", "all_reduce"}
    assert kinds["all_to_all"] == 4 * layers // 2
    held = sum(
        math.prod(sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
        for leaf, sharding in zip(optree.tree_leaves(params), program.input_shardings)
    )
    assert held == config.parameter_bytes_per_device(2048)
    # Gradients of replicated weights are reduced once each; the table, used twice, too.
    rows = [part for row in program.collectives() for part in row.separate()]
    reduced = [row for row in rows if row.kind == "all_reduce" and len(row.shape) > 0]
    replicated = sum(
        leaf.size for leaf, sharding in zip(optree.tree_leaves(params), program.input_shardings)
        if sharding.shard_shape(leaf.shape) == leaf.shape
    )  # fmt: skip
    assert sum(math.prod(row.shape) * row.count for row in reduced) == replicated
