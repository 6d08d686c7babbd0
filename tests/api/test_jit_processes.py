# SPDX-License-Identifier: Apache-2.0
"""Programs recorded and run by several threads, interrupted by a signal, and run in a forked process."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4, "y": 2})
X = np.arange(24, dtype=np.float32).reshape(6, 4)


def test_several_threads_may_trace_and_run_at_once() -> None:
    f = sw.jit(lambda x, w: np.tanh(sw.split(x, 0, "x") @ w).sum(axis=1), mesh=MESH)
    rng = np.random.default_rng(0)
    inputs = [(rng.standard_normal((n, 16)), rng.standard_normal((16, 8))) for n in (8, 17, 33, 40)] * 6

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda args: np.asarray(f(*args)), inputs))
    for (x, w), result in zip(inputs, results, strict=True):
        np.testing.assert_allclose(result, np.tanh(x @ w).sum(axis=1), rtol=1e-10, atol=1e-12)


def test_threads_record_their_own_programs() -> None:
    barrier = threading.Barrier(3)

    def work(k: int) -> np.ndarray:
        def f(x: Any) -> Any:
            for _ in range(20):
                x = x + k
                barrier.wait(timeout=20)
            return x

        return np.asarray(sw.jit(f, mesh=MESH)(X))

    with ThreadPoolExecutor(3) as pool:
        for k, result in enumerate(pool.map(work, range(3))):
            np.testing.assert_array_equal(result, X + 20 * k)


def test_ctrl_c_between_ops_stops_the_run_and_the_next_call_works() -> None:
    def f(x: Any) -> Any:
        for _ in range(400):
            x = x @ x * 1e-3
        return x

    x = np.ones((300, 300), np.float32)
    program = sw.jit(f, mesh=sw.Mesh({"x": 2})).lower(x).compile()
    expected = np.asarray(program(x))
    previous = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.05, lambda: signal.raise_signal(signal.SIGINT))

    def run_until_interrupted() -> None:
        end = time.perf_counter() + 20
        while time.perf_counter() < end:
            program(x)

    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run_until_interrupted()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, previous)
    np.testing.assert_array_equal(np.asarray(program(x)), expected)


def _in_child(queue: Any, x: np.ndarray) -> None:
    f = sw.jit(lambda x: np.tanh(x @ x.T), mesh=sw.Mesh({"x": 4}), in_shardings=P("x"))
    queue.put(np.asarray(f(x)))


def _fork_and_compare() -> None:
    x = np.random.default_rng(0).standard_normal((300, 200))
    f = sw.jit(lambda x: np.tanh(x @ x.T), mesh=sw.Mesh({"x": 4}), in_shardings=P("x"))
    expected = np.asarray(f(x))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(queue, x))
    child.start()
    try:
        result: list[Any] = []
        reader = threading.Thread(target=lambda: result.append(queue.get()), daemon=True)
        reader.start()
        reader.join(timeout=30)
        assert result, "the child gave no result"
    finally:
        child.kill()
        child.join()
    np.testing.assert_array_equal(result[0], expected)
    np.testing.assert_array_equal(np.asarray(f(x)), expected)


def test_a_forked_child_runs_programs() -> None:
    # In a process of its own: JAX, which other tests may have imported, refuses to be forked.
    parent = multiprocessing.get_context("spawn").Process(target=_fork_and_compare)
    parent.start()
    parent.join(timeout=60)
    assert parent.exitcode == 0
