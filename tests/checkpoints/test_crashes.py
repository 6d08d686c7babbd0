# SPDX-License-Identifier: Apache-2.0
"""A save that dies at any byte, or is killed at any time, leaves the checkpoints before it whole.

The order of its writes and flushes says that this is so, too, if the machine loses its power.
"""

from __future__ import annotations

import re
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


@pytest.mark.parametrize("ranks", [1, 4])
def test_all_files_are_on_the_disk_before_the_folder_gets_its_name(tmp_path: Path, ranks: int) -> None:
    """And its name is, before the step that it replaces is removed."""
    command = [sys.executable, "-m", "tests.checkpoints.order_worker", str(tmp_path / "run"), str(ranks)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    calls = re.sub(r"\.tmp-[0-9a-f]+", ".tmp", done.stdout).splitlines()
    published = calls.index("write step-2.tmp/manifest.json")
    blocks: dict[str, list[str]] = {f"step-2.tmp/blocks-{rank}": [] for rank in range(ranks)}
    for call in calls[:published]:
        name, _, path = call.partition(" ")
        blocks[path].append(name)
    assert [names.index("sync") for names in blocks.values()] == [len(names) - 1 for names in blocks.values()]
    assert all(names[0] == "write" for names in blocks.values())
    assert calls[published:] == [
        "write step-2.tmp/manifest.json",
        "sync step-2.tmp/manifest.json",
        "sync step-2.tmp",
        "rename step-2.tmp step-2",
        "sync .",
        "rename step-1 step-1.tmp",
    ]
