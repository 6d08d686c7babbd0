# SPDX-License-Identifier: Apache-2.0
"""Slow weights, skipped updates and hyperparameters in the state, beside the numbers of test_optimizers.py."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import optax
import pytest

import shardwise as sw
from shardwise import P, optim as o

MESH = sw.Mesh({"x": 2, "y": 4})
W = {"b": np.ones(3), "w": np.linspace(-1, 1, 12).reshape(4, 3)}
NEW = (
    "adamax",
    "adamaxw",
    "rmsprop",
    "scale_by_rms",
    "scale_by_stddev",
    "radam",
    "scale_by_adamax",
    "scale_by_radam",
    "lookahead",
    "apply_if_finite",
    "inject_hyperparams",
)


@pytest.mark.parametrize("name", NEW)
def test_parameters_and_defaults_are_those_of_optax(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (o, optax))
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]


def test_states_have_the_fields_of_optax() -> None:
    for name in ("ApplyIfFiniteState", "LookaheadState", "LookaheadParams", "InjectStatefulHyperparamsState"):
        theirs = getattr(optax, name, None) or getattr(optax.schedules, name)
        assert getattr(o, name)._fields == theirs._fields, name


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("b2", [0.5, 0.6, 0.7, 0.9])
def test_a_short_average_of_squares_leaves_the_momentum(b2: float) -> None:
    ours, theirs = (m.radam(0.1, b2=b2) for m in (o, optax))
    state, expected = ours.init(np.zeros(2, np.float32)), theirs.init(np.zeros(2, np.float32))
    for step in range(12):
        grads = np.array([0.0, 1.0 + step], np.float32)
        updates, state = ours.update(grads, state)
        wanted, expected = theirs.update(grads, expected)
        np.testing.assert_allclose(updates, np.asarray(wanted), rtol=1e-5)


# ---- skipped updates ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:invalid value")  # of the momentum, behind an infinite update that counts
@pytest.mark.parametrize("most", [0, 1, 3])
def test_counters_and_updates_are_those_of_optax(most: int) -> None:
    """Also behind the update that counts although it is infinite."""
    ours, theirs = (m.apply_if_finite(m.sgd(0.5, momentum=0.5), most) for m in (o, optax))
    state, expected = ours.init(np.zeros(2, np.float32)), theirs.init(np.zeros(2, np.float32))
    for value in (1.0, np.inf, 2.0, np.nan, np.inf, -np.inf, 3.0):
        grads = np.array([1.0, value], np.float32)
        updates, state = ours.update(grads, state)
        wanted, expected = theirs.update(grads, expected)
        np.testing.assert_array_equal(updates, np.asarray(wanted))
        for a, b in zip(sw.tree.leaves(state), sw.tree.leaves(tuple(expected))):
            np.testing.assert_array_equal(a, np.asarray(b))
            assert a.dtype == b.dtype
    assert int(state.total_notfinite) == 4


def test_one_leaf_that_is_not_finite_skips_all() -> None:
    specs = {"b": P(), "w": P("y", "x")}
    careful = o.apply_if_finite(o.adam(0.1), 9)

    def step(grads: Any, params: Any) -> Any:
        return careful.update(grads, careful.init(params), params)

    grads = {**W, "w": W["w"].copy()}
    grads["w"][2, 1] = np.nan
    for run in (step, sw.jit(step, mesh=MESH, in_shardings=(specs, specs))):
        updates, state = run(grads, W)
        assert not any(np.any(np.asarray(leaf)) for leaf in updates.values())
        assert not any(np.any(np.asarray(leaf)) for leaf in sw.tree.leaves(state.inner_state))
        assert (int(state.notfinite_count), bool(state.last_finite)) == (1, False)


# ---- hyperparameters ------------------------------------------------------------------------------------------------


def test_a_hyperparameter_is_changed_between_steps() -> None:
    optimizer = o.inject_hyperparams(o.sgd)(learning_rate=0.5, momentum=0.5)
    state = optimizer.init(W)
    assert {name: float(value) for name, value in state.hyperparams.items()} == {"learning_rate": 0.5, "momentum": 0.5}
    step = sw.jit(lambda state: optimizer.update(W, state, W), mesh=MESH)
    first, _ = step(state)
    np.testing.assert_allclose(first["b"], -0.5)
    for rate in (0.25, np.float32(0.25), np.array(0.25)):
        changed, after = optimizer.update(
            W, state._replace(hyperparams={**state.hyperparams, "learning_rate": rate}), W
        )
        np.testing.assert_allclose(changed["b"], -0.25)
        assert float(after.hyperparams["learning_rate"]) == 0.25


@pytest.mark.parametrize("dtype", [np.float32, np.float64, sw.bfloat16])
def test_hyperparameters_have_the_widest_dtype_of_the_parameters(dtype: Any) -> None:
    params = {"a": np.ones(2, sw.bfloat16), "b": np.ones(2, dtype)}
    make = o.inject_hyperparams(o.adam)
    optimizer = make(o.linear_schedule(0.5, 0.0, 4), b2=np.float64(0.5))
    first = optimizer.init(params)
    assert {name: x.dtype for name, x in first.hyperparams.items()} == dict.fromkeys(first.hyperparams, np.dtype(dtype))

    def step(state: Any, _: Any) -> Any:
        updates, state = optimizer.update(params, state, params)
        return state, updates

    last, updates = sw.jit(lambda: sw.scan(step, first, None, length=3), mesh=MESH)()
    assert updates["b"].dtype == dtype
    assert float(last.hyperparams["learning_rate"]) == 0.25
    narrow = o.inject_hyperparams(o.adam, hyperparam_dtype=np.float16)(0.5).init(params)
    assert {x.dtype for x in narrow.hyperparams.values()} == {np.dtype(np.float16)}


def test_static_arguments_are_not_in_the_state() -> None:
    optimizer = o.inject_hyperparams(o.adamw, static_args=("b1", "mask"))(
        0.1, mask=lambda params: {"b": True, "w": False}
    )
    state = optimizer.init(W)
    assert {*state.hyperparams} == {"learning_rate", "b2", "eps", "eps_root", "weight_decay"}
    with pytest.raises(
        ValueError, match=r"optim\.inject_hyperparams: static_args must be arguments of adam, got \['mask'\]"
    ):
        o.inject_hyperparams(o.adam, "mask")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'learning_rate'"):
        o.inject_hyperparams(o.adam)()
    with pytest.raises(TypeError, match=re.escape("optim.sgd: learning_rate must be a number or a schedule, got 'a'")):
        o.inject_hyperparams(o.sgd)("a").init(W)


# ---- slow weights ---------------------------------------------------------------------------------------------------


def test_slow_weights_wait_for_the_synchronization() -> None:
    optimizer = o.lookahead(o.sgd(1.0), 2, 0.5)
    params = o.LookaheadParams.init_synced(np.zeros(1))
    state = optimizer.init(params)
    seen = []
    for _ in range(4):
        updates, state = optimizer.update(np.ones(1), state, params)
        params = o.apply_updates(params, updates)
        seen.append((float(params.fast[0]), float(params.slow[0]), int(state.steps_since_sync)))
    assert seen == [(-1.0, 0.0, 1), (-1.0, -1.0, 0), (-2.0, -1.0, 1), (-2.0, -2.0, 0)]


def test_a_lookahead_takes_a_pair() -> None:
    rule = "optim.lookahead: the parameters must be a LookaheadParams, got "
    way_out = "make it with LookaheadParams.init_synced(params)"
    optimizer = o.lookahead(o.sgd(1.0), 2, 0.5)
    with pytest.raises(TypeError, match=f"{re.escape(rule)}dict; {re.escape(way_out)}"):
        optimizer.init({name: np.ones((9, 9)) for name in "abc"})
    shapes = o.LookaheadParams.init_synced({"w": sw.ShapeDtypeStruct((256, 160), np.float32, sharding=P("x"))})
    (moments, _), _ = o.lookahead(o.adam(0.1), 2, 0.5).init(shapes)
    assert moments.mu["w"].sharding == P("x")
