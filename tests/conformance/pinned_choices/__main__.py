# SPDX-License-Identifier: Apache-2.0
"""With pinned choices, a program has the same local ops on meshes with larger axes.

    python -m tests.conformance.pinned_choices

Each program of the op table and of the communication benchmark is compiled on a small mesh. Its choices are pinned on
meshes whose axes are 4 to half a million times as large. The ops of the local programs are compared, and how often each
occurs. Where a dim is sharded evenly on one of the meshes alone, they may differ in what masks, pads and trims it, and
choices can be impossible on the larger mesh: a reshape may split by its rule over 2 devices, and not over 8. Or there
is more to choose than was pinned: a reshard that the smaller mesh does not need. Where devices hold the range that an
op reads on one mesh alone, they differ in the exchange of what devices lack, and a choice without it can be impossible.
The tool exits with 1 if other ops differ, or if other choices are refused.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tests.conformance.pinned_choices.comparing import (
    DIFFERENT,
    EVENNESS,
    IN_PLACE,
    SAME,
    becomes_uneven,
    compare,
    compiled_with,
    has_uneven,
    propagated,
)
from tests.conformance.pinned_choices.programs import Grown, of_ops, of_the_benchmark
from tests.conformance.results import table, write
from tests.support.run_seed import add_share

UNEVEN, OTHERWISE = "impossible for an uneven dim", "propagated otherwise"
REFUSED = "impossible"
COLUMNS = (SAME, EVENNESS, IN_PLACE, UNEVEN, OTHERWISE, REFUSED, DIFFERENT)


def outcomes(programs: Iterable[Grown]) -> Iterator[tuple[Grown, int, str]]:
    """Each program with each of its factors, and one of COLUMNS."""
    for program in programs:
        compiled = compiled_with(*program.at(1))
        for factor in program.factors:
            larger = compiled_with(*program.at(factor), compiled.choices())
            if larger is not None and larger.choices() == compiled.choices():
                yield program, factor, compare(compiled, larger)
            elif becomes_uneven(compiled, factor):
                yield program, factor, UNEVEN
            else:
                yield program, factor, refused(compiled, compiled_with(*program.at(factor)), factor)


def refused(compiled: Any, chosen_anew: Any, factor: int) -> str:
    """Why choices are refused on a mesh, from the program that is chosen there."""
    if propagated(compiled) != propagated(chosen_anew):
        return OTHERWISE
    if compare(compiled, chosen_anew) == IN_PLACE:
        return IN_PLACE
    return UNEVEN if has_uneven(compiled, factor) else REFUSED


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.pinned_choices",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="programs whose name contains this text")
    add_share(parser)
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    found: list[str] = []
    wanted = (p for programs in (of_ops(), of_the_benchmark()) for p in programs if options.only in p.name)
    share = itertools.islice(wanted, options.first % options.every, None, options.every)
    for program, factor, outcome in outcomes(share):
        counts.setdefault(program.group, Counter())[outcome] += 1
        if outcome in (DIFFERENT, REFUSED):
            fault = "other ops" if outcome == DIFFERENT else "choices are refused"
            found.append(f"{program.name}: {fault} on axes {factor} times as large")
    rows = [(group, *(row[column] for column in COLUMNS)) for group, row in sorted(counts.items())]
    total = Counter[str]()
    for row in counts.values():
        total.update(row)
    table("pinned choices", ("programs", *COLUMNS), [*rows, ("total", *(total[column] for column in COLUMNS))])
    print("\n".join(found[:40]))
    if not options.only and options.every == 1:
        write("pinned_choices", [dict(zip(("programs", *COLUMNS), row)) for row in rows])
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
