# SPDX-License-Identifier: Apache-2.0
"""Loops and branches: the traced program, run by XLA, and the Python loop on NumPy arrays give what `jax.lax` gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.jax.control_flow_programs import PROGRAMS, Program
from tests.support.once_per_run import once_per_run
from tests.support.paths import ROOT

WORKER = "tests.conformance.jax.control_flow_worker"
MESH = sw.Mesh({"x": 4})
each_program = pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])


def traced(program: Program) -> Any:
    return sw.jit(lambda *arrays: program.function(np, sw, *arrays), mesh=MESH).trace(*program.inputs)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    def write(folder: Path) -> None:
        folder.mkdir()
        texts = {program.name: traced(program).as_text() for program in PROGRAMS}
        (folder / "texts.json").write_text(json.dumps(texts))
        command = [sys.executable, "-m", WORKER, str(folder / "texts.json"), str(folder / "out.npz")]
        done = subprocess.run(command, capture_output=True, cwd=ROOT, text=True)
        assert done.returncode == 0, done.stderr[-2000:]

    return np.load(once_per_run(tmp_path_factory, "control_flow", write) / "out.npz")


def rows(results: Any, kind: str, program: Program) -> list[np.ndarray]:
    names = sorted((n for n in results if n.startswith(f"{kind}/{program.name}/")), key=lambda n: int(n.split("/")[2]))
    return [results[name] for name in names]


def assert_same(found: list[Any], expected: list[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@each_program
def test_the_traced_text_is_what_jax_computes(program: Program, results: Any) -> None:
    assert_same(rows(results, "text", program), rows(results, "jax", program))


@each_program
def test_numpy_arrays_give_what_jax_gives(program: Program, results: Any) -> None:
    found = sw.tree.leaves(program.function(np, sw, *program.inputs))
    assert_same(found, rows(results, "jax", program))


@each_program
def test_arrays_on_a_mesh_give_what_jax_gives(program: Program, results: Any) -> None:
    replicated = sw.NamedSharding(MESH, sw.P())
    placed = [sw.device_put(x, replicated) for x in program.inputs]
    found = [np.asarray(leaf) for leaf in sw.tree.leaves(program.function(np, sw, *placed))]
    assert_same(found, rows(results, "jax", program))


@each_program
def test_it_verifies_and_propagates(program: Program) -> None:
    module = traced(program)
    module.verify()
    propagated = module.propagate()
    propagated.verify()
    assert sw.parse(propagated.as_text()).as_text() == propagated.as_text()
