# SPDX-License-Identifier: Apache-2.0
"""A sample of ``python -m tests.conformance.spellings``, with other programs in each commit."""

from __future__ import annotations

import random

import shardwise as sw
from tests.conformance.spellings.__main__ import check
from tests.conformance.spellings.programs import draw
from tests.conformance.spellings.spelling import spelled
from tests.support.run_seed import run_seed

SAMPLE = 200


def test_a_spelling_has_the_shardings_and_the_bytes_of_the_plain_program() -> None:
    outcomes = [check(run_seed(), index) for index in range(SAMPLE)]
    wrong = [f"program {index}:\n{found.wrong}" for index, found in enumerate(outcomes) if found.wrong]
    assert not wrong, f"{len(wrong)} are wrong:\n" + "\n".join(wrong[:2])
    assert sum(found.bytes > 0 for found in outcomes) > SAMPLE / 5
    ops = {node.op for found in outcomes for node in found.program.nodes}
    assert {"einsum", "lookup", "reduce", "tanh", "add", "multiply", "subtract"} <= ops


def test_simplify_changes_nothing_in_what_it_has_simplified() -> None:
    changed = 0
    for index in range(SAMPLE):
        rng = random.Random(f"{run_seed()}:{index}")
        written = sw.parse(spelled(draw(rng, agrees=index % 2 == 0), rng).text)
        once = written.apply("simplify")
        changed += str(once) != str(written)
        assert str(sw.parse(str(once)).apply("simplify")) == str(once)
    assert changed > SAMPLE / 2
