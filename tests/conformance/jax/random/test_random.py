# SPDX-License-Identifier: Apache-2.0
"""sw.random: JAX's numbers, by NumPy and by every partitioned program, without communication."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import shardwise as sw
from shardwise import P, random as r
from shardwise.random._erf_inv import erf_inv
from shardwise.random._threefry import counter_dtype, counter_words, elements, row_major_index, threefry_2x32
from shardwise.shardings.mesh import Mesh
from shardwise.shardings.sharding import NamedSharding
from tests.conformance.jax.random.cases import SEEDS, Draw, all_draws
from tests.support.mesh_strategies import meshes, shardings
from tests.support.once_per_run import written_by

WORKER = "tests.conformance.jax.random.worker"
DRAWS = all_draws()
MESH = sw.Mesh({"data": 4, "model": 2})
KEY = r.key(SEEDS[2])


@pytest.fixture(scope="module")
def drawn_by_jax(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, WORKER, "out.npz"))


def assert_drawn(draw: Draw, result: Any, expected: np.ndarray) -> None:
    result = np.asarray(result)
    assert result.shape == expected.shape
    if draw.exact:
        assert result.dtype.name in (expected.dtype.name, "bfloat16")
        np.testing.assert_array_equal(result, expected)
        return
    eps = float(ml_dtypes.finfo(result.dtype).eps)
    # JAX's own logarithm of float64 is off by up to 128 units of the last place; of 16 bits NumPy rounds each step. The
    # Wald distribution is a difference of numbers that are larger than it.
    is_rough = any(name in draw.name for name in ("truncated", "wald"))
    units = {2: 8, 4: 128 if is_rough else 8 if draw.name[:2] == "f-" else 4, 8: 128}[result.dtype.itemsize]
    result, expected = result.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(result), np.isfinite(expected))
    np.testing.assert_array_equal(result[~np.isfinite(result)], expected[~np.isfinite(expected)])
    result, expected = result[np.isfinite(result)], expected[np.isfinite(expected)]
    assert np.max(np.abs(result - expected) / np.maximum(np.abs(expected), 1), initial=0) <= units * eps


# ---- JAX's numbers --------------------------------------------------------------------------------------------------


def test_keys_are_jaxs(drawn_by_jax: Any) -> None:
    for i, seed in enumerate(SEEDS):
        np.testing.assert_array_equal(r.key(seed), drawn_by_jax[f"key/{i}"])
        np.testing.assert_array_equal(r.PRNGKey(seed), drawn_by_jax[f"key/{i}"])


@pytest.mark.parametrize("draw", DRAWS, ids=[draw.name for draw in DRAWS])
def test_numpy_draws_what_jax_draws(draw: Draw, drawn_by_jax: Any) -> None:
    assert_drawn(draw, draw.draw(r, KEY), drawn_by_jax[draw.name])


@pytest.mark.parametrize("draw", DRAWS, ids=[draw.name for draw in DRAWS])
def test_a_program_draws_what_jax_draws(draw: Draw, drawn_by_jax: Any) -> None:
    expected = drawn_by_jax[draw.name]
    axes = [axis if size > 1 else None for axis, size in zip(("data", "model"), expected.shape)]
    drawn = sw.jit(lambda k: draw.draw(r, k), mesh=MESH, out_shardings=P(*axes))(KEY)
    assert_drawn(draw, drawn, expected)


def test_threefry_is_the_papers() -> None:
    # Known answers of the authors' Random123: counter and key of zeros, of ones, and of digits of pi.
    vectors = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    for key, counter, expected in vectors:
        words = threefry_2x32(key, *(np.array([word], np.uint32) for word in counter))
        assert tuple(int(word[0]) for word in words) == expected


# ---- every mesh, every sharding -------------------------------------------------------------------------------------


def partitioned(function: Any, mesh: sw.Mesh, spec: Any, key: Any = KEY) -> Any:
    program = sw.jit(function, mesh=mesh, out_shardings=spec).lower(key).compile()
    assert program.collectives().rows == ()
    assert program.output_shardings == NamedSharding(mesh, spec) if isinstance(spec, P) else True
    runs = [np.asarray(program.run(key, **mode)) for mode in ({}, {"faithful": True, "poison": True})]
    np.testing.assert_array_equal(runs[0], runs[1])
    return runs[0]


PLACES = {
    "eight": (sw.Mesh({"x": 8}), (64, 6), P("x")),
    "two dims": (MESH, (16, 8), P("data", "model")),
    "uneven": (MESH, (17, 5), P("data", "model")),
    "uneven over both": (MESH, (17, 5), P(("data", "model"))),
    "fewer rows than devices": (sw.Mesh({"x": 8}), (3, 2, 2), P("x")),
    "inner dim": (MESH, (3, 17, 2), P(None, ("model", "data"))),
    "permuted devices": (sw.Mesh({"x": 4, "y": 2}, device_ids=[3, 1, 7, 0, 2, 6, 5, 4]), (17, 6), P("x", "y")),
    "many devices": (sw.Mesh({"x": 512}), (1000,), P("x")),
}


@pytest.mark.parametrize("place", PLACES)
def test_bits_are_the_same_on_every_mesh(place: str) -> None:
    mesh, shape, spec = PLACES[place]
    for dtype in (np.uint8, np.uint32, np.uint64):
        got = partitioned(lambda k, d=dtype: r.bits(k, shape, d), mesh, spec)
        np.testing.assert_array_equal(got, r.bits(KEY, shape, dtype))
    got = partitioned(lambda k: r.uniform(k, shape, minval=-2.0, maxval=5.0), mesh, spec)
    np.testing.assert_array_equal(got, r.uniform(KEY, shape, minval=-2.0, maxval=5.0))
    # Logarithms are the program's own, but elementwise: one device and many give the same bits.
    for draw in (lambda k: r.normal(k, shape, np.float64), lambda k: r.truncated_normal(k, -1.0, 2.0, shape)):
        whole = np.asarray(sw.jit(draw, mesh=sw.Mesh({"one": 1}))(KEY))
        np.testing.assert_array_equal(partitioned(draw, mesh, spec), whole)
        np.testing.assert_allclose(draw(KEY), whole, rtol=2e-5)


@settings(max_examples=60)
@given(data=st.data())
def test_bits_are_the_same_for_every_sharding(data: st.DataObject) -> None:
    core = data.draw(meshes())
    shape = tuple(data.draw(st.lists(st.integers(0, 9), max_size=3)))
    key = r.key(data.draw(st.integers(-(2**63), 2**64 - 1)))
    sharding = NamedSharding._wrap(data.draw(shardings(core, len(shape), closed=True)))
    dtype = data.draw(st.sampled_from([np.uint8, np.uint16, np.uint32, np.uint64]))
    got = partitioned(lambda k: r.bits(k, shape, dtype), Mesh._wrap(core), sharding, key)
    np.testing.assert_array_equal(got, r.bits(key, shape, dtype))


def test_a_sharding_reaches_the_counters_from_their_user() -> None:
    @sw.jit(mesh=MESH)
    def dropout(x: Any, key: Any) -> Any:
        x = sw.shard(x, P("data", "model"))
        return np.where(r.bernoulli(key, 0.9, x.shape), x / np.float32(0.9), 0)

    x = np.arange(17 * 6, dtype=np.float32).reshape(17, 6)
    program = dropout.lower(x, KEY).compile()
    assert program.collectives().rows == ()
    _, _, body = program.as_text("local").split("{\n", 2)
    assert "tensor<17x6x" not in body  # nobody makes more than its block
    expected = np.where(r.bernoulli(KEY, 0.9, x.shape), x / np.float32(0.9), 0)
    np.testing.assert_array_equal(program(x, KEY), expected)


def test_known_keys_cost_no_operations() -> None:
    def closed_over() -> Any:
        return r.bits(r.fold_in(r.split(KEY)[1], 3), (17, 4))

    expected = r.bits(r.fold_in(r.split(KEY)[1], 3), (17, 4))
    program = sw.jit(closed_over, mesh=MESH, out_shardings=P("data")).lower().compile()
    assert program.as_text("global").count("stablehlo.xor") < 25  # one hash, not three
    np.testing.assert_array_equal(program(), expected)

    def argument(key: Any, layer: Any) -> Any:
        return r.bits(r.fold_in(r.split(key)[1], layer), (17, 4))

    np.testing.assert_array_equal(sw.jit(argument, mesh=MESH)(KEY, 3), expected)
    np.testing.assert_array_equal(sw.jit(argument, mesh=MESH)(sw.device_put(KEY, MESH), np.uint8(3)), expected)


def test_drawing_is_one_pass_over_memory() -> None:
    mesh = sw.Mesh({"x": 8})
    program = sw.jit(lambda k: r.bits(k, (4096, 16)), mesh=mesh, out_shardings=P("x")).lower(KEY).compile()
    assert 150 < program._traced._core.op_count < 200  # a hundred of them on arrays, the others on the key
    program(KEY)
    key = sw.device_put(KEY, program.input_shardings[0])
    executable = program._here().executable
    executable.run([key._data], trace=True)
    steps = [row for row in executable.trace() if row["bytes"] >= 4096 * 16 * 4 / 8]
    fused = [row["fused_ops"] for row in steps if row["op"] not in ("stablehlo.iota", "stablehlo.broadcast_in_dim")]
    assert len(fused) <= 2
    assert fused[-1] > 100


def test_sharded_keys_outside_a_program_are_gathered() -> None:
    key = sw.device_put(KEY, MESH)
    for draw in (lambda k: r.split(k), lambda k: r.fold_in(k, 7), lambda k: r.normal(k, (5,))):
        assert type(draw(key)) is np.ndarray
        np.testing.assert_array_equal(draw(key), draw(KEY))
    np.testing.assert_array_equal(r.fold_in(KEY, sw.device_put(np.int32(7), MESH)), r.fold_in(KEY, 7))
    np.testing.assert_array_equal(r.key(sw.device_put(np.int64(-3), MESH)), r.key(-3))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_traced_seeds_and_data_are_the_known_ones(dtype: Any) -> None:
    ends = np.iinfo(dtype)
    for number in (ends.min, ends.max, 7):
        seed = np.array(number, dtype)
        np.testing.assert_array_equal(sw.jit(r.key, mesh=MESH)(seed), r.key(seed[()]))
        folded = sw.jit(lambda d: r.fold_in(KEY, d), mesh=MESH)(seed)
        np.testing.assert_array_equal(folded, r.fold_in(KEY, seed[()]))
    np.testing.assert_array_equal(sw.jit(r.key, mesh=MESH)(-3), r.key(-3))


# ---- indices beyond 32 bits -----------------------------------------------------------------------------------------


def test_counters_beyond_32_bits() -> None:
    shape = (2**20, 3, 2**22)
    assert counter_dtype(shape) == np.uint64
    index = [np.array([0, 1, 341, 2**20 - 1, 77777]), np.array([0, 2, 1, 2, 0]), np.array([5, 0, 9, 2**22 - 1, 12345])]
    expected = [int(a) * 3 * 2**22 + int(b) * 2**22 + int(c) for a, b, c in zip(*index)]
    assert max(expected) > 2**43
    narrow = [i.astype(np.uint64) for i in index]

    def words(*indices: Any) -> Any:
        return counter_words(row_major_index(shape, list(indices)))

    for high, low in (words(*narrow), sw.jit(words, mesh=MESH)(*narrow)):
        high, low = np.asarray(high), np.asarray(low)
        assert high.dtype == low.dtype == np.uint32
        assert [int(h) * 2**32 + int(w) for h, w in zip(high, low)] == expected


def test_shapes_beyond_32_bits_have_a_program() -> None:
    def ends(key: Any) -> Any:
        return r.bits(key, (2**20, 2**20), np.uint64)

    program = sw.jit(ends, mesh=sw.Mesh({"x": 2**17, "y": 2**17}), out_shardings=P("x", "y")).lower(KEY).compile()
    assert program.collectives().rows == ()
    text = program.as_text("local")
    assert "tensor<8x8xui64>" in text
    assert "tensor<1048576x" not in text


def test_the_width_of_the_counter_does_not_change_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = r.bits(KEY, (17, 5), np.uint64)
    monkeypatch.setattr("shardwise.random._threefry.counter_dtype", lambda shape: np.dtype(np.uint64))
    np.testing.assert_array_equal(r.bits(KEY, (17, 5), np.uint64), expected)
    got = partitioned(lambda k: r.bits(k, (17, 5), np.uint64), MESH, P("data", "model"))
    np.testing.assert_array_equal(got, expected)


def test_blocks_are_one_sequence() -> None:
    whole = r.bits(KEY, (70000,))
    np.testing.assert_array_equal(r.bits(KEY, (7, 10000)).reshape(-1), whole)
    high, low = (word.astype(np.uint64) for word in counter_words(np.arange(70000, dtype=np.uint64)))
    x0, x1 = threefry_2x32((int(KEY[0]), int(KEY[1])), high.astype(np.uint32), low.astype(np.uint32))
    np.testing.assert_array_equal(whole, x0 ^ x1)
    pairs = elements(KEY, (3,), np.dtype(np.uint32), lambda a, b: a)
    np.testing.assert_array_equal(pairs, x0[:3])


# ---- transformations ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharded", [False, True])
def test_vmap_over_keys(sharded: bool) -> None:
    keys = r.split(KEY, 9)

    def draw(key: Any) -> Any:
        first, second = r.split(key)
        return r.bits(first, (3, 2)), r.uniform(second, (4,)), r.fold_in(key, 5), r.randint(key, (6,), 0, 100)

    expected = [np.stack(results) for results in zip(*(draw(key) for key in keys))]
    mapped = sw.jit(sw.vmap(draw), mesh=MESH, in_shardings=P("data") if sharded else None)(keys)
    for result, right in zip(mapped, expected):
        np.testing.assert_array_equal(result, right)
    folded = sw.jit(sw.vmap(lambda i: r.fold_in(KEY, i)), mesh=MESH)(np.arange(5))
    np.testing.assert_array_equal(folded, [r.fold_in(KEY, i) for i in range(5)])
    seeded = sw.jit(sw.vmap(r.key), mesh=MESH)(np.arange(-2, 3))
    np.testing.assert_array_equal(seeded, [r.key(i) for i in range(-2, 3)])


def test_gradients_reach_the_bounds_and_not_the_bits() -> None:
    def loss(low: Any, high: Any, scale: Any, key: Any) -> Any:
        first, second = r.split(key)
        drawn = r.uniform(first, (17, 4), np.float64, low, high)
        return (drawn * drawn).sum() + (scale * r.normal(second, (17, 4), np.float64)).sum()

    low, high, scale = np.linspace(-2, -1, 4), np.array(3.0), np.array(0.5)
    gradients = sw.jit(sw.grad(loss, (0, 1, 2)), mesh=MESH)(low, high, scale, KEY)
    first, second = r.split(KEY)
    unit = r.uniform(first, (17, 4), np.float64)
    drawn = low + unit * (high - low)
    np.testing.assert_allclose(gradients[0], (2 * drawn * (1 - unit)).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(gradients[1], (2 * drawn * unit).sum(), rtol=1e-12)
    np.testing.assert_allclose(gradients[2], r.normal(second, (17, 4), np.float64).sum(), rtol=1e-12)


def test_gradients_reach_the_bounds_of_a_truncated_normal() -> None:
    def loss(low: Any, high: Any, key: Any) -> Any:
        return r.truncated_normal(key, low, high, (50,), np.float64).sum()

    low, high, step = np.array(-1.0), np.array(0.5), 1e-6
    gradients = sw.jit(sw.grad(loss, (0, 1)), mesh=MESH)(low, high, KEY)
    assert len(gradients) == 2
    for i, gradient in enumerate(gradients):
        bounds = [[low, high], [low, high]]
        bounds[0][i], bounds[1][i] = bounds[0][i] - step, bounds[1][i] + step
        difference = (loss(*bounds[1], KEY) - loss(*bounds[0], KEY)) / (2 * step)
        np.testing.assert_allclose(gradient, difference, rtol=1e-6)


def test_bits_have_no_gradient() -> None:
    f = sw.jit(sw.grad(lambda x, k: (x * r.bits(k, (3,), np.uint8)).sum()), mesh=MESH)
    np.testing.assert_array_equal(f(np.ones(3), KEY), r.bits(KEY, (3,), np.uint8))
    with pytest.raises(sw.DTypeError, match="an argument to differentiate by must be floating"):
        sw.jit(sw.grad(lambda k: r.uniform(k, ()).sum()), mesh=MESH)(KEY)


# ---- distributions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf_inv_inverts_the_error_function(dtype: Any) -> None:
    x = np.concatenate([np.linspace(-1, 1, 401)[1:-1], 1 - 2.0 ** -np.arange(2, 24), [-0.0, 1e-30]]).astype(dtype)
    y = erf_inv(x)
    back = np.array([math.erf(float(v)) for v in y])
    slope = 2 / math.sqrt(math.pi) * np.exp(-(y.astype(np.float64) ** 2))
    distance = np.abs(back - x) / slope / np.maximum(np.abs(y), 1e-30)
    # Near one the rounding of x² counts: 1 - x² has fewer digits than x.
    bound = np.where(np.abs(x) < 0.9, 4, 64) if dtype == np.float32 else 64
    assert np.all((distance < bound * np.finfo(dtype).eps)[x != 0])
    ends = erf_inv(np.array([1, -1, 2, 0], dtype))
    np.testing.assert_array_equal(ends, [np.inf, -np.inf, np.nan, 0])
    np.testing.assert_allclose(sw.jit(erf_inv, mesh=MESH)(x), y, rtol=8 * np.finfo(dtype).eps)


def test_moments() -> None:
    n = 200_000
    functions = (r.uniform, r.normal, r.exponential, r.gumbel)
    u, z, e, g = (f(k, (n,), np.float64) for f, k in zip(functions, r.split(KEY, 4)))
    for sample, mean, variance in ((u, 1 / 2, 1 / 12), (z, 0, 1), (e, 1, 1), (g, 0.5772156649, np.pi**2 / 6)):
        assert abs(sample.mean() - mean) < 5 * np.sqrt(variance / n)
        assert abs(sample.var() - variance) < 0.03 * variance
    counts = np.bincount(r.randint(KEY, (n,), -3, 4) + 3, minlength=7)
    assert np.max(np.abs(counts - n / 7)) < 5 * np.sqrt(n / 7)
    drawn = r.categorical(KEY, np.log([0.1, 0.2, 0.7]), shape=(n,))
    np.testing.assert_allclose(np.bincount(drawn) / n, [0.1, 0.2, 0.7], atol=0.006)
    assert abs(r.bernoulli(KEY, 0.3, (n,)).mean() - 0.3) < 0.006


def test_default_dtypes_are_jaxs() -> None:
    assert r.bits(KEY).dtype == np.uint32
    assert r.randint(KEY, 3, 0, 5).dtype == np.int32
    for draw in (r.uniform, r.normal, r.exponential, r.gumbel):
        assert draw(KEY).dtype == np.float32
        assert draw(KEY, 4).shape == (4,)


def test_probabilities_may_be_arguments() -> None:
    f = sw.jit(lambda k, p: r.bernoulli(k, p, (100,)), mesh=MESH)
    for p in (0.25, np.float64(0.25), np.full(100, 0.25, np.float32)):
        np.testing.assert_array_equal(f(KEY, p), r.bernoulli(KEY, p, (100,)))


def test_choice_is_that_of_jax() -> None:
    key, table = r.key(7), np.arange(30.0, dtype=np.float32).reshape(5, 6)
    p = np.array([0.1, 0.2, 0.3, 0.4, 0], np.float32)
    draws: list[tuple[Any, list[Any]]] = [  # with the numbers of jax.random 0.10
        (lambda k: r.choice(k, 10, (7,)), [9, 2, 0, 7, 2, 6, 4]),
        (lambda k: r.choice(k, 5, (12,), p=p), [2, 0, 3, 2, 1, 2, 2, 2, 3, 3, 3, 1]),
        (lambda k: r.choice(k, table, (3,), axis=1), table[:, [1, 2, 0]].tolist()),
    ]
    for draw, numbers in draws:
        assert draw(key).tolist() == numbers
        program = sw.jit(draw, mesh=MESH, out_shardings=P("data")).lower(key).compile()
        assert np.asarray(program(key)).tolist() == numbers
        assert not program.collectives()
