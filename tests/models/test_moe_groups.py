# SPDX-License-Identifier: Apache-2.0
"""Groups of their own size, the paper's three annotations, gather dispatch, Lingvo's gate, and padding."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import models
from tests.models.test_moe import MESHES
from tests.models.test_moe_gating import algorithm_1
from tests.support.run_seed import in_turn

CONFIG = models.MoEConfig(8, 16, 24)
MESH = sw.Mesh({"x": 8})


def case(config: models.MoEConfig, rows: int, length: int, dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    params = models.init_moe(rng, config, dtype)
    x = rng.standard_normal((rows, length, config.model_dim)).astype(dtype)
    return params, x, rng.random((rows, length)).astype(dtype)


def reference(params: Any, x: np.ndarray, random: np.ndarray, config: models.MoEConfig) -> np.ndarray:
    """Each group alone: Algorithm 1 a token at a time, then each token's experts."""
    size = config.group_size or x.shape[1]
    tokens, draws = x.reshape(-1, size, x.shape[2]), random.reshape(-1, size)
    output = np.zeros_like(tokens)
    for g, group in enumerate(tokens):
        gates = models.softmax(group @ params["gate"])
        combine, _ = algorithm_1(gates, config.top_k, config.capacity_for(size), draws[g])
        for s, e in np.argwhere(combine.sum(axis=2) > 0):
            answer = np.maximum(group[s] @ params["wi"][e], 0) @ params["wo"][e]
            output[g, s] += combine[s, e].sum() * answer
    return output.reshape(x.shape)


def layer(config: models.MoEConfig, axes: Any = "x", **options: Any) -> Any:
    return lambda params, x, random: models.moe_layer(params, x, config, axes=axes, random=random, **options)[0]


# ---- groups ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mesh", "axes", "experts", "rows"), [m[1:] for m in MESHES], ids=[m[0] for m in MESHES])
@pytest.mark.parametrize("size", in_turn([10, 20, 40]))
def test_groups_of_any_size_are_those_of_the_algorithm(
    mesh: sw.Mesh, axes: Any, experts: int, rows: int, size: int
) -> None:
    config = models.MoEConfig(experts, 16, 24, group_size=size)
    rows += rows % 2  # so that groups of two rows are whole
    params, x, random = case(config, rows, 20)
    expected = reference(params, x, random, config)
    found = np.asarray(sw.jit(layer(config, axes), mesh=mesh)(params, x, random))
    assert found.shape == x.shape
    assert np.max(np.abs(found - expected)) <= 1e-12 * np.max(np.abs(expected))


