# SPDX-License-Identifier: Apache-2.0
"""Each of these was wrong once."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw

MESH = sw.Mesh({"x": 4, "y": 2})


def test_recording_goes_on_after_a_function_under_grad_raised() -> None:
    def raises(x):
        raise ValueError("no")

    def f(x):
        with pytest.raises(ValueError, match="no"):
            sw.grad(raises)(x)
        return x + 1

    np.testing.assert_array_equal(sw.jit(f, mesh=MESH)(np.arange(3.0)), [1, 2, 3])


def test_repeated_argnums_give_the_gradient_each_time() -> None:
    f = sw.jit(sw.grad(lambda x, y: (x * x * y).sum(), (0, 0, 1)), mesh=MESH)
    first, again, other = f(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.testing.assert_array_equal(first, [6, 16])
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(other, [1, 4])


def test_grad_of_a_jitted_function_runs_on_its_mesh_and_compiles_once() -> None:
    traces = []

    @sw.jit(mesh=MESH)
    def f(x):
        traces.append(x)
        return (sw.split(x, 0, "x") ** 2).sum()

    gradient = sw.grad(f)
    for scale in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(gradient(np.full(4, scale)), np.full(4, 2 * scale))
    assert len(traces) == 1


def test_trace_and_linalg_trace_are_different_functions_on_arrays() -> None:
    values = np.arange(27.0).reshape(3, 3, 3)
    x = sw.device_put(values, sw.NamedSharding(MESH, sw.P()))
    for function in (np.trace, np.linalg.trace, np.diagonal, np.linalg.diagonal, np.trace):
        np.testing.assert_array_equal(function(x), function(values))


def test_an_array_is_not_equal_to_none() -> None:
    x = sw.device_put(np.arange(3.0), sw.NamedSharding(MESH, sw.P()))
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
