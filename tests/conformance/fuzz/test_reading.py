# SPDX-License-Identifier: Apache-2.0
"""What readers of texts and JSON must not do, whatever they are given: crash, hang, take all memory.

`python -m tests.conformance.fuzz` does the same at length; what it found is in corpus/.
"""

from __future__ import annotations

import pathlib
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from shardwise import _core
from shardwise.cli import main
from tests.conformance.fuzz.mutations import mutated
from tests.conformance.fuzz.op_texts import OP_TEXTS
from tests.conformance.fuzz.reader import Reader
from tests.conformance.fuzz.region_texts import COUNTED, REGION_TEXTS, varied
from tests.conformance.shardy.random_modules.drawing import random_module
from tests.conformance.shardy.random_modules.region_steps import REGION_STEPS
from tests.conformance.shardy.random_modules.special_steps import SPECIAL_STEPS
from tests.conformance.shardy.random_modules.steps import STEPS

CORPUS = sorted(pathlib.Path(__file__).with_name("corpus").iterdir())
GOOD = ("read", "refused")
GOOD_RUNS = (*GOOD, "ran", "stopped")
TEXTS = 600


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader() as opened:
        yield opened


def corpus(suffix: str = "") -> list[Any]:
    return [pytest.param(path, id=path.name) for path in CORPUS if path.name.endswith(suffix)]


@pytest.mark.parametrize("path", corpus())
def test_what_once_went_wrong_is_read_or_refused(reader: Reader, path: pathlib.Path) -> None:
    answer = reader.read(path.suffix[1:], path.read_text())
    assert answer["outcome"] in GOOD, answer


@pytest.mark.parametrize("path", corpus(".program"))
def test_the_command_line_tells_where_it_is_wrong(path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["opt", str(path), "--passes=propagate"])
    printed, said = capsys.readouterr()
    if code == 0:
        assert printed
        assert all(re.match(rf"{re.escape(str(path))}:\d+:\d+: warning: ", line) for line in said.splitlines()), said
    else:
        assert code == 1
        # A text without functions has no place that an error could name.
        place = r":\d+:\d+" if "func.func" in path.read_text() or "a module without functions" not in said else ""
        assert re.match(rf"{re.escape(str(path))}{place}: error: ", said), said


def test_mutated_texts_are_read_or_refused(reader: Reader) -> None:
    rng = random.Random("mutations")
    steps = STEPS + SPECIAL_STEPS + REGION_STEPS
    module = _core.ir.parse(random_module(rng, STEPS).text())
    assert module.mesh is not None
    texts = [("program", random_module(rng, steps).text()) for _ in range(20)]
    texts += [("module", module.to_json()), ("mesh", module.mesh.to_json())]
    counts: Counter[str] = Counter()
    for _ in range(TEXTS):
        kind, text = rng.choice(texts)
        changed = mutated(text, rng)
        answer = reader.read(kind, changed)
        assert answer["outcome"] in GOOD, f"{answer}\n{changed}"
        counts[answer["outcome"]] += 1
    assert min(counts[outcome] for outcome in GOOD) > TEXTS // 50


def test_mutated_loops_branches_and_calls_run_or_are_refused(reader: Reader) -> None:
    """Also a loop that never ends is stopped, and no mutation crashes, hangs or takes all memory."""
    rng = random.Random("regions")
    counts: Counter[str] = Counter()
    for text in REGION_TEXTS:
        assert reader.read("run", text)["outcome"] == "ran"
    for _ in range(TEXTS // 3):
        changed = rng.choice((mutated, varied, varied, varied))(rng.choice(REGION_TEXTS), rng)
        answer = reader.read("run", changed)
        assert answer["outcome"] in GOOD_RUNS, f"{answer}\n{changed}"
        counts[answer["outcome"]] += 1
    assert min(counts["ran"], counts["refused"]) > TEXTS // 30
    forever = COUNTED.replace("%j = stablehlo.add %i, %one", "%j = stablehlo.subtract %i, %i")
    assert reader.read("run", forever)["outcome"] == "stopped"


def test_mutated_ops_of_libraries_compile_and_run_or_are_refused(reader: Reader) -> None:
    """Complex constants, sorts, transforms and custom calls of LAPACK."""
    rng = random.Random("libraries")
    counts: Counter[str] = Counter()
    assert reader.read("run", "")["outcome"] == "refused"
    for text in OP_TEXTS:
        assert reader.read("run", text)["outcome"] == "ran"
    for _ in range(TEXTS // 3):
        changed = rng.choice((mutated, varied, varied, varied))(rng.choice(OP_TEXTS), rng)
        answer = reader.read("run", changed)
        assert answer["outcome"] in GOOD_RUNS, f"{answer}\n{changed}"
        counts[answer["outcome"]] += 1
    assert min(counts["ran"], counts["refused"]) > TEXTS // 30


def test_the_reader_tells_what_goes_wrong(reader: Reader) -> None:
    """What goes wrong is no silent success."""
    assert reader.read("program", "module {")["outcome"] == "refused"
    assert reader.read("unknown kind", "")["outcome"] == "wrong"
