# SPDX-License-Identifier: Apache-2.0
"""Mutated valid texts for the parser and the readers of JSON: no crash, hang or unbounded memory.

    python -m tests.conformance.fuzz --minutes 10 --seed 7
    python -m tests.conformance.fuzz --texts 4000 --seed 7     # the same texts each time

Starts from golden texts, random modules, what JAX lowers, and the texts of corpus/; each mutation goes to a process
with a limit of memory and time, and ends as a ParseError with line and column or as a program that verifies and reads
back. Small programs are also compiled and run: loops, branches, calls, complex constants, sorts, transforms and custom
calls of LAPACK. What ends otherwise is made smaller, printed, and kept in the corpus with --keep.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from pathlib import Path

from shardwise import _core
from tests.conformance.fuzz.mutations import TOKEN, mutated
from tests.conformance.fuzz.op_texts import OP_TEXTS
from tests.conformance.fuzz.reader import Reader
from tests.conformance.fuzz.region_texts import REGION_TEXTS, varied
from tests.conformance.results import table, write
from tests.conformance.shardy.client import OracleError, ShardyOracle
from tests.conformance.shardy.random_modules.drawing import random_module
from tests.conformance.shardy.random_modules.region_steps import NAMED_STEPS, REGION_STEPS
from tests.conformance.shardy.random_modules.special_steps import SPECIAL_STEPS
from tests.conformance.shardy.random_modules.steps import STEPS
from tests.conformance.stablehlo.test_text import JAX_PROGRAMS
from tests.support.paths import GOLDEN

CORPUS = Path(__file__).with_name("corpus")
DIGITS = re.compile(r"\d+")
MOSTLY = 0.8  # of the programs to run keep their form
GOOD = ("read", "refused", "ran", "stopped")
Text = tuple[str, str]  # kind, text


def programs(rng: random.Random) -> list[Text]:
    texts = [path.read_text() for path in sorted(GOLDEN.rglob("*.mlir"))]
    texts += [piece for text in texts for piece in text.split("// ----")]
    steps = STEPS + SPECIAL_STEPS + REGION_STEPS + NAMED_STEPS
    texts += [random_module(random.Random(rng.random()), steps).text() for _ in range(150)]
    oracle = ShardyOracle()
    for name in JAX_PROGRAMS:
        for locations in (False, True):
            try:
                texts.append(oracle.lower(name, locations))
            except OracleError as error:
                print(f"{name}: JAX does not lower it here: {error}")
    oracle.close()
    return [("program", text) for text in texts if readable(text)]


def readable(text: str) -> bool:
    try:
        return bool(_core.ir.parse(text))
    except _core.error.ParseError:
        return False


def structured(rng: random.Random) -> list[Text]:
    """JSON of modules, meshes and shardings."""
    texts: list[Text] = []
    for _ in range(60):
        module = _core.ir.parse(random_module(random.Random(rng.random()), STEPS).text())
        texts.append(("module", module.to_json()))
        if module.mesh is not None:
            texts.append(("mesh", module.mesh.to_json()))
        texts += [("sharding", held.to_json()) for held in module.argument_shardings if held is not None]
    return texts


def corpus() -> list[Text]:
    return [(path.suffix[1:], path.read_text()) for path in sorted(CORPUS.iterdir())] if CORPUS.exists() else []


def smallest(reader: Reader, kind: str, text: str, outcome: str) -> str:
    """Tokens dropped while the outcome stays, in ever smaller runs."""
    size = max(1, len(list(TOKEN.finditer(text))) // 2)
    while size:
        start, pieces = 0, [m.span() for m in TOKEN.finditer(text)]
        while start < len(pieces):
            end = pieces[min(start + size, len(pieces)) - 1][1]
            candidate = text[: pieces[start][0]] + text[end:]
            if reader.read(kind, candidate)["outcome"] == outcome:
                text, pieces = candidate, [m.span() for m in TOKEN.finditer(candidate)]
            else:
                start += size
        size //= 2
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--texts", type=int, default=0, help="so many texts, however long they take")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--keep", action="store_true", help="write what ended badly to the corpus")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    groups = [programs(rng), structured(rng), corpus(), [("run", text) for text in REGION_TEXTS + OP_TEXTS]]
    groups = [group for group in groups if group]
    counts: Counter[tuple[str, str]] = Counter()
    found: dict[str, tuple[str, str, str]] = {}
    began = time.monotonic()
    tried = 0
    with Reader() as reader:
        while tried < args.texts if args.texts else time.monotonic() < began + 60 * args.minutes:
            tried += 1
            kind, text = rng.choice(rng.choice(groups))
            change = varied if kind == "run" and rng.random() < MOSTLY else mutated
            changed = change(text, rng, most=rng.choice((1, 1, 2, 5)))
            answer = reader.read(kind, changed)
            counts[kind, answer["outcome"]] += 1
            why = DIGITS.sub("N", f"{kind} {answer['outcome']}: {answer.get('why', '')}")[:70]
            if answer["outcome"] not in GOOD and why not in found:
                small = smallest(reader, kind, changed, answer["outcome"])
                found[why] = (kind, small, str(reader.read(kind, small).get("why", "")))
    minutes = (time.monotonic() - began) / 60
    table(
        f"fuzz: {tried} texts in {minutes:.2g} minutes",
        ["reader", "outcome", "texts"],
        [[kind, outcome, count] for (kind, outcome), count in sorted(counts.items())],
    )
    for index, (why, (kind, small, reason)) in enumerate(found.items()):
        print("FOUND", why, reason[:500], small, sep="\n")
        if args.keep:
            CORPUS.mkdir(exist_ok=True)
            (CORPUS / f"found_{args.seed}_{index}.{kind}").write_text(small)
    rows = [{"reader": kind, "outcome": outcome, "texts": count} for (kind, outcome), count in sorted(counts.items())]
    write("fuzz", {"minutes": minutes, "seed": args.seed, "outcomes": rows, "found": list(found)})
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
