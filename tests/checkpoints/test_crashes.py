# SPDX-License-Identifier: Apache-2.0
"""A save that dies at any byte, or is killed at any time, leaves the checkpoints before it whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT


@pytest.mark.parametrize(
    ("mode", "count", "expected"),
    [
        ("cuts", 200, "200 cuts published 0, 32 calls published some"),
        ("kills", 15, "15 kills after some steps"),
        ("ranks", 4, "4 kills of a rank after some steps"),  # and one more in tests/mpi
    ],
)
def test_processes_that_die_leave_the_old_checkpoint_or_the_new_one(
    tmp_path: Path, mode: str, count: int, expected: str
) -> None:
    command = [sys.executable, "-m", "tests.checkpoints.crash_worker", str(tmp_path), mode, str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, expected), done.stderr[-3000:]
