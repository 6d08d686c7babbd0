# SPDX-License-Identifier: Apache-2.0
"""Loops: time to compile them, and to run them, beside the same program unrolled, unpartitioned, and in JAX.

    rnn          1,000 steps of tanh(h @ w + x @ u), which stack h           batch split over 8 devices
    gradient     the gradient of its weights, for the sum of all h
    power        200 steps of v = a @ v / |a @ v| for a block of vectors     vectors split over 8 devices
    transformer  36 layers of attention and MLP, weights stacked             heads and hidden units split over 8 devices
    calls        the same 36 layers as calls of one function, as JAX prints them; compiled beside one layer, and
                 beside the program with all calls inlined

Compile times are without the trace, minima; run times are medians of interleaved runs. JAX runs the same loop
unpartitioned, by `jax.lax.scan`.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
if os.environ.get("OPENBLAS_THREAD_TIMEOUT") != "4":  # read when the library loads
    os.environ["OPENBLAS_THREAD_TIMEOUT"] = "4"
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks.loops", *sys.argv[1:]])

import jax
import jax.numpy as jnp
import numpy as np

import shardwise as sw
from benchmarks.report import interleaved, table, write
from shardwise import P

DEVICES = 8
LIMITS = {"compile ms": 10.0, "local ops": 1.2, "loop/unrolled": 1.15, "8/1": 1.2, "compile/layer": 3.0}

Step = Callable[[Any, Any, Any], tuple[Any, Any]]  # (lib, carry, row) -> (carry, y)


@dataclass(frozen=True)
class Case:
    """A loop: ``step`` is applied to the rows of ``xs``; ``specs`` place the weights, ``init`` and ``xs``."""

    name: str
    step: Callable[..., tuple[Any, Any]]  # (lib, weights, carry, row)
    weights: tuple[Any, ...]
    init: Any
    xs: Any  # a tuple of arrays with a leading dim of steps
    specs: tuple[Any, Any, Any]
    differentiate: bool = False  # the gradient of the weights instead of the results

    @property
    def length(self) -> int:
        """The number of steps."""
        return len(self.xs[0])

    def program(self, lib: Any, scan: Callable[..., Any]) -> Callable[..., Any]:
        """The loop as a function of ``arguments``, in NumPy or ``jax.numpy``."""

        def run(weights: Any, init: Any, xs: Any) -> Any:
            return scan(lambda carry, row: self.step(lib, weights, carry, row), init, xs)

        def total(weights: Any, init: Any, xs: Any) -> Any:
            carry, ys = run(weights, init, xs)
            return (ys * ys).sum() + carry.sum()

        if not self.differentiate:
            return run
        return sw.grad(total) if lib is np else jax.grad(total)

    def head(self, length: int) -> Case:
        """The same loop with fewer steps."""
        return replace(self, xs=tuple(x[:length] for x in self.xs))

    @property
    def arguments(self) -> tuple[Any, Any, Any]:
        """The arguments of the program."""
        return self.weights, self.init, self.xs


def unrolled(step: Step, init: Any, xs: tuple[Any, ...]) -> tuple[Any, Any]:
    """`scan`, one step after another."""
    carry, ys = init, []
    for i in range(len(xs[0])):
        carry, y = step(carry, tuple(x[i] for x in xs))
        ys.append(y)
    return carry, None if ys[0] is None else np.stack(ys)


def rnn_step(lib: Any, weights: Any, h: Any, row: Any) -> tuple[Any, Any]:
    w, u = weights
    h = lib.tanh(h @ w + row[0] @ u)
    return h, h


def power_step(lib: Any, weights: Any, v: Any, row: Any) -> tuple[Any, Any]:
    product = weights[0] @ v
    return product / lib.sqrt((product * product).sum(axis=0, keepdims=True)), None


def transformer_step(lib: Any, weights: Any, x: Any, row: Any) -> tuple[Any, Any]:
    query, key, value, out, up, down = row
    normalised = (x - x.mean(axis=-1, keepdims=True)) / lib.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    q, k, v = (lib.einsum("bsm,mhd->bhsd", normalised, w) for w in (query, key, value))
    scores = lib.einsum("bhsd,bhtd->bhst", q, k) * np.float32(query.shape[2] ** -0.5)
    scores = lib.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = lib.einsum("bhst,bhtd->bhsd", scores / scores.sum(axis=-1, keepdims=True), v)
    x = x + lib.einsum("bhsd,hdm->bsm", mixed, out)
    return x + lib.maximum(x @ up, 0) @ down, None


def normal(rng: np.random.Generator, *shape: int, scale: float) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)


def cases(width: int = 512) -> dict[str, Case]:
    rng = np.random.default_rng(width)
    square = lambda: normal(rng, width, width, scale=width**-0.5)  # noqa: E731
    heads, depth, layers = 8, width // 8, 36
    stacks = [normal(rng, layers, width, heads, depth, scale=width**-0.5) for _ in range(3)]
    stacks += [normal(rng, layers, heads, depth, width, scale=width**-0.5)]
    stacks += [normal(rng, layers, width, 4 * width, scale=width**-0.5)]
    stacks += [normal(rng, layers, 4 * width, width, scale=(4 * width) ** -0.5)]
    by_head = P(None, None, "data", None)
    stack_specs = (by_head, by_head, by_head, P(None, "data"), P(None, None, "data"), P(None, "data", None))
    rows = np.zeros((1000, 1, 1), np.float32) + normal(rng, 1000, 64, width, scale=1.0)
    rnn = Case(
        "rnn", rnn_step, (square(), square()), normal(rng, 64, width, scale=1.0), (rows,),
        ((P(), P()), P("data"), (P(None, "data"),)),
    )  # fmt: skip
    return {
        "rnn": rnn,
        "gradient": replace(rnn, name="gradient", differentiate=True),
        "power": Case(
            "power", power_step, (square(),), normal(rng, width, width, scale=1.0), (np.zeros(200, np.float32),),
            ((P(),), P(None, "data"), (P(),)),
        ),
        "transformer": Case(
            "transformer", transformer_step, (), normal(rng, 8, 32, width, scale=1.0), tuple(stacks),
            ((), P(), stack_specs),
        ),
    }  # fmt: skip


def shardwise(case: Case, scan: Callable[..., Any], devices: int) -> Any:
    return sw.jit(case.program(np, scan), mesh=sw.Mesh({"data": devices}), in_shardings=case.specs)


def op_count(ops: Any) -> int:
    """All ops, those of regions included."""
    return len(ops) + sum(op_count(region.ops) for op in ops for region in op.regions)


def compiled(case: Case, scan: Callable[..., Any], rounds: int = 5) -> tuple[float, int]:
    """The seconds of a compile without the trace, and the number of local ops."""
    best, ops = float("inf"), 0
    for _ in range(rounds):
        program = shardwise(case, scan, DEVICES).trace(*case.arguments).lower().compile()
        best = min(best, sum(program.seconds.values()))
        ops = op_count(program._compiled.stages["local"].main.body.ops)
    return best, ops


def measure_compile(case: Case) -> dict[str, float]:
    seconds, ops = compiled(case, sw.scan)
    step_seconds, step_ops = compiled(case.head(1), unrolled)
    return {
        "length": case.length,
        "compile ms": seconds * 1e3,
        "one step, ms": step_seconds * 1e3,
        "local ops": ops,
        "ops of one step": step_ops,
    }


def layer_text(case: Case, layers: int, *, inline: bool) -> str:
    """Layers as calls of one function, as JAX prints them, with the weights' shardings of ``case``."""
    one = jax.jit(lambda x, *row: case.step(jnp, (), x, row)[0], inline=inline)

    def run(x: Any, weights: Any) -> Any:
        for row in weights:
            x = one(x, *row)
        return x

    shape = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)  # noqa: E731
    row = tuple(shape(x[0]) for x in case.xs)
    head, _, rest = jax.jit(run).lower(shape(case.init), [row] * layers).as_text().partition("@main(")
    arguments, arrow, rest = rest.partition(") -> ")
    specs = [None, *[spec[1:] for spec in case.specs[2]] * layers]
    found = re.findall(r"%arg\d+: tensor<[^>]*>", arguments)
    shown = ", ".join(x + annotation(spec, x.count("x")) for x, spec in zip(found, specs, strict=True))
    head = head.replace("{\n", f'{{\n  sdy.mesh @mesh = <["data"={DEVICES}]>\n', 1)
    return f"{head}@main({shown}{arrow}{rest}"


