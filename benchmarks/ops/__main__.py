# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.ops`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

if os.environ.get("SHARDWISE_THREADS") != "1":  # read, as the others are, when the libraries load
    os.environ.update(SHARDWISE_THREADS="1", OPENBLAS_NUM_THREADS="1", OPENBLAS_THREAD_TIMEOUT="4", OMP_NUM_THREADS="1")
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks.ops", *sys.argv[1:]])

import numpy as np

import shardwise as sw
from benchmarks.ops.row import Row
from benchmarks.ops.table import MOST, REASONS, ROWS, ceiling
from benchmarks.report import interleaved, table, write

ELEMENTS = 1 << 20
USUAL, SHARE = 1.5, 0.95  # a ratio that 95 % of the rows must keep


def measure(row: Row, elements: int, rounds: int, seconds: float) -> dict[str, Any]:
    """The fastest of interleaved runs; at most `rounds`, fewer where these would take longer than `seconds`.

    The clock is the processor time of the one thread, which other programs on the machine do not stretch.
    """
    arguments = row.arguments(elements)
    program = row.program(arguments)
    placed = [sw.device_put(x, s) for x, s in zip(arguments, program.input_shardings)]

    def silent(baseline: Callable[..., Any]) -> Callable[[], Any]:
        def run() -> Any:
            with np.errstate(all="ignore"):
                return baseline(*arguments)

        return run

    functions = {"ours": lambda: program(*placed), **{str(i): silent(f) for i, f in enumerate(row.baselines)}}
    first = interleaved(functions, 2, time.thread_time)
    expected = sum(map(min, first.values()))
    runs = interleaved(functions, max(3, min(rounds, int(seconds / expected))), time.thread_time)
    best = {name: min(first[name] + runs[name]) for name in functions}
    ours = best.pop("ours")
    theirs = min(best.values())
    reason = REASONS[row.name][1] if row.name in REASONS else ""
    return {"row": row.name, "ours": ours, "theirs": theirs, "ratio": ours / theirs, "reason": reason}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.5, help="most time per row")
    parser.add_argument("--elements", type=int, default=ELEMENTS)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    args = parser.parse_args()
    rows = [row for row in ROWS if args.only in row.name]
    results = []
    for count, row in enumerate(rows, 1):
        results.append(measure(row, args.elements, args.rounds, args.seconds))
        print(f"{count}/{len(rows)} {row.name}: {results[-1]['ratio']:.2f}x", file=sys.stderr, flush=True)
    results.sort(key=lambda result: -result["ratio"])
    shown = [[r["row"], r["ours"] * 1e3, r["theirs"] * 1e3, r["ratio"], r["reason"]] for r in results]
    table("ops: one thread", ["row", "shardwise ms", "NumPy ms", "ratio", "reason"], shown)
    usual = sum(r["ratio"] <= USUAL for r in results)
    most = sum(r["ratio"] <= MOST for r in results)
    print(f"{len(results)} rows: {usual} at most {USUAL}x, {most} at most {MOST}x")
    if not args.only:
        write("ops", results)
    problems = [
        f"{r['row']}: {r['ratio']:.2f}x, above {ceiling(r['row'])}" for r in results if r["ratio"] > ceiling(r["row"])
    ]
    if usual < SHARE * len(results):
        problems.append(f"{usual} of {len(results)} rows at most {USUAL}x, below {SHARE:.0%}")
    for problem in problems:
        print("NOT MET:", problem)
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
