# SPDX-License-Identifier: Apache-2.0
"""Scripts of `to_source` give the numbers of the program, without shardwise."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.interop.nearness import assert_near
from tests.interop.process.handed_programs import PROGRAMS, Handed
from tests.interop.process.to_jax_checks import MESHES, MIXED, X, compiled
from tests.partition.test_meshes import PROGRAMS as ON_MESHES

NAMES = sorted(MESHES)


@pytest.mark.parametrize("handed", PROGRAMS, ids=lambda handed: handed.name)
def test_a_script_gives_the_same_numbers(handed: Handed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled(handed, MESHES[NAMES[PROGRAMS.index(handed) % len(NAMES)]])
    expected = [np.asarray(x) for x in sw.tree.leaves(program(*handed.arguments))]
    file = tmp_path / "script.py"
    program.to_source("jax", file)
    monkeypatch.setitem(sys.modules, "shardwise", None)
    was = jax.config.jax_enable_x64
    try:
        script: dict[str, Any] = runpy.run_path(str(file))
        results = script["main"](*jax.tree.leaves(handed.arguments))
    finally:
        jax.config.update("jax_enable_x64", was)
    assert len(results) == len(expected)
    for got, want in zip(results, expected):
        assert_near(got, want, handed.exact)


@pytest.mark.parametrize("name", ["other ids", "two meshes in an op", "split in 3 on 2x3"])
def test_a_script_with_results_on_a_second_mesh(name: str, tmp_path: Path) -> None:
    mesh, function, arrays = ON_MESHES[name]
    program = sw.jit(function, mesh=mesh).lower(*arrays).compile()
    file = tmp_path / "script.py"
    program.to_source("jax", file)
    for got, want in zip(runpy.run_path(str(file))["main"](*arrays), sw.tree.leaves(program(*arrays))):
        assert_near(got, want, False)


def test_a_script_with_arguments_on_a_second_mesh(tmp_path: Path) -> None:
    there = sw.NamedSharding(MIXED, P("v", "u"))
    program = sw.jit(np.tanh, mesh=MESHES["4x2"], in_shardings=there, out_shardings=there).lower(X).compile()
    program.to_source("jax", tmp_path / "script.py")
    (got,) = runpy.run_path(str(tmp_path / "script.py"))["main"](X)
    assert_near(got, np.tanh(X), False)
