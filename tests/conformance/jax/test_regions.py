# SPDX-License-Identifier: Apache-2.0
"""JAX's texts of loops and branches run on one device and on meshes, and give what JAX gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.support.once_per_run import written_by

WORKER = "tests.conformance.jax.regions_worker"
PROGRAMS = re.findall(r'^    "(\w+)": \(', Path(__file__).with_name("regions_worker.py").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def by_jax(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, WORKER, "out.npz"))


MESHES = {"one device": {}, "8 devices": {"x": 8}, "uneven": {"x": 2, "y": 3}}
MODES: list[dict[str, bool]] = [{}, {"faithful": True, "poison": True}]


def on_mesh(text: str, axes: dict[str, int]) -> str:
    """The text on a mesh; the leading dims of each array argument are sharded over its axes."""

    def annotated(argument: re.Match[str]) -> str:
        dims = [f'{{"{axis}"}}' for axis in axes][: argument[2].count("x")]
        dims += ["{?}"] * (argument[2].count("x") - len(dims))
        return f"{argument[1]}: tensor<{argument[2]}f32> {{sdy.sharding = #sdy.sharding<@mesh, [{', '.join(dims)}]>}}"

    if not axes:
        return text
    head, body = text.split(") -> ", 1)
    head = re.sub(r"(%arg\d+): tensor<((?:\d+x)+)f32>", annotated, head)
    sizes = ", ".join(f'"{axis}"={size}' for axis, size in axes.items())
    return f"{head}) -> {body}".replace("{\n", f"{{\n  sdy.mesh @mesh = <[{sizes}]>\n", 1)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_text_of_jax_computes_what_jax_computes(by_jax: Any, name: str, mesh: str) -> None:
    def arrays(kind: str) -> list[np.ndarray]:
        return [by_jax[key] for key in by_jax.files if key.startswith(f"{name}/{kind}/")]

    program = sw.parse(on_mesh(str(by_jax[f"{name}/text"]), MESHES[mesh])).compile()
    assert dict(program.mesh.shape) == (MESHES[mesh] or {"device": 1})
    for mode in MODES:
        returned = program.run(*arrays("argument"), **mode)
        results = [np.asarray(result) for result in (returned if isinstance(returned, tuple) else (returned,))]
        assert len(results) == len(arrays("result"))
        for result, expected in zip(results, arrays("result")):
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=2e-5 * float(np.max(np.abs(expected))))


def test_all_programs_are_tested(by_jax: Any) -> None:
    assert [key.removesuffix("/text") for key in by_jax.files if key.endswith("/text")] == PROGRAMS
