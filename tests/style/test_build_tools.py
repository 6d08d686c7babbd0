# SPDX-License-Identifier: Apache-2.0
"""The tools of make targets: steps with their times, and the sources that are compiled alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.style.source_tree import CORE, ROOT
from tests.support.tools import tool

STEP = str(ROOT / "tools" / "step.py")
LOGGED = [sys.executable, STEP, "step-of-a-test", "--log", "--", sys.executable, "-c"]


def run(command: list[str], table: Path) -> subprocess.CompletedProcess[str]:
    environment = {"SHARDWISE_STEPS": str(table), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_step_has_the_status_of_its_command_and_a_row(tmp_path: Path) -> None:
    table = tmp_path / "steps.tsv"
    assert run([*LOGGED, "print('quiet')"], table).returncode == 0
    failed = run([*LOGGED, "print('the reason'); raise SystemExit(3)"], table)
    assert failed.returncode == 3
    assert "the reason" in failed.stdout
    assert "quiet" not in failed.stdout
    shown = run([sys.executable, STEP, "shown", "--", sys.executable, "-c", "print('as it is')"], table)
    assert "as it is" in shown.stdout
    printed = run([sys.executable, STEP, "--table", str(table)], table).stdout.splitlines()
    assert [line.split()[0] for line in printed] == ["step", "step-of-a-test", "step-of-a-test", "shown", "sum"]
    assert ["failed" in line for line in printed] == [False, False, True, False, False]


def test_a_step_counts_the_processor_seconds_of_its_command(tmp_path: Path) -> None:
    table = tmp_path / "steps.tsv"
    run([*LOGGED, "import time\nwhile time.process_time() < 0.3: pass"], table)
    wall, processor = (float(field) for field in table.read_text().split("\t")[1:3])
    assert processor >= 0.3
    assert wall >= 0.3


def test_sources_that_reach_a_changed_header_are_compiled_alone() -> None:
    check = tool("check_includes")
    reached = check.including({CORE / "ir" / "op_def.h"})
    assert CORE / "ops" / "slicing" / "slicing.cpp" in reached  # it includes op_def.h through others
    assert CORE / "base" / "dtype.cpp" not in reached
    alone = CORE / "base" / "dtype.cpp"
    assert check.including({alone}) == {alone}


def test_sources_that_changed_come_first_and_few_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    check = tool("check_includes")
    own, header = CORE / "base" / "dtype.cpp", CORE / "ir" / "op_def.h"
    monkeypatch.setattr(check, "uncommitted_files", set)
    monkeypatch.setattr(check, "changed_files", lambda: {own, header})
    entries = [{"file": str(path)} for path in sorted(CORE.rglob("*.cpp"))]
    chosen = check.selected(entries)
    assert len(chosen) == check.MOST
    assert chosen[0] == {"file": str(own)}
    assert chosen == check.selected(entries)
    monkeypatch.setattr(check, "changed_files", lambda: {Path(entry["file"]) for entry in entries})
    monkeypatch.setattr(check, "uncommitted_files", lambda: {own})
    assert len(entries) > check.MOST
    assert check.selected(entries)[0] == {"file": str(own)}
    monkeypatch.setattr(check, "changed_files", set)
    assert check.selected(entries) == []
