# SPDX-License-Identifier: Apache-2.0
"""Complex numbers: every op that StableHLO gives them, against NumPy, with its branch cuts and special values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.op.dtype_values import Array
from tests.op.test_dtypes import apply

MESH = sw.Mesh({"x": 4, "y": 2})
DTYPES = ["complex64", "complex128"]

# op, NumPy's function, how far the result may be: the distance in units of the last place of its magnitude
FUNCTIONS: list[tuple[str, Callable[..., Any], float]] = [
    ("stablehlo.exponential", np.exp, 2),
    ("stablehlo.exponential_minus_one", np.expm1, 2),
    ("stablehlo.log", np.log, 2),
    ("stablehlo.log_plus_one", np.log1p, 2),
    ("stablehlo.sqrt", np.sqrt, 2),
    ("stablehlo.rsqrt", lambda z: 1 / np.sqrt(z), 4),
    ("stablehlo.cbrt", lambda z: np.power(z, 1 / np.longdouble(3)), 4),
    ("stablehlo.logistic", lambda z: 1 / (1 + np.exp(-z)), 4),
    ("stablehlo.sine", np.sin, 2),
    ("stablehlo.cosine", np.cos, 2),
    ("stablehlo.tan", np.tan, 4),
    ("stablehlo.tanh", np.tanh, 4),
    ("stablehlo.sign", lambda z: z / np.abs(z), 2),
    ("stablehlo.negate", np.negative, 0),
    ("chlo.sinh", np.sinh, 2),
    ("chlo.cosh", np.cosh, 2),
    ("chlo.asin", np.arcsin, 4),
    ("chlo.acos", np.arccos, 4),
    ("chlo.atan", np.arctan, 4),
    ("chlo.asinh", np.arcsinh, 4),
    ("chlo.acosh", np.arccosh, 4),
    ("chlo.atanh", np.arctanh, 4),
    ("chlo.conj", np.conj, 0),
    ("chlo.square", np.square, 4),
]
BINARY: list[tuple[str, Callable[..., Any], float]] = [
    ("stablehlo.add", np.add, 1),
    ("stablehlo.subtract", np.subtract, 1),
    ("stablehlo.multiply", np.multiply, 2),
    ("stablehlo.divide", np.divide, 4),
    ("stablehlo.power", np.power, 32),
    # Near 0 it is the logarithm of a number near 1.
    ("stablehlo.atan2", lambda y, x: -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)), 2000),
]


def points(dtype: str, count: int = 400, seed: int = 0) -> Array:
    """Numbers of many sizes in all quadrants."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.uniform(-5, 2, count))
    return (size * np.exp(1j * rng.uniform(-np.pi, np.pi, count))).astype(dtype)


def distance(got: Array, want: Array) -> Any:
    """In units of the last place of the magnitude."""
    size = np.abs(want).astype(np.float64)
    spacing = np.spacing(size.astype(got.real.dtype)).astype(np.float64)
    return np.abs(got.astype(np.clongdouble) - want).astype(np.float64) / spacing


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("op", "reference", "bound"), [*FUNCTIONS, *BINARY], ids=[f[0] for f in [*FUNCTIONS, *BINARY]])
def test_functions_equal_numpys(op: str, reference: Callable[..., Any], bound: float, dtype: str) -> None:
    operands = [points(dtype)] if (op, reference, bound) in FUNCTIONS else [points(dtype), points(dtype, seed=1)]
    got = apply(op, operands)
    assert got.dtype == dtype
    want = reference(*(x.astype(np.clongdouble) for x in operands))
    far = distance(got, want)
    assert np.max(far) <= bound, f"{np.max(far)} at {[x[np.argmax(far)] for x in operands]}"


CORNERS = [complex(x, y) for x, y in itertools.product([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], repeat=2)]
LIBRARY = [
    row for row in FUNCTIONS
    if row[0].split(".")[1] in (
        "exponential", "log", "sqrt", "sine", "cosine", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "asinh",
        "acosh", "atanh", "negate", "conj",
    )
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("op", "reference", "bound"), LIBRARY, ids=[row[0] for row in LIBRARY])
def test_zeros_infinities_and_nans_are_those_of_c99(
    op: str, reference: Callable[..., Any], bound: float, dtype: str
) -> None:
    z = np.array(CORNERS, dtype)
    with np.errstate(all="ignore"):
        want = reference(z)
    got = apply(op, [z])
    for part in ("real", "imag"):
        ours, numpys = getattr(got, part), getattr(want, part)
        np.testing.assert_allclose(ours, numpys, rtol=1e-6, err_msg=f"{part} parts of {op}")
        known = ~np.isnan(numpys)
        np.testing.assert_array_equal(np.signbit(ours[known]), np.signbit(numpys[known]), err_msg=f"signs of {op}")


