# SPDX-License-Identifier: Apache-2.0
"""The lines of `benchmarks.handover` about JAX: times to trace, lower, compile and run handed-over programs.

Each number of host devices is a process of its own, which prints a row as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

import shardwise as sw
from benchmarks.report import interleaved, table, write

__all__ = ["show_jax"]

OPS = 1000
LAYERS = 12


def many_ops(x: Any) -> Any:
    for i in range(OPS):
        x = np.tanh(x) if i % 2 else x + 1
    return x


def layers(x: Any, w: Any) -> Any:
    """All-reduces and all-gathers, no all_to_all."""
    for _ in range(LAYERS):
        x = np.tanh(x @ w)
        x = x - x.mean(0)
    return x


def network(x: Any, w1: Any, w2: Any) -> Any:
    return np.tanh(x @ w1) @ w2


def handed(function: Any, devices: int, specs: Any, *shapes: tuple[int, ...]) -> Any:
    mesh = sw.Mesh({"x": devices})
    structs = [sw.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    return sw.jit(function, mesh=mesh, in_shardings=specs).lower(*structs).compile()


def fastest(action: Any, rounds: int, clock: Any = time.perf_counter) -> float:
    import jax

    best = float("inf")
    for _ in range(rounds):
        jax.clear_caches()
        start = clock()
        action()
        best = min(best, clock() - start)
    return best


def row_of(devices: int) -> dict[str, Any]:
    """What a process with this many host devices measures."""
    import jax

    row: dict[str, Any] = {"devices": devices}
    function = handed(layers, devices, (sw.P("x"), None), (2 * devices, 64), (64, 64)).to_jax()
    row["compile"] = fastest(lambda: function.lower().compile(), 5)
    if devices > 8:
        return row
    thousand = handed(many_ops, devices, (sw.P("x"),), (64, 8)).to_jax()
    struct = jax.ShapeDtypeStruct((64, 8), np.float32, sharding=thousand.in_shardings[0])
    with jax.set_mesh(thousand.mesh):
        row["trace"] = fastest(lambda: thousand._run.trace(struct), 7, time.process_time)
        traced = thousand._run.trace(struct)
        row["lower"] = fastest(traced.lower, 7, time.process_time)
    program = handed(network, devices, (sw.P("x"), None, None), (512, 256), (256, 512), (512, 256))
    ours = program.to_jax()
    theirs = jax.jit(lambda x, w1, w2: jax.numpy.tanh(x @ w1) @ w2, **program.jax_shardings()._asdict())
    random = np.random.default_rng(0)
    given = ours.put(*(random.standard_normal(s.shape, np.float32) for s in program._traced.in_avals))
    actions = {
        "run": lambda: jax.block_until_ready(ours(*given)),
        "run by XLA": lambda: jax.block_until_ready(theirs(*given)),
    }
    for action in actions.values():
        action()
    row.update({name: min(each) for name, each in interleaved(actions, 200).items()})
    return row


def show_jax() -> None:
    rows = []
    for devices in (8, 256):
        flags = f"--xla_force_host_platform_device_count={devices}"
        environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-m", "benchmarks.handover_jax", "--devices", str(devices)]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    names = ("trace", "lower", "compile", "run", "run by XLA")
    cells = [[row["devices"], *(1e3 * row[name] if name in row else "-" for name in names)] for row in rows]
    table(f"JAX, ms: {OPS} ops traced and lowered; {LAYERS} layers compiled", ("devices", *names), cells)
    compiled = rows[1]["compile"] / rows[0]["compile"]
    print(f"compile at 256 devices: {compiled:.2f}x of 8; run: {rows[0]['run'] / rows[0]['run by XLA']:.2f}x of XLA's")
    write("handover_jax", rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=8)
    print(json.dumps(row_of(parser.parse_args().devices)))
