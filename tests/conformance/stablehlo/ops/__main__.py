# SPDX-License-Identifier: Apache-2.0
"""Random instances of every op and dtype against XLA:CPU, each also on a random mesh.

    python -m tests.conformance.stablehlo.ops --instances 20000
    python -m tests.conformance.stablehlo.ops --instances 500 --op stablehlo.gather
    python -m tests.conformance.stablehlo.ops --show stablehlo.gather:17
    python -m tests.conformance.stablehlo.ops --keep stablehlo.gather:17

An instance is one op with random attributes, shapes and numbers: corners of the dtype, indices out of bounds, dims of
size 0 and 1. Integers, bools and moved elements must equal XLA's bit for bit. Floats may differ by the units in the
last place that the tables of the ops list. Sums are compared with XLA's sums in float64, rounded once. Every other
difference must have its reason in mechanisms.py. Each instance also runs on a random mesh with random shardings, in
both executor modes, with poisoned padding.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.conformance.results import table, write
from tests.conformance.stablehlo.ops.check import Outcome, check
from tests.conformance.stablehlo.ops.drawing import TABLE, drawn
from tests.conformance.stablehlo.ops.kept import keep
from tests.conformance.stablehlo.ops.partitioned import partitioned_text
from tests.conformance.stablehlo.ops.xla import Xla

CHUNK = 1200


def show(name: str) -> None:
    op, _, seed = name.rpartition(":")
    instance = drawn(op, int(seed))
    print(partitioned_text(instance))
    for i, x in enumerate(instance.arguments):
        print(f"%a{i} = {x.tolist()}")


def report(outcomes: list[Outcome], seconds: float) -> None:
    ops: dict[str, Counter[str]] = {}
    mechanisms: Counter[str] = Counter()
    for outcome in outcomes:
        row = ops.setdefault(outcome.instance.op, Counter())
        row["cases"] += 1
        row["equal"] += not outcome.failures and not outcome.mechanisms
        row["explained"] += not outcome.failures and bool(outcome.mechanisms)
        row["failed"] += bool(outcome.failures)
        mechanisms.update(outcome.mechanisms)
    columns = ("cases", "equal", "explained", "failed")
    table("ops", ("op", *columns), [(op, *(row[c] for c in columns)) for op, row in sorted(ops.items())])
    table("mechanisms", ("mechanism", "cases"), mechanisms.most_common())
    failed = sum(bool(o.failures) for o in outcomes)
    print(f"\n{len(outcomes)} instances of {len(ops)} ops in {seconds:.0f} s: {failed} failed")
    rows = [{"op": op, **{c: row[c] for c in columns}} for op, row in sorted(ops.items())]
    write("stablehlo_ops", {"ops": rows, "mechanisms": dict(mechanisms), "seconds": seconds})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.stablehlo.ops", description=__doc__)
    parser.add_argument("--instances", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0, help="the first seed of each op")
    parser.add_argument("--op", action="append", help="only these ops")
    parser.add_argument("--show", help="print one instance, OP:SEED")
    parser.add_argument("--keep", help="write one instance, OP:SEED, to the folder of instances that found errors")
    options = parser.parse_args()
    if options.keep:
        op, _, seed = options.keep.rpartition(":")
        print(keep(drawn(op, int(seed))))
        return
    if options.show:
        show(options.show)
        return
    names = sorted(options.op or TABLE)
    wanted = [drawn(names[i % len(names)], options.start + i // len(names)) for i in range(options.instances)]
    began, xla = time.monotonic(), Xla()
    outcomes: list[Outcome] = []
    for first in range(0, len(wanted), CHUNK):
        for outcome in check(wanted[first : first + CHUNK], xla):
            outcomes.append(outcome)
            for failure in outcome.failures:
                print(f"{outcome.instance.name} ({outcome.instance.dtype}): {failure}\n", flush=True)
        print(f"{len(outcomes)} of {len(wanted)}", file=sys.stderr, flush=True)
    xla.close()
    report(outcomes, time.monotonic() - began)
    if any(o.failures for o in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
