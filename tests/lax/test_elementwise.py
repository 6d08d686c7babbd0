# SPDX-License-Identifier: Apache-2.0
"""The elementwise functions of `sw.lax` against JAX's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.lax.against_jax import check, check_gradient

X = np.array([[-3.5, -1.2, -0.4, 0.0, 0.3, 0.9, 2.5], [7.1, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-3]])
POSITIVE = np.array([[0.1, 0.7, 1.0, 1.5, 2.2], [3.7, 8.0, 21.5, 100.0, 0.01]])
SMALL = np.linspace(-0.95, 0.95, 7)
INTEGERS = np.array([[0, 1, -1, 5, -128], [127, 64, -64, 7, 3]], np.int8)

CASES: list[tuple[str, tuple[Any, ...]]] = [
    *((name, (X,)) for name in ("erf", "erfc", "is_finite", "logistic", "bessel_i1e")),
    *((name, (POSITIVE,)) for name in ("lgamma", "digamma", "rsqrt")),
    ("erf_inv", (SMALL,)),
    ("polygamma", (np.full((2, 5), 2.0), POSITIVE)),
    ("zeta", (np.full((2, 5), 2.5), POSITIVE)),
    ("clamp", (-1.0, X, 2.0)),
    ("clamp", (np.full(X.shape, -1.0), X, np.abs(X))),
    ("rem", (X[0], np.array([2.0, -0.5, 0.3, 1.0, 2.0, -2.0, 1.0]))),
    ("rem", (INTEGERS, np.array([[3, 0, 2, -2, 5], [-7, 64, 3, 2, -3]], np.int8))),
    ("population_count", (INTEGERS,)),
    ("clz", (INTEGERS,)),
    ("shift_right_logical", (INTEGERS, np.array([[1, 2, 3, 9, 7], [0, 1, 2, 3, 4]], np.int8))),
]
CLOSE = {"lgamma": 1e-11, "digamma": 1e-11, "zeta": 1e-10, "polygamma": 1e-9}


@pytest.mark.parametrize(("name", "args"), CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CASES)])
def test_results_are_those_of_jax(name: str, args: tuple[Any, ...]) -> None:
    check(name, *args, rtol=CLOSE.get(name, 1e-13), atol=1e-15)


@pytest.mark.parametrize("name", ["erf", "erfc", "logistic", "bessel_i1e"])
@pytest.mark.parametrize("dtype", [np.float32, sw.bfloat16, np.float16], ids=lambda d: np.dtype(d).name)
def test_dtypes_stay(name: str, dtype: Any) -> None:
    check(name, X[0].astype(dtype), rtol=2e-2 if np.dtype(dtype).itemsize == 2 else 1e-5)


@pytest.mark.parametrize(
    ("name", "x"),
    [("erf", SMALL), ("erfc", SMALL), ("erf_inv", SMALL), ("logistic", SMALL), ("bessel_i1e", SMALL + 2)]
    + [(name, POSITIVE) for name in ("lgamma", "digamma", "rsqrt")],
)
def test_gradients_are_those_of_jax(name: str, x: np.ndarray) -> None:
    check_gradient(name, x, rtol=1e-8)


def test_bits() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    check("bitcast_convert_type", x, new_dtype=np.int32)
    check("bitcast_convert_type", x, new_dtype=np.uint8)
    check("bitcast_convert_type", np.arange(16, dtype=np.uint8).reshape(2, 2, 4), new_dtype=np.float32)
    check("convert_element_type", x, new_dtype=np.int16)
    check("reduce_precision", x / 3, exponent_bits=5, mantissa_bits=4)


def test_python_numbers_take_the_dtype_of_the_array() -> None:
    x = np.array([-3, 0, 3], np.float32)
    assert sw.lax.clamp(-1, x, 1).dtype == np.float32
    assert sw.lax.rem(x, 2).dtype == np.float32
    traced = sw.jit(lambda x, top: sw.lax.clamp(-1, x, top), mesh=sw.Mesh({"x": 3}))(x, 2)
    np.testing.assert_array_equal(traced, [-1, 0, 2])
