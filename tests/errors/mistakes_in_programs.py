# SPDX-License-Identifier: Apache-2.0
"""Mistakes in what is traced: annotations, meshes, tracers, NumPy functions, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from shardwise.numpy import cumulative  # NumPy has cumulative_sum from 2.1 on
from tests.errors.mistakes import MESH, N, X, on_mesh, row

# ---- annotations ----------------------------------------------------------------------------------------------------


@row(sw.ShardingError, r'an axis must be of mesh @mesh, got "dta"; use one of "data", "model"')
def shard_over_an_unknown_axis() -> None:
    on_mesh(lambda x: sw.shard(x, P("dta"))).trace(X)


@row(sw.ShardingError, r'an axis must be of mesh @mesh, got "dta"; use one of "data", "model"')
def split_over_an_unknown_axis() -> None:
    on_mesh(lambda x: sw.split(x, 0, "dta")).trace(X)


@row(
    sw.ShardingError, r'an axis must be used once, got "data" again in dim 1; use another axis, or split this one into'
)
def axis_used_twice() -> None:
    on_mesh(lambda x: sw.shard(x, P("data", "data"))).trace(X)


@row(sw.ShardingError, r'an axis and a sub-axis of it must not both be used, got "data":\(1\)2 and "data"; split the')
def axis_and_its_sub_axis() -> None:
    on_mesh(lambda x: sw.shard(x, P(sw.sub("data", pre=1, size=2), "data"))).trace(X)


@row(
    sw.ShardingError,
    r'must divide the size of its axis, got "data":\(3\)2 of "data"=4; split the axis into factors of 4',
)
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


@row(
    sw.ShardingError,
    r"partitions must divide the 8 devices of Mesh\('data': 4, 'model': 2\), got 3; use one of \[1, 2, 4",
)
def split_count_that_does_not_divide() -> None:
    on_mesh(lambda x: sw.split(x, 0, 3)).trace(X)


@row(sw.ShardingError, r"must divide the 8 devices .*, got 0; use one of")
def split_into_nothing() -> None:
    on_mesh(lambda x: sw.split(x, 0, 0)).trace(X)


@row(
    sw.ShardingError,
    r"a device assignment must name each device of Mesh\('data': 4, 'model': 2\) once, got \[0, 1, 2, 3\]",
)
def device_assignment_without_some_devices() -> None:
    on_mesh(lambda x: sw.shard(x, np.array([[0, 1], [2, 3]]))).trace(X)


@row(
    sw.ShardingError,
    r"a device assignment must name each device of Mesh\(.*\) once, got \[1, 0, 3, 2, 5, 4, 7, 7\]",
)
def device_assignment_with_a_device_twice() -> None:
    on_mesh(lambda x: sw.shard(x, np.array([[1, 0], [3, 2], [5, 4], [7, 7]]))).trace(X)


@row(sw.ShardingError, r"a device assignment must be an integer array of 2 dims, got 1-dim int64")
def device_assignment_of_another_ndim() -> None:
    on_mesh(lambda x: sw.shard(x, np.arange(8))).trace(X)


@row(sw.ShardingError, r"shard: takes P\(...\), NamedSharding, text or a device assignment, got 3")
def shard_by_something_else() -> None:
    on_mesh(lambda x: sw.shard(x, 3)).trace(X)


@row(
    sw.MeshError,
    r"shard: the mesh must be over the 8 devices of the program's mesh, Mesh\('data': 4, 'model': 2\), "
    r"got Mesh\('z': 2\); use Mesh\('data': 4, 'model': 2\), or a mesh of 8 devices",
)
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


@row(sw.MeshError, r"jit: no mesh given; pass mesh= to jit, sharded arrays, or call set_mesh first")
def no_mesh() -> None:
    sw.jit(lambda x: x)(X)


@row(sw.MeshError, r"shard_map: no mesh given; pass mesh= to shard_map, or call set_mesh first")
def shard_map_without_a_mesh() -> None:
    sw.shard_map(lambda x: x, in_specs=P("x"), out_specs=P("x"))(X)


@row(sw.MeshError, r"manual: no mesh given; pass mesh= to manual, or call set_mesh first")
def manual_without_a_mesh() -> None:
    sw.manual(lambda x: x, None, P("x"), P("x"))(X)


@row(sw.MeshError, r'the size of an axis must be at least 1, got "x"=0; leave the axis out or give it size 1')
def mesh_axis_of_size_0() -> None:
    sw.Mesh({"x": 0})


@row(sw.MeshError, r"axes must map names to integers, got 'x': 2.5")
def mesh_axis_of_a_broken_size() -> None:
    sw.Mesh({"x": 2.5})  # type: ignore[dict-item]


@row(sw.MeshError, r"axes must be a mapping from names to sizes, got \[\('x', 2\)\]")
def mesh_of_a_list() -> None:
    sw.Mesh([("x", 2)])  # type: ignore[arg-type]


@row(
    sw.MeshError,
    r'the number of devices must fit in 63 bits, got \["x"=1099511627776, "y"=1099511627776\]; use smaller',
)
def mesh_without_end() -> None:
    sw.Mesh({"x": 2**40, "y": 2**40})


@row(
    sw.MeshError,
    r'must be the product of the axis sizes, got 3 ids for the 4 devices of \["x"=4\]; give one id per device',
)
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


@row(
    sw.MeshError,
    r"all arguments and shardings must be on meshes over the same devices, those of Mesh\('data': 4, 'model': 2\), "
    r"got Mesh\('z': 2\); move arrays",
)
def arguments_on_two_meshes() -> None:
    sw.jit(lambda x, y: x + y)(sw.device_put(X, MESH), sw.device_put(X, sw.Mesh({"z": 2})))


# ---- tracers --------------------------------------------------------------------------------------------------------


@row(
    sw.TracerBoolConversionError,
    r"bool: a condition of Python's if, while, and, or must be known during tracing, got Tracer<bool\[\]>; "
    r"use np.where\(condition, a, b\), or sw.cond\(condition, f, g\) \(at",
)
def python_if_on_a_tracer() -> None:
    on_mesh(lambda x: x if x.sum() > 0 else -x).trace(X)


@row(
    sw.TracerConversionError,
    r"float: this needs the value of a traced array, which is unknown during tracing; "
    r"use x.sum\(\).astype\(float\) \(at",
)
def float_of_a_tracer() -> None:
    on_mesh(lambda x: float(x.sum())).trace(X)


@row(
    sw.TracerConversionError,
    r"int: this needs the value of a traced array, which is unknown during tracing; "
    r"use x.sum\(\).astype\(int\); where it is a size, use a static upper bound, and mask with np.where \(at",
)
def int_of_a_tracer() -> None:
    on_mesh(lambda x: int(x.sum())).trace(X)


@row(
    sw.TracerConversionError,
    r"range: this needs the value of a traced array, which is unknown during tracing, got Tracer<int64\[\]>; "
    r"use shapes, numbers or static arguments \(at",
)
def range_of_a_tracer() -> None:
    on_mesh(lambda x: [x for _ in range(x.sum())]).trace(N)


@row(
    sw.TracerConversionError,
    r"item: this needs the value of a traced array, which is unknown during tracing, got Tracer<float32\[\]>; "
    r"use the array itself, or return the value from the jitted function \(at",
)
def item_of_a_tracer() -> None:
    on_mesh(lambda x: x.sum().item()).trace(X)


@row(
    sw.TracerConversionError,
    r"np.asarray: x is already an array: remove the call "
    r"\(np.asarray\(x, like=x\) and sw.numpy.asarray\(x\) work on both\) \(at",
)
def asarray_of_a_tracer() -> None:
    on_mesh(lambda x: np.asarray(x)).trace(X)


@row(sw.UnsupportedError, r"a traced array cannot be written in place; x.at\[index\].set\(value\) gives a new one")
def item_assignment() -> None:
    def f(x: Any) -> Any:
        x[0] = 1
        return x

    on_mesh(f).trace(X)


@row(
    sw.UnsupportedError, r"must not leave the function that recorded it, got Tracer<float32\[8,6\]>; return it instead"
)
def tracer_of_another_program() -> None:
    leaked: list[Any] = []
    on_mesh(lambda x: leaked.append(x)).trace(X)
    on_mesh(lambda x: x + leaked[0]).trace(X)


@row(
    sw.UnsupportedError, r"must not leave the function that recorded it, got Tracer<float32\[8,6\]>; return it instead"
)
def tracer_as_an_argument() -> None:
    leaked: list[Any] = []
    on_mesh(lambda x: leaked.append(x)).trace(X)
    on_mesh(lambda x: x + x)(leaked[0])


@row(
    sw.UnsupportedError,
    r"must not leave the function that recorded it, got one of a finished program; return it instead",
)
def op_on_an_escaped_tracer() -> None:
    leaked: list[Any] = []
    on_mesh(lambda x: leaked.append(x)).trace(X)
    leaked[0] + 1


# ---- NumPy functions ------------------------------------------------------------------------------------------------


@row(
    sw.UnsupportedError,
    r"^np.polydiv is not supported in traced functions; call it on np.asarray\(x\) outside jit \(at",
)
def unsupported_function() -> None:
    on_mesh(lambda x: np.polydiv(x, x)).trace(X)


@row(
    sw.UnsupportedError,
    r"np.add.reduceat is not supported in traced functions; supported are reduce of add.*accumulate",
)
def unsupported_method_of_a_ufunc() -> None:
    on_mesh(lambda x: np.add.reduceat(x, [0])).trace(X)


@row(
    sw.UnsupportedError, r"np.subtract.accumulate is not supported in traced functions; supported are accumulate of add"
)
def accumulation_of_another_ufunc() -> None:
    on_mesh(lambda x: np.subtract.accumulate(x)).trace(X)


@row(
    sw.UnsupportedError,
    r"np.maximum.accumulate: out= is not supported in traced functions, got .*; use what the function returns",
)
def accumulation_into_an_array() -> None:
    on_mesh(lambda x: np.maximum.accumulate(x, out=X.copy())).trace(X)


@row(sw.ShapeError, r"np.add.accumulate: takes an array of at least one dim, got Tracer<float32\[\]>; use the number")
def accumulation_of_a_number() -> None:
    on_mesh(lambda x: np.add.accumulate(x[0, 0])).trace(X)


@row(sw.ShapeError, r"np.cumsum: .* must be in \[-2, 2\), got 5")
def running_sum_along_a_dim_that_is_not_there() -> None:
    on_mesh(lambda x: np.cumsum(x, axis=5)).trace(X)


@row(sw.ShapeError, r"np.cumulative_sum: an array of several dims needs an axis, got shape \(8, 6\)")
def cumulative_sum_without_an_axis() -> None:
    on_mesh(lambda x: cumulative.cumulative_sum(x)).trace(X)


@row(
    sw.UnsupportedError,
    r"np.add: out= is not supported in traced functions, got out=float32\[8, 6\]; use what the function returns",
)
def unsupported_out() -> None:
    on_mesh(lambda x: np.add(x, x, out=X.copy())).trace(X)


@row(
    sw.UnsupportedError,
    r"np.add: where= is not supported in traced functions, got where=bool\[8, 6\]; "
    r"use np.where\(mask, np.add\(a, b\), other\) \(at",
)
def unsupported_where() -> None:
    on_mesh(lambda x: np.add(x, x, where=N > 0)).trace(X)


@row(
    sw.UnsupportedError,
    r"np.reshape: order= is not supported in traced functions, got order='A'; "
    r"use order='C': arrays here have no order in memory \(at",
)
def unsupported_order() -> None:
    on_mesh(lambda x: np.reshape(x, (48,), order="A")).trace(X)


@row(
    sw.DTypeError,
    r"np.bitwise_and: has no meaning for these dtypes, got float32, float32; convert the operands with astype",
)
def wrong_dtype() -> None:
    on_mesh(lambda x: x & x).trace(X)


@row(sw.DTypeError, r"np.negative: has no meaning for these dtypes, got bool; convert")
def minus_of_a_bool() -> None:
    on_mesh(lambda x: -(x > 0)).trace(X)


@row(sw.DTypeError, r"astype: the dtype must be of numbers, got complex256")
def astype_long_complex() -> None:
    on_mesh(lambda x: x.astype(np.clongdouble)).trace(X)


@row(
    sw.ShapeError,
    r"np.einsum: dims that are multiplied must have one size, got 6 and 8 of shapes \(8, 6\) and \(8, 6\); trans",
)
def einsum_of_sizes_that_differ() -> None:
    on_mesh(lambda x: np.einsum("ij,jk->ik", x, x)).trace(X)


@row(sw.ShapeError, r"np.einsum: 'ijk' must label every dim, got shape \(8, 6\); add labels or an ellipsis")
def einsum_with_too_many_labels() -> None:
    on_mesh(lambda x: np.einsum("ijk->ik", x)).trace(X)


@row(sw.ShapeError, r"np.einsum: each label of the output must occur in it once and in an operand, got 'iz'")
def einsum_with_an_unknown_label() -> None:
    on_mesh(lambda x: np.einsum("ij->iz", x)).trace(X)


@row(
    sw.ShapeError,
    r"np.matmul: contracted dims must have one size, got 6 and 8 of shapes \(8, 6\) and \(8, 6\); transpose",
)
def matmul_of_shapes_that_do_not_fit() -> None:
    on_mesh(lambda x: x @ x).trace(X)


@row(sw.ShapeError, r"np.matmul: operands must have at least 1 dim, got \(8, 6\) and \(\); use \*")
def matmul_by_a_number() -> None:
    on_mesh(lambda x: x @ np.float32(3)).trace(X)


@row(sw.ShapeError, r"np.reshape: the number of elements must stay the same, got \(8, 6\) to \(7, 7\)")
def reshape_to_another_size() -> None:
    on_mesh(lambda x: x.reshape(7, 7)).trace(X)


@row(
    sw.ShapeError,
    r"np.reshape: the 48 elements must be a multiple of the product of the other sizes, 10, got \(8, 6\) to",
)
def reshape_with_an_unknown_that_is_no_integer() -> None:
    on_mesh(lambda x: x.reshape(-1, 2, 5)).trace(X)


@row(sw.ShapeError, r"np.reshape: a size must be at least 0, or -1, got \(8, 6\) to \(-2, -24\)")
def reshape_to_negative_sizes() -> None:
    on_mesh(lambda x: x.reshape(-2, -24)).trace(X)


@row(sw.ShapeError, r"np.reshape: only one size may be -1, got \(8, 6\) to \(-1, -1\); state the others")
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


@row(
    sw.ShapeError, r"grad: the function must return a scalar, got shape \(8, 6\); reduce it, for example with .sum\(\)"
)
def gradient_of_an_array() -> None:
    on_mesh(sw.grad(lambda x: x * 2)).trace(X)


@row(
    sw.DTypeError,
    r"^grad: an argument to differentiate by must be floating, got int32\[8, 6\] for x; "
    r"convert it with astype, or leave it out of argnums \(",
)
def gradient_by_integers() -> None:
    on_mesh(sw.grad(lambda x: x.sum())).trace(N)


@row(sw.DTypeError, r"grad: the function must return a floating scalar, got int32")
def gradient_of_an_integer() -> None:
    on_mesh(sw.grad(lambda x: x.sum().astype(np.int32))).trace(X)


@row(sw.ShapeError, r"grad: argnums must be in \[-1, 1\), the positional arguments, got 3")
def gradient_by_an_argument_that_is_not_there() -> None:
    on_mesh(sw.grad(lambda x: x.sum(), 3)).trace(X)
