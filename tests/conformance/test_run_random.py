# SPDX-License-Identifier: Apache-2.0
"""The driver of the random tools: what fails is reported, and is repeated by all later runs."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.conformance import run_random
from tests.conformance.run_random import TOOLS, Tool, kept, main

GOOD = Tool("""python -c "print('fine {seed}')" """)
WRONG = Tool("""N=7 python -c "import os; print('bad', {count}); raise SystemExit(int(os.environ['N']))" """, 10)


@pytest.fixture
def seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_random, "OUTPUTS", tmp_path / "outputs")
    path = tmp_path / "seeds.txt"
    path.write_text("# a comment\n")
    return path


def test_a_tool_that_fails_is_reported_and_kept(seeds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5"], [GOOD, WRONG], seeds) == 1
    printed = capsys.readouterr().out
    line = WRONG.line(5, whole=False)
    assert "SHARDWISE_SEED=5 make test-random" in printed
    assert f"bad 4\n\nto repeat it: {line}\n" in printed
    assert "FAILED with 7" in printed
    assert "2 commands, 1 failed" in printed
    assert kept(seeds) == [line.strip()]
    assert main(["--seed", "6"], [GOOD], seeds) == 1  # the kept line fails still, and is not kept twice
    assert kept(seeds) == [line.strip()]


def test_tools_that_pass_leave_the_file(seeds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5"], [GOOD], seeds) == 0
    assert kept(seeds) == []
    assert "\nfine 5" not in capsys.readouterr().out  # what passes prints one line


def test_a_whole_run_has_three_thirds() -> None:
    for tool in TOOLS:
        third, whole = (shlex.split(tool.line(12, whole)) for whole in (False, True))
        assert third != whole
        assert any("12" in word for word in third), third  # the seed


def test_the_kept_lines_are_commands() -> None:
    lines = kept(run_random.SEEDS)
    assert [line for line in lines if "python" not in shlex.split(line)] == []
