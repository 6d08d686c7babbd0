# SPDX-License-Identifier: Apache-2.0
"""The lines of `benchmarks.handover` about JAX: times to trace, lower, compile and run handed-over programs.

Each number of host devices is a process of its own, which prints a row as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
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
SWAPS = 2
FEW, MANY = 8, 256
LIMITS = {
    "trace, s": 0.05,
    "lower, s": 0.03,
    f"compile, {MANY}/{FEW} devices": 1.5,
    "compile all_to_alls, to XLA": 1.0,
    "run, to XLA": 1.05,
    "run with fewer collectives, to XLA": 1.0,
}


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


def turned(np_: Any, x: Any, turn: Any) -> Any:
    """All_to_alls between rows and columns; ``turn`` constrains the rows (0) or the columns (1).

    XLA fuses no sort with its neighbors, so both sides compile the same ops. (It fuses the last step of a cumulative
    sum with each slice of an all_to_all, unless other ops of its partitioner stand between.)
    """
    for i in range(SWAPS):
        dim = (i + 1) % 2
        x = np_.sort(turn(x, dim), 1 - dim)
    return x


def extended(np_: Any, x: Any) -> Any:
    """Periodic rows at the end: one neighbor sends them, where XLA moves all rows."""
    return np_.concatenate([x[-8:], x], 0) * 2


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


def paired(actions: dict[str, Any], rounds: int, clock: Any) -> tuple[dict[str, float], float]:
    """The median seconds of two actions, and how far their ratio may be from that of the medians, with 95 %.

    Each round has both, in alternating order. XLA compiles the same kernels for both, so that the ratio is near 1 and
    single compiles differ by more.
    """
    import jax

    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for i in range(rounds):
        for name, action in list(actions.items())[:: 1 if i % 2 == 0 else -1]:
            jax.clear_caches()
            start = clock()
            action()
            seconds[name].append(clock() - start)
    first, second = seconds.values()
    ratios = np.divide(first, second)
    error = 2 * 1.2533 * float(np.std(ratios, ddof=1)) / rounds**0.5  # of a median: 1.2533 times that of a mean
    return {name: statistics.median(each) for name, each in seconds.items()}, error


def lowering() -> dict[str, float]:
    """Seconds of the processor to trace and to lower a program of many ops, handed over and written by hand."""
    import jax

    function = handed(many_ops, FEW, (sw.P("x"),), (64, 8)).to_jax()
    struct = jax.ShapeDtypeStruct((64, 8), np.float32, sharding=function.in_shardings[0])
    specs = {"in_specs": (jax.P("x"),), "out_specs": (jax.P("x"),)}
    by_hand = jax.jit(jax.shard_map(many_ops_by_hand, mesh=function.mesh, **specs, check_vma=False))
    with jax.set_mesh(function.mesh):
        runs = {"": function._run, " by hand": by_hand}
        found = fastest({f"trace{k}": lambda run=run: run.trace(struct) for k, run in runs.items()}, 15, CPU)
        traced = {k: run.trace(struct) for k, run in runs.items()}
        return found | fastest({f"lower{k}": each.lower for k, each in traced.items()}, 15, CPU)


def compiles(devices: int) -> dict[str, float]:
    """Seconds of the processors to compile for this many devices."""
    function = handed(layers, devices, (sw.P("x"), None), (2 * devices, 64), (64, 64)).to_jax()
    row = fastest({"compile": lambda: function.lower().compile()}, 5, CPU)
    return row if devices == FEW else row | compiles_with_all_to_all(devices)


def compiles_with_all_to_all(devices: int) -> dict[str, float]:
    """Seconds of the processors to compile swaps of rows and columns, handed over and partitioned by XLA."""
    import jax

    specs = (sw.P("x"), sw.P(None, "x"))

    def function(x: Any) -> Any:
        return turned(np, x, lambda x, rows: sw.shard(x, specs[rows]))

    program = handed(function, devices, specs[:1], (devices,) * 2)
    ours = program.to_jax()
    shardings = [jax.sharding.NamedSharding(ours.mesh, spec) for spec in (jax.P("x"), jax.P(None, "x"))]
    theirs = jax.jit(
        lambda x: turned(jax.numpy, x, lambda x, rows: jax.lax.with_sharding_constraint(x, shardings[rows])),
        **program.jax_shardings(mesh=ours.mesh)._asdict(),
    )
    struct = jax.ShapeDtypeStruct((devices,) * 2, np.float32)
    actions = {"all_to_alls": ours.lower, "all_to_alls by XLA": lambda: theirs.lower(struct)}
    assert ours.collectives().by_kind() == {"all_to_all": SWAPS}
    compiles = {name: lambda lower=lower: lower().compile() for name, lower in actions.items()}
    medians, error = paired(compiles, 12, CPU)
    return medians | {"all_to_alls error": error}


def runs(program: Any, theirs: Any, name: str) -> dict[str, Any]:
    """Seconds of a program that is handed over, and of the function that XLA partitions; the collectives of each.

    Medians: the fastest run of 8 devices on few processors is the luckiest order of their threads.
    """
    import jax

    ours, theirs = program.to_jax(), jax.jit(theirs, **program.jax_shardings()._asdict())
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(s.shape, np.float32) for s in program._traced.in_avals]
    given = ours.put(*arrays)
    actions = {
        name: lambda: jax.block_until_ready(ours(*given)),
        f"{name} by XLA": lambda: jax.block_until_ready(theirs(*given)),
    }
    for action in actions.values():
        action()
    report = sw.interop.compare(program, theirs, *arrays)
    counts = {f"{name}: collectives": len(ours.collectives().rows), f"{name}: XLA's": len(report.theirs)}
    return counts | {key: statistics.median(each) for key, each in interleaved(actions, 200).items()}


def row_of(devices: int) -> dict[str, Any]:
    """What a process with this many host devices measures."""
    row: dict[str, Any] = {"devices": devices, **compiles(devices)}
    if devices != FEW:
        return row
    import jax.numpy as jnp

    same = handed(network, FEW, (None, sw.P(None, "x"), sw.P("x")), (1024, 512), (512, 1024), (1024, 512))
    fewer = handed(lambda x: extended(np, x), FEW, (sw.P("x"),), (4096, 512))
    row |= lowering()
    row |= runs(same, lambda x, w1, w2: jnp.tanh(x @ w1) @ w2, "run")
    return row | runs(fewer, lambda x: extended(jnp, x), "fewer")


def measured(devices: int) -> dict[str, Any]:
    """The row of a process with this many host devices."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "benchmarks.handover_jax", "--devices", str(devices)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def show_jax() -> list[str]:
    """Print and write the rows; returns the limits that are not met."""
    few, many = map(measured, (FEW, MANY))
    names = ("trace", "trace by hand", "lower", "lower by hand", "compile", "all_to_alls", "all_to_alls by XLA")
    cells = [[row["devices"], *(1e3 * row[name] if name in row else "-" for name in names)] for row in (few, many)]
    title = f"JAX, ms: {OPS} ops traced and lowered; {LAYERS} layers, and {SWAPS} all_to_alls, compiled"
    table(title, ("devices", *names), cells)
    cells = [
        [name, few[f"{key}: collectives"], few[f"{key}: XLA's"], 1e3 * few[key], 1e3 * few[f"{key} by XLA"]]
        for name, key in (("network", "run"), ("extended", "fewer"))
    ]
    table(f"JAX, {FEW} devices", ("program", "collectives", "XLA's", "ms", "by XLA, ms"), cells)
    found = {
        "trace, s": few["trace"],
        "lower, s": few["lower"],
        f"compile, {MANY}/{FEW} devices": many["compile"] / few["compile"],
        "compile all_to_alls, to XLA": many["all_to_alls"] / many["all_to_alls by XLA"],
        "run, to XLA": few["run"] / few["run by XLA"],
        "run with fewer collectives, to XLA": few["fewer"] / few["fewer by XLA"],
    }
    errors = {"compile all_to_alls, to XLA": many["all_to_alls error"]}
    cells = [[name, found[name], errors.get(name, "-"), limit] for name, limit in LIMITS.items()]
    table("JAX, limits", ("", "measured", "±", "limit"), cells)
    write("handover_jax", [few, many])
    assert few["fewer: collectives"] < few["fewer: XLA's"]
    met = {name: found[name] - errors.get(name, 0.0) <= limit for name, limit in LIMITS.items()}
    return [f"JAX: {name} is {found[name]:.3g}, above {limit}" for name, limit in LIMITS.items() if not met[name]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=FEW)
    print(json.dumps(row_of(parser.parse_args().devices)))
