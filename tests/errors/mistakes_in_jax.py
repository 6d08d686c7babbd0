# SPDX-License-Identifier: Apache-2.0
"""Mistakes in programs from and to JAX: each row holds the whole message. A process with 8 devices of JAX runs them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import shardwise as sw
from shardwise import P
from shardwise.dtypes import numpy_dtype
from tests.errors.mistakes import Row

ROWS: list[Row] = []
MESH = sw.Mesh({"data": 4, "model": 2})
X = np.ones((8, 4), np.float32)


def says(error: type[Exception], text: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add a row with the whole message, but for its place."""

    def add(program: Callable[[], Any]) -> Callable[[], Any]:
        ROWS.append(Row(program, error, f"^{re.escape(text)} \\(at ", True))
        return program

    return add


def compiled(function: Any, *arguments: Any, mesh: sw.Mesh = MESH, **options: Any) -> Any:
    return sw.jit(function, mesh=mesh, **options).lower(*arguments).compile()


def handed(function: Any = lambda x: x + 1, mesh: sw.Mesh = MESH, **options: Any) -> Any:
    return compiled(function, X, mesh=mesh, in_shardings=(P("data"),), **options).to_jax()


# ---- from JAX ------------------------------------------------------------------------------------------------------


@says(TypeError, "from_jax: takes a function, got 3")
def from_jax_of_a_number() -> None:
    sw.from_jax(3)  # type: ignore[arg-type]


@says(
    sw.DTypeError,
    "from_jax: arguments must have dtypes that JAX keeps without x64, got float64[3] for x; "
    'convert it with astype("float32"), or call jax.config.update("jax_enable_x64", True)',
)
def float64_without_x64() -> None:
    sw.from_jax(lambda x: x + 1, mesh=MESH)(np.ones(3))


@says(
    sw.DTypeError,
    "from_jax: arguments must have dtypes that JAX keeps without x64, got int64[3] for ids; "
    'convert it with astype("int32"), or call jax.config.update("jax_enable_x64", True)',
)
def int64_without_x64() -> None:
    sw.from_jax(lambda ids: ids + 1, mesh=MESH)(np.arange(3))


@says(
    sw.DTypeError,
    "call: argument n must be in the range of int32, got 4294967296; enable x64 in JAX",
)
def a_number_that_int32_cannot_hold() -> None:
    sw.from_jax(lambda x, n: x * n, mesh=MESH)(X, 2**32)


@says(
    ValueError,
    "from_jax: the function must not donate arguments, which belong to the program, got donation of params['w'], "
    "params['z']; leave donate_argnums out of jax.jit, and pass it to sw.jit",
)
def a_function_that_donates() -> None:
    step = jax.jit(lambda x, params: params["w"] * x + params["z"], donate_argnums=1)
    sw.jit(sw.from_jax(step), mesh=MESH)(X, {"w": X, "z": X})


@says(
    ValueError,
    "from_jax: the function must not donate arguments, which belong to the program, got donation of state; "
    "leave donate_argnums out of jax.jit, and pass it to sw.jit",
)
def a_function_that_donates_on_its_own() -> None:
    step = jax.jit(lambda state, x: state + x, donate_argnames="state")
    sw.from_jax(step, mesh=MESH)(X, X)


def donated() -> jax.Array:
    x = jnp.ones((8, 4))
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x


DELETED = (
    "from_jax: argument x must not be deleted, got an array that was donated before; "
    "use the results of the call that it was donated to"
)


@says(sw.DeletedArrayError, DELETED)
def an_array_that_jax_donated() -> None:
    sw.from_jax(lambda x: x + 1, mesh=MESH)(donated())


@says(sw.DeletedArrayError, DELETED)
def an_array_that_jax_donated_in_a_program() -> None:
    gone, function = donated(), sw.from_jax(lambda w, x: w @ x)
    sw.jit(lambda w: function(w, gone), mesh=MESH)(X[:, :8])


@says(
    sw.DTypeError,
    "from_jax: argument options['kind'] must be an array of numbers, got <U4[1]; "
    "take it out of the tree, and pass it as an argument of its own, which is static then",
)
def array_of_texts_in_a_tree() -> None:
    sw.from_jax(lambda x, options: x, mesh=MESH)(X, {"kind": np.array(["fast"])})


