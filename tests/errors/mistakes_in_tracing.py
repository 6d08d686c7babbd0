# SPDX-License-Identifier: Apache-2.0
"""Mistakes with values that are unknown during tracing: sizes, conversions, lists of traced arrays, writes in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from mistakes import MESH, UNKNOWN, N, V, X, on_mesh, row, says

import shardwise as sw


def must_be_static(subject: str, name: str = "n") -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """A row for an argument that must be static."""
    text = f"{subject}: argument {name} must be static: sw.jit(f, static_argnames='{name}')"
    return says(sw.TracerConversionError, text)


# ---- arguments that must be static ----------------------------------------------------------------------------------


@must_be_static("x.reshape")
def reshape_by_an_argument() -> None:
    on_mesh(lambda x, n: x.reshape(n, -1))(X, 4)


@must_be_static("np.reshape")
def reshape_by_an_argument_in_a_tuple() -> None:
    on_mesh(lambda x, n: np.reshape(x, (n, -1)))(X, 4)


@must_be_static("np.arange")
def arange_of_an_argument() -> None:
    on_mesh(lambda x, n: x + np.arange(n))(X, 6)


@must_be_static("np.zeros")
def zeros_of_an_argument() -> None:
    on_mesh(lambda x, n: x + np.zeros(n))(X, 6)


@must_be_static("np.zeros")
def zeros_of_a_shape_with_an_argument() -> None:
    on_mesh(lambda x, n: x + np.zeros((n, 6)))(X, 8)


@must_be_static("np.ones")
def ones_of_an_argument() -> None:
    on_mesh(lambda x, n: x + np.ones(n))(X, 6)


@must_be_static("np.full")
def full_of_a_size_that_is_an_argument() -> None:
    on_mesh(lambda x, n: x + np.full(n, 0.5))(X, 6)


@must_be_static("np.eye")
def eye_of_an_argument() -> None:
    on_mesh(lambda x, n: x @ np.eye(n))(X, 6)


@must_be_static("np.linspace")
def linspace_of_an_argument() -> None:
    on_mesh(lambda x, n: x + np.linspace(0, 1, n))(X, 6)


@must_be_static("x.sum")
def axis_that_is_an_argument() -> None:
    on_mesh(lambda x, n: x.sum(n))(X, 1)


@must_be_static("np.expand_dims")
def named_axis_that_is_an_argument() -> None:
    on_mesh(lambda x, n: np.expand_dims(x, axis=n))(X, 1)


@must_be_static("range")
def range_of_an_argument() -> None:
    on_mesh(lambda x, n: sum(x[i] for i in range(n)))(X, 3)


@must_be_static("indexing")
def slice_to_an_argument() -> None:
    on_mesh(lambda x, n: x[:n])(X, 3)


@must_be_static("np.tile")
def tile_by_an_argument() -> None:
    on_mesh(lambda x, n: np.tile(x, n))(X, 3)


@must_be_static("np.tile")
def tile_by_a_tuple_with_an_argument() -> None:
    on_mesh(lambda x, n: np.tile(x, (n, 1)))(X, 3)


@must_be_static("np.repeat")
def repeat_by_an_argument() -> None:
    on_mesh(lambda x, n: np.repeat(x, n))(X, 3)


@must_be_static("np.split")
def split_into_an_argument() -> None:
    on_mesh(lambda x, n: np.split(x, n))(X, 2)


@must_be_static("np.pad")
def padding_by_an_argument() -> None:
    on_mesh(lambda x, n: np.pad(x, n))(X, 2)


@must_be_static("float")
def float_of_an_argument() -> None:
    on_mesh(lambda x, n: x * float(n))(X, 2)


@must_be_static("np.zeros")
def size_computed_from_an_argument() -> None:
    def f(x: Any, n: Any) -> Any:
        half = n // 2
        size = half + 1
        return x + np.zeros(size)

    on_mesh(f)(X, 10)


@must_be_static("np.zeros")
def size_computed_in_the_call() -> None:
    on_mesh(lambda x, n: x + np.zeros(n * 2))(X, 3)


@must_be_static("np.zeros")
def size_under_a_gradient() -> None:
    on_mesh(lambda x, n: sw.grad(lambda y: (y + np.zeros(n)).sum())(x))(X, 6)


@must_be_static("np.zeros")
def size_that_is_not_mapped() -> None:
    on_mesh(lambda x, n: sw.vmap(lambda y, m: y + np.zeros(m), in_axes=(0, None))(x, n))(X, 6)


@says(
    sw.TracerBoolConversionError,
    "bool: argument training must be static: sw.jit(f, static_argnames='training'), or use np.where(condition, a, b)",
)
def condition_that_is_an_argument() -> None:
    on_mesh(lambda x, training: x * 2 if training else x)(X, True)


@says(
    sw.TracerBoolConversionError,
    "bool: argument n must be static: sw.jit(f, static_argnames='n'), or use np.where(condition, a, b)",
)
def condition_on_an_argument() -> None:
    on_mesh(lambda x, n: x * 2 if n > 3 else x)(X, 4)


@says(sw.TracerConversionError, "np.zeros: argument 1 must be static: sw.jit(f, static_argnums=1)")
def size_without_a_name() -> None:
    on_mesh(lambda *args: args[0] + np.zeros(args[1]))(X, 6)


@row(
    sw.TracerConversionError,
    r"np.zeros: config.* must be static, and not part of an argument of arrays: make it an argument of its own, and "
    r"sw.jit\(f, static_argnames='width'\) \(at",
)
def size_in_a_dict() -> None:
    on_mesh(lambda x, config: x + np.zeros(config["width"]))(X, {"width": 6})


@says(
    sw.TracerConversionError,
    "np.zeros: argument n must be static: put the transform into sw.jit, with static_argnames='n'",
)
def size_of_a_transform_outside_jit() -> None:
    sw.grad(lambda x, n: (x + np.zeros(n)).sum())(sw.device_put(X, MESH), 6)


@says(
    sw.TracerConversionError,
    "np.zeros: a shape must be known during tracing, and must not depend on data, got Tracer<int64[]>; "
    "use a static size, and mask with np.where",
)
def size_computed_from_an_array() -> None:
    def f(x: Any) -> Any:
        size = x.sum()
        return np.zeros(size)

    on_mesh(f)(N)


@says(TypeError, "ShapeDtypeStruct: sizes must be integers, got (2.9,)")
def shape_of_a_float() -> None:
    sw.ShapeDtypeStruct((2.9,), np.float32)


@says(TypeError, "ShapeDtypeStruct: sizes must be integers, got 2.9")
def size_of_a_float() -> None:
    sw.ShapeDtypeStruct(2.9, np.float32)  # type: ignore[arg-type]


# ---- conversions ----------------------------------------------------------------------------------------------------


@says(
    sw.TracerConversionError,
    "np.array: x is already an array: remove the call (np.array(x, like=x) and sw.numpy.asarray(x) work on both)",
)
def array_of_a_tracer() -> None:
    on_mesh(lambda x: np.array(x)).trace(X)


@says(sw.TracerConversionError, "np.asarray: x is already an array; use x.astype(np.float64)")
def asarray_of_a_tracer_with_a_dtype() -> None:
    on_mesh(lambda x: np.asarray(x, dtype=np.float64)).trace(X)


@says(sw.TracerConversionError, f"np.float64: {UNKNOWN}; use x[0, 0].astype(np.float64)")
def numpy_scalar_of_a_tracer() -> None:
    on_mesh(lambda x: np.float64(x[0, 0])).trace(X)


@says(sw.TracerConversionError, "math.sqrt: takes numbers, not traced arrays; use np.sqrt")
def math_of_a_tracer() -> None:
    on_mesh(lambda x: math.sqrt(x[0, 0])).trace(X)


@says(sw.TracerConversionError, "np.array: a list of traced arrays must be stacked; use np.stack([x[0], x[1]])")
def array_of_a_list() -> None:
    on_mesh(lambda x: np.array([x[0], x[1]])).trace(X)


@says(
    sw.TracerConversionError,
    "np.array: a list of traced arrays must be stacked; "
    "use np.stack([np.stack(row) for row in [[x[0, 0], 0], [0, x[1, 1]]]])",
)
def array_of_a_list_of_lists() -> None:
    on_mesh(lambda x: np.array([[x[0, 0], 0], [0, x[1, 1]]])).trace(X)


@says(sw.TracerConversionError, "np.asarray: a list of traced arrays must be stacked; use np.stack(rows)")
def array_of_a_variable_that_is_a_list() -> None:
    def f(x: Any) -> Any:
        rows = [x[0], x[1]]
        return np.asarray(rows)

    on_mesh(f).trace(X)


@says(sw.TracerConversionError, "np.sum: a list of traced arrays must be stacked; use np.sum(np.stack([x, x]), axis=0)")
def sum_of_a_list() -> None:
    on_mesh(lambda x: np.sum([x, x], axis=0)).trace(X)


@says(sw.TracerConversionError, "np.r_: takes no traced arrays; use np.concatenate([x[0], x[1]])")
def rows_joined() -> None:
    on_mesh(lambda x: np.r_[x[0], x[1]]).trace(X)


@says(sw.TracerConversionError, "np.c_: takes no traced arrays; use np.column_stack([x[0], x[1]])")
def columns_joined() -> None:
    on_mesh(lambda x: np.c_[x[0], x[1]]).trace(X)


@says(
    sw.TracerConversionError,
    "np.full: a NumPy array cannot hold traced values; use np.full_like(x[0, 0], x[0, 0], shape=3)",
)
def full_of_a_traced_value() -> None:
    on_mesh(lambda x: np.full(3, x[0, 0])).trace(X)


@says(
    sw.TracerBoolConversionError,
    "min: argument step must be static: sw.jit(f, static_argnames='step'), or use np.minimum",
)
def min_of_python_and_an_argument() -> None:
    on_mesh(lambda x, step: x * min(1.0, step / 10))(X, 3)


@row(sw.TracerBoolConversionError, r"^max: a condition of Python's if.*, got Tracer<bool\[\]>; use np.maximum \(at")
def max_of_python() -> None:
    on_mesh(lambda x: max(x[0, 0], x[1, 1])).trace(X)


# ---- writes into NumPy arrays ---------------------------------------------------------------------------------------


@says(
    sw.TracerConversionError,
    "y[0] = x[0]: a NumPy array cannot hold traced values; "
    "start from y = np.zeros_like(x, shape=(4,)), and write y = y.at[0].set(x[0])",
)
def element_of_a_numpy_array() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(4)
        y[0] = x[0]
        return y

    on_mesh(f).trace(V)


@says(
    sw.TracerConversionError,
    "y[:2] = x[:2]: a NumPy array cannot hold traced values; "
    "start from y = np.asarray(y, like=x), and write y = y.at[:2].set(x[:2])",
)
def slice_of_a_numpy_array() -> None:
    def f(x: Any) -> Any:
        y = np.ones(4)
        y[:2] = x[:2]
        return y

    on_mesh(f).trace(V)


@says(
    sw.TracerConversionError,
    "y[0] = x[0]: a NumPy array cannot hold traced values; "
    "start from y = np.zeros_like(x, shape=(4,)), and write y = y.at[0].set(x[0])",
)
def element_among_statements_of_a_line() -> None:
    # fmt: off
    def f(x: Any) -> Any:
        y = np.zeros(4); y[0] = x[0]; return y  # noqa: E702
    # fmt: on

    on_mesh(f).trace(V)


@says(sw.UnsupportedError, "acc += x: a NumPy array cannot hold traced values; write acc = acc + x")
def sum_in_place() -> None:
    def f(x: Any) -> Any:
        acc = np.zeros(4)
        acc += x
        return acc

    on_mesh(f).trace(V)


@says(
    sw.UnsupportedError,
    "acc[0] += x[0]: a NumPy array cannot hold traced values; "
    "start from acc = np.zeros_like(x, shape=(8, 6)), and write acc = acc.at[0].add(x[0])",
)
def row_in_place() -> None:
    def f(x: Any) -> Any:
        acc = np.zeros((8, 6))
        acc[0] += x[0]
        return acc

    on_mesh(f).trace(X)


@says(
    sw.UnsupportedError,
    "acc[0] -= x[0]: a NumPy array cannot hold traced values; "
    "start from acc = np.zeros_like(x, shape=(8, 6)), and write acc = acc.at[0].set(acc[0] - x[0])",
)
def row_subtracted_in_place() -> None:
    def f(x: Any) -> Any:
        acc = np.zeros((8, 6))
        acc[0] -= x[0]
        return acc

    on_mesh(f).trace(X)


# ---- Arrays outside jit ---------------------------------------------------------------------------------------------

HELD = sw.device_put(X, sw.NamedSharding(MESH, sw.P("data")))


@says(sw.UnsupportedError, "np.sort is not supported on sharded arrays; call it on np.asarray(a)")
def sort_of_an_array() -> None:
    np.sort(HELD)


@says(sw.UnsupportedError, "np.nonzero is not supported on sharded arrays; call it on np.asarray(a)")
def nonzero_of_an_array() -> None:
    np.nonzero(HELD)


@says(sw.UnsupportedError, "np.put is not supported on sharded arrays; sw.at(x, index).set(values) returns a new array")
def put_into_an_array() -> None:
    np.put(HELD, 0, 1)


@says(
    sw.UnsupportedError,
    "np.add: where= is not supported on sharded arrays, got where=bool[8, 6]; use np.where(mask, np.add(a, b), other)",
)
def where_of_an_array() -> None:
    np.add(HELD, HELD, where=N > 0)


@says(
    sw.DTypeError,
    "view: the dtype must have the width of the array's, got Array<float32[8,6]> as int16; "
    "use astype, or take it apart with >> and &",
)
def view_of_an_array() -> None:
    HELD.view(np.int16)


# ---- np.matrix ------------------------------------------------------------------------------------------------------

MATRIX = X.view(np.matrix)  # whose constructor warns
NO_MATRIX = "array: must not be a np.matrix, whose * means another thing; pass np.asarray(x), and write @ for products"


@says(sw.DTypeError, NO_MATRIX)
def matrix_as_an_argument() -> None:
    on_mesh(lambda x: x * x)(MATRIX)


@says(sw.DTypeError, NO_MATRIX)
def matrix_that_is_closed_over() -> None:
    on_mesh(lambda x: x * MATRIX)(X)


@says(sw.DTypeError, NO_MATRIX)
def matrix_that_is_placed() -> None:
    sw.device_put(MATRIX, MESH)


@says(sw.DTypeError, NO_MATRIX)
def matrix_beside_an_array() -> None:
    HELD + MATRIX


@says(sw.DTypeError, NO_MATRIX)
def gradient_by_a_matrix() -> None:
    sw.grad(on_mesh(lambda x: x.sum()))(MATRIX)
