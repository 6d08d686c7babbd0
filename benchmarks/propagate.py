# SPDX-License-Identifier: Apache-2.0
"""How fast shardings spread: op visits per second on one core, beside Shardy's pass on the same text in the same run.

Training steps of an MLP and of a Transformer with about 15,000 ops, annotated at their inputs or at their outputs; the
MLP again with a million. Counters must be the same for 8 and for 1,048,576 devices. Parsing is compared with MLIR's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

import shardwise as sw
from benchmarks.deep_mlp import OPS_PER_LAYER, mlp_text
from benchmarks.report import table, write
from shardwise import P, _core

MESHES = {8: (4, 2), 1048576: (65536, 16)}
WIDTH = 1 << 20  # divides by every mesh, so that the programs are alike
ENDS = ("inputs", "outputs")
VISITS_PER_SECOND, RATIO, SPREAD = 5e6, 25.0, 1.3
PASS, OURS = "sdy-user-priority-propagate", "propagate_user_priority"


def f32(*shape: int) -> sw.ShapeDtypeStruct:
    return sw.ShapeDtypeStruct(shape, np.float32)


def mlp_layer(params: Any, x: Any) -> Any:
    w, b = params
    return np.maximum(x @ w + b, 0)


def attention_layer(params: Any, x: Any) -> Any:
    wq, wk, wv, wo, w1, w2, scale = params
    centered = x - np.mean(x, -1, keepdims=True)
    x = centered / np.sqrt(np.mean(centered * centered, -1, keepdims=True) + 1e-5) * scale
    q, k, v = (np.einsum("bsm,mhd->bshd", x, w) for w in (wq, wk, wv))
    scores = np.einsum("bqhd,bkhd->bhqk", q, k)
    weights = np.exp(scores - np.max(scores, -1, keepdims=True))
    weights = weights / np.sum(weights, -1, keepdims=True)
    x = x + np.einsum("bqhd,hdm->bqm", np.einsum("bhqk,bkhd->bqhd", weights, v), wo)
    return x + np.maximum(x @ w1, 0) @ w2


def arguments(kind: str, layers: int) -> tuple[list[Any], Any, Callable[..., Any]]:
    if kind == "MLP":
        return [(f32(WIDTH, WIDTH), f32(WIDTH)) for _ in range(layers)], f32(WIDTH, WIDTH), mlp_layer
    heads = [f32(WIDTH, 32, 64)] * 3
    layer = (*heads, f32(32, 64, WIDTH), f32(WIDTH, WIDTH), f32(WIDTH, WIDTH), f32(WIDTH))
    return [layer] * layers, f32(WIDTH, 128, WIDTH), attention_layer


def traced(kind: str, layers: int, end: str, devices: int) -> Any:
    """The training step with two annotations."""
    data, model = MESHES[devices]
    params, x, layer = arguments(kind, layers)

    def loss(params: Any, x: Any) -> Any:
        for p in params:
            x = layer(p, x)
        return np.mean(x * x)

    def step(params: Any, x: Any) -> Any:
        if end == "inputs":
            x = sw.split(x, 0, "data")
            params = [(sw.shard(params[0][0], _spec(params[0][0])), *params[0][1:]), *params[1:]]
        value, (gradients, gradient) = sw.value_and_grad(loss, (0, 1))(params, x)
        updated = [tuple(w - 0.1 * g for w, g in zip(ws, gs)) for ws, gs in zip(params, gradients)]
        if end == "outputs":
            gradient = sw.split(gradient, 0, "data")
            updated = [(sw.shard(updated[0][0], _spec(updated[0][0])), *updated[0][1:]), *updated[1:]]
        return value, updated, gradient

    return sw.jit(step, mesh=sw.Mesh({"data": data, "model": model})).trace(params, x)._core


def _spec(w: Any) -> Any:
    return P(None, "model") if len(w.shape) > 1 else P("model")


def ours(module: Any) -> dict[str, float]:
    measured = _core.passes.propagate_program(module, names=[OURS])
    return {"seconds": measured.seconds[OURS], **measured.counters}


def timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def shardy(text: str) -> dict[str, float]:
    from jax.interpreters import mlir
    from jaxlib.mlir import ir, passmanager

    with mlir.make_ir_context():
        start = time.perf_counter()
        module = ir.Module.parse(text)
        parsed = time.perf_counter()
        manager = passmanager.PassManager.parse(f"builtin.module({PASS})")
        begun = time.perf_counter()
        manager.run(module.operation)
        return {"parse": parsed - start, "seconds": time.perf_counter() - begun}


def measure(kind: str, layers: int, end: str, rounds: int) -> dict[str, Any]:
    modules = {devices: traced(kind, layers, end, devices) for devices in MESHES}
    text = modules[8].text()
    runs: dict[str, list[Any]] = {"8": [], "1048576": [], "shardy": [], "parse": []}
    for index in range(rounds):
        for devices, module in modules.items():
            runs[str(devices)].append(ours(module))
        runs["parse"].append(timed(lambda: _core.ir.parse(text)))
        if index < max(3, rounds // 3):
            runs["shardy"].append(shardy(text))
    return {"kind": kind, "end": end, "layers": layers, "ops": modules[8].op_count, **runs}


def million(rounds: int) -> list[dict[str, Any]]:
    """Time per op of the MLP at growing depth."""
    rows = []
    for layers in (900, 9000, 1_000_000 // OPS_PER_LAYER + 1):
        module = _core.ir.parse(mlp_text(layers))
        rows.append({"ops": module.op_count, "runs": [ours(module) for _ in range(rounds)]})
    return rows


def median(runs: list[Any], name: str) -> float:
    return statistics.median(run[name] for run in runs)


def report(results: list[dict[str, Any]], growth: list[dict[str, Any]]) -> list[str]:
    problems, rows = [], []
    for r in results:
        where = f"{r['kind']}, {r['end']}"
        seconds, theirs = median(r["8"], "seconds"), median(r["shardy"], "seconds")
        rate = r["8"][0]["propagate.visits"] / seconds
        parse, their_parse = statistics.median(r["parse"]), median(r["shardy"], "parse")
        us = 1e6 / r["ops"]
        rows.append(
            [where, r["ops"], r["8"][0]["propagate.visits"], rate / 1e6, seconds * us, theirs * us, theirs / seconds,
             parse * us, their_parse * us]
        )  # fmt: skip
        counters = [{k: v for k, v in r[d][0].items() if k != "seconds"} for d in ("8", "1048576")]
        checks = {
            f"{rate / 1e6:.2f} M visits per second, below 5": rate >= VISITS_PER_SECOND,
            f"{theirs / seconds:.1f} times as fast as Shardy, below 25": theirs / seconds >= RATIO,
            f"parsing takes {parse / their_parse:.2f} of MLIR's time": parse <= their_parse,
            f"counters depend on the devices: {counters}": counters[0] == counters[1],
        }
        problems += [f"{where}: {text}" for text, met in checks.items() if not met]
    columns = ["program", "ops", "visits", "M visits/s", "µs/op", "Shardy µs/op", "ratio", "parse µs/op", "MLIR µs/op"]
    table("propagate: training steps", columns, rows)
    per_op = [[g["ops"], median(g["runs"], "seconds") * 1e6 / g["ops"]] for g in growth]
    table("propagate: MLP, deeper and deeper", ["ops", "µs/op"], per_op)
    if per_op and (spread := max(row[1] for row in per_op) / min(row[1] for row in per_op)) > SPREAD:
        problems.append(f"time per op grows by {spread:.2f} up to {per_op[-1][0]} ops")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=600, help="of the MLP")
    parser.add_argument("--blocks", type=int, default=120, help="of the Transformer")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--growth-rounds", type=int, default=3)
    args = parser.parse_args()
    sizes = {"MLP": args.layers, "Transformer": args.blocks}
    results = [measure(kind, layers, end, args.rounds) for kind, layers in sizes.items() for end in ENDS]
    growth = million(args.growth_rounds) if args.growth_rounds else []
    problems = report(results, growth)
    write("propagate", {"programs": results, "growth": growth})
    for problem in problems:
        print("NOT MET:", problem)
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
