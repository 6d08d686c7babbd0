# SPDX-License-Identifier: Apache-2.0
"""Sharding rules of random instances of every op, compared with those that Shardy writes into the same text.

    python -m tests.conformance.shardy.rules --instances 200 --seed 7

Prints a row per op: how many rules are equal up to the names of their factors, and how many differ by a mechanism
(mechanisms.py); the exit status is 1 if one differs without. Once with Shardy's rules for
conservative propagation, too.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import asdict

from tests.conformance.results import table, write
from tests.conformance.shardy.client import ShardyOracle
from tests.conformance.shardy.rule_instances.every_op import Row, compare


def report(title: str, rows: list[Row]) -> None:
    """The table, the mechanisms, and what nothing explains."""
    cells = [(r.op, r.instances, r.equal, sum(r.by_mechanism.values()), len(r.wrong), r.died) for r in rows]
    cells.append(("all", *(sum(int(cell[i]) for cell in cells) for i in range(1, 6))))
    table(title, ["op", "instances", "equal", "by mechanism", "wrong", "Shardy died"], cells)
    mechanisms: Counter[str] = Counter()
    for row in rows:
        mechanisms.update(row.by_mechanism)
    table("mechanisms", ["what", "instances"], mechanisms.most_common())
    for row in rows:
        print(*row.wrong, sep="\n", end="\n" if row.wrong else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=200, help="of each op")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    oracle = ShardyOracle()
    results = {}
    for name, conservative in (("rules", False), ("conservative rules", True)):
        results[name] = list(compare(oracle, args.instances, args.seed, conservative))
        report(name, results[name])
    oracle.close()
    write("rules", {name: [asdict(row) for row in rows] for name, rows in results.items()})
    raise SystemExit(1 if any(row.wrong or row.died for rows in results.values() for row in rows) else 0)


if __name__ == "__main__":
    main()
