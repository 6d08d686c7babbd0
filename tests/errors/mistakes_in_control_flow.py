# SPDX-License-Identifier: Apache-2.0
"""Loops and branches: carries that change, branches that disagree, conditions that are no scalars, bodies that leak."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardwise as sw
from tests.errors.mistakes import N, X, on_mesh, says

W = {"w": np.zeros(4, np.float32), "b": np.float32(0)}

# ---- carries --------------------------------------------------------------------------------------------------------

CHANGED = "scan: the carry must have the same type after the body, got float32[4] -> float64[4] at carry['w']"


def to_float64(carry: Any, _: Any) -> Any:
    return {**carry, "w": carry["w"] * np.arange(4.0)}, None


def changed_in(function: Any, line: int = 1) -> str:
    """What an error says of a line of a body."""
    return f"changed at {__file__}:{function.__code__.co_firstlineno + line}"


@says(sw.DTypeError, f"{CHANGED}, {changed_in(to_float64)}; convert it with astype")
def carry_of_another_dtype() -> None:
    on_mesh(lambda x: sw.scan(to_float64, W, x)).trace(X)


@says(sw.DTypeError, f"{CHANGED}; convert it with astype")
def carry_of_another_dtype_on_numpy_arrays() -> None:
    sw.scan(to_float64, W, X)


def summed(carry: Any) -> Any:
    doubled = carry[0] * 2
    total = doubled.sum(0)
    return total + 1, carry[1] + 1


@says(
    sw.ShapeError,
    "while_loop: the carry must have the same type after the body, got float32[8, 6] -> float32[6] at carry[0], "
    f"{changed_in(summed, 2)}; reshape or broadcast it",
)
def carry_of_another_shape() -> None:
    on_mesh(lambda x: sw.while_loop(lambda v: v[1] < 3, summed, (x, 0))).trace(X)


def widened_twice(i: Any, carry: Any) -> Any:
    """What is narrow again is no cause."""
    wide = (carry * np.float64(2)).astype(np.float32)
    half = np.sin(wide) * carry
    return np.cos(half * np.arange(6.0)) - 1


@says(
    sw.DTypeError,
    "fori_loop: the carry must have the same type after the body, got float32[8, 6] -> float64[8, 6] at carry, "
    f"{changed_in(widened_twice, 4)}; convert it with astype",
)
def carry_that_is_widened_on_the_way() -> None:
    on_mesh(lambda x: sw.fori_loop(0, 3, widened_twice, x)).trace(X)


def replaced(carry: Any, row: Any) -> Any:
    return np.zeros(3, np.float32), row


@says(
    sw.ShapeError,
    "scan: the carry must have the same type after the body, got float32[6] -> float32[3] at carry; "
    "reshape or broadcast it",
)
def carry_that_is_replaced() -> None:
    on_mesh(lambda x: sw.scan(replaced, x[0], x)).trace(X)


def halved(i: Any, carry: Any) -> Any:
    return carry / 2


@says(
    sw.DTypeError,
    "fori_loop: the carry must have the same type after the body, got int32[8, 6] -> float64[8, 6] at carry, "
    f"{changed_in(halved)}; convert it with astype",
)
def lone_carry_of_another_dtype() -> None:
    on_mesh(lambda n: sw.fori_loop(0, 3, halved, n)).trace(N)


def doubles(carry: Any, _: Any) -> Any:
    return [x.astype(float) for x in carry], None


@says(
    sw.DTypeError,
    "scan: the carry must have the same type after the body, got "
    + ", ".join(f"float32[] -> float64[] at carry[{i}], {changed_in(doubles)}" for i in range(3))
    + ", 1 more; convert it with astype",
)
def many_carries_of_another_dtype() -> None:
    init = [np.float32(0)] * 4
    on_mesh(lambda x: sw.scan(doubles, init, x)).trace(X)


@says(
    TypeError,
    "scan: the carry must be the same tree after the body, got a tuple of 2 where the initial carry has a tuple of 3",
)
def carry_of_another_tree() -> None:
    on_mesh(lambda x: sw.scan(lambda c, row: ((c[0], row), None), (x[0], x[0], x[0]), x)).trace(X)


@says(
    TypeError,
    "scan: the carry must be the same tree after the body, got a tuple of 2 where the result of the body has "
    "float32[6], at ['a']",
)
def carry_that_loses_a_node() -> None:
    on_mesh(lambda x: sw.scan(lambda c, row: ({"a": row}, None), {"a": (row0(x), row0(x))}, x)).trace(X)


def row0(x: Any) -> Any:
    return x[0]


@says(sw.DTypeError, "scan: takes and returns arrays of numbers, got str 'mean' at carry['how']")
def text_in_a_carry() -> None:
    on_mesh(lambda x: sw.scan(lambda c, row: (c, row), {"how": "mean"}, x)).trace(X)


# ---- the arguments of scan and map ----------------------------------------------------------------------------------


@says(TypeError, "scan: f must return a pair (carry, y), got float32[6]")
def body_without_a_row() -> None:
    on_mesh(lambda x: sw.scan(lambda c, row: c + row, x[0], x)).trace(X)


@says(TypeError, "scan: f must be a function, got NoneType None")
def scan_of_no_function() -> None:
    sw.scan(None, 0, X)  # type: ignore[arg-type]


@says(sw.ShapeError, "scan: the first dims of xs must have one size, got 8 for xs[0], 4 for xs[1]")
def rows_of_two_lengths() -> None:
    on_mesh(lambda x: sw.scan(lambda c, row: (c, None), 0, (x, x[:4]))).trace(X)


@says(sw.ShapeError, "scan: the first dims of xs must be length=5, got 8 for xs")
def rows_of_another_length() -> None:
    on_mesh(lambda x: sw.scan(lambda c, row: (c, None), 0, x, length=5)).trace(X)


@says(sw.ShapeError, "scan: xs must hold arrays with a first dim, got float32[] at xs['s']")
def rows_of_a_scalar() -> None:
    on_mesh(lambda x: sw.scan(lambda c, row: (c, None), 0, {"x": x, "s": x.sum()})).trace(X)


@says(sw.ShapeError, "scan: xs must hold an array, got NoneType None; pass length=")
def scan_over_nothing() -> None:
    sw.scan(lambda c, row: (c, None), 0)


@says(sw.ShapeError, "map: xs must hold an array, got tuple ()")
def map_over_nothing() -> None:
    sw.map(lambda row: row, ())


@says(sw.ShapeError, "scan: length must be in [0, 9223372036854775807], got -1")
def negative_length() -> None:
    sw.scan(lambda c, row: (c, None), 0, length=-1)


@says(sw.ShapeError, "scan: length must be in [0, 9223372036854775807], got 9223372036854775808")
def trip_count_that_overflows() -> None:
    on_mesh(lambda x: sw.scan(lambda c, row: (c, None), x, length=2**63)).trace(X)


@says(TypeError, "scan: unroll must be an integer, got 'all'")
def unroll_by_text() -> None:
    sw.scan(lambda c, row: (c, None), 0, X, unroll="all")  # type: ignore[arg-type]


@says(sw.ShapeError, "map: batch_size must be in [0, 9223372036854775807], got -2")
def negative_batch_size() -> None:
    sw.map(lambda row: row, X, batch_size=-2)


def changing_rows() -> Any:
    results = iter([np.float32(1), np.float64(2)])
    return lambda c, row: (c, next(results))


@says(
    sw.DTypeError,
    "scan: y must have the same type at every step, got float32[] -> float64[] at y; convert it with astype",
)
def rows_that_change_on_numpy_arrays() -> None:
    sw.scan(changing_rows(), 0, X)


# ---- conditions and bounds ------------------------------------------------------------------------------------------


@says(
    sw.DTypeError,
    "while_loop: cond_fun must return a bool scalar, got bool[8, 6]; reduce it with np.any or np.all",
)
def condition_of_an_array() -> None:
    on_mesh(lambda x: sw.while_loop(lambda v: v > 0, lambda v: v - 1, x)).trace(X)


@says(sw.DTypeError, "while_loop: cond_fun must return a bool scalar, got float32[]; compare it with a number")
def condition_of_a_number() -> None:
    sw.while_loop(lambda v: v.sum(), lambda v: v - 1, X)


@says(sw.DTypeError, "while_loop: cond_fun must return a bool scalar, got tuple (True, False)")
def condition_of_a_tuple() -> None:
    sw.while_loop(lambda v: (True, False), lambda v: v - 1, X)  # type: ignore[arg-type, return-value]


@says(sw.DTypeError, "fori_loop: bounds must be integer scalars, got float64[] for upper")
def range_to_a_float() -> None:
    sw.fori_loop(0, 3.5, lambda i, c: c, X)


@says(sw.DTypeError, "fori_loop: bounds must fit int64, got 9223372036854775808 for upper")
def range_past_int64() -> None:
    sw.fori_loop(0, 2**63, lambda i, c: c, X)


@says(
    sw.DTypeError,
    "fori_loop: bounds must have a common integer dtype, got int64[] and uint64[]; convert one with astype",
)
def range_of_two_dtypes() -> None:
    on_mesh(lambda a, b: sw.fori_loop(a, b, lambda i, c: c, X)).trace(np.int64(0), np.uint64(3))


@says(sw.ShapeError, "fori_loop: unroll needs constant bounds, got 2; leave it out")
def traced_range_that_is_unrolled() -> None:
    on_mesh(lambda n: sw.fori_loop(0, n, lambda i, c: c, X, unroll=2)).trace(np.int64(4))


# ---- branches -------------------------------------------------------------------------------------------------------


@says(
    sw.DTypeError,
    "cond: pred must be a scalar bool or number, got bool[8, 6]; reduce it with np.any or np.all, or use np.where",
)
def branch_on_an_array() -> None:
    on_mesh(lambda x: sw.cond(x > 0, lambda: x, lambda: -x)).trace(X)


@says(sw.DTypeError, "cond: pred must be a scalar, got NoneType None")
def branch_on_none() -> None:
    sw.cond(None, lambda: 1, lambda: 2)


BRANCHES = "cond: both branches must return the same"


@says(
    sw.DTypeError,
    f"{BRANCHES} types, got float32[8, 6] of false_fun and float64[8, 6] of true_fun at result['y']; "
    "convert it with astype",
)
def branches_of_two_dtypes() -> None:
    on_mesh(lambda x: sw.cond(x.sum() > 0, lambda: {"y": x.astype(float)}, lambda: {"y": x})).trace(X)


@says(
    sw.DTypeError,
    f"{BRANCHES} types, got float32[8, 6] of false_fun and float64[8, 6] of true_fun at result; convert it with astype",
)
def branches_of_two_dtypes_on_numpy_arrays() -> None:
    sw.cond(False, lambda x: x.astype(float), lambda x: x, X)


@says(
    sw.ShapeError,
    "switch: all branches must return the same types, got float32[8, 6] of branches[0] and float32[6] of "
    "branches[2] at result; reshape or broadcast it",
)
def branches_of_two_shapes() -> None:
    on_mesh(lambda x, i: sw.switch(i, [lambda: x, lambda: -x, lambda: x[0]])).trace(X, np.int32(0))


@says(TypeError, f"{BRANCHES} tree, got a list of 1 where false_fun has a tuple of 2")
def branches_of_two_trees() -> None:
    on_mesh(lambda x: sw.cond(x.sum() > 0, lambda: [x], lambda: (x, x))).trace(X)


@says(sw.DTypeError, "switch: index must be an integer scalar, got float32[]")
def switch_on_a_float() -> None:
    on_mesh(lambda x: sw.switch(x.sum(), [lambda: x, lambda: -x])).trace(X)


@says(sw.ShapeError, "switch: needs at least one branch, got none")
def switch_without_branches() -> None:
    sw.switch(0, [])


@says(TypeError, "switch: branches[1] must be a function, got float64[2]")
def branch_that_is_no_function() -> None:
    sw.switch(0, [lambda: 1, np.zeros(2)])  # type: ignore[list-item]


# ---- associative_scan -----------------------------------------------------------------------------------------------


@says(
    sw.DTypeError,
    "associative_scan: fn must return the types of its arguments, got int32[4, 6] -> float64[4, 6] at elems; "
    "convert it with astype",
)
def associative_function_of_another_dtype() -> None:
    on_mesh(lambda n: sw.associative_scan(lambda a, b: (a + b) / 2, n)).trace(N)


@says(sw.ShapeError, "associative_scan: elems must have one size along dim 0, got 8 for elems[0], 6 for elems[1]")
def elements_of_two_lengths() -> None:
    sw.associative_scan(lambda a, b: a, (X, X.T))


@says(sw.ShapeError, "associative_scan: an axis of 2 dims must be in [-2, 2), got 2")
def associative_scan_along_no_dim() -> None:
    sw.associative_scan(np.add, X, axis=2)


@says(sw.ShapeError, "associative_scan: elems must hold an array, got none")
def associative_scan_of_nothing() -> None:
    sw.associative_scan(np.add, [])


# ---- bodies ---------------------------------------------------------------------------------------------------------


LEAKED = "trace: a traced value must not leave the function that recorded it, got Tracer<float32[6]>; return it instead"


def first_row(x: Any) -> Any:
    rows: list[Any] = []
    sw.scan(lambda c, row: (c, rows.append(row)), 0, x)  # type: ignore[func-returns-value]
    return rows[0]


@says(sw.UnsupportedError, LEAKED)
def row_that_leaves_its_body() -> None:
    on_mesh(lambda x: first_row(x) + 1).trace(X)


@says(sw.UnsupportedError, LEAKED)
def row_that_is_returned_from_around_its_body() -> None:
    on_mesh(lambda x: first_row(x)).trace(X)


@says(sw.UnsupportedError, LEAKED)
def value_of_one_branch_in_the_other() -> None:
    def f(x: Any) -> Any:
        seen: list[Any] = []

        def first() -> Any:
            seen.append(x[0] + 1)
            return seen[0]

        return sw.cond(x.sum() > 0, lambda: seen[0], first)

    on_mesh(f).trace(X)


@says(
    sw.TracerBoolConversionError,
    "bool: a condition of Python's if, while, and, or must be known during tracing, got Tracer<bool[]>; "
    "use np.where(condition, a, b), or sw.cond(condition, f, g)",
)
def condition_on_a_carry() -> None:
    def body(c: Any, row: Any) -> Any:
        return (c + 1 if row.sum() > 0 else c), None

    on_mesh(lambda x: sw.scan(body, 0, x)).trace(X)


# ---- gradients ------------------------------------------------------------------------------------------------------

UNCOUNTED = (
    "grad: reverse-mode differentiation needs a loop with a constant number of trips, got a loop that runs "
    "until its condition fails; use sw.scan or sw.fori_loop with constant bounds"
)


@says(sw.UnsupportedError, UNCOUNTED)
def gradient_of_a_while_loop() -> None:
    def loss(x: Any) -> Any:
        return sw.while_loop(lambda v: v.sum() < 9, lambda v: v * 2, x).sum()

    on_mesh(sw.grad(loss)).trace(X)


@says(sw.UnsupportedError, UNCOUNTED)
def gradient_of_a_loop_over_a_traced_range() -> None:
    def loss(x: Any, n: Any) -> Any:
        return sw.fori_loop(0, n, lambda i, v: v * 2, x).sum()

    on_mesh(sw.grad(loss)).trace(X, np.int32(3))


@says(sw.UnsupportedError, UNCOUNTED)
def gradient_of_a_while_loop_in_a_scan() -> None:
    def body(c: Any, row: Any) -> Any:
        return sw.while_loop(lambda v: v.sum() < 9, lambda v: v * 2, c + row), None

    on_mesh(sw.grad(lambda x: sw.scan(body, x[0], x)[0].sum())).trace(X)


# ---- checkpoint -----------------------------------------------------------------------------------------------------


@says(TypeError, "checkpoint: fun must be a function, got int 3")
def checkpoint_of_a_number() -> None:
    sw.checkpoint(3)  # type: ignore[arg-type]


@says(TypeError, "checkpoint: policy must be a checkpoint policy, got 'dots'; pass one of sw.checkpoint_policies")
def checkpoint_by_the_name_of_a_policy() -> None:
    sw.checkpoint(np.sin, policy="dots")  # type: ignore[arg-type]


@says(TypeError, "save_only_these_names: names must be strings, got 3")
def policy_of_a_number() -> None:
    sw.checkpoint_policies.save_only_these_names("h", 3)  # type: ignore[arg-type]
