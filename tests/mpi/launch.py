# SPDX-License-Identifier: Apache-2.0
"""Starts ranks: ``mpirun`` as tests need it, also as root and with more ranks than processors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.style.source_tree import ROOT

ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def mpirun(
    ranks: int, arguments: Sequence[str], seconds: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``python ARGUMENTS`` on this many ranks and return what they printed. TimeoutExpired if they hang."""
    launcher = Path(sys.executable).parent / "mpirun"
    command = [str(launcher) if launcher.exists() else "mpirun", "-n", str(ranks), sys.executable, *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
