# SPDX-License-Identifier: Apache-2.0
"""JAX's texts of loops and branches run on one device, and give what JAX gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.support.paths import ROOT

WORKER = "tests.conformance.jax.regions_worker"
PROGRAMS = re.findall(r'^    "(\w+)": \(', Path(__file__).with_name("regions_worker.py").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def by_jax(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("jax") / "regions.npz"
    subprocess.run([sys.executable, "-m", WORKER, str(path)], check=True, capture_output=True, cwd=ROOT)
    return np.load(path)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_text_of_jax_computes_what_jax_computes(by_jax: Any, name: str) -> None:
    def arrays(kind: str) -> list[np.ndarray]:
        return [by_jax[key] for key in by_jax.files if key.startswith(f"{name}/{kind}/")]

    returned = sw.parse(str(by_jax[f"{name}/text"])).run(*arrays("argument"))
    results = [np.asarray(result) for result in (returned if isinstance(returned, tuple) else (returned,))]
    assert len(results) == len(arrays("result"))
    for result, expected in zip(results, arrays("result")):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5 * float(np.max(np.abs(expected))))


def test_all_programs_are_tested(by_jax: Any) -> None:
    assert [key.removesuffix("/text") for key in by_jax.files if key.endswith("/text")] == PROGRAMS
