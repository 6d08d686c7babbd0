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
import types
import zlib
from pathlib import Path
from typing import Any

import pytest

import shardwise as sw
from tests.mpi.launch import mpirun
from tests.support.oracles import oracle
from tests.support.paths import ROOT

STEPS = 16
# With sums in float64, an order of devices makes no difference to a float32: equal losses. In bfloat16, it does.
RUNS = {
    "resume.py": (["resume.py"], 0.0),
    "gpt.py": (["gpt.py", "--dtype", "float64"], 0.0),
    "gpt.py in bfloat16": (["gpt.py"], 2e-3),
}
SMALL = ["--batch", "8", "--microbatches", "1"]


def command(run: str, folder: Path, devices: int) -> list[str]:
    (example, *options), _ = RUNS[run]
    return [f"examples/{example}", "--folder", str(folder), "--devices", str(devices), "--steps", str(STEPS), *options]


def without_rates(lines: list[str]) -> list[str]:
    return [line.partition("  ")[0] for line in lines]


def losses(lines: list[str]) -> list[float]:
    return [float(line.rpartition(" ")[2]) for line in lines]


def lines_of(name: str, folder: Path, devices: int, ranks: int = 1) -> list[str]:
    """What a run prints until it ends."""
    arguments = command(name, folder, devices)
    if ranks > 1:
        done = mpirun(ranks, ["-m", "shardwise.mpi", "--stdout", "0", *arguments], 180)
    else:
        run = [sys.executable, "-W", "error", *arguments]
        done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return without_rates(done.stdout.splitlines())


def killed(name: str, folder: Path, draws: random.Random) -> list[str]:
    """The lines of a run on 8 devices that is killed at a random moment after some steps."""
    lines: list[str] = []
    run = [sys.executable, *command(name, folder, 8)]
    with subprocess.Popen(run, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(draws.randrange(2, STEPS // 2)):
            lines.append(process.stdout.readline().rstrip())
        time.sleep(draws.uniform(0, 0.01))
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.read().splitlines()
    return without_rates(lines)


@pytest.mark.parametrize("name", RUNS)
def test_a_killed_run_goes_on_with_equal_losses_on_other_devices(name: str, tmp_path: Path) -> None:
    tolerance = RUNS[name][1]
    straight = lines_of(name, tmp_path / "straight", 8)
    assert len(straight) == STEPS
    before = killed(name, tmp_path / "killed", random.Random(os.environ.get("SHARDWISE_SEED")))
    assert before == straight[: len(before)]
    assert len(before) < STEPS
    found = {}
    for devices, ranks in ((4, 1), (6, 1), (8, 1), (8, 4)):
        folder = tmp_path / f"{devices}-{ranks}"
        shutil.copytree(tmp_path / "killed", folder)
        found[devices, ranks] = lines_of(name, folder, devices, ranks)
    done = {lines[0].partition(" on ")[0] for lines in found.values()}
    assert len(done) == 1
    last = int(done.pop().removeprefix("resumed after step "))
    # The newest saves ran in a thread: the last one may not have ended.
    assert len(before) - 2 <= last <= len(before) + 1
    assert found[8, 1][1:] == straight[last:]
    wanted = losses(straight[last:])
    assert [losses(lines[1:]) for lines in found.values()] == [pytest.approx(wanted, rel=0, abs=tolerance)] * 4


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


def test_a_run_ends_if_its_text_dtype_or_microbatches_are_others(tmp_path: Path) -> None:
    texts = [tmp_path / "first.txt", tmp_path / "second.txt"]
    for number, text in enumerate(texts):
        text.write_text("abc" * 40 + "d" * number)  # other characters, and another number of them
    crcs = [f"{zlib.crc32(text.read_bytes()):08x}" for text in texts]
    same = ["--folder", str(tmp_path / "run"), "--batch", "8"]
    first = gpt(*same, "--text", str(texts[0]), "--dtype", "float32", "--microbatches", "1", "--steps", "1")
    assert first.returncode == 0, first.stderr
    second = gpt(*same, "--text", str(texts[1]), "--dtype", "bfloat16", "--microbatches", "2", "--steps", "2")
    assert second.returncode == 1
    assert second.stderr == (
        f"gpt.py: the run in {tmp_path}/run began with --microbatches 1 --dtype float32 --text of CRC-32 {crcs[0]}, "
        f"got --microbatches 2 --dtype bfloat16 --text of CRC-32 {crcs[1]}; pass the same ones, or another --folder\n"
    )
    assert os.listdir(tmp_path / "run") == ["step-1"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--every 0", "--every must be at least 1, got 0"),
        ("--batch 0", "--batch must be at least 1, got 0"),
        ("--devices -1", "--devices must be at least 1, got -1"),
        ("--microbatches 0", "--microbatches must be at least 1, got 0"),
        ("--decay-steps 20", "--decay-steps must be at least 21, got 20"),
        (
            "--batch 9 --microbatches 2",
            "--batch must be a multiple of --microbatches, got --batch 9 --microbatches 2",
        ),
    ],
)
def test_options_that_no_run_can_have_are_errors(
    capsys: pytest.CaptureFixture[str], example: Any, options: str, error: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        example.parsed(options.split())
    assert raised.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {error}\n")


@pytest.fixture(scope="module")
def example() -> Any:
    """The module of `gpt.py`."""
    spec = importlib.util.spec_from_file_location("gpt_example", ROOT / "examples" / "gpt.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def options_of(example: Any, folder: Path, options: str) -> argparse.Namespace:
    fixed = "--devices 2 --batch 4 --microbatches 1 --decay-steps 30 --dtype float32"
    return example.parsed(["--folder", str(folder), *fixed.split(), *options.split()])  # type: ignore[no-any-return]


def test_the_throughput_counts_the_steps_that_ran(tmp_path: Path, example: Any) -> None:
    """A print after one step of eight, in a run that was resumed, counts the characters of that step only."""
    clock = iter(range(100))
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(example.time, "perf_counter", lambda: float(next(clock)))
        example.train(options_of(example, tmp_path, "--steps 3 --every 2"))
        example.train(options_of(example, tmp_path, "--steps 6 --every 4"))
    rates = [line.rpartition("  ")[2] for line in out.getvalue().splitlines() if "loss" in line]
    assert rates == [f"{2 * 4 * 64} characters/s", f"{1 * 4 * 64} characters/s"]


@pytest.mark.parametrize("devices", [2, 3])
def test_a_run_that_goes_on_reads_split_weights_and_moments(tmp_path: Path, example: Any, devices: int) -> None:
    found: list[Any] = []

    def load(*arguments: Any, **options: Any) -> Any:
        found.append(sw.load(*arguments, **options))
        return found[-1]

    example.train(options_of(example, tmp_path, "--steps 1"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(example, "sw", types.SimpleNamespace(**{**vars(sw), "load": load}))
        example.train(options_of(example, tmp_path, f"--steps 2 --devices {devices}"))
    arrays = sw.tree.leaves(found[0]["state"])
    assert {type(array) for array in arrays} == {sw.Array}
    assert {array.sharding.mesh.size for array in arrays} == {devices}
    assert not [array.shape for array in arrays if array.nbytes >= 1024 and array.sharding.is_fully_replicated]


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
    functions = [node for node in source.body if isinstance(node, ast.FunctionDef)]
    lines = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    assert lines["train"] + lines["expect_equal"] <= 30


def test_a_translation_of_one_step_is_refused() -> None:
    oracle("num2words")  # the example's data
    run = [sys.executable, "examples/translate.py", "--steps", "1"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("error: --steps must be at least 2, got 1\n")
