# SPDX-License-Identifier: Apache-2.0
"""Texts at their limits: deep calls, loops that never end, counters that leave their dtype."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import shardwise as sw

T = "tensor<4xf32>"
X = np.ones(4, np.float32)


def nested_calls(depth: int) -> str:
    body = "  %0 = func.call @f{}(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
    names = ["func public @main", *(f"func private @f{i}" for i in range(1, depth + 1))]
    bodies = [*(body.format(i) for i in range(1, depth + 1)), f"  %0 = stablehlo.add %a, %a : {T}\n"]
    functions = zip(names, bodies)
    return "".join(f"func.{name}(%a: {T}) -> {T} {{\n{text}  return %0 : {T}\n}}\n" for name, text in functions)


def test_calls_nest_up_to_a_limit() -> None:
    np.testing.assert_array_equal(sw.parse(nested_calls(256)).run(X), 2 * X)
    assert str(sw.parse(nested_calls(256)).propagate()).count("func.call") == 256


def test_calls_beyond_the_limit_are_refused_at_their_line() -> None:
    module = sw.parse(nested_calls(10_000), "deep.mlir")
    said = "func.call: calls and regions must nest at most 256 deep, got more; call fewer in a row (at deep.mlir:1026)"
    for use in (lambda: module.run(X), lambda: module.run(X, func="f7"), module.propagate, lambda: module.why("%0")):
        with pytest.raises(sw.ShardingError) as caught:
            use()
        assert re.sub(r":\d+\)$", ":1026)", str(caught.value)) == said


def test_a_function_that_calls_itself_is_refused() -> None:
    text = f"func.func @main(%a: {T}) -> {T} {{\n  %0 = func.call @main(%a) : ({T}) -> {T}\n  return %0 : {T}\n}}"
    with pytest.raises(sw.ShardingError) as caught:
        sw.parse(text, "own.mlir").run(X)
    said = "a function must not call itself, got @main; use stablehlo.while to repeat something (at own.mlir:2)"
    assert str(caught.value) == f"func.call: {said}"


# ---- loops ----------------------------------------------------------------------------------------------------------

LOOP = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<4x4xf32> {{
  %z = stablehlo.constant dense<{start}> : tensor<{dtype}>
  %0:2 = stablehlo.while(%i = %z, %v = %x) : tensor<{dtype}>, tensor<4x4xf32>
  cond {{
    %c = stablehlo.constant dense<{limit}> : tensor<{dtype}>
    %p = stablehlo.compare {direction}, %i, %c : (tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %s = stablehlo.constant dense<{step}> : tensor<{dtype}>
    %j = stablehlo.add %i, %s : tensor<{dtype}>
    %t = stablehlo.transpose %v, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %y = sdy.sharding_constraint %t <@mesh, [{{"x"}}, {{}}]> : tensor<4x4xf32>
    stablehlo.return %j, %y : tensor<{dtype}>, tensor<4x4xf32>
  }}
  return %0#1 : tensor<4x4xf32>
}}
"""


def loop(start: int, direction: str, limit: int, step: int, dtype: str) -> str:
    return LOOP.format(start=start, direction=direction, limit=limit, step=step, dtype=dtype)


@pytest.mark.parametrize(
    ("start", "direction", "limit", "step", "dtype", "count", "bound"),
    [
        (0, "LT", 127, 2, "i8", 1, "per trip"),  # 126 + 2 is -128
        (0, "LE", 127, 1, "i8", 1, "per trip"),
        (-(2**63), "LT", 2**63 - 1, 1, "i64", 1, "per trip"),  # 2^64 - 1 trips
        (-(2**63), "LT", 2**63 - 1, 2**62, "i64", 1, "per trip"),
        (-(2**63), "LT", 2**62, 2**62, "i64", 3, ""),
        (100, "GT", -100, -50, "i8", 4, ""),
        (0, "LT", 2**31 - 1, 1, "i32", 2**31 - 1, ""),
        (5, "LT", 5, 1, "i32", 0, ""),
    ],
)
def test_the_ledger_counts_only_trips_of_counters_that_stay_in_their_dtype(
    start: int, direction: str, limit: int, step: int, dtype: str, count: int, bound: str
) -> None:
    row = sw.parse(loop(start, direction, limit, step, dtype)).compile().collectives().rows[-1]
    assert (row.kind, row.count, row.bound) == ("all_to_all", count, bound)
    assert row.cause == "result 1 of a region of while"


def test_a_counter_wraps_as_integers_do() -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    wraps = loop(100, "GT", 0, 100, "i8")  # 100, then -56
    np.testing.assert_array_equal(sw.parse(wraps).run(x), x.T)


FOREVER = """
import signal, sys, time
import numpy as np, shardwise as sw
program = sw.parse(open(sys.argv[1]).read()).compile()
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started pytest in the background
print("runs", flush=True)
try:
    program.run(np.ones((4, 4), np.float32), faithful=sys.argv[2] == "faithful")
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
EMPTY = """func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.while(%v = %x) : tensor<4x4xf32>
  cond {
    %p = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    stablehlo.return %v : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "mode"),
    [(loop(0, "LT", 127, 2, "i8"), "shared"), (loop(0, "LT", 5, 0, "i32"), "faithful"), (EMPTY, "shared")],
    ids=["wraps", "faithful", "empty"],
)
def test_ctrl_c_stops_a_loop_that_never_ends(text: str, mode: str, tmp_path: Path) -> None:
    (tmp_path / "forever.mlir").write_text(text)
    command = [sys.executable, "-c", FOREVER, str(tmp_path / "forever.mlir"), mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        time.sleep(0.3)
        assert process.poll() is None
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n"
        assert time.monotonic() - start < 1
        assert process.wait() == 0


def test_a_module_without_functions_has_a_repr() -> None:
    assert repr(sw.parse("")) == "<module of 0 ops>"
