# SPDX-License-Identifier: Apache-2.0
"""Random programs on random meshes, partitioned, against the unpartitioned run.

    python -m tests.conformance.random_programs --programs 50000 --seed 1 --processes 2
    python -m tests.conformance.random_programs --seed 1 --show 1234

Two fifths of the programs compute with small integers of several dtypes, in loops, branches and calls too; NumPy gives
what every run must give. Two fifths are instances of any op that runs, in every dtype, on arguments that were moved
before. A fifth moves arrays of random bit patterns of every dtype, which must arrive bit for bit. Meshes have 1 to 4
axes of sizes 1 to 9. Each program runs in both executor modes, with poison and without. The tool writes a table and
build/conformance/random_programs.json, and exits with 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.conformance.random_programs.checking import check, counted
from tests.conformance.results import table, write
from tests.support.paths import ROOT

CHUNK = 500  # programs of one process
Failure = dict[str, Any]


def run_here(seed: int, start: int, end: int, several_meshes: bool) -> None:
    """Checks programs, and prints a line of JSON for each: before it, and what it counts."""
    for index in range(start, end):
        print(json.dumps({"begins": index}), flush=True)
        checked = check(seed, index, several_meshes)
        print(json.dumps({"counts": counted(checked), "wrong": checked.wrong}), flush=True)


def run_there(seed: int, start: int, end: int, several_meshes: bool) -> tuple[Counter[str], list[Failure]]:
    """The same in other processes: a new one after each that dies."""
    counts, failures = Counter[str](), list[Failure]()
    while start < end:
        command = [sys.executable, "-m", __package__, "--seed", str(seed), "--range", str(start), str(end)]
        command += ["--several-meshes"] if several_meshes else []
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        for begin, end_of in zip(lines[::2], lines[1::2]):
            counts.update(end_of["counts"])
            if end_of["wrong"]:
                failures.append({"index": begin["begins"], "wrong": end_of["wrong"]})
        if done.returncode == 0:
            break
        last = lines[-1].get("begins", start) if lines else start
        failures.append({"index": last, "wrong": f"the process died with {done.returncode}: {done.stderr[-2000:]}"})
        counts.update({"programs": 1, "wrong": 1, "crashes": 1})
        start = last + 1
    return counts, failures


def report(counts: Counter[str], failures: list[Failure], seed: int, seconds: float) -> None:
    for title in ("op", "dtype", "annotation", "kind", "axes", "axis size"):
        rows = [(name.removeprefix(f"{title} "), n) for name, n in counts.items() if name.startswith(f"{title} ")]
        rows = [row for row in rows if not row[0].startswith("size ")]
        table(f"{title}: {len(rows)}", (title, "programs"), sorted(rows))
    for failure in failures[:20]:
        print(f"\nprogram {failure['index']}: {failure['wrong'][:1500]}")
        print(f"python -m {__package__} --seed {seed} --show {failure['index']}")
    rate = counts["programs"] / seconds
    print(f"\n{counts['programs']} programs in {seconds:.0f} s, {rate:.0f} per second: {len(failures)} wrong", end="")
    print(f", {counts['crashes']} of them crashes")


def show(seed: int, index: int, several_meshes: bool) -> None:
    checked = check(seed, index, several_meshes)
    print(f"{checked.text}\n{checked.wrong or 'nothing is wrong'}")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--several-meshes", action="store_true", help="annotations name other meshes of the same devices"
    )
    parser.add_argument("--show", type=int, help="print one program, and what is wrong with it")
    parser.add_argument("--range", type=int, nargs=2, help="only these programs, in this process, as lines of JSON")
    options = parser.parse_args()
    if options.show is not None:
        show(options.seed, options.show, options.several_meshes)
        return 0
    if options.range:
        run_here(options.seed, *options.range, options.several_meshes)
        return 0
    began, counts = time.monotonic(), Counter[str]()
    failures: list[Failure] = []
    starts = range(0, options.programs, CHUNK)
    with ThreadPoolExecutor(options.processes) as pool:
        ends = [min(start + CHUNK, options.programs) for start in starts]
        runs = pool.map(run_there, [options.seed] * len(starts), starts, ends, [options.several_meshes] * len(starts))
        for more, found in runs:
            counts.update(more)
            failures += found
            print(f"{counts['programs']} of {options.programs}, {len(failures)} wrong", file=sys.stderr, flush=True)
    seconds = time.monotonic() - began
    report(counts, failures, options.seed, seconds)
    rows = {"seed": options.seed, "seconds": seconds, "counts": dict(sorted(counts.items())), "failures": failures}
    write("random_programs", rows)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
