# SPDX-License-Identifier: Apache-2.0
"""Where the state of an optimizer lies before the first step, and states of shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

OPTIMIZERS: dict[str, Any] = {
    "adam": sw.optim.adam(1e-3),
    "sgd with momentum": sw.optim.sgd(1e-3, momentum=0.9),
    "lamb": sw.optim.lamb(1e-3),
    "rmsprop": sw.optim.rmsprop(1e-3, initial_scale=0.5),
    "adagrad": sw.optim.adagrad(1e-3),
    "adafactor": sw.optim.adafactor(1e-3),
    "rmsprop, centered": sw.optim.rmsprop(1e-3, centered=True, bias_correction=True),
    "adamaxw": sw.optim.adamaxw(1e-3),
    "adamax": sw.optim.adamax(1e-3),
    "radam": sw.optim.radam(1e-3),
    "finite": sw.optim.apply_if_finite(sw.optim.adam(1e-3), 2),
    "injected": sw.optim.inject_hyperparams(sw.optim.adam)(1e-3),
    "masters": sw.optim.with_float32_masters(sw.optim.adam(1e-3)),
    "masters of adafactor": sw.optim.with_float32_masters(sw.optim.adafactor(1e-3)),
    "several steps": sw.optim.MultiSteps(sw.optim.with_float32_masters(sw.optim.adamw(1e-3)), 2),
}


def moments(state: Any, shape: tuple[int, ...]) -> list[Any]:
    """Leaves of a state that are like the parameter."""
    return [leaf for leaf in sw.tree.leaves(state) if tuple(leaf.shape) == shape]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_moments_lie_like_their_parameters(name: str) -> None:
    mesh = sw.Mesh({"x": 8})
    weights = {"w": sw.device_put(np.ones((17, 5), np.float32), sw.NamedSharding(mesh, P("x")))}
    state = OPTIMIZERS[name].init(weights)
    found = moments(state, (17, 5))
    assert found
    assert {leaf.sharding.spec for leaf in found} == {P("x", None)}
    # As after a step.
    _, after = OPTIMIZERS[name].update(weights, state, weights)
    assert {leaf.sharding.spec for leaf in moments(after, (17, 5))} == {P("x", None)}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_state_of_shapes_has_the_shapes_of_a_state(name: str) -> None:
    shapes = {"w": sw.ShapeDtypeStruct((256, 160), sw.bfloat16, sharding=P("x"))}
    wanted = OPTIMIZERS[name].init({"w": np.ones((256, 160), sw.bfloat16)})
    found = OPTIMIZERS[name].init(shapes)
    assert sw.tree.map(lambda x: (tuple(x.shape), x.dtype), found) == sw.tree.map(
        lambda x: (tuple(x.shape), x.dtype), wanted
    )
    assert all(leaf.sharding == P("x") for leaf in moments(found, (256, 160)))