def test_branch_cuts_follow_the_sign_of_zero() -> None:
    above, below = np.array([complex(-4, 0.0)]), np.array([complex(-4, -0.0)])
    assert apply("stablehlo.sqrt", [above])[0] == 2j
    assert apply("stablehlo.sqrt", [below])[0] == -2j
    assert apply("stablehlo.log", [above])[0].imag == np.pi
    assert apply("stablehlo.log", [below])[0].imag == -np.pi
    for op, reference in (("asin", np.arcsin), ("acos", np.arccos), ("atanh", np.arctanh), ("acosh", np.arccosh)):
        for z in (complex(3, 0.0), complex(3, -0.0), complex(-3, 0.0), complex(-3, -0.0)):
            np.testing.assert_allclose(apply("chlo." + op, [np.array([z])]), reference(np.array([z])), rtol=1e-15)


def test_precision_near_zero_and_overflow() -> None:
    small = np.array([1e-20 + 1e-18j, -1e-12 + 1e-9j, -1 + 1j, -0.3 + 0.714142842854285j])
    np.testing.assert_allclose(apply("stablehlo.log_plus_one", [small])[0], small[0], rtol=1e-15)
    want = np.log1p(small.astype(np.clongdouble))
    np.testing.assert_allclose(apply("stablehlo.log_plus_one", [small])[2].imag, np.float64(want[2].imag), rtol=1e-15)
    np.testing.assert_allclose(apply("stablehlo.exponential_minus_one", [small])[0], small[0], rtol=1e-15)
    large = np.array([1e300 + 1e300j])
    np.testing.assert_allclose(apply("stablehlo.divide", [large, large]), [1], rtol=1e-15)
    np.testing.assert_allclose(apply("stablehlo.abs", [large]), [np.abs(large[0])], rtol=1e-15)
    np.testing.assert_allclose(apply("stablehlo.logistic", [np.array([-800 + 1j, 800 + 1j])]), [0, 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_order_is_by_real_then_imaginary_part(dtype: str) -> None:
    values = np.array([complex(x, y) for x, y in itertools.product([-1, 0, 2], repeat=2)], dtype)
    a, b = np.repeat(values, 9), np.tile(values, 9)
    np.testing.assert_array_equal(apply("stablehlo.maximum", [a, b]), np.maximum(a, b))
    np.testing.assert_array_equal(apply("stablehlo.minimum", [a, b]), np.minimum(a, b))
    run = sw.jit(lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y), mesh=MESH)
    for got, want in zip(run(a, b), (a < b, a <= b, a > b, a >= b, a == b, a != b)):
        np.testing.assert_array_equal(np.asarray(got), want)


def test_parts() -> None:
    z = points("complex64", 24).reshape(6, 4)
    sharded = sw.device_put(z, sw.NamedSharding(MESH, sw.P("x", "y")))
    for function in (np.real, np.imag, np.abs, np.conj, np.angle, np.iscomplex, np.isreal, np.isnan, np.isfinite):
        want = function(z)
        for got in (function(sharded), sw.jit(function, mesh=MESH)(sharded)):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(sharded.real), z.real)
    np.testing.assert_array_equal(np.asarray(sharded.imag), z.imag)
    np.testing.assert_allclose(np.angle(sharded, deg=True), np.angle(z, deg=True), rtol=1e-6)
    assert np.iscomplexobj(sharded)
    assert not np.isrealobj(sharded)
    x = np.ones(3)
    assert np.asarray(sw.jit(np.imag, mesh=MESH)(x)).tolist() == [0, 0, 0]


def test_python_complex_numbers_are_weak() -> None:
    x = np.arange(8, dtype=np.float32)
    run = sw.jit(lambda x, w: (x * 1j, x + w, w * 2), mesh=MESH)
    for got, want in zip(run(x, 2 - 1j), (x * 1j, x + (2 - 1j), np.asarray((2 - 1j) * 2)), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(got), want)


REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum(x, axis=0),
    "sum of all": np.sum,
    "prod": lambda x: np.prod(x, axis=1),
    "mean": lambda x: np.mean(x, axis=1),
    "var": lambda x: np.var(x, axis=0),
    "max": lambda x: np.max(x, axis=0),
    "cumsum": lambda x: np.cumsum(x, axis=0),
    "cumprod": lambda x: np.cumprod(x, axis=1),
    "matmul": lambda x: x @ x.T,
    "einsum": lambda x: np.einsum("ij,ij->i", x, x),
    "vdot": lambda x: np.vdot(x, x),
    "norm": np.linalg.norm,
    "where": lambda x: np.where(np.abs(x) > 1, x, 0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_and_products_on_uneven_shards(name: str) -> None:
    z = points("complex128", 35).reshape(7, 5)
    want = REDUCTIONS[name](z)
    for spec in (sw.P("x", "y"), sw.P(None, "x"), sw.P(("x", "y"))):
        got = sw.jit(REDUCTIONS[name], mesh=MESH)(sw.device_put(z, sw.NamedSharding(MESH, spec)))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)


# ---- gradients -------------------------------------------------------------------------------------------------------

