# SPDX-License-Identifier: Apache-2.0
"""Time from Python to the SPMD program: a training step of a 24-layer MLP, and of one 16 times as deep.

Beside it, in the same run: JAX's trace and lower of the same step, and Shardy's own propagation pass on its text.
Counts of ops and visits must be the same for 8, 2,048 and 1,048,576 devices, and times within noise.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

import shardwise as sw
from benchmarks.allocations import current, run_counting
from benchmarks.report import table, write
from shardwise import P

grad_module = sys.modules["shardwise.grad"]  # the package's `grad` is the function
MESHES = {8: (4, 2), 2048: (256, 8), 1048576: (65536, 16)}
WIDTH = 1 << 20  # divides by every mesh, so that the programs are alike
PASSES_AFTER_PROPAGATE = ("assign", "plan_reshards", "localize", "optimize_collectives")


def make_step(lib: Any, split: Any, shard: Any, value_and_grad: Any):
    def loss(params, x, target):
        h = split(x)
        for w, b in params:
            h = lib.maximum(h @ shard(w) + b, 0)
        return lib.mean((h - target) ** 2)

    def step(params, x, target):
        value, gradients = value_and_grad(loss)(params, x, target)
        return value, [(w - 0.1 * gw, b - 0.1 * gb) for (w, b), (gw, gb) in zip(params, gradients)]

    return step


def avals(struct: Any, layers: int):
    f32 = np.float32
    params = [(struct((WIDTH, WIDTH), f32), struct((WIDTH,), f32)) for _ in range(layers)]
    return params, struct((WIDTH, WIDTH), f32), struct((WIDTH, WIDTH), f32)


@contextmanager
def timed_vjp(into: dict[str, float]):
    """Adds up the seconds that gradients take inside a trace."""
    original = grad_module._append_vjp

    def timed(*args):
        start = time.perf_counter()
        result = original(*args)
        into["seconds"] += time.perf_counter() - start
        return result

    grad_module._append_vjp = timed
    try:
        yield
    finally:
        grad_module._append_vjp = original


def _step(devices: int) -> Any:
    data, model = MESHES[devices]
    mesh = sw.Mesh({"data": data, "model": model})
    split, shard = (lambda x: sw.split(x, 0, "data")), (lambda w: sw.shard(w, P(None, "model")))
    return sw.jit(make_step(np, split, shard, sw.value_and_grad), mesh=mesh)


def _traced(layers: int, devices: int) -> sw.Traced:
    return _step(devices).trace(*avals(sw.ShapeDtypeStruct, layers))


def shardwise_once(layers: int, devices: int) -> dict[str, float]:
    gradient = {"seconds": 0.0}
    step = _step(devices)
    args = avals(sw.ShapeDtypeStruct, layers)
    start = time.perf_counter()
    with timed_vjp(gradient):
        traced = step.trace(*args)
    traced_at = time.perf_counter()
    program = traced.lower().compile()
    done = time.perf_counter()
    seconds = program.seconds
    return {
        "trace": traced_at - start - gradient["seconds"],
        "grad": gradient["seconds"],
        "simplify": seconds["simplify"],
        "propagate": seconds["propagate"],
        "assign+plan+localize": sum(seconds[name] for name in PASSES_AFTER_PROPAGATE if name in seconds),
        "total": done - start,
        "ops_global": traced._core.op_count,
        "ops_local": program._compiled.stages["local"].op_count,
        **{f"count {k}": v for k, v in program.counters.items()},
    }


def count_allocations(layers: int, devices: int) -> int:
    """Heap allocations of the C++ passes, all together, on the second program of a process."""
    traced = [_traced(layers, devices) for _ in range(2)]
    traced[0].lower().compile()
    before = current()
    traced[1].lower().compile()
    return current() - before


def jax_once(layers: int) -> tuple[dict[str, float], str]:
    mesh = jax.sharding.AbstractMesh((4, 2), ("data", "model"))
    named = jax.sharding.NamedSharding
    spec = jax.sharding.PartitionSpec
    constrain = jax.lax.with_sharding_constraint
    step = make_step(
        jnp,
        lambda x: constrain(x, named(mesh, spec("data"))),
        lambda w: constrain(w, named(mesh, spec(None, "model"))),
        jax.value_and_grad,
    )
    args = avals(jax.ShapeDtypeStruct, layers)
    start = time.perf_counter()
    traced = jax.jit(step).trace(*args)
    traced_at = time.perf_counter()
    lowered = traced.lower(lowering_platforms=("cpu",))
    done = time.perf_counter()
    return {"trace": traced_at - start, "lower": done - traced_at}, lowered.as_text()


def shardy_once(text: str) -> dict[str, float]:
    from jax.interpreters import mlir
    from jaxlib.mlir import ir, passmanager

    context = mlir.make_ir_context()
    with context:
        module = ir.Module.parse(text)
        ops = text.count("\n") - 3
        start = time.perf_counter()
        passmanager.PassManager.parse("builtin.module(sdy-user-priority-propagate)").run(module.operation)
        return {"propagate": time.perf_counter() - start, "ops": ops}


def measure(layers: int, rounds: int) -> dict[str, Any]:
    ours: dict[int, list[dict[str, float]]] = {devices: [] for devices in MESHES}
    peers: list[dict[str, float]] = []
    shardy: list[dict[str, float]] = []
    for index in range(rounds):
        for devices, runs in ours.items():
            runs.append(shardwise_once(layers, devices))
        if index < max(3, rounds // 5):
            jax.clear_caches()
            times, text = jax_once(layers)
            peers.append(times)
            shardy.append(shardy_once(text))
    counted = {
        devices: int(run_counting(["-m", "benchmarks.compile", "--allocations", str(layers), str(devices)]))
        for devices in MESHES
    }
    return {"layers": layers, "ours": ours, "jax": peers, "shardy": shardy, "allocations": counted}


def report(result: dict[str, Any]) -> list[str]:
    layers, problems = result["layers"], []
    rows = []
    best: dict[int, float] = {}
    counts: dict[int, dict[str, float]] = {}
    for devices, runs in result["ours"].items():
        ops = runs[0]["ops_global"]
        minimum = {key: min(run[key] for run in runs) for key in runs[0]}
        best[devices] = minimum["total"]
        counts[devices] = {k: v for k, v in runs[0].items() if k.startswith(("count", "ops"))}
        for phase in ("trace", "grad", "simplify", "propagate", "assign+plan+localize", "total"):
            median = statistics.median(run[phase] for run in runs)
            rows.append([f"shardwise, {devices} devices", phase, ops, median * 1e3, minimum[phase] * 1e6 / ops])
    shardy_ops = result["shardy"][0]["ops"]
    for phase in ("trace", "lower"):
        values = [run[phase] for run in result["jax"]]
        rows.append(["JAX", phase, shardy_ops, statistics.median(values) * 1e3, min(values) * 1e6 / shardy_ops])
    values = [run["propagate"] for run in result["shardy"]]
    rows.append(["Shardy", "propagate", shardy_ops, statistics.median(values) * 1e3, min(values) * 1e6 / shardy_ops])
    table(f"compile: MLP training step, {layers} layers", ["who", "phase", "ops", "median ms", "min µs per op"], rows)
    if len({tuple(sorted(c.items())) for c in counts.values()}) != 1:
        problems.append(f"{layers} layers: counts differ between device counts: {counts}")
    counted = result["allocations"]
    print(f"heap allocations of a compile: {counted}")
    if len(set(counted.values())) != 1:
        problems.append(f"{layers} layers: allocations differ between device counts: {counted}")
    spread = max(best.values()) / min(best.values())
    print(f"largest / smallest minimum over device counts: {spread:.3f} (required: 1.1)")
    if spread > 1.1:
        problems.append(f"{layers} layers: times differ by {spread:.2f} between device counts")
    limits = {"trace": 25.0, "propagate": 2.0, "assign+plan+localize": 20.0}
    for phase, limit in limits.items():
        per_op = min(run[phase] for run in result["ours"][8]) * 1e6 / result["ours"][8][0]["ops_global"]
        if per_op > limit:
            problems.append(f"{layers} layers: {phase} takes {per_op:.1f} µs per op, above {limit}")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--deep-rounds", type=int, default=20)
    parser.add_argument("--allocations", type=int, nargs=2, metavar=("LAYERS", "DEVICES"), help="only count these")
    args = parser.parse_args()
    if args.allocations:
        print(count_allocations(*args.allocations))
        return
    results = [measure(args.layers, args.rounds), measure(args.layers * 16, args.deep_rounds)]
    problems = [problem for result in results for problem in report(result)]
    write("compile", results)
    for problem in problems:
        print("NOT MET:", problem)
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
