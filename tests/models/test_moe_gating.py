# SPDX-License-Identifier: Apache-2.0
"""The gate against Algorithm 1 of the paper, a token at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardwise import models


def algorithm_1(gates: np.ndarray, top_k: int, capacity: int, rnd: np.ndarray | None) -> tuple[np.ndarray, float]:
    """Weights by token and (expert, place) of one group, and its auxiliary loss; comments are the paper's lines."""
    size, experts = gates.shape
    combine = np.zeros((size, experts, capacity))
    counts = np.zeros(experts, int)  # (1)
    mean = gates.mean(axis=0)  # (3)
    best = np.argsort(-gates, axis=1, kind="stable")

    def weights(s: int) -> tuple[float, float]:
        first = gates[s, best[s, 0]]
        if top_k == 1:
            return first, 0.0
        second = gates[s, best[s, 1]]
        return first / (first + second), second / (first + second)  # (6), (16)

    for s in range(size):  # (4)
        e1 = best[s, 0]  # (5)
        c = counts[e1]  # (7)
        if c < capacity:  # (8)
            combine[s, e1, c] = weights(s)[0]  # (9)
        counts[e1] += 1  # (11)
    aux = float(np.mean(counts / size * mean))  # (13)
    if top_k == 2:
        for s in range(size):  # (14)
            e2, g2 = best[s, 1], weights(s)[1]  # (15)
            c = counts[e2]  # (18)
            if c < capacity and (rnd is None or 2 * g2 > rnd[s]):  # (17), (19)
                combine[s, e2, c] = g2  # (20)
            counts[e2] += 1  # (22)
    return combine, aux


def random_gates(rng: np.random.Generator, groups: int, size: int, experts: int, spread: float) -> np.ndarray:
    return models.softmax(spread * rng.standard_normal((groups, size, experts)))


@pytest.mark.parametrize("top_k", [1, 2])
@pytest.mark.parametrize("capacity", [1, 2, 5, 100])
@pytest.mark.parametrize("routed", [False, True], ids=["all", "random"])
@pytest.mark.parametrize(("size", "experts"), [(16, 4), (7, 11), (1, 2), (33, 3)])
def test_gating_is_algorithm_1(top_k: int, capacity: int, routed: bool, size: int, experts: int) -> None:
    rng = np.random.default_rng(size * 100 + capacity)
    config = models.MoEConfig(experts, 1, 1, top_k=top_k, capacity=capacity)
    for spread in (0.1, 3.0):
        gates = random_gates(rng, 3, size, experts, spread)
        rnd = rng.random((3, size)) if routed else None
        gating = models.top_gating(gates, config, rnd)
        for g in range(3):
            combine, aux = algorithm_1(gates[g], top_k, capacity, None if rnd is None else rnd[g])
            np.testing.assert_allclose(gating.combine[g], combine, rtol=1e-14, atol=0)
            np.testing.assert_array_equal(gating.dispatch[g], combine > 0)
            np.testing.assert_allclose(gating.aux[g], aux, rtol=1e-14)
            np.testing.assert_array_equal(gating.statistics["tokens_per_expert"][g], np.sum(combine > 0, axis=(0, 2)))
            assert gating.statistics["dropped"][g] == np.sum(~np.any(combine > 0, axis=(1, 2)))


def test_equal_gates_choose_two_different_experts() -> None:
    config = models.MoEConfig(3, 1, 1, capacity=9)
    for row in ([1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]):
        statistics = models.top_gating(np.array([[row]]), config).statistics
        first, second = statistics["experts"][0, 0]
        assert first == int(np.argmax(row))
        assert first != second


def test_a_second_expert_is_asked_with_probability_two_g2() -> None:
    rng = np.random.default_rng(3)
    gates = np.broadcast_to(np.array([0.7, 0.2, 0.1]), (50, 200, 3))
    config = models.MoEConfig(3, 1, 1, capacity=400)
    kept = models.top_gating(gates, config, rng.random((50, 200))).statistics["kept"]
    assert np.all(kept[..., 0])
    assert np.mean(kept[..., 1]) == pytest.approx(2 * 0.2 / 0.9, abs=0.02)


