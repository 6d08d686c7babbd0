# SPDX-License-Identifier: Apache-2.0
"""why() says of random modules what Shardy's debug information says: which annotation, along which ops.

`python -m tests.conformance.shardy.origins` does the same at length.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardwise import _core
from shardwise.reports.explanations import rows_of
from tests.conformance.shardy.client import LEVELS, ShardyOracle
from tests.conformance.shardy.origin_mechanisms import IN_PIECES, MECHANISMS, OriginMechanism
from tests.conformance.shardy.origin_runs import OriginRun, compare_origins, compare_runs
from tests.conformance.shardy.random_modules.drawing import random_module
from tests.conformance.shardy.random_modules.region_steps import REGION_STEPS
from tests.conformance.shardy.random_modules.special_steps import SPECIAL_STEPS
from tests.conformance.shardy.random_modules.steps import STEPS
from tests.conformance.shardy.random_modules.texts import ModuleText
from tests.explanation.suggestion_runs import SuggestionTally, try_suggestions

PROGRAMS, BATCH = 200, 50
KINDS = {"plain": STEPS, "regions": STEPS + SPECIAL_STEPS + REGION_STEPS}
FILES = sorted((Path(__file__).parent / "texts" / "origins").glob("*.mlir"))
DEBUG = "{debug-sharding-origins=true debug-propagation-edge-sharding=true}"


@pytest.fixture(scope="module")
def worker() -> Iterator[ShardyOracle]:
    """One of this file's own, which the random programs may end."""
    oracle = ShardyOracle()
    yield oracle
    oracle.close()


def drawn(kind: str, index: int) -> ModuleText:
    program = random_module(random.Random(f"origins:{kind}:{index}"), KINDS[kind])
    if index % 2:  # Shardy does not know where the axes of annotated ops come from
        for op in program.ops():
            op.shardings = None
    return program


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", range(0, PROGRAMS // len(KINDS), BATCH))
def test_origins_and_edges_are_those_of_shardy(worker: ShardyOracle, kind: str, first: int) -> None:
    levels = list(LEVELS)
    programs = [drawn(kind, i) for i in range(first, first + BATCH)]
    outcomes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for run in compare_origins(worker, programs, [levels[i // 2 % len(levels)] for i in range(BATCH)]):
        outcomes[run.outcome] += 1
        counts += run.counts
        assert run.outcome not in ("differs", "resharded", "invalid"), run.report()
    assert outcomes["equal"] >= 0.7 * BATCH
    assert counts["axes"] > 2 * BATCH
    assert counts["edges"] > 2 * BATCH


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_programs_that_once_differed_are_told_as_by_shardy(shardy: ShardyOracle, file: Path) -> None:
    text = file.read_text()
    found = re.match(r"// passes: (.*)\n", text)
    assert found is not None
    run = OriginRun(text, found[1])
    compare_runs(shardy, [run])
    assert run.outcome in ("equal", "explained"), run.report()
    assert set(run.mechanisms) <= {IN_PIECES}
    assert run.counts["axes"] > 0
    assert run.counts["edges"] > 0


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_mechanisms_show_what_shardy_notes(shardy: ShardyOracle, mechanism: OriginMechanism) -> None:
    assert len(mechanism.text.strip().splitlines()) <= 10
    assert mechanism.shardy in shardy.after(mechanism.text, "sdy-user-priority-propagate" + DEBUG)
    ours = _core.passes.propagate_program(_core.ir.parse(mechanism.text), names=["propagate-user-priority"])
    origins = [a["origin"] for row in rows_of(ours.explain_all()) for a in row["axes"]]
    axes = [a["axis"] for row in rows_of(ours.explain_all()) for a in row["axes"]]
    assert mechanism.ours in (*origins, *axes)
    assert not any(mechanism.shardy in text for text in (*origins, *axes))


def test_suggested_annotations_split_the_value() -> None:
    tally = SuggestionTally()
    for index in range(40):
        try_suggestions(drawn("regions" if index % 4 == 0 else "plain", index).text(), tally)
    assert not tally.failed, tally.failed[0]
    assert tally.split > 100
    assert tally.changed > 5
    assert set(tally.reasons) <= {"a scalar", "no dim to split", "all axes are taken"}
    assert tally.reasons["all axes are taken"] < tally.tried / 4
