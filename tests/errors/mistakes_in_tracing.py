# SPDX-License-Identifier: Apache-2.0
"""Mistakes with values that are unknown during tracing: sizes, conversions, lists of traced arrays, writes in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import shardwise as sw
from tests.errors.mistakes import MESH, UNKNOWN, N, V, X, on_mesh, row, says


def must_be_static(subject: str, name: str = "n") -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """A row for an argument that must be static."""
    text = f"{subject}: argument {name} must be static: sw.jit(f, static_argnames='{name}')"
    return says(sw.TracerConversionError, text)


CONDITION = "a condition of Python's if, while, and, or must be known during tracing"
CHOICE = "use np.where(condition, a, b), or sw.cond(condition, f, g)"

SCALES = {1: 2.0}

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


@says(sw.TracerConversionError, f"float: {UNKNOWN}; use lr itself, or lr.astype(float)")
def float_of_an_argument() -> None:
    on_mesh(lambda x, lr: x * float(lr))(X, 0.1)


@says(
    sw.TracerConversionError,
    f"int: {UNKNOWN}; use n itself, or n.astype(int); "
    "where it is a size, argument n must be static: sw.jit(f, static_argnames='n')",
)
def int_of_an_argument() -> None:
    on_mesh(lambda x, n: x * int(n))(X, 2)


@says(sw.TracerConversionError, f"float: {UNKNOWN}; use n + 1 itself, or (n + 1).astype(float)")
def float_of_an_expression() -> None:
    on_mesh(lambda x, n: np.full(3, float(n + 1)) * x[0, 0])(X, 2)


@must_be_static("np.zeros")
def size_of_int_of_an_argument() -> None:
    on_mesh(lambda x, n: x + np.zeros(int(n)))(X, 6)


@must_be_static("x.reshape")
def size_of_item_of_an_argument() -> None:
    on_mesh(lambda x, n: x.reshape(n.item(), -1))(X, 6)


@must_be_static("x.reshape", "shape")
def shape_that_is_an_argument() -> None:
    on_mesh(lambda x, shape: x.reshape(shape))(X, (2, 24))


@must_be_static("np.transpose", "perm")
def permutation_that_is_an_argument() -> None:
    on_mesh(lambda x, perm: np.transpose(x, perm))(X, (1, 0))


@says(
    sw.TracerConversionError,
    "x.reshape: argument shape must be static: sw.jit(f, static_argnames='shape'), "
    "and pass a tuple, since a list is not hashable",
)
def shape_that_is_a_list() -> None:
    on_mesh(lambda x, shape: x.reshape(shape))(X, [2, 24])


@must_be_static("indexing")
def key_that_is_an_argument() -> None:
    on_mesh(lambda x, n: x * {1: 2.0}[n])(X, 1)


@must_be_static("SCALES.get")
def key_with_a_default() -> None:
    on_mesh(lambda x, n: x * SCALES.get(n, 1.0))(X, 1)


@must_be_static("indexing")
def list_of_functions() -> None:
    on_mesh(lambda x, n: [np.sin, np.cos][n](x))(X, 1)


@must_be_static("indexing")
def slice_of_a_table_to_an_argument() -> None:
    on_mesh(lambda x, n: x + np.eye(6)[:n])(X, 1)


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
    f"bool: argument training must be static: sw.jit(f, static_argnames='training'), or {CHOICE}",
)
def condition_that_is_an_argument() -> None:
    on_mesh(lambda x, training: x * 2 if training else x)(X, True)


@says(
    sw.TracerBoolConversionError,
    f"bool: argument n must be static: sw.jit(f, static_argnames='n'), or {CHOICE}",
)
def condition_on_an_argument() -> None:
    on_mesh(lambda x, n: x * 2 if n > 3 else x)(X, 4)


@says(
    sw.TracerBoolConversionError,
    f"bool: {CONDITION}, got Tracer<bool[]>; {CHOICE}, or make argument s static: sw.jit(f, static_argnames='s')",
)
def condition_on_a_float() -> None:
    on_mesh(lambda x, s: x * 2 if s > 0 else x)(X, 4.0)


@says(sw.TracerBoolConversionError, f"bool: {CONDITION}, got Tracer<bool[]>; {CHOICE}")
def condition_on_data() -> None:
    on_mesh(lambda x: x * 2 if x.sum() > 0 else x)(X)


@says(sw.TracerBoolConversionError, "x == None: compares each element with None; use x is None")
def array_equal_to_none() -> None:
    on_mesh(lambda x: 0 if x == None else x)(X)  # noqa: E711


@says(sw.TracerBoolConversionError, "x[0] != None: compares each element with None; use x[0] is not None")
def array_not_equal_to_none() -> None:
    on_mesh(lambda x: x if not x[0] != None else 0)(X)  # noqa: E711, SIM202


@says(sw.TracerConversionError, "np.zeros: argument 1 must be static: sw.jit(f, static_argnums=1)")
def size_without_a_name() -> None:
    on_mesh(lambda *args: args[0] + np.zeros(args[1]))(X, 6)


@row(
    sw.TracerConversionError,
    r"np.zeros: config.* must be static, and not part of an argument of arrays: pass it as a separate argument, "
    r"such as width, and sw.jit\(f, static_argnames='width'\) \(at",
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
    "use a static upper bound, and mask with np.where",
)
def size_computed_from_an_array() -> None:
    def f(x: Any) -> Any:
        size = x.sum()
        return np.zeros(size)

    on_mesh(f)(N)


@says(
    sw.TracerConversionError,
    "np.zeros: a shape must be known during tracing, and must not depend on data, got Tracer<int64[]>; "
    "use a static upper bound, and mask with np.where",
)
def size_of_int_of_an_array() -> None:
    on_mesh(lambda x: np.zeros(int(x.sum()))).trace(N)


@says(
    sw.TracerConversionError,
    "indexing: a shape must be known during tracing, and must not depend on data, got Tracer<int32[]>; "
    "use a static upper bound, and mask with np.where",
)
def slice_to_int_of_an_array() -> None:
    on_mesh(lambda x: x[: int(x[0, 0])]).trace(N)


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


@says(
    sw.TracerConversionError,
    "np.dot: a list of traced arrays must be stacked; use np.dot([1.0, 2.0], np.stack([x[0, 0], x[0, 1]]))",
)
def product_with_a_list() -> None:
    on_mesh(lambda x: np.dot([1.0, 2.0], [x[0, 0], x[0, 1]])).trace(X)


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
    f"min: {CONDITION}, got Tracer<bool[]>; use np.minimum",
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


@says(
    sw.TracerConversionError,
    "y[i] += 1: a NumPy array cannot hold traced values; "
    "start from y = np.zeros_like(i, shape=(4,), dtype=np.float64), and write y = y.at[i].add(1)",
)
def count_at_a_traced_index() -> None:
    def f(i: Any) -> Any:
        y = np.zeros(4)
        y[i] += 1
        return y

    on_mesh(f).trace(N[0, 0])


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


# ---- functions and options ------------------------------------------------------------------------------------------
