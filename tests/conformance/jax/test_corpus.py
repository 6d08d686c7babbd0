# SPDX-License-Identifier: Apache-2.0
"""The texts of JAX's programs (programs.py) run on the mesh that they name, and their results equal JAX's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.stablehlo.test_text import JAX_PROGRAMS
from tests.support.once_per_run import written_by

WORKER = "tests.conformance.jax.corpus_worker"


@pytest.fixture(scope="module")
def by_jax(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, WORKER, "out.npz"))


@pytest.mark.parametrize("name", JAX_PROGRAMS)
def test_a_text_of_jax_runs_as_in_jax(by_jax: Any, name: str) -> None:
    def arrays(kind: str) -> list[np.ndarray]:
        count = sum(key.startswith(f"{name}/{kind}/") for key in by_jax.files)
        return [by_jax[f"{name}/{kind}/{i}"] for i in range(count)]

    module = sw.parse(str(by_jax[f"{name}/text"]), f"{name}.mlir")
    program = module.compile()
    # The file stores narrow floats as float32. The text of argmin is the function it calls, which takes a flat array.
    avals = program._traced.in_avals
    arguments = [array.astype(aval.dtype).reshape(aval.shape) for array, aval in zip(arrays("argument"), avals)]
    for mode in ({}, {"faithful": True, "poison": True}):
        returned = program.run(*arguments, **mode)
        results = [np.asarray(result) for result in (returned if isinstance(returned, tuple) else (returned,))]
        assert len(results) == len(arrays("result"))
        for result, expected in zip(results, arrays("result")):
            found = result.astype(np.float32) if result.dtype.isbuiltin == 2 else result
            assert found.dtype == expected.dtype
            scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=0).astype(np.float64)
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5 * scale)


def test_every_program_is_tested(by_jax: Any) -> None:
    written = {key.removesuffix("/text") for key in by_jax.files if key.endswith("/text")}
    assert written == set(JAX_PROGRAMS)
