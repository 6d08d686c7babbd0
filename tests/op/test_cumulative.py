# SPDX-License-Identifier: Apache-2.0
"""Cumulative ops along sharded dims: what is sent, what becomes of the gradient, and regions that no reducer has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from tests.support.partitioned import ONE_DEVICE, execute, sharding

MESH = sw.Mesh({"x": 8})
RNG = np.random.default_rng(3)


def compiled(function: Any, *arrays: np.ndarray, mesh: sw.Mesh = MESH, spec: Any = ("x",)) -> Any:
    return sw.jit(function, mesh=mesh, in_shardings=P(*spec)).lower(*arrays).compile()


def test_a_running_sum_sends_totals_alone() -> None:
    """64x16 float32 over 8 devices: 64 bytes at the least; gathering the totals would take 448, all rows 3584."""
    x = RNG.normal(size=(64, 16)).astype(np.float32)
    program = compiled(lambda x: np.cumsum(x, axis=0), x)
    np.testing.assert_allclose(program.run(x), np.cumsum(x, axis=0), rtol=1e-5, atol=1e-5)
    rows = program.collectives()
    assert [row.kind for row in rows] == ["all_to_all", "all_to_all"]
    assert sum(row.bytes for row in rows) == 112
    assert {row.cause for row in rows} == {"totals of reduce_window along dim 0"}


@pytest.mark.parametrize(("devices", "columns", "kind", "sent"), [(8, 1, "all_gather", 28), (2, 64, "all_gather", 256)])
def test_few_totals_or_devices_gather(devices: int, columns: int, kind: str, sent: int) -> None:
    x = RNG.integers(-9, 9, (32, columns)).astype(np.int32)
    program = compiled(lambda x: np.maximum.accumulate(x), x, mesh=sw.Mesh({"x": devices}))
    np.testing.assert_array_equal(program.run(x), np.maximum.accumulate(x))
    assert [(row.kind, row.bytes) for row in program.collectives()] == [(kind, sent)]


def test_other_dims_keep_their_shards() -> None:
    x = RNG.normal(size=(16, 12))
    program = compiled(lambda x: np.cumprod(x, axis=1), x, mesh=sw.Mesh({"x": 4, "y": 2}), spec=(("y", "x"),))
    np.testing.assert_array_equal(program.run(x), np.cumprod(x, axis=1))
    assert len(program.collectives()) == 0


@pytest.mark.parametrize("spec", [("x", "y"), (("y", "x"), None), (None, ("x", "y"))], ids=str)
def test_both_dims_of_an_integral_image(spec: Any) -> None:
    x = RNG.integers(-99, 99, (13, 11))
    program = compiled(lambda x: np.cumsum(np.cumsum(x, 0), 1), x, mesh=sw.Mesh({"x": 4, "y": 2}), spec=spec)
    for options in ({}, {"faithful": True, "poison": True}):
        np.testing.assert_array_equal(program.run(x, **options), np.cumsum(np.cumsum(x, 0), 1))


def test_the_gradient_of_a_running_sum_runs_back_and_stays_sharded() -> None:
    x, w = RNG.normal(size=(33, 5)), RNG.normal(size=(33, 5))

    def loss(x: Any) -> Any:
        return np.sum(np.cumsum(x, axis=0) * w)

    program = compiled(sw.grad(loss), x)
    np.testing.assert_allclose(program.run(x), np.cumsum(w[::-1], axis=0)[::-1], rtol=1e-12, atol=1e-12)
    assert all(row.shape[-1] < 33 * 5 for row in program.collectives())
    assert {row.kind for row in program.collectives()} <= {"all_to_all"}


def gradient(reducer: str, x: list[float], init: float, weights: list[float], reverse: bool = False) -> list[float]:
    """Of a prefix over x, sharded over four devices."""
    mesh = _core.mesh.Mesh("mesh", [("x", 4)])
    trace = _core.ir.Trace("prefix")
    n = len(x)
    value = trace.argument((n,), "float64", "", sharding(mesh, [("x",)]))
    start = trace.constant(np.asarray(init))[0]
    padding = np.array([[0, n - 1] if reverse else [n - 1, 0]])
    attrs = {"window_dimensions": (n,), "padding": padding}
    result = trace.emit("stablehlo.reduce_window", [value, start], attrs, None, None, f"stablehlo.{reducer}")[0]
    seed = trace.constant(np.array(weights))[0]
    module = trace.finish(trace.vjp([result], [seed], [value]))
    results = [got.tolist() for (got,) in execute(_core.passes.compile(module, mesh), [np.array(x)])]
    assert results[0] == results[1]
    return results[0]


def test_ties_of_a_running_maximum_share_the_gradient() -> None:
    low = -np.inf
    assert gradient("maximum", [2.0, 2.0, 1.0, 3.0, 3.0], low, [6.0] * 5) == [12.0, 6.0, 0.0, 9.0, 3.0]
    assert gradient("maximum", [2.0, 2.0, 1.0, 3.0, 3.0], low, [6.0] * 5, reverse=True) == [0.0, 0.0, 0.0, 12.0, 18.0]


def test_a_nan_does_not_spoil_the_gradient_of_what_comes_before_it() -> None:
    def masked(x: Any) -> Any:
        running = np.maximum.accumulate(x)
        return np.sum(np.where(np.arange(5) < 3, running, 0))

    x = np.array([1.0, 3.0, 2.0, np.nan, 5.0])
    np.testing.assert_array_equal(sw.jit(sw.grad(masked), mesh=MESH)(x), [1, 2, 0, 0, 0])


def test_running_products_with_zeros_have_the_right_gradient() -> None:
    assert gradient("multiply", [2.0, 0.0, 3.0, 0.0, 5.0], 1.0, [1.0] * 5) == [1.0, 8.0, 0.0, 0.0, 0.0]
    assert gradient("multiply", [2.0, 0.0, 3.0], 1.0, [1.0, 10.0, 100.0], reverse=True) == [0.0, 36.0, 100.0]


ARGMAX = """
module {
  func.func @main(%x: tensor<4x6xf32>, %i: tensor<4x6xi32>) -> (tensor<4x5xf32>, tensor<4x5xi32>) {
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %none = stablehlo.constant dense<-1> : tensor<i32>
    %0:2 = "stablehlo.reduce_window"(%x, %i, %low, %none) <{window_dimensions = array<i64: 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %p: tensor<i32>, %b: tensor<f32>, %q: tensor<i32>):
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
      %3 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
    }) : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x5xf32>, tensor<4x5xi32>)
    return %0#0, %0#1 : tensor<4x5xf32>, tensor<4x5xi32>
  }
}
"""


def test_windows_over_several_operands() -> None:
    x = RNG.permutation(24).reshape(4, 6).astype(np.float32)
    places = np.tile(np.arange(6, dtype=np.int32), (4, 1))
    wanted = np.maximum(x[:, :-1], x[:, 1:]), np.where(x[:, :-1] >= x[:, 1:], places[:, :-1], places[:, 1:])
    sharded = 'tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    on_mesh = ARGMAX.replace("module {", 'module {\n  sdy.mesh @mesh = <["x"=3]>').replace(
        "%x: tensor<4x6xf32>", f"%x: {sharded}"
    )
    for text, mesh in ((ARGMAX, ONE_DEVICE), (on_mesh, _core.mesh.Mesh("mesh", [("x", 3)]))):
        program = _core.passes.compile(_core.ir.parse(text), mesh)
        for got in execute(program, [x, places]):
            np.testing.assert_array_equal(got[0], wanted[0])
            np.testing.assert_array_equal(got[1], wanted[1])
        assert "shardwise.all_gather" not in program.stages["local"].text()


AVERAGE = """
module {
  func.func @main(%x: tensor<6xf32>) -> tensor<5xf32> {
    %z = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %h = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %1 = stablehlo.add %a, %b : tensor<f32>
      %2 = stablehlo.multiply %1, %h : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<6xf32>, tensor<f32>) -> tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}
"""


def test_a_region_that_no_reducer_has() -> None:
    x = np.arange(6, dtype=np.float32) ** 2
    program = _core.passes.compile(_core.ir.parse(AVERAGE), ONE_DEVICE)
    for (got,) in execute(program, [x]):
        np.testing.assert_array_equal(got, ((1 + x[:-1]) / 2 + x[1:]) / 2)
