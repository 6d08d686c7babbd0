# SPDX-License-Identifier: Apache-2.0
"""A training loop that can be killed at any moment and taken up on another number of devices, with the same losses.

    python examples/resume.py --folder run --devices 8      # stop it with Ctrl-C, or kill -9
    python examples/resume.py --folder run --devices 6      # goes on after the last whole step

Each step draws its batch from its own number, so a run that was taken up sees the same batches. Another number of
devices adds in another order. Here, sums are float64 and the state is float32, which rounds the difference away: the
losses are those of a run that nobody stopped.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P

INPUTS, HIDDEN, BATCH = 6, 20, 30


def loss_of(params: Any, x: Any) -> Any:
    """The error of a small network that learns the sum of the squares of its inputs."""
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    return ((hidden @ params["w2"] - (x * x).sum(1)) ** 2).mean()


def update(state: Any, x: Any) -> tuple[Any, Any]:
    """One step of gradient descent with momentum: computed in float64, kept in float32."""
    x = sw.split(x, 0, "data")
    wide = sw.tree.map(lambda leaf: leaf.astype(np.float64), state)
    loss, gradients = sw.value_and_grad(loss_of)(wide["params"], x)
    moments = sw.tree.map(lambda m, g: 0.9 * m + g, wide["moments"], gradients)
    params = sw.tree.map(lambda w, m: w - 0.01 * m, wide["params"], moments)
    state = {"params": params, "moments": moments}
    return sw.tree.map(lambda leaf: leaf.astype(np.float32), state), loss.astype(np.float32)


def first_state(mesh: sw.Mesh) -> Any:
    """Parameters and moments before the first step, with each row of a matrix on one device."""
    keys = sw.random.split(sw.random.key(0))
    params = {
        "w1": sw.random.normal(keys[0], (INPUTS, HIDDEN)) / 2,
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": sw.random.normal(keys[1], (HIDDEN,)) / 4,
    }
    state = {"params": params, "moments": sw.tree.map(np.zeros_like, params)}
    return sw.device_put(state, sw.NamedSharding(mesh, P("data")))


def train(folder: str, devices: int, steps: int) -> None:
    """Train from the newest step in the folder on."""
    mesh = sw.Mesh({"data": devices})
    step_of = sw.jit(update, mesh=mesh, donate_argnums=0, out_shardings=(P("data"), None))
    state, done = first_state(mesh), sw.latest(folder)
    if done is not None:
        state = sw.load(folder, like=state)
        print(f"resumed after step {done} on {devices} devices", flush=True)
    for step in range((done or 0) + 1, steps + 1):
        batch = sw.random.normal(sw.random.fold_in(sw.random.key(1), step), (BATCH, INPUTS)).astype(np.float64)
        state, loss = step_of(state, batch)
        sw.save(folder, state, step=step, keep=2, async_=True)
        print(f"step {step} loss {float(loss):.9g}", flush=True)  # 9 digits: all bits of a float32
    sw.wait_until_saved()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default="run", help="where the checkpoints are")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    train(options.folder, options.devices, options.steps)
