# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: interleaved timing, a table, a JSON file."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


def interleaved(
    functions: dict[str, Callable[[], Any]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    before: Callable[[], Any] = lambda: None,
    in_a_row: int = 1,
) -> dict[str, list[float]]:
    """Seconds of each call. All functions are called in each round, so that noise of the machine meets all alike.

    ``before`` runs before each call, outside of its time. A round calls each function ``in_a_row`` times, as a training
    loop repeats its step: the caches hold what it uses.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            for _ in range(in_a_row):
                before()
                start = clock()
                function()
                seconds[name].append(clock() - start)
    return seconds


def write(name: str, rows: Any, folder: Path = RESULTS) -> None:
    """Write the data of a benchmark to FOLDER/NAME.json."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        "benchmark": name,
        "machine": platform.processor() or platform.machine(),
        "numpy": np.__version__,
        "rows": rows,
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(data, indent=1))
    print(f"written: {path}")


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows; floats with three significant digits."""
    out = Table(*columns, title=title)
    for row in rows:
        out.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=140).print(out)
