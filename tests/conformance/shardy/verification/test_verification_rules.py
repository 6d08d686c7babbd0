# SPDX-License-Identifier: Apache-2.0
"""Each verification rule is an error of ours with a message and a place, and jaxlib refuses the same text.

The cases are in rows.py, region_rows.py and collective_rows.py.
"""

from __future__ import annotations

import pytest

import shardwise as sw
from tests.conformance.shardy.client import OracleDiedError, OracleError, ShardyOracle
from tests.conformance.shardy.verification import rows
from tests.conformance.shardy.verification.collective_rows import COLLECTIVE_CASES
from tests.conformance.shardy.verification.region_rows import REGION_CASES
from tests.conformance.shardy.verification.rows import Case

CASES = [
    *rows.MESH_CASES,
    *rows.SHARDING_CASES,
    *rows.ATTRIBUTE_CASES,
    *rows.WITHOUT_RESULTS_CASES,
    *rows.RULE_CASES,
    *REGION_CASES,
    *rows.ANNOTATION_CASES,
    *rows.EDGE_CASES,
    *COLLECTIVE_CASES,
]
WRONG = [case for case in CASES if case.says is not None]
RIGHT = [case for case in CASES if case.says is None]


def name(case: Case) -> str:
    return f"rule_{case.rule}"


@pytest.mark.parametrize("case", WRONG, ids=name)
def test_a_rule_has_its_error(case: Case) -> None:
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(case.text)
    assert case.says is not None
    assert case.says in str(caught.value)
    lines = case.text.splitlines()
    assert 1 < caught.value.line <= len(lines)
    assert 1 <= caught.value.column <= len(lines[caught.value.line - 1]) + 1


@pytest.mark.parametrize("case", WRONG, ids=name)
def test_jaxlib_refuses_the_same_text(case: Case, shardy: ShardyOracle) -> None:
    text = case.text.replace("unreduced=max{", "unreduced={")  # jaxlib 0.10 knows sums alone
    if case.accepted is not None or text != case.text:
        assert shardy.parse(text)
    else:
        with pytest.raises((OracleError, OracleDiedError)):
            shardy.parse(text)


@pytest.mark.parametrize("case", RIGHT, ids=name)
def test_the_near_miss_is_taken_and_printed_as_read(case: Case, shardy: ShardyOracle) -> None:
    module = sw.parse(case.text)
    module.verify()
    printed = module.as_text()
    assert sw.parse(printed) == module
    assert sw.parse(printed).as_text() == printed
    given = shardy.parse(case.text).replace('manual_axes{"b", "a"}', 'manual_axes{"a", "b"}')  # printed in mesh order
    assert shardy.parse(printed) == given


def test_every_rule_has_a_case() -> None:
    """Without 7, 28 and 33, which have tests of their own below: no text of that form breaks them."""
    assert {case.rule for case in WRONG} == {*range(1, 66)} - {7, 28, 33}


def test_rule_7_ids_in_order_are_no_ids() -> None:
    """Both drop ids that are 0, 1, 2, … when a mesh is made, so that none can have them."""
    assert sw.Mesh({"x": 2}, [0, 1]) == sw.Mesh({"x": 2})
    text = rows.mesh('<["x"=2], device_ids=[0, 1]>', "")
    assert 'sdy.mesh @m = <["x"=2]>' in sw.parse(text).as_text()


def test_rule_28_a_sharding_that_must_divide_does() -> None:
    """Shardy's verifier of programs does not check this either: it is a question of its API."""
    sharding = sw._core.mesh.Sharding.parse(sw.Mesh({"x": 3})._core, '[{"x"}]')
    sharding.verify_divisible([6])
    with pytest.raises(
        sw.ShardingError, match=r"the size of dim 0 must be a multiple of its 3 shards .* got 8; pad it"
    ):
        sharding.verify_divisible([8])


@pytest.mark.parametrize("kind", ["tensor<?xf32>", "tensor<*xf32>"])
def test_rule_33_a_rule_is_for_static_shapes(kind: str, shardy: ShardyOracle) -> None:
    rule = "sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>"
    text = rows.ops(f"%0 = stablehlo.abs %arg0 {{{rule}}} : {kind}", arguments=f"%arg0: {kind}")
    with pytest.raises(sw.ParseError, match="a dim must have a static size"):
        sw.parse(text)
    with pytest.raises(OracleError, match="static shape"):
        shardy.parse(text)


# A text with two mistakes gets the error of the rule that is checked first.
ORDER = [
    ("a mesh before its shape", "@nowhere, [{}]", "a mesh must be declared", "unknown mesh"),
    ("the shape before a priority", "@mesh, [{}p1]", "one entry per dim", "match tensor rank"),
    ("a priority before axes", '@mesh, [{"a", "a"}, {}p1]', "used once", "duplicate axis ref"),
    ("a dim before the next", '@mesh, [{}p1, {"a", "a"}]', "no priority", "has a priority"),
    ("dims before replicated", '@mesh, [{"a", "a"}, {}], replicated={"c", "b"}', "used once", "duplicate axis ref"),
    ("order before duplicates", '@mesh, [{"a"}, {}], replicated={"b", "a"}', "in the order", "not ordered"),
    (
        "replicated before unreduced",
        '@mesh, [{}, {}], replicated={"c", "b"}, unreduced={"b", "a"}',
        "replicated",
        "repl",
    ),
    ("duplicates before digits", '@mesh, [{"c":(1)6, "a"}, {"c":(3)4, "a"}]', "used once", "duplicate axis ref"),
    ("whole axes before overlaps", '@mesh, [{"c"}, {"c":(1)6}]', "not both be used", "both sub-axis and full-axis"),
]


@pytest.mark.parametrize(("sharding", "ours", "theirs"), [row[1:] for row in ORDER], ids=[row[0] for row in ORDER])
def test_rules_are_checked_in_their_order(sharding: str, ours: str, theirs: str, shardy: ShardyOracle) -> None:
    text = rows.argument(sharding)
    with pytest.raises(sw.ParseError, match=ours):
        sw.parse(text)
    with pytest.raises(OracleError, match=theirs):
        shardy.parse(text)
