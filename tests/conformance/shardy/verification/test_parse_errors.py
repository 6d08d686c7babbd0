# SPDX-License-Identifier: Apache-2.0
"""Each category of Shardy's parse errors has a message, a line and a column; jaxlib refuses the same texts."""

from __future__ import annotations

import pytest

import shardwise as sw
from tests.conformance.shardy.client import OracleError, ShardyOracle
from tests.conformance.shardy.verification import rows
from tests.conformance.shardy.verification.parse_error_rows import RULES, SHARDINGS
from tests.conformance.shardy.verification.rows import Case

CASES = [*rows.cases(rows.argument, SHARDINGS), *rows.cases(rows.rule, RULES)]
# Texts that jaxlib reads and we do not: no dim has a factor of such a size.
SIZES_THAT_JAXLIB_READS = ("k=§-4",)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"category_{case.rule}")
def test_a_parse_error_has_its_place(case: Case) -> None:
    before = case.text.partition("§")[0]
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(case.text.replace("§", ""))
    assert case.says is not None
    assert case.says in str(caught.value)
    assert "program text" in str(caught.value)
    assert (caught.value.line, caught.value.column) == (before.count("\n") + 1, len(before.splitlines()[-1]) + 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"category_{case.rule}")
def test_jaxlib_refuses_it(case: Case, shardy: ShardyOracle) -> None:
    text = case.text.replace("§", "")
    if any(size in case.text for size in SIZES_THAT_JAXLIB_READS):
        assert shardy.parse(text)
    else:
        with pytest.raises(OracleError):
            shardy.parse(text)


def test_every_category_has_cases() -> None:
    assert {case.rule for case in CASES} == {*range(1, 8)}
