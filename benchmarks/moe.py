# SPDX-License-Identifier: Apache-2.0
"""GShard's Transformer of experts: the same run on 8 and on 2,048 devices, and the time to compile the 600B model.

Execution: 2,048 experts and groups, 8 tokens a group, room for one; each run in a process of its own, compared with
plain NumPy's result. Compilation: the training step of 36 layers from Python to the program of one device, beside JAX's
trace and lower of the same functions with `jax.numpy` in NumPy's place, in the same run.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # its waiting workers would slow ours and its own

import numpy as np
import optree

import shardwise as sw
from benchmarks.report import table, write
from shardwise import models

ROOT = Path(__file__).parents[1]
EXPERTS = 2048
TIME_LIMIT, MEMORY_LIMIT = 4.0, 2.0  # 2,048 devices in units of 8
COMPILE_SECONDS, COMPILE_RATIO = 0.8, 0.7  # on a quiet machine; in units of JAX's trace and lower


# ---- execution ------------------------------------------------------------------------------------------------------


def inputs(model_dim: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    config = models.MoEConfig(EXPERTS, model_dim, 2 * model_dim, capacity=1)
    x = rng.standard_normal((EXPERTS, 8, model_dim), np.float32)
    return config, models.init_moe(rng, config), x, rng.random((EXPERTS, 8), np.float32)


def layer(config: models.MoEConfig):
    def moe(params, x, random):
        output, _, statistics = models.moe_layer(params, x, config, axes="x", random=random)
        return output, {name: statistics[name] for name in ("gates", "experts", "kept")}

    return moe


def run_virtual(devices: int, model_dim: int, expected: str) -> dict[str, float]:
    """One process's work: compile, run twice, compare. The second run is what is timed."""
    config, params, x, random = inputs(model_dim)
    function = sw.jit(layer(config), mesh=sw.Mesh({"x": devices}))
    start = time.perf_counter()
    program = function.lower(params, x, random).compile()
    compiled = time.perf_counter()
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        output, found = optree.tree_map(np.asarray, program(params, x, random))
        seconds.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with np.load(expected) as data:
        wanted = dict(data)
    routing = models.compare_routing([found], [wanted], lambda: [models.gate_margins(wanted, random)])
    difference = np.abs(output - wanted["output"])[routing.same]
    return {
        "compile": compiled - start,
        "seconds": seconds[1],
        "peak_bytes": peak,
        "ops_local": program.op_count,
        "max_relative_difference": float(np.max(difference) / np.max(np.abs(wanted["output"]))),
        "routing_disagreements": routing.disagreements,
        "largest_margin": routing.largest_margin,
    }


