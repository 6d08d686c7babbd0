# SPDX-License-Identifier: Apache-2.0
"""The activation functions of `sw.nn` against JAX's."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.nn.against_jax import JAX, check, check_gradient, near, of_jax, weighted

X = np.array([[-7.5, -3.0, -1.0, -0.3, 0.0], [0.4, 1.0, 2.9, 6.0, 11.0], [1e-3, -1e-3, 0.6931, 3.0, -6.0],
              [0.1, 0.2, -2.5, 20.0, -20.0]])  # fmt: skip
SPECIAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e4, -1e4, 1e-30])
FINITE = SPECIAL[~np.isnan(SPECIAL)]
NAMES = ["celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_tanh", "identity", "leaky_relu", "log1mexp"]
NAMES += ["log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus"]
NAMES += ["sparse_sigmoid", "squareplus", "tanh"]
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("gelu", {"approximate": False}), ("elu", {"alpha": 0.5}), ("celu", {"alpha": 0.5}), ("squareplus", {"b": 2.0}),
    ("leaky_relu", {"negative_slope": 0.25}),
]  # fmt: skip
CASES = [*((name, {}) for name in NAMES), *OPTIONS]
IDS = [f"{name}{'-' if options else ''}{''.join(options)}" for name, options in CASES]


def inputs(name: str, x: np.ndarray) -> np.ndarray:
    return np.abs(x) if name == "log1mexp" else x


def ours(name: str, options: dict[str, Any]) -> Any:
    return partial(getattr(sw.nn, name), **options)


@cache
def expected(x: str, dtype: str, is_gradient: bool) -> list[np.ndarray]:
    """The results, or the gradients, of all functions: one program of XLA is compiled sooner than many."""

    def of(x: Any) -> list[Any]:
        found = []
        for name, options in CASES:
            function = partial(getattr(JAX.nn, name), **options)
            at = JAX.numpy.abs(x) if name == "log1mexp" else x
            found.append(JAX.grad(weighted(function))(at) if is_gradient else function(at))
        return found

    return of_jax(of, [{"X": X, "SPECIAL": SPECIAL, "FINITE": FINITE}[x].astype(dtype)])


def result(x: str, dtype: Any, case: int, is_gradient: bool = False) -> list[np.ndarray]:
    return [expected(x, np.dtype(dtype).name, is_gradient)[case]]


@pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
def test_results_and_gradients_are_those_of_jax(case: int) -> None:
    name, options = CASES[case]
    x = inputs(name, X)
    check(ours(name, options), result("X", np.float32, case), x.astype(np.float32), is_elementwise=True)
    check_gradient(ours(name, options), result("X", np.float64, case, True), x, is_elementwise=True)


@pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
def test_bfloat16_stays_bfloat16(case: int) -> None:
    name, options = CASES[case]
    found = ours(name, options)(inputs(name, X).astype(sw.bfloat16))
    near(found, result("X", sw.bfloat16, case), atol=1e-2)


@pytest.mark.parametrize("case", range(len(NAMES)), ids=NAMES)
def test_special_values(case: int) -> None:
    name = NAMES[case]
    special = inputs(name, SPECIAL).astype(np.float32)
    check(ours(name, {}), result("SPECIAL", np.float32, case), special, is_elementwise=True, atol=0)
    gradients = result("FINITE", np.float64, case, True)
    check_gradient(ours(name, {}), gradients, inputs(name, FINITE), is_elementwise=True)


def test_relu_of_nan_is_nan() -> None:
    assert np.isnan(sw.nn.relu(np.float32(np.nan)))
    assert np.isnan(sw.nn.relu6(np.float32(np.nan)))


def test_relu_keeps_integers_and_others_make_floats() -> None:
    assert sw.nn.relu(np.array([-1, 2], np.int8)).dtype == np.int8
    assert sw.nn.sigmoid(np.array([-1, 2], np.int8)).dtype == np.float64
    np.testing.assert_array_equal(sw.nn.relu([-1.0, 2.0]), [0.0, 2.0])


@pytest.mark.parametrize("axis", [0, -1])
def test_glu(axis: int) -> None:
    x = np.linspace(-3, 3, 24).reshape(4, 6)
    glu, theirs = partial(sw.nn.glu, axis=axis), partial(JAX.nn.glu, axis=axis)
    check(glu, theirs, x.astype(np.float32))
    check_gradient(glu, theirs, x)
    with pytest.raises(sw.ShapeError, match=r"nn.glu: the size along axis 0 must be even"):
        sw.nn.glu(x[:3], axis=0)


def test_other_names() -> None:
    assert sw.nn.swish is sw.nn.silu
    assert sw.nn.hard_swish is sw.nn.hard_silu


def test_no_complex_numbers() -> None:
    with pytest.raises(sw.DTypeError, match=r"nn.mish: x must be of real numbers, got complex128"):
        sw.nn.mish(np.array([1j]))
