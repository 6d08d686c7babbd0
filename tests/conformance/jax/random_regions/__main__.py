# SPDX-License-Identifier: Apache-2.0
"""Random manual regions beside `jax.shard_map`: values, gradients, and collectives as written.

    python -m tests.conformance.jax.random_regions --programs 200 --seed 7
    python -m tests.conformance.jax.random_regions --seed 7 --show 12

Each region (programs.py) runs as it is, and is differentiated around by its shard and by an array of all devices.
Many have derivatives inside, too. Where all axes are manual, a program sends at most what its body says, by kind;
its gradient not much more than JAX's. The tool exits with 1 if a number differs, or if more programs are refused or
send more than their shares (MOST_OF).
"""

from __future__ import annotations

import argparse
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax  # reads XLA_FLAGS
import numpy as np

import shardwise as sw
from tests.conformance.jax.random_regions.programs import SHAPE, Program, program
from tests.conformance.jax.random_regions.written import collectives

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)  # each program runs once

TOLERANCE = 1e-9
# Movements of what is written, and all that JAX's transposes send: pairs of several distances are several permutations,
# and a value may move once more for the backward pass. Rows that are gathered for a collective send more.
MOST = 2.5
REFUSED, UNSUPPORTED, MORE, WRONG = "refused by JAX", "refused", "sends more than is written", "wrong"
# The share of programs of which each may hold: a region inside the derivative of another one is refused, and some
# permutations of a derivative are sent once more.
MOST_OF = {WRONG: 0, REFUSED: 0.2, UNSUPPORTED: 0.05, MORE: 0.05}

Function = Callable[[Any, Any], Any]


def with_ours(given: Program) -> Function:
    """The region with `sw.lax` and NumPy."""
    mesh = sw.Mesh(given.sizes)

    def region(run: Any, axes: tuple[str, ...]) -> Any:
        return sw.shard_map(
            run, mesh=mesh, in_specs=(sw.P(axes), sw.P()), out_specs=sw.P(axes), axis_names=set(axes),
            check_vma=given.is_checked,
        )  # fmt: skip

    names = {name: getattr(sw.lax, name) for name in sw.lax.__all__}
    lax = SimpleNamespace(**names)
    body = given.body(SimpleNamespace(lax=lax, np=np, transforms=sw, region=region))
    return sw.shard_map(  # type: ignore[no-any-return]
        body, mesh=mesh, in_specs=(sw.P(given.manual), sw.P()), out_specs=(sw.P(given.manual), sw.P()),
        axis_names=set(given.manual), check_vma=given.is_checked,
    )  # fmt: skip


def with_jax(given: Program) -> Function:
    """The region with `jax.lax` and `jax.numpy`."""
    spec, auto = jax.sharding.PartitionSpec, jax.sharding.AxisType.Auto
    count = int(np.prod(list(given.sizes.values())))
    devices = np.array(jax.devices()[:count]).reshape(tuple(given.sizes.values()))
    mesh = jax.sharding.Mesh(devices, tuple(given.sizes), axis_types=(auto,) * len(given.sizes))

    def region(run: Any, axes: tuple[str, ...]) -> Any:
        return jax.shard_map(
            run, in_specs=(spec(axes), spec()), out_specs=spec(axes), axis_names=set(axes), check_vma=given.is_checked
        )

    body = given.body(SimpleNamespace(lax=jax.lax, np=jax.numpy, transforms=jax, region=region))
    return jax.shard_map(  # type: ignore[no-any-return]
        body, mesh=mesh, in_specs=(spec(given.manual), spec()), out_specs=(spec(given.manual), spec()),
        axis_names=set(given.manual), check_vma=given.is_checked,
    )  # fmt: skip


def gradient(function: Function, grad: Any, number_of: Any) -> Function:
    def loss(x: Any, weight: Any) -> Any:
        part, total = function(x, weight)
        return number_of((part * part).sum() + total * 0.1)

    return grad(loss, (0, 1))  # type: ignore[no-any-return]


