# SPDX-License-Identifier: Apache-2.0
"""Gradients through loops, branches and checkpoints are those of JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.jax.control_flow_losses import LOSSES
from tests.conformance.jax.control_flow_programs import Program
from tests.support.once_per_run import written_by

WORKER = "tests.conformance.jax.control_flow_gradients_worker"
MESH = sw.Mesh({"x": 4})
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=[loss.name for loss in LOSSES])


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, WORKER, "out.npz"))


def with_gradients(loss: Program) -> Any:
    return sw.value_and_grad(lambda *arrays: loss.function(np, sw, *arrays), tuple(range(len(loss.inputs))))


@each_loss
def test_value_and_gradients_are_those_of_jax(loss: Program, results: Any) -> None:
    function = sw.jit(with_gradients(loss), mesh=MESH)
    found = [np.asarray(leaf) for leaf in sw.tree.leaves(function(*loss.inputs))]
    expected = [results[f"{loss.name}/{i}"] for i in range(len(found))]
    assert f"{loss.name}/{len(found)}" not in results
    for ours, theirs in zip(found, expected):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * max(1.0, np.abs(theirs).max(initial=0)))


@each_loss
def test_the_program_verifies_and_survives_its_text(loss: Program) -> None:
    module = sw.jit(with_gradients(loss), mesh=MESH).trace(*loss.inputs)
    module.verify()
    assert sw.parse(module.as_text()).as_text() == module.as_text()
    propagated = module.propagate()
    propagated.verify()


def test_gradients_outside_jit() -> None:
    loss = next(loss for loss in LOSSES if loss.name == "scan_with_captured_weights")
    placed = [sw.device_put(x, sw.NamedSharding(MESH, sw.P())) for x in loss.inputs]
    expected = sw.jit(with_gradients(loss), mesh=MESH)(*loss.inputs)
    found = with_gradients(loss)(*placed)
    assert sw.tree.structure(found) == sw.tree.structure(expected)
    for ours, theirs in zip(sw.tree.leaves(found), sw.tree.leaves(expected)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
