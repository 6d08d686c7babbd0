# SPDX-License-Identifier: Apache-2.0
"""Files that tests share in a run: the first worker of pytest-xdist that needs one writes it.

path = written_by(tmp_path_factory, "tests.conformance.jax.gradient_worker", "out.npz")
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def once_per_run(factory: pytest.TempPathFactory, name: str, write: Callable[[Path], object]) -> Path:
    """The file or folder ``name`` of this run. ``write`` gets a path that does not exist; what it raises is raised."""
    own = factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # the workers' folders are in that of the run
    path = folder / f"shared-{name}"
    with (folder / f"lock-{name}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            unfinished = factory.mktemp("unfinished") / name
            write(unfinished)
            unfinished.rename(path)
    return path


def written_by(factory: pytest.TempPathFactory, worker: str, name: str) -> Path:
    """The file ``name`` that ``python -m WORKER FILE`` writes, once per run."""

    def write(path: Path) -> None:
        done = subprocess.run([sys.executable, "-m", worker, str(path)], capture_output=True, cwd=ROOT, text=True)
        assert done.returncode == 0, done.stderr[-2000:]

    return once_per_run(factory, f"{worker}-{name}", write)
