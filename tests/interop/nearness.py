# SPDX-License-Identifier: Apache-2.0
"""Compares the results of a program on another engine with those of the virtual mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["assert_near"]


def assert_near(got: Any, want: Any, exact: bool) -> None:
    want = np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if exact or got.dtype.kind not in "fcV":
        np.testing.assert_array_equal(got, want)
        if got.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
        return
    if got.dtype.kind == "c":
        assert_near(got.real, want.real, exact)
        assert_near(got.imag, want.imag, exact)
        return
    scale = float(np.abs(want.astype(np.float64)).max(initial=1.0))
    eps = 2.0**-7 if got.dtype.itemsize == 2 else 1e-6 if got.dtype == np.float32 else 1e-14
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=16 * eps, atol=16 * eps * scale)
