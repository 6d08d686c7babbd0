# SPDX-License-Identifier: Apache-2.0
"""The distributions of sw.random: the same bits on every mesh, moments, gradients in the parameters, odd arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P, random as r
from tests.conformance.jax.random.cases import LOGITS
from tests.conformance.jax.random.distributions import CATEGORIES, A

KEY = r.key(11)
MESH = sw.Mesh({"data": 4, "model": 2})
THREE = sw.Mesh({"x": 2, "y": 3, "z": 2})
PERMUTED = sw.Mesh({"data": 4, "model": 2}, device_ids=[3, 1, 7, 0, 2, 6, 5, 4])
PLACES = [
    (sw.Mesh({"one": 1}), P()),
    *((sw.Mesh({"x": n}), spec) for n in (2, 3, 8) for spec in (P("x"), P(None, "x"))),
    *((MESH, spec) for spec in (P(), P("data", "model"), P("model", "data"), P(("data", "model")), P("model"))),
    (PERMUTED, P("data", "model")),
    (PERMUTED, P(None, ("model", "data"))),
    *((THREE, spec) for spec in (P("y", "x"), P(("x", "z"), "y"), P(("z", "x", "y")), P(None, ("y", "z")))),
    (sw.Mesh({"x": 64}), P("x")),
    (sw.Mesh({"x": 64}), P(None, "x")),
]
DRAWS: dict[str, Callable[[Any], Any]] = {  # all of shape (17, 5)
    "gamma": lambda k: r.gamma(k, A),
    "dirichlet": lambda k: r.dirichlet(k, A),
    "poisson": lambda k: r.poisson(k, A * 5),
    "binomial": lambda k: r.binomial(k, 40, A / 9),
    "multinomial": lambda k: r.multinomial(k, 100, CATEGORIES, shape=(17, 5)),
    "geometric": lambda k: r.geometric(k, A / 9),
    "ball": lambda k: r.ball(k, 5, 1.5, (17,)),
    "cauchy": lambda k: r.cauchy(k, (17, 5), np.float64),
    "wald": lambda k: r.wald(k, A),
    "maxwell": lambda k: r.maxwell(k, (17, 5)),
    "double_sided_maxwell": lambda k: r.double_sided_maxwell(k, A[0], 2.0, (17,)),
    "shuffle": lambda k: r.shuffle(k, A, 1),
    "categorical": lambda k: np.moveaxis(r.categorical(k, LOGITS, shape=(5, 17), replace=False), 0, 1),
}


def test_there_are_20_places() -> None:
    assert len(PLACES) == 20


@pytest.fixture(scope="module")
def drawn() -> dict[str, np.ndarray]:
    """What NumPy arrays give, outside of a traced function."""
    return {name: draw(KEY) for name, draw in DRAWS.items()}


@pytest.mark.parametrize("place", range(len(PLACES)))
def test_every_mesh_and_sharding_draws_the_bits_of_numpy(place: int, drawn: dict[str, np.ndarray]) -> None:
    mesh, spec = PLACES[place]
    # All of them on two places, a few in turn on the others: they are the same loops and elementwise ops.
    names = list(DRAWS) if place % 10 == 7 else list(DRAWS)[place % 4 :: 4]
    program = sw.jit(lambda key: [DRAWS[name](key) for name in names], mesh=mesh, out_shardings=[spec] * len(names))
    results = program(KEY)
    assert {result.shape for result in results} == {(17, 5)}
    np.testing.assert_equal(dict(zip(names, map(np.asarray, results))), {name: drawn[name] for name in names})


def test_every_device_alone_draws_the_same_and_reads_no_padding(drawn: dict[str, np.ndarray]) -> None:
    draws = ("gamma", "poisson", "binomial")
    jitted = sw.jit(lambda k: [DRAWS[name](k) for name in draws], mesh=MESH, out_shardings=[P("data", "model")] * 3)
    results = jitted.lower(KEY).compile().run(KEY, faithful=True, poison=True)
    np.testing.assert_equal([np.asarray(result) for result in results], [drawn[name] for name in draws])


def test_rejection_exchanges_one_bool_a_step() -> None:
    jitted = sw.jit(lambda k: r.gamma(k, 2.5, (4096,)), mesh=MESH, out_shardings=P(("data", "model")))
    rows = jitted.lower(KEY).compile().collectives().rows
    assert [(row.kind, row.dtype, row.shape, row.bound) for row in rows] == [("all_reduce", "bool", (), "per trip")]
    assert "tensor<4096x" not in jitted.lower(KEY).compile().as_text("local").split("{\n", 2)[2]


MOMENTS: dict[str, tuple[Callable[[Any, Any], Any], float, float]] = {  # mean and variance
    "gamma": (lambda d, n: r.gamma(KEY, 3.0, n, d), 3, 3),
    "beta": (lambda d, n: r.beta(KEY, 2.0, 2.0, n, d), 0.5, 0.05),
    "chisquare": (lambda d, n: r.chisquare(KEY, 4.0, n, d), 4, 8),
    "t": (lambda d, n: r.t(KEY, 12.0, n, d), 0, 1.2),
    "laplace": (lambda d, n: r.laplace(KEY, n, d), 0, 2),
    "maxwell": (lambda d, n: r.maxwell(KEY, n, d), 1.596, 0.4535),
    "binomial": (lambda d, n: r.binomial(KEY, 40, np.array(0.25, d), n, d), 10, 7.5),
    "generalized_normal": (lambda d, n: r.generalized_normal(KEY, 2.0, n, d), 0, 0.5),
}


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_moments_are_those_of_the_distribution(name: str, dtype: Any) -> None:
    draw, mean, variance = MOMENTS[name]
    numbers = draw(dtype, (40000,))
    assert numbers.dtype == dtype
    numbers = numbers.astype(np.float64)
    # Two bits less for each narrow step; five deviations of the mean.
    slack = 20 * float(ml_dtypes.finfo(dtype).eps) * max(1, abs(mean)) if np.dtype(dtype).itemsize < 4 else 0
    assert abs(numbers.mean() - mean) < 5 * np.sqrt(variance / 40000) + slack
    assert abs(numbers.var() / variance - 1) < 0.08


def test_large_means_are_poissons() -> None:
    counts = r.poisson(KEY, np.float32(3e4), (40000,)).astype(np.float64)
    assert abs(counts.mean() - 3e4) < 5 * np.sqrt(3e4 / 40000)
    assert abs(counts.var() / 3e4 - 1) < 0.08


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "lognormal": lambda p: r.lognormal(KEY, p, (9,), np.float64),
    "pareto": lambda p: r.pareto(KEY, p, (9,), np.float64),
    "rayleigh": lambda p: r.rayleigh(KEY, p, (9,), np.float64),
    "triangular": lambda p: r.triangular(KEY, p - 3, p, p + 2, (9,), np.float64),
    "wald": lambda p: r.wald(KEY, p, (9,), np.float64),
    "weibull_min": lambda p: r.weibull_min(KEY, p, p, (9,), np.float64),
    "double_sided_maxwell": lambda p: r.double_sided_maxwell(KEY, p, p, (9,), np.float64),
    "multivariate_normal": lambda p: r.multivariate_normal(KEY, p * np.ones(3), np.diag(np.arange(1.0, 4)) * p, (9,)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_parameters_have_gradients(name: str) -> None:
    draw, at, step = GRADIENTS[name], np.float64(1.5), 1e-6
    got = sw.jit(sw.grad(lambda p: draw(p).sum()), mesh=MESH)(at)
    expected = (draw(at + step) - draw(at - step)).sum() / (2 * step)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_gradient_through_rejection_is_an_error() -> None:
    with pytest.raises(sw.UnsupportedError, match="a loop that runs until its condition fails"):
        sw.jit(sw.grad(lambda a: r.gamma(KEY, a, (3,)).sum()), mesh=MESH)(np.float32(2))


def test_keys_can_be_mapped_over() -> None:
    keys = r.split(KEY, 4)
    mapped = sw.vmap(lambda key: (r.gamma(key, 2.0, (3,)), r.poisson(key, 4.0, (3,))))(keys)
    expected = [
        [draw(key) for key in keys] for draw in (lambda k: r.gamma(k, 2.0, (3,)), lambda k: r.poisson(k, 4.0, (3,)))
    ]
    np.testing.assert_equal([np.asarray(row) for row in mapped], [np.stack(row) for row in expected])


def test_arrays_lists_and_numbers_are_parameters() -> None:
    a = np.array([1, 2, 0.5, 4], np.float32)
    expected = r.gamma(KEY, a)
    np.testing.assert_array_equal(r.gamma(KEY, a.tolist()), expected)
    on_mesh = r.gamma(KEY, sw.device_put(a, sw.NamedSharding(MESH, P("data"))))
    assert isinstance(on_mesh, sw.Array)
    np.testing.assert_array_equal(on_mesh, expected)
    np.testing.assert_array_equal(sw.jit(r.gamma, mesh=MESH)(KEY, a), expected)
    np.testing.assert_array_equal(r.gamma(KEY, 3), r.gamma(KEY, np.float32(3)))


def test_default_dtypes_are_those_of_jax_without_64_bits() -> None:
    assert {draw(KEY, 0.5).dtype.name for draw in (r.poisson, r.geometric)} == {"int32"}
    assert r.rademacher(KEY).dtype == np.int32
    assert r.binomial(KEY, 3, 0.5).dtype == r.gamma(KEY, 2.0).dtype == r.lognormal(KEY).dtype == np.float32
    assert r.multivariate_normal(KEY, np.zeros(2), np.eye(2)).dtype == np.float64


def test_keys_are_plain_arrays() -> None:
    assert r.key_impl(KEY) == "threefry2x32"
    copies = (r.key_data(KEY), r.wrap_key_data(KEY), r.clone(KEY), sw.jit(r.clone, mesh=MESH)(KEY))
    np.testing.assert_equal([np.asarray(copy) for copy in copies], [KEY] * 4)
    assert r.clone(KEY) is not KEY
