# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 (a case is read best on one line, as a user writes it)
"""NumPy functions on complex numbers, booleans and 8-bit integers: values, dtypes and shapes are NumPy's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.api.functions.numpy_cases import Case, all_cases, data
from tests.op.test_complex import by_parts

MESH = sw.Mesh({"x": 2})
# The cases divide by zero, and NumPy warns where a complex constant becomes real.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")


def assert_same(result: Any, expected: Any, eps: float = 2**-52) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected):
            assert_same(one, other, eps)
        return
    result, expected = np.asarray(result), np.asarray(expected)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(result, expected)
        return
    eps = max(eps, float(np.finfo(expected.dtype).eps))
    size = np.abs(expected.astype(np.complex128))
    scale = float(np.max(np.where(np.isfinite(size), size, 0), initial=0))
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(result.astype(wide), expected.astype(wide), rtol=64 * eps, atol=16 * eps * scale)


def run(function: Callable[..., Any], *arrays: Any) -> Any:
    return sw.jit(function, mesh=MESH)(*arrays)


V, U = np.array([1 + 2j, 3 - 1j]), np.array([2j, 1 + 1j])
M = np.array([[1 + 2j, 3 - 1j, 0.5], [2j, 1 + 1j, 3], [4 - 1j, 2, 1j]])
NANS = np.array(
    [complex(np.nan, 1), 2 + 1j, complex(1, np.nan), 1 - 1j, complex(np.nan, np.nan), 1 - 2j, complex(2, np.nan)]
)
FLAGS = np.array([True, False, True])
BYTES = np.array([250, 3, 7, 0], np.uint8)

SAME: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "linalg.vecdot": (np.linalg.vecdot, (V, U)),
    "linalg.vecdot-axis": (lambda a, b: np.linalg.vecdot(a, b, axis=0), (M, M[::-1])),
    "correlate": (lambda a, b: [np.correlate(a, b, mode) for mode in ("full", "same", "valid")], (M[0], U)),
    "correlate-short": (lambda a, b: [np.correlate(a, b, mode) for mode in ("full", "same", "valid")], (V, M[0])),
    "cov": (lambda m: [np.cov(m), np.cov(m[0]), np.cov(m, rowvar=False, bias=True)], (M,)),
    "cov-two": (np.cov, (V, U)),
    "corrcoef": (lambda m: [np.corrcoef(m), np.corrcoef(m[0])], (M,)),
    "rint": (np.rint, (M * 1.3,)),
    "median": (lambda v, m: [np.median(v), np.median(m, axis=0), np.median(m, axis=1, keepdims=True)], (V, M)),
    "interp": (lambda x, f: np.interp(x, [1, 2, 4], f), (np.array([0.0, 1.5, 3, 9]), M[0])),
    "interp-ends": (lambda x, f: np.interp(x, [1, 2, 4], f, left=1j, right=-2), (np.array([0.0, 1.5, 3, 9]), M[0])),
    "gradient-uint8": (np.gradient, (np.array([1.0, 2, 4]), np.array([5, 3, 2], np.uint8))),
    "gradient-known-uint8": (lambda f: np.gradient(f, np.array([5, 3, 2], np.uint8)), (np.array([1.0, 2, 4]),)),
    "vdot-bool": (np.vdot, (FLAGS, FLAGS)),
    "angle-bool": (lambda x: [np.angle(x), np.angle(x, deg=True)], (FLAGS,)),
    "angle": (lambda x: [np.angle(x), np.angle(x, deg=True)], (BYTES,)),
    "ix_-mask": (lambda x, i: x[np.ix_(i, [True, False, True])], (M, np.array([2, 0]))),
    "ix_-empty": (lambda x, i: np.ix_(i, []), (M, np.array([2, 0]))),
    "fmax": (lambda x: [f(x, np.roll(x, 1)) for f in (np.fmax, np.fmin)], (NANS,)),
    "sort": (lambda x: [np.sort(x), np.argsort(x, kind="stable"), np.lexsort((x.real, x))], (NANS,)),
    "searchsorted": (lambda x: [np.searchsorted(np.sort(NANS), x, side) for side in ("left", "right")], (NANS,)),
    "round-bool": (np.round, (FLAGS,)),
    "median-bool": (np.median, (FLAGS,)),
    "quantile-elements": (lambda x: [np.quantile(x, [0.3, 0.7], method=m) for m in ("lower", "higher", "nearest")], (BYTES,)),
    "bincount-bool": (lambda x: np.bincount(x, minlength=2), (FLAGS,)),
    "unravel_index-bool": (lambda x: np.unravel_index(x, (2, 3)), (FLAGS,)),
    "choose-number": (lambda i, x: np.choose(i, [x, 5]), (np.array([0, 1, 1, 0]), BYTES)),
    "unwrap-uint8": (np.unwrap, (BYTES,)),
    "unwrap-int8": (lambda x: np.unwrap(x, period=4), (BYTES.astype(np.int8),)),
    "dtype=": (lambda x: [np.sum(x, dtype=float), np.mean(x, dtype=float), np.cumsum(x, dtype=float), np.trace(x, dtype=float)], (M,)),
    "full_like": (lambda x, c: [np.full_like(x, c), np.full_like(x, 2j), np.pad(x, 1, constant_values=2j)], (M.real, M[0, 0])),
}  # fmt: skip
if hasattr(np, "vecdot"):
    SAME["vecdot"] = (np.vecdot, (M, V[0] + M))
if hasattr(np, "vecmat"):
    SAME["vecmat"] = (np.vecmat, (M[0], M))
    SAME["matvec"] = (np.matvec, (M, M[0]))


@pytest.mark.parametrize("name", SAME)
def test_value_and_dtype_are_numpys(name: str) -> None:
    function, arrays = SAME[name]
    assert_same(run(function, *arrays), function(*arrays))


# A call that NumPy refuses, its arrays, the exception, and a part of its text.
REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = {
    "quantile": (lambda x: np.quantile(x, 0.3), (V,), sw.DTypeError, "np.quantile: the array must be of real numbers, got complex128; use np.real(x)"),
    "percentile": (lambda x: np.percentile(x, 30), (V,), sw.DTypeError, "np.percentile: the array must be of real"),
    "interp": (lambda x: np.interp(x, [1, 2], [1, 2]), (V,), sw.DTypeError, "np.interp: the array must be of real"),
    "interp-left": (lambda x: np.interp(x, [1, 2], [1, 2], left=1j), (V.real,), sw.DTypeError, "a number must be of float64, got 1j"),
    "digitize": (lambda x: np.digitize(x, [1, 2]), (V,), sw.DTypeError, "np.digitize: the array must be of real"),
    "digitize-bins": (lambda x: np.digitize(x.real, x), (V,), sw.DTypeError, "np.digitize: the array must be of real"),
    "rfft": (np.fft.rfft, (V,), sw.DTypeError, "np.fft.rfft: the array must be of real numbers"),
    "rfft2": (np.fft.rfft2, (M,), sw.DTypeError, "np.fft.rfft2: the array must be of real numbers"),
    "ihfft": (np.fft.ihfft, (V,), sw.DTypeError, "np.fft.ihfft: the array must be of real numbers"),
    "isposinf": (np.isposinf, (V,), sw.DTypeError, "np.isposinf: the array must be of real numbers"),
    "isneginf": (np.isneginf, (V,), sw.DTypeError, "np.isneginf: the array must be of real numbers"),
    "bincount": (lambda i, w: np.bincount(i, w, minlength=3), (np.array([0, 1]), V), sw.DTypeError, "np.bincount: the array must be of real"),
    "insert": (lambda x: np.insert(x, 1, 2j), (V.real,), sw.DTypeError, "complex numbers cannot be used as float64, which has no imaginary part, got complex128; use np.real(x)"),
    "concatenate": (lambda x: np.concatenate([x, x], dtype=float), (V,), sw.DTypeError, "complex numbers cannot be used as float64"),
    "einsum": (lambda x: np.einsum("i,i", x, x, dtype=float), (V,), sw.DTypeError, "complex numbers cannot be used as float64"),
    "ediff1d": (lambda x: np.ediff1d(x, to_end=1.5), (BYTES,), sw.DTypeError, "np.ediff1d: the ends must fit uint8, got float64"),
    "ix_-traced-mask": (lambda x: np.ix_(x, [1]), (FLAGS,), sw.UnsupportedError, "np.ix_: the places must be known during tracing"),
    "ix_": (lambda x: np.ix_(x), (M,), sw.ShapeError, "np.ix_: each argument must have one dim, got shape (3, 3)"),
    "vander": (np.vander, (M,), sw.ShapeError, "np.vander: the array must have one dim, got shape (3, 3)"),
    "vander-negative": (lambda x: np.vander(x, -2), (V,), sw.ShapeError, "np.vander: N must not be negative, got -2"),
    "histogram-none": (lambda x: np.histogram(x, 0), (V.real,), ValueError, "the number of bins must be positive, got 0"),
    "histogram-part": (lambda x: np.histogram(x, 2.5), (V.real,), TypeError, "bins must be an integer, got 2.5"),
    "clip-twice": (lambda x: np.clip(x, 0, 1, max=1), (V.real,), ValueError, "a_max and max cannot both be given, got 1 and 1"),
}  # fmt: skip
NUMPY_ALLOWS = {"ix_-traced-mask"}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_numpys(name: str) -> None:
    function, arrays, error, text = REFUSED[name]
    if name not in NUMPY_ALLOWS:
        with pytest.raises((TypeError, ValueError)):
            function(*arrays)
    with pytest.raises(error, match=re.escape(text)):
        run(function, *arrays)


def test_the_histogram_of_complex_numbers_needs_edges() -> None:
    with pytest.raises(sw.DTypeError, match=re.escape("np.histogram: the array must be of real numbers")):
        run(lambda x: np.histogram(x, 3), V)
    assert_same(run(lambda x: np.histogram(x, [0, 2, 4]), V), np.histogram(V, [0, 2, 4]))


@pytest.mark.filterwarnings("default::numpy.exceptions.ComplexWarning")
def test_astype_warns_where_it_drops_imaginary_parts() -> None:
    with pytest.warns(np.exceptions.ComplexWarning, match="float32 drops the imaginary parts, got complex128"):
        assert_same(run(lambda x: x.astype(np.float32), V), V.real.astype(np.float32))


def test_more_dims_than_numpy_has_are_named() -> None:
    for ndim, text in (
        (65, "a constant must have at most 64 dims, NumPy's limit, got 65"),
        (5, "must fit into 63 bits"),
    ):
        x = sw.ShapeDtypeStruct((1 if ndim > 64 else 2**14,) * ndim, np.float32)
        with pytest.raises(sw.ShapeError, match=text):
            sw.jit(lambda x: x + 1, mesh=MESH).trace(x)


C = np.array([0.5 + 0.75j, -1.25 - 0.5j, 2 + 0.25j, 0.25 - 1j, -0.5 + 1.5j, 1 + 1j])
GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "linalg.vecdot": lambda z: np.real(np.linalg.vecdot(z, z[::-1] * (1 + 2j))),
    "correlate": lambda z: np.sum(np.abs(np.correlate(z, z[:2], "full"))),
    "cov": lambda z: np.sum(np.abs(np.cov(np.reshape(z, (2, 3))))),
    "corrcoef": lambda z: np.sum(np.imag(np.corrcoef(np.reshape(z, (2, 3))))[0]),
    "median": lambda z: np.abs(np.median(z)),
    "sort": lambda z: np.sum(np.real(np.sort(z) * np.arange(6) * (1 - 1j))),
    "interp": lambda z: np.sum(np.abs(np.interp([0.3, 2.5, 9], np.arange(6), z))),
    "fmax": lambda z: np.abs(np.sum(np.fmax(z, z[::-1] * (2 + 1j)))),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_complex_functions_follow_jax(name: str) -> None:
    got = np.asarray(sw.jit(sw.grad(GRADIENTS[name]), mesh=MESH)(C))
    np.testing.assert_allclose(got, by_parts(GRADIENTS[name], C), rtol=1e-6, atol=1e-8)


# ---- every case of the table in other dtypes ---------------------------------------------------------------------------

DTYPES = [np.dtype(name) for name in ("complex64", "complex128", "bool", "uint8", "int8")]

# Intended differences from NumPy, by case and dtype.
DIFFERENT = {
    "sign-special": ("complex64 complex128", "StableHLO's sign of a complex infinity is NaN"),
    "power": ("int8", "a negative traced exponent cannot raise"),
    "<<=": ("bool", "x <<= y binds x to a new array, which may have another dtype"),
    "viewed": ("complex64 complex128", "a view keeps the width"),
    "composed-piecewise": ("bool", "every function runs, also on no elements"),
    "composed-histogram-number": ("complex64 complex128", "bins of complex numbers are refused"),
    "composed-histogram-range": ("complex64 complex128", "bins of complex numbers are refused"),
    "composed-histogram-integers": ("complex64 complex128", "bins of complex numbers are refused"),
    "composed-histogram-weights": ("bool", "NumPy cannot add boolean weights"),
}  # fmt: skip


def _one_case_per_name() -> dict[str, Case]:
    """The table without the variants of a case that differ only in the dtype."""
    cases: dict[str, Case] = {}
    for case in all_cases():
        name = re.sub(r"-(b?float\d+|bool|u?int\d+)(?=-|$)", "", case.name)
        cases.setdefault(name, case)
    return cases


def _converted(x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    if dtype.kind == "c":
        imaginary = np.resize(data((max(x.size, 1),), np.float64, 11, -3, 3), x.shape)
        return np.asarray(x.astype(np.float64) + 1j * imaginary).astype(dtype)
    whole = np.rint(np.nan_to_num(x.astype(np.float64), posinf=9, neginf=-9))
    if dtype.kind == "b":
        return np.asarray(whole % 2 == 1)
    return np.asarray(np.clip(whole, 0 if dtype.kind == "u" else -99, 99)).astype(dtype)


def _arrays(case: Case, dtype: np.dtype[Any]) -> list[np.ndarray]:
    arrays = [np.asarray(x) for x in case.arrays]
    is_indexed = arrays[0].dtype.kind == "f"  # then integers are indices or counts, and stay
    return [x if is_indexed and x.dtype.kind in "iu" else _converted(x, dtype) for x in arrays]


def _outcome(function: Callable[..., Any], arrays: list[np.ndarray]) -> Any:
    try:
        return function(*arrays)
    except (TypeError, ValueError, IndexError, OverflowError, ArithmeticError, sw.UnsupportedError) as error:
        return error


CASES = _one_case_per_name()


@pytest.mark.parametrize("name", CASES)
def test_other_dtypes_match_numpy(name: str) -> None:
    case = CASES[name]
    for dtype in DTYPES:
        arrays = _arrays(case, dtype)
        expected = _outcome(case.function, arrays)
        result = _outcome(lambda *x: run(case.function, *x), arrays)
        fails = [isinstance(outcome, Exception) for outcome in (expected, result)]
        try:
            assert fails[0] == fails[1], f"{dtype}: NumPy gives {expected!r}, Shardwise gives {result!r}"
            if not any(fails):
                assert_same(result, expected, 2**-23 if dtype == np.complex64 else 2**-52)
        except AssertionError:
            if dtype.name not in DIFFERENT.get(name, ("", ""))[0].split():
                raise
        else:
            assert dtype.name not in DIFFERENT.get(name, ("", ""))[0].split(), f"{dtype} does not differ anymore"


QUANTILES = [0.3, [0.1, 0.6], (0.1, 0.6), np.float64(0.1), np.array([0.1, 0.6]), np.array([0.1], np.float32), [0, 1], 1]


@pytest.mark.parametrize("function", [np.quantile, np.percentile])
@pytest.mark.parametrize("q", QUANTILES, ids=repr)
def test_quantiles_have_the_dtype_of_numpy(function: Any, q: Any) -> None:
    x = (np.arange(10, dtype=np.float32) ** 2)[::-1].copy()
    found, want = np.asarray(run(lambda x: function(x, q), x)), function(x, q)
    assert found.dtype == want.dtype
    np.testing.assert_allclose(found, want, rtol=1e-6)