@says(
    TypeError,
    "from_jax: static arguments must be hashable, got unhashable type: 'list'; pass arrays, or trees of arrays",
)
def a_static_list() -> None:
    sw.from_jax(lambda x, sizes: x, mesh=MESH, static_argnums=1)(X, [1, 2])


@says(
    sw.TracerConversionError,
    "from_jax: argument n must be a Python value, since it is static in the JAX function, got Tracer<int64[]>; "
    "make it static in the program, too: sw.jit(…, static_argnames='n'), or static_argnums=",
)
def a_static_argument_that_sw_jit_traces() -> None:
    sw.jit(sw.from_jax(jax.jit(lambda x, n: x * n, static_argnums=1)), mesh=MESH)(X, 3)


@says(
    ValueError,
    "from_jax: static arguments of jitted functions inside must not depend on arguments that are traced; "
    "make the argument static, too: pass static_argnums= or static_argnames= to from_jax",
)
def a_static_argument_of_a_function_inside() -> None:
    power = jax.jit(lambda x, n: x**n, static_argnums=1)
    sw.from_jax(lambda x, n: power(x, n), mesh=MESH)(X, 3)


TRACED = (
    "from_jax: must not be called in a function that JAX traces, such as one of jax.jit, got a traced {} for {}; "
    "call the JAX function itself there, or sw.jit in place of jax.jit"
)


@says(sw.UnsupportedError, TRACED.format("float32[8, 4]", "params['w']"))
def from_jax_in_a_function_of_jax_jit() -> None:
    jax.jit(sw.from_jax(lambda params: params["w"] + 1, mesh=MESH))({"w": X})


@says(sw.UnsupportedError, TRACED.format("float32[8, 4]", "x"))
def from_jax_in_a_function_of_jax_grad() -> None:
    jax.grad(lambda x: sw.from_jax(lambda x: x.sum(), mesh=MESH)(x))(X)


@says(
    sw.TracerConversionError,
    "from_jax: a JAX function must not use a traced value of another call, got a traced float32[8, 4]; "
    "return it, or pass it as an argument",
)
def a_traced_value_of_jax_in_a_closure() -> None:
    jax.jit(lambda x: sw.from_jax(lambda y: x + y, mesh=MESH)(X))(X)


@says(
    sw.UnsupportedError,
    "from_jax: a JAX function must not print, which no device can do, got jax.debug.print; "
    "remove it, or return the value, and print it by sw.debug.print in the function around",
)
def a_print_in_a_jax_function() -> None:
    sw.from_jax(lambda x: (jax.debug.print("{}", x), x)[1], mesh=MESH)(X)


@says(
    sw.UnsupportedError,
    "from_jax: a JAX function must not call Python functions, which no device can run, got jax.pure_callback; "
    "write it in jax.numpy, or return the value, and call Python on the results of the program",
)
def a_callback_in_a_jax_function() -> None:
    inside = jax.jit(lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((4,), np.float32), x))
    sw.from_jax(lambda x: jax.lax.map(inside, x), mesh=MESH)(X)


EXPORTED = (
    "from_jax: all functions of jax.export in a JAX function must be exported for TPUs, or all for CPUs, got {}; "
    'export them with platforms=("tpu", "cpu")'
)


def exported(function: Any, *platforms: str) -> Any:
    return jax.export.export(jax.jit(function), platforms=platforms)(X).call


@says(sw.UnsupportedError, EXPORTED.format("sin for cuda, rocm"))
def a_function_exported_for_gpus() -> None:
    sw.from_jax(exported(jnp.sin, "cuda", "rocm"), mesh=MESH)(X)


@says(sw.UnsupportedError, EXPORTED.format("cos for cpu"))
def functions_exported_for_different_platforms() -> None:
    sin, cos = exported(jnp.sin, "tpu"), exported(jnp.cos, "cpu")
    sw.from_jax(lambda x: cos(sin(x)), mesh=MESH)(X)


CLOSED_OVER = "from_jax: a JAX function must not close over traced values of Shardwise, got {}; " + (
    "pass it as an argument of the JAX function"
)


@says(sw.TracerConversionError, CLOSED_OVER.format("params['w'], Tracer<float32[8,4]>"))
def a_traced_tree_in_a_closure() -> None:
    sw.jit(lambda x, params: sw.from_jax(lambda x: jnp.add(x, params["w"]))(x), mesh=MESH)(X, {"w": X})


