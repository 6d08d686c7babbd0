# SPDX-License-Identifier: Apache-2.0
"""NumPy calls outside jit whose axis, size or shift is a small integer Array: only the first call of a kind fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise.recording import tracing

MESH = sw.Mesh({"d": 2})
A = np.arange(12.0).reshape(3, 4)
CALLS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, k: np.sum(x, axis=k),
    "method": lambda x, k: x.max(k),
    "expand_dims": lambda x, k: np.expand_dims(x, k),
    "reshape": lambda x, k: np.reshape(x, (k + 1, -1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_only_the_first_call_asks_a_tracer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    error_of = tracing.conversion_error
    monkeypatch.setattr(tracing, "conversion_error", lambda x, what: asked.append(what) or error_of(x, what))
    x, call = sw.device_put(A, MESH), CALLS[name]
    for axis in (1, 0, 1, 0):
        k = sw.device_put(np.array(axis), MESH)
        got = call(x, k)
        assert isinstance(got, sw.Array)
        assert np.array_equal(got, call(A, axis))
    assert len(asked) <= 1


def test_an_axis_that_is_wrong_stays_an_error() -> None:
    x = sw.device_put(A, MESH)
    assert np.array_equal(np.sum(x, axis=sw.device_put(np.array(1), MESH)), A.sum(1))
    with pytest.raises(sw.ShapeError, match=r"^np.sum: an axis of 2 dims must be in \[-2, 2\), got 2 "):
        np.sum(x, axis=sw.device_put(np.array(2), MESH))


def test_a_list_of_numpys_numbers_is_an_array() -> None:
    x, ones = sw.device_put(np.arange(4, dtype=np.float32), MESH), [np.float32(1), np.float32(3)] * 2
    for function in (
        lambda x: np.add(x, ones),
        lambda x: x + ones,
        lambda x: np.where(x > 1, ones, 0),
        lambda x: np.concatenate([x, ones]),
        lambda x: np.array_equal(x, ones),
        lambda x: np.where([np.bool_(True), np.bool_(False)] * 2, x, -1),
    ):
        found, want = function(x), function(np.asarray(x))
        assert np.asarray(found).dtype == np.asarray(want).dtype
        np.testing.assert_array_equal(np.asarray(found), want)


def test_like_an_array_of_devices_numpy_makes_its_own() -> None:
    x = sw.device_put(np.arange(4), MESH)
    for function in (np.asarray, np.array, np.asanyarray, np.ascontiguousarray):
        found = function(A, like=x)
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, A)