def annotation(spec: Any, ndim: int) -> str:
    """The sharding of an argument in a text."""
    if spec is None:
        return ""
    dims = [f'{{"{axis}"}}' if axis else "{}" for axis in spec] + ["{}"] * (ndim - len(spec))
    return f" {{sdy.sharding = #sdy.sharding<@mesh, [{', '.join(dims)}]>}}"


def measure_calls(case: Case, rounds: int = 5) -> dict[str, float]:
    """Milliseconds to compile texts, without parsing them."""
    found: dict[str, float] = {"length": case.length}
    for name, layers, inline in (("one layer", 1, True), ("calls", case.length, False), ("inlined", case.length, True)):
        module = sw.parse(layer_text(case, layers, inline=inline))
        runs = [module.compile().seconds for _ in range(rounds)]
        best = min(runs, key=lambda seconds: sum(seconds.values()))
        found[f"{name}, ms"] = sum(best.values()) * 1e3
        if name == "calls":
            found["of it propagation, ms"] = best["propagate"] * 1e3
    return found


def measure_run(case: Case, steps: int, rounds: int) -> dict[str, float]:
    """Median seconds of the first ``steps`` steps, and the largest difference from JAX's result."""
    case = case.head(steps)
    theirs = jax.jit(case.program(jnp, jax.lax.scan))
    jax_arguments = jax.tree.map(jnp.asarray, case.arguments)
    functions: dict[str, Callable[[], Any]] = {"JAX": lambda: jax.block_until_ready(theirs(*jax_arguments))}
    results = {}
    forms = (("loop", sw.scan, DEVICES), ("unrolled", unrolled, DEVICES), ("unpartitioned", sw.scan, 1))
    for name, scan, devices in forms:
        function = shardwise(case, scan, devices)
        leaves, structure = jax.tree.flatten(case.arguments)
        shardings = function.lower(*case.arguments).compile().input_shardings
        arguments = jax.tree.unflatten(structure, [sw.device_put(x, s) for x, s in zip(leaves, shardings)])
        functions[name] = lambda function=function, arguments=arguments: function(*arguments)
        results[name] = np.asarray(function(*arguments)[0])
    difference = max(float(np.abs(x - np.asarray(theirs(*jax_arguments)[0])).max()) for x in results.values())
    interleaved(functions, 2)
    seconds = {name: statistics.median(runs) for name, runs in interleaved(functions, rounds).items()}
    return {"steps": steps, **seconds, "difference": difference}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--width", type=int, default=512)
    args = parser.parse_args()
    problems: list[str] = []
    all_cases = cases(args.width)
    compiles = {name: measure_compile(case) for name, case in all_cases.items()}
    columns = list(next(iter(compiles.values())))
    table("loops: compile, 8 devices", ["loop", *columns], [[n, *row.values()] for n, row in compiles.items()])
    for name in ("rnn", "gradient"):
        rnn = compiles[name]
        if rnn["compile ms"] > LIMITS["compile ms"]:
            problems.append(f"{name}: {rnn['compile ms']:.1f} ms to compile, above {LIMITS['compile ms']}")
        if rnn["local ops"] > LIMITS["local ops"] * rnn["ops of one step"]:
            problems.append(f"{name}: {rnn['local ops']} local ops, {rnn['ops of one step']} in one step")
    transformer = compiles["transformer"]
    if transformer["compile ms"] > LIMITS["compile/layer"] * transformer["one step, ms"]:
        problems.append(
            f"transformer: compile {transformer['compile ms'] / transformer['one step, ms']:.1f}x one layer"
        )
    calls = measure_calls(all_cases["transformer"])
    table("loops: 36 calls of a layer, compile", list(calls), [list(calls.values())])
    planned = calls["calls, ms"] - calls["of it propagation, ms"]
    if planned > LIMITS["compile/layer"] * calls["one layer, ms"]:
        problems.append(f"calls: compile without propagation {planned / calls['one layer, ms']:.1f}x one layer")
    steps = {"rnn": 50, "gradient": 30, "power": 50, "transformer": 12}
    runs = {name: measure_run(case, steps[name], args.rounds) for name, case in all_cases.items()}
    rows = []
    for name, run in runs.items():
        against = {"loop/unrolled": run["loop"] / run["unrolled"], "8/1": run["loop"] / run["unpartitioned"]}
        rows.append([name, int(run["steps"]), *(run[k] * 1e3 for k in ("loop", "unrolled", "unpartitioned", "JAX"))])
        rows[-1] += [*against.values(), run["difference"]]
        problems += [f"{name}: {k} is {v:.2f}, above {LIMITS[k]}" for k, v in against.items() if v > LIMITS[k]]
    titles = ["loop", "steps", "loop ms", "unrolled ms", "1 device ms", "JAX ms", "loop/unrolled", "8/1", "difference"]
    table("loops: run on 8 virtual devices, float32", titles, rows)
    write("loops", {"compile": compiles, "calls": calls, "run": runs})
    for problem in problems:
        print("NOT MET:", problem)
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
