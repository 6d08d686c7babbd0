# SPDX-License-Identifier: Apache-2.0
"""Wrong calls of the functions of sw.random, as rows of test_called_names.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import shardwise as sw

KEY = sw.random.key(0)
X = np.arange(8, dtype=np.float32).reshape(4, 2)
LOGITS = np.zeros(3, np.float32)

PARAMETERS: dict[str, dict[str, Any]] = {
    "ball": {"d": 3},
    "bernoulli": {},
    "beta": {"a": 1.0, "b": 1.0},
    "binomial": {"n": 3, "p": 0.5},
    "bits": {},
    "categorical": {"logits": LOGITS},
    "cauchy": {},
    "chisquare": {"df": 3.0},
    "choice": {"a": 3},
    "dirichlet": {"alpha": X},
    "double_sided_maxwell": {"loc": 0.0, "scale": 1.0},
    "exponential": {},
    "f": {"dfnum": 3.0, "dfden": 3.0},
    "fold_in": {"data": 1},
    "gamma": {"a": 1.0},
    "generalized_normal": {"p": 2.0},
    "geometric": {"p": 0.5},
    "gumbel": {},
    "laplace": {},
    "loggamma": {"a": 1.0},
    "logistic": {},
    "lognormal": {},
    "maxwell": {},
    "multinomial": {"n": 3, "p": X},
    "multivariate_normal": {"mean": X[0], "cov": np.eye(2, dtype=np.float32)},
    "normal": {},
    "orthogonal": {"n": 3},
    "pareto": {"b": 1.0},
    "permutation": {"x": 3},
    "poisson": {"lam": 1.0},
    "rademacher": {},
    "randint": {"shape": (2,), "minval": 0, "maxval": 3},
    "rayleigh": {"scale": 1.0},
    "shuffle": {"x": 3},
    "split": {},
    "t": {"df": 3.0},
    "triangular": {"left": 0.0, "mode": 1.0, "right": 2.0},
    "truncated_normal": {"lower": -1.0, "upper": 1.0},
    "uniform": {},
    "wald": {"mean": 1.0},
    "weibull_min": {"scale": 1.0, "concentration": 1.0},
}


def calls_of_random() -> list[tuple[str, str, Callable[[], Any]]]:
    """Name of the function, fault, and call."""
    rows: list[tuple[str, str, Callable[[], Any]]] = []

    def add(name: str, fault: str, call: Callable[[], Any]) -> None:
        rows.append((name, fault, call))

    for name, parameters in PARAMETERS.items():
        draw = getattr(sw.random, name)
        add(f"random.{name}", "key", lambda f=draw, p=parameters: f("a", **p))
        add(f"random.{name}", "key-dtype", lambda f=draw, p=parameters: f(np.zeros(2), **p))
        if name not in ("fold_in", "permutation", "shuffle", "split"):
            add(f"random.{name}", "shape", lambda f=draw, p=parameters: f(KEY, **{**p, "shape": "a"}))
        for parameter, value in parameters.items():
            if isinstance(value, float):
                wrong = {**parameters, parameter: "a"}
                add(f"random.{name}", f"{parameter}-type", lambda f=draw, p=wrong: f(KEY, **p))
    for of_keys in (sw.random.clone, sw.random.key_data, sw.random.key_impl, sw.random.wrap_key_data):
        add(f"random.{of_keys.__name__}", "key", partial(of_keys, np.zeros(2)))
        add(f"random.{of_keys.__name__}", "shape", partial(of_keys, np.zeros(3, np.uint32)))
    add("random.wrap_key_data", "impl", lambda: sw.random.wrap_key_data(KEY, impl="rbg"))
    add("random.categorical", "draws", lambda: sw.random.categorical(KEY, LOGITS, shape=(4,), replace=False))
    add("random.categorical", "replace", lambda: sw.random.categorical(KEY, LOGITS, replace=3))  # type: ignore[arg-type]
    add("random.categorical", "rows", lambda: sw.random.categorical(KEY, X[:1], shape=(2, 4), replace=False))
    add("random.gumbel", "mode", lambda: sw.random.gumbel(KEY, mode="lowest"))
    add("random.orthogonal", "dtype", lambda: sw.random.orthogonal(KEY, 3, dtype=np.float16))
    add("random.orthogonal", "size", lambda: sw.random.orthogonal(KEY, (3, 2)))  # type: ignore[arg-type]
    add("random.ball", "norm", lambda: sw.random.ball(KEY, 3, LOGITS))
    add("random.dirichlet", "scalar", lambda: sw.random.dirichlet(KEY, 1.0))
    add("random.multinomial", "scalar", lambda: sw.random.multinomial(KEY, 3, 0.5))
    add("random.multivariate_normal", "rank", lambda: sw.random.multivariate_normal(KEY, X, X))
    add("random.multivariate_normal", "method", lambda: sw.random.multivariate_normal(KEY, X, np.eye(2), method="lu"))
    add("random.rademacher", "dtype", lambda: sw.random.rademacher(KEY, dtype=np.uint8))
    add("random.poisson", "dtype", lambda: sw.random.poisson(KEY, 1.0, dtype=np.float32))
    add("random.key", "type", lambda: sw.random.key("a"))
    add("random.PRNGKey", "type", lambda: sw.random.PRNGKey("a"))
    add("random.choice", "draws", lambda: sw.random.choice(KEY, 3, (4,), replace=False))
    add("random.permutation", "axis", lambda: sw.random.permutation(KEY, X, axis=2))
    add("random.permutation", "type", lambda: sw.random.permutation(KEY, 2.5))
    return rows
