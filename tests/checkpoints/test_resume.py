# SPDX-License-Identifier: Apache-2.0
"""`examples/resume.py` is killed at a random step, and goes on with other devices and ranks: equal losses."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.mpi.launch import mpirun
from tests.support.paths import ROOT

STEPS = 16


def command(folder: Path, devices: int) -> list[str]:
    return ["examples/resume.py", "--folder", str(folder), "--devices", str(devices), "--steps", str(STEPS)]


def lines_of(folder: Path, devices: int, ranks: int = 1) -> list[str]:
    """What a run prints until it ends."""
    arguments = command(folder, devices)
    if ranks > 1:
        done = mpirun(ranks, ["-m", "shardwise.mpi", "--stdout", "0", *arguments], 180)
    else:
        run = [sys.executable, "-W", "error", *arguments]
        done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def killed(folder: Path, draws: random.Random) -> list[str]:
    """The lines of a run on 8 devices that is killed at a random moment after some steps."""
    lines: list[str] = []
    run = [sys.executable, *command(folder, 8)]
    with subprocess.Popen(run, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(draws.randrange(2, STEPS // 2)):
            lines.append(process.stdout.readline().rstrip())
        time.sleep(draws.uniform(0, 0.01))
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.read().splitlines()
    return lines


def test_a_killed_run_goes_on_with_equal_losses_on_other_devices(tmp_path: Path) -> None:
    straight = lines_of(tmp_path / "straight", 8)
    assert len(straight) == STEPS
    before = killed(tmp_path / "killed", random.Random(os.environ.get("SHARDWISE_SEED")))
    assert before == straight[: len(before)]
    assert len(before) < STEPS
    found = {}
    for devices, ranks in ((4, 1), (6, 1), (8, 1), (8, 4)):
        folder = tmp_path / f"{devices}-{ranks}"
        shutil.copytree(tmp_path / "killed", folder)
        found[devices, ranks] = lines_of(folder, devices, ranks)
    done = {lines[0].partition(" on ")[0] for lines in found.values()}
    assert len(done) == 1
    last = int(done.pop().removeprefix("resumed after step "))
    # The newest saves ran in a thread: the last one may not have ended.
    assert len(before) - 2 <= last <= len(before) + 1
    assert [lines[1:] for lines in found.values()] == [straight[last:]] * 4
