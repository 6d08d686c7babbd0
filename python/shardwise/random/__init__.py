# SPDX-License-Identifier: Apache-2.0
"""Random numbers that depend on a key and on the index of each element: the same on every mesh, for every sharding.

A key is ``uint32[2]``. Names, arguments, defaults and numbers are those of ``jax.random`` (Threefry-2x32,
partitionable), and default dtypes are JAX's without 64-bit mode. In a traced function, each device computes the numbers
of its own shard by about a hundred integer operations per element, without communication and without state. Outside,
the same functions return NumPy arrays.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

>>> import numpy as np
>>> import shardwise as sw
>>> key, subkey = sw.random.split(sw.random.key(0))
>>> draw = sw.jit(lambda k: sw.random.uniform(k, (4, 6)), mesh=sw.Mesh({"data": 4}), out_shardings=sw.P("data"))
>>> bool(np.all(np.asarray(draw(subkey)) == sw.random.uniform(subkey, (4, 6))))
True
"""

from __future__ import annotations

from ._choices import bernoulli, categorical, choice, permutation, shuffle
from ._closed import (
    cauchy,
    double_sided_maxwell,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    triangular,
    wald,
    weibull_min,
)
from ._counts import binomial, geometric, multinomial, poisson, rademacher
from ._floats import exponential, gumbel, normal, truncated_normal, uniform
from ._gamma import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from ._integers import bits, randint
from ._keys import PRNGKey, clone, fold_in, key, key_data, key_impl, split, wrap_key_data
from ._matrices import multivariate_normal, orthogonal

__all__ = [
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "shuffle",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]


def __dir__() -> list[str]:
    return sorted(__all__)
