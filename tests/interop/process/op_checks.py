# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of ops, handed over to JAX: what StableHLO and XLA do differently.

Each row in a scenario in turn, and in all of them in a whole run. `tests.conformance.jax.handover` has all rows.
"""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.jax.handover import op_failures
from tests.op.cases import CASES
from tests.support.partitioned import SCENARIOS
from tests.support.run_seed import is_whole, run_seed

ROWS = [
    ("scatter-add", "float32"),  # windows that are outside in part
    ("scatter-subtract", "float32"),
    ("scatter-replace", "int16"),
    ("gather", "int32"),  # slices at the end
    ("dynamic_slice", "int32"),  # XLA makes one slice of two
    ("reduce-ends", "float32"),  # initial values that are not neutral
    ("reduce-argmax", "int8"),
    ("scatter-and", "int32"),  # regions that no scatter of JAX has
    ("scatter-or", "uint8"),
    ("sort-magnitude", "float32"),  # a key that the comparator computes
    ("top_k", "bfloat16"),  # padding with the smallest NaN
    ("rng_bit_generator-three_fry", "float32"),  # bits that JAX does not generate
    ("rng_bit_generator-philox", "uint64"),  # a state that JAX does not have
    ("real", "float32"),
]


@pytest.mark.parametrize(("op", "dtype"), ROWS)
def test_an_op_gives_the_numbers_of_numpy(op: str, dtype: str) -> None:
    (case,) = [case for case in CASES if case.id == op]
    at = run_seed() + ROWS.index((op, dtype))
    numbers = range(len(SCENARIOS)) if is_whole() else [at % len(SCENARIOS)]
    assert op_failures(case, dtype, numbers, at // len(SCENARIOS)) == []


def scattered(region: str, arguments: list[np.ndarray]) -> np.ndarray:
    """The result of a scatter into four elements in JAX."""
    function = (
        sw.parse(f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> tensor<4xf32> {{
  %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    {region}
    stablehlo.return %n : tensor<f32>
  }}) : (tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}}""")
        .compile()
        .to_jax()
    )
    return np.asarray(function.get(function(*arguments)))


def test_the_order_of_arguments_in_a_region_matters() -> None:
    """A scatter that subtracts what is there from the update is no scatter of JAX; a sum may add them in any order."""
    arguments = [np.float32([1, 2, 3, 4]), np.int32([[2], [7], [2]]), np.float32([10, 20, 30])]
    reversed_op = "%n = stablehlo.{} %new, %old : tensor<f32>"
    np.testing.assert_array_equal(scattered(reversed_op.format("add"), arguments), [1, 2, 43, 4])
    np.testing.assert_array_equal(scattered(reversed_op.format("subtract"), arguments), [1, 2, 23, 4])


def test_a_scatter_of_any_region() -> None:
    region = """%p = stablehlo.multiply %old, %new : tensor<f32>
    %n = stablehlo.add %p, %new : tensor<f32>"""
    arguments = [np.float32([1, 2, 3, 4]), np.int32([[2], [-1], [2]]), np.float32([10, 20, 30])]
    np.testing.assert_array_equal(scattered(region, arguments), [1, 2, (3 * 10 + 10) * 30 + 30, 4])


def test_a_scatter_of_several_operands() -> None:
    function = (
        sw.parse("""
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xi32>, %i: tensor<2x1xi64>, %u: tensor<2x2xf32>,
                %v: tensor<2x2xi32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %r:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0],
    scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %s = stablehlo.add %a, %c : tensor<f32>
    %t = stablehlo.subtract %d, %b : tensor<i32>
    stablehlo.return %s, %t : tensor<f32>, tensor<i32>
  }) : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x1xi64>, tensor<2x2xf32>, tensor<2x2xi32>)
    -> (tensor<2x3xf32>, tensor<2x3xi32>)
  return %r#0, %r#1 : tensor<2x3xf32>, tensor<2x3xi32>
}""")
        .compile(sw.Mesh({"x": 2}))
        .to_jax()
    )
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6, dtype=np.int32).reshape(2, 3)
    u, v = np.float32([[10, 20], [30, 40]]), np.int32([[100, 200], [300, 400]])
    sums, differences = function.get(function(x, y, np.int64([[1], [2]]), u, v))
    np.testing.assert_array_equal(sums, [[0, 11, 22], [3, 4, 35]])  # the last element is outside
    np.testing.assert_array_equal(differences, [[0, 99, 198], [3, 4, 295]])


