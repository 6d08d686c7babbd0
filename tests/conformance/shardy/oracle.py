# SPDX-License-Identifier: Apache-2.0
"""Random programs propagated by Shardwise and by Shardy, every value compared.

    python -m tests.conformance.shardy.oracle --programs 20000 --seed 7 --workers 2

Prints how many programs were valid, how often each op and each feature was met, the differences by mechanism
(mechanisms.py), and each difference that no mechanism explains as a small program. Shardy runs in
worker processes; one that dies is counted apart and started again.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from shardwise import ShardingWarning
from tests.conformance.results import table, write
from tests.conformance.shardy.client import ShardyOracle
from tests.conformance.shardy.mechanisms import mechanism_of
from tests.conformance.shardy.oracle_runs import KINDS, Run, compare_programs, passes_of, shrunk
from tests.conformance.shardy.random_modules.drawing import random_module

NUMBER = re.compile(r"\d+")
BATCH = 50
LEAST_HITS, LEAST_VALID, MOST_EXPLAINED, MOST_MECHANISMS = 0.01, 0.95, 0.02, 15
LUCK = 4  # standard deviations by which a count may be below its mean; there are 300 of them in a run
MOST_SHRUNK = 10  # unexplained differences of a worker; what follows is printed as it is


@dataclass
class Tally:
    """What a run counted."""

    outcomes: Counter[str] = field(default_factory=Counter)
    passes: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    mechanisms: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)  # why a text could not be read, by us or of ours -> a program

    def add(self, other: Tally) -> None:
        """Take in another worker's counts."""
        for name in ("outcomes", "passes", "ops", "features", "mechanisms", "refusals"):
            getattr(self, name).update(getattr(other, name))
        self.unexplained += other.unexplained
        self.unread = {**other.unread, **self.unread}


def run_batch(oracle: ShardyOracle, seed: str, indices: range, kind: str, shrink: bool) -> Tally:
    tally = Tally()
    programs = [random_module(random.Random(f"{seed}:{kind}:{i}"), KINDS[kind]) for i in indices]
    for run in compare_programs(oracle, programs, [passes_of(i, kind) for i in indices]):
        tally.outcomes[run.outcome] += 1
        tally.passes[run.passes] += 1
        if run.outcome in ("equal", "differs"):
            tally.ops.update({op.name for op in run.program.ops()})
            tally.features.update(run.program.features.keys())
        if run.outcome == "invalid":
            tally.refusals[run.detail.splitlines()[-1][:100]] += 1
        elif run.outcome in ("unread", "misprinted"):
            message = NUMBER.sub("N", run.detail.partition(": ")[2].partition(", got")[0])
            if message not in tally.unread:
                tally.unread[message] = shrunk(oracle, run).report() if shrink else run.report()
        elif run.outcome == "differs":
            explain(oracle, run, tally, shrink)
    return tally


def explain(oracle: ShardyOracle, run: Run, tally: Tally, shrink: bool) -> None:
    small = shrunk(oracle, run) if shrink and len(tally.unexplained) < MOST_SHRUNK else run
    mechanism = mechanism_of(small.program)
    if mechanism is None:
        tally.unexplained.append(small.report())
    else:
        tally.mechanisms[mechanism.name] += 1


def work(seed: str, kind: str, chunks: Iterator[range], shrink: bool) -> Tally:
    """One worker's share; `chunks` is shared by all of them."""
    tally, oracle = Tally(), ShardyOracle()
    for indices in chunks:
        tally.add(run_batch(oracle, seed, indices, kind, shrink and len(tally.unexplained) < MOST_SHRUNK))
    oracle.close()
    return tally


class Chunks:
    """Ranges of program numbers, handed out to whoever asks next."""

    def __init__(self, count: int) -> None:
        self._ranges = [range(a, min(a + BATCH, count)) for a in reversed(range(0, count, BATCH))]

    def __iter__(self) -> Chunks:
        return self

    def __next__(self) -> range:
        if not self._ranges:
            raise StopIteration
        return self._ranges.pop()


def run(programs: int, seed: str, workers: int, kinds: dict[str, float], shrink: bool = True) -> Tally:
    total = Tally()
    for kind, share in kinds.items():
        chunks = Chunks(int(programs * share))
        with ThreadPoolExecutor(workers) as pool:
            for tally in pool.map(lambda _: work(seed, kind, chunks, shrink), range(workers)):  # noqa: B023
                total.add(tally)
    return total


def problems(tally: Tally, programs: int) -> list[str]:
    valid = tally.outcomes["equal"] + tally.outcomes["differs"]
    valid += tally.outcomes["unread"] + tally.outcomes["misprinted"]
    explained = sum(tally.mechanisms.values())
    mean = LEAST_HITS * programs
    enough = math.floor(mean - LUCK * math.sqrt(mean))
    rare = [f"{name} ({n})" for counts in (tally.ops, tally.features) for name, n in counts.items() if n < enough]
    checks = {
        f"validity {valid / programs:.3f} below {LEAST_VALID}": valid >= LEAST_VALID * programs,
        f"met less than {enough} times: {', '.join(rare)}": not rare,
        f"{len(tally.unexplained)} unexplained differences": not tally.unexplained,
        f"{tally.outcomes['unread']} programs that Shardwise does not read": not tally.outcomes["unread"],
        f"{tally.outcomes['misprinted']} that it prints wrongly": not tally.outcomes["misprinted"],
        f"{explained} differences by mechanisms, above 2 %": explained <= MOST_EXPLAINED * programs,
        f"{len(tally.mechanisms)} mechanisms": len(tally.mechanisms) <= MOST_MECHANISMS,
    }
    return [text for text, met in checks.items() if not met]


def report(tally: Tally, programs: int, seconds: float) -> None:
    for title, counts in (
        (f"oracle: {programs} programs in {seconds:.0f} s", tally.outcomes),
        ("passes", tally.passes),
        ("differences by mechanism", tally.mechanisms),
        ("refused by Shardy", tally.refusals),
        ("features", tally.features),
        ("programs with the op", tally.ops),
    ):
        table(title, ["what", "programs"], counts.most_common())
    for text in tally.unexplained:
        print("UNEXPLAINED", text, sep="\n")
    for message, text in tally.unread.items():
        print("NOT READ", message, text, sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--no-shrink", action="store_true", help="print differing programs as they are")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ShardingWarning)  # random groups may disagree
    shares = {"plain": 1.0, "special": 2.0, "instances": 4.0, "regions": 3.0}
    whole = sum(shares[kind] for kind in args.kinds)
    kinds = {kind: shares[kind] / whole for kind in args.kinds}
    start = time.perf_counter()
    tally = run(args.programs, args.seed, args.workers, kinds, not args.no_shrink)
    seconds = time.perf_counter() - start
    report(tally, args.programs, seconds)
    rows: dict[str, Any] = {name: dict(value) for name, value in vars(tally).items() if isinstance(value, Counter)}
    write("oracle", {"programs": args.programs, "seed": args.seed, "seconds": seconds, **rows,
                     "unexplained": tally.unexplained})  # fmt: skip
    found = problems(tally, args.programs)
    for problem in found:
        print("NOT MET:", problem)
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
