# SPDX-License-Identifier: Apache-2.0
"""Mistakes with array indices, np.take, x.at[...], and the texts of gather and scatter."""

from __future__ import annotations

import numpy as np

import shardwise as sw
from tests.errors.mistakes import MESH, N, X, on_mesh, row, says

IDS = np.array([1, 2])
HELD = sw.device_put(X, sw.NamedSharding(MESH, sw.P("data")))

TRACED_MASK = (
    r"indexing: a boolean index must be known during tracing, because it decides the result's shape, "
    r"got the traced \[bool\[8, 6\]\]; use np.where\(mask, x, 0\), or where=mask in np.sum, np.mean and np.max \(at"
)

# ---- indices --------------------------------------------------------------------------------------------------------


@row(IndexError, r"indexing: an index on dim 0 of size 8 must be in \[-8, 8\), got 8")
def known_array_outside() -> None:
    on_mesh(lambda x: x[[1, 8]]).trace(X)


@row(IndexError, r"indexing: an index on dim 1 of size 6 must be in \[-6, 6\), got -7")
def known_array_outside_in_eager_code() -> None:
    HELD[:, np.array([-7, 0])]


@row(IndexError, r"indexing: an index on dim 0 of size 8 must be in \[-8, 8\), got 9")
def update_outside() -> None:
    HELD.at[[0, 9]].add(1)


@row(IndexError, r"np.take: an index on dim 1 of size 6 must be in \[-6, 6\), got 6")
def take_outside() -> None:
    np.take(HELD, [6], axis=1)


@row(IndexError, r"np.take_along_axis: an index on dim 1 of size 6 must be in \[-6, 6\), got 7")
def take_along_an_axis_outside() -> None:
    np.take_along_axis(HELD, np.full((8, 1), 7), axis=1)


@row(IndexError, r"indexing: an array index must hold integers, got \[float64\[2\]\]")
def array_index_of_floats() -> None:
    on_mesh(lambda x: x[np.array([0.5, 1.0])]).trace(X)


@row(sw.UnsupportedError, TRACED_MASK)
def boolean_index() -> None:
    on_mesh(lambda x: x[x > 0]).trace(X)


@row(sw.UnsupportedError, TRACED_MASK)
def read_of_an_update_by_a_mask() -> None:
    on_mesh(lambda x: x.at[x > 0].get()).trace(X)


@row(
    sw.ShapeError,
    r"x.at: values at a mask that is unknown during tracing must be one number, got \(8, 6\); "
    r"use np.where\(mask, values, x\) for values of x's shape \(at",
)
def update_by_a_mask_with_several_values() -> None:
    on_mesh(lambda x: x.at[x > 0].set(x)).trace(X)


@row(
    sw.UnsupportedError,
    r"x.at: a mask that is unknown during tracing must be the only index, got 2 indices; "
    r"use np.where\(mask, values, x\), with a mask that broadcasts to x \(at",
)
def update_by_a_mask_beside_a_slice() -> None:
    on_mesh(lambda x: x.at[:, x[0] > 0].set(1)).trace(X)


@row(IndexError, r"indexing: a mask of dim 0 must have shape \(8,\), got \(6,\) \(at")
def update_by_a_mask_of_another_size() -> None:
    on_mesh(lambda x: x.at[x[0] > 0].set(1)).trace(X)


@row(IndexError, r"indexing: a mask of dim 1 must have shape \(6,\), got \(8,\) \(at")
def mask_of_another_size() -> None:
    on_mesh(lambda x: x[:, np.ones(8, bool)]).trace(X)


@row(IndexError, r"indexing: a mask of dims 0 to 1 must have shape \(8, 6\), got \(6, 8\) \(at")
def mask_of_other_dims() -> None:
    HELD[np.ones((6, 8), bool)]


@row(sw.UnsupportedError, r"indexing: a boolean index must have dims, got \[True\]; use np.where, or an integer \(at")
def single_boolean_as_an_index() -> None:
    on_mesh(lambda x: x[True]).trace(X)


