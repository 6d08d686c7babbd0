# SPDX-License-Identifier: Apache-2.0
"""Training steps of a convolutional net, a Transformer and an LSTM: JAX's texts give JAX's losses and states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.support.once_per_run import written_by

WORKER = "tests.conformance.jax.training_worker"
STEPS = 3
TOLERANCE = 2e-4  # of the largest number of a leaf: float32 sums in another order, three Adam steps
LAYOUTS = {
    "conv_net": ("whole", "data"),
    "transformer": ("whole", "data", "data and model"),
    "lstm": ("whole", "data"),
}
CASES = [(name, platform, layout) for name in LAYOUTS for platform in ("cpu", "tpu") for layout in LAYOUTS[name]]


@pytest.fixture(scope="module")
def by_jax(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, WORKER, "out.npz"))


def leaves(by_jax: Any, prefix: str) -> list[Any]:
    count = sum(key.startswith(f"{prefix}/") for key in by_jax.files)
    return [by_jax[f"{prefix}/{i}"] for i in range(count)]


def test_every_text_is_tested(by_jax: Any) -> None:
    written = {tuple(key.split("/")) for key in by_jax.files if "/text/" in key}
    assert written == {(name, "text", platform, layout) for name, platform, layout in CASES}


@pytest.mark.parametrize(
    ("name", "platform", "layout"), CASES, ids=["-".join(case).replace(" ", "_") for case in CASES]
)
def test_steps_in_a_row_give_what_jax_gives(by_jax: Any, name: str, platform: str, layout: str) -> None:
    text = str(by_jax[f"{name}/text/{platform}/{layout}"])
    program = sw.parse(text, f"{name}.mlir").compile()
    assert program.mesh.size == (1 if layout == "whole" else 8)
    state: list[Any] = leaves(by_jax, f"{name}/state")
    for step in range(STEPS):
        loss, *state = program.run(*state, *leaves(by_jax, f"{name}/batch/{step}"))
        expected = leaves(by_jax, f"{name}/result/{step}")
        assert len(expected) == len(state) + 1
        for found, by in zip((loss, *state), expected):
            assert found.shape == by.shape
            assert found.dtype == by.dtype
            if by.dtype.kind in "iu":
                assert np.array_equal(np.asarray(found), by)
                continue
            scale = np.max(np.abs(by), initial=1e-3)
            np.testing.assert_allclose(np.asarray(found), by, rtol=0, atol=TOLERANCE * scale)