def test_whole_groups_of_a_device_send_nothing_more() -> None:
    for size in (10, 20, 40, 80):
        config = replace(CONFIG, group_size=size)
        args = case(config, 32, 20)
        program = sw.jit(layer(config), mesh=MESH).lower(*args).compile()
        assert program.collectives().by_kind() == {"all_to_all": 2}
        received = 2 * 8 * (32 * 20 // size // 8) * config.capacity_for(size) * 16 * 8 * 7 / 8
        assert program.collectives().total_bytes == received


@pytest.mark.parametrize(("dtype", "received"), [("float32", 16_769_024), ("bfloat16", 8_384_512)])
def test_2048_tokens_a_device_fill_two_slots_of_2048_experts(dtype: str, received: int) -> None:
    config = models.TransformerConfig.gshard(2048, 36).moe
    assert config.capacity_for(2048) == 2
    assert config.slots_per_token(2048) == 2
    struct, m, e, h = sw.ShapeDtypeStruct, config.model_dim, config.experts, config.hidden_dim
    params = {name: struct(shape, np.float32) for name, shape in
              {"gate": (m, e), "wi": (e, m, h), "wo": (e, h, m)}.items()}  # fmt: skip
    x, random = struct((2048 * 16, 128, m), np.dtype(dtype)), struct((2048 * 16, 128), np.float32)
    program = sw.jit(layer(config), mesh=sw.Mesh({"x": 2048})).lower(params, x, random).compile()
    assert [(row.kind, row.bytes) for row in program.collectives()] == [("all_to_all", received)] * 2


def test_rounded_up_capacity_is_warned_of_where_groups_are_small() -> None:
    text = (
        r"moe_layer: a token should have at most 2.5 slots, of which it fills 2, got 16: "
        r"64 experts of capacity 1 for groups of 4; use a group_size of at least 26 tokens"
    )
    config = models.MoEConfig(64, 4, 8)
    params, x, random = case(config, 8, 4)
    with pytest.warns(sw.ShardingWarning, match=text) as warned:
        models.moe_layer(params, x, config, random=random)
    assert warned[0].filename == __file__
    for enough in (replace(config, group_size=32), replace(config, capacity=1)):
        with warnings.catch_warnings(record=True) as quiet:
            warnings.simplefilter("always")
            models.moe_layer(params, x, enough, random=random)
        assert quiet == []


def test_tokens_that_do_not_fill_groups_are_refused() -> None:
    config = replace(CONFIG, group_size=24)
    params, x, _ = case(config, 5, 20)
    with pytest.raises(
        sw.ShapeError, match=r"tokens must fill whole groups, got 5 \* 20 tokens in groups of 24; use a gro"
    ):
        models.moe_layer(params, x, config)


# ---- the paper's own annotations ------------------------------------------------------------------------------------


def without_reader(inputs: Any, wg: Any, wi: Any, wo: Any) -> Any:
    """Algorithm 2 with the three annotations of section 3.2."""
    inputs = sw.split(inputs, 0, 8)
    wg = sw.replicate(wg)
    gates = models.softmax(np.einsum("GSM,ME->GSE", inputs, wg))
    combine, mask, _, _ = models.top_gating(gates, CONFIG)
    dispatched = np.einsum("GSEC,GSM->EGCM", mask.astype(inputs.dtype), inputs)
    dispatched = sw.split(dispatched, 0, 8)
    hidden = np.maximum(np.einsum("EGCM,EMH->EGCH", dispatched, wi), 0)
    out = np.einsum("EGCH,EHM->GECM", hidden, wo)
    return np.einsum("GSEC,GECM->GSM", combine, out)


def literal(*args: Any) -> Any:
    """The output stays with the groups that its reader has."""
    return sw.split(without_reader(*args), 0, 8)


@pytest.mark.parametrize("hardware", ["default", "tpu_v3"])
@pytest.mark.parametrize("objective", ["time", "bytes"])
def test_gradients_need_no_split_reader(objective: Any, hardware: str) -> None:
    """By time, the cheapest solution repeats work here; the next one that repeats none is taken."""
    params, x, _ = case(CONFIG, 8, 16, np.float32)
    gradients = sw.grad(lambda *args: np.sum(without_reader(*args) ** 2), argnums=(0, 1, 2, 3))
    step = sw.jit(gradients, mesh=MESH, objective=objective, hardware=hardware)
    ledger = step.lower(x, params["gate"], params["wi"], params["wo"]).compile().collectives()
    assert ledger.by_kind() == {"all_to_all": 4, "all_reduce": 1}
    assert ledger.total_bytes == 7168 + 896


def test_three_annotations_give_two_exchanges_and_their_gradients_four() -> None:
    params, x, _ = case(CONFIG, 8, 16, np.float32)
    args = (x, params["gate"], params["wi"], params["wo"])
    program = sw.jit(literal, mesh=MESH).lower(*args).compile()
    assert program.collectives().by_kind() == {"all_to_all": 2}
    assert program.collectives().total_bytes == 3584
    expected = models.moe_layer(params, x, CONFIG)[0]
    np.testing.assert_allclose(np.asarray(program.run(*args)), expected, rtol=1e-4, atol=1e-5)
    gradients = sw.grad(lambda *args: np.sum(literal(*args) ** 2), argnums=(0, 1, 2, 3))
    ledger = sw.jit(gradients, mesh=MESH).lower(*args).compile().collectives()
    assert ledger.by_kind() == {"all_to_all": 4, "all_reduce": 1}  # the gate is replicated
    assert sum(row.bytes for row in ledger if row.kind == "all_to_all") == 7168


# ---- gather dispatch ------------------------------------------------------------------------------------------------

# With hidden units split too, sums of parts are rounded in another order.
EVEN = in_turn([m for m in MESHES if m[4] % m[1].size == 0 and not isinstance(m[2], models.Axes)])
UNEVEN = [m for m in MESHES if m[4] % m[1].size]


@pytest.mark.parametrize(("mesh", "axes", "experts", "rows"), [m[1:] for m in EVEN], ids=[m[0] for m in EVEN])
def test_gather_dispatch_gives_the_bits_of_the_products(mesh: sw.Mesh, axes: Any, experts: int, rows: int) -> None:
    config = models.MoEConfig(experts, 16, 24)
    args = case(config, rows, 24)
    programs = [
        sw.jit(layer(config, axes, dispatch=form), mesh=mesh).lower(*args).compile() for form in ("einsum", "gather")
    ]
    products, gathered = (np.asarray(program.run(*args)) for program in programs)
    np.testing.assert_array_equal(gathered, products)
    assert programs[0].collectives().by_kind() == programs[1].collectives().by_kind()
    assert programs[0].collectives().total_bytes == programs[1].collectives().total_bytes
    # Of the five products, the dispatch of 2 · G · S · E · C · M flops is gone.
    assert [len(re.findall("dot_general", program.as_text("local"))) for program in programs] == [5, 4]


@pytest.mark.parametrize(("mesh", "axes", "experts", "rows"), [m[1:] for m in UNEVEN], ids=[m[0] for m in UNEVEN])
def test_gather_dispatch_multiplies_where_devices_do_not_divide_the_groups(
    mesh: sw.Mesh, axes: Any, experts: int, rows: int
) -> None:
    config = models.MoEConfig(experts, 16, 24, dispatch="gather")
    args = case(config, rows, 24)
    program = sw.jit(layer(config, axes), mesh=mesh).lower(*args).compile()
    products = sw.jit(layer(config, axes, dispatch="einsum"), mesh=mesh)
    np.testing.assert_array_equal(np.asarray(program.run(*args)), np.asarray(products(*args)))
    assert len(re.findall("dot_general", program.as_text("local"))) == 5


def test_gather_dispatch_with_groups_and_experts_apart_rounds_alike() -> None:
    mesh, axes = sw.Mesh({"x": 4, "y": 2}), models.Axes("x", "y")
    args = case(CONFIG, 8, 24)
    products, gathered = (
        np.asarray(sw.jit(layer(CONFIG, axes, dispatch=form), mesh=mesh)(*args)) for form in ("einsum", "gather")
    )
    assert np.max(np.abs(gathered - products)) <= 1e-14 * np.max(np.abs(products))


def test_gather_dispatch_has_the_gradients_of_the_products() -> None:
    args = case(CONFIG, 8, 24)
    found = []
    for form in ("einsum", "gather"):
        function = sw.grad(lambda *a, form=form: np.sum(layer(CONFIG, dispatch=form)(*a) ** 2), argnums=(0, 1))
        program = sw.jit(function, mesh=MESH).lower(*args).compile()
        assert program.collectives().by_kind() == {"all_to_all": 4, "all_reduce": 1}
        found.append(sw.tree.leaves(program.run(*args)))
    for products, gathered in zip(*([np.asarray(x) for x in leaves] for leaves in found)):
        assert np.max(np.abs(gathered - products)) <= 8 * np.finfo(np.float64).eps * np.max(np.abs(products))


def test_gather_dispatch_is_numpy_outside_of_jit() -> None:
    params, x, random = case(CONFIG, 4, 24)
    config = replace(CONFIG, dispatch="gather")
    for mask in (None, x[..., 0] > -1):
        products = models.moe_layer(params, x, CONFIG, random=random, mask=mask)[0]
        np.testing.assert_array_equal(models.moe_layer(params, x, config, random=random, mask=mask)[0], products)


# ---- Lingvo's gate --------------------------------------------------------------------------------------------------


def lingvo(gates: np.ndarray, capacity: int, draws: np.ndarray) -> np.ndarray:
    """The gate of Lingvo for one group, a token at a time: rejected second experts take no slot."""
    size, experts = gates.shape
    combine, counts = np.zeros((size, experts, capacity)), np.zeros(experts, int)
    order = np.argsort(-gates, axis=1, kind="stable")
    for k in (0, 1):
        for s in range(size):
            pair = gates[s, order[s, :2]]
            weight = pair[k] / pair.sum()
            if k == 1 and not 2 * weight > draws[s]:
                continue
            expert = order[s, k]
            if counts[expert] < capacity:
                combine[s, expert, counts[expert]] = weight
            counts[expert] += 1
    return combine


@pytest.mark.parametrize("seed", range(5))
def test_lingvos_gate_is_its_loop_and_drops_no_more_than_algorithm_1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gates, draws = models.softmax(2 * rng.standard_normal((4, 33, 6))), rng.random((4, 33))
    config = models.MoEConfig(6, 1, 1, gate="lingvo")
    assert config.capacity_for(33) == 12  # 11, up to a multiple of 4
    for capacity in (2, 5, 12):
        found = models.top_gating(gates, replace(config, capacity=capacity), draws)
        paper = models.top_gating(gates, replace(config, capacity=capacity, gate="gshard"), draws)
        for g in range(4):
            np.testing.assert_allclose(found.combine[g], lingvo(gates[g], capacity, draws[g]), rtol=1e-14)
        assert np.all(found.statistics["dropped"] <= paper.statistics["dropped"])
        assert np.all(found.statistics["kept"] >= paper.statistics["kept"])
        np.testing.assert_allclose(found.aux, paper.aux * 36, rtol=1e-14)


def test_the_factor_makes_even_load_the_weight() -> None:
    even = np.eye(4)[np.arange(16) % 4][None]
    for gate in ("gshard", "lingvo"):
        config = models.MoEConfig(4, 1, 1, top_k=1, gate=gate)
        transformer = models.TransformerConfig(2, config, aux_weight=0.3)
        aux = models.top_gating(even, config).aux[0]
        assert transformer.aux_factor * aux == pytest.approx(0.3, rel=1e-12)


# ---- padding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("top_k", [1, 2])
@pytest.mark.parametrize("gate", ["gshard", "lingvo"])
def test_padding_takes_no_slot_and_counts_in_no_loss(top_k: int, gate: str) -> None:
    rng = np.random.default_rng(1)
    gates, draws = models.softmax(rng.standard_normal((3, 20, 4))), rng.random((3, 20))
    mask = rng.random((3, 20)) < 0.6
    config = models.MoEConfig(4, 1, 1, top_k=top_k, capacity=3, gate=gate)
    found = models.top_gating(gates, config, draws, mask)
    for g in range(3):
        kept = mask[g]
        alone = models.top_gating(gates[g, kept][None], config, draws[g, kept][None])
        np.testing.assert_array_equal(found.combine[g][kept], alone.combine[0])
        np.testing.assert_allclose(found.aux[g], alone.aux[0], rtol=1e-14)
        assert found.statistics["dropped"][g] == alone.statistics["dropped"][0]
        assert not np.any(found.dispatch[g][~kept])