@row(sw.ShapeError, r"indexing: shapes must broadcast to one, got \(2,\) and \(3,\); reshape an operand")
def index_arrays_that_do_not_broadcast() -> None:
    on_mesh(lambda x, i: x[i, [0, 1, 2]]).trace(X, IDS)


@row(IndexError, r"indexing: dim 0 must have elements to pick from, got shape \(0, 6\)")
def pick_from_nothing() -> None:
    on_mesh(lambda x, i: x[i]).trace(X[:0], IDS)


@row(
    sw.UnsupportedError,
    r"np.add.at is not supported in traced functions; sw.at\(x, index\).add\(values\) returns a new array",
)
def added_in_place() -> None:
    on_mesh(lambda x: np.add.at(x, 0, 1)).trace(X)


@row(
    sw.UnsupportedError,
    r"np.maximum.at is not supported in traced functions; sw.at\(x, index\).max\(values\) returns a new array",
)
def largest_in_place() -> None:
    on_mesh(lambda x, i: np.maximum.at(np.zeros(8), i, 1)).trace(X, N)


@row(
    sw.UnsupportedError,
    r"np.fmod.at is not supported in traced functions; sw.at\(x, index\) returns new arrays, by add, subtract, "
    r"multiply, divide, power, min, max and set \(at",
)
def remainder_in_place() -> None:
    on_mesh(lambda x: np.fmod.at(x, 0, 1)).trace(X)


@row(
    sw.UnsupportedError,
    r"np.putmask is not supported in traced functions; np.where\(mask, values, x\) returns a new array \(at",
)
def put_by_a_mask() -> None:
    on_mesh(lambda x: np.putmask(x, x > 0, 1)).trace(X)


@row(IndexError, r"indexing: an array has no names, got \['age'\]; pass a dict of arrays to index by names: \{name: ")
def column_by_its_name() -> None:
    on_mesh(lambda x: x["age"]).trace(X)


# ---- functions ------------------------------------------------------------------------------------------------------


@row(TypeError, r"np.take: indices must be integers, got Tracer<float32\[8,6\]>; convert them first")
def take_by_floats() -> None:
    on_mesh(lambda x: np.take(x, x)).trace(X)


@row(ValueError, r"np.take: mode must be one of 'raise', 'wrap', 'clip', got 'fill'")
def take_with_an_unknown_mode() -> None:
    on_mesh(lambda x: np.take(x, [0], mode="fill")).trace(X)


@row(
    sw.UnsupportedError,
    r"np.take: out= is not supported in traced functions, got out=.*; use what the function returns",
)
def take_into_an_array() -> None:
    on_mesh(lambda x: np.take(x, [0], axis=0, out=X[:1])).trace(X)


@row(sw.ShapeError, r"np.take_along_axis: indices and array must have the same number of dims, got 1 and 2 dims")
def take_along_with_other_dims() -> None:
    on_mesh(lambda x, i: np.take_along_axis(x, i, axis=0)).trace(X, IDS)


@row(sw.ShapeError, r"np.take_along_axis: without an axis, indices must have one dim, got 2 dims")
def take_along_no_axis() -> None:
    on_mesh(lambda x, i: np.take_along_axis(x, i, axis=None)).trace(X, N)


@row(IndexError, r"np.take_along_axis: indices must be integers, got Tracer<float32\[8,6\]>")
def take_along_floats() -> None:
    on_mesh(lambda x: np.take_along_axis(x, x, axis=0)).trace(X)


@row(IndexError, r"np.take_along_axis: dim 0 must have elements, got shape \(0, 6\)")
def take_along_nothing() -> None:
    on_mesh(lambda x, i: np.take_along_axis(x, i, axis=0)).trace(X[:0], N)


@row(sw.UnsupportedError, r"x.at: mode must be one of 'drop', 'fill', 'promise_in_bounds', 'clip', or None, got 'wrap'")
def update_with_an_unknown_mode() -> None:
    on_mesh(lambda x, i: x.at[i].set(0, mode="wrap")).trace(X, IDS)


@row(sw.UnsupportedError, r"x.at: mode must be one of 'drop', .*, or None, got 'wrap'")
def read_with_an_unknown_mode() -> None:
    on_mesh(lambda x, i: x.at[i].get(mode="wrap")).trace(X, IDS)


