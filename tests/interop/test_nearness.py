# SPDX-License-Identifier: Apache-2.0
"""The comparison of engines: which results are exact, and which errors it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.dtypes import numpy_dtype
from tests.interop.nearness import assert_near, exact_results

X = np.arange(1, 33, dtype=np.float32).reshape(8, 4)


def test_results_that_depend_on_a_sum_or_a_contraction_are_not_exact() -> None:
    def function(x: Any, w: Any) -> Any:
        exact = [x.T, x.max(0), np.argmax(x, 1), x[1:] + x[:-1], x * w, np.sqrt(x), np.sort(x, 0), x / w, x / 4]
        exact += [(x > 2).sum(0), x.astype(np.int32).prod(0), np.where(x > w, x, 0)]
        exact += [sw.random.bits(sw.random.key(0), (8, 4))]
        rounded = [x.sum(0), x @ w.T, np.exp(x), x * w + x, x / 3, x.mean(), np.cumsum(x, 0), np.argmax(x.sum(0))]
        rounded += [np.exp(x).T]
        return exact, rounded

    program = sw.jit(function, mesh=sw.Mesh({"x": 4}), in_shardings=(P("x"), None)).lower(X, X).compile()
    assert exact_results(program) == [True] * 13 + [False] * 9


def test_results_of_loops_are_not_exact() -> None:
    program = sw.jit(lambda x: sw.fori_loop(0, 3, lambda i, c: c + c, x), mesh=sw.Mesh({"x": 4})).lower(X).compile()
    assert exact_results(program) == [False]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn"])
def test_an_error_of_some_units_in_the_last_place_is_found(dtype: str) -> None:
    want = X.astype(numpy_dtype(dtype))
    if want.dtype.itemsize < 4:
        bits = want.view(f"u{want.dtype.itemsize}")
        near, far = (bits + 1).view(want.dtype), (bits + 2).view(want.dtype)
    else:
        unit = np.finfo(want.dtype).eps * want.max()
        near, far = want + 7 * unit, want + 9 * unit
    assert_near(near, want, False)
    with pytest.raises(AssertionError, match="from the result, where"):
        assert_near(far, want, False)
    with pytest.raises(AssertionError, match="must be the same bits"):
        assert_near(near, want, True)


@pytest.mark.parametrize(
    ("got", "want", "exact"),
    [
        ([0.0], [-0.0], True), ([np.nan], [1.0], False), ([np.inf], [1.0], False), ([1.0], [np.nan], False),
        ([1e-3, 0], [0, 0], False), ([1, 1e-6], [1, 0], True),
    ],
)  # fmt: skip
def test_other_values_are_found(got: list[float], want: list[float], exact: bool) -> None:
    with pytest.raises(AssertionError):
        assert_near(np.array(got, np.float32), np.array(want, np.float32), exact)


def test_integers_and_small_results_are_compared_closely() -> None:
    with pytest.raises(AssertionError, match="must be the same bits"):
        assert_near(np.array([1]), np.array([2]), False)
    small = np.array([1e-9, 2e-9], np.float32)
    with pytest.raises(AssertionError, match="from the result, where"):
        assert_near(small * 2, small, False)
    complex_result = np.array([1 + 1e-3j])
    with pytest.raises(AssertionError):
        assert_near(complex_result, np.array([1 + 0j]), False)
    assert_near(complex_result, complex_result * (1 + 2.0**-52), False)
