# SPDX-License-Identifier: Apache-2.0
"""Runs the checks that import JAX in processes of their own, long files in parts, and one program in two processes.

python -m pytest tests/interop/process/to_jax_checks.py -k movement      one of them by hand, with XLA_FLAGS set
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.partitioned import SCENARIOS
from tests.support.paths import ROOT

FOLDER = Path(__file__).parent / "process"
ENVIRONMENT = {**os.environ, "JAX_PLATFORMS": "cpu"}
FLAGS = "--xla_force_host_platform_device_count={}"
LARGEST_MESH = max(scenario.mesh().size for scenario in SCENARIOS)
DEVICES = {"many_devices_checks": 32, "op_checks": LARGEST_MESH}  # else 8
# Most of the time of these would be LLVM's.
HANDED_OVER = (
    "to_jax_checks", "script_checks", "many_devices_checks", "linear_algebra_checks", "narrow_dtypes_checks",
    "transformation_checks", "empty_arrays_checks", "donation_checks",
)  # fmt: skip
PARTS = {"to_jax_checks": 3, "from_jax_checks": 3, "op_checks": 2, "comparison_checks": 2}  # else 1
RUNS = [
    pytest.param(file, f"{part}/{count}", id=f"{file.stem}-{part}" if count > 1 else file.stem)
    for file in sorted(FOLDER.glob("*_checks.py"))
    for count in [PARTS.get(file.stem, 1)]
    for part in range(1, count + 1)
]


@pytest.mark.parametrize(("file", "part"), RUNS)
def test_checks_pass_in_their_process(file: Path, part: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-p", "tests.interop.process.parts", "--part", part, str(file)]
    quick = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"} if file.stem in HANDED_OVER else {}
    environment = {**ENVIRONMENT, **quick, "XLA_FLAGS": FLAGS.format(DEVICES.get(file.stem, 8))}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


def test_two_processes_run_a_program_and_get_whole_results() -> None:
    """Two devices each. `get` gathers the parts that the other process has."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    environment = {**ENVIRONMENT, "XLA_FLAGS": FLAGS.format(2)}
    command = [sys.executable, "-m", "tests.interop.process.distributed", address]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    both = [subprocess.Popen([*command, str(i)], cwd=ROOT, env=environment, **pipes) for i in range(2)]
    try:
        outputs = [process.communicate(timeout=240)[0] for process in both]
    finally:
        for process in both:
            process.kill()
    for i, output in enumerate(outputs):
        assert f"all results are right in process {i}" in output, output[-3000:]
