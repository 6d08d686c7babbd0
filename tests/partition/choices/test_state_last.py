# SPDX-License-Identifier: Apache-2.0
"""Weights that are split over the axis of the batch do not split what a loop carries."""

from __future__ import annotations

import pickle
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shardwise as sw
from shardwise import P, ShapeDtypeStruct

MESH = sw.Mesh({"d": 8})
BATCH, LENGTH, WIDTH, STATE = 8, 6, 16, 4


def loss(weights: Any, x: Any, y: Any) -> Any:
    """A state space model (Mamba), with a gradient of JAX: the states of a feature decay by weights of its own."""
    h, gate = jnp.split(x @ weights["in"], 2, -1)
    h = jax.nn.silu(h)
    dt = jax.nn.softplus(h @ weights["dt"])
    rows = tuple(row.swapaxes(0, 1) for row in (dt, h @ weights["write"], h @ weights["read"], h))

    def step(state: Any, row: Any) -> tuple[Any, Any]:
        dt, write, read, h = row
        state = state * jnp.exp(-dt[..., None] * weights["decay"]) + (dt * h)[..., None] * write[:, None, :]
        return state, (state * read[:, None, :]).sum(-1)

    start = jnp.zeros((x.shape[0], *weights["decay"].shape))
    _, out = jax.lax.scan(step, start, rows)
    return ((((out.swapaxes(0, 1)) * jax.nn.silu(gate)) @ weights["out"] - y) ** 2).mean()


def updated(weights: Any, x: Any, y: Any) -> Any:
    gradients = jax.grad(loss)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


step = sw.from_jax(updated)


def shapes(width: int, state: int) -> dict[str, tuple[int, int]]:
    square, narrow = (width, width), (width, state)
    return {"in": (width, 2 * width), "dt": square, "read": narrow, "write": narrow, "decay": narrow, "out": square}


SPECS = {"in": P("d"), "dt": P("d"), "read": P(), "write": P(), "decay": P("d"), "out": P("d")}
SHARDINGS: dict[str, Any] = {"mesh": MESH, "in_shardings": (SPECS, P("d"), P("d")), "out_shardings": SPECS}


def real() -> tuple[Any, Any, Any]:
    weights = {name: ShapeDtypeStruct(shape, np.float32) for name, shape in shapes(4096, 16).items()}
    x = ShapeDtypeStruct((64, 2048, 4096), np.float32)
    return weights, x, x


@pytest.mark.parametrize("objective", ["time", "bytes"])
def test_the_states_of_a_gradient_stay_where_the_forward_pass_saved_them(objective: str) -> None:
    program = sw.jit(step, objective=objective, **SHARDINGS).lower(*real()).compile()
    states = [row for row in program.collectives() if "2048," in row.type and row.type.count(",") >= 3]
    assert states == []
    assert program.choices.propagation == "state last"
    # Each weight is gathered once, and each gradient scattered once.
    weights = sum(4 * a * b for a, b in shapes(4096, 16).values())
    assert program.collectives().total_bytes < 3 * weights


def test_numbers_are_those_of_one_device() -> None:
    rng = np.random.default_rng(5)
    weights = {name: rng.random(shape, np.float32) / 4 for name, shape in shapes(WIDTH, STATE).items()}
    x, y = rng.standard_normal((2, BATCH, LENGTH, WIDTH), np.float32)
    assert sw.jit(step, **SHARDINGS).lower(weights, x, y).compile().choices.propagation == "state last"
    alone = jax.jit(updated)(weights, x, y)
    found = sw.jit(step, **SHARDINGS)(weights, x, y)
    assert sorted(found) == sorted(alone)
    for name in alone:
        np.testing.assert_allclose(np.asarray(found[name]), np.asarray(alone[name]), rtol=1e-4, atol=1e-5)


def test_choices_keep_the_order_of_propagation() -> None:
    program = sw.jit(step, **SHARDINGS).lower(*real()).compile()
    choices = sw.Choices.from_json(program.choices.to_json())
    assert choices == program.choices
    assert "propagation: state last" in str(choices)
    again = sw.jit(step, choices=choices, **SHARDINGS).lower(*real()).compile()
    assert again.as_text() == program.as_text()
    assert again.choices == program.choices
    assert pickle.loads(pickle.dumps(program)).as_text() == program.as_text()
    with pytest.raises(ValueError, match=r"from_json: takes the JSON of choices.*propagation must be 'state last'"):
        sw.Choices.from_json(program.choices.to_json().replace("state last", "state first"))


def test_reports_explain_the_order_that_was_taken() -> None:
    program = sw.jit(step, **SHARDINGS).lower(*real()).compile()
    assert "annotated on argument weights['decay']" in str(program.why("weights['decay']"))
    place = max(program.work(), key=lambda row: row.flops).where
    signs = re.findall(r": ([+-])[\d.]+ [num]?s,", str(program.why(place)))
    assert signs  # prices of other ways, in the order that was taken: none takes less
    assert set(signs) == {"+"}
    assert program.why("weights['decay']", instead=P(None, "d")) is not None


def test_programs_without_loops_are_propagated_once() -> None:
    def plain(w: Any, x: Any) -> Any:
        return w - sw.grad(lambda w: ((x @ w) ** 2).sum())(w)

    w, x = ShapeDtypeStruct((4096, 4096), np.float32), ShapeDtypeStruct((64, 4096), np.float32)
    program = sw.jit(plain, mesh=MESH, in_shardings=(P("d"), P("d")), out_shardings=P("d")).lower(w, x).compile()
    assert program.choices.propagation == ""
