# SPDX-License-Identifier: Apache-2.0
"""The time to compile the training step of GShard's translation models, after the trace.

Rows: the 600B and the 1T model, on 2,048 devices and on 512 x 2,048, without and with the update of the weights split
over all devices. The first compilation of a row finds no prices of its reshards, later ones do. A sum of memory by
category that is not the peak is an error.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from typing import Any

import numpy as np

import shardwise as sw
from benchmarks.report import table, write
from shardwise import models
from shardwise.models import translation

SECONDS = 1.0  # on a quiet machine
SENTENCES = 16  # of a device
MESHES = {
    2048: (sw.Mesh({"x": 2048}), models.Axes("x", "x")),
    512 * 2048: (sw.Mesh({"data": 512, "x": 2048}), models.Axes(("data", "x"), "x")),
}


def lowered(name: str, devices: int, is_split: bool) -> sw.Lowered:
    """The step, traced from shapes."""
    config, optimizer = translation.configs[name], sw.optim.gshard_adafactor()
    mesh, axes = MESHES[devices]
    state = translation.init_state(translation.shapes(config), optimizer)
    source, target = (
        sw.ShapeDtypeStruct((SENTENCES * devices, length), np.int32)
        for length in (config.source_length, config.target_length)
    )
    options: Any = {"shard_update": axes.groups} if is_split else {}
    step = sw.jit(translation.train_step(config, optimizer, axes=axes), mesh=mesh, donate_argnums=0, **options)
    return step.lower(state, source, target, sw.random.key(0))


def measure(rounds: int) -> list[dict[str, Any]]:
    rows = []
    for name, devices, is_split in itertools.product(("600B", "1T"), MESHES, (False, True)):
        seconds = []
        for _ in range(rounds):
            traced = lowered(name, devices, is_split)
            start = time.perf_counter()
            program = traced.compile()
            seconds.append(time.perf_counter() - start)
        memory = program.memory()
        if sum(row.bytes for row in memory.group_by("category")) != memory.peak_bytes:
            raise SystemExit(f"{name} on {devices} devices: the categories of memory do not sum to the peak")
        rows.append(
            {
                "model": name,
                "devices": devices,
                "shard_update": is_split,
                "seconds": seconds,
                "ops_local": program.op_count,
                "peak_bytes": memory.peak_bytes,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="compilations of each row (5)")
    parser.add_argument("--check", action="store_true", help=f"fail if a median is above {SECONDS} s")
    args = parser.parse_args()
    rows = measure(args.rounds)
    medians = [statistics.median(row["seconds"]) for row in rows]
    columns = ("model", "devices", "shard_update", "first s", "compile s", "least s", "local ops", "peak GiB")
    table(
        "Compilation after the trace",
        columns,
        [
            [
                row["model"],
                f"{row['devices']:,}",
                "yes" if row["shard_update"] else "no",
                row["seconds"][0],
                median,
                min(row["seconds"]),
                str(row["ops_local"]),
                row["peak_bytes"] / 2**30,
            ]
            for row, median in zip(rows, medians)
        ],
    )
    write("translation", rows)
    if args.check and max(medians) > SECONDS:
        raise SystemExit(f"a step takes {max(medians):.2f} s to compile, above {SECONDS} s")


if __name__ == "__main__":
    main()
