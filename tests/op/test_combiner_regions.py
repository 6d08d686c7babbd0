# SPDX-License-Identifier: Apache-2.0
"""Regions of reductions: constants from around them, and ops that other ops make up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import special

from shardwise import _core, errors
from tests.support.partitioned import ONE_DEVICE, execute, sharding

MESH = _core.mesh.Mesh("mesh", [("x", 4)])
SHARDED = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
X = np.arange(6, dtype=np.float32)


def reduction(body: str, before: str = "", arguments: str = "") -> str:
    return f"""
sdy.mesh @mesh = <["x"=4]>
func.func public @main(%x: tensor<6xf32> {SHARDED}{arguments}) -> tensor<f32> {{
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  {before}
  %0 = "stablehlo.reduce"(%x, %zero) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    {body}
  }}) : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}}
"""


def results(text: str, *arrays: Any) -> list[Any]:
    module = _core.ir.parse(text)
    assert _core.ir.parse(module.text()).text() == module.text()
    once, faithful = execute(_core.passes.compile(module, MESH), arrays)
    assert all(np.array_equal(a, b) for a, b in zip(once, faithful))
    return once


CONSTANTS = """%1 = stablehlo.multiply %two, %zero : tensor<f32>
    %2 = stablehlo.add %a, %b : tensor<f32>
    %3 = stablehlo.add %1, %2 : tensor<f32>
    stablehlo.return %3 : tensor<f32>"""


def test_a_reduction_has_constants_of_its_own() -> None:
    text = _core.ir.parse(reduction(CONSTANTS)).text()
    region = text[text.index("reducer") : text.index("stablehlo.return")]
    assert region.count("stablehlo.constant") == 2
    assert results(reduction(CONSTANTS), X)[0] == 15


def test_a_region_may_return_a_constant_from_around_it() -> None:
    assert results(reduction("stablehlo.return %two : tensor<f32>"), X)[0] == 2


def test_other_values_from_around_a_region_are_an_error() -> None:
    for text in (
        reduction(CONSTANTS.replace("%two", "%sine"), "%sine = stablehlo.sine %two : tensor<f32>"),
        reduction(CONSTANTS.replace("%two", "%s"), arguments=", %s: tensor<f32>"),
    ):
        with pytest.raises(errors.ParseError) as caught:
            _core.ir.parse(text)
        assert str(caught.value).partition(" (at")[0].partition(": ")[2] == (
            "stablehlo.reduce: the region must use its own arguments and constants alone, got a value from around it; "
            "pass the value as one more tensor"
        )


def test_scatters_and_windows_have_constants_of_their_own() -> None:
    text = """
