# SPDX-License-Identifier: Apache-2.0
"""Every mistake a user can make, and the message it gives: the exact class, the values, the way out, the user's line.

Each row is a program. Its message must match the pattern and end with a line of that program in this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"data": 4, "model": 2})
X = np.ones((8, 6), np.float32)
N = np.ones((8, 6), np.int32)
on_mesh = partial(sw.jit, mesh=MESH)  # no frame of its own, so that errors are at the row's lines
double = on_mesh(lambda x: x + x)


class Row:
    def __init__(self, program: Callable[[], Any], error: type[Exception], pattern: str, located: bool) -> None:
        self.program, self.error, self.pattern, self.located = program, error, pattern, located


ROWS: list[Row] = []


def row(error: type[Exception], pattern: str, located: bool = True) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(program: Callable[[], Any]) -> Callable[[], Any]:
        ROWS.append(Row(program, error, pattern, located))
        return program

    return add


# ---- annotations ----------------------------------------------------------------------------------------------------


@row(sw.ShardingError, r'an axis must be of mesh @mesh, got "dta"; use one of "data", "model"')
def shard_over_an_unknown_axis() -> None:
    on_mesh(lambda x: sw.shard(x, P("dta"))).trace(X)


@row(sw.ShardingError, r'an axis must be of mesh @mesh, got "dta"; use one of "data", "model"')
def split_over_an_unknown_axis() -> None:
    on_mesh(lambda x: sw.split(x, 0, "dta")).trace(X)


@row(sw.ShardingError, r'an axis must be used once, got "data" again in dim 1; use another axis, or split this one into')
def axis_used_twice() -> None:
    on_mesh(lambda x: sw.shard(x, P("data", "data"))).trace(X)


@row(sw.ShardingError, r'an axis and a sub-axis of it must not both be used, got "data":\(1\)2 and "data"; split the')
def axis_and_its_sub_axis() -> None:
    on_mesh(lambda x: sw.shard(x, P(sw.sub("data", pre=1, size=2), "data"))).trace(X)


@row(sw.ShardingError, r'must divide the size of its axis, got "data":\(3\)2 of "data"=4; split the axis into factors of 4')
def sub_axis_that_does_not_divide() -> None:
    on_mesh(lambda x: sw.shard(x, P(sw.sub("data", pre=3, size=2)))).trace(X)


@row(sw.ShardingError, r"a spec for 2 dims must have at most 2 entries, got P\('data', None, 'model'\); drop the extra")
def spec_with_too_many_dims() -> None:
    on_mesh(lambda x: sw.shard(x, P("data", None, "model"))).trace(X)


@row(sw.ShardingError, r'an array of 2 dims needs as many entries, got \[{"data"}\]')
def sharding_text_with_too_few_dims() -> None:
    on_mesh(lambda x: sw.shard(x, '[{"data"}]')).trace(X)


@row(sw.ShardingError, r'an array of 2 dims needs as many entries, got \[{"data"}, {}, {}\]')
def sharding_text_with_too_many_dims() -> None:
    on_mesh(lambda x: sw.shard(x, '[{"data"}, {}, {}]')).trace(X)


@row(sw.ShapeError, r"split: dim must be in \[-2, 2\), got 2")
def split_of_a_dim_that_is_not_there() -> None:
    on_mesh(lambda x: sw.split(x, 2, "data")).trace(X)


@row(sw.ShardingError, r"partitions must divide the 8 devices of Mesh\('data': 4, 'model': 2\), got 3; use one of \[1, 2, 4")
def split_count_that_does_not_divide() -> None:
    on_mesh(lambda x: sw.split(x, 0, 3)).trace(X)


@row(sw.ShardingError, r"must divide the 8 devices .*, got 0; use one of")
def split_into_nothing() -> None:
    on_mesh(lambda x: sw.split(x, 0, 0)).trace(X)


@row(sw.ShardingError, r"its result must be used, got an annotation whose result nothing uses; write x = sw.split\(x, …\)")
def annotation_whose_result_is_unused() -> None:
    def f(x: Any) -> Any:
        sw.split(x, 0, "data")
        return x

    on_mesh(f).trace(X)


@row(sw.ShardingError, r"a device assignment must name each device of Mesh\('data': 4, 'model': 2\) once, got \[0, 1, 2, 3\]")
def device_assignment_without_some_devices() -> None:
    on_mesh(lambda x: sw.shard(x, np.array([[0, 1], [2, 3]]))).trace(X)


@row(sw.ShardingError, r"must follow the axes of Mesh\(.*\), got .*")
def device_assignment_in_another_order() -> None:
    on_mesh(lambda x: sw.shard(x, np.arange(8).reshape(4, 2)[:, ::-1])).trace(X)


@row(sw.ShardingError, r"a device assignment must be an integer array of 2 dims, got 1-dim int64")
def device_assignment_of_another_ndim() -> None:
    on_mesh(lambda x: sw.shard(x, np.arange(8))).trace(X)


@row(sw.ShardingError, r"shard: takes P\(...\), NamedSharding, text or a device assignment, got 3")
def shard_by_something_else() -> None:
    on_mesh(lambda x: sw.shard(x, 3)).trace(X)


@row(sw.ShardingError, r"shard: the sharding's mesh must be the program's Mesh\(.*\), got Mesh\('z': 2\); use one mesh")
def shard_on_another_mesh() -> None:
    other = sw.NamedSharding(sw.Mesh({"z": 2}), P("z"))
    on_mesh(lambda x: sw.shard(x, other)).trace(X)


@row(sw.ShardingError, r"P: a dim must be None, an axis name, a tuple of names, or open\(...\), got 3")
def spec_of_a_number() -> None:
    P(3)  # type: ignore[arg-type]


@row(sw.ShardingError, r"NamedSharding: mesh must be a Mesh, got 3")
def named_sharding_without_a_mesh() -> None:
    sw.NamedSharding(3, P())  # type: ignore[arg-type]


# ---- meshes ---------------------------------------------------------------------------------------------------------


@row(sw.MeshError, r"a mesh must be known; pass mesh= to jit, sharded arrays, or call set_mesh first")
def no_mesh() -> None:
    sw.jit(lambda x: x)(X)


@row(sw.MeshError, r"a mesh must be known; pass mesh= to jit")
def gradient_without_a_mesh() -> None:
    sw.grad(lambda x: x.sum())(X)


@row(sw.MeshError, r'the size of an axis must be at least 1, got "x"=0; leave the axis out or give it size 1')
def mesh_axis_of_size_0() -> None:
    sw.Mesh({"x": 0})


@row(sw.MeshError, r"axes must map names to integers, got 'x': 2.5")
def mesh_axis_of_a_broken_size() -> None:
    sw.Mesh({"x": 2.5})  # type: ignore[dict-item]


@row(sw.MeshError, r"axes must be a mapping from names to sizes, got \[\('x', 2\)\]")
def mesh_of_a_list() -> None:
    sw.Mesh([("x", 2)])  # type: ignore[arg-type]


@row(sw.MeshError, r'the number of devices must fit in 63 bits, got \["x"=1099511627776, "y"=1099511627776\]; use smaller')
def mesh_without_end() -> None:
    sw.Mesh({"x": 2**40, "y": 2**40})


@row(sw.MeshError, r'must be the product of the axis sizes, got 3 ids for the 4 devices of \["x"=4\]; give one id per device')
def too_few_device_ids() -> None:
    sw.Mesh({"x": 4}, [0, 1, 2])


@row(sw.MeshError, r"device ids must be a permutation of 0 to 3, got 2 twice")
def device_id_twice() -> None:
    sw.Mesh({"x": 4}, [0, 1, 2, 2])


@row(sw.MeshError, r"device ids must not be negative, got -1")
def negative_device_id() -> None:
    sw.Mesh({"x": 4}, [0, 1, 2, -1])


@row(sw.MeshError, r"as many axis names as sizes are needed, got \(4, 2\) and \('x',\)")
def make_mesh_without_enough_names() -> None:
    sw.make_mesh((4, 2), ("x",))


@row(sw.MeshError, r"axis names must differ, got \('x', 'x'\)")
def make_mesh_with_a_name_twice() -> None:
    sw.make_mesh((4, 2), ("x", "x"))


@row(sw.MeshError, r"sizes \(4, 2\) need 8 devices, got 2")
def make_mesh_without_enough_devices() -> None:
    sw.make_mesh((4, 2), ("x", "y"), devices=[0, 1])


@row(sw.MeshError, r"set_mesh: takes a Mesh or None, got 3")
def set_mesh_to_a_number() -> None:
    sw.set_mesh(3)  # type: ignore[arg-type]


@row(sw.MeshError, r"all arguments must be on one mesh, Mesh\('data': 4, 'model': 2\), got Mesh\('z': 2\); move them with")
def arguments_on_two_meshes() -> None:
    sw.jit(lambda x, y: x + y)(sw.device_put(X, MESH), sw.device_put(X, sw.Mesh({"z": 2})))


# ---- tracers --------------------------------------------------------------------------------------------------------


@row(
    sw.TracerBoolConversionError,
    r"a condition of Python's if, .* got the traced Tracer<bool\[\]>; use np.where\(condition, a, b\), or make the",
)
def python_if_on_a_tracer() -> None:
    on_mesh(lambda x: x if x.sum() > 0 else -x).trace(X)


@row(sw.TracerConversionError, r"float: a number exists only when the program runs, got the traced Tracer<float32\[\]>; return")
def float_of_a_tracer() -> None:
    on_mesh(lambda x: float(x.sum())).trace(X)


@row(sw.TracerConversionError, r"int: a number exists only when the program runs, got the traced Tracer<float32\[\]>; return")
def int_of_a_tracer() -> None:
    on_mesh(lambda x: int(x.sum())).trace(X)


@row(sw.TracerConversionError, r"index: an integer exists only when the program runs, got the traced Tracer<int64\[\]>")
def range_of_a_tracer() -> None:
    on_mesh(lambda x: [x for _ in range(x.sum())]).trace(N)


@row(sw.TracerConversionError, r"item: a number exists only when the program runs, got")
def item_of_a_tracer() -> None:
    on_mesh(lambda x: x.sum().item()).trace(X)


@row(sw.TracerConversionError, r"np.asarray: an array exists only when the program runs, got the traced Tracer<float32\[8,6\]>")
def asarray_of_a_tracer() -> None:
    on_mesh(lambda x: np.asarray(x)).trace(X)


@row(sw.UnsupportedError, r"a traced array cannot be written in place; build a new one, for example with np.where")
def item_assignment() -> None:
    def f(x: Any) -> Any:
        x[0] = 1
        return x

    on_mesh(f).trace(X)


@row(sw.UnsupportedError, r"must not leave the function that recorded it, got Tracer<float32\[8,6\]>; return it instead")
def tracer_of_another_program() -> None:
    leaked: list[Any] = []
    on_mesh(lambda x: leaked.append(x)).trace(X)
    on_mesh(lambda x: x + leaked[0]).trace(X)


@row(sw.UnsupportedError, r"must not leave the function that recorded it, got Tracer<float32\[8,6\]>; return it instead")
def tracer_as_an_argument() -> None:
    leaked: list[Any] = []
    on_mesh(lambda x: leaked.append(x)).trace(X)
    double(leaked[0])


@row(sw.ShapeError, r"must not leave the function that recorded it, got one of a finished program; return it instead")
def op_on_an_escaped_tracer() -> None:
    leaked: list[Any] = []
    on_mesh(lambda x: leaked.append(x)).trace(X)
    leaked[0] + 1


# ---- NumPy functions ------------------------------------------------------------------------------------------------


@row(sw.UnsupportedError, r"np.fft.fft: shardwise has no traced form of it, got Tracer<float32\[8,6\]>; compute it outside jit")
def unsupported_function() -> None:
    on_mesh(lambda x: np.fft.fft(x)).trace(X)


@row(sw.UnsupportedError, r"np.add.accumulate: shardwise has no traced form of it; traced are reduce of add")
def unsupported_method_of_a_ufunc() -> None:
    on_mesh(lambda x: np.add.accumulate(x)).trace(X)


@row(sw.UnsupportedError, r"np.add: out= has no traced form, got .*; use what the function returns")
def unsupported_out() -> None:
    on_mesh(lambda x: np.add(x, x, out=X.copy())).trace(X)


@row(sw.UnsupportedError, r"np.add: where= has no traced form, got .*; use np.where on the result")
def unsupported_where() -> None:
    on_mesh(lambda x: np.add(x, x, where=N > 0)).trace(X)


@row(sw.UnsupportedError, r"np.reshape: order= has no traced form, got order='F'; leave it out")
def unsupported_order() -> None:
    on_mesh(lambda x: np.reshape(x, (48,), order="F")).trace(X)


@row(sw.DTypeError, r"np.bitwise_and: has no meaning for these dtypes, got float32, float32; convert the operands with astype")
def wrong_dtype() -> None:
    on_mesh(lambda x: x & x).trace(X)


@row(sw.DTypeError, r"np.negative: has no meaning for these dtypes, got bool; convert")
def minus_of_a_bool() -> None:
    on_mesh(lambda x: -(x > 0)).trace(X)


@row(sw.DTypeError, r"astype: the dtype must be of real numbers, got complex64")
def astype_complex() -> None:
    on_mesh(lambda x: x.astype(np.complex64)).trace(X)


@row(sw.ShapeError, r"np.einsum: dims that are multiplied must have one size, got 6 and 8 of shapes \(8, 6\) and \(8, 6\); trans")
def einsum_of_sizes_that_differ() -> None:
    on_mesh(lambda x: np.einsum("ij,jk->ik", x, x)).trace(X)


@row(sw.ShapeError, r"np.einsum: 'ijk' must label every dim, got shape \(8, 6\); add labels or an ellipsis")
def einsum_with_too_many_labels() -> None:
    on_mesh(lambda x: np.einsum("ijk->ik", x)).trace(X)


@row(sw.ShapeError, r"np.einsum: each label of the output must occur in it once and in an operand, got 'iz'")
def einsum_with_an_unknown_label() -> None:
    on_mesh(lambda x: np.einsum("ij->iz", x)).trace(X)


@row(sw.ShapeError, r"np.matmul: contracted dims must have one size, got 6 and 8 of shapes \(8, 6\) and \(8, 6\); transpose")
def matmul_of_shapes_that_do_not_fit() -> None:
    on_mesh(lambda x: x @ x).trace(X)


@row(sw.ShapeError, r"np.matmul: operands must have at least 1 dim, got \(8, 6\) and \(\); use \*")
def matmul_by_a_number() -> None:
    on_mesh(lambda x: x @ np.float32(3)).trace(X)


@row(sw.ShapeError, r"np.reshape: the number of elements must stay the same, got \(8, 6\) to \(7, 7\)")
def reshape_to_another_size() -> None:
    on_mesh(lambda x: x.reshape(7, 7)).trace(X)


@row(sw.ShapeError, r"np.reshape: .*got \(8, 6\) to \(-1, -1\)")
def reshape_with_two_unknowns() -> None:
    on_mesh(lambda x: x.reshape(-1, -1)).trace(X)


@row(sw.ShapeError, r"np.concatenate: shapes must agree but for dim 0, got \(8, 6\) and \(6, 8\); reshape one of them")
def concatenate_of_shapes_that_differ() -> None:
    on_mesh(lambda x: np.concatenate([x, x.T])).trace(X)


@row(sw.ShapeError, r"np.add: shapes must broadcast to one, got \(8, 6\) and \(5,\); reshape an operand")
def operands_that_do_not_broadcast() -> None:
    on_mesh(lambda x: x + np.ones(5, np.float32)).trace(X)


@row(sw.ShapeError, r"np.broadcast_to: shapes must broadcast to one, got \(8, 6\) and \(3, 6\)")
def broadcast_to_another_size() -> None:
    on_mesh(lambda x: np.broadcast_to(x, (3, 6))).trace(X)


@row(sw.ShapeError, r"np.transpose: axes must differ, got \(0, 0\)")
def transpose_of_a_dim_twice() -> None:
    on_mesh(lambda x: x.transpose(0, 0)).trace(X)


@row(sw.ShapeError, r"np.sum: an axis of 2 dims must be in \[-2, 2\), got 2")
def sum_over_a_dim_that_is_not_there() -> None:
    on_mesh(lambda x: x.sum(2)).trace(X)


@row(IndexError, r"indexing: an index on dim 0 of size 8 must be in \[-8, 8\), got 9")
def index_outside() -> None:
    on_mesh(lambda x: x[9]).trace(X)


@row(IndexError, r"indexing: an array of 2 dims takes at most as many indices, got \[0, 0, 0\]")
def too_many_indices() -> None:
    on_mesh(lambda x: x[0, 0, 0]).trace(X)


# ---- gradients ------------------------------------------------------------------------------------------------------


@row(sw.ShapeError, r"grad: the function must return a scalar, got shape \(8, 6\); reduce it, for example with .sum\(\)")
def gradient_of_an_array() -> None:
    on_mesh(sw.grad(lambda x: x * 2)).trace(X)


@row(sw.DTypeError, r"an argument to differentiate by must be floating, got int32 for argument 0; convert it with astype")
def gradient_by_integers() -> None:
    on_mesh(sw.grad(lambda x: x.sum())).trace(N)


@row(sw.DTypeError, r"grad: the function must return a floating scalar, got int32")
def gradient_of_an_integer() -> None:
    on_mesh(sw.grad(lambda x: x.sum().astype(np.int32))).trace(X)


@row(sw.ShapeError, r"grad: argnums must be below the 1 positional arguments, got 3")
def gradient_by_an_argument_that_is_not_there() -> None:
    on_mesh(sw.grad(lambda x: x.sum(), 3)).trace(X)


# ---- jit and its arguments ------------------------------------------------------------------------------------------


@row(sw.ShardingError, r"in_shardings: must be a prefix of the tree it describes, got \(P\(\), P\(\)\) for \(float32\[8, 6\],\); give")
def in_shardings_that_are_no_prefix() -> None:
    on_mesh(lambda x: x, in_shardings=(P(), P())).trace(X)


@row(sw.ShardingError, r"must be a prefix of the tree it describes, got \({'b': P\(\)},\) for \({'a': float32\[8, 6\]},\)")
def in_shardings_with_another_key() -> None:
    on_mesh(lambda x: x, in_shardings=({"b": P()},)).trace({"a": X})


@row(sw.ShardingError, r"out_shardings: must be a prefix of the tree it describes, got \(P\(\), P\(\)\) for float32\[8, 6\]")
def out_shardings_that_are_no_prefix() -> None:
    on_mesh(lambda x: x, out_shardings=(P(), P())).trace(X)


@row(sw.ShardingError, r"in_shardings: takes P\(...\), NamedSharding or text, got 3")
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


@row(ValueError, r"jit: strategy must be 'basic' or 'aggressive', got 'fast'")
def unknown_strategy() -> None:
    on_mesh(lambda x: x, strategy="fast")


@row(sw.DTypeError, r"jit: an argument must be an array of numbers, got <U1 for .*; make it static, or pass arrays")
def argument_of_text() -> None:
    on_mesh(lambda x: x).trace(np.array(["a"]))


@row(sw.DTypeError, r"jit: an argument must be an array of numbers, got complex64 for .*; make it static, or pass arrays")
def argument_of_complex_numbers() -> None:
    on_mesh(lambda x: x).trace(np.ones(3, np.complex64))


@row(sw.DTypeError, r"an array must have a numeric dtype, got <U1")
def result_of_text() -> None:
    on_mesh(lambda x: "a").trace(X)


# ---- compiled programs ----------------------------------------------------------------------------------------------


@row(sw.ShapeError, r"an argument must be float32\[8, 6\] as compiled, got float32\[8, 5\]; compile the function for these")
def array_of_another_shape() -> None:
    double.lower(X).compile()(X[:, :5])


@row(sw.DTypeError, r"an argument must be float32\[8, 6\] as compiled, got int32\[8, 6\]; compile the function for these")
def array_of_another_dtype() -> None:
    double.lower(X).compile()(N)


@row(sw.ShapeError, r"arguments must have the tree of the compiled program, got PyTreeSpec\(.*; it was compiled for PyTreeSpec")
def arguments_of_another_tree() -> None:
    double.lower(X).compile()((X, X))


@row(sw.ShapeError, r"arguments must have the tree of the compiled program, got")
def too_many_arguments_to_run() -> None:
    double.lower(X).compile().run(X, X, faithful=True)


@row(sw.ShapeError, r"a program runs on arrays, got ShapeDtypeStruct\(shape=\(8, 6\), dtype=float32\); pass arrays, or only")
def call_without_data() -> None:
    double.lower(X).compile()(sw.ShapeDtypeStruct((8, 6), np.float32))


@row(KeyError, r"why: no value of the program is called 'y'", located=False)
def why_of_an_unknown_name() -> None:
    double.lower(X).compile().why("y")


@row(ValueError, r"as_text: kind must be one of global, propagated, resharded, local, got 'final'")
def unknown_stage() -> None:
    double.lower(X).compile().as_text("final")


# ---- device_put -----------------------------------------------------------------------------------------------------


@row(sw.MeshError, r"device_put: a spec needs a mesh, got P\('data'\); use NamedSharding\(mesh, spec\) or set_mesh")
def device_put_by_a_spec_without_a_mesh() -> None:
    sw.device_put(X, P("data"))


@row(sw.ShardingError, r"device_put: takes a NamedSharding, a spec or a mesh, got 3")
def device_put_by_a_number() -> None:
    sw.device_put(X, 3)  # type: ignore[arg-type]


@row(sw.ShardingError, r"must have at most 2 entries, got P\('data', None, None\); drop the extra ones")
def device_put_by_too_many_dims() -> None:
    sw.device_put(X, sw.NamedSharding(MESH, P("data", None, None)))


@row(sw.ShardingError, r'an axis must be of mesh @mesh, got "x"; use one of "data", "model"')
def device_put_over_an_unknown_axis() -> None:
    sw.device_put(X, sw.NamedSharding(MESH, P("x")))


@row(sw.DTypeError, r"dtype: must be one of bool, int8, .*, got <U3; convert the array with astype")
def device_put_of_text() -> None:
    sw.device_put("abc", MESH)


# ---- text -----------------------------------------------------------------------------------------------------------


@row(sw.ParseError, r"^3:8: program text: an op must be one that shardwise knows, got 'stablehlo.foo'")
def program_with_an_unknown_op() -> None:
    sw.parse("module {\n  func.func @main() {\n  %0 = stablehlo.foo %1\n}")


@row(sw.ParseError, r"^1:1: program text: what a module holds must be func.func or sdy.mesh, got 'hello'")
def program_that_is_none() -> None:
    sw.parse("hello")


@row(sw.ParseError, r"^1:1: program text: expected a module with a function, got the end of the text")
def empty_program() -> None:
    sw.parse("")


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


@row(sw.ParseError, r'^1:13: sharding text: an axis must be a string, such as "x" or "x":\(1\)2, got "]"')
def malformed_sharding() -> None:
    on_mesh(lambda x: sw.shard(x, '[{"data"}, {]')).trace(X)


@row(sw.ShardingError, r'an axis must be of mesh @mesh, got "dta"; use one of "data", "model"')
def sharding_text_over_an_unknown_axis() -> None:
    on_mesh(lambda x: sw.shard(x, '[{"data"}, {"dta"}]')).trace(X)


@row(sw.ParseError, r"^1:2: program: must be JSON, got .*")
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


# ---- the table ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.program.__name__)
def test_message_says_what_where_and_the_way_out(row: Row) -> None:
    with pytest.raises(row.error) as caught:
        row.program()
    error = caught.value
    assert type(error) is row.error, f"{type(error)}: {error}"
    text = str(error)
    assert re.search(row.pattern, text, re.DOTALL), text
    assert len(text) < 1500, text
    if not row.located:
        return
    place = re.search(r"\(at (\S+):(\d+)\)\W*$", text)
    assert place, text
    assert place[1] == __file__, text
    assert int(place[2]) in lines_of(row.program), text


def lines_of(program: Any) -> set[int]:
    """Lines of a function and of those in it."""
    codes, lines = [program.__code__], set()
    while codes:
        code = codes.pop()
        lines |= {line for _, _, line in code.co_lines() if line is not None}
        codes += [const for const in code.co_consts if hasattr(const, "co_lines")]
    return lines


def test_errors_of_users_are_builtin_errors_too() -> None:
    """What a user of NumPy or JAX would catch."""
    for row in ROWS:
        assert issubclass(row.error, (ValueError, TypeError, IndexError, KeyError)), row.error
        assert not issubclass(row.error, sw.InternalError)


def test_parse_error_has_line_and_column() -> None:
    with pytest.raises(sw.ParseError) as caught:
        sw.parse("module {\n  func.func @main() {\n  %0 = stablehlo.foo %1\n}")
    assert (caught.value.line, caught.value.column) == (3, 8)
