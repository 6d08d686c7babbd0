# SPDX-License-Identifier: Apache-2.0
"""A sample of ``python -m tests.conformance.jax.corpus``: JAX's functions as texts, whole and on 8 devices."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import ROOT

TOOL = "tests.conformance.jax.corpus"


def test_a_sample_of_functions_gives_what_jax_gives() -> None:
    run = subprocess.run([sys.executable, "-m", TOOL, "--every", "25"], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " functions in " in run.stdout
    assert run.stdout.count("equal") >= 12
