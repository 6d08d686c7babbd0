# SPDX-License-Identifier: Apache-2.0
"""Runs Python on the ranks of an MPI job, and keeps what it prints."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from tests.style.source_tree import ROOT
from tools.mpirun import ENVIRONMENT, command


def mpirun(
    ranks: int, arguments: Sequence[str], seconds: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``python ARGUMENTS`` on this many ranks and return its output. TimeoutExpired if they hang."""
    return subprocess.run(
        command(ranks, arguments),
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
