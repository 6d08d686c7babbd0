# SPDX-License-Identifier: Apache-2.0
"""Programs handed over to JAX donate the arguments that the program donates. Runs in a process of its own."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.interop.process.to_jax_checks import MESH, MIXED, X


def test_donated_arguments_are_deleted() -> None:
    x = X[:8]
    program = sw.jit(lambda x: x + 1, mesh=MESH, in_shardings=(P("x"),), donate_argnums=0).lower(x).compile()
    function = program.to_jax()
    (placed,) = function.put(x)
    np.testing.assert_array_equal(np.asarray(function(placed)), x + 1)
    assert placed.is_deleted()
    with pytest.raises(sw.DeletedArrayError, match="donated before"):
        function(placed)


def test_a_donated_argument_without_a_result_of_its_type_is_deleted() -> None:
    """One that nothing reads, and one that is only summed up."""
    for function in (lambda x, y: x + 1, lambda x, y: x.sum() + y.sum()):
        program = sw.jit(function, mesh=MESH, in_shardings=(P("x"), P("x")), donate_argnums=1)
        handed = program.lower(X[:8], X[:8]).compile().to_jax()
        placed = handed.put(X[:8], X[:8])
        handed(*placed)
        assert [x.is_deleted() for x in placed] == [False, True]
        with pytest.raises(sw.DeletedArrayError, match="donated before"):
            handed(*placed)


def test_a_donated_argument_on_a_second_mesh_is_deleted() -> None:
    there = sw.NamedSharding(MIXED, P("v"))
    program = sw.jit(lambda x: x + 1, mesh=MESH, in_shardings=there, out_shardings=there, donate_argnums=0)
    function = program.lower(X[:8]).compile().to_jax()
    placed = function.put(X[:8])[0]
    np.testing.assert_array_equal(function.get(function(placed)), X[:8] + 1)
    with pytest.raises(sw.DeletedArrayError, match="donated before"):
        function(placed)
