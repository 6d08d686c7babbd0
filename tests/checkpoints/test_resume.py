# SPDX-License-Identifier: Apache-2.0
"""`resume.py` and `gpt.py` are killed at a random step, and go on with other devices and ranks: equal losses."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.mpi.launch import mpirun
from tests.support.paths import ROOT

STEPS = 16
# With sums in float64, an order of devices makes no difference to a float32.
EXAMPLES = {"resume.py": [], "gpt.py": ["--dtype", "float64"]}


def command(example: str, folder: Path, devices: int) -> list[str]:
    options = ["--folder", str(folder), "--devices", str(devices), "--steps", str(STEPS)]
    return [f"examples/{example}", *options, *EXAMPLES[example]]


def without_rates(lines: list[str]) -> list[str]:
    return [line.partition("  ")[0] for line in lines]


def lines_of(example: str, folder: Path, devices: int, ranks: int = 1) -> list[str]:
    """What a run prints until it ends."""
    arguments = command(example, folder, devices)
    if ranks > 1:
        done = mpirun(ranks, ["-m", "shardwise.mpi", "--stdout", "0", *arguments], 180)
    else:
        run = [sys.executable, "-W", "error", *arguments]
        done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return without_rates(done.stdout.splitlines())


def killed(example: str, folder: Path, draws: random.Random) -> list[str]:
    """The lines of a run on 8 devices that is killed at a random moment after some steps."""
    lines: list[str] = []
    run = [sys.executable, *command(example, folder, 8)]
    with subprocess.Popen(run, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(draws.randrange(2, STEPS // 2)):
            lines.append(process.stdout.readline().rstrip())
        time.sleep(draws.uniform(0, 0.01))
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.read().splitlines()
    return without_rates(lines)


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_killed_run_goes_on_with_equal_losses_on_other_devices(example: str, tmp_path: Path) -> None:
    straight = lines_of(example, tmp_path / "straight", 8)
    assert len(straight) == STEPS
    before = killed(example, tmp_path / "killed", random.Random(os.environ.get("SHARDWISE_SEED")))
    assert before == straight[: len(before)]
    assert len(before) < STEPS
    found = {}
    for devices, ranks in ((4, 1), (6, 1), (8, 1), (8, 4)):
        folder = tmp_path / f"{devices}-{ranks}"
        shutil.copytree(tmp_path / "killed", folder)
        found[devices, ranks] = lines_of(example, folder, devices, ranks)
    done = {lines[0].partition(" on ")[0] for lines in found.values()}
    assert len(done) == 1
    last = int(done.pop().removeprefix("resumed after step "))
    # The newest saves ran in a thread: the last one may not have ended.
    assert len(before) - 2 <= last <= len(before) + 1
    assert [lines[1:] for lines in found.values()] == [straight[last:]] * 4
