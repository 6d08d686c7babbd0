# SPDX-License-Identifier: Apache-2.0
"""Each of these was wrong once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def test_no_element_of_an_array_equals_none() -> None:
    x = sw.device_put(np.arange(3.0), sw.NamedSharding(MESH, sw.P()))
    np.testing.assert_array_equal(x == None, [False] * 3)  # noqa: E711
    np.testing.assert_array_equal(x != None, [True] * 3)  # noqa: E711


BOTH = (0, 1)


def gradients(function: Callable[..., Any], *numbers: float, order: int = 1) -> list[float]:
    """The derivatives of a function of two numbers; of order 2, of its derivative by the first."""
    for _ in range(order - 1):
        function = sw.grad(function)
    found = sw.jit(sw.grad(function, BOTH), mesh=MESH)(*numbers)
    return [float(g) for g in found]


@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, -3.5, 1e308, np.inf, -np.inf])
@pytest.mark.parametrize("function", [np.logaddexp, np.logaddexp2])
def test_equal_arguments_of_logaddexp_share_the_gradient(function: np.ufunc, number: float) -> None:
    assert gradients(function, number, number) == [0.5, 0.5]


@pytest.mark.parametrize(("function", "log"), [(np.logaddexp, 1.0), (np.logaddexp2, np.log(2))])
def test_logaddexp_is_smooth_where_its_arguments_are_equal(function: np.ufunc, log: float) -> None:
    np.testing.assert_allclose(gradients(function, 2.0, 2.0, order=2), [log / 4, -log / 4], rtol=1e-14)


def test_a_logistic_regression_at_zero_takes_the_right_first_step() -> None:
    x, y = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]]), np.array([1.0, 0.0, 1.0])

    def loss(w):
        z = x @ w
        return np.mean(np.logaddexp(0, z) - y * z)

    gradient = sw.jit(sw.grad(loss), mesh=MESH)(np.zeros(2))
    np.testing.assert_allclose(gradient, x.T @ (0.5 - y) / 3, rtol=1e-14)


@pytest.mark.parametrize("a", [6.0, -6.0, 5.0, -5.0, 3.0, 0.0])
@pytest.mark.parametrize("b", [3.0, -3.0])
def test_remainders_at_multiples_have_the_gradient_of_their_neighbours(a: float, b: float) -> None:
    assert gradients(lambda a, b: a % b, a, b) == [1.0, -np.floor(a / b)]
    assert gradients(lambda a, b: np.divmod(a, b)[1], a, b) == [1.0, -np.floor(a / b)]
    assert gradients(np.fmod, a, b) == [1.0, -np.trunc(a / b)]
    assert gradients(np.floor_divide, a, b) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("function", "numbers", "expected"),
    [
        (np.floor_divide, (1.0, 0.0), [0.0, 0.0]),
        (np.nextafter, (1.0, 1.0), [0.0, 0.0]),
        (np.copysign, (-0.0, 1.0), [1.0, 0.0]),
        (np.copysign, (2.0, -1.0), [-1.0, 0.0]),
        (np.hypot, (0.0, 0.0), [0.5, 0.5]),
        (np.hypot, (3.0, 4.0), [0.6, 0.8]),
        (np.fmax, (1.0, 1.0), [0.0, 1.0]),
        (np.fmin, (1.0, 1.0), [0.0, 1.0]),
        (lambda a, b: np.abs(a) + np.abs(b), (0.0, -0.0), [1.0, 1.0]),
        (lambda a, b: np.modf(a)[0] + np.modf(b)[0], (-2.0, -0.0), [1.0, 1.0]),
        (lambda a, b: np.max(np.stack([a, b]), initial=2.0), (2.0, 1.0), [0.5, 0.0]),
        (lambda a, b: np.linalg.norm(np.stack([a, b]), np.inf), (0.0, 0.0), [0.25, 0.25]),
    ],
)
def test_gradients_where_there_is_no_derivative(function, numbers, expected) -> None:
    np.testing.assert_allclose(gradients(function, *numbers), expected, rtol=1e-15)


def test_remainders_keep_the_sign_of_their_zeros() -> None:
    a, b = (np.array(x) for x in zip(*[(x, y) for x in (6.0, -6.0, 0.0, -0.0) for y in (3.0, -3.0, np.inf, -np.inf)]))
    for function in (np.remainder, np.fmod, lambda a, b: np.modf(a)[0]):
        result, expected = np.asarray(sw.jit(function, mesh=MESH)(a, b)), function(a, b)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
