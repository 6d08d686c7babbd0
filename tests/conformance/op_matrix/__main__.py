# SPDX-License-Identifier: Apache-2.0
"""Every op of the op table with each dim of each operand and result split in every way.

    python -m tests.conformance.op_matrix

A dim has even shards, a smaller last shard, or empty shards. It is split by one axis, by two, by a sub-axis, or over
devices in another order. Results must be those of NumPy, with the bits of the unpartitioned run where the op promises
them, in both executor modes and with poisoned padding. The bytes that each device receives are those of the ledger;
docs/collectives.md lists the collectives. The tool exits with 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import numpy as np

from tests.conformance.results import table, write
from tests.op.cases import CASES
from tests.support.op_matrix import CELLS, failures
from tests.support.run_seed import add_share, share_of


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.op_matrix",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="ops whose name contains this text")
    add_share(parser)
    options = parser.parse_args()
    wrong = Counter[tuple[str, str]]()
    cases = share_of([case for case in CASES if options.only in case.id], options)
    for case in cases:
        for key, scenario in CELLS.items():
            with np.errstate(all="ignore"):
                found = failures(case, case.dtypes[0], scenario, None)
            wrong[key] += len(found)
            for text in found[:2]:
                print(text, flush=True)
    rows = [(evenness, way, len(cases), wrong[evenness, way]) for evenness, way in CELLS]
    table("op matrix", ("shards", "split by", "rows of the op table", "wrong"), rows)
    if len(cases) == len(CASES):
        write("op_matrix", [dict(zip(("shards", "split by", "rows", "wrong"), row)) for row in rows])
    return 1 if wrong.total() else 0


if __name__ == "__main__":
    sys.exit(main())
