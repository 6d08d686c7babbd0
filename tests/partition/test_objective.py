# SPDX-License-Identifier: Apache-2.0
"""`jit(objective="bytes")`: totals of shards are passed on from device to device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from tests.op.window_references import reduce_window
from tests.support.partitioned import SCENARIOS, Scenario, execute, sharding

LINE = sw.Mesh({"x": 8})
X = P("x")
RNG = np.random.default_rng(5)
ROWS = RNG.integers(-9, 9, (64, 16)).astype(np.float32)


def compiled(function: Callable[..., Any], x: np.ndarray = ROWS, **options: Any) -> sw.Program:
    return sw.jit(function, mesh=LINE, in_shardings=X, out_shardings=X, **options).lower(x).compile()


def backwards(x: Any) -> Any:
    return np.cumsum(x[::-1], 0)[::-1]


@pytest.mark.parametrize("function", [lambda x: np.cumsum(x, 0), backwards], ids=["forward", "reversed"])
def test_a_chain_sends_a_row_to_each_device(function: Callable[..., Any]) -> None:
    by_time, by_bytes = compiled(function), compiled(function, objective="bytes")
    assert by_time.collectives().by_kind() == {"all_to_all": 2}
    assert (by_time.collectives().total_bytes, by_bytes.collectives().total_bytes) == (112, 64)
    [row] = by_bytes.collectives()
    assert (row.kind, row.cause) == ("collective_permute", "chain of reduce_window along dim 0")
    assert [row.device_bytes.count(n) for n in (0, 64)] == [1, 7]  # the first device of the chain receives nothing
    np.testing.assert_array_equal(by_bytes.run(ROWS), function(ROWS))


def test_the_default_is_time() -> None:
    assert compiled(np.cumsum, np.ones(64, np.float32), objective="time").choices.objective == "time"
    assert compiled(lambda x: np.cumsum(x, 0)).choices == compiled(lambda x: np.cumsum(x, 0), objective="time").choices


def test_choices_have_the_objective() -> None:
    program = compiled(lambda x: np.cumsum(x, 0), objective="bytes")
    assert program.choices.objective == "bytes"
    assert "chain" in {op.method for op in program.choices.ops.values()}
    kept = sw.Choices.from_json(program.choices.to_json())
    assert kept == program.choices
    pinned = compiled(lambda x: np.cumsum(x, 0), choices=kept)
    assert pinned.choices == program.choices
    assert pinned.collectives().total_bytes == 64


def test_each_objective_has_its_own_program() -> None:
    jitted = {
        name: sw.jit(lambda x: np.cumsum(x, 0), mesh=LINE, in_shardings=X, objective=name) for name in ("time", "bytes")
    }
    for _ in range(2):
        assert {name: f.lower(ROWS).compile().collectives().total_bytes for name, f in jitted.items()} == {
            "time": 112,
            "bytes": 64,
        }


def test_the_local_program_is_the_same_for_any_number_of_devices() -> None:
    counts = set()
    for devices in (8, 64, 4096):
        x = sw.ShapeDtypeStruct((8 * devices, 16), np.float32)
        mesh = sw.Mesh({"x": devices})
        function = sw.jit(lambda x: np.cumsum(x, 0), mesh=mesh, in_shardings=X, out_shardings=X, objective="bytes")
        program = function.lower(x).compile()
        counts.add((program.op_count, program.collectives().total_bytes))
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("dtype", "columns", "sent"),
    [("bfloat16", 4, {"time": 28, "bytes": 16}), ("float16", 1, {"time": 28, "bytes": 4}),
     ("float8_e4m3fn", 1, {"time": 28, "bytes": 4})],
)  # fmt: skip
def test_narrow_sums_are_passed_on_as_float32(dtype: str, columns: int, sent: dict[str, int]) -> None:
    """They are rounded once, so they are as near as sums of gathered totals."""
    x = (RNG.integers(1, 9, (64, columns)) / 16).astype(getattr(ml_dtypes, dtype, dtype))
    exact = np.cumsum(x.astype(np.float64), 0)
    errors = {}
    for objective, total in sent.items():
        program = compiled(lambda x: np.cumsum(x, 0), x, objective=objective)
        assert program.collectives().total_bytes == total, objective
        errors[objective] = np.max(np.abs(np.asarray(program(x)).astype(np.float64) - exact) / exact)
    assert "chain" in {op.method for op in program.choices.ops.values()}
    eps = float(ml_dtypes.finfo(x.dtype).eps)
    assert errors["bytes"] <= max(errors["time"], 2 * eps)


@pytest.mark.parametrize("accumulate", [np.maximum.accumulate, np.minimum.accumulate], ids=["maximum", "minimum"])
def test_narrow_extrema_are_passed_on_as_they_are(accumulate: Callable[..., Any]) -> None:
    x = RNG.integers(-99, 99, (64, 16)).astype(ml_dtypes.bfloat16)
    program = compiled(lambda x: accumulate(x, 0), x, objective="bytes")
    assert program.collectives().total_bytes == 32
    np.testing.assert_array_equal(np.asarray(program(x)), accumulate(x.astype(np.float32), 0).astype(x.dtype))


def test_unknown_objectives_are_refused() -> None:
    with pytest.raises(sw.ShardingError, match=r"^jit: objective must be 'time' or 'bytes', got 'latency'"):
        sw.jit(np.sin, objective="latency")  # type: ignore[arg-type]
    with pytest.raises(sw.ShardingError, match=r"^jit: objective must be 'time' or 'bytes', got 3"):
        sw.jit(np.sin, objective=3)  # type: ignore[arg-type]
    choices = compiled(lambda x: np.cumsum(x, 0), objective="bytes").choices
    with pytest.raises(
        sw.ShardingError, match=r"^jit: objective must be that of the choices, 'bytes', got 'time'; leave it out"
    ):
        sw.jit(np.sin, choices=choices, objective="time")


def test_a_nested_function_has_the_objective_of_the_whole_program() -> None:
    inner = sw.jit(lambda x: np.cumsum(x, 0), objective="bytes")
    assert compiled(lambda x: inner(x), objective="bytes").collectives().total_bytes == 64
    with pytest.raises(sw.ShardingError, match="objective"):
        compiled(lambda x: inner(x))


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.size > 0], ids=lambda scenario: scenario.name)
def test_elements_are_those_of_numpy(scenario: Scenario) -> None:
    mesh, size = scenario.mesh(), scenario.size
    methods = set()
    for combine, reversed_ in (("add", False), ("add", True), ("maximum", False), ("minimum", True)):
        for dtype in (np.int32, np.float32):
            x, init = RNG.integers(-99, 99, (size, 3)).astype(dtype), np.array(2, dtype)
            held = sharding(mesh, [scenario.axes, scenario.others])
            low, high = (0, size - 1) if reversed_ else (size - 1, 0)
            trace = _core.ir.Trace("cumulative")
            operands = [trace.argument(x.shape, x.dtype.name, "", held), trace.argument((), x.dtype.name, "", None)]
            padding = ((low, high), (0, 0))
            attrs = {
                "window_dimensions": (size, 1),
                "window_strides": (1, 1),
                "window_dilations": (1, 1),
                "base_dilations": (1, 1),
                "padding": np.array(padding, np.int64),
            }
            found = trace.emit("stablehlo.reduce_window", operands, attrs, None, None, f"stablehlo.{combine}")[0]
            module = trace.finish([found], [held])
            want = reduce_window(x, init, combine, (size, 1), padding, (1, 1), (1, 1), (1, 1)).astype(dtype)
            unit = _core.passes.compile(module, mesh, objective="bytes")
            methods |= {method for _, _, method, _, _ in unit.choices()[1]}
            for got in execute(unit, [x, init]):
                np.testing.assert_array_equal(got[0], want)
    # One row is in one shard, and two devices gather as little as they pass on.
    assert size == 1 or scenario.name == "sub-axes" or "chain" in methods


@pytest.mark.parametrize(
    ("attrs", "error"),
    [
        ('reducer = "sum", shift = 2 : i64', "with a reducer, 'shift' must be 1 or -1, without 'wrap', got 2"),
        ("shift = -9223372036854775808 : i64", r"'shift' must lie from -2\^62 to 2\^62, got -9223372036854775808"),
    ],
)
def test_a_shift_is_checked(attrs: str, error: str) -> None:
    permute = (
        '"shardwise.collective_permute"(%0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, '
        f"{attrs}, wrap = false}}> : (tensor<2xf32>) -> tensor<2xf32>"
    )
    text = (
        'module { sdy.mesh @mesh = <["x"=4]>\n'
        f"func.func @main(%0: tensor<2xf32>) -> tensor<2xf32> {{ %1 = {permute} return %1 : tensor<2xf32> }} }}"
    )
    with pytest.raises(sw.ParseError, match=error):
        sw.parse(text)
