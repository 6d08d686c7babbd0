# SPDX-License-Identifier: Apache-2.0
"""More programs on more numbers of ranks than `make test` runs.

python -m tests.mpi.ranks --ranks 1 2 3 4 8 --random 500
"""

from __future__ import annotations

import argparse
import sys

from tests.mpi.launch import mpirun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 3, 4, 8])
    parser.add_argument("--random", type=int, default=500, help="random programs for each number of ranks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="limit of each run")
    options = parser.parse_args()
    failed = False
    for ranks in options.ranks:
        for more in ([], ["--random", str(options.random), "--seed", str(options.seed)]):
            done = mpirun(ranks, ["-m", "tests.mpi.worker", *more], seconds=60 * options.minutes)
            print(done.stdout, end="", flush=True)
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