def sorted_by(comparator: str, dtype: str, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """Two arrays of four elements, sorted in JAX by a comparator of (a, b) and (c, d)."""
    function = (
        sw.parse(f"""
func.func @main(%x: tensor<4x{dtype}>, %y: tensor<4xi32>) -> (tensor<4x{dtype}>, tensor<4xi32>) {{
  %r:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>, %c: tensor<i32>, %d: tensor<i32>):
    {comparator}
    stablehlo.return %less : tensor<i1>
  }}) : (tensor<4x{dtype}>, tensor<4xi32>) -> (tensor<4x{dtype}>, tensor<4xi32>)
  return %r#0, %r#1 : tensor<4x{dtype}>, tensor<4xi32>
}}""")
        .compile(sw.Mesh({"x": 2}))
        .to_jax()
    )
    return list(map(np.asarray, function.get(function(*arguments))))


def test_sorts_by_computed_keys() -> None:
    """Of one operand by selects, and of two by a product; the second is descending."""
    selects = """%z = stablehlo.constant dense<0.0> : tensor<f32>
    %na = stablehlo.negate %a : tensor<f32>
    %nb = stablehlo.negate %b : tensor<f32>
    %pa = stablehlo.compare GE, %a, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %pb = stablehlo.compare GE, %b, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %ka = stablehlo.select %pa, %a, %na : tensor<i1>, tensor<f32>
    %kb = stablehlo.select %pb, %b, %nb : tensor<i1>, tensor<f32>
    %less = stablehlo.compare LT, %ka, %kb, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>"""
    products = """%ka = stablehlo.multiply %a, %c : tensor<i32>
    %kb = stablehlo.multiply %b, %d : tensor<i32>
    %less = stablehlo.compare GT, %ka, %kb, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>"""
    places = np.int32([1, 2, 3, 4])
    x, y = sorted_by(selects, "f32", [np.float32([3, -1, 2, -4]), places])
    np.testing.assert_array_equal(x, [-1, 2, 3, -4])
    np.testing.assert_array_equal(y, [2, 3, 1, 4])
    x, y = sorted_by(products, "i32", [np.int32([3, -1, 2, -4]), places])
    np.testing.assert_array_equal(x, [2, 3, -1, -4])
    np.testing.assert_array_equal(y, [3, 1, 2, 4])


def test_a_float_comparison_takes_zeros_as_equal() -> None:
    """A stable sort by it keeps -0 and 0 in their order; the total order has -0 first."""
    comparator = "%less = stablehlo.compare LT, %a, %b, {} : (tensor<f32>, tensor<f32>) -> tensor<i1>"
    x = np.float32([1, 0, -0.0, -3])
    for kind, places in (("FLOAT", [4, 2, 3, 1]), ("TOTALORDER", [4, 3, 2, 1])):
        found = sorted_by(comparator.format(kind), "f32", [x, np.int32([1, 2, 3, 4])])
        np.testing.assert_array_equal(found[1], places)


def test_the_second_key_decides_ties_in_any_order_of_conditions() -> None:
    comparator = """%first = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %tie = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %second = stablehlo.compare GT, %c, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %both = stablehlo.and %second, %tie : tensor<i1>
    %less = stablehlo.or %both, %first : tensor<i1>"""
    found = sorted_by(comparator, "f32", [np.float32([0, -0.0, -1, 0]), np.int32([1, 2, 3, 4])])
    np.testing.assert_array_equal(found[1], [3, 4, 2, 1])


def test_a_tie_of_another_order_is_refused() -> None:
    """The total order tells zeros apart that the first key takes as equal."""
    comparator = """%first = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %tie = stablehlo.compare EQ, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %second = stablehlo.compare GT, %c, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %both = stablehlo.and %second, %tie : tensor<i1>
    %less = stablehlo.or %both, %first : tensor<i1>"""
    with pytest.raises(sw.UnsupportedError, match=r"^to_jax: a sort must compare one key after another"):
        sorted_by(comparator, "f32", [np.float32([0, -0.0, -1, 0]), np.int32([1, 2, 3, 4])])


def test_a_key_of_many_shared_values_is_recognised_at_once() -> None:
    """Each squaring reads the one before twice: a walk over paths would take 2**40 steps."""
    lines = [
        f"%{side}{i + 1} = stablehlo.multiply %{side}{i}, %{side}{i} : tensor<i32>" for i in range(40) for side in "xy"
    ]
    lines = [line.replace("%x0", "%a").replace("%y0", "%b") for line in lines]
    lines.append("%less = stablehlo.compare LT, %x40, %y40, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>")
    found = sorted_by("\n    ".join(lines), "i32", [np.int32([1, 0, -1, 0]), np.int32([1, 2, 3, 4])])
    np.testing.assert_array_equal(found[1], [2, 4, 1, 3])


def test_an_extreme_number_is_not_neutral_for_every_region() -> None:
    """The least unsigned number beside a sum: the other initial value counts, once."""
    function = (
        sw.parse("""
func.func @main(%x: tensor<1x3xui32>, %y: tensor<1x3xi32>) -> (tensor<3xui32>, tensor<3xi32>) {
  %a = stablehlo.constant dense<0> : tensor<ui32>
  %b = stablehlo.constant dense<1000> : tensor<i32>
  %r:2 = "stablehlo.reduce"(%x, %y, %a, %b) <{dimensions = array<i64: 0>}> ({
  ^bb0(%p: tensor<ui32>, %q: tensor<i32>, %u: tensor<ui32>, %v: tensor<i32>):
    %s = stablehlo.or %p, %u : tensor<ui32>
    %t = stablehlo.add %q, %v : tensor<i32>
    stablehlo.return %s, %t : tensor<ui32>, tensor<i32>
  }) : (tensor<1x3xui32>, tensor<1x3xi32>, tensor<ui32>, tensor<i32>) -> (tensor<3xui32>, tensor<3xi32>)
  return %r#0, %r#1 : tensor<3xui32>, tensor<3xi32>
}""")
        .compile(sw.Mesh({"x": 2}))
        .to_jax()
    )
    found = function.get(function(np.uint32([[1, 2, 3]]), np.int32([[1, 2, 3]])))
    np.testing.assert_array_equal(found[1], [1001, 1002, 1003])


def test_a_comparator_of_different_sides_is_refused() -> None:
    """`a < b + 1` compares no keys."""
    comparator = """%one = stablehlo.constant dense<1> : tensor<i32>
    %kb = stablehlo.add %b, %one : tensor<i32>
    %less = stablehlo.compare LT, %a, %kb, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>"""
    with pytest.raises(sw.UnsupportedError, match=r"^to_jax: a sort must compare one key after another"):
        sorted_by(comparator, "i32", [np.int32([3, -1, 2, -4]), np.int32([1, 2, 3, 4])])


def sliced(second: str, places: tuple[int, int]) -> np.ndarray:
    """The result of a slice of two columns in JAX, of which `second` takes one."""
    function = (
        sw.parse(f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<2x5xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<2xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %s = stablehlo.dynamic_slice %x, %zero, %i, sizes = [2, 2] : (tensor<2x5xf32>, tensor<i32>, tensor<i32>)
    -> tensor<2x2xf32>
  {second}
  %r = stablehlo.reshape %c : (tensor<2x1xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}}""")
        .compile()
        .to_jax()
    )
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    return np.asarray(function.get(function(x, *map(np.int32, places))))


@pytest.mark.parametrize("places", [(1, 1), (9, 0), (9, 1), (0, 9), (9, 9), (-3, 0), (2, -3)])
def test_each_of_two_slices_is_clamped(places: tuple[int, int]) -> None:
    """XLA makes one of them, whose start it clamps once."""
    slice_ = """%c = stablehlo.dynamic_slice %s, %zero, %j, sizes = [2, 1] :
    (tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>"""
    gather = """%k = stablehlo.reshape %j : (tensor<i32>) -> tensor<1xi32>
  %c = "stablehlo.gather"(%s, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>,
    slice_sizes = array<i64: 2, 1>}> : (tensor<2x2xf32>, tensor<1xi32>) -> tensor<2x1xf32>"""
    column = np.clip(places[0], 0, 3) + np.clip(places[1], 0, 1)
    for second in (slice_, gather):
        np.testing.assert_array_equal(sliced(second, places), [column, 5 + column])
