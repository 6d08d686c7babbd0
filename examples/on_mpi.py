# SPDX-License-Identifier: Apache-2.0
"""The digits step and a Mixture-of-Experts layer on the ranks of an MPI job: the virtual mesh's numbers, bit by bit.

    mpirun -n 4 python examples/on_mpi.py

Each rank also runs both programs on the virtual mesh of its own process, and compares.
"""

from __future__ import annotations

import numpy as np
import optree

import shardwise as sw
from digits import initial_params, load_shuffled, sgd_step
from shardwise import models

STEPS = 5
BATCH = 128
CLASSES = 10


def train_digits(mesh: sw.Mesh) -> tuple[list[float], list[np.ndarray], sw.Program]:
    """Losses and weights after some steps. Each device is computed separately, as on a cluster."""
    images, targets = load_shuffled()
    labels = np.eye(CLASSES, dtype=np.float32)[targets]
    params, rate = initial_params(64), np.float32(0.2)
    program = sw.jit(sgd_step, mesh=mesh).lower(params, images[:BATCH], labels[:BATCH], rate).compile()
    losses = []
    for begin in range(0, STEPS * BATCH, BATCH):
        rows = slice(begin, begin + BATCH)
        loss, params = program.run(params, images[rows], labels[rows], rate, faithful=True)
        losses.append(float(loss))
    return losses, [np.asarray(p) for p in params], program


def route_tokens(mesh: sw.Mesh) -> tuple[np.ndarray, sw.Program]:
    """The output of a layer of 8 experts, whose tokens travel by two all-to-alls."""
    config = models.MoEConfig(8, 32, 64, 2, 1.25, None)
    rng = np.random.default_rng(0)
    params = models.init_moe(rng, config)
    x = rng.standard_normal((8, 16, 32)).astype(np.float32)
    axes = ("data", "model")
    layer = sw.jit(lambda params, x: models.moe_layer(params, x, config, axes=axes)[0], mesh=mesh)
    program = layer.lower(params, x).compile()
    return np.asarray(program.run(params, x, faithful=True)), program


def main() -> None:
    ranks = sw.mpi.communicator()
    mesh = sw.Mesh({"data": 4, "model": 2})
    found = train_digits(mesh)[:2], route_tokens(mesh)[0]
    with sw.mpi.local():
        losses, weights, step = train_digits(mesh)
        output, layer = route_tokens(mesh)
    pairs = zip(optree.tree_leaves(found), optree.tree_leaves(((losses, weights), output)))
    equal = all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)
    if not equal:
        raise SystemExit(f"rank {ranks.rank}: the numbers must be those of the virtual mesh")
    if ranks.rank == 0:
        print(f"{mesh!r} on {ranks.size} ranks, {mesh.size // ranks.size} devices each")
        print(f"digits: loss {losses[0]:.4f}, after {STEPS} steps {losses[-1]:.4f}; {step!r}")
        print(f"experts: {output.shape[0]} groups of {output.shape[1]} tokens; {layer!r}")
        print("every number is that of the virtual mesh, bit by bit")


if __name__ == "__main__":
    main()
