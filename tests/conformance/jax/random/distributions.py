# SPDX-License-Identifier: Apache-2.0
"""Draws from the distributions that take parameters, or several draws per number, as rows of cases.py.

Counts are exact, although floats decide which of them are rejected: with these parameters no decision is that close.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SHAPE = (17, 5)
A = np.linspace(0.05, 9, 85, dtype=np.float32).reshape(SHAPE)
COV = np.array([[2, 0.5, 0], [0.5, 1, 0.1], [0, 0.1, 3]], np.float32)
CATEGORIES = np.array([0.1, 0.2, 0, 0.3, 0.4], np.float32)
ODD = (
    np.array([np.nan, -1, np.inf, 5, 5, 0, 5], np.float32),
    np.array([0.5, 0.5, 0.5, np.nan, -0.1, 0.3, 0], np.float32),
)


class Draw(NamedTuple):
    name: str
    draw: Callable[[Any, Any], Any]
    exact: bool
    narrow: bool = False  # JAX draws from float32 here unless it has 64-bit numbers


def all_distributions() -> list[Draw]:
    draws = []
    for dtype in (np.float32, np.float64):
        rows = {**_simple(dtype), **_with_parameters(dtype), **_of_gamma_numbers(dtype), **_matrices(dtype)}
        name = np.dtype(dtype).name
        draws += [Draw(f"{kind}-{name}", draw, False) for kind, draw in rows.items()]
    draws += [Draw(f"{kind}-counts", draw, True) for kind, draw in _counts().items()]
    return [*draws, *(Draw(f"{kind}-narrow", draw, kind == "rademacher", True) for kind, draw in _signed().items())]


def _simple(d: Any) -> dict[str, Callable[[Any, Any], Any]]:
    return {
        "cauchy": lambda r, k: r.cauchy(k, SHAPE, d),
        "laplace": lambda r, k: r.laplace(k, SHAPE, d),
        "logistic": lambda r, k: r.logistic(k, SHAPE, d),
        "maxwell": lambda r, k: r.maxwell(k, SHAPE, d),
        "maxwell-scalar": lambda r, k: r.maxwell(k, (), d),
        "lognormal-scalar": lambda r, k: r.lognormal(k, np.array(0.5, d), (), d),
    }


def _with_parameters(d: Any) -> dict[str, Callable[[Any, Any], Any]]:
    a, one = A.astype(d), np.ones((), d)
    return {
        "lognormal": lambda r, k: r.lognormal(k, a / 16, None, d),
        "pareto": lambda r, k: r.pareto(k, a + one, None, d),
        "pareto-widened": lambda r, k: r.pareto(k, a[0] + one, (3, 1, 5), d),
        "rayleigh": lambda r, k: r.rayleigh(k, a, None, d),
        "triangular": lambda r, k: r.triangular(k, -one, a / 10, one, None, d),
        "wald": lambda r, k: r.wald(k, a, None, d),
        "weibull_min": lambda r, k: r.weibull_min(k, a[0], a, SHAPE, d),
        "weibull_min-scalar": lambda r, k: r.weibull_min(k, one, one + one, (0, 3), d),
    }


def _of_gamma_numbers(d: Any) -> dict[str, Callable[[Any, Any], Any]]:
    a, three = A.astype(d), np.array(3, d)
    return {
        "gamma": lambda r, k: r.gamma(k, a, None, d),
        "gamma-scalar": lambda r, k: r.gamma(k, three, (), d),
        "gamma-none": lambda r, k: r.gamma(k, three, (0, 3), d),
        "gamma-many": lambda r, k: r.gamma(k, three / 4, (3000,), d),
        "gamma-limits": lambda r, k: r.gamma(k, np.array([0, np.inf, np.nan, -1, 1e-3], d), None, d),
        "loggamma": lambda r, k: r.loggamma(k, a / 16, (2, 17, 5), d),
        "beta": lambda r, k: r.beta(k, a, three, None, d),
        "dirichlet": lambda r, k: r.dirichlet(k, a, None, d),
        "dirichlet-widened": lambda r, k: r.dirichlet(k, a[0] / 9, (7, 3), d),
        "chisquare": lambda r, k: r.chisquare(k, a, None, d),
        "f": lambda r, k: r.f(k, a, three, None, d),
        "t": lambda r, k: r.t(k, a, None, d),
    }


def _matrices(d: Any) -> dict[str, Callable[[Any, Any], Any]]:
    mean, cov = A[:, :3].astype(d), COV.astype(d)
    rows: dict[str, Callable[[Any, Any], Any]] = {
        f"multivariate_normal-{method}": lambda r, k, m=method: r.multivariate_normal(k, mean, cov, (2, 17), d, m)
        for method in ("cholesky", "eigh", "svd")
    }
    return {
        **rows,
        "multivariate_normal": lambda r, k: r.multivariate_normal(k, mean[0], cov),
        "orthogonal": lambda r, k: r.orthogonal(k, 4, (3,), d),
        "orthogonal-high": lambda r, k: r.orthogonal(k, 4, (), d, 2),
        "orthogonal-wide": lambda r, k: r.orthogonal(k, 2, (3,), d, 5),
    }


def _counts() -> dict[str, Callable[[Any, Any], Any]]:
    n, p = np.arange(17, dtype=np.float32)[:, None], np.linspace(0, 1, 5, dtype=np.float32)
    f32 = np.float32
    return {
        "poisson": lambda r, k: r.poisson(k, A, None, np.int32),
        "poisson-mixed": lambda r, k: r.poisson(k, A * 5, (20, 17, 5), np.int32),
        "poisson-narrow": lambda r, k: r.poisson(k, A, (17, 5), np.int8),
        "poisson-unsigned": lambda r, k: r.poisson(k, A, (17, 5), np.uint64),
        "poisson-odd": lambda r, k: r.poisson(k, np.array([0, np.nan, 5, 0.5], f32), None, np.int32),
        "poisson-none": lambda r, k: r.poisson(k, f32(3), (0, 2), np.int32),
        "binomial": lambda r, k: r.binomial(k, n, p, None, f32),
        "binomial-large": lambda r, k: r.binomial(k, f32(1000), np.linspace(0, 1, 1500, dtype=f32), None, f32),
        "binomial-wide": lambda r, k: r.binomial(k, np.float64(1000), np.linspace(0, 1, 1500), None, np.float64),
        "binomial-odd": lambda r, k: r.binomial(k, *ODD, None, f32),
        "multinomial": lambda r, k: r.multinomial(k, f32(100), CATEGORIES, shape=(17, 5), dtype=f32),
        "multinomial-rows": lambda r, k: r.multinomial(k, n[:, 0], A / A.sum(1, keepdims=True), dtype=np.int32),
        "geometric": lambda r, k: r.geometric(k, A / 9, None, np.int32),
    }


def _signed() -> dict[str, Callable[[Any, Any], Any]]:
    return {
        "rademacher": lambda r, k: r.rademacher(k, SHAPE, np.int8),
        "generalized_normal": lambda r, k: r.generalized_normal(k, 1.5, SHAPE, np.float32),
        "ball": lambda r, k: r.ball(k, 3, 2.0, (17,), np.float32),
        "ball-of-3": lambda r, k: r.ball(k, 5, 3, (2, 4), np.float32),
        "double_sided_maxwell": lambda r, k: r.double_sided_maxwell(k, A[0], np.float32(2), (17,), np.float32),
        "double_sided_maxwell-twice": lambda r, k: r.double_sided_maxwell(k, A[0], np.float32(2), (), np.float32),
    }
