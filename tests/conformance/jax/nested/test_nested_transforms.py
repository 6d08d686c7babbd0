# SPDX-License-Identifier: Apache-2.0
"""Transforms inside transforms give what JAX gives, on sharded arrays and with an annotation inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.jax.nested.nested_programs import NESTED, Library, X, nested
from tests.support.once_per_run import written_by

MESH = sw.Mesh({"x": 2, "y": 2})
OURS = Library(np, sw, sw, lambda x: sw.shard(x, sw.P("x")))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, "tests.conformance.jax.nested.nested_worker", "out.npz"))


@pytest.mark.parametrize("names", NESTED, ids=" ".join)
def test_numbers_are_those_of_jax(names: tuple[str, ...], results: Any) -> None:
    function = sw.jit(nested(OURS, names), mesh=MESH, in_shardings=sw.P("y"))
    wanted = results.get(" ".join(names))
    if wanted is None:
        with pytest.raises(sw.UnsupportedError, match="reverse"):
            function(X)
        return
    np.testing.assert_allclose(np.asarray(function(X)), wanted, rtol=1e-12, atol=1e-12)
