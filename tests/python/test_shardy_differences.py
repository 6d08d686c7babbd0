# SPDX-License-Identifier: Apache-2.0
"""docs/shardy_differences.md has the mechanisms of the comparisons with Shardy, and no others."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import oracle_mechanisms
import rule_mechanisms

ROOT = Path(__file__).resolve().parents[2]


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("make_differences", ROOT / "tools" / "make_differences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date() -> None:
    make = tool()
    assert make.PAGE.read_text() == make.page(), "python tools/make_differences.py writes it anew"


def test_the_page_has_each_mechanism_once() -> None:
    headings = re.findall(r"^### (.*)$", tool().PAGE.read_text(), re.MULTILINE)
    assert headings == [
        *(mechanism.name for mechanism in oracle_mechanisms.MECHANISMS),
        *(f"{mechanism.name} (one op)" for mechanism in rule_mechanisms.MECHANISMS),
    ]


def test_there_are_few_mechanisms() -> None:
    assert len(oracle_mechanisms.MECHANISMS) <= 15
    names = [mechanism.name for mechanism in oracle_mechanisms.MECHANISMS]
    assert len(set(names)) == len(names)
