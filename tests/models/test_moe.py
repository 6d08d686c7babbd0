# SPDX-License-Identifier: Apache-2.0
"""GShard's layer of experts on meshes: NumPy's numbers, two AllToAlls and nothing else, one program for any mesh."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import models

MODES: list[dict[str, bool]] = [{}, {"faithful": True}, {"poison": True}, {"faithful": True, "poison": True}]

# name, mesh, axes, experts, groups
MESHES = [
    ("8", sw.Mesh({"x": 8}), "x", 8, 8),
    ("4x2", sw.Mesh({"x": 4, "y": 2}), ("x", "y"), 8, 8),
    ("2x2x2", sw.Mesh({"x": 2, "y": 2, "z": 2}), ("z", "x", "y"), 8, 16),
    ("6, uneven groups", sw.Mesh({"x": 6}), "x", 6, 8),
    ("3x2, fewer groups than devices", sw.Mesh({"x": 3, "y": 2}), ("y", "x"), 12, 5),
    ("permuted devices", sw.Mesh({"x": 8}, device_ids=[3, 1, 4, 0, 7, 5, 2, 6]), "x", 16, 8),
    ("hidden units too", sw.Mesh({"x": 4, "y": 2}), models.Axes("x", "x", "y"), 8, 8),
    ("groups and experts apart", sw.Mesh({"x": 4, "y": 2}), models.Axes("x", "y"), 8, 8),
]


def layer(config: models.MoEConfig, axes: Any):
    def moe(params, x, random):
        output, aux, statistics = models.moe_layer(params, x, config, axes=axes, random=random)
        return output, aux, {name: x for name, x in statistics.items() if name != "gates"}

    return moe


def arrays(config: models.MoEConfig, groups: int, size: int, dtype: Any, seed: int = 0) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    params = models.init_moe(rng, config, dtype)
    x = rng.standard_normal((groups, size, config.model_dim)).astype(dtype)
    return params, x, rng.random((groups, size)).astype(dtype)


def structs(config: models.MoEConfig, groups: int, size: int) -> tuple[Any, ...]:
    def struct(*shape):
        return sw.ShapeDtypeStruct(shape, np.float32)

    m, e, h = config.model_dim, config.experts, config.hidden_dim
    params = {"gate": struct(m, e), "wi": struct(e, m, h), "wo": struct(e, h, m)}
    return params, struct(groups, size, m), struct(groups, size)


# ---- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("top_k", [1, 2])
@pytest.mark.parametrize(("mesh", "axes", "experts", "groups"), [m[1:] for m in MESHES], ids=[m[0] for m in MESHES])
def test_layer_gives_numpys_numbers_in_float64(mesh: sw.Mesh, axes: Any, experts: int, groups: int, top_k: int) -> None:
    config = models.MoEConfig(experts, 16, 24, top_k=top_k, capacity_factor=1.0)
    args = arrays(config, groups, 20, np.float64)
    function = layer(config, axes)
    expected, aux, statistics = function(*args)
    assert np.sum(statistics["dropped"]) > 0  # overflow is part of what is compared
    program = sw.jit(function, mesh=mesh).lower(*args).compile()
    for mode in MODES:
        output, found_aux, found = program.run(*args, **mode)
        for name, value in statistics.items():
            np.testing.assert_array_equal(np.asarray(found[name]), value, err_msg=f"{name} {mode}")
        assert np.max(np.abs(np.asarray(output) - expected)) <= 1e-12 * np.max(np.abs(expected)), mode
        np.testing.assert_allclose(np.asarray(found_aux), aux, rtol=1e-12)


@pytest.mark.parametrize(("mesh", "axes", "experts", "groups"), [m[1:] for m in MESHES], ids=[m[0] for m in MESHES])
def test_layer_gives_numpys_numbers_in_float32_where_routing_agrees(
    mesh: sw.Mesh, axes: Any, experts: int, groups: int
) -> None:
    config = models.MoEConfig(experts, 16, 24)
    params, x, random = arrays(config, groups, 24, np.float32, seed=1)
    function = layer(config, axes)
    expected, _, wanted = function(params, x, random)
    margins = models.gate_margins(models.moe_layer(params, x, config, random=random)[2], random)
    program = sw.jit(function, mesh=mesh).lower(params, x, random).compile()
    for mode in MODES:
        output, _, found = program.run(params, x, random, **mode)
        routing = models.compare_routing([found], [wanted], lambda: [margins])
        assert routing.disagreements <= 1e-4 * routing.same.size
        assert routing.largest_margin < 1e-5
        assert np.max(np.abs(np.asarray(output) - expected)[routing.same]) <= 1e-5 * np.max(np.abs(expected)), mode


def loss_of(config: models.MoEConfig, axes: Any):
    def loss(params, x, random, weights):
        output, aux, _ = models.moe_layer(params, x, config, axes=axes, random=random)
        return np.sum(output * weights) + np.mean(aux)

    return loss


@pytest.mark.parametrize("top_k", [1, 2])
@pytest.mark.parametrize(("mesh", "axes", "experts", "groups"), [m[1:] for m in MESHES], ids=[m[0] for m in MESHES])
def test_gradients_are_directional_derivatives(mesh: sw.Mesh, axes: Any, experts: int, groups: int, top_k: int) -> None:
    config = models.MoEConfig(experts, 6, 10, top_k=top_k)
    params, x, random = arrays(config, groups, 12, np.float64, seed=2)
    rng = np.random.default_rng(3)
    weights = rng.standard_normal(x.shape)
    loss = loss_of(config, axes)
    gradients = sw.jit(sw.grad(loss, argnums=(0, 1)), mesh=mesh).lower(params, x, random, weights).compile()
    base = models.moe_layer(params, x, config, random=random)[2]
    for mode in MODES:
        by_params, by_x = gradients.run(params, x, random, weights, **mode)
        found = {**by_params, "x": by_x}
        for name, gradient in found.items():
            step = 1e-6 * rng.standard_normal(gradient.shape)
            sides = []
            for sign in (1, -1):
                moved = {**params, "x": x}
                moved[name] = moved[name] + sign * step
                at = moved.pop("x")
                statistics = models.moe_layer(moved, at, config, random=random)[2]
                assert np.all(statistics["experts"] == base["experts"])
                assert np.all(statistics["kept"] == base["kept"])
                sides.append(loss(moved, at, random, weights))
            derivative = float(np.sum(np.asarray(gradient) * step))
            assert derivative == pytest.approx((sides[0] - sides[1]) / 2, rel=1e-5, abs=1e-12), (name, mode)


def test_2048_experts_on_2048_devices_give_numpys_numbers() -> None:
    config = models.MoEConfig(2048, 4, 4, capacity=1)
    params, x, random = arrays(config, 300, 5, np.float64)  # most devices have no group
    function = layer(config, "x")
    expected, _, statistics = function(params, x, random)
    output, _, found = sw.jit(function, mesh=sw.Mesh({"x": 2048}))(params, x, random)
    np.testing.assert_array_equal(np.asarray(found["experts"]), statistics["experts"])
    np.testing.assert_array_equal(np.asarray(found["kept"]), statistics["kept"])
    assert np.max(np.abs(np.asarray(output) - expected)) <= 1e-12 * np.max(np.abs(expected))


def test_layer_runs_on_sharded_arrays_outside_of_jit() -> None:
    mesh = sw.Mesh({"x": 4})
    config = models.MoEConfig(4, 8, 12)
    params, x, random = arrays(config, 4, 10, np.float64)
    sharded = sw.device_put(x, sw.NamedSharding(mesh, sw.P("x")))
    output, aux, _ = models.moe_layer(params, sharded, config, axes="x", random=random)
    assert output.sharding.spec == sw.P("x", None, None)
    expected, expected_aux, _ = models.moe_layer(params, x, config, random=random)
    np.testing.assert_allclose(np.asarray(output), expected, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(np.asarray(aux), expected_aux, rtol=1e-12)


def test_experts_that_the_mesh_does_not_divide_are_refused_outside_of_jit() -> None:
    config = models.MoEConfig(6, 8, 12)
    params, x, random = arrays(config, 4, 10, np.float64)
    sharded = sw.device_put(x, sw.NamedSharding(sw.Mesh({"x": 4}), sw.P("x")))
    with pytest.raises(sw.ShapeError, match="experts must be a multiple of the 4 devices along 'x', got 6"):
        models.moe_layer(params, sharded, config, axes="x", random=random)


def test_a_key_draws_the_same_routing_on_every_mesh_and_in_numpy() -> None:
    config = models.MoEConfig(8, 8, 12)
    params, x, _ = arrays(config, 8, 16, np.float64)
    key = sw.random.key(5)
    function = layer(config, "x")
    wanted = models.moe_layer(params, x, config, random=key)[2]
    without = models.moe_layer(params, x, config)[2]
    assert np.any(wanted["kept"] != without["kept"])
    for devices in (1, 2, 8):
        _, _, found = sw.jit(function, mesh=sw.Mesh({"x": devices}))(params, x, key)
        np.testing.assert_array_equal(np.asarray(found["kept"]), wanted["kept"])


# ---- communication --------------------------------------------------------------------------------------------------


def output_only(config: models.MoEConfig, axes: Any):
    return lambda *args: models.moe_layer(args[0], args[1], config, axes=axes, random=args[2])[0]


ONE_EXCHANGE = [m for m in MESHES if not isinstance(m[2], models.Axes)]


@pytest.mark.parametrize("top_k", [1, 2])
@pytest.mark.parametrize(
    ("mesh", "axes", "experts", "groups"), [m[1:] for m in ONE_EXCHANGE], ids=[m[0] for m in ONE_EXCHANGE]
)
def test_forward_exchanges_tokens_twice_and_its_gradient_twice_more(
    mesh: sw.Mesh, axes: Any, experts: int, groups: int, top_k: int
) -> None:
    config = models.MoEConfig(experts, 16, 32, top_k=top_k)
    args = structs(config, groups, 24)
    program = sw.jit(output_only(config, axes), mesh=mesh).lower(*args).compile()
    # 8 groups on 6 devices are 4 shards of 2: an all_to_all would send the experts two shards of padding.
    has_padding = groups > mesh.size and groups % mesh.size > 0
    twice = {"all_to_all": 1, "exchange": 1} if has_padding else {"all_to_all": 2}
    assert program.collectives().by_kind() == twice
    whole = sw.jit(layer(config, axes), mesh=mesh).lower(*args).compile()
    assert whole.collectives().by_kind() == twice  # losses and statistics stay with their groups

    def loss(params, x, random):
        output, aux, _ = models.moe_layer(params, x, config, axes=axes, random=random)
        return np.mean(output * output) + np.mean(aux)

    program = sw.jit(sw.value_and_grad(loss, argnums=(0, 1)), mesh=mesh).lower(*args).compile()
    # The gradient of the replicated gate weights, and the loss: both of its means are divided and added before.
    assert program.collectives().by_kind() == {**{kind: 2 * n for kind, n in twice.items()}, "all_reduce": 2}
    reduced = [row for row in program.collectives() if row.kind == "all_reduce"]
    assert sorted(row.shape for row in reduced) == [(), (16, experts)]


def test_received_bytes_are_the_bound() -> None:
    # (8,16,16) tokens, gate (16,8), experts (8,16,32) and (8,32,16): 2 exchanges of 7/8 of (8,1,4,16) floats.
    config = models.MoEConfig(8, 16, 32)
    program = sw.jit(output_only(config, "x"), mesh=sw.Mesh({"x": 8})).lower(*structs(config, 8, 16)).compile()
    assert config.capacity_for(16) == 4
    assert program.collectives().total_bytes == 2 * 4 * 16 * 8 * 4 * 7 / 8 == 3584

    def loss(params, x, random):
        return np.sum(output_only(config, "x")(params, x, random) ** 2)

    gradients = sw.jit(sw.grad(loss, argnums=(0, 1)), mesh=sw.Mesh({"x": 8})).lower(*structs(config, 8, 16)).compile()
    # 2 exchanges more, of the cotangents; and the all-reduce of the gradient of the gate: 128 + 6·16 floats.
    assert gradients.collectives().total_bytes == 2 * 3584 + (16 * 8 + 6 * 16) * 4 == 8064


def local_text(config: models.MoEConfig, mesh: sw.Mesh, axes: Any, size: int, gradient: bool) -> str:
    function: Any = output_only(config, axes)
    if gradient:
        function = sw.value_and_grad(lambda *args: np.mean(output_only(config, axes)(*args) ** 2), argnums=(0, 1))
    program = sw.jit(function, mesh=mesh).lower(*structs(config, mesh.size, size)).compile()
    return re.sub(r"\d+", "N", program.as_text("local"))


@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "gradient"])
@pytest.mark.parametrize("top_k", [1, 2])
@pytest.mark.parametrize("experts_per_device", [1, 2])
@pytest.mark.parametrize("capacity", [1, 3])
def test_program_is_the_same_text_for_8_and_2048_devices(
    gradient: bool, top_k: int, experts_per_device: int, capacity: int
) -> None:
    for axes, small, large in (("x", {"x": 8}, {"x": 2048}), (("x", "y"), {"x": 4, "y": 2}, {"x": 64, "y": 32})):
        texts = [
            local_text(
                models.MoEConfig(experts_per_device * mesh.size, 12, 20, top_k=top_k, capacity=capacity),
                mesh, axes, 24, gradient,
            )
            for mesh in (sw.Mesh(small), sw.Mesh(large))
        ]  # fmt: skip
        assert texts[0] == texts[1]


def test_reports_name_the_lines_of_the_layer() -> None:
    config = models.MoEConfig(8, 16, 32)
    program = sw.jit(output_only(config, "x"), mesh=sw.Mesh({"x": 8})).lower(*structs(config, 8, 24)).compile()
    source = Path(models.moe.__file__).read_text().splitlines()
    lines = [source[row.line - 1] for row in program.collectives()]
    assert all(row.file == models.moe.__file__ for row in program.collectives())
    assert [line.split("=")[0].strip() for line in lines] == ["to_experts", "to_groups"]
    assert 'split over "x"' in repr(program.why("to_experts"))
