# SPDX-License-Identifier: Apache-2.0
"""``sw.at(x, index)``: one function as plain NumPy, traced, on sharded arrays, under grad and vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4, "y": 2})
RNG = np.random.default_rng(3)
X = RNG.normal(size=(7, 4))
IDS = np.array([3, 0, -1, 3])
V = RNG.normal(size=(4, 4))

# Functions of x, ids and values.
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "set": lambda x, i, v: sw.at(x, i[:3]).set(v[:3]),
    "set in a tuple": lambda x, i, v: sw.at(x, (i[:3], slice(1, 3))).set(v[:3, :2]),
    "set a row": lambda x, i, v: sw.at(x, 2).set(v[0]),
    "set a box": lambda x, i, v: sw.at(x, (slice(1, 6, 2), Ellipsis)).set(7),
    "add": lambda x, i, v: sw.at(x, i).add(v),
    "add a number": lambda x, i, v: sw.at(x, i).add(1.5),
    "subtract": lambda x, i, v: sw.at(x, i).subtract(v),
    "multiply": lambda x, i, v: sw.at(x, i).multiply(v),
    "mul": lambda x, i, v: sw.at(x, (slice(None), 1)).mul(3),
    "divide": lambda x, i, v: sw.at(x, i).divide(v + 4),
    "divide a box": lambda x, i, v: sw.at(x, (slice(2, 4), 1)).divide(3.0),
    "power": lambda x, i, v: sw.at(np.abs(x) + 1, i[:3]).power(v[:3]),
    "traced mask": lambda x, i, v: sw.at(x, x > 0).set(0.5),
    "traced mask of rows": lambda x, i, v: sw.at(x, x[:, 0] > 0).add(v[0, 0]),
    "divide at a traced mask": lambda x, i, v: sw.at(x, x > 0.1).divide(4.0),
    "power of a mask": lambda x, i, v: sw.at(x, np.arange(7) > 4).power(2),
    "min": lambda x, i, v: sw.at(x, i).min(v),
    "max": lambda x, i, v: sw.at(x, (i, 1)).max(v[0]),
    "get": lambda x, i, v: sw.at(x, (i, slice(1))).get(),
    "chained": lambda x, i, v: sw.at(sw.at(x, i).add(v), 0).set(v[1] * 2),
    "into zeros": lambda x, i, v: sw.at(np.zeros((7, 4)), i).add(v) + x,
    "into a constant, at known ids": lambda x, i, v: sw.at(np.ones((7, 4)), [0, 0, 5]).add(v[:3]) * x,
    "list of values": lambda x, i, v: sw.at(x, (0, slice(2))).set([v[0, 0], v[1, 1]]),
    "drop": lambda x, i, v: sw.at(x, i * 3).add(v, mode="drop"),
    "drop known": lambda x, i, v: sw.at(x, [0, 9]).set(v[:2], mode="drop"),
    "drop a number": lambda x, i, v: sw.at(x, (9, 1)).set(5, mode="drop"),
    "clip": lambda x, i, v: sw.at(x, i * 3).add(v, mode="clip"),
    "clip known": lambda x, i, v: sw.at(x, ([0, 9, -20], slice(None, None, -1))).add(v[:3], mode="clip"),
    "fill": lambda x, i, v: sw.at(x, (i * 3, slice(None, None, -2))).get(mode="fill", fill_value=-1),
    "fill with NaN": lambda x, i, v: sw.at(x, [7, 1]).get(mode="fill"),
    "fill a number": lambda x, i, v: sw.at(x, (None, -8)).get(mode="fill", fill_value=2),
    "get clipped": lambda x, i, v: sw.at(x, (Ellipsis, [5, -9, 1])).get(mode="clip"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_function_is_plain_numpy_and_a_program(name: str) -> None:
    function = FUNCTIONS[name]
    before = X.copy()
    want = function(X, IDS, V)
    assert type(want) is np.ndarray
    np.testing.assert_array_equal(X, before)  # never written
    for specs in ((None, None, None), (P("x"), P("x"), P(None, "y")), (P("y", "x"), None, P("x"))):
        sw.testing.assert_matches_unpartitioned(function, X, IDS, V, mesh=MESH, in_shardings=specs)
    held = sw.device_put(X, sw.NamedSharding(MESH, P("x")))
    got = function(held, IDS, V)
    assert isinstance(got, sw.Array)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-15)


@pytest.mark.parametrize("name", ["set", "add", "subtract", "chained", "into zeros", "get", "drop", "list of values"])
def test_gradients_are_those_of_differences(name: str) -> None:
    function = FUNCTIONS[name]
    weights = RNG.normal(size=function(X, IDS, V).shape)

    def loss(x: Any, v: Any, i: Any) -> Any:
        return np.sum(function(x, i, v) * weights)

    program = sw.jit(sw.grad(loss, (0, 1)), mesh=MESH, in_shardings=(P("x"), P(None, "y"), None))
    gradients = [np.asarray(gradient) for gradient in program(X, V, IDS)]
    assert [gradient.shape for gradient in gradients] == [X.shape, V.shape]
    for k, gradient in enumerate(gradients):
        arguments = [X, V]
        for index in np.ndindex(*arguments[k].shape):
            step = np.zeros_like(arguments[k])
            step[index] = 0.5  # the loss is linear
            ends = [loss(*(a + s * step if j == k else a for j, a in enumerate(arguments)), IDS) for s in (1, -1)]
            np.testing.assert_allclose(gradient[index], ends[0] - ends[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["multiply", "divide", "divide a box", "power", "power of a mask", "mul"])
def test_gradients_of_products(name: str) -> None:
    weights = RNG.normal(size=X.shape)
    ids = np.array([3, 0, -1, 5])

    def loss(x: Any, v: Any) -> Any:
        return np.sum(FUNCTIONS[name](x, ids, v) * weights)

    program = sw.jit(sw.grad(loss, (0, 1)), mesh=MESH, in_shardings=(P("x"), P(None, "y")))
    gradients = [np.asarray(gradient) for gradient in program(X, V)]
    assert [gradient.shape for gradient in gradients] == [X.shape, V.shape]
    for k, gradient in enumerate(gradients):
        arguments = [X, V]
        for index in np.ndindex(*arguments[k].shape):
            step = np.zeros_like(arguments[k])
            step[index] = 1e-6
            ends = [loss(*(a + s * step if j == k else a for j, a in enumerate(arguments))) for s in (1, -1)]
            np.testing.assert_allclose(gradient[index], (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-6)


def test_under_vmap_and_in_an_eager_gradient() -> None:
    want = np.zeros((4, 5))
    np.add.at(want, (np.arange(4), [0, 4, 4, -2]), V[:, 0])
    rows = sw.jit(sw.vmap(lambda v, i: sw.at(np.zeros(5), i).add(v)), mesh=MESH)(V[:, 0], np.array([0, 4, 4, -2]))
    np.testing.assert_array_equal(np.asarray(rows), want)
    sw.set_mesh(MESH)
    try:
        gradient = sw.grad(lambda x: np.sum(sw.at(x, [0, 0]).multiply(2.0) ** 2))(X)
    finally:
        sw.set_mesh(None)
    np.testing.assert_array_equal(np.asarray(gradient)[1:], 2 * X[1:])


def test_what_is_known_stays_numpys_in_a_traced_function() -> None:
    def function(x: Any) -> Any:
        mask = sw.at(np.zeros(7, bool), [1, 2]).set(True)
        assert type(mask) is np.ndarray
        return x[mask]

    np.testing.assert_array_equal(np.asarray(sw.jit(function, mesh=MESH)(X)), X[1:3])


def test_dtypes_of_a_copy_are_those_of_the_array() -> None:
    np.testing.assert_array_equal(sw.at(np.arange(4), 1).add(2.9), [0, 3, 2, 3])
    assert sw.at(np.zeros(3, np.float32), [0]).set(np.float64(2)).dtype == np.float32
    np.testing.assert_array_equal(sw.at([1, 2, 3], -1).set(9), [1, 2, 9])
    np.testing.assert_array_equal(sw.at(np.arange(4), [2, 3]).power(2), [0, 1, 4, 9])
    for x in (np.arange(4), sw.device_put(np.arange(4), sw.NamedSharding(MESH, P("x")))):
        with pytest.raises(sw.DTypeError) as caught:
            sw.at(x, 1).divide(2)
        text = "x.at: divide needs an array of floats, since the dtype stays, got int64; convert the array with astype"
        assert str(caught.value) == f"{text} (at {__file__}:{caught.tb.tb_lineno})"
    with pytest.raises(OverflowError):
        sw.at(np.zeros(3, np.uint8), 0).set(300)
    with pytest.raises(
        TypeError, match=r"^x\.at\[\.\.\.\]\.set: the options are mode, .* got modes='drop'; leave it out \(at "
    ):
        sw.at(X, 0).set(1, modes="drop")


def test_known_numbers_outside_are_errors_for_arrays_of_any_kind() -> None:
    held = sw.device_put(X, sw.NamedSharding(MESH, P("x")))
    for x in (X, held):
        for index in ([0, 9], 9):
            with pytest.raises(IndexError) as caught:
                sw.at(x, index).add(1)
            line = caught.tb.tb_lineno
            text = f"an index on dim 0 of size 7 must be in [-7, 7), got 9 (at {__file__}:{line})"
            assert str(caught.value) == f"indexing: {text}"
    with pytest.raises(sw.UnsupportedError, match=r"x.at: mode must be one of 'drop', .*, or None, got 'wrap'"):
        sw.at(X, 0).set(1, mode="wrap")


def test_values_must_fit_what_the_index_names() -> None:
    np.testing.assert_array_equal(
        np.asarray(sw.jit(lambda x: x.at[1:3, 0].set(np.ones((1, 1, 2))), mesh=MESH)(X)), sw.at(X, np.s_[1:3, 0]).set(1)
    )
    for function in (lambda x: x.at[[0, 1]].set(np.ones(3)), lambda x: x.at[:2].set(np.ones(3))):
        with pytest.raises(sw.ShapeError) as caught:
            sw.jit(function, mesh=MESH)(X)
        text = "x.at: values must broadcast to the shape that the index names, (2, 4), got (3,)"
        assert str(caught.value).startswith(f"{text} (at {__file__}:")
