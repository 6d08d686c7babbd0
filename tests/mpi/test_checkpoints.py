# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on 4 ranks: those of one process and back, faults of one rank, and a rank that is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import shardwise as sw
from shardwise.checkpoints.folders import published
from tests.checkpoints.trees import assert_same, state
from tests.mpi.launch import mpirun
from tests.style.source_tree import ROOT
from tools.mpirun import ENVIRONMENT, command

WORKER = "tests.mpi.checkpoint_worker"


def test_4_ranks_save_and_load_what_one_process_does(tmp_path: Path) -> None:
    sw.save(tmp_path / "alone", state(7), step=7)
    done = mpirun(4, ["-m", WORKER, str(tmp_path), "checks"], 180)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} is done" for rank in range(4)]
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["step-3", "step-4"]
    assert_same(sw.load(tmp_path / "own"), state(4))
    written = sum(file.stat().st_size for file in (tmp_path / "own" / "step-4").glob("blocks-*"))
    assert written == sum(x.nbytes for x in sw.tree.leaves(state(4)) if hasattr(x, "nbytes"))


def test_a_killed_rank_publishes_nothing_and_leaves_the_steps_before_whole(tmp_path: Path) -> None:
    """Other ranks are killed in tests/checkpoints/test_crashes.py, without MPI."""
    arguments = ["-m", WORKER, str(tmp_path), "loop"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, **ENVIRONMENT}
    run = tmp_path / "run"
    with subprocess.Popen(command(4, arguments), cwd=ROOT, env=environment, **quiet) as job:  # type: ignore[call-overload]
        deadline = time.monotonic() + 180
        while not published(run) and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(random.Random(4).uniform(0, 0.1))
        os.kill(int((tmp_path / "pid-2").read_text()), signal.SIGKILL)
        assert job.wait(180) != 0
    steps = [found.step for found in published(run)]
    assert steps
    for step in steps:
        assert_same(sw.load(run, step=step), state(step))
    sw.save(run, state(0), step=steps[-1] + 1, keep=1)
    assert [path.name for path in run.iterdir()] == [f"step-{steps[-1] + 1}"]
