# SPDX-License-Identifier: Apache-2.0
"""With pinned choices, a program has the same local ops on meshes with larger axes.

    python -m tests.conformance.pinned_choices

Each program of the op table and of the communication benchmark is compiled on a small mesh. Its choices are pinned on
meshes whose axes are 4 to half a million times as large. The ops of the local programs are compared, and how often each
occurs. Where a dim is sharded evenly on one of the meshes alone, they may differ in what masks, pads and trims it, and
choices can be impossible on the larger mesh: a reshape may split by its rule over 2 devices, and not over 8. The tool
exits with 1 if other ops differ, or if other choices are refused, unless the program is in ``OPEN``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from tests.conformance.pinned_choices.comparing import (
    DIFFERENT,
    EVENNESS,
    SAME,
    becomes_uneven,
    compare,
    compiled_with,
    propagated,
)
from tests.conformance.pinned_choices.programs import Grown, of_ops, of_the_benchmark
from tests.conformance.results import table, write

UNEVEN, OTHERWISE = "impossible for an uneven dim", "propagated otherwise"
REFUSED = "impossible"
COLUMNS = (SAME, EVENNESS, UNEVEN, OTHERWISE, REFUSED, DIFFERENT)

# Not mended yet: programs whose choices are refused on larger axes, or give other ops, though no dim becomes uneven.
# The ops that replace an einsum of a diagonal may be sharded in another way where an axis is as large as a dim.
OPEN = (
    "slice (0, 1):(64, 4):(1, 2), two axes, assignment 1",
    "slice (0, 1):(64, 4):(1, 2), two axes, assignment 3",
    "real_dynamic_slice (0, 1)(64, 4)(2, 2), two axes, assignment 1",
    "real_dynamic_slice (0, 1)(64, 4)(2, 2), two axes, assignment 7",
    "convolution (2, 32, 4)(2, 4, 3)[b, 0, f]x[0, i, o]->[b, 0, f]((0, 0),)(2,)(1,)(1,)11, both dims, assignment 6",
    "einsum iij,ik->kj, both dims, assignment 0",
    "einsum iij,ik->kj, both dims, assignment 5",
    "unary_einsum ii->i, both dims, assignment 0",
    "unary_einsum ii->i, both dims, assignment 1",
    "unary_einsum bii->b, both dims, assignment 1",
    "unary_einsum iaii->ai, both dims, assignment 3",
)


def outcomes(programs: Iterable[Grown]) -> Iterator[tuple[Grown, int, str]]:
    """Each program with each of its factors, and one of COLUMNS."""
    for program in programs:
        compiled = compiled_with(*program.at(1))
        for factor in program.factors:
            larger = compiled_with(*program.at(factor), compiled.choices())
            if larger is not None:
                yield program, factor, compare(compiled, larger)
            elif becomes_uneven(compiled, factor):
                yield program, factor, UNEVEN
            else:
                alike = propagated(compiled) == propagated(compiled_with(*program.at(factor)))
                yield program, factor, REFUSED if alike else OTHERWISE


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.pinned_choices",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="programs whose name contains this text")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    found: list[str] = []
    wanted = (p for programs in (of_ops(), of_the_benchmark()) for p in programs if options.only in p.name)
    for program, factor, outcome in outcomes(wanted):
        counts.setdefault(program.group, Counter())[outcome] += 1
        if outcome in (DIFFERENT, REFUSED) and program.name not in OPEN:
            fault = "other ops" if outcome == DIFFERENT else "choices are refused"
            found.append(f"{program.name}: {fault} on axes {factor} times as large")
    rows = [(group, *(row[column] for column in COLUMNS)) for group, row in sorted(counts.items())]
    total = Counter[str]()
    for row in counts.values():
        total.update(row)
    table("pinned choices", ("programs", *COLUMNS), [*rows, ("total", *(total[column] for column in COLUMNS))])
    print("\n".join(found[:40]))
    if not options.only:
        write("pinned_choices", [dict(zip(("programs", *COLUMNS), row)) for row in rows])
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
