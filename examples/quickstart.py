# SPDX-License-Identifier: Apache-2.0
"""A two-layer perceptron on 4x2 virtual devices: forward, gradient, the reason of every collective."""

from __future__ import annotations

import numpy as np
from rich.console import Console

import shardwise as sw
from shardwise import P

BATCH, MODEL, HIDDEN = 64, 32, 128


def mlp(x, w1, w2):
    x = sw.split(x, 0, "data")
    w1 = sw.shard(w1, P(None, "model"))
    h = np.maximum(np.einsum("bm,mh->bh", x, w1), 0)
    return np.einsum("bh,hm->bm", h, w2)  # w2 needs no annotation: propagation finds [{"model"}, {}]


def loss(params, x, target):
    w1, w2 = params
    return np.mean((mlp(x, w1, w2) - target) ** 2)


def main() -> None:
    console = Console(width=110)
    mesh = sw.Mesh({"data": 4, "model": 2})
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH, MODEL), dtype=np.float32)
    w1 = rng.standard_normal((MODEL, HIDDEN), dtype=np.float32)
    w2 = rng.standard_normal((HIDDEN, MODEL), dtype=np.float32)
    console.rule(f"forward on {mesh!r}")
    forward = sw.jit(mlp, mesh=mesh)
    y = forward(x, w1, w2)
    expected = mlp(x, w1, w2)  # the same function is plain NumPy
    console.print(
        f"result {y.shape} as {y.sharding.spec}; max |difference| to NumPy "
        f"{np.max(np.abs(np.asarray(y) - expected)):.2e}"
    )
    program = forward.lower(x, w1, w2).compile()
    console.print(program.as_text("propagated"), highlight=False, markup=False, soft_wrap=True)
    console.print(program.as_text("local"), highlight=False, markup=False, soft_wrap=True)
    console.print(program.collectives())
    console.print(repr(program.why("w2")), highlight=False, markup=False, soft_wrap=True)
    console.print(repr(program.why("h")), highlight=False, markup=False, soft_wrap=True)

    console.rule("gradient")
    step = sw.jit(sw.value_and_grad(loss), mesh=mesh)
    target = rng.standard_normal((BATCH, MODEL), dtype=np.float32)
    value, (g1, g2) = step((w1, w2), x, target)
    console.print(
        f"loss {float(value):.4f} (NumPy {loss((w1, w2), x, target):.4f}); "
        f"gradients as {g1.sharding.spec} and {g2.sharding.spec}"
    )
    console.print(step.lower((w1, w2), x, target).compile().collectives())


if __name__ == "__main__":
    main()
