# SPDX-License-Identifier: Apache-2.0
"""What a conformance tool found: tables on the terminal, and JSON in build/conformance."""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.report import table
from tests.support.paths import ROOT

__all__ = ["table", "write"]


def write(name: str, rows: Any) -> None:
    """Write what a tool counted to build/conformance/NAME.json."""
    report.write(name, rows, ROOT / "build" / "conformance")
