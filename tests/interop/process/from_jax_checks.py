# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX in programs of Shardwise give JAX's values and gradients. Runs in a process of its own."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import shardwise as sw
from tests.interop.process.jax_functions import FUNCTIONS, JaxCase

MESHES = {"whole": sw.Mesh({"x": 1}), "8 devices": sw.Mesh({"x": 4, "y": 2})}
each_function = pytest.mark.parametrize("case", FUNCTIONS, ids=[case.name for case in FUNCTIONS])


def derivatives(function: Any, library: Any, orders: int) -> Any:
    """The value, the gradient, and the gradient of the squared gradient."""

    def squares(first: Any, *rest: Any) -> Any:
        leaves = jax.tree.leaves(library.grad(function)(first, *rest))
        return sum(((leaf * leaf).sum() for leaf in leaves[1:]), (leaves[0] * leaves[0]).sum())

    def both(first: Any, *rest: Any) -> Any:
        found = library.value_and_grad(function)(first, *rest)
        return (found, library.grad(squares)(first, *rest)) if orders == 2 else found

    return both


@each_function
def test_values_and_gradients_are_those_of_jax(case: JaxCase) -> None:
    expected = jax.tree.leaves(jax.jit(derivatives(case.function, jax, case.orders))(*case.arguments))
    function = sw.from_jax(case.function)
    for name, mesh in list(MESHES.items())[FUNCTIONS.index(case) % 4 != 0 :]:
        spec = sw.P("x") if name != "whole" else sw.UNSPECIFIED
        arguments = list(case.arguments)
        first = jax.tree.leaves(arguments[0])[0]
        is_split = mesh.size > 1 and first is arguments[0]
        options: Any = {"in_shardings": (spec, *[None] * (len(arguments) - 1))} if is_split else {}
        program = sw.jit(derivatives(function, sw, case.orders), mesh=mesh, **options)
        found = jax.tree.leaves(program(*arguments))
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected):
            want = np.asarray(theirs)
            scale = max(1.0, float(np.abs(want).max(initial=0)))
            assert (ours.shape, ours.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(
                np.asarray(ours), want, rtol=2e-4, atol=3e-5 * scale, err_msg=f"{name} {case.name}"
            )
