# SPDX-License-Identifier: Apache-2.0
"""`resume.py` and `gpt.py` are killed at a random step, and go on with other devices and ranks: equal losses.

Also what else the examples promise: one schedule, true numbers, and errors in plain words.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import io
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
from tests.support.oracles import oracle
from tests.support.paths import ROOT

STEPS = 16
# With sums in float64, an order of devices makes no difference to a float32.
EXAMPLES = {"resume.py": [], "gpt.py": ["--dtype", "float64"]}
SMALL = ["--batch", "8", "--microbatches", "1"]


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


def gpt(*options: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-W", "error", "examples/gpt.py", *options]
    return subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)


def gpt_lines(folder: Path, steps: int, *options: str) -> list[str]:
    done = gpt("--folder", str(folder), "--steps", str(steps), *SMALL, *options)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_a_run_that_goes_on_with_more_steps_has_one_schedule_and_says_what_differs(tmp_path: Path) -> None:
    """In bfloat16, on the same devices: equal losses, also behind the warmup, where the schedule shows its length."""
    straight = gpt_lines(tmp_path / "straight", 26)
    first = gpt_lines(tmp_path / "run", 22)
    second = gpt_lines(tmp_path / "run", 26)
    assert without_rates(first) == without_rates(straight)[:22]
    assert without_rates(second) == ["resumed after step 22 on 8 devices", *without_rates(straight)[22:]]
    shutil.rmtree(tmp_path / "straight")
    before = sorted(os.listdir(tmp_path / "run"))
    other = ["--decay-steps", "800", "--rate", "0.5", "--batch", "16"]
    done = gpt("--folder", str(tmp_path / "run"), "--steps", "28", *SMALL, *other)
    assert done.returncode == 1
    assert done.stderr == (
        f"gpt.py: the run in {tmp_path}/run began with --decay-steps 400 --rate 0.003 --batch 8, "
        f"got {' '.join(other)}; pass the same ones, or another --folder\n"
    )
    assert sorted(os.listdir(tmp_path / "run")) == before


def test_the_throughput_counts_the_steps_that_ran(tmp_path: Path) -> None:
    """A print after one step of eight, in a run that was resumed, counts the characters of that step only."""
    spec = importlib.util.spec_from_file_location("gpt_example", ROOT / "examples" / "gpt.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    clock = iter(range(100))
    out = io.StringIO()
    options = {"text": str(ROOT / "examples" / "gpt.py"), "folder": str(tmp_path), "devices": 2, "batch": 4}
    options |= {"microbatches": 1, "rate": 1e-3, "decay_steps": 30, "dtype": "float32"}
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(module.time, "perf_counter", lambda: float(next(clock)))
        module.train(argparse.Namespace(**options, steps=3, every=2))
        module.train(argparse.Namespace(**options, steps=6, every=4))
    rates = [line.rpartition("  ")[2] for line in out.getvalue().splitlines() if "loss" in line]
    assert rates == [f"{2 * 4 * 64} characters/s", f"{1 * 4 * 64} characters/s"]


@pytest.mark.parametrize("text", ["", "b" * 64])
def test_a_text_that_is_too_short_is_said(tmp_path: Path, text: str) -> None:
    file = tmp_path / "text.txt"
    file.write_text(text)
    done = gpt("--text", str(file), "--folder", str(tmp_path / "run"))
    assert done.returncode == 1
    assert done.stderr == f"gpt.py: --text must have more than 64 characters, got {len(text)} in {file}\n"
    assert not (tmp_path / "run").exists()


def test_the_loop_of_the_example_is_short() -> None:
    """Progress, throughput, loss, checkpoint and resume are what people copy."""
    source = ast.parse((ROOT / "examples" / "gpt.py").read_text())
    (train,) = [node for node in source.body if isinstance(node, ast.FunctionDef) and node.name == "train"]
    assert train.end_lineno is not None
    assert train.end_lineno - train.lineno + 1 <= 30


def test_a_translation_of_one_step_is_refused() -> None:
    oracle("num2words")  # the example's data
    run = [sys.executable, "examples/translate.py", "--steps", "1"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("error: --steps must be at least 2, got 1\n")
