# SPDX-License-Identifier: Apache-2.0
"""Bytes that one device receives, beside XLA in the same run, and beside what the result cannot do without.

Each program has sharded arguments and results. Ours is the ledger of the compiled program. XLA's is counted in the HLO
text that it compiles for as many host devices: the maximum over devices, an all-reduce as a reduce-scatter and an
all-gather. A bound is |new tile| - |new tile ∩ old tile| for movement; an uneven dim is beyond JAX (-).
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np

import shardwise as sw
from benchmarks.report import table, write

Axes = tuple[Any, ...]  # an axis, several axes or None for each dim
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """``function(np, *arrays)``, its arguments and results; ``bound`` is in bytes, of float32."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[Shape, ...]
    given: tuple[Axes, ...]
    wanted: Axes
    bound: int
    mesh: dict[str, int]


X = ("x",)
ROWS = (64, 16)
LINE = {"x": 8}


def moved(
    name: str, function: Callable[..., Any], bound: int, *shapes: Shape, given: Axes = X, out: Axes = X
) -> Program:
    shapes = shapes or (ROWS,)
    return Program(name, function, shapes, (given,) * len(shapes), out, bound, LINE)


def reshard(shape: Shape, given: Axes, wanted: Axes, bound: int, **mesh: int) -> Program:
    return Program(f"{shape} {given} to {wanted}", lambda np, x: x, (shape,), (given,), wanted, bound, mesh)


def jacobi(np: Any, x: Any) -> Any:
    return np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1)


PROGRAMS = [
    moved("roll by 3", lambda np, x: np.roll(x, 3, 0), 192),
    moved("x[0]", lambda np, x: x[0], 64, out=()),
    moved("h[:, -1]", lambda np, h: h[:, -1], 256, (4, 64, 16), given=(None, "x"), out=()),
    moved("x[:32]", lambda np, x: x[:32], 256),
    moved("x[10:40]", lambda np, x: x[10:40], 256),
    moved("x[::2]", lambda np, x: x[::2], 0),
    moved("x[::-1]", lambda np, x: x[::-1], 512),
    moved("x[::-1] of 33 rows", lambda np, x: x[::-1], 320, (33, 16)),
    moved("pad 3 low, 5 high", lambda np, x: np.pad(x, ((3, 5), (0, 0))), 256),
    moved("concatenate 32 and 16 rows", lambda np, a, b: np.concatenate([a, b]), 192, (32, 8), (16, 8)),
    moved("x[1:] - x[:-1]", lambda np, x: x[1:] - x[:-1], 64),
    moved("split in 3", lambda np, x: x[:8] + x[8:16] + x[16:], 192, (24, 16)),
    moved("next tokens", lambda np, t: t[:, :-1] - t[:, 1:], 104, (2, 65), given=(None, "x"), out=(None, "x")),
    Program("Jacobi", jacobi, ((64, 64),), (("x", "y"),), ("x", "y"), 384, {"x": 2, "y": 4}),
    reshard((8, 16, 8), ("y", None, "x"), (None, ("x", "y")), 448, x=4, y=2),
    reshard((8, 8, 8), ("a", "b", "c"), (("a", "b", "c"),), 192, a=2, b=2, c=2),
    reshard((4, 4, 4, 4), (("a", "b"),), ("a", None, None, "b"), 128, a=2, b=2),
    reshard((16, 16), ("x", "y"), ("y", "x"), 128, x=2, y=4),
    reshard((16, 16), ("x", "y"), (None, ("x", "y")), 128, x=2, y=4),
    reshard((8, 33), (None, ("x", "y")), ("y", "x"), 112, x=2, y=4),
    reshard((8, 8, 8), ("a", None, "c"), (None, ("a", "c")), 384, a=2, c=2),
    reshard((12, 12), (("x", "y"),), (None, ("y", "x")), 80, x=2, y=3),
    reshard((33, 33), ("x", "y"), ("y", "x"), 612, x=2, y=4),
    reshard((33,), ("x",), (("x", "y"),), 4, x=4, y=2),
    reshard((10, 8), ("x",), (("x", "y"),), 32, x=4, y=2),
]


def ours(program: Program) -> float:
    function = sw.jit(
        lambda *arrays: program.function(np, *arrays),
        mesh=sw.Mesh(program.mesh),
        in_shardings=tuple(sw.P(*axes) for axes in program.given),
        out_shardings=sw.P(*program.wanted),
    )
    arguments = [sw.ShapeDtypeStruct(shape, np.float32) for shape in program.shapes]
    return sum(row.total_bytes for row in function.lower(*arguments).compile().collectives())


# ---- XLA ------------------------------------------------------------------------------------------------------------

COLLECTIVE = re.compile(
    r"= (?P<type>\(?[a-z0-9]+\[[^=]*?) (?P<kind>all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)"
    r"(?:-start)?\(.*"
)
ITEM_SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "f64": 8}


def type_bytes(text: str) -> int:
    found = re.findall(r"([a-z0-9]+)\[([0-9,]*)\]", text)
    return sum(ITEM_SIZES[dtype] * math.prod(int(n) for n in dims.split(",") if n) for dtype, dims in found)


def group_size(line: str, devices: int) -> int:
    if iota := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(iota[1])
    listed = re.search(r"replica_groups=\{\{([0-9,]*)\}", line)
    return len(listed[1].split(",")) if listed else devices


def received(hlo: str, devices: int) -> float:
    """Of the device that receives most, in all collectives of the program."""
    by_device = [0.0] * devices
    for line in hlo.splitlines():
        found = COLLECTIVE.search(line)
        if not found:
            continue
        result = type_bytes(found["type"])
        if found["kind"] == "collective-permute":
            pairs = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", line)
            for source, target in re.findall(r"\{(\d+),(\d+)", pairs[1] if pairs else ""):
                by_device[int(target)] += result if source != target else 0
            continue
        group = group_size(line, devices)
        share = {"all-reduce": 2 * (group - 1) / group, "reduce-scatter": group - 1}
        each = result * share.get(found["kind"], (group - 1) / group)
        by_device = [bytes_before + each for bytes_before in by_device]
    return max(by_device)


def xla(program: Program) -> float | None:
    devices = math.prod(program.mesh.values())
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:devices]).reshape(*program.mesh.values()), tuple(program.mesh))
    named = [jax.NamedSharding(mesh, jax.P(*axes)) for axes in (*program.given, program.wanted)]
    function = jax.jit(
        lambda *arrays: program.function(jax.numpy, *arrays), in_shardings=tuple(named[:-1]), out_shardings=named[-1]
    )
    arguments = [jax.ShapeDtypeStruct(shape, np.float32) for shape in program.shapes]
    try:
        compiled = function.lower(*arguments).compile()
    except ValueError:  # "… should evenly divide the shape": JAX refuses uneven boundaries
        return None
    return received(compiled.as_text(), devices)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a program sends more than its bound, or than XLA")
    check = parser.parse_args().check
    rows = []
    for program in PROGRAMS:
        rows.append({"name": program.name, "bytes": ours(program), "bound": program.bound, "xla": xla(program)})
    shown = [[r["name"], r["bytes"], r["bound"], "-" if r["xla"] is None else r["xla"]] for r in rows]
    table("bytes received by one device", ("program", "shardwise", "bound", "XLA"), shown)
    write("communication", rows)
    above = [r["name"] for r in rows if r["bytes"] > r["bound"] or (r["xla"] is not None and r["bytes"] > r["xla"])]
    if above:
        print(f"above the bound, or above XLA: {', '.join(above)}")
    return 1 if check and above else 0


if __name__ == "__main__":
    raise SystemExit(main())
