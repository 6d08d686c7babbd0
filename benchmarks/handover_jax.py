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

CPU = time.process_time
OPS = 1000
LAYERS = 12


def many_ops(x: Any) -> Any:
    for i in range(OPS):
        x = np.tanh(x) if i % 2 else x + 1
    return x


def many_ops_by_hand(x: Any) -> Any:
    """The same ops of one device in JAX."""
    from jax import lax

    one = lax.full_like(x, 1)
    for i in range(OPS):
        x = lax.tanh(x) if i % 2 else lax.add(x, one)
    return (x,)


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


def fastest(actions: dict[str, Any], rounds: int, clock: Any = time.perf_counter) -> dict[str, float]:
    """The seconds of each action, in turn, without the caches of JAX."""
    import jax

    best = dict.fromkeys(actions, float("inf"))
    for _ in range(rounds):
        for name, action in actions.items():
            jax.clear_caches()
            start = clock()
            action()
            best[name] = min(best[name], clock() - start)
    return best


def lowering() -> dict[str, float]:
    """Seconds of the processor to trace and to lower a program of many ops, handed over and written by hand."""
    import jax

    function = handed(many_ops, 8, (sw.P("x"),), (64, 8)).to_jax()
    struct = jax.ShapeDtypeStruct((64, 8), np.float32, sharding=function.in_shardings[0])
    specs = {"in_specs": (jax.P("x"),), "out_specs": (jax.P("x"),)}
    by_hand = jax.jit(jax.shard_map(many_ops_by_hand, mesh=function.mesh, **specs, check_vma=False))
    with jax.set_mesh(function.mesh):
        runs = {"": function._run, " by hand": by_hand}
        found = fastest({f"trace{k}": lambda run=run: run.trace(struct) for k, run in runs.items()}, 15, CPU)
        traced = {k: run.trace(struct) for k, run in runs.items()}
        return found | fastest({f"lower{k}": each.lower for k, each in traced.items()}, 15, CPU)


def row_of(devices: int) -> dict[str, Any]:
    """What a process with this many host devices measures."""
    import jax

    row: dict[str, Any] = {"devices": devices}
    function = handed(layers, devices, (sw.P("x"), None), (2 * devices, 64), (64, 64)).to_jax()
    row |= fastest({"compile": lambda: function.lower().compile()}, 5)
    if devices > 8:
        return row
    row |= lowering()
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
    names = ("trace", "trace by hand", "lower", "lower by hand", "compile", "run", "run by XLA")
    cells = [[row["devices"], *(1e3 * row[name] if name in row else "-" for name in names)] for row in rows]
    table(f"JAX, ms: {OPS} ops traced and lowered; {LAYERS} layers compiled", ("devices", *names), cells)
    compiled = rows[1]["compile"] / rows[0]["compile"]
    print(f"compile at 256 devices: {compiled:.2f}x of 8; run: {rows[0]['run'] / rows[0]['run by XLA']:.2f}x of XLA's")
    write("handover_jax", rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=8)
    print(json.dumps(row_of(parser.parse_args().devices)))
