# SPDX-License-Identifier: Apache-2.0
"""The committed stubs are those of the extension, and the package's types and style check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def test_stubs_are_fresh(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "tools" / "make_stubs.py", tmp_path], check=True)
    written = {p.name: p.read_text() for p in (tmp_path / "shardwise" / "_core").glob("*.pyi")}
    committed = {p.name: p.read_text() for p in (ROOT / "python" / "shardwise" / "_core").glob("*.pyi")}
    assert written == committed, "run `make stubs`"


@pytest.mark.parametrize("command", [("mypy",), ("ruff", "check", "--quiet", ".")], ids=lambda command: command[0])
def test_checkers_are_content(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