def run_numpy(model_dim: int, path: str) -> dict[str, float]:
    config, params, x, random = inputs(model_dim)
    start = time.perf_counter()
    output, statistics = layer(config)(params, x, random)
    seconds = time.perf_counter() - start
    np.savez(path, output=output, **statistics)
    return {"seconds": seconds, "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def in_process(*args: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.moe", *args]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure_execution(model_dim: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        expected = str(Path(folder) / "expected.npz")
        plain = in_process("--numpy", expected, "--model-dim", str(model_dim))
        runs: dict[int, list[dict[str, float]]] = {8: [], EXPERTS: []}
        for _ in range(rounds):
            for devices, found in runs.items():
                found.append(in_process("--virtual", str(devices), "--numpy", expected, "--model-dim", str(model_dim)))
    return {"numpy": plain, "virtual": runs}


def report_execution(result: dict[str, Any]) -> list[str]:
    medians = {
        devices: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for devices, runs in result["virtual"].items()
    }
    rows = [["plain NumPy", "", result["numpy"]["seconds"], result["numpy"]["peak_bytes"] / 2**20, "", ""]]
    for devices, found in medians.items():
        rows.append(
            [
                f"{devices} devices", found["compile"], found["seconds"], found["peak_bytes"] / 2**20,
                found["max_relative_difference"], found["routing_disagreements"],
            ]
        )  # fmt: skip
    columns = ["who", "compile s", "run s", "peak MiB", "difference", "routed otherwise"]
    table(f"moe: {EXPERTS} experts and groups, 8 tokens a group, medians", columns, rows)
    few, many = medians[8], medians[EXPERTS]
    problems = []
    for key, limit in (("seconds", TIME_LIMIT), ("peak_bytes", MEMORY_LIMIT)):
        ratio = many[key] / few[key]
        print(f"{key}: {EXPERTS} devices / 8 devices = {ratio:.2f} (required: {limit})")
        if ratio > limit:
            problems.append(f"{key} of {EXPERTS} devices are {ratio:.2f} times those of 8, above {limit}")
    for devices, found in medians.items():
        few_apart = found["routing_disagreements"] <= EXPERTS * 8 * 1e-4 and found["largest_margin"] < 1e-5
        if found["max_relative_difference"] > 1e-5 or not few_apart:
            problems.append(f"{devices} devices: the result is not NumPy's: {found}")
    return problems


# ---- compilation ----------------------------------------------------------------------------------------------------


def sgd_step(library: Any, value_and_grad: Any, config: Any, axes: Any):
    def step(params, tokens, random, rate):
        def loss(params):
            return library.next_token_loss(params, tokens, config, axes=axes, random=random)[0]

        value, gradients = value_and_grad(loss)(params)
        return value, optree.tree_map(lambda p, g: p - rate * g, params, gradients)

    return step


def shapes(library: Any, struct: Any, config: Any) -> tuple[Any, ...]:
    params = library.transformer_shapes(config, np.float32, struct)
    # A group of the layers of experts for each of as many devices as there are experts.
    rows, length = config.moe.experts * (config.moe.group_size or config.length) // config.length, config.length
    random = struct((config.moe_layers, rows, length), np.float32)
    return params, struct((rows, length + 1), np.int32), random, struct((), np.float32)


def shardwise_once(layers: int, devices: int) -> dict[str, float]:
    config = models.TransformerConfig.gshard(EXPERTS, layers)
    step = sw.jit(sgd_step(models, sw.value_and_grad, config, "x"), mesh=sw.Mesh({"x": devices}))
    args = shapes(models, sw.ShapeDtypeStruct, config)
    start = time.perf_counter()
    traced = step.trace(*args)
    traced_at = time.perf_counter()
    program = traced.lower().compile()
    done = time.perf_counter()
    on_device = sum(
        np.prod(sharding.shard_shape(leaf.shape), dtype=np.int64) * leaf.dtype.itemsize
        for leaf, sharding in zip(optree.tree_leaves(args[0]), program.input_shardings)
    )
    return {
        "trace": traced_at - start,
        "compile": done - traced_at,
        "total": done - start,
        "ops": traced._core.op_count,
        "ops_local": program.op_count,
        "collectives": len(program.collectives()),
        "parameter_bytes": int(on_device),
        "formula_bytes": config.parameter_bytes_per_device(devices),
    }


class JaxNumpy:
    """`jax.numpy` where the models say `np`: only `like=` has no counterpart there."""

    def __getattr__(self, name: str) -> Any:
        import jax.numpy as jnp

        return getattr(jnp, name)

    @staticmethod
    def arange(*args: Any, like: Any = None, **options: Any) -> Any:
        """``jnp.arange``; where it lies is for XLA to find."""
        import jax.numpy as jnp

        return jnp.arange(*args, **options)


def jax_models(devices: int) -> ModuleType:
    """A second copy of `shardwise.models` whose functions are JAX's, with JAX's sharding constraints."""
    from jax.lax import with_sharding_constraint
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    name = "shardwise.jax_models"
    spec = importlib.util.spec_from_file_location(name, models.__file__, submodule_search_locations=models.__path__)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    mesh = AbstractMesh((devices,), ("x",))

    def constrain(x, dims):
        return with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*dims)))

    def split(x, dim, axes):
        return constrain(x, [axes if i == dim else PartitionSpec.UNCONSTRAINED for i in range(x.ndim)])

    theirs = {
        "np": JaxNumpy(),
        "split": split,
        "replicate": lambda x: constrain(x, []),
        "shard": lambda x, spec: constrain(x, list(spec)),
    }
    for part in [found for key, found in sys.modules.items() if key.startswith(f"{name}.")]:
        vars(part).update({key: value for key, value in theirs.items() if key in vars(part)})
    return module


