# SPDX-License-Identifier: Apache-2.0
"""Annotated programs under transforms, which must run without a warning and give the numbers of the plain program.

    python -m tests.conformance.transformed --programs 300 --seed 7
    python -m tests.conformance.transformed --seed 7 --show 12

A program has a construct with annotations (constraints, jitted functions with shardings, manual regions, loops,
branches, rules for gradients), inside another function or not, of which all, one or none of the results is used, and
which is run, differentiated, mapped or linearized. A third are written in NumPy, a third in JAX, which run as text,
too, and a third in JAX under transforms of Shardwise. Some discard an annotation by its line, which must have the only
warning; some close over equal arrays and constants, which must be held once in the program, in memory and in scripts.
Every fifth program repeats work on purpose instead: it must have one warning, whose way out must help. The tool exits
with 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
os.environ["JAX_PLATFORMS"] = "cpu"

from tests.conformance.results import table, write
from tests.conformance.transformed import repeated_work
from tests.conformance.transformed.checking import check, draw

EVERY = 5  # programs, of which one repeats work


def outcome(seed: int, index: int) -> tuple[str, str, list[str]]:
    """The text of a program, what is wrong with it, and what it counts as."""
    if index % EVERY == EVERY - 1:
        program = repeated_work.draw(seed, index)
        return str(program), repeated_work.check(program), ["repeats work", f"{program.form.__name__} of {program.kit}"]
    case = draw(seed, index)
    checked = check(case)
    parts = [part.__name__ for part in (case.construct, case.wrapper, case.use, case.transform)]
    return str(case), checked.wrong, [case.kit, *parts, *(["sends bytes"] if checked.bytes else [])]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, help="one program")
    options = parser.parse_args()
    if options.show is not None:
        text, wrong, _ = outcome(options.seed, options.show)
        print(f"{text}\n{wrong or 'nothing is wrong'}")
        return 1 if wrong else 0
    began, counts, failures = time.monotonic(), Counter[str](), list[str]()
    for index in range(options.programs):
        text, wrong, counted = outcome(options.seed, index)
        counts.update(counted)
        if wrong:
            failures.append(f"program {index}, {text}:\n  {wrong}")
            print(failures[-1], flush=True)
    seconds = time.monotonic() - began
    table(f"{options.programs} programs in {seconds:.0f} s", ["what", "programs"], counts.most_common())
    print(f"{len(failures)} wrong")
    write("transformed", {"seed": options.seed, "seconds": seconds, **counts, "wrong": failures})
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
