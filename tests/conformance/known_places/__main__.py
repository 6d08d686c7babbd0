# SPDX-License-Identifier: Apache-2.0
"""Random programs that read and write at known places: equal numbers, and no more bytes than their bound.

    python -m tests.conformance.known_places --programs 50 --seed 7
    python -m tests.conformance.known_places --seed 7 --show "rows:12"

``--programs`` is for each family. The tool exits with 1 if a program is wrong or sends more.
"""

from __future__ import annotations

import argparse
import os
import random
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

from tests.conformance.known_places.programs import FAMILIES, Program


def drawn(family: str, seed: str, index: int) -> Program:
    return FAMILIES[family](random.Random(f"{seed}:{family}:{index}"))


def fault(program: Program) -> str:
    """What is wrong with it, or ""."""
    compiled = program.compiled()
    found = np.asarray(compiled(*program.arguments))
    sent = compiled.collectives().total_bytes
    if not np.array_equal(found, program.expected, equal_nan=True):
        return f"wrong numbers: {np.argwhere(found != program.expected)[:3].tolist()}"
    return f"{sent:g} bytes, above {program.bound:g}\n{compiled.collectives()}" if sent > program.bound else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=50, help="of each family")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--show", help="print one program: FAMILY:INDEX")
    options = parser.parse_args()
    if options.show:
        family, _, index = options.show.partition(":")
        program = drawn(family, options.seed, int(index))
        print(program.name, program.given, program.mesh, program.compiled().as_text("global"), fault(program), sep="\n")
        return 0
    count = 0
    for family in FAMILIES:
        for index in range(options.programs):
            program = drawn(family, options.seed, index)
            if wrong := fault(program):
                count += 1
                print(f"--seed {options.seed} --show '{family}:{index}': {program.name} on {program.mesh}: {wrong}")
    print(f"{options.programs * len(FAMILIES)} programs, {count} wrong")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
