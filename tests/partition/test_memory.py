# SPDX-License-Identifier: Apache-2.0
"""``program.memory()``: the predicted peak is what the buffer pool counts in a run, and each value has its line."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import shardwise as sw
from shardwise import P, _core
from tests.support.mesh_strategies import meshes
from tests.support.random_programs import Program, programs

runtime = _core.runtime
MESH = sw.Mesh({"x": 4, "y": 2})


def counted_peak(executable: Any, arguments: list[Any], donated: list[int]) -> int:
    """Bytes that a run adds to those of its arguments at its peak."""
    owned = list(arguments)
    arguments.clear()
    gc.disable()  # arrays of earlier tests, in cycles, would be freed during the run
    try:
        runtime.restart_peak_buffer_bytes()
        before = runtime.live_buffer_bytes()
        executable.run(owned, donated=donated)
        peak: int = runtime.restart_peak_buffer_bytes()
    finally:
        gc.enable()
    return peak - before


def mlp(x: Any, w1: Any, w2: Any) -> Any:
    x, w1 = sw.split(x, 0, "x"), sw.shard(w1, P(None, "y"))
    return np.maximum(x @ w1, 0) @ w2


def mlp_gradient(x: Any, w1: Any, w2: Any) -> Any:
    return sw.grad(lambda w1, w2: np.sum(mlp(x, w1, w2) ** 2), argnums=(0, 1))(w1, w2)


def rnn(x: Any, w: Any, trips: int = 7) -> Any:
    def step(h: Any, _: Any) -> Any:
        h = np.tanh(h @ w)
        return h, h

    return sw.scan(step, sw.split(x, 0, "x"), None, length=trips)


def rnn_gradient(x: Any, w: Any) -> Any:
    return sw.grad(lambda x, w: np.sum(rnn(x, w)[1] ** 2), argnums=(0, 1))(x, w)


def halving(x: Any, w: Any) -> Any:
    return sw.while_loop(lambda x: np.sum(x) > 1.0, lambda x: np.abs(x @ w) / 40, sw.split(x, 0, "x"))


def delayed(x: Any, w: Any) -> Any:
    """Each carry takes the value of the one before it, so the fifth trip makes the fifth buffer."""

    def shift(i: Any, carries: Any) -> Any:
        return (carries[0] @ w, *carries[:-1])

    return sw.fori_loop(0, 9, shift, (sw.split(x, 0, "x"),) * 5)


def late_peak(x: Any, w: Any) -> Any:
    """The peak needs the first branch of the first cond, whose result lives on, and the second one of the other."""
    x = sw.split(x, 0, "x")
    kept = sw.cond(x[0, 0] >= 0, lambda x: np.tanh(x) @ w, lambda x: x, x)
    found = sw.cond(x[0, 0] < 0, lambda x: x, lambda x: np.broadcast_to(x[:, None], (64, 9, 32)).sum(1) @ w, x)
    return kept, found


def branches(x: Any, w: Any) -> Any:
    return sw.cond(np.sum(x) > 0, lambda x: (x @ w) @ w, lambda x: x * 2, sw.split(x, 0, "x"))


def shapes(*sizes: tuple[int, ...]) -> list[Any]:
    random = np.random.default_rng(0)
    return [random.random(size, dtype=np.float32) for size in sizes]


CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "mlp": (mlp, shapes((64, 32), (32, 128), (128, 32))),
    "uneven mlp": (mlp, shapes((63, 31), (31, 127), (127, 33))),
    "gradient": (mlp_gradient, shapes((64, 32), (32, 128), (128, 32))),
    "uneven gradient": (mlp_gradient, shapes((63, 31), (31, 127), (127, 31))),
    "rnn": (rnn, shapes((64, 32), (32, 32))),
    "one trip": (lambda x, w: rnn(x, w, 1), shapes((64, 32), (32, 32))),
    "two trips": (lambda x, w: rnn(x, w, 2), shapes((63, 32), (32, 32))),
    "gradient of rnn": (rnn_gradient, shapes((64, 32), (32, 32))),
    "while": (halving, shapes((64, 32), (32, 32))),
    "delayed": (delayed, shapes((64, 32), (32, 32))),
    "late peak": (late_peak, shapes((64, 32), (32, 32))),
    "branches": (branches, shapes((64, 32), (32, 32))),
    "movement": (lambda x: np.concatenate([np.transpose(sw.split(x, 0, "x"))[3:], x.T[:3]], 0), shapes((32, 64))),
    "reductions": (lambda x: (np.max(sw.split(x, 1, "y"), 0), np.cumsum(x, 1), np.argmax(x, 1)), shapes((32, 64))),
    "empty": (lambda x: sw.split(x, 0, "x") * 2, shapes((0, 4))),
}


@pytest.mark.parametrize("name", CASES)
def test_the_prediction_is_what_a_run_counts(name: str) -> None:
    function, arguments = CASES[name]
    program = sw.jit(function, mesh=MESH).lower(*arguments).compile()
    placed = [sw.device_put(a, s) for a, s in zip(arguments, program.input_shardings)]
    predicted = program.memory(virtual=True)
    counted = counted_peak(program._here().executable, [array._data for array in placed], [])
    assert predicted.peak_bytes - predicted.argument_bytes == counted
    assert sum(row.bytes for row in predicted) == predicted.peak_bytes


@settings(max_examples=150)
@given(meshes().flatmap(programs))
def test_the_prediction_holds_for_random_programs(program: Program) -> None:
    compiled = _core.passes.compile(program.record(), program.mesh)
    executable = runtime.Executable(compiled)
    peak, of_arguments, *_ = executable.memory(per_device=False)
    scatter = runtime.ShardedArray.scatter
    arguments = [scatter(a, s) for a, s in zip(program.arguments, compiled.argument_shardings)]
    counted = counted_peak(executable, arguments, [])
    if program.has_choices:  # the prediction is for those that take the most
        assert counted <= peak - of_arguments
    else:
        assert counted == peak - of_arguments
