# SPDX-License-Identifier: Apache-2.0
"""The digits step and a Mixture-of-Experts layer on 8 devices of JAX: the virtual mesh's programs and numbers.

    python examples/on_jax.py

The devices are parts of this host's CPU. Leave XLA_FLAGS out to use GPUs or TPUs.
"""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")

from typing import Any

import jax
import numpy as np
import optree
from rich.console import Console
from rich.table import Table

import shardwise as sw
from digits import initial_params, load_shuffled, sgd_step
from shardwise import models

STEPS = 5
BATCH = 128
CLASSES = 10
TOLERANCE = 1e-5  # relative to the largest number of an array


class Report:
    """Compares arrays of JAX with those of the virtual mesh; one row per array or group of arrays."""

    def __init__(self) -> None:
        self.table = Table("", "bit by bit", "largest relative difference", title="JAX beside the virtual mesh")

    def add(self, name: str, found: Any, expected: Any, exact: bool = False) -> None:
        """Add a row. SystemExit if the numbers differ by more than rounding, or at all where they must be equal."""
        leaves = zip(optree.tree_leaves(found), optree.tree_leaves(expected), strict=True)
        pairs = [(np.asarray(a), np.asarray(b)) for a, b in leaves]
        equal = all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)
        apart = max(float(np.abs(a - b.astype(float)).max() / np.abs(b).max()) for a, b in pairs)
        if apart > TOLERANCE or (exact and not equal):
            raise SystemExit(f"{name}: must be those of the virtual mesh, got a relative difference of {apart:.1e}")
        self.table.add_row(name, "equal" if equal else "within rounding", f"{apart:.1e}")


def train_digits(mesh: sw.Mesh, report: Report) -> tuple[sw.Program, Any]:
    """Train for some steps in JAX, where the weights stay on the devices, and on the virtual mesh."""
    images, targets = load_shuffled()
    labels = np.eye(CLASSES, dtype=np.float32)[targets]
    rate = np.float32(0.2)
    params = initial_params(64)
    program = sw.jit(sgd_step, mesh=mesh).lower(params, images[:BATCH], labels[:BATCH], rate).compile()
    step = program.to_jax()
    expected = params
    for begin in range(0, STEPS * BATCH, BATCH):
        rows = slice(begin, begin + BATCH)
        loss, params = step(*step.put(params, images[rows], labels[rows], rate))
        expected_loss, expected = program(expected, images[rows], labels[rows], rate)
    report.add(f"digits: loss {float(loss):.4f} of step {STEPS}", loss, expected_loss)
    report.add("digits: weights", step.get((loss, params))[1], expected)
    return program, step


def route_tokens(mesh: sw.Mesh, report: Report) -> tuple[sw.Program, Any]:
    """Run a layer of 8 experts, whose tokens travel by two all-to-alls."""
    config = models.MoEConfig(8, 32, 64, 2, 1.25, None)
    rng = np.random.default_rng(0)
    params = models.init_moe(rng, config)
    x = rng.standard_normal((8, 16, 32)).astype(np.float32)
    axes = ("data", "model")
    layer = sw.jit(lambda params, x: models.moe_layer(params, x, config, axes=axes), mesh=mesh)
    program = layer.lower(params, x).compile()
    function = program.to_jax()
    output, loss, statistics = function.get(function(*function.put(params, x)))
    expected_output, expected_loss, expected = program(params, x)
    for name in ("experts", "kept", "tokens_per_expert"):
        report.add(f"experts: {name}", statistics[name], expected[name], exact=True)
    report.add("experts: output", output, expected_output)
    report.add("experts: loss of the balance", loss, expected_loss)
    return program, function


def main() -> None:
    console = Console(width=110)
    mesh = sw.Mesh({"data": 4, "model": 2})
    report = Report()
    console.print(f"{mesh!r} on {len(jax.devices())} devices of JAX ({jax.default_backend()})")
    for name, (program, function) in (
        ("digits", train_digits(mesh, report)),
        ("experts", route_tokens(mesh, report)),
    ):
        here, there = program.collectives(), function.collectives()
        console.print(f"{name}: {program!r}")
        console.print(f"{name}: {here.total_bytes:.0f} B received per device here, {there.total_bytes:.0f} B in JAX")
    console.print(report.table)


if __name__ == "__main__":
    main()
