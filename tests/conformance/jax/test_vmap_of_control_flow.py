# SPDX-License-Identifier: Apache-2.0
"""vmap of loops and branches gives what `jax.vmap` gives, whole and with the examples on several devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.jax.vmapped_programs import MAPPED, Mapped
from tests.support.once_per_run import written_by

MESH = sw.Mesh({"x": 2, "y": 2})
MODES: tuple[dict[str, bool], ...] = ({}, {"faithful": True, "poison": True})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, "tests.conformance.jax.vmapped_worker", "out.npz"))


@pytest.mark.parametrize("mapped", MAPPED, ids=[mapped.name for mapped in MAPPED])
def test_numbers_are_those_of_jax(mapped: Mapped, results: Any) -> None:
    names = sorted((n for n in results if n.startswith(f"{mapped.name}/")), key=lambda n: int(n.split("/")[1]))
    specs = tuple(
        sw.P(*[None] * axis, "x") if axis is not None and np.ndim(x) > axis else None
        for axis, x in zip(mapped.axes[0], mapped.inputs)
    )
    function = sw.jit(mapped.of(sw.vmap, np, sw), mesh=MESH, in_shardings=specs)
    program = function.lower(*mapped.inputs).compile()
    for mode in MODES:
        found = sw.tree.leaves(program.run(*mapped.inputs, **mode))
        assert len(found) == len(names)
        for ours, name in zip(map(np.asarray, found), names):
            assert (ours.shape, ours.dtype) == (results[name].shape, results[name].dtype)
            np.testing.assert_allclose(ours, results[name], rtol=1e-5, atol=1e-5)
