# SPDX-License-Identifier: Apache-2.0
"""Writes the training steps of training_models.py as texts, and what JAX computes in some steps, into an .npz file.

python -m tests.conformance.jax.training_worker OUT.npz

Keys: MODEL/text/PLATFORM/LAYOUT, MODEL/state/I (before the first step), MODEL/batch/STEP/I, MODEL/result/STEP/I.
"""

from __future__ import annotations

import os
import sys
from typing import Any

# XLA compiles each step once; optimized code would take most of the time.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"

import jax  # reads XLA_FLAGS
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from tests.conformance.jax.training_models import LAYOUTS, MODELS, Model

STEPS = 3
PLATFORMS = ("cpu", "tpu")


def shardings(layout: str, state: Any, batch: Any) -> dict[str, Any]:
    axes, batch_axis, state_spec = LAYOUTS[layout]
    mesh = Mesh(np.array(jax.devices()).reshape(*axes.values()), tuple(axes))
    states = jax.tree_util.tree_map_with_path(lambda path, x: NamedSharding(mesh, state_spec(path, x)), state)
    batches = tuple(NamedSharding(mesh, P(batch_axis)) for _ in batch)
    return {"in_shardings": (states, *batches), "out_shardings": (NamedSharding(mesh, P()), states)}


def texts(name: str, model: Model, state: Any, batch: Any) -> dict[str, Any]:
    found = {}
    for layout in model.layouts:
        options = shardings(layout, state, batch) if layout in LAYOUTS else {}
        traced = jax.jit(model.step, **options).trace(state, *batch)
        for platform in PLATFORMS:
            lowered = traced.lower(lowering_platforms=(platform,))
            found[f"{name}/text/{platform}/{layout}"] = np.asarray(lowered.as_text())
    return found


def main(path: str) -> None:
    arrays: dict[str, Any] = {}
    for name, model in MODELS.items():
        random = np.random.default_rng(len(name))
        state, step = model.state(random), jax.jit(model.step)
        for i, leaf in enumerate(jax.tree.leaves(state)):
            arrays[f"{name}/state/{i}"] = np.asarray(leaf)
        arrays |= texts(name, model, state, model.batch(random))
        for count in range(STEPS):
            batch = model.batch(random)
            loss, state = step(state, *batch)
            for i, leaf in enumerate(batch):
                arrays[f"{name}/batch/{count}/{i}"] = leaf
            for i, leaf in enumerate(jax.tree.leaves((loss, state))):
                arrays[f"{name}/result/{count}/{i}"] = np.asarray(leaf)
    np.savez(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
