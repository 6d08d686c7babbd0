# SPDX-License-Identifier: Apache-2.0
"""Softmax, its relatives and one-hot vectors of `sw.nn` against JAX's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.nn.against_jax import JAX, MESH, check, check_gradient, near, of_jax, weighted

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 5)) * 3
MASK = RNG.random((4, 5)) < 0.6
MASK[2] = False  # a row of which nothing is included
SPECIAL = np.array([[1e4, -1e4, 0.0], [-np.inf, 2.0, 3.0], [-np.inf] * 3, [np.inf, 1.0, 2.0], [np.nan, 1.0, 2.0]])
FACTORS = RNG.normal(size=(4, 5)) * (X > -2)  # some are 0
LOGSUMEXP = (sw.nn.logsumexp, JAX.nn.logsumexp)
NAMES = ["softmax", "log_softmax", "logsumexp", "logmeanexp"]
AXES = [{"axis": -1}, {"axis": 0}, {"axis": (0, 1)}]


def both(name: str, **options: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return partial(getattr(sw.nn, name), **options), partial(getattr(JAX.nn, name), **options)


CASES = [(name, options) for name in NAMES for options in (*AXES, {"axis": -1, "where": MASK}, {"where": MASK[:1]})]
IDS = [f"{name}-{i % 5}" for i, (name, _) in enumerate(CASES)]


@cache
def expected(dtype: str, is_gradient: bool) -> list[np.ndarray]:
    """JAX's results, or gradients, of all cases: one program of XLA is compiled sooner than many."""

    def of(x: Any) -> list[Any]:
        functions = [both(name, **options)[1] for name, options in CASES]
        return [JAX.grad(weighted(f))(x) if is_gradient else f(x) for f in functions]

    return of_jax(of, [X.astype(dtype)])


@pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
def test_results_are_those_of_jax(case: int) -> None:
    name, options = CASES[case]
    check(both(name, **options)[0], [expected("float32", False)[case]], X.astype(np.float32))


@pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
def test_gradients_are_those_of_jax(case: int) -> None:
    name, options = CASES[case]
    check_gradient(both(name, **options)[0], [expected("float64", True)[case]], X)


@pytest.mark.parametrize("name", NAMES)
def test_special_values(name: str) -> None:
    check(*both(name, axis=-1), SPECIAL)
    check_gradient(*both(name, axis=-1), SPECIAL[:2])
    empty = np.zeros((0, 3))
    near(getattr(sw.nn, name)(empty, axis=-1), of_jax(partial(getattr(JAX.nn, name), axis=-1), [empty]))
    np.testing.assert_array_equal(getattr(sw.nn, name)(np.zeros((2, 0)), axis=-1).shape[0], 2)


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_stays_bfloat16(name: str) -> None:
    check(*both(name, axis=-1), X.astype(sw.bfloat16), atol=4e-2)


def test_a_split_row_exchanges_two_numbers() -> None:
    for function in (sw.nn.softmax, sw.nn.log_softmax, partial(sw.nn.logsumexp, axis=-1)):
        program = sw.jit(function, mesh=sw.Mesh({"x": 4}), in_shardings=P(None, "x")).lower(np.ones((2, 8))).compile()
        text = program.as_text()
        assert text.count("all_reduce") == 2
        assert "all_gather" not in text
        assert "all_to_all" not in text


def with_factors(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return lambda a, b: function(a, b=b, **options)


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": 0, "keepdims": True}], ids=str)
def test_logsumexp_with_factors_and_signs(options: dict[str, Any]) -> None:
    plain, signed = ([with_factors(f, **options, **more) for f in LOGSUMEXP] for more in ({}, {"return_sign": True}))
    check(*plain, X, FACTORS)
    check(*signed, X, FACTORS)
    check_gradient(*signed, X, FACTORS, rtol=1e-10)
    np.testing.assert_allclose(sw.nn.logsumexp(X, b=2, **options), sw.nn.logsumexp(X, **options) + np.log(2))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int8], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(dtype: Any, axis: int) -> None:
    x = np.array([[0, 1, 2], [6, 3, 100]], dtype)
    expected = np.asarray(JAX.nn.one_hot(x, 7, axis=axis))
    near(sw.nn.one_hot(x, 7, axis=axis), [expected])
    run = sw.jit(lambda x: sw.nn.one_hot(sw.shard(x, P("y", "x")), 7, axis=axis), mesh=MESH)
    near(run(x), [expected])
    assert sw.nn.one_hot(x, 3, dtype=sw.bfloat16).dtype == sw.bfloat16
    assert sw.nn.one_hot(x, 300, dtype=bool).sum() == 6


def test_standardize_of_jax() -> None:
    for options in ({}, {"axis": 0}, {"axis": (0, 1)}, {"algorithm": "stable"}, {"epsilon": 0.5, "where": MASK[:1]}):
        check(*both("standardize", **options), X)
    check_gradient(*both("standardize"), X, rtol=1e-9)
    check(*both("standardize", mean=0.5, variance=2.0), X.astype(np.float32))
    check(*both("standardize"), X.astype(sw.bfloat16), atol=6e-2)
    assert np.isnan(of_jax(JAX.nn.standardize, [SPECIAL[3]])).all()
    assert np.isnan(sw.nn.standardize(SPECIAL[3])).all()


def test_what_is_refused() -> None:
    with pytest.raises(sw.ShapeError, match=r"nn.softmax: an axis of 2 dims must be in \[-2, 2\), got 2"):
        sw.nn.softmax(X, axis=2)
    with pytest.raises(sw.DTypeError, match=r"nn.log_softmax: where must be of bools"):
        sw.nn.log_softmax(X, where=np.ones(5))
    with pytest.raises(sw.ShapeError, match=r"nn.logsumexp: a and b must broadcast"):
        sw.nn.logsumexp(X, b=np.ones(3))
    with pytest.raises(sw.DTypeError, match=r"nn.one_hot: indices must be integers"):
        sw.nn.one_hot(X, 3)
    with pytest.raises(ValueError, match=r"nn.standardize: algorithm must be 'fast' or 'stable'"):
        sw.nn.standardize(X, algorithm="slow")
