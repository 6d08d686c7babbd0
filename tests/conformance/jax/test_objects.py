# SPDX-License-Identifier: Apache-2.0
"""Objects of JAX where ours are taken: registered classes, meshes, specs, shardings and arrays."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.once_per_run import written_by

WORKER = "tests.conformance.jax.objects_worker"
CHECKS = re.findall(r"^def (check_\w+)", Path(__file__).with_name("objects_worker.py").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    found: dict[str, str] = json.loads(written_by(tmp_path_factory, WORKER, "out.json").read_text())
    return found


@pytest.mark.parametrize("check", CHECKS)
def test_objects_of_jax(outcomes: dict[str, str], check: str) -> None:
    assert outcomes[check] == "", outcomes[check]


def test_jax_is_not_imported_by_its_readers() -> None:
    program = "import shardwise as sw, sys; sw.tree.leaves(object()); sw.P('x'); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