@says(sw.TracerConversionError, CLOSED_OVER.format("Tracer<float32[8,4]> in the results"))
def a_traced_value_as_a_result() -> None:
    sw.jit(lambda x, w: sw.from_jax(lambda x: (x, w))(x), mesh=MESH)(X, X)


@says(sw.TracerConversionError, CLOSED_OVER.format("key, Tracer<uint32[2]>"))
def a_key_in_a_closure() -> None:
    draw = lambda key, x: sw.from_jax(lambda x: jax.random.normal(key, x.shape))(x)  # noqa: E731
    sw.jit(draw, mesh=MESH)(jax.random.key(0), X)


# ---- to JAX --------------------------------------------------------------------------------------------------------


@says(
    sw.MeshError,
    "to_jax: needs 16 devices, as many as Mesh('x': 16), got 8 (cpu); set "
    "XLA_FLAGS=--xla_force_host_platform_device_count=16 before Python starts, or compile the program for a mesh of 8",
)
def too_few_devices() -> None:
    compiled(lambda x: x + 1, X, mesh=sw.Mesh({"x": 16})).to_jax()


@says(
    sw.MeshError,
    "to_jax: mesh must have the 8 devices of the program's mesh, Mesh('data': 4, 'model': 2), got 2: {'x': 2}; "
    "compile the program for this mesh",
)
def a_mesh_of_another_size() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    compiled(lambda x: x + 1, X).to_jax(mesh=mesh)


@says(
    sw.MeshError,
    "to_jax: mesh must have the axes of the program's mesh, in this order: Mesh('data': 4, 'model': 2), "
    "got {'model': 2, 'data': 4}; compile the program for this mesh",
)
def a_mesh_whose_axes_are_in_another_order() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "data"))
    compiled(lambda x: x + 1, X).to_jax(mesh=mesh)


@says(
    sw.MeshError,
    "to_jax: mesh must have devices, got AbstractMesh('data': 4, 'model': 2, axis_types=(Auto, Auto)); "
    'pass a jax.sharding.Mesh, or read as_text("export"), which needs none',
)
def a_mesh_without_devices() -> None:
    types = (jax.sharding.AxisType.Auto,) * 2
    compiled(lambda x: x + 1, X).to_jax(mesh=jax.sharding.AbstractMesh((4, 2), ("data", "model"), axis_types=types))


@says(
    sw.MeshError,
    "jax_shardings: mesh must have the axes of the program's mesh, in this order: Mesh('data': 4, 'model': 2), "
    "got {'data': 2, 'model': 4}; compile the program for this mesh",
)
def an_abstract_mesh_of_other_sizes() -> None:
    compiled(lambda x: x + 1, X).jax_shardings(mesh=jax.sharding.AbstractMesh((2, 4), ("data", "model")))


@says(
    sw.MeshError,
    "jax_shardings: mesh must have the axes of the program's mesh, in this order: Mesh('data': 4, 'model': 2), "
    "got {'x': 8}; compile the program for this mesh",
)
def an_abstract_mesh_of_other_axes() -> None:
    compiled(lambda x: x + 1, X).jax_shardings(mesh=jax.sharding.AbstractMesh((8,), ("x",)))


@says(
    sw.ShapeError,
    "get: result 0 must have the shape [8, 4], got float32[9, 9]; pass what a call returned",
)
def results_of_another_shape() -> None:
    compiled(lambda x: x + 1, X).to_jax().get(np.zeros((9, 9), np.float32))


@says(ValueError, "to_jax: takes devices or a mesh, got both; leave one of them out")
def devices_and_a_mesh() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    compiled(lambda x: x + 1, X).to_jax(devices=jax.devices(), mesh=mesh)


@says(sw.MeshError, f"to_jax: devices must be different ones, got {jax.devices()[0]} 8 times; pass jax.devices()")
def one_device_for_all() -> None:
    compiled(lambda x: x + 1, X).to_jax(devices=jax.devices()[:1] * 8)


