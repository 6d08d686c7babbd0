# SPDX-License-Identifier: Apache-2.0
"""Runs the checks that import JAX, each file in a process of its own with 8 devices.

python -m pytest tests/interop/process/to_jax_checks.py -k movement      one of them by hand, with XLA_FLAGS set
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

FOLDER = Path(__file__).parent / "process"
ENVIRONMENT = {
    **os.environ,
    "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    "JAX_PLATFORMS": "cpu",
}
HANDED_OVER = ("to_jax_checks", "script_checks")  # most of their time would be LLVM's


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*_checks.py")), ids=lambda file: file.stem)
def test_checks_pass_in_their_process(file: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(file)]
    quick = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"} if file.stem in HANDED_OVER else {}
    done = subprocess.run(command, cwd=ROOT, env={**ENVIRONMENT, **quick}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