HOLOMORPHIC: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "arcsin": np.arcsin, "arccos": np.arccos,
    "arctan": np.arctan, "arcsinh": np.arcsinh, "arccosh": np.arccosh, "arctanh": np.arctanh,
    "square": lambda z: z * z, "reciprocal": lambda z: 1 / z, "power": lambda z: z ** (1.5 - 0.5j),
    "exponent": lambda z: np.power(0.5 + 1j, z), "prod": lambda z: np.prod(np.stack([z, z + 1, z * 2])),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_gradients_of_holomorphic_functions_are_their_derivatives(name: str) -> None:
    f = HOLOMORPHIC[name]
    gradient = sw.jit(sw.grad(lambda z: np.real(f(z))), mesh=MESH)
    for z in (0.4 + 0.7j, -0.6 + 0.3j, -0.5 - 1.2j, 1.3 - 0.2j):
        step = 1e-5
        want = (f(np.complex128(z + step)) - f(np.complex128(z - step))) / (2 * step)
        np.testing.assert_allclose(np.asarray(gradient(np.complex128(z))), want, rtol=1e-8)


def by_parts(f: Callable[[Any], Any], z: Array) -> Array:
    """jax.grad's convention: the derivative by the real part, minus i times that by the imaginary part."""
    step, slope = 1e-6, np.zeros(z.shape, np.complex128)
    for index in np.ndindex(z.shape):
        for unit, factor in ((1, 1), (1j, -1j)):
            ends = []
            for sign in (1, -1):
                moved = z.copy()
                moved[index] += sign * step * unit
                ends.append(f(moved))
            slope[index] += factor * (ends[0] - ends[1]) / (2 * step)
    return slope


REAL_VALUED: dict[str, Callable[[Any], Any]] = {
    "abs": lambda z: np.sum(np.abs(z)),
    "square of abs": lambda z: np.sum(np.real(z * np.conj(z))),
    "imag": lambda z: np.sum(np.imag(z * z)),
    "angle": lambda z: np.sum(np.angle(z)),
    "parts": lambda z: np.sum(np.real(z) * np.imag(z) ** 2),
    "dot": lambda z: np.real(np.vdot(z, z[::-1] * (1 + 2j))),
    "matmul": lambda z: np.sum(np.abs(np.reshape(z, (2, 3)) @ np.reshape(z, (3, 2)))),
    "convert": lambda z: np.sum(np.real(z).astype(np.complex128).real * 3),
    "cumsum": lambda z: np.sum(np.abs(np.cumsum(z))),
    "mean": lambda z: np.abs(np.mean(z)) + np.var(z),
}


@pytest.mark.parametrize("name", REAL_VALUED)
def test_gradients_of_real_valued_functions_follow_jax(name: str) -> None:
    f, z = REAL_VALUED[name], points("complex128", 6, seed=4)
    got = np.asarray(sw.jit(sw.grad(f), mesh=MESH)(sw.device_put(z, sw.NamedSharding(MESH, sw.P("x")))))
    np.testing.assert_allclose(got, by_parts(f, z), rtol=1e-6, atol=1e-8)


# jax.grad of jax 0.10.2 at 0.5 + 0.75j and -1.25 - 0.5j.
BY_JAX: dict[str, tuple[Callable[[Any], Any], list[complex]]] = {
    "abs": (
        lambda z: np.sum(np.abs(z)),
        [0.554700196225229 - 0.8320502943378436j, -0.9284766908852594 + 0.3713906763541037j],
    ),
    "imag": (lambda z: np.sum(np.imag(z * z)), [1.5 - 1j, -1 + 2.5j]),
    "exp": (
        lambda z: np.sum(np.real(np.exp(z))),
        [1.2063510016467855 + 1.1238323225841311j, 0.2514316136224464 - 0.1373577165473844j],
    ),
    "conj": (lambda z: np.real(np.sum(np.conj(z) ** 2 * z)), [1.3125 - 0.75j, 4.9375 - 1.25j]),
    "rfft": (lambda z: np.sum(np.abs(np.fft.rfft(np.real(z)))), [0, -2]),
    "irfft": (lambda z: np.sum(np.fft.irfft(z) ** 2), [0.5, -1.25]),
}


@pytest.mark.parametrize("name", BY_JAX)
def test_gradients_are_the_numbers_of_jax(name: str) -> None:
    f, want = BY_JAX[name]
    got = np.asarray(sw.jit(sw.grad(f), mesh=MESH)(np.array([0.5 + 0.75j, -1.25 - 0.5j])))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_the_gradient_of_abs_at_zero_is_zero() -> None:
    gradient = sw.jit(sw.grad(lambda z: np.abs(z)), mesh=MESH)
    assert complex(gradient(np.complex64(0))) == 0


def test_vmap_of_complex_functions() -> None:
    z = points("complex64", 12).reshape(4, 3)
    got = sw.jit(sw.vmap(lambda row: np.exp(row) * np.sum(row)), mesh=MESH)(z)
    np.testing.assert_allclose(np.asarray(got), np.exp(z) * np.sum(z, axis=1, keepdims=True), rtol=1e-5)
