# SPDX-License-Identifier: Apache-2.0
"""The examples run as scripts and print what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def output_of(script: str, *args: str) -> str:
    environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / script), *args],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_quickstart_shows_result_programs_ledger_and_reasons() -> None:
    text = output_of("quickstart.py")
    difference = re.search(r"max \|difference\| to NumPy ([\d.e+-]+)", text)
    assert difference
    assert float(difference[1]) < 1e-3
    loss = re.search(r"loss ([\d.]+) \(NumPy ([\d.]+)\)", text)
    assert loss
    assert float(loss[1]) == pytest.approx(float(loss[2]), rel=1e-3)
    for word in (
        "sdy.sharding",
        "stablehlo.dot_general",
        '"shardwise.all_reduce"',
        "received per device",
        "quickstart.py:",
    ):
        assert word in text
    assert re.search(r"\bw2 .*is tensor<128x32xf32>, sharded \[\{\"model\"\}, \{\}\]", text)
    assert re.search(r"\bh .*is tensor<64x128xf32>, sharded \[\{\"data\"\}, \{\"model\"\}\]", text)


def test_digits_reaches_its_accuracy_with_the_weights_of_one_device() -> None:
    if "CI" not in os.environ:  # there it must be installed
        pytest.importorskip("sklearn", reason="the digits example needs scikit-learn")
    text = output_of("digits.py", "--epochs", "15")
    accuracy = re.search(r"accuracy\D+([\d.]+)\D+([\d.]+)", text)
    assert accuracy
    assert float(accuracy[1]) > 0.95
    assert float(accuracy[1]) == pytest.approx(float(accuracy[2]), abs=0.01)
    difference = re.search(r"largest difference of a weight\D+([\d.e+-]+)", text)
    assert difference
    assert float(difference[1]) < 1e-3