@pytest.mark.parametrize(
    ("top_k", "experts", "size", "factor", "expected"),
    [(2, 8, 16, 1.0, 4), (2, 8, 16, 1.25, 5), (2, 2048, 8, 1.0, 1), (1, 8, 16, 1.0, 2), (2, 10, 55, 1.1, 13),
     (2, 10, 50, 1.1, 11)],
)  # fmt: skip
def test_capacity_is_the_fair_share_times_the_factor(
    top_k: int, experts: int, size: int, factor: float, expected: int
) -> None:
    config = models.MoEConfig(experts, 1, 1, top_k=top_k, capacity_factor=factor)
    assert config.capacity_for(size) == expected


def changed(statistics: dict[str, Any], other: dict[str, Any]) -> np.ndarray:
    return np.any(statistics["experts"] != other["experts"], axis=-1)


@pytest.mark.parametrize("top_k", [1, 2])
def test_a_change_below_half_the_margin_changes_no_choice(top_k: int) -> None:
    rng = np.random.default_rng(5)
    config = models.MoEConfig(6, 1, 1, top_k=top_k, capacity=1)
    gates = random_gates(rng, 4, 50, 6, 0.3)
    statistics = models.top_gating(gates, config).statistics
    margins = models.gate_margins(statistics)
    assert margins.shape == (4, 50)
    assert np.all(margins > 0)
    for scale in (0.49, 20.0):
        noise = scale * margins[..., None] * rng.choice([-1.0, 1.0], gates.shape)
        moved = changed(statistics, models.top_gating(gates + noise, config).statistics)
        assert np.any(moved) == (scale > 1)


def test_margins_see_how_close_the_random_number_is() -> None:
    config = models.MoEConfig(3, 1, 1, capacity=4)
    gates = np.array([[[0.6, 0.3, 0.1]]])
    statistics = models.top_gating(gates, config, np.array([[0.5]])).statistics
    near = models.gate_margins(statistics, np.array([[2 * 0.3 / 0.9 - 1e-9]]))
    assert near[0, 0] == pytest.approx(0.9e-9, rel=1e-5)
    assert models.gate_margins(statistics, np.array([[0.5]]))[0, 0] == pytest.approx(2 * 0.3 - 0.5 * 0.9)


def test_a_change_below_half_the_margin_asks_the_same_second_expert() -> None:
    rng = np.random.default_rng(6)
    config = models.MoEConfig(64, 1, 1, capacity=50)  # room for all, so that only the random number drops a second
    gates, random = random_gates(rng, 4, 50, 64, 0.3), rng.random((4, 50))
    statistics = models.top_gating(gates, config, random).statistics
    margins = models.gate_margins(statistics, random)
    assert 0 < np.sum(statistics["kept"][..., 1]) < 200
    for scale in (0.49, 20.0):
        noise = scale * margins[..., None] * rng.choice([-1.0, 1.0], gates.shape)
        moved = models.top_gating(gates + noise, config, random).statistics
        differs = changed(statistics, moved) | np.any(statistics["kept"] != moved["kept"], axis=-1)
        assert np.any(differs) == (scale > 1)


def test_a_dropped_token_has_no_output() -> None:
    rng = np.random.default_rng(7)
    config = models.MoEConfig(2, 4, 8, top_k=1, capacity=1)
    params = models.init_moe(rng, config, np.float64)
    x = rng.standard_normal((3, 6, 4))
    output, _, statistics = models.moe_layer(params, x, config)
    kept = statistics["kept"][..., 0]
    assert np.sum(~kept) >= 3 * 4
    assert np.all(output[~kept] == 0)
    for g, s in np.argwhere(kept):
        expert = statistics["experts"][g, s, 0]
        gate = statistics["gates"][g, s, expert]
        answer = np.maximum(x[g, s] @ params["wi"][expert], 0) @ params["wo"][expert]
        np.testing.assert_allclose(output[g, s], gate * answer, rtol=1e-12)
