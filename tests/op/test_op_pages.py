# SPDX-License-Identifier: Apache-2.0
"""docs/reference/ops/ has a section for each op, and docs/collectives.md shows what programs of one op send."""

from __future__ import annotations

import importlib.util
from typing import Any

from shardwise import _core
from tests.support.paths import ROOT


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("make_op_pages", ROOT / "tools" / "make_op_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_those_that_the_tool_writes() -> None:
    stale = [path.name for path, text in tool().pages().items() if path.read_text() != text]
    assert not stale, f"run python tools/make_op_pages.py: {', '.join(stale)}"


def test_every_op_has_a_section() -> None:
    folder = tool().DOCS / "reference" / "ops"
    headings = [
        line.removeprefix("## ")
        for page in folder.glob("*.md")
        for line in page.read_text().splitlines()
        if line.startswith("## ")
    ]
    assert sorted(headings) == sorted(op.name for op in _core.ir.all_ops())