func.func public @main(%x: tensor<6xf32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.multiply %a, %two : tensor<f32>
    %3 = stablehlo.add %2, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<6xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<6xf32>
  %1 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3>,
      padding = dense<[[1, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.multiply %b, %two : tensor<f32>
    %3 = stablehlo.add %2, %a : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  return %0, %1 : tensor<6xf32>, tensor<6xf32>
}
"""
    scattered, windows = results(text, X, np.array([[1], [3]], np.int32), np.array([10, 20], np.float32))
    assert scattered.tolist() == [0, 12, 2, 26, 4, 5]
    assert windows.tolist() == [2, 6, 12, 18, 24, 18]


def test_a_region_may_hold_ops_that_others_make_up() -> None:
    body = """%1 = chlo.broadcast_add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>"""
    assert results(reduction(body), X)[0] == 15
    assert "chlo.broadcast_add" in _core.passes.run_passes(_core.ir.parse(reduction(body)), ["propagate"]).text()


def test_a_region_may_compute_with_complex_numbers() -> None:
    body = """%1 = chlo.broadcast_complex %a, %b : (tensor<f32>, tensor<f32>) -> tensor<complex<f32>>
    %2 = stablehlo.real %1 : (tensor<complex<f32>>) -> tensor<f32>
    %3 = stablehlo.imag %1 : (tensor<complex<f32>>) -> tensor<f32>
    %4 = stablehlo.add %2, %3 : tensor<f32>
    stablehlo.return %4 : tensor<f32>"""
    assert results(reduction(body), X)[0] == 15


def test_an_op_that_no_region_of_scalars_runs_is_an_error() -> None:
    body = """%1 = stablehlo.reshape %a : (tensor<f32>) -> tensor<1xf32>
    %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>
    stablehlo.return %2 : tensor<f32>"""
    with pytest.raises(errors.ParseError) as caught:
        _core.ir.parse(reduction(body))
    assert "the region must be elementwise ops and constants, got stablehlo.reshape" in str(caught.value)


CALLED = """
func.func private @larger(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = "stablehlo.if"(%0) ({
    %2 = stablehlo.reshape %a : (tensor<f32>) -> tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }, {
    stablehlo.return %b : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %1 : tensor<f32>
}
"""


def test_a_region_may_hold_calls_branches_and_copies_of_scalars() -> None:
    body = """%1 = func.call @larger(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>"""
    text = reduction(body) + CALLED
    assert results(text, X - 7)[0] == 0
    assert results(text, X)[0] == 5
    flat = _core.passes.run_passes(_core.ir.parse(text), ["inline_calls"]).text()
    assert "stablehlo.select" in flat
    assert not any(name in flat for name in ("call", "stablehlo.if", "stablehlo.reshape"))


@pytest.mark.parametrize("first", [-1, 0, 1, 2, 7])
def test_an_index_out_of_range_takes_the_last_branch_of_a_region(first: int) -> None:
    text = """
func.func public @main(%x: tensor<1xf32>, %k: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %ks = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
  %0:2 = "stablehlo.reduce"(%x, %ks, %zero, %k) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %1 = "stablehlo.case"(%i) ({
      stablehlo.return %b : tensor<f32>
    }, {
      %2 = stablehlo.negate %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }, {
      %3 = stablehlo.add %b, %b : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    stablehlo.return %1, %i : tensor<f32>, tensor<i32>
  }) : (tensor<1xf32>, tensor<1xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
  return %0#0, %0#1 : tensor<f32>, tensor<i32>
}
"""
    found, index = results(text, np.array([3], np.float32), np.array(first, np.int32))
    assert index == first
    assert found == (3, -3, 6)[first if 0 <= first < 3 else 2]


def test_a_loop_in_a_region_is_an_error() -> None:
    body = """%1 = "stablehlo.while"(%a) ({
    ^bb0(%c: tensor<f32>):
      %2 = stablehlo.compare LT, %c, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }, {
    ^bb0(%c: tensor<f32>):
      stablehlo.return %c : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>"""
    with pytest.raises(errors.ParseError, match=r"must be elementwise ops and constants, got stablehlo.while"):
        _core.ir.parse(reduction(body))
    called = reduction(CONSTANTS.replace("stablehlo.add %a, %b", "func.call @f(%a) ").replace("(%a)  :", "(%a) :"))
    called = called.replace("func.call @f(%a) : tensor<f32>", "func.call @f(%a) : (tensor<f32>) -> tensor<f32>")
    function = "func.func private @f(%a: tensor<f32>) -> tensor<f32> {\n" + body.replace(
        "stablehlo.return %1", "return %1"
    )
    with pytest.raises(
        errors.UnsupportedError, match=r"reduce: its region must hold .* got stablehlo.while; compute"
    ) as e:
        _core.passes.compile(_core.ir.parse(called + function + "\n}\n", "model.mlir"), MESH)
    assert "(at model.mlir:" in str(e.value)


# ---- gradients and vmap ---------------------------------------------------------------------------------------------


def region_of(trace: Any, steps: Sequence[str]) -> int:
    """a, b -> b + 0.5 step(a) for each step in turn."""
    half = trace.constant(np.asarray(0.5))[0]
    region = trace.begin_region()
    a, b = (trace.region_argument((), "float64") for _ in range(2))
    for name in steps:
        a = trace.emit(name, [a, a] if name == "chlo.broadcast_add" else [a])[0]
    trace.end_region([trace.emit("stablehlo.add", [b, trace.emit("stablehlo.multiply", [a, half])[0]])[0]])
    return int(region)


def folded(steps: Sequence[str], values: np.ndarray, axis: int = -1) -> Any:
    """The pairs of a tree, as the gradient of a region takes them."""
    function = {"chlo.broadcast_add": lambda x: 2 * x, "chlo.lgamma": special.gammaln}
    rows = np.moveaxis(values, axis, 0)
    while len(rows) > 1:
        pairs = len(rows) // 2
        a, b = rows[0 : 2 * pairs : 2], rows[1 : 2 * pairs : 2]
        for name in steps:
            a = function[name](a)
        rows = np.concatenate([b + 0.5 * a, rows[2 * pairs :]])
    return rows[0]


STEPS = [["chlo.broadcast_add"], ["chlo.lgamma"], ["chlo.broadcast_add", "chlo.lgamma"]]


@pytest.mark.parametrize("steps", STEPS, ids="+".join)
def test_gradients_pass_through_ops_that_others_make_up(steps: list[str]) -> None:
    trace = _core.ir.Trace("gradient")
    x = trace.argument((3,), "float64")
    start = trace.constant(np.asarray(1.5))[0]
    operands = [x, start]
    out = trace.emit_op("stablehlo.reduce", operands, {"dimensions": (0,)}, regions=[region_of(trace, steps)])[0][0]
    module = trace.finish(trace.vjp([out], [trace.constant(np.asarray(1.0))[0]], [x]))
    values = np.array([2.3, 3.1, 4.7])
    expected = []
    for i in range(3):
        step = np.eye(3)[i] * 1e-6
        sides = [folded(steps, np.concatenate([[1.5], values + sign * step])) for sign in (1, -1)]
        expected.append((sides[0] - sides[1]) / 2e-6)
    for (got,) in execute(_core.passes.compile(module, ONE_DEVICE), [values]):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("initial", [True, False], ids=["mapped start", "one start"])
def test_vmap_passes_through_ops_that_others_make_up(initial: bool) -> None:
    steps = ["chlo.broadcast_add"]
    trace = _core.ir.Trace("batched")
    region = trace.begin_region()
    x, start = trace.region_argument((1,), "float64"), trace.region_argument((), "float64")
    inner = region_of(trace, steps)
    trace.end_region([trace.emit_op("stablehlo.reduce", [x, start], {"dimensions": (0,)}, regions=[inner])[0][0]])
    arrays = [np.arange(4.0).reshape(4, 1), np.arange(4.0) + 1 if initial else np.asarray(1.0)]
    outer = [
        trace.argument(a.shape, "float64", "", sharding(MESH, [("x",), *[()] * (a.ndim - 1)]) if a.ndim else None)
        for a in arrays
    ]
    ((value, is_batched),) = trace.batch(region, outer, [True, initial], 4)
    assert is_batched
    for (got,) in execute(_core.passes.compile(trace.finish([value]), MESH), arrays):
        assert got.tolist() == (arrays[0][:, 0] + arrays[1]).tolist()
