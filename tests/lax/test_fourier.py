# SPDX-License-Identifier: Apache-2.0
"""`sw.lax.fft` against JAX's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.lax.against_jax import check

RANDOM = np.random.default_rng(0)
REAL = RANDOM.normal(size=(3, 6, 8))
COMPLEX = REAL + 1j * RANDOM.normal(size=(3, 6, 8))
CASES: list[Any] = [
    (REAL, "RFFT", (8,)),
    (REAL, "RFFT", (6, 8)),
    (COMPLEX, "FFT", (8,)),
    (COMPLEX, "IFFT", (3, 6, 8)),
    (REAL, "fft", (6, 8)),
    (COMPLEX[..., :5], "IRFFT", (8,)),
    (COMPLEX[..., :5], "IRFFT", (6, 9)),
    (REAL.astype(np.float32), "RFFT", (8,)),
    (COMPLEX.astype(np.complex64), "FFT", (8,)),
]


@pytest.mark.parametrize(("x", "kind", "lengths"), CASES, ids=lambda value: str(value) if type(value) is str else None)
def test_fft(x: np.ndarray, kind: str, lengths: tuple[int, ...]) -> None:
    eps = np.finfo(x.dtype).eps
    check("fft", x, kind, lengths, rtol=16 * eps, atol=64 * eps)


def test_an_enum_is_a_name() -> None:
    np.testing.assert_array_equal(sw.lax.fft(COMPLEX, sw.lax.FftType.IFFT, (8,)), sw.lax.fft(COMPLEX, "IFFT", (8,)))


def test_gradient() -> None:
    def power(x: Any) -> Any:
        return np.abs(sw.lax.fft(x, "RFFT", (8,))) ** 2

    # Parseval: a halved spectrum has all but its first and last numbers once instead of twice.
    weights = np.array([1, 2, 2, 2, 1])
    found = sw.grad(lambda x: (power(x) * weights).sum())(REAL)
    np.testing.assert_allclose(found, 2 * 8 * REAL, rtol=1e-12)
