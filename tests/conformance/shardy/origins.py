# SPDX-License-Identifier: Apache-2.0
"""why() beside Shardy's debug information, and whether the annotations that why() suggests do what it says.

    python -m tests.conformance.shardy.origins --programs 5000 --seed 7        # origins and edges, value by value
    python -m tests.conformance.shardy.origins --suggestions 500 --seed 7      # of values that nothing splits

Shardy notes per axis of a value which annotation it comes from, and per op which axis went from which operand or result
to which. Prints how many programs, values, axes and edges were compared, the differences by mechanism
(origin_mechanisms.py), and each difference that no mechanism explains. Half of the programs lose the
annotations of their ops, whose origins Shardy does not know; the others are compared by their edges alone where they
have such annotations.
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shardwise import ShardingWarning
from tests.conformance.results import table, write
from tests.conformance.shardy.client import LEVELS, ShardyOracle
from tests.conformance.shardy.oracle_runs import KINDS
from tests.conformance.shardy.origin_runs import compare_origins
from tests.conformance.shardy.random_modules.drawing import random_module
from tests.conformance.shardy.random_modules.texts import ModuleText
from tests.explanation.suggestion_runs import SuggestionTally, try_suggestions

BATCH = 50
LEAST_COMPARED, MOST_EXPLAINED = 0.85, 0.1
SHARES = {"plain": 0.4, "special": 0.25, "instances": 0.1, "regions": 0.25}


@dataclass
class Tally:
    """What a run counted."""

    outcomes: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    mechanisms: Counter[str] = field(default_factory=Counter)  # programs
    unexplained: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


def drawn(seed: str, kind: str, index: int) -> ModuleText:
    program = random_module(random.Random(f"{seed}:{kind}:{index}"), KINDS[kind])
    if index % 2:
        for op in program.ops():
            op.shardings = None
    return program


def level_of(index: int) -> str:
    """Each for two programs in turn, of which the second has no annotated ops."""
    return list(LEVELS)[index // 2 % len(LEVELS)]


def batches(programs: int, seed: str) -> Iterator[tuple[list[ModuleText], list[str]]]:
    for kind, share in SHARES.items():
        count = round(programs * share)
        for first in range(0, count, BATCH):
            indices = range(first, min(first + BATCH, count))
            yield [drawn(seed, kind, i) for i in indices], [level_of(i) for i in indices]


def run(programs: int, seed: str) -> Tally:
    tally, oracle = Tally(), ShardyOracle()
    for texts, passes in batches(programs, seed):
        for result in compare_origins(oracle, texts, passes):
            tally.outcomes[result.outcome] += 1
            tally.counts += result.counts
            tally.mechanisms.update(result.mechanisms.keys())
            if result.outcome in ("differs", "resharded"):
                tally.unexplained.append(result.report())
            elif result.outcome == "invalid":
                tally.refusals.append(result.detail)
    oracle.close()
    return tally


def problems(tally: Tally, programs: int) -> list[str]:
    explained = tally.outcomes["explained"]
    checks = {
        f"{tally.outcomes['differs']} programs differ without a reason": not tally.outcomes["differs"],
        f"{tally.outcomes['resharded']} programs are sharded otherwise": not tally.outcomes["resharded"],
        f"compared only {tally.counts['programs']} programs": tally.counts["programs"] >= LEAST_COMPARED * programs,
        f"{explained} programs explained, above {MOST_EXPLAINED:.0%}": explained <= MOST_EXPLAINED * programs,
    }
    return [text for text, met in checks.items() if not met]


def run_suggestions(programs: int, seed: str) -> SuggestionTally:
    tally = SuggestionTally()
    for texts, _ in batches(programs, seed):
        for text in texts:
            try_suggestions(text.text(), tally)
    return tally


def report_suggestions(tally: SuggestionTally, seconds: float) -> list[str]:
    rows = [
        ["programs", tally.programs],
        ["with a value left replicated", tally.programs_with],
        ["suggestions tried", tally.tried],
        ["that split the value", tally.split],
        ["where an annotation was changed", tally.changed],
        *([f"without a suggestion: {reason}", count] for reason, count in sorted(tally.reasons.items())),
    ]
    table(f"suggestions, {seconds:.0f} s", ["what", "count"], rows)
    for text in tally.failed[:5]:
        print("NOT SPLIT", text, sep="\n")
    return [f"{len(tally.failed)} suggestions do not split the value"] if tally.failed else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=5000, help="compared with Shardy; 0: none")
    parser.add_argument("--suggestions", type=int, default=500, help="programs whose suggestions are tried; 0: none")
    parser.add_argument("--seed", default="0")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ShardingWarning)  # random groups may disagree
    found: list[str] = []
    rows: dict[str, Any] = {"seed": args.seed}
    if args.programs:
        start = time.perf_counter()
        tally = run(args.programs, args.seed)
        seconds = time.perf_counter() - start
        title = f"origins: {args.programs} programs in {seconds:.0f} s"
        table(title, ["outcome", "programs"], tally.outcomes.most_common())
        table("compared", ["what", "count"], tally.counts.most_common())
        table("differences by mechanism", ["mechanism", "programs"], tally.mechanisms.most_common())
        for text in tally.unexplained:
            print("UNEXPLAINED", text, sep="\n")
        for text in tally.refusals[:3]:
            print("REFUSED", text, sep="\n")
        found += problems(tally, args.programs)
        rows |= {name: dict(value) for name, value in vars(tally).items() if isinstance(value, Counter)}
        rows["unexplained"] = tally.unexplained
    if args.suggestions:
        start = time.perf_counter()
        suggested = run_suggestions(args.suggestions, args.seed)
        found += report_suggestions(suggested, time.perf_counter() - start)
        rows["suggestions"] = vars(suggested)
    write("origins", rows)
    for problem in found:
        print("NOT MET:", problem)
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
