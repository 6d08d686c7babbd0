# SPDX-License-Identifier: Apache-2.0
"""An instance on a random mesh with random shardings: every shard once and every device by itself, padding poisoned."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

import shardwise as sw
from tests.op.catalogue.instance import Instance
from tests.op.catalogue.values import Array

MESHES: tuple[tuple[tuple[str, int], ...], ...] = (
    (("x", 2),), (("x", 4),), (("x", 8),), (("x", 3),), (("x", 2), ("y", 3)), (("x", 4), ("y", 2)),
    (("x", 2), ("y", 2), ("z", 2)), (("x", 5), ("y", 1)),
)  # fmt: skip
MODES: tuple[dict[str, bool], ...] = ({}, {"faithful": True, "poison": True})


def sharding(shape: tuple[int, ...], mesh: tuple[tuple[str, int], ...], rng: Any) -> str:
    """Each axis, or both halves of one of size 4 or 8, on a dim or on none."""
    refs = []
    for name, size in mesh:
        if size in (4, 8) and rng.random() < 0.2:
            refs += [f'"{name}":(1)2', f'"{name}":(2){size // 2}']
        else:
            refs.append(f'"{name}"')
    order = rng.permutation(len(refs)).tolist()
    dims: list[list[str]] = [[] for _ in shape]
    for i in order:
        if shape and rng.random() < 0.7:
            dims[int(rng.integers(len(shape)))].append(refs[i])
    whole = [merged(axes) for axes in dims]
    shown = ", ".join("{" + ", ".join([*axes, *(["?"] if rng.random() < 0.2 else [])]) + "}" for axes in whole)
    return f"sdy.sharding = #sdy.sharding<@mesh, [{shown}]>"


def merged(axes: list[str]) -> list[str]:
    """Sub-axes that follow each other are one: the text must not have them apart."""
    found: list[str] = []
    for axis in axes:
        last = found[-1] if found else ""
        if last.endswith(":(1)2") and axis.startswith(last.removesuffix("(1)2") + "(2)"):
            found[-1] = last.partition(":")[0]
        else:
            found.append(axis)
    return found


def partitioned_text(instance: Instance) -> str:
    if instance.partitioned:
        return instance.partitioned
    rng = np.random.default_rng([zlib.crc32(instance.op.encode()), instance.seed, 7])
    mesh = MESHES[int(rng.integers(len(MESHES)))]
    declared = ", ".join(f'"{name}"={size}' for name, size in mesh)
    arguments = [sharding(x.shape, mesh, rng) if rng.random() < 0.8 else "" for x in instance.arguments]
    results = [sharding(s, mesh, rng) if rng.random() < 0.5 else "" for s, _ in instance.results]
    return instance.text(arguments, results, f"sdy.mesh @mesh = <[{declared}]>\n")


def run_partitioned(instance: Instance) -> list[list[Array]]:
    """The results in each mode."""
    program = sw.parse(partitioned_text(instance)).compile()
    runs = []
    for mode in MODES:
        returned = program.run(*instance.arguments, **mode)
        runs.append([np.asarray(x) for x in (returned if isinstance(returned, tuple) else (returned,))])
    return runs
