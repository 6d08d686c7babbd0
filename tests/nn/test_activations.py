# SPDX-License-Identifier: Apache-2.0
"""The activation functions of `sw.nn` against JAX's."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.nn import against_jax
from tests.nn.against_jax import JAX

X = np.array([[-7.5, -3.0, -1.0, -0.3, 0.0], [0.4, 1.0, 2.9, 6.0, 11.0], [1e-3, -1e-3, 0.6931, 3.0, -6.0],
              [0.1, 0.2, -2.5, 20.0, -20.0]])  # fmt: skip
SPECIAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e4, -1e4, 1e-30])
NAMES = ["celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_tanh", "identity", "leaky_relu", "log1mexp"]
NAMES += ["log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus"]
NAMES += ["sparse_sigmoid", "squareplus"]
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("gelu", {"approximate": False}), ("elu", {"alpha": 0.5}), ("celu", {"alpha": 0.5}), ("squareplus", {"b": 2.0}),
    ("leaky_relu", {"negative_slope": 0.25}),
]  # fmt: skip
CASES = [*((name, {}) for name in NAMES), *OPTIONS]
IDS = [f"{name}{'-' if options else ''}{''.join(options)}" for name, options in CASES]


check, check_gradient = (partial(f, is_elementwise=True) for f in (against_jax.check, against_jax.check_gradient))


def inputs(name: str, x: np.ndarray) -> np.ndarray:
    return np.abs(x) if name == "log1mexp" else x


def both(name: str, options: dict[str, Any]) -> tuple[Any, Any]:
    return partial(getattr(sw.nn, name), **options), partial(getattr(JAX.nn, name), **options)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_results_and_gradients_are_those_of_jax(name: str, options: dict[str, Any]) -> None:
    x = inputs(name, X)
    check(*both(name, options), x.astype(np.float32))
    check_gradient(*both(name, options), x)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_bfloat16_stays_bfloat16(name: str, options: dict[str, Any]) -> None:
    check(*both(name, options), inputs(name, X[1]).astype(sw.bfloat16))


@pytest.mark.parametrize("name", NAMES)
def test_special_values(name: str) -> None:
    check(*both(name, {}), inputs(name, SPECIAL).astype(np.float32), atol=0)
    finite = inputs(name, SPECIAL[~np.isnan(SPECIAL)])
    check_gradient(*both(name, {}), finite)


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
    ours, theirs = partial(sw.nn.glu, axis=axis), partial(JAX.nn.glu, axis=axis)
    against_jax.check(ours, theirs, x.astype(np.float32))
    against_jax.check_gradient(ours, theirs, x)
    with pytest.raises(sw.ShapeError, match=r"nn.glu: the size along axis 0 must be even"):
        sw.nn.glu(x[:3], axis=0)


def test_other_names() -> None:
    assert sw.nn.swish is sw.nn.silu
    assert sw.nn.hard_swish is sw.nn.hard_silu


def test_no_complex_numbers() -> None:
    with pytest.raises(sw.DTypeError, match=r"nn.mish: x must be of real numbers, got complex128"):
        sw.nn.mish(np.array([1j]))
