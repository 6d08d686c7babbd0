# SPDX-License-Identifier: Apache-2.0
"""Mistakes around a program: its arguments, its shardings, its text and files."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from tests.errors.mistakes import MESH, N, X, on_mesh, row

double = on_mesh(lambda x: x + x)


# ---- jit and its arguments ------------------------------------------------------------------------------------------


@row(
    sw.ShardingError,
    r"in_shardings: must be a prefix of the tree it describes, "
    r"got a tuple of 2 where the tree has a tuple of 1; give",
)
def in_shardings_that_are_no_prefix() -> None:
    on_mesh(lambda x: x, in_shardings=(P(), P())).trace(X)


@row(TypeError, r"^add\(\) missing a required argument: 'y' \(at ")
def fewer_arguments_than_in_shardings() -> None:
    def add(x: Any, y: Any) -> Any:
        return x + y

    on_mesh(add, in_shardings=(P(), P()))(X)


@row(
    sw.ShardingError,
    r"must be a prefix of the tree it describes, "
    r"got a dict with key 'b' where the tree has a dict with key 'a', at \[0\]; give",
)
def in_shardings_with_another_key() -> None:
    on_mesh(lambda x: x, in_shardings=({"b": P()},)).trace({"a": X})


@row(
    sw.ShardingError,
    r"out_shardings: must be a prefix of the tree it describes, "
    r"got a tuple of 2 where the tree has float32\[8, 6\]; give",
)
def out_shardings_that_are_no_prefix() -> None:
    on_mesh(lambda x: x, out_shardings=(P(), P())).trace(X)


@row(sw.ShardingError, r"in_shardings of x: takes P\(...\), NamedSharding or text, got 3")
def in_shardings_of_a_number() -> None:
    on_mesh(lambda x: x, in_shardings=3).trace(X)


@row(TypeError, r"jit: static arguments must be hashable, got unhashable type: 'list'")
def static_argument_that_is_not_hashable() -> None:
    on_mesh(lambda x, n: x, static_argnums=1)(X, [1])


@row(TypeError, r"jit: takes a function, got 3")
def jit_of_a_number() -> None:
    sw.jit(3)  # type: ignore[call-overload]


@row(sw.MeshError, r"jit: mesh must be a Mesh, got 3")
def jit_on_a_number() -> None:
    sw.jit(lambda x: x, mesh=3)


@row(sw.ShardingError, r"jit: strategy must be 'basic' or 'aggressive', got 'fast'")
def unknown_strategy() -> None:
    on_mesh(lambda x: x, strategy="fast")


@row(sw.DTypeError, r"jit: argument x must be an array of numbers, got <U1\[1\]; number its strings with np.unique\(")
def argument_of_text() -> None:
    on_mesh(lambda x: x).trace(np.array(["a"]))


@row(sw.DTypeError, r"jit: argument x must be an array of numbers, got complex256\[3\]; convert it with astype \(")
def argument_of_long_complex_numbers() -> None:
    on_mesh(lambda x: x).trace(np.ones(3, np.clongdouble))


@row(
    sw.DTypeError,
    r"^jit: an output must be an array, got str 'a' for result; return arrays, and anything else outside the function",
)
def result_of_text() -> None:
    on_mesh(lambda x: "a").trace(X)


# ---- compiled programs ----------------------------------------------------------------------------------------------


@row(
    sw.ShapeError,
    r"argument x must be float32\[8, 6\] as compiled, got float32\[8, 5\]; compile the function for this shape \(at",
)
def array_of_another_shape() -> None:
    double.lower(X).compile()(X[:, :5])


@row(sw.DTypeError, r"argument x must be float32\[8, 6\] as compiled, got int32\[8, 6\]; convert it with astype")
def array_of_another_dtype() -> None:
    double.lower(X).compile()(N)


@row(
    sw.ShapeError,
    r"arguments must have the tree of the compiled program, got PyTreeSpec\(.*; it was compiled for PyTreeSpec",
)
def arguments_of_another_tree() -> None:
    double.lower(X).compile()((X, X))


@row(sw.ShapeError, r"arguments must have the tree of the compiled program, got")
def too_many_arguments_to_run() -> None:
    double.lower(X).compile().run(X, X, faithful=True)


@row(
    sw.ShapeError,
    r"a program runs on arrays, got ShapeDtypeStruct\(shape=\(8, 6\), dtype=float32\) for x; pass arrays, or only",
)
def call_without_data() -> None:
    double.lower(X).compile()(sw.ShapeDtypeStruct((8, 6), np.float32))


@row(KeyError, r"why: no value of the program is called 'y'", located=False)
def why_of_an_unknown_name() -> None:
    double.lower(X).compile().why("y")


@row(ValueError, r"as_text: kind must be one of global, propagated, resharded, local, export, got 'final'")
def unknown_stage() -> None:
    double.lower(X).compile().as_text("final")


# ---- device_put -----------------------------------------------------------------------------------------------------


@row(sw.MeshError, r"device_put: a spec needs a mesh, got P\('data'\); use NamedSharding\(mesh, spec\) or set_mesh")
def device_put_by_a_spec_without_a_mesh() -> None:
    sw.device_put(X, P("data"))


@row(sw.ShardingError, r"device_put: takes a NamedSharding, a spec or a mesh, got 3")
def device_put_by_a_number() -> None:
    sw.device_put(X, 3)


@row(sw.ShardingError, r"must have at most 2 entries, got P\('data', None, None\); drop the extra ones")
def device_put_by_too_many_dims() -> None:
    sw.device_put(X, sw.NamedSharding(MESH, P("data", None, None)))


@row(sw.ShardingError, r'an axis must be of mesh @mesh, got "x"; use one of "data", "model"')
def device_put_over_an_unknown_axis() -> None:
    sw.device_put(X, sw.NamedSharding(MESH, P("x")))


@row(sw.DTypeError, r"device_put: every leaf must be an array of numbers, got str 'abc' for x; convert it with astype")
def device_put_of_text() -> None:
    sw.device_put("abc", MESH)


# ---- text -----------------------------------------------------------------------------------------------------------


def _reduce_text(body: str, results: str = "%3, %b") -> str:
    """A reduce of two tensors by a region."""
    return f"""module {{
  func.func @main(%x: tensor<4xf32>, %n: tensor<4xi32>, %v: tensor<f32>, %i: tensor<i32>) -> tensor<f32> {{
    %0:2 = stablehlo.reduce(%x init: %v), (%n init: %i) across dimensions = [0]
      : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {{
      {body}
      stablehlo.return {results} : tensor<f32>, tensor<i32>
    }}
    return %0#0 : tensor<f32>
  }}
}}"""


@row(
    sw.ParseError,
    r"reduce: the region must be elementwise ops and constants, got stablehlo.optimization_barrier; compute",
)
def region_with_an_op_that_is_not_elementwise() -> None:
    sw.parse(_reduce_text("%3 = stablehlo.optimization_barrier %a : tensor<f32>"))


@row(
    sw.ParseError,
    r"reduce: the region must use its own arguments and constants alone, got a value from around it; pass the value",
)
def region_that_uses_a_value_from_around_it() -> None:
    sw.parse(_reduce_text("%3 = stablehlo.add %a, %v : tensor<f32>"))


@row(
    sw.ParseError,
    r"reduce: the region must return scalars of the operands' dtypes, got result 0 of tensor<i32> for .*; convert it",
)
def region_that_returns_another_dtype() -> None:
    sw.parse(
        _reduce_text("%3 = stablehlo.add %b, %d : tensor<i32>").replace(
            "return %3, %b : tensor<f32>", "return %3, %b : tensor<i32>"
        )
    )


@row(
    sw.ParseError,
    r"reduce: the region must compute with scalars, got stablehlo.constant of tensor<2xf32>; combine one row",
)
def region_that_computes_with_tensors() -> None:
    body = "%4 = stablehlo.constant dense<1.0> : tensor<2xf32>"
    sw.parse(_reduce_text(body, "%a, %b"))


@row(sw.ParseError, r"^3:8: program text: an op must be one that shardwise knows, got 'stablehlo.foo'")
def program_with_an_unknown_op() -> None:
    sw.parse("module {\n  func.func @main() {\n  %0 = stablehlo.foo %1\n}")


@row(sw.ParseError, r"^1:1: program text: what a module holds must be func.func or sdy.mesh, got 'hello'")
def program_that_is_none() -> None:
    sw.parse("hello")


@row(
    sw.UnsupportedError,
    r"^program: must have a function @main, got a module without functions; add func.func @main\(\.\.\.\) {\.\.\.} ",
)
def empty_program() -> None:
    sw.parse("").propagate()


@row(sw.ParseError, r"^4:10: stablehlo.add: operands must have the same shape, got tensor<4xf32>, tensor<5xf32>; broad")
def program_with_shapes_that_differ() -> None:
    sw.parse(
        "module {\n"
        "  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<5xf32>) -> tensor<4xf32> {\n"
        "    %0 = stablehlo.abs %arg0 : tensor<4xf32>\n"
        '    %1 = "stablehlo.add"(%0, %arg1) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>\n'
        "    return %1 : tensor<4xf32>\n  }\n}\n"
    )


@row(sw.ParseError, r"^3:\d+: .*%7")
def program_with_an_unknown_value() -> None:
    sw.parse(
        "module {\n  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
        "    %0 = stablehlo.abs %7 : tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n"
    )


def windows(attributes: str, region: str = "stablehlo.add %a, %b") -> str:
    """A program of one reduce_window of tensor<4xf32>."""
    return (
        "module {\n  func.func @main(%x: tensor<4xf32>, %i: tensor<f32>) -> tensor<4xf32> {\n"
        f'    %0 = "stablehlo.reduce_window"(%x, %i) <{{{attributes}}}> ({{\n'
        f"    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n      %1 = {region} : tensor<f32>\n"
        "      stablehlo.return %1 : tensor<f32>\n    }) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>\n"
        "    return %0 : tensor<4xf32>\n  }\n}\n"
    )


@row(
    sw.ParseError, r"^3:10: stablehlo.reduce_window: window_dimensions must have 1 entry, got .*1, 1.*; give one entry"
)
def window_of_other_dims() -> None:
    sw.parse(windows("window_dimensions = array<i64: 1, 1>"))


@row(sw.ParseError, r"stablehlo.reduce_window: window_dimensions must be positive, got .*0.*; 1 leaves a dim as it is")
def window_of_nothing() -> None:
    sw.parse(windows("window_dimensions = array<i64: 0>"))


@row(sw.ParseError, r"stablehlo.reduce_window: window_strides must be positive, got .*-2.*; 1 leaves a dim as it is")
def window_that_steps_back() -> None:
    sw.parse(windows("window_dimensions = array<i64: 1>, window_strides = array<i64: -2>"))


@row(
    sw.ParseError, r"padding must be a low and a high count per dim, got tensor<2x1xi64> for .*; give a tensor<1x2xi64>"
)
def window_with_padding_of_another_shape() -> None:
    sw.parse(windows("padding = dense<0> : tensor<2x1xi64>, window_dimensions = array<i64: 1>"))


@row(sw.ParseError, r"windows, dilations and padding must be far below 2\^52, got a window over dim 0 of tensor<4xf32>")
def window_beyond_all_integers() -> None:
    huge = 2**62
    sw.parse(windows(f"window_dilations = array<i64: {huge}>, window_dimensions = array<i64: {huge}>"))


@row(sw.ParseError, r"the region must use its own arguments and constants alone, got a value from around it; pass the")
def window_with_a_value_from_around_it() -> None:
    sw.parse(windows("window_dimensions = array<i64: 1>", "stablehlo.add %a, %i"))


@row(sw.ParseError, r"the region must be elementwise ops and constants, got stablehlo.optimization_barrier; compute")
def window_with_a_region_of_other_ops() -> None:
    sw.parse(windows("window_dimensions = array<i64: 1>", "stablehlo.optimization_barrier %a"))


@row(
    sw.ParseError,
    r"stablehlo.reduce_window: the result must have type tensor<3xf32> for operands .*, got tensor<4xf32>",
)
def window_with_another_result() -> None:
    sw.parse(windows("window_dimensions = array<i64: 2>"))


@row(sw.ParseError, r'^1:13: sharding text: an axis must be a string, such as "x" or "x":\(1\)2, got "]"')
def malformed_sharding() -> None:
    on_mesh(lambda x: sw.shard(x, '[{"data"}, {]')).trace(X)


@row(sw.ShardingError, r'an axis must be of mesh @mesh, got "dta"; use one of "data", "model"')
def sharding_text_over_an_unknown_axis() -> None:
    on_mesh(lambda x: sw.shard(x, '[{"data"}, {"dta"}]')).trace(X)


@row(sw.ParseError, r"^1:10: JSON: a number must fit 64 bits")
def number_too_large_for_json() -> None:
    sw.Mesh.from_json('{"axes": 1e999}')


@row(sw.ParseError, r"^1:13: program: a number must fit 64 bits")
def number_too_large_for_a_program() -> None:
    sw.Module.from_json('{"version": 1e999}')


@row(sw.ParseError, r"^1:2: program: must be JSON, got syntax error while parsing object key - unexpected end of input")
def json_that_is_none() -> None:
    sw.Module.from_json("{")


@row(sw.ParseError, r'program: must be an object with "format": "shardwise", got none')
def json_of_something_else() -> None:
    sw.Module.from_json("{}")


@row(sw.ParseError, r'"version" must be at most 1, got 99; read it with a newer shardwise')
def json_of_a_newer_version() -> None:
    sw.Module.from_json('{"format": "shardwise", "version": 99, "stablehlo": ""}')


@row(sw.ParseError, r'the document must have no other keys than name, axes, device_ids, got "a"')
def json_of_no_mesh() -> None:
    sw.Mesh.from_json('{"a": 1}')
