# SPDX-License-Identifier: Apache-2.0
"""Texts run: arguments by position and by name, functions, meshes, and the program that compile() gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw

LAYER = """sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>} loc("batch"),
                %w: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {?}]>})
    -> (tensor<8x4xf32>, tensor<8x6xf32>) {
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %h, %x : tensor<8x4xf32>, tensor<8x6xf32>
}
"""
SCALE = """func.func @main(%x: tensor<4xf32>, %rate: tensor<f32>, %n: tensor<i32>) -> tensor<4xf32> {
  %b = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %m = stablehlo.multiply %x, %b : tensor<4xf32>
  return %m : tensor<4xf32>
}
"""
FUNCTIONS = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func public @again(%y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @main(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func public @strange(%t: !stablehlo.token) -> !stablehlo.token {
  return %t : !stablehlo.token
}
"""
X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((6, 4)).astype(np.float32)
V = np.arange(4, dtype=np.float32)


# ---- runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda module: module.run(X, W),
        lambda module: module.run(X, w=W),
        lambda module: module.run(w=W, batch=X),
        lambda module: module.run(w=W, x=X),
        lambda module: module.compile()(X, W),
        lambda module: module.compile().run(X, W, faithful=True, poison=True),
    ],
    ids=["position", "mixed", "given name", "name in the text", "compiled", "faithful"],
)
def test_a_text_runs_on_its_mesh(call: Callable[[sw.Module], Any]) -> None:
    product, same = call(sw.parse(LAYER))
    assert isinstance(product, sw.Array)
    np.testing.assert_allclose(product, X @ W, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(same, X)
    assert product.sharding.mesh.shape == {"data": 4, "model": 2}


def test_a_compiled_text_is_a_program_as_jit_gives() -> None:
    program = sw.parse(LAYER, "layer.mlir").compile()
    assert type(program) is sw.Program
    assert program.collectives().by_kind() == {"all_reduce": 1}
    assert program.collectives().rows[0].location == "layer.mlir:5"
    assert "shardwise.all_reduce" in program.as_text("local")
    assert [str(sharding.spec) for sharding in program.input_shardings] == ["P('data', 'model')", "P('model', None)"]
    assert str(program.output_shardings[0].spec) == "P('data', None)"
    assert "%h (layer.mlir:5) is tensor<8x4xf32>, sharded" in str(program.why("%h"))
    assert program.why("dot_general").values[0].sharding == '[{"data"}, {}]'
    sw.testing.assert_collectives(program, all_reduce=1)


def test_a_text_without_a_mesh_runs_on_one_device_or_on_a_given_mesh() -> None:
    module = sw.parse(SCALE)
    assert module.compile().mesh == sw.Mesh({"device": 1})
    mesh = sw.Mesh({"x": 3})
    for result in (module.run(V, 0.5, 3), module.run(V, rate=0.5, n=3, mesh=mesh)):
        np.testing.assert_array_equal(result, V / 2)
    assert module.compile(mesh).mesh == mesh
    with sw.set_mesh(mesh):
        assert module.compile().mesh == mesh


def test_a_text_with_a_mesh_and_no_shardings_runs_on_any_mesh() -> None:
    module = sw.parse('sdy.mesh @mesh = <["x"=2]>\n' + SCALE)
    assert module.compile().mesh.shape == {"x": 2}
    assert module.compile(sw.Mesh({"y": 3})).mesh.shape == {"y": 3}


def test_an_inlined_mesh_is_the_mesh_of_the_program() -> None:
    text = LAYER.replace("@mesh, [", 'mesh<["data"=4, "model"=2]>, [').partition("\n")[2]
    program = sw.parse(text).compile()
    assert program.mesh.shape == {"data": 4, "model": 2}
    np.testing.assert_allclose(program(X, W)[0], X @ W, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("func", "factor"), [("main", 2), ("@main", 2), ("twice", 2), ("again", 4)])
def test_any_function_of_a_text_runs(func: str, factor: int) -> None:
    module = sw.parse(FUNCTIONS)
    np.testing.assert_array_equal(module.run(V, func=func), factor * V)
    text = module.compile(func=func).as_text("global")
    assert text.count("func.func") == 1
    assert f"@{func.removeprefix('@')}(" in text


def test_why_knows_the_names_of_the_text() -> None:
    program = sw.parse(FUNCTIONS, "f.mlir").compile(func="again")
    for name, values in {"%1": ["%1"], "@main %0": ["@main %0"], "@twice %0": ["@twice %0"] * 2}.items():
        assert [value.name for value in program.why(name).values] == values
    with pytest.raises(KeyError, match=r"no value of the program is called '%t'"):
        program.why("%t")
    basic = sw.parse(LAYER).compile(strategy="basic").why("%h", counterfactual=True)
    assert "by basic propagation" in str(basic)
    assert [one.sharding for one in basic.values[0].counterfactuals or ()] == ["[{}, {}]"]


def test_the_only_function_runs_whatever_its_name() -> None:
    np.testing.assert_array_equal(sw.parse(SCALE.replace("@main", "@scale")).run(V, 2.0, 1), 2 * V)


def test_arrays_and_bfloat16_are_arguments() -> None:
    text = SCALE.replace("f32", "bf16")
    x = V.astype(ml_dtypes.bfloat16)
    result = sw.parse(text).run(x, 0.5, 1)
    assert result.dtype == sw.bfloat16
    np.testing.assert_array_equal(np.asarray(result, np.float32), V / 2)
    again = sw.parse(text).run(result, 2, 1)
    np.testing.assert_array_equal(np.asarray(again, np.float32), V)


def test_no_results_are_an_empty_tuple() -> None:
    assert sw.parse("func.func @main(%x: tensor<4xf32>) { return }").run(V) == ()


def test_bytes_of_bfloat16_without_a_name_are_bfloat16() -> None:
    """NumPy's files have no name for this dtype."""
    stored = V.astype(ml_dtypes.bfloat16).view("V2")
    result = sw.parse(SCALE.replace("f32", "bf16")).run(stored, 1, 1)
    np.testing.assert_array_equal(np.asarray(result, np.float32), V)
    with pytest.raises(sw.DTypeError, match="argument x must be float32"):
        sw.parse(SCALE).run(V.view("V4"), 1, 1)


def test_passes_come_before_a_run() -> None:
    module = sw.parse(FUNCTIONS).apply("inline-calls", "simplify")
    np.testing.assert_array_equal(module.run(V, func="again"), 4 * V)
    with pytest.raises(sw.ShardingError, match="compile: the program must not have been through localize"):
        sw.parse(sw.parse(LAYER).compile().as_text("local")).run(X, W)


def test_modules_from_json_and_traced_functions_run_too() -> None:
    module = sw.Module.from_json(sw.parse(LAYER).to_json())
    np.testing.assert_allclose(module.run(batch=X, arg1=W)[0], X @ W, rtol=1e-5, atol=1e-6)
    traced = sw.jit(lambda x, *, y: {"sum": x + y}, mesh=sw.Mesh({"x": 2})).trace(V, y=V)
    np.testing.assert_array_equal(traced.run(V, y=V)["sum"], 2 * V)
    np.testing.assert_array_equal(traced.lower().run(V, y=V)["sum"], 2 * V)
    assert "by basic propagation" in str(traced.compile(strategy="basic").why("add"))


# ---- errors ---------------------------------------------------------------------------------------------------------

TAKES = "call: @main takes x: float32[4], rate: float32[], n: int32[]"


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda m: m.run(V), TypeError, f"{TAKES}, got 1 argument; also pass rate: float32[], n: int32[]"),
        (lambda m: m.run(V, n=1), TypeError, f"{TAKES}, got 2 arguments; also pass rate: float32[]"),
        (lambda m: m.run(V, 1.0, 1, 1), TypeError, f"{TAKES}, got 4 arguments"),
        (lambda m: m.run(V, 1.0, 1, z=1), TypeError, "call: an argument of @main must be one of x, rate, n, got 'z'"),
        (lambda m: m.run(V, 1.0, x=1), TypeError,
         "call: argument x must be given once, got it by position and by name"),
        (lambda m: m.run(V[:3], 1.0, 1), sw.ShapeError,
         "call: argument x must be float32[4] as compiled, got float32[3]; pass an array of the type in the text"),
        (lambda m: m.run(V.astype(int), 1.0, 1), sw.DTypeError,
         "call: argument x must be float32[4] as compiled, got int64[4]; convert it with astype(\"float32\")"),
        (lambda m: m.run(V, 1.0, 1.5), sw.DTypeError,
         "call: argument n must be int32[] as compiled, got float64[]; convert it with astype(\"int32\")"),
        (lambda m: m.run(V, 1.0, 2**40), sw.DTypeError,
         "call: argument n must be int32[] as compiled, got int64[]; convert it with astype(\"int32\")"),
        (lambda m: m.run(V, True, 1), sw.DTypeError,
         "call: argument rate must be float32[] as compiled, got bool[]; convert it with astype(\"float32\")"),
        (lambda m: m.run(V, func="g"), sw.UnsupportedError,
         "compile: func must be a function of the program, got 'g'; it has main, other"),
        (lambda m: m.compile(func=3), TypeError, "compile: func must be the name of a function, got 3"),
        (lambda m: m.compile(3), sw.MeshError, "compile: mesh must be a Mesh, got 3"),
        (lambda m: m.compile(strategy="best"), sw.ShardingError,
         "compile: strategy must be 'basic' or 'aggressive', got 'best'"),
        (lambda m: sw.parse("module {}").run(), sw.UnsupportedError,
         "program: must have a function @main, got a module without functions; add func.func @main(...) {...}"),
        (lambda m: sw.parse(LAYER).compile(sw.Mesh({"x": 2})), sw.MeshError,
         'compile: the mesh must be that of the program\'s shardings, <["data"=4, "model"=2]>, got <["x"=2]>'),
        (lambda m: sw.jit(np.sin, mesh=sw.Mesh({"x": 2})).trace(V).compile(sw.Mesh({"x": 4})), sw.MeshError,
         "compile: the mesh must be that of the traced program, Mesh('x': 2), got Mesh('x': 4); "
         "trace the function on this mesh"),
        (lambda m: sw.jit(np.sin, mesh=sw.Mesh({"x": 2})).trace(V).run(V, func="f"), sw.UnsupportedError,
         "compile: a traced program has one function, main, got 'f'"),
    ],
)  # fmt: skip
def test_wrong_calls_name_the_argument_and_both_types(call: Any, error: type[Exception], said: str) -> None:
    module = sw.parse(SCALE + "func.func @other() { return }")
    with pytest.raises(error) as caught:
        call(module)
    text = str(caught.value)
    assert type(caught.value) is error
    assert text.startswith(f"{said} (at {__file__}:"), text


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (FUNCTIONS, sw.DTypeError,
         "compile: a value must be a tensor, got !stablehlo.token; leave out the ops that have effects (at t.mlir:14)"),
        ("""func.func @strange(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @mystery(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}""", sw.UnsupportedError,
         "custom_call @mystery: can be read, propagated and printed, but not run, because its function is not in "
         "the text; define it with sw.register_custom_call (at t.mlir:2)"),
    ],
    ids=["token", "op"],
)  # fmt: skip
def test_what_does_not_run_is_named_with_its_line(text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        sw.parse(text, "t.mlir").run(V, func="strange")
    assert str(caught.value) == said
