# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.communication``: the table; see the package. ``--check`` fails above a bound or above XLA.

Programs that are known to be above their bound, and why, are in ``compiled.py``; more than that fails, too.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=64"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # XLA warns of each "involuntary full rematerialization"

import jax
import numpy as np

from benchmarks.communication.compiled import ABOVE_BOUND, ABOVE_BOUND_BY_BYTES, PROGRAMS, arguments_of, compiled
from benchmarks.communication.hlo import received
from benchmarks.communication.programs import Library, Program
from benchmarks.report import table, write


def ours(program: Program) -> float:
    return compiled(program).collectives().total_bytes


def xla(program: Program) -> float | None:
    devices = math.prod(program.mesh.values())
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:devices]).reshape(*program.mesh.values()), tuple(program.mesh))

    def named(axes: Sequence[Any]) -> Any:
        return jax.NamedSharding(mesh, jax.P(*axes))

    def constrained(array: Any, *axes: Any) -> Any:
        return jax.lax.with_sharding_constraint(array, named(axes))

    library = Library(jax.numpy, jax.grad, constrained, jax.lax, jax.vmap)
    function = jax.jit(
        lambda *arrays: program.function(library, *arrays),
        in_shardings=tuple(map(named, program.given)),
        out_shardings=_specs(program.wanted, named),
    )
    try:
        compiled = function.lower(*(jax.ShapeDtypeStruct(*argument) for argument in arguments_of(program))).compile()
    except ValueError:  # "… should evenly divide the shape": JAX refuses uneven boundaries
        return None
    return received(compiled.as_text(), devices)


def _specs(wanted: Any, spec: Any) -> Any:
    return tuple(map(spec, wanted)) if isinstance(wanted, list) else spec(wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a program sends more than its bound, or than XLA")
    parser.add_argument("--only", default="", help="programs whose name contains this text")
    parser.add_argument("--every", type=int, default=1, help="only each n-th program")
    parser.add_argument("--first", type=int, default=0, help="the program to begin with, modulo --every")
    parser.add_argument("--objective", choices=("time", "bytes"), help="compile all programs for this instead")
    options = parser.parse_args()
    wanted = [program for program in PROGRAMS if options.only in program.name]
    if options.objective:
        wanted = [replace(program, objective=options.objective) for program in wanted]
    rows = [
        {"name": program.name, "bytes": ours(program), "bound": program.bound, "xla": xla(program)}
        for program in wanted[options.first % options.every :: options.every]
    ]
    shown = [[r["name"], *(_digits(r[key]) for key in ("bytes", "bound", "xla"))] for r in rows]
    table("bytes received by one device", ("program", "shardwise", "bound", "XLA"), shown)
    if len(rows) == len(PROGRAMS) and not options.objective:
        write("communication", rows)
    above = [r["name"] for r in rows if r["bytes"] > r["bound"]]
    table_of_known = ABOVE_BOUND_BY_BYTES if options.objective == "bytes" else ABOVE_BOUND
    known = {name: sent for name, (sent, _) in table_of_known.items()}
    failing = [r["name"] for r in rows if r["bytes"] > known.get(r["name"], r["bound"])]
    worse = [r["name"] for r in rows if r["xla"] is not None and r["bytes"] > r["xla"]]
    print(f"{len(rows)} programs, {len(rows) - len(above)} at the bound, {len(worse)} above XLA")
    for title, names in (("above the bound", above), ("above XLA", worse), ("above what is known", failing)):
        if names:
            print(f"{title}: {'; '.join(names)}")
    return 1 if options.check and (failing or worse) else 0


def _digits(count: float | None) -> str:
    return "-" if count is None else f"{count:g}"


if __name__ == "__main__":
    raise SystemExit(main())
