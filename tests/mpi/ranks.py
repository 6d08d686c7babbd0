# SPDX-License-Identifier: Apache-2.0
"""More programs on more numbers of ranks than `make test` runs.

python -m tests.mpi.ranks                                           # what `make test-ranks` runs for this commit
python -m tests.mpi.ranks --listed 1 2 --on 4 8 --random 500        # the list on 1 and 2 ranks, and random programs
"""

from __future__ import annotations

import argparse
import sys

from tests.conformance.run_random import SEEDS, keep
from tests.mpi.launch import mpirun
from tests.support.run_seed import in_turn, is_whole, run_seed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listed", type=int, nargs="*", default=[1, 2, 3, *in_turn([8])])
    parser.add_argument("--on", type=int, nargs="*", default=[4, 8, *in_turn([1, 2, 3])])
    parser.add_argument("--ranks", type=int, nargs="+", help="for both; failures are not kept")
    parser.add_argument("--random", type=int, default=500 if is_whole() else 167, help="programs for each of --on")
    parser.add_argument("--seed", type=int, default=run_seed())
    parser.add_argument("--minutes", type=float, default=60, help="limit of each run")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    drawn = ["--random", str(options.random), "--seed", str(options.seed)]
    runs = [(ranks, list[str](), f"--listed {ranks} --on") for ranks in options.ranks or options.listed]
    runs += [(ranks, drawn, f"--listed --on {ranks} {' '.join(drawn)}") for ranks in options.ranks or options.on]
    failed = []
    for ranks, arguments, selection in runs:
        done = mpirun(ranks, ["-m", "tests.mpi.worker", *arguments], seconds=60 * options.minutes)
        print(done.stdout, end="", flush=True)
        if done.returncode:
            failed.append(f"python -m tests.mpi.ranks {selection}")
            print(f"{done.stderr}\nto repeat it: {failed[-1]}", file=sys.stderr, flush=True)
    if not options.ranks:
        keep(failed, SEEDS)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
