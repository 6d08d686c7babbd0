# SPDX-License-Identifier: Apache-2.0
"""The annotation that why() suggests where nothing splits a value."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import shardwise as sw
from shardwise import _core
from shardwise.reports.explanations import rows_of
from tests.explanation.suggestion_runs import SuggestionTally, named, problem, try_suggestions, why_none
from tests.support.mesh_strategies import meshes
from tests.support.random_programs import Program, programs


@settings(max_examples=60)
@given(meshes().flatmap(programs))
def test_the_suggested_annotation_splits_the_value(program: Program) -> None:
    tally = SuggestionTally()
    try_suggestions(program.record().text(), tally)
    assert not tally.failed, tally.failed[0]


def said(sharding: str) -> str:
    return f" {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"


XY = 'sdy.mesh @mesh = <["x"=4, "y"=2, "z"=2]>\n'
WIDE = "tensor<8x16xf32>"


def body(annotation: str, *lines: str) -> str:
    """%0 is the last line's; all on one argument of 8x16."""
    return (
        f"{XY}func.func @main(%arg0: {WIDE}{annotation}) -> {WIDE} {{\n" + "\n".join(lines)
        + f"\nreturn %0 : {WIDE}\n}}"
    )  # fmt: skip


TANH = f"%0 = stablehlo.tanh %arg0 : {WIDE}"
OVER_Y = f"""%0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{{"x"}}, {{}}]>]
    out_shardings=[<@mesh, [{{"x"}}, {{}}]>] manual_axes={{"x", "y"}} (%arg1: tensor<2x16xf32>) {{
  %1 = stablehlo.tanh %arg1 : tensor<2x16xf32>
  sdy.return %1 : tensor<2x16xf32>
}} : ({WIDE}) -> {WIDE}"""


@pytest.mark.parametrize(
    ("text", "value", "suggestion", "to_change"),
    [
        (body("", TANH), "%0", '[{}, {"x"}]', ""),
        (body("", OVER_Y), "%1", '[{}, {"z"}]', ""),
        (body(said("[{}, {}]"), TANH), "%arg0", '[{}, {"x"}]', "argument %arg0"),
        (body(said("[{?}, {?}]"), TANH), "%arg0", '[{}, {"x"}]', "argument %arg0"),
        (body(said("[{?}, {?}]"), TANH), "%0", '[{}, {"x"}]', ""),
        (
            body(said('[{}, {}], replicated={"x"}'), TANH),
            "%arg0",
            '[{}, {"y"}], replicated={"x"}',
            "argument %arg0",
        ),
        (
            body(said('[{}, {}], replicated={"y"}, unreduced={"x"}'), TANH),
            "%arg0",
            '[{}, {"z"}], replicated={"y"}, unreduced={"x"}',
            "argument %arg0",
        ),
        (
            body("", f"%0 = sdy.sharding_constraint %arg0 <@mesh, [{{}}, {{}}]> : {WIDE}"),
            "%0",
            '[{}, {"x"}]',
            "sdy.sharding_constraint",
        ),
        (
            body("", f"%0 = sdy.sharding_constraint %arg0 <@mesh, [{{?}}, {{?}}]> : {WIDE}"),
            "%0",
            '[{}, {"x"}]',
            "sdy.sharding_constraint",
        ),
        (body("", f"%0 = sdy.sharding_constraint %arg0 <@mesh, [{{}}, {{}}]> : {WIDE}"), "%arg0", '[{}, {"x"}]', ""),
        (
            body(said('[{}, {}], replicated={"x", "y", "z"}'), TANH),
            "%arg0",
            '[{}, {"x"}], replicated={"y", "z"}',
            "argument %arg0",
        ),
        (
            body(said('[{}, {}], replicated={"y"}, unreduced={"x", "z"}'), TANH),
            "%arg0",
            '[{}, {"y"}], unreduced={"x", "z"}',
            "argument %arg0",
        ),
        (body(said('[{}, {}], unreduced={"x", "y", "z"}'), TANH), "%arg0", "", ""),
    ],
)
def test_a_suggestion_is_legal_and_names_the_annotation_in_its_way(
    text: str, value: str, suggestion: str, to_change: str
) -> None:
    (why,) = sw.parse(text).why(value).values
    assert (why.axes, why.suggestion, why.to_change.origin if why.to_change else "") == ((), suggestion, to_change)
    if to_change:
        text_of_change = f"Its annotation keeps it unsharded: {why.to_change}; '{suggestion}' instead would split it."
        assert text_of_change in str(why)
    else:
        assert (f"shard({value}, '{suggestion}') would split it." in str(why)) == bool(suggestion)
    tally = SuggestionTally()
    try_suggestions(text, tally)
    assert not tally.failed, tally.failed[0]
    assert tally.split == tally.tried > 0 or not suggestion


def test_an_illegal_suggestion_would_be_found() -> None:
    """The check of suggestions tells a legal from an illegal one, and one that does nothing."""
    text = _core.ir.parse(body("", OVER_Y)).text()
    (row,) = [r for r in rows_of(_core.passes.propagate_program(named(text)).explain_all()) if r["name"] == "%1"]
    assert problem(text, row) == ""
    assert "manual" in problem(text, row | {"suggestion": '[{}, {"y"}]'})
    assert why_none(text, row) == ""
    closed = _core.ir.parse(body(said("[{}, {}]"), TANH)).text()
    (row,) = [r for r in rows_of(_core.passes.propagate_program(named(closed)).explain_all()) if r["name"] == "%arg0"]
    del row["to_change"]
    assert "it is [{}, {}] in" in problem(closed, row)
