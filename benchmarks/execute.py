# SPDX-License-Identifier: Apache-2.0
"""Time to run an MLP on 8 virtual devices (4 data x 2 model), beside NumPy on one and JAX on 8 host devices.

All three run in one process, interleaved; OpenBLAS's waiting threads are told to sleep (OPENBLAS_THREAD_TIMEOUT=4), or
two pools would slow each other down. Ratios are of medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
if os.environ.get("OPENBLAS_THREAD_TIMEOUT") != "4":  # read when the library loads
    os.environ["OPENBLAS_THREAD_TIMEOUT"] = "4"
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks.execute", *sys.argv[1:]])

import jax
import jax.numpy as jnp
import numpy as np

import shardwise as sw
from benchmarks.report import interleaved, table, write
from shardwise import P

SIZES = (128, 512, 1024, 2048)  # batch = model = hidden / 2
LIMIT = 1.3  # of NumPy's time, from LIMIT_FROM on
LIMIT_FROM = 512


def mlp(lib, split, shard):
    def forward(x, w1, w2):
        h = lib.maximum(split(x) @ shard(w1), 0)
        return h @ w2

    return forward


def measure(size: int, rounds: int) -> dict[str, object]:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((size, size), dtype=np.float32)
    w1 = rng.standard_normal((size, 2 * size), dtype=np.float32) / np.float32(np.sqrt(size))
    w2 = rng.standard_normal((2 * size, size), dtype=np.float32) / np.float32(np.sqrt(2 * size))

    plain = mlp(np, lambda a: a, lambda a: a)
    mesh = sw.Mesh({"data": 4, "model": 2})
    ours = sw.jit(mlp(np, lambda a: sw.split(a, 0, "data"), lambda a: sw.shard(a, P(None, "model"))), mesh=mesh)

    jax_mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    place = lambda spec: jax.sharding.NamedSharding(jax_mesh, jax.sharding.PartitionSpec(*spec))  # noqa: E731
    constrain = jax.lax.with_sharding_constraint
    theirs = jax.jit(mlp(jnp, lambda a: constrain(a, place(("data",))), lambda a: constrain(a, place((None, "model")))))
    jax_args = [jax.device_put(a, place(s)) for a, s in ((x, ("data",)), (w1, (None, "model")), (w2, ("model",)))]
    our_args = [sw.device_put(a, s) for a, s in zip((x, w1, w2), ours.lower(x, w1, w2).compile().input_shardings)]
    difference = float(np.max(np.abs(np.asarray(ours(*our_args)) - plain(x, w1, w2))))
    functions = {
        "numpy": lambda: plain(x, w1, w2),
        "shardwise": lambda: ours(*our_args),
        "jax": lambda: theirs(*jax_args).block_until_ready(),
    }
    interleaved(functions, 3)
    seconds = {name: statistics.median(runs) for name, runs in interleaved(functions, rounds).items()}
    return {"size": size, "seconds": seconds, "difference": difference}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=31)
    args = parser.parse_args()
    results = [measure(size, args.rounds) for size in SIZES]
    rows, problems = [], []
    for result in results:
        seconds: dict[str, float] = result["seconds"]  # type: ignore[assignment]
        ratio = seconds["shardwise"] / seconds["numpy"]
        rows.append(
            [
                result["size"],
                *(seconds[n] * 1e3 for n in ("numpy", "shardwise", "jax")),
                ratio,
                seconds["jax"] / seconds["numpy"],
                result["difference"],
            ]
        )
        if result["size"] >= LIMIT_FROM and ratio > LIMIT:  # type: ignore[operator]
            problems.append(f"size {result['size']}: {ratio:.2f}x NumPy, above {LIMIT}")
    table(
        "execute: MLP forward on 8 devices, float32",
        ["size", "NumPy ms", "shardwise ms", "JAX ms", "shardwise/NumPy", "JAX/NumPy", "max |difference|"],
        rows,
    )
    write("execute", results)
    for problem in problems:
        print("NOT MET:", problem)
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
