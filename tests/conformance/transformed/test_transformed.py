# SPDX-License-Identifier: Apache-2.0
"""A sample of ``python -m tests.conformance.transformed``, with other programs in each commit."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import ROOT
from tests.support.run_seed import is_whole, run_seed

SAMPLE, WHOLE = 30, 300


def test_annotated_programs_under_transforms_give_the_numbers_of_the_plain_ones() -> None:
    count = WHOLE if is_whole() else SAMPLE
    command = [sys.executable, "-m", __package__, "--programs", str(count), "--seed", str(run_seed())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} programs in" in done.stdout
