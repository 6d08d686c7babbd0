# SPDX-License-Identifier: Apache-2.0
"""Random programs in several spellings: each has the same shardings and sends the same bytes.

    python -m tests.conformance.spellings --programs 1000 --seed 7
    python -m tests.conformance.spellings --seed 7 --show 12

A spelling writes x[:, None] as a reshape, as a broadcast or as a transpose of one; it broadcasts in one step or in two,
transposes the operands of products, adds movements that undo each other, and changes the order of arguments, of ops and
of operands. Where annotations disagree, propagation decides by order, as Shardy does: of such programs, only movements
are written in another way. Bytes are compared where ops keep their order, since equally good choices of placements are
taken in this order. The tool exits with 1 if a spelling is not equal to the plain one.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import shardwise as sw
from tests.conformance.results import table, write
from tests.conformance.spellings.programs import Program, draw
from tests.conformance.spellings.spelling import FREEDOMS, Spelling, spelled

WITH_EQUAL_BYTES = ("movements", "arguments")


@dataclass(frozen=True)
class Outcome:
    """A program, and what differs in a spelling of it, if anything."""

    program: Program
    bytes: float
    wrong: str = ""


@dataclass(frozen=True)
class Compiled:
    """The shardings of arguments and results, and what a device receives."""

    arguments: dict[int, str]
    results: list[str]
    bytes: float

    @classmethod
    def of(cls, spelling: Spelling) -> Compiled:
        program: Any = sw.parse(spelling.text).compile()
        shardings = [str(sharding.spec) for sharding in program.input_shardings]
        outputs = program.output_shardings
        results = [str(sharding.spec) for sharding in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
        return cls(
            dict(sorted(zip(spelling.arguments, shardings, strict=True))), results, program.collectives().total_bytes
        )


def check(seed: int, index: int, freedoms: Sequence[str] = FREEDOMS) -> Outcome:
    """Draw a program, and compare spellings with the plain one."""
    rng = random.Random(f"{seed}:{index}")
    program = draw(rng, agrees=index % 2 == 0)
    plain = spelled(program)
    expected = Compiled.of(plain)
    if program.axes is None:
        freedoms = [freedom for freedom in freedoms if freedom == "movements"]
    for changed in [[freedom] for freedom in freedoms] + [list(freedoms)]:
        other = spelled(program, rng, changed)
        found = Compiled.of(other)
        equal_bytes = found.bytes == expected.bytes or not set(changed) <= set(WITH_EQUAL_BYTES)
        if (found.arguments, found.results) != (expected.arguments, expected.results) or not equal_bytes:
            wrong = f"{plain.text}{expected}\n\n{' and '.join(changed)} in another way:\n{other.text}{found}"
            return Outcome(program, expected.bytes, wrong)
    return Outcome(program, expected.bytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, help="one program")
    parser.add_argument("--only", nargs="+", default=list(FREEDOMS), choices=FREEDOMS, help="what spellings change")
    args = parser.parse_args()
    if args.show is not None:
        outcome = check(args.seed, args.show, args.only)
        print(outcome.wrong or outcome)
        sys.exit(1 if outcome.wrong else 0)
    start = time.perf_counter()
    counts, wrong = Counter[str](), list[str]()
    for index in range(args.programs):
        outcome = check(args.seed, index, args.only)
        counts.update({"equal": not outcome.wrong, "sends bytes": outcome.bytes > 0})
        counts["annotations may disagree"] += outcome.program.axes is None
        counts.update({f"with {node.op}" for node in outcome.program.nodes})
        if outcome.wrong:
            wrong.append(f"program {index}:\n{outcome.wrong}")
    seconds = time.perf_counter() - start
    table(f"{args.programs} programs in {seconds:.0f} s", ["what", "programs"], counts.most_common())
    print(*wrong[:3], sep="\n")
    write("spellings", {"programs": args.programs, "seed": args.seed, "seconds": seconds, **counts, "wrong": wrong})
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
