# SPDX-License-Identifier: Apache-2.0
"""Sharded weight updates of programs that also read weights and moments for something else, or are not followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"data": 8})
ROWS, INPUTS, OUTPUTS = 4096, 64, 32
ADAM = sw.optim.adam(1e-3)


def loss(w: Any, x: Any, y: Any) -> Any:
    return np.mean((np.tanh(x @ w) - y) ** 2)


def batches() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    return rng.normal(size=(ROWS, INPUTS)).astype("f4"), rng.normal(size=(ROWS, OUTPUTS)).astype("f4")


def random(*shape: int) -> np.ndarray:
    return (np.random.default_rng(sum(shape)).normal(size=shape) / 8).astype("f4")


def both(step: Callable[..., Any], *state: Any) -> tuple[sw.Program, Any, Any]:
    """The program with the switch, its results, and those without it."""
    x, y = batches()
    places: Any = {"mesh": MESH, "in_shardings": (*[None] * len(state), P("data"), P("data"))}
    jitted = sw.jit(step, shard_update="data", **places)
    program = jitted.lower(*state, x, y).compile()
    return program, jitted(*state, x, y), sw.jit(step, **places)(*state, x, y)


def assert_near(found: Any, expected: Any) -> None:
    leaves = [(np.asarray(a), np.asarray(b)) for a, b in zip(sw.tree.leaves(found), sw.tree.leaves(expected))]
    assert len(leaves) > 0
    for one, other in leaves:
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def trained(model_loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        updates, state = ADAM.update(sw.grad(model_loss)(params, x, y), state, params)
        return sw.optim.apply_updates(params, updates), state

    return step


METRICS: dict[str, Callable[[Any], Any]] = {
    "gram": lambda w: np.abs(w.T @ w).max(),
    "median": lambda w: np.sort(w.ravel())[w.size // 2],
    "spectrum": lambda w: np.abs(np.fft.fft(w)).max(),
}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_of_new_weights_is_no_part_of_the_update(metric: Callable[[Any], Any]) -> None:
    update = trained(lambda params, x, y: loss(params["w"], x, y))

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        params, state = update(params, state, x, y)
        return params, state, metric(params["w"])

    params = {"w": random(INPUTS, OUTPUTS)}
    program, found, expected = both(step, params, ADAM.init(params))
    rows = program.shard_update()
    assert [row.is_split for row in rows] == [True] * 3
    assert_near(found, expected)


@pytest.mark.parametrize("names", ["wab", "ab"])
def test_the_gradient_of_a_factor_is_a_sum_over_the_batch(names: str) -> None:
    """LoRA, and a weight in two factors: dw @ b.T is linear in dw."""

    def merged(params: Any, x: Any, y: Any) -> Any:
        return loss(params.get("w", 0) + params["a"] @ params["b"], x, y)

    weights = {"w": random(INPUTS, OUTPUTS), "a": random(INPUTS, 16), "b": random(16, OUTPUTS)}
    params = {name: weights[name] for name in names}
    program, found, expected = both(trained(merged), params, ADAM.init(params))
    rows = program.shard_update()
    assert [row.is_split for row in rows] == [True] * 3 * len(names)
    assert_near(found, expected)


def test_a_summary_in_a_branch_gathers_there_under_the_name_of_its_state() -> None:
    def run(w: Any, m: Any, x: Any, y: Any) -> Any:
        def step(i: Any, carry: Any) -> Any:
            w, m, total = carry
            m = 0.9 * m + sw.grad(loss)(w, x, y)
            middle = sw.cond(i % 5 == 0, lambda m: np.sort(m.ravel())[m.size // 2], lambda m: np.float32(0), m)
            return w - 0.1 * m, m, total + middle

        return sw.fori_loop(0, 20, step, (w, m, np.float32(0)))

    program, found, expected = both(run, random(INPUTS, OUTPUTS), np.zeros((INPUTS, OUTPUTS), np.float32))
    gathers = [row for row in program.collectives() if row.kind == "all_gather"]
    assert sorted((str(row.cause), str(row.bound)) for row in gathers) == [
        ("shard_update: gather of carry[0]", ""),
        ("shard_update: gather of carry[1]", "at most"),
    ]
    assert_near(found, expected)


@pytest.mark.parametrize("loop", ["fori_loop", "scan"])
def test_updates_of_a_loop_that_are_not_followed_are_reported(loop: str) -> None:
    def flattened(w: Any, m: Any, x: Any, y: Any) -> Any:
        m = 0.9 * m.reshape(-1) + sw.grad(loss)(w, x, y).reshape(-1)
        return (w.reshape(-1) - 0.1 * m).reshape(w.shape), m.reshape(w.shape)

    def run(w: Any, m: Any, x: Any, y: Any) -> Any:
        if loop == "fori_loop":
            return sw.fori_loop(0, 5, lambda _, c: flattened(*c, x, y), (w, m))
        return sw.scan(lambda c, _: (flattened(*c, x, y), None), (w, m), None, length=5)[0]

    program, found, expected = both(run, random(INPUTS, OUTPUTS), np.zeros((INPUTS, OUTPUTS), np.float32))
    rows = program.shard_update()
    assert [row.is_split for row in rows] == [False, False]
    assert all(row.reason.startswith("its update computes reshape at ") for row in rows)
    assert_near(found, expected)


def test_one_device_computes_what_it_computes_without_the_switch() -> None:
    """A penalty and a weight that is used twice: with several devices, parts of the gradient are added up first."""

    def tied(w: Any, x: Any, y: Any) -> Any:
        return loss(w, x, y) + np.mean((x[:, :OUTPUTS] @ w.T - x) ** 2) + 0.1 * (w**2).sum()

    def step(w: Any, m: Any, x: Any, y: Any) -> Any:
        m = 0.9 * m + sw.grad(tied)(w, x, y)
        return w - 0.1 * m, m

    state = (random(INPUTS, OUTPUTS), random(INPUTS, OUTPUTS) * 3)
    mesh = sw.Mesh({"data": 1})
    found = sw.jit(step, mesh=mesh, shard_update="data")(*state, *batches())
    expected = sw.jit(step, mesh=mesh)(*state, *batches())
    assert [np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(found, expected)] == [True, True]


def test_a_decay_of_the_optimizer_is_added_behind_the_sum_of_a_tied_weights_gradient() -> None:
    """The bits of an update whose gradient is summed first, which a penalty of the loss does not have."""
    optimizer = sw.optim.chain(sw.optim.add_decayed_weights(0.1), sw.optim.sgd(0.1, momentum=0.9))

    def tied(w: Any, x: Any, y: Any) -> Any:
        return loss(w, x, y) + np.mean((x[:, :OUTPUTS] @ w.T - x) ** 2)

    def step(w: Any, state: Any, x: Any, y: Any, is_summed: bool) -> Any:
        grad = sw.grad(tied)(w, x, y)
        if is_summed:
            grad = sw.shard(grad, P(sw.open(), sw.open(), replicated={"data"}))
        updates, state = optimizer.update(grad, state, w)
        return sw.optim.apply_updates(w, updates), state

    w = random(INPUTS, OUTPUTS)
    places: Any = {"mesh": MESH, "in_shardings": (None, None, P("data"), P("data")), "static_argnums": 4}
    found = sw.jit(step, shard_update="data", **places)(w, optimizer.init(w), *batches(), False)
    wanted = sw.jit(step, **places)(w, optimizer.init(w), *batches(), True)
    pairs = list(zip(sw.tree.leaves(found), sw.tree.leaves(wanted), strict=True))
    assert [np.array_equal(np.asarray(one), np.asarray(other)) for one, other in pairs] == [True] * 2


def test_a_program_without_an_update_warns() -> None:
    places: Any = {"mesh": MESH, "in_shardings": (None, P("data"))}
    with pytest.warns(sw.ShardingWarning, match=r"shard_update: .*no update"):
        sw.jit(lambda w, x: x @ w, shard_update="data", **places).lower(random(64, 32), batches()[0]).compile()