@row(sw.ShapeError, r"x.at: values must broadcast to the shape that the index names, \(2, 6\), got \(5,\) \(at")
def update_by_values_that_do_not_fit() -> None:
    on_mesh(lambda x, i: x.at[i].set(np.ones(5, np.float32))).trace(X, IDS)


# ---- texts ----------------------------------------------------------------------------------------------------------


def gather(numbers: str, sizes: str, operand: str = "7x3xf32", ids: str = "4x1xi32", result: str = "4x3xf32") -> str:
    return (
        f"module {{\n  func.func @main(%0: tensor<{operand}>, %1: tensor<{ids}>) -> tensor<{result}> {{\n"
        f'    %2 = "stablehlo.gather"(%0, %1) <{{dimension_numbers = #stablehlo.gather<{numbers}>, '
        f"slice_sizes = array<i64: {sizes}>}}> : (tensor<{operand}>, tensor<{ids}>) -> tensor<{result}>\n"
        f"    return %2 : tensor<{result}>\n  }}\n}}\n"
    )


ROWS_OF_X = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"


@row(sw.ParseError, r"stablehlo.gather: indices must be integers, got tensor<7x3xf32>, tensor<4x1xf32>; convert them")
def gather_by_floats() -> None:
    sw.parse(gather(ROWS_OF_X, "1, 3", ids="4x1xf32"))


@row(sw.ParseError, r"index_vector_dim must be in \[0, 2\], got 3 for tensor<7x3xf32>, tensor<4x1xi32>; use the dim")
def gather_without_index_vectors() -> None:
    sw.parse(gather(ROWS_OF_X.replace("index_vector_dim = 1", "index_vector_dim = 3"), "1, 3"))


@row(sw.ParseError, r"offset_dims must be in ascending order, got offset_dims = \[2, 1\]; sort it")
def gather_with_dims_out_of_order() -> None:
    sw.parse(gather("offset_dims = [2, 1], start_index_map = [0], index_vector_dim = 1", "1, 3", result="4x3x1xf32"))


@row(sw.ParseError, r"each dim of the operand must be in offset_dims, collapsed_slice_dims or .*; name every dim once")
def gather_that_forgets_a_dim() -> None:
    sw.parse(gather(ROWS_OF_X.replace("collapsed_slice_dims = [0], ", ""), "1, 3"))


@row(sw.ParseError, r"batching dims must come in pairs of equal size, none of them the index vector's, got operand")
def gather_with_batches_that_differ() -> None:
    numbers = "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], "
    sw.parse(gather(numbers + "start_index_map = [1], index_vector_dim = 1", "1, 1", result="4xf32"))


@row(sw.ParseError, r"a slice must not be larger than the operand, .* got slice_sizes = \[1, 4\] for tensor<7x3xf32>")
def gather_of_a_slice_that_is_too_large() -> None:
    sw.parse(gather(ROWS_OF_X, "1, 4", result="4x4xf32"))


@row(sw.ParseError, r"a dim that is indexed must have elements, got tensor<0x3xf32>, tensor<4x1xi32>; gather nothing")
def gather_from_nothing() -> None:
    sw.parse(gather(ROWS_OF_X, "0, 3", operand="0x3xf32"))


def scatter(updates: str = "4x3xf32", region: str = "return %4", count: int = 1, ids: str = "4x1xi32") -> str:
    names = ", ".join([f"%{i}: tensor<f32>" for i in range(3, 3 + 2 * count)])
    types = f"tensor<7x3xf32>, tensor<{ids}>, tensor<{updates}>"
    region = region.replace("return", "stablehlo.return")
    return (
        f"module {{\n  func.func @main(%0: tensor<7x3xf32>, %1: tensor<{ids}>, %2: tensor<{updates}>) "
        "-> tensor<7x3xf32> {\n"
        '    %9 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
        "index_vector_dim = 1>}> ({\n"
        f"    ^bb0({names}):\n      {region} : tensor<f32>\n    }}) : ({types}) -> tensor<7x3xf32>\n"
        "    return %9 : tensor<7x3xf32>\n  }\n}\n"
    )


