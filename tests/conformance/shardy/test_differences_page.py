# SPDX-License-Identifier: Apache-2.0
"""docs/shardy_differences.md has the mechanisms of the comparisons with Shardy, and no others."""

from __future__ import annotations

import re

from tests.conformance.shardy.mechanisms import MECHANISMS
from tests.support.tools import tool


def test_the_page_is_up_to_date() -> None:
    make = tool("make_differences")
    assert make.PAGE.read_text() == make.page(), "python tools/make_differences.py writes it anew"


def test_the_page_has_each_mechanism_once() -> None:
    headings = re.findall(r"^### (.*)$", tool("make_differences").PAGE.read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(mechanism.name for mechanism in MECHANISMS)


def test_all_differences_are_intentional() -> None:
    sections = re.findall(r"^## (.*)$", tool("make_differences").PAGE.read_text(), re.MULTILINE)
    assert sections == ["Rules of single ops", "Whole programs"]  # none where Shardy knows more


def test_there_are_few_mechanisms() -> None:
    assert len(MECHANISMS) <= 15
    assert len({mechanism.name for mechanism in MECHANISMS}) == len(MECHANISMS)
    for mechanism in MECHANISMS:  # of a rule, or of whole programs
        assert (mechanism.of_op is not None) == bool(mechanism.rule)
        assert (mechanism.of_program is None) == bool(mechanism.rule or mechanism.told)
