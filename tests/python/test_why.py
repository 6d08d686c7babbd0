# SPDX-License-Identifier: Apache-2.0
"""why(): through regions, groups and manual computations, and the annotation that it proposes where nothing splits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from random_programs import Program, programs
from strategies import meshes
from test_data_flow import GROUPS, MANUAL, WHILE

from shardwise import _core


def reasons(text: str) -> dict[str, list[tuple[Any, ...]]]:
    """For every value of the program by its number: axis, dim, origin, and the ops of the path."""
    propagated = _core.passes.propagate_program(_core.ir.parse(text))
    found = {}
    for number in range(1, 40):
        try:
            why = propagated.explain_value(number)
        except IndexError:
            break
        found[number] = [
            (a["axis"], a["dim"], a["origin"], [(s["name"], s["from"], s["to"]) for s in a["path"]])
            for a in why["axes"]
        ]
    return found


def test_an_axis_is_followed_through_a_while() -> None:
    (from_x, from_w) = next(axes for axes in reasons(WHILE).values() if len(axes) == 2 and axes[0][2] == "argument 0")
    assert from_x == ('"a"', 0, "argument 0", [])
    assert from_w[:3] == ('"b"', 1, "argument 1")
    assert from_w[3] == [
        ("stablehlo.dot_general", "operand 1 dim 1", "result 0 dim 1"),
        ("stablehlo.while", "what its region returns, dim 1", "operand 1 dim 1"),
    ]


def test_an_axis_is_followed_out_of_a_manual_computation() -> None:
    paths = [path for axes in reasons(MANUAL).values() for (*_, path) in axes]
    into = ("sdy.manual_computation", "argument 1 of its region, dim 0", "operand 1 dim 0")
    assert any(into in path for path in paths)


def test_members_of_a_group_name_the_member_that_was_annotated() -> None:
    axes = reasons(GROUPS)
    synced = [a for found in axes.values() for a in found if any(s[0] == "sdy.sharding_group" for s in a[3])]
    assert synced
    assert {a[2] for a in synced} == {"argument 0"}


@settings(max_examples=60)
@given(meshes().flatmap(programs))
def test_the_suggested_annotation_splits_the_value(program: Program) -> None:
    module = program.record()
    propagated = _core.passes.propagate_program(module)
    for number in range(1, 30):
        try:
            why = propagated.explain_value(number)
        except IndexError:
            break
        if not why["suggestion"]:
            continue
        try:
            after = _core.passes.propagate_annotated(module, number, why["suggestion"])
        except IndexError:  # a copy that propagation made of a constant
            break
        assert after.explain_value(number)["axes"], (why["type"], why["suggestion"], module.text())


def test_annotating_a_value_that_is_not_there_is_refused() -> None:
    with pytest.raises(IndexError, match="a program has no such value"):
        _core.passes.propagate_annotated(_core.ir.parse(WHILE), 4000, '[{"a"}, {}]')
