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
from tests.interop.nearness import assert_near
from tests.interop.process.handed_programs import PROGRAMS, Handed
from tests.interop.process.to_jax_checks import MESHES, compiled

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
