# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of every length and kind against NumPy, on one device and on meshes; gradients and batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.op.dtype_values import Array

MESH = sw.Mesh({"x": 4, "y": 2})


def signal(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else real).astype(dtype)


def run(f: Callable[[Any], Any], x: Array, spec: Any = None) -> Array:
    placed = sw.device_put(x, sw.NamedSharding(MESH, sw.P() if spec is None else spec))
    return np.asarray(sw.jit(f, mesh=MESH)(placed))


def close(got: Array, want: Array, eps: float) -> None:
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    error = np.sqrt(np.mean(np.abs(got - want) ** 2)) / max(np.sqrt(np.mean(np.abs(want) ** 2)), 1e-30)
    assert error < eps, f"relative error {error}"


# small factors, primes, products with a large prime
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 35, 37, 60, 64, 74, 97, 101, 128, 210, 331, 1000, 1009, 1024]
LONG = [250, 255, 256, 257, 961, 2046, 4096, 3 * 1331]  # as a matrix, or nearly


@pytest.mark.parametrize(("dtype", "eps"), [("complex64", 1e-6), ("complex128", 1e-14)])
def test_every_length(dtype: str, eps: float) -> None:
    for n in LENGTHS + LONG:
        x = signal((2, n), dtype, n)
        got = run(lambda x: (np.fft.fft(x), np.fft.ifft(x))[0], x)
        close(got, np.fft.fft(x), eps)
        close(run(np.fft.ifft, x), np.fft.ifft(x), eps)
        real = np.ascontiguousarray(x.real)
        close(run(np.fft.rfft, real), np.fft.rfft(real), eps)
        close(run(lambda x, n=n: np.fft.irfft(x, n), x[:, : n // 2 + 1]), np.fft.irfft(x[:, : n // 2 + 1], n), eps)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_line_has_the_same_bits_in_any_batch(dtype: str) -> None:
    for n in (12, 37, 256, 300, 1009):
        x = signal((19, n), dtype, n)
        whole = run(np.fft.fft, x)
        for part in (slice(0, 1), slice(3, 20)):
            np.testing.assert_array_equal(run(np.fft.fft, x[part]), whole[part])
        columns = run(lambda x: np.fft.fft(x, axis=0), np.ascontiguousarray(x.T))
        np.testing.assert_array_equal(columns.T, whole)
        real = np.ascontiguousarray(x.real)
        np.testing.assert_array_equal(run(np.fft.rfft, real[4:]), run(np.fft.rfft, real)[4:])


def test_a_line_of_nans_leaves_the_others_alone() -> None:
    x = signal((5, 64), "complex128")
    x[2] = np.nan
    got = run(np.fft.ifft, x)
    np.testing.assert_array_equal(np.isnan(got).all(axis=1), np.isnan(got).any(axis=1))
    np.testing.assert_array_equal(np.isnan(got[:, 0]), np.arange(5) == 2)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "fft along an axis": (lambda x: np.fft.fft(x, axis=1), "complex128"),
    "padded": (lambda x: np.fft.fft(x, 9, axis=0), "complex128"),
    "cut": (lambda x: np.fft.rfft(x, 4), "float64"),
    "ortho": (lambda x: np.fft.fft(x, norm="ortho"), "complex128"),
    "forward": (lambda x: np.fft.ifft(x, norm="forward"), "complex128"),
    "integers": (np.fft.rfft, "int32"),
    "float32": (np.fft.fft, "float32"),
    "hfft": (np.fft.hfft, "complex128"),
    "ihfft": (np.fft.ihfft, "float64"),
    "fftn": (np.fft.fftn, "complex64"),
    "ifftn": (np.fft.ifftn, "complex128"),
    "rfftn": (np.fft.rfftn, "float64"),
    "irfftn": (np.fft.irfftn, "complex128"),
    "fft2": (np.fft.fft2, "complex128"),
    "ifft2": (lambda x: np.fft.ifft2(x, (5, 7), axes=(0, 2)), "complex128"),
    "rfft2": (lambda x: np.fft.rfft2(x, norm="ortho"), "float32"),
    "irfft2": (np.fft.irfft2, "complex128"),
    "fftshift": (np.fft.fftshift, "float64"),
    "ifftshift": (lambda x: np.fft.ifftshift(x, axes=1), "float64"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numpy_on_uneven_shards(name: str) -> None:
    f, dtype = FUNCTIONS[name]
    x = signal((5, 6, 7), dtype) if dtype != "int32" else np.arange(210, dtype=np.int32).reshape(5, 6, 7)
    for spec in (sw.P("x"), sw.P(None, "x", "y")):
        close(run(f, x, spec), f(x), 1e-6 if dtype in ("float32", "complex64") else 1e-13)


def test_batch_dims_stay_split() -> None:
    x = signal((8, 6), "complex64")
    compiled = sw.jit(np.fft.fft, mesh=MESH).trace(
        sw.ShapeDtypeStruct(x.shape, x.dtype, sharding=sw.NamedSharding(MESH, sw.P("x")))
    ).propagate().compile()  # fmt: skip
    assert not compiled.collectives().rows


GRADIENTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "fft": (lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2 * np.arange(7)), "complex128"),
    "ifft": (lambda x: np.sum(np.real(np.fft.ifft(x)) * np.arange(7)), "complex128"),
    "rfft": (lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2 * np.arange(4)), "float64"),
    "irfft, odd": (lambda x: np.sum(np.fft.irfft(x, 13) ** 2 * np.arange(13)), "complex128"),
    "irfft, even": (lambda x: np.sum(np.fft.irfft(x) ** 2 * np.arange(12)), "complex128"),
    "rfft2": (lambda x: np.sum(np.abs(np.fft.rfft2(x)) ** 3), "float64"),
    "irfft2": (lambda x: np.sum(np.fft.irfft2(x) ** 3), "complex128"),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    f, dtype = GRADIENTS[name]
    x, step = signal((3, 7), dtype), 1e-6
    got = run(sw.grad(f), x, sw.P("x"))
    rng = np.random.default_rng(8)
    for _ in range(4):
        along = rng.standard_normal(x.shape) + (1j * rng.standard_normal(x.shape) if dtype == "complex128" else 0)
        want = (f(x + step * along) - f(x - step * along)) / (2 * step)
        np.testing.assert_allclose(np.sum(np.real(got * along)), want, rtol=1e-6, atol=1e-6)


def test_vmap() -> None:
    x = signal((4, 3, 7), "complex128")
    close(run(sw.vmap(np.fft.fft2), x, sw.P("x")), np.fft.fft2(x), 1e-13)


def test_wrong_norms_and_lengths_are_named() -> None:
    with pytest.raises(ValueError, match=r'np.fft.fft: norm must be "backward", "ortho" or "forward", got \'both\''):
        run(lambda x: np.fft.fft(x, norm="both"), signal((3, 4), "complex64"))
    with pytest.raises(sw.ShapeError, match=r"np.fft.rfft: a transform must have at least 1 element, got 0"):
        run(lambda x: np.fft.rfft(x, 0), signal((3, 4), "float32"))
