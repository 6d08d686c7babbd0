# SPDX-License-Identifier: Apache-2.0
"""Questions about many values: their paths share their beginnings, in the extension, in Python and in JSON."""

from __future__ import annotations

import json
import pickle
import random
import tracemalloc

import pytest

import shardwise as sw
from shardwise import _core
from shardwise.reports.explanations import Path, PathStep, rows_of
from tests.conformance.shardy.random_modules.drawing import random_module
from tests.conformance.shardy.random_modules.region_steps import REGION_STEPS
from tests.conformance.shardy.random_modules.special_steps import SPECIAL_STEPS
from tests.conformance.shardy.random_modules.steps import STEPS
from tests.explanation.suggestion_runs import named
from tests.explanation.test_why import chain


def test_the_values_of_a_question_share_their_paths() -> None:
    """The paths of 4,000 ops in a row have 8,002,000 steps together, of which 4,000 differ."""
    length = 4_000
    module = sw.parse(chain(length))
    tracemalloc.start()
    asked = module.why("tanh")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    paths = [axis.path for value in asked.values for axis in value.axes]
    assert [len(path) for path in paths] == list(range(1, length + 1))
    assert [id(step) for step in paths[-1]] == [id(path[-1]) for path in paths]
    assert most < 30_000_000
    assert len(asked.to_json()) < 2_500 * length
    rows = asked.to_dict()["values"]
    assert "left_out" not in rows[15]["axes"][0]
    assert [step["value"] for step in rows[-1]["axes"][0]["path"]] == [
        f"%{i}" for i in (0, 1, 2, 3, *range(length - 4, length))
    ]
    assert rows[-1]["axes"][0]["left_out"] == length - 8


def test_the_json_of_a_question_shares_its_paths() -> None:
    program = _core.passes.propagate_program(named(chain(50)))
    data = json.loads(program.explain("tanh"))
    assert [step["before"] for step in data["paths"]] == list(range(-1, 49))
    assert [step["value"] for step in data["paths"]] == [f"%{i}" for i in range(50)]
    assert [row["axes"][0]["path"] for row in data["values"]] == list(range(50))


def test_a_path_is_read_as_a_tuple_is() -> None:
    steps = tuple(PathStep(f"op{i}", "", "operand 0", "result 0") for i in range(20))
    path = Path.of(steps)
    assert path == steps
    assert steps == path
    assert hash(path) == hash(steps)
    assert repr(path) == repr(steps)
    assert list(path) == list(steps)
    assert list(reversed(path)) == list(reversed(steps))
    for first in (None, *range(-22, 22)):
        for last in (None, *range(-22, 22)):
            assert path[first:last] == steps[first:last]
            assert path[first:last:-3] == steps[first:last:-3]
    assert [path[i] for i in range(-20, 20)] == [steps[i] for i in range(-20, 20)]
    with pytest.raises(IndexError):
        path[20]
    assert pickle.loads(pickle.dumps(path)) == path
    assert path != Path.of(steps[:-1])
    assert path != Path.of(steps[::-1])


@pytest.mark.parametrize("seed", range(40))
def test_a_value_is_explained_alone_as_among_others(seed: int) -> None:
    program = random_module(random.Random(f"alone:{seed}"), STEPS + SPECIAL_STEPS + REGION_STEPS)
    propagated = _core.passes.propagate_program(_core.ir.parse(program.text()))
    rows = rows_of(propagated.explain_all())
    assert rows
    for row in rows:
        assert rows_of(propagated.explain_value(row["number"])) == [row], program.text()