@says(
    ValueError,
    "to_jax: argument a is donated, so its array must not be another argument, got one array for a and b; "
    "pass a copy of it, jax.numpy.copy(x), or do not donate it",
)
def a_donated_array_for_two_arguments() -> None:
    function = compiled(lambda a, b: a + b, X, X, in_shardings=(P("data"),) * 2, donate_argnums=0).to_jax()
    (a, _) = function.put(X, X)
    function(a, a)


@says(
    sw.ShapeError,
    "to_jax: argument x must be float32[8, 4] as compiled, got float32[8, 5]; compile the function for these shapes",
)
def another_shape() -> None:
    handed()(np.ones((8, 5), np.float32))


@says(
    sw.DTypeError,
    "to_jax: argument x must be float32[8, 4] as compiled, got float64[8, 4]; compile the function for these shapes",
)
def another_dtype() -> None:
    handed()(np.ones((8, 4)))


@says(
    sw.ShardingError,
    f"to_jax: argument x must have the sharding of the program, {jax.P('data')}, got {jax.P(None, 'model')}; "
    "place it with put(…), which moves it",
)
def another_sharding() -> None:
    function = handed()
    other = jax.sharding.NamedSharding(function.mesh, jax.sharding.PartitionSpec(None, "model"))
    function(jax.device_put(X, other))


@says(
    sw.DeletedArrayError,
    "to_jax: argument x must not be deleted, got an array that was donated before; "
    "use the results of the call that it was donated to",
)
def an_array_donated_twice() -> None:
    function = handed(donate_argnums=0)
    (x,) = function.put(X)
    function(x)
    function(x)


@says(sw.ShapeError, "get: takes the 1 results of a call, got 2 arrays")
def get_of_other_arrays() -> None:
    handed().get((X, X))


@says(
    sw.UnsupportedError,
    "to_jax: every value must have a dtype that jax.lax has, got float6_e2m3fn; convert it before the program",
)
def a_dtype_that_jax_lacks() -> None:
    handed(lambda x: x.astype(numpy_dtype("float6_e2m3fn")).astype(np.float32) + 1)(X)


# ---- shardings, scripts --------------------------------------------------------------------------------------------


@says(ValueError, "to_source: target must be 'jax' or 'mpi4py', got 'torch'")
def a_script_for_another_library() -> None:
    compiled(lambda x: x + 1, X).to_source("torch")


@says(
    sw.UnsupportedError,
    "jax_shardings: the sub-axes of argument x must nest with those of the others, since axes of JAX's meshes are "
    'whole, got "x":(1)3; use sub-axes with the same cuts, or a mesh with more axes',
)
def sub_axes_that_do_not_nest() -> None:
    mesh = sw.Mesh({"x": 6})
    specs = (P(sw.sub("x", pre=1, size=2)), P(sw.sub("x", pre=1, size=3)))
    compiled(lambda y, x: (y + 1, x + 1), X, X[:6], mesh=mesh, in_shardings=specs).jax_shardings()


@says(TypeError, "annotate_jax: takes a compiled program, got 3; call .compile() first")
def annotate_jax_without_a_program() -> None:
    sw.annotate_jax(lambda x: x, 3)  # type: ignore[arg-type]


@says(
    sw.ShardingError,
    "annotate_jax: JAX drops a constraint unless its 4 devices divide the dim, got dim 0 of argument x, of size 6; "
    "pad it, or use to_jax, which keeps uneven dims",
)
def annotate_jax_of_an_uneven_dim() -> None:
    program = compiled(sw.from_jax(lambda x: x + 1), X[:6], in_shardings=(P("data"),))
    sw.annotate_jax(lambda x: x + 1, program)(X[:6])


@says(
    sw.ShardingError,
    "annotate_jax: the arrays must be the 2 of the program, params['w'], x, got float32[8, 4]; "
    "pass the arguments that the program was made for",
)
def annotate_jax_of_other_arguments() -> None:
    program = compiled(sw.from_jax(lambda params, x: x + params["w"]), {"w": X}, X)
    jax.jit(sw.annotate_jax(lambda x: x + 1, program))(X)


@says(sw.ShardingError, "annotate_jax: the function must have the 2 results of the program, got 1; pass its function")
def annotate_jax_of_another_function() -> None:
    program = compiled(sw.from_jax(lambda x: (x, x + 1)), X)
    sw.annotate_jax(lambda x: x + 1, program)(X)
