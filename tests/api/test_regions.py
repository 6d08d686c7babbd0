# SPDX-License-Identifier: Apache-2.0
"""Texts with loops and branches run on one device; and how a run stops that would never end."""

from __future__ import annotations

import signal
import time
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core

MESH = sw.Mesh({"x": 2})

POWER_ITERATION = """
func.func @main(%a: tensor<6x6xf64>, %v: tensor<6xf64>, %trips: tensor<i32>) -> (tensor<6xf64>, tensor<f64>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f64>
  %r:3 = stablehlo.while(%i = %zero, %x = %v, %norm = %none) : tensor<i32>, tensor<6xf64>, tensor<f64>
    cond {
      %goes = stablehlo.compare LT, %i, %trips, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %y = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
          : (tensor<6x6xf64>, tensor<6xf64>) -> tensor<6xf64>
      %s = stablehlo.dot_general %y, %y, contracting_dims = [0] x [0]
          : (tensor<6xf64>, tensor<6xf64>) -> tensor<f64>
      %n = stablehlo.sqrt %s : tensor<f64>
      %b = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f64>) -> tensor<6xf64>
      %z = stablehlo.divide %y, %b : tensor<6xf64>
      stablehlo.return %j, %z, %n : tensor<i32>, tensor<6xf64>, tensor<f64>
    }
  return %r#1, %r#2 : tensor<6xf64>, tensor<f64>
}
"""

COLLATZ = """
func.func @main(%start: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %r:3 = stablehlo.while(%n = %start, %steps = %zero, %most = %start) : tensor<i32>, tensor<i32>, tensor<i32>
    cond {
      %goes = stablehlo.compare NE, %n, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes : tensor<i1>
    } do {
      %rest = stablehlo.remainder %n, %two : tensor<i32>
      %next = "stablehlo.case"(%rest) ({
        %half = stablehlo.divide %n, %two : tensor<i32>
        stablehlo.return %half : tensor<i32>
      }, {
        %triple = stablehlo.multiply %n, %three : tensor<i32>
        %more = stablehlo.add %triple, %one : tensor<i32>
        stablehlo.return %more : tensor<i32>
      }) : (tensor<i32>) -> tensor<i32>
      %count = stablehlo.add %steps, %one : tensor<i32>
      %higher = stablehlo.maximum %most, %next : tensor<i32>
      stablehlo.return %next, %count, %higher : tensor<i32>, tensor<i32>, tensor<i32>
    }
  return %r#1, %r#2 : tensor<i32>, tensor<i32>
}
"""

ENDLESS = """
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %true = stablehlo.constant dense<true> : tensor<i1>
  %r = stablehlo.while(%c = %a) : tensor<f32>
    cond {
      stablehlo.return %true : tensor<i1>
    } do {
      BODY
    }
  return %r : tensor<f32>
}
"""
BODIES = {
    "empty": "stablehlo.return %c : tensor<f32>",
    "small": "%d = stablehlo.negate %c : tensor<f32>\nstablehlo.return %d : tensor<f32>",
}


def run(text: str, *arrays: Any) -> list[np.ndarray]:
    """On one device."""
    return _core.runtime.run_unpartitioned(sw.parse(text)._core, [np.asarray(array) for array in arrays])


@pytest.mark.parametrize("trips", [0, 1, 40])
def test_a_loop_runs_until_its_condition_ends(trips: int) -> None:
    random = np.random.default_rng(0)
    a, v = random.random((6, 6)), random.random(6)
    x, norm = v, 0.0
    for _ in range(trips):
        y = a @ x
        norm = float(np.sqrt(y @ y))
        x = y / norm
    kept = v.copy()
    vector, length = run(POWER_ITERATION, a, v, np.int32(trips))
    np.testing.assert_allclose(vector, x, rtol=1e-13)
    np.testing.assert_allclose(length, norm, rtol=1e-13)
    np.testing.assert_array_equal(v, kept)


@pytest.mark.parametrize("start", [1, 2, 27, 97])
def test_a_branch_in_a_loop_is_chosen_in_each_trip(start: int) -> None:
    n, steps, most = start, 0, start
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps, most = steps + 1, max(most, n)
    assert [int(value) for value in run(COLLATZ, np.int32(start))] == [steps, most]


@pytest.mark.parametrize("body", BODIES)
def test_a_signal_stops_a_loop_that_never_ends(body: str) -> None:
    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        start = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            run(ENDLESS.replace("BODY", BODIES[body]), np.float32(1))
        assert time.perf_counter() - start < 1.1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---- donated arrays -------------------------------------------------------------------------------------------------


def address(array: sw.Array) -> int:
    return int(array._data.shard(0).__array_interface__["data"][0])


def test_a_donated_array_is_updated_where_it_is() -> None:
    row = np.ones(8, np.float32)
    x = sw.device_put(np.zeros((64, 8), np.float32), sw.NamedSharding(MESH, sw.P()))
    update = sw.jit(lambda x: x.at[3].set(row), mesh=MESH, donate_argnums=0).lower(x).compile()
    expected = np.zeros((64, 8), np.float32)
    expected[3] = 1
    where = address(x)
    y = update(x)
    assert address(y) == where
    np.testing.assert_array_equal(y, expected)
    assert x.is_deleted()


def test_a_donated_array_that_is_held_elsewhere_stays_as_it_is() -> None:
    update = sw.jit(lambda x, y: (x.at[3].set(np.float32(1)), y + 1), mesh=MESH, donate_argnums=0)
    x = sw.device_put(np.zeros((64, 8), np.float32), sw.NamedSharding(MESH, sw.P()))
    view = x._data.shard(0)
    _, added = update(x, x)
    np.testing.assert_array_equal(added, np.ones((64, 8), np.float32))
    np.testing.assert_array_equal(view, np.zeros((64, 8), np.float32))
