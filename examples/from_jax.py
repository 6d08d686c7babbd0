# SPDX-License-Identifier: Apache-2.0
"""A Transformer layer written in jax.numpy: read in, explained, changed by one annotation, and handed back to JAX."""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from rich.console import Console

import shardwise as sw
from shardwise import P

BATCH, TIME, MODEL, HEADS, HIDDEN = 8, 16, 32, 4, 128


def attention(params, x):
    q, k, v = (jnp.einsum("btd,dhe->bthe", x, params[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("bthe,bshe->bhts", q, k) / np.float32(MODEL // HEADS) ** 0.5
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bhts,bshe,hed->btd", weights, v, params["out"])


def feed_forward(params, x):
    hidden = checkpoint_name(jax.nn.relu(x @ params["up"]), "hidden")
    return hidden @ params["down"]


def loss(params, x, target):
    x = x + attention(params, x)
    x = x + feed_forward(params, x)
    return jnp.mean((x - target) ** 2)


def parameters(rng):
    per_head = (MODEL, HEADS, MODEL // HEADS)
    shapes = {"query": per_head, "key": per_head, "value": per_head, "out": (HEADS, MODEL // HEADS, MODEL)}
    shapes |= {"up": (MODEL, HIDDEN), "down": (HIDDEN, MODEL)}
    return {name: rng.standard_normal(shape, dtype=np.float32) / 8 for name, shape in shapes.items()}


def main() -> None:
    console = Console(width=110)
    mesh = sw.Mesh({"data": 4, "model": 2})
    rng = np.random.default_rng(0)
    params = parameters(rng)
    x, target = (rng.standard_normal((BATCH, TIME, MODEL), dtype=np.float32) for _ in range(2))
    step = sw.value_and_grad(sw.from_jax(loss))  # the gradient is JAX's

    console.rule("data parallel: the batch is split over all devices")
    batch = P(("data", "model"))
    before = sw.jit(step, mesh=mesh, in_shardings=(None, batch, batch)).lower(params, x, target).compile()
    console.print(str(before.collectives().group_by("where", "kind")), soft_wrap=True)

    console.rule("one annotation: the hidden layer is split over the axis model")
    split = {**dict.fromkeys(params), "up": P(None, "model")}
    batch = P("data")
    after = sw.jit(step, mesh=mesh, in_shardings=(split, batch, batch)).lower(params, x, target).compile()
    console.print(str(after.collectives().group_by("where", "kind")), soft_wrap=True)
    console.print(str(after.why("hidden")), soft_wrap=True)

    console.rule("the numbers, and the way back")
    value, gradient = after(params, x, target)
    expected = jax.jit(jax.value_and_grad(loss))(params, x, target)
    apart = [np.abs(np.asarray(ours) - np.asarray(theirs)).max() for ours, theirs in zip(
        sw.tree.leaves((value, gradient)), jax.tree.leaves(expected))]  # fmt: skip
    console.print(f"largest difference to jax.value_and_grad: {max(apart):.1e}")
    on_devices = after.to_jax()
    placed = on_devices.put(params, x, target)
    console.print(f"loss on {len(jax.devices())} devices of JAX: {float(on_devices(*placed)[0]):.4f}")
    sent = [f"{program.collectives().total_bytes / 1024:.0f} KiB" for program in (before, after)]
    console.print(f"received per device and step: {sent[0]} before, {sent[1]} after")


if __name__ == "__main__":
    main()