def jax_once(layers: int, devices: int) -> dict[str, float]:
    import jax

    library = jax_models(devices)
    config = library.TransformerConfig.gshard(EXPERTS, layers)
    step = sgd_step(library, jax.value_and_grad, config, "x")
    args = shapes(library, jax.ShapeDtypeStruct, config)
    jax.clear_caches()
    start = time.perf_counter()
    traced = jax.jit(step).trace(*args)
    traced_at = time.perf_counter()
    lowered = traced.lower(lowering_platforms=("cpu",))
    done = time.perf_counter()
    ops = sum(" = " in line for line in lowered.as_text().splitlines())
    return {"trace": traced_at - start, "lower": done - traced_at, "total": done - start, "ops": ops}


def measure_compile(layers: int, rounds: int) -> dict[str, Any]:
    ours, peers = [], []
    for _ in range(rounds):
        ours.append(shardwise_once(layers, EXPERTS))
        peers.append(jax_once(layers, EXPERTS))
    return {"layers": layers, "ours": ours, "jax": peers}


def report_compile(result: dict[str, Any]) -> list[str]:
    layers, problems, rows = result["layers"], [], []
    for who, runs, phases in (
        ("shardwise", result["ours"], ("trace", "compile", "total")),
        ("JAX", result["jax"], ("trace", "lower", "total")),
    ):
        for phase in phases:
            values = [run[phase] for run in runs]
            rows.append([who, phase, runs[0]["ops"], statistics.median(values), min(values)])
    table(
        f"moe: training step of {layers} layers, {EXPERTS} experts", ["who", "phase", "ops", "median s", "min s"], rows
    )
    first = result["ours"][0]
    seconds = statistics.median(run["total"] for run in result["ours"])
    ratio = seconds / statistics.median(run["total"] for run in result["jax"])
    print(f"{first['ops_local']} ops and {first['collectives']} collectives in the program of one device")
    print(f"parameters of one device: {first['parameter_bytes']} B, by the formula {first['formula_bytes']} B")
    print(f"trace to local program: {seconds:.3f} s (required: {COMPILE_SECONDS})")
    print(f"in units of JAX's trace and lower: {ratio:.2f} (required: {COMPILE_RATIO})")
    if seconds > COMPILE_SECONDS:
        problems.append(f"{layers} layers: {seconds:.2f} s from Python to the local program, above {COMPILE_SECONDS}")
    if ratio > COMPILE_RATIO:
        problems.append(f"{layers} layers: {ratio:.2f} of JAX's trace and lower, above {COMPILE_RATIO}")
    if first["parameter_bytes"] != first["formula_bytes"]:
        problems.append(f"{layers} layers: parameters of one device are not the formula's")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=36)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model-dim", type=int, default=32)
    parser.add_argument("--part", choices=["execution", "compile"], help="only this one")
    parser.add_argument("--virtual", type=int, metavar="DEVICES", help="only run on these, compared with --numpy FILE")
    parser.add_argument("--numpy", metavar="FILE", help="only run NumPy, and write its result")
    args = parser.parse_args()
    if args.virtual is not None:
        print(json.dumps(run_virtual(args.virtual, args.model_dim, args.numpy)))
        return
    if args.numpy is not None:
        print(json.dumps(run_numpy(args.model_dim, args.numpy)))
        return
    results: dict[str, Any] = {}
    problems: list[str] = []
    if args.part != "execution":
        results["compile"] = measure_compile(args.layers, args.rounds)
        problems += report_compile(results["compile"])
    if args.part != "compile":
        results["execution"] = measure_execution(args.model_dim, args.rounds)
        problems += report_execution(results["execution"])
    write("moe", results)
    for problem in problems:
        print("NOT MET:", problem)
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