def difference(found: Any, expected: Any) -> str:
    for ours, theirs in zip(found, expected):
        theirs = np.asarray(theirs)
        scale = max(float(np.abs(theirs).max()), 1e-6)
        if not np.allclose(np.asarray(ours), theirs, rtol=TOLERANCE, atol=TOLERANCE * scale):
            return f"differs by {np.abs(np.asarray(ours) - theirs).max() / scale:.1e}"
    return ""


def sent(compiled: sw.Program) -> Counter[str]:
    by_kind: Counter[str] = Counter()
    for row in compiled.collectives().rows:
        by_kind[row.kind] += int(row.total_bytes)
    return by_kind


SUMS = ("all_reduce", "reduce_scatter")
MOVES = ("all_gather", "all_to_all", "collective_permute", "exchange")


def more(sends: Counter[str], most: Counter[str]) -> dict[str, tuple[int, int]]:
    """The kinds of which it sends more.

    Movements count together: of irregular pairs, one may become an all_to_all. So do sums: one of which each device
    reads a part is reduce-scattered, which sends half.
    """
    summed, moved = ((sum(sends[kind] for kind in kinds), sum(most[kind] for kind in kinds)) for kinds in (SUMS, MOVES))
    over = {"sums": summed} if summed[0] > summed[1] else {}
    return {**over, "moves": moved} if moved[0] > MOST * moved[1] else over


def more_in_all(sends: Counter[str], most: Counter[str]) -> dict[str, tuple[int, int]]:
    """A cotangent of two addends may be moved as these, and a value once more for the backward pass."""
    return {"all": (sends.total(), most.total())} if sends.total() > MOST * most.total() else {}


def arguments(given: Program) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(0)
    count = int(np.prod([given.sizes[axis] for axis in given.manual]))
    return source.uniform(-1, 1, (SHAPE[0] * count, SHAPE[1])), source.uniform(-0.5, 0.5, (SHAPE[1], SHAPE[1]))


def faults(given: Program) -> list[str]:
    """What is wrong with it."""
    ours, theirs, args = with_ours(given), with_jax(given), arguments(given)
    forms: list[tuple[str, Any, Any]] = [("value", ours, theirs)]
    if not given.has_extremum:
        by_ours = gradient(ours, sw.grad, lambda x: x)
        forms.append(("gradient", by_ours, gradient(theirs, jax.grad, lambda x: x)))
    found = []
    for name, mine, reference in forms:
        try:
            traced = jax.jit(reference).trace(*args)
            expected = traced.lower().compile()(*args)
        except (ValueError, NotImplementedError, TypeError, jax.errors.JaxRuntimeError):
            return [REFUSED]
        try:
            compiled = sw.jit(mine, mesh=sw.Mesh(given.sizes), combine_bytes=0).lower(*args).compile()
        except sw.errors.UnsupportedError:
            return [UNSUPPORTED]
        if text := difference(compiled(*args), expected):
            found.append(f"{name} {text}")
        most, sends = collectives(traced.jaxpr.jaxpr, given.sizes), sent(compiled)
        if len(given.manual) < len(given.sizes):
            continue  # what the other axes send is not written
        if over := more(sends, most) if name == "value" else more_in_all(sends, most):
            found.append(f"{name} {MORE}: {over}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, help="the number of one program: print its text and what is wrong with it")
    options = parser.parse_args()
    first = options.seed * 10_000
    counts: Counter[str] = Counter()
    for number in range(options.programs) if options.show is None else [options.show]:
        given = program(first + number)
        if options.show is not None:
            args = arguments(given)
            compiled = sw.jit(with_ours(given), mesh=sw.Mesh(given.sizes)).lower(*args).compile()
            print(compiled.as_text("global"), compiled.collectives(), sep="\n")
        for fault in faults(given):
            kind = fault if fault in MOST_OF else MORE if MORE in fault else WRONG
            counts[kind] += 1
            if fault in MOST_OF:
                continue
            where = f"{given.names} on {given.sizes}, manual {given.manual}"
            print(f"--seed {options.seed} --show {number}: {where}: {fault}", flush=True)
    print(f"{options.programs} programs: " + ", ".join(f"{counts[kind]} {kind}" for kind in MOST_OF))
    return 1 if any(counts[kind] > share * options.programs for kind, share in MOST_OF.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