@row(sw.ParseError, r"stablehlo.scatter: indices must be integers, got tensor<7x3xf32>, tensor<4x1xf32>, ")
def scatter_by_floats() -> None:
    sw.parse(scatter(ids="4x1xf32"))


@row(sw.ParseError, r"an input and its updates must have the same dtype, got tensor<7x3xf32>, .*; convert the updates")
def scatter_of_another_dtype() -> None:
    sw.parse(scatter("4x3xf64"))


@row(sw.ParseError, r"updates must have the indices' batch dims and windows that are not larger than the input, got up")
def scatter_of_windows_that_are_too_large() -> None:
    sw.parse(scatter("4x4xf32"))


@row(sw.ParseError, r"the region must take 2 arguments and return 1, got 4 arguments and 1 results; give it one scalar")
def scatter_with_too_many_arguments() -> None:
    sw.parse(scatter(count=2))


@row(sw.ParseError, r"the region must be elementwise ops and constants, got stablehlo.optimization_barrier; comp")
def scatter_with_an_op_that_is_not_elementwise() -> None:
    sw.parse(scatter(region="%8 = stablehlo.optimization_barrier %4 : tensor<f32>\n      return %8"))


@row(sw.ParseError, r"the region must use its own arguments and constants alone, got a value from around it; pass the")
def scatter_whose_region_uses_another_value() -> None:
    sw.parse(
        scatter(region="%8 = stablehlo.add %4, %10 : tensor<f32>\n      return %8").replace(
            '    %9 = "',
            "    %11 = stablehlo.constant dense<1.0> : tensor<f32>\n"
            '    %10 = stablehlo.sine %11 : tensor<f32>\n    %9 = "',
        )
    )


def two(inputs: str, types: str, region: str = "%3: tensor<f32>, %4: tensor<f32>") -> str:
    return (
        "module {\n  func.func @main(%0: tensor<7xf32>, %1: tensor<4x1xi32>, %2: tensor<4xf32>, %5: tensor<8xf32>) "
        "-> tensor<7xf32> {\n"
        f'    %9:2 = "stablehlo.scatter"({inputs}) <{{scatter_dimension_numbers = #stablehlo.scatter<'
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
        f"    ^bb0({region}):\n      stablehlo.return %4, %4 : tensor<f32>, tensor<f32>\n    }}) : ({types})\n"
        "        -> (tensor<7xf32>, tensor<7xf32>)\n    return %9#0 : tensor<7xf32>\n  }\n}\n"
    )


@row(sw.ParseError, r"operands must be one or more inputs, the indices, and as many updates, got .*; give one")
def scatter_with_updates_missing() -> None:
    sw.parse(two("%0, %0, %1, %2", "tensor<7xf32>, tensor<7xf32>, tensor<4x1xi32>, tensor<4xf32>"))


@row(sw.ParseError, r"all inputs must have one shape, and all updates, got tensor<7xf32>, tensor<8xf32>, .*; broadcast")
def scatter_into_shapes_that_differ() -> None:
    types = "tensor<7xf32>, tensor<8xf32>, tensor<4x1xi32>, tensor<4xf32>, tensor<4xf32>"
    sw.parse(two("%0, %5, %1, %2, %2", types))


@row(sw.ParseError, r"the region's arguments and results must be scalars of the inputs' dtypes, got tensor<i32> for")
def scatter_with_arguments_of_another_dtype() -> None:
    types = "tensor<7xf32>, tensor<7xf32>, tensor<4x1xi32>, tensor<4xf32>, tensor<4xf32>"
    sw.parse(two("%0, %0, %1, %2, %2", types, "%3: tensor<f32>, %4: tensor<f32>, %6: tensor<i32>, %7: tensor<f32>"))


@says(IndexError, "indexing: an array of 0 dims has no elements to index, got [0]; use the array itself, or x[()]")
def element_of_a_number() -> None:
    on_mesh(lambda x: x.sum()[0])(X)


@says(IndexError, "indexing: an array of 2 dims takes at most as many indices, got [0, 0, 0]; remove 1 of 3")
def element_by_too_many_indices() -> None:
    on_mesh(lambda x: x[0, 0, 0])(X)
