# SPDX-License-Identifier: Apache-2.0
"""Programs with loops and branches, in terms of NumPy and of the control flow of `jax.lax`.

Each takes the modules (`numpy` and `shardwise`, or `jax.numpy` and `jax.lax`) before its arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["PROGRAMS", "Program"]


class Program(NamedTuple):
    function: Callable[..., Any]  # (np, lax, *arrays)
    inputs: tuple[Any, ...]

    @property
    def name(self) -> str:
        return self.function.__name__


PROGRAMS: list[Program] = []


def program(*inputs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the decorated function with these arrays."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append(Program(function, inputs))
        return function

    return add


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Small multiples of 1/8, whose sums and products are exact in float32."""
    size = int(np.prod(shape))
    return ((np.arange(size) * 37 % 17 - 8) / 8).reshape(shape).astype(dtype)


X = floats(6, 4)
W = floats(4, 4)
N = np.arange(6, dtype=np.int32)

# ---- scan -----------------------------------------------------------------------------------------------------------


@program(floats(4), X)
def running_sums(m: Any, lax: Any, c: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x, c * 2), c, xs)


@program(floats(4), X)
def running_sums_backwards(m: Any, lax: Any, c: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x, c * 2), c, xs, reverse=True)


@program(X)
def sum_from_a_python_number(m: Any, lax: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x.sum(), c), 0.0, xs)


@program(N)
def integers_from_a_python_number(m: Any, lax: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x, (c, x)), 0, xs)


@program(X, N)
def tree_of_carries_and_rows(m: Any, lax: Any, xs: Any, n: Any) -> Any:
    def body(carry: Any, row: Any) -> Any:
        total = {"sum": carry["sum"] + row["x"], "last": row["n"]}
        return total, (row["x"].max(), {"n": row["n"] * 2, "none": None})

    return lax.scan(body, {"sum": m.zeros(4, m.float32), "last": m.int32(0)}, {"x": xs, "n": n})


@program(floats(4))
def scan_without_arrays(m: Any, lax: Any, c: Any) -> Any:
    return lax.scan(lambda c, _: (c / 2, c.sum()), c, None, length=5)


@program(floats(4), floats(0, 4))
def scan_of_nothing(m: Any, lax: Any, c: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x, c.sum()), c, xs)


@program(floats(0, 4))
def scan_of_nothing_from_a_python_number(m: Any, lax: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x.sum(), x), 0, xs)


@program(floats(4), floats(1, 4))
def scan_of_one_row(m: Any, lax: Any, c: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x, c), c, xs)


@program(floats(4), X)
def scan_by_threes(m: Any, lax: Any, c: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x, c * 2), c, xs, unroll=3)


@program(floats(4), X)
def scan_by_fours_with_a_rest(m: Any, lax: Any, c: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x, c * 2), c, xs, unroll=4)


@program(floats(4), X)
def scan_backwards_by_fours_with_a_rest(m: Any, lax: Any, c: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x, c * 2), c, xs, reverse=True, unroll=4)


@program(X)
def scan_without_a_loop(m: Any, lax: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x.sum(), c), 0.0, xs, unroll=True)


@program(floats(3, 4), W, X)
def rnn_that_closes_over_its_weights(m: Any, lax: Any, h: Any, w: Any, xs: Any) -> Any:
    bias = w.sum(0)
    return lax.scan(lambda h, x: (m.maximum(h @ w + x + bias, 0) / 16, h.sum()), h, xs)


@program(floats(2, 3, 4))
def scan_in_a_scan(m: Any, lax: Any, xs: Any) -> Any:
    def outer(c: Any, rows: Any) -> Any:
        total, sums = lax.scan(lambda t, x: (t + x * c, t), m.zeros_like(c), rows)
        return c + total, sums

    return lax.scan(outer, m.ones(4, m.float32), xs)


@program(X)
def rows_of_numbers_and_constants(m: Any, lax: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c, (1, 2.5, True, x > 0)), (), xs)


# ---- while_loop, fori_loop ------------------------------------------------------------------------------------------


@program(floats(4))
def halve_until_small(m: Any, lax: Any, x: Any) -> Any:
    return lax.while_loop(lambda v: m.abs(v[0]).sum() > 0.01, lambda v: (v[0] / 2, v[1] + 1), (x, 0))


@program(floats(4))
def while_that_never_runs(m: Any, lax: Any, x: Any) -> Any:
    return lax.while_loop(lambda v: v[0].sum() > 1e6, lambda v: (v[0] / 2, v[1] + x.sum()), (x, 0))


@program(X)
def sum_of_indices(m: Any, lax: Any, x: Any) -> Any:
    return lax.fori_loop(0, 10, lambda i, c: c + i, x)


@program(X)
def range_from_a_negative_start(m: Any, lax: Any, x: Any) -> Any:
    return lax.fori_loop(-3, 4, lambda i, c: {"x": c["x"] + i, "n": c["n"] + i}, {"x": x, "n": 0})


@program(X)
def empty_range(m: Any, lax: Any, x: Any) -> Any:
    return lax.fori_loop(5, 3, lambda i, c: c + i, x)


@program(X)
def range_by_twos(m: Any, lax: Any, x: Any) -> Any:
    return lax.fori_loop(1, 8, lambda i, c: c * 2 + i, x, unroll=2)


@program(X, np.int32(2), np.int32(7))
def traced_range(m: Any, lax: Any, x: Any, lower: Any, upper: Any) -> Any:
    return lax.fori_loop(lower, upper, lambda i, c: (c[0] * 2, i), (x.sum(), lower))


@program(X, np.int32(5))
def range_to_a_traced_end(m: Any, lax: Any, x: Any, upper: Any) -> Any:
    return lax.fori_loop(0, upper, lambda i, c: c * 2 + x[i], m.zeros_like(x[0]))


# ---- cond, switch ---------------------------------------------------------------------------------------------------


@program(X)
def branch_on_a_sum(m: Any, lax: Any, x: Any) -> Any:
    return [lax.cond(x.sum() > t, lambda a: a + 1, lambda a: a * 2, x) for t in (-100, 100)]


@program(X, np.int32(0))
def branch_on_a_number(m: Any, lax: Any, x: Any, n: Any) -> Any:
    return lax.cond(n, lambda: x, lambda: -x), lax.cond(n + 3, lambda: x, lambda: -x)


@program(X)
def branches_with_python_numbers(m: Any, lax: Any, x: Any) -> Any:
    zero = m.float32(0)
    return [lax.cond(x.sum() > t, lambda: (x.sum(), 1), lambda: (zero, 2)) for t in (-100, 100)]


@program(X)
def branches_of_trees(m: Any, lax: Any, x: Any) -> Any:
    def grow(tree: Any) -> Any:
        return {"a": tree["a"] + 1, "b": (tree["b"], None)}

    def swap(tree: Any) -> Any:
        return {"a": tree["b"], "b": (tree["a"], None)}

    return lax.cond(x[0, 0] > 0, grow, swap, {"a": x, "b": x * 2})


@program(X, np.array([-5, 0, 1, 2, 9]))
def switch_out_of_range(m: Any, lax: Any, x: Any, index: Any) -> Any:
    branches = [lambda a: a + 1, lambda a: a * 2, lambda a: a - 1]
    return [lax.switch(index[i], branches, x) for i in range(5)]


@program(X, np.uint8(200))
def switch_on_a_byte(m: Any, lax: Any, x: Any, index: Any) -> Any:
    return lax.switch(index, [lambda: x, lambda: -x])


@program(X)
def switch_of_one_branch(m: Any, lax: Any, x: Any) -> Any:
    return lax.switch(x.astype(int).sum(), [lambda a: a + 1], x)


@program(X, N)
def branch_in_a_scan(m: Any, lax: Any, xs: Any, n: Any) -> Any:
    def body(c: Any, row: Any) -> Any:
        x, i = row
        c = lax.cond(i % 2 == 0, lambda c: c + x, lambda c: c - x, c)
        return c, lax.switch(i - 1, [lambda: c.sum(), lambda: x.sum(), lambda: (c * x).sum()])

    return lax.scan(body, m.zeros(4, m.float32), (xs, n))


@program(floats(4))
def while_in_a_branch(m: Any, lax: Any, x: Any) -> Any:
    def shrink(x: Any) -> Any:
        return lax.while_loop(lambda v: m.abs(v).max() > 0.1, lambda v: v / 2, x)

    return [lax.cond(x.sum() > t, shrink, lambda v: v, x) for t in (-100, 100)]


# ---- map, associative_scan ------------------------------------------------------------------------------------------


@program(X)
def map_of_rows(m: Any, lax: Any, xs: Any) -> Any:
    return lax.map(lambda x: {"sum": x.sum(), "x": x * 2}, xs)


@program(X, floats(6))
def map_in_batches(m: Any, lax: Any, xs: Any, scales: Any) -> Any:
    return lax.map(lambda row: (row[0] * row[1], row[0].sum()), (xs, scales), batch_size=4)


@program(X)
def map_in_one_batch(m: Any, lax: Any, xs: Any) -> Any:
    return [lax.map(lambda x: x + 1, xs, batch_size=size) for size in (0, 2, 6, 100)]


@program(np.arange(13, dtype=np.int32), floats(3, 6))
def prefix_sums(m: Any, lax: Any, n: Any, x: Any) -> Any:
    sums = lax.associative_scan(m.add, n)
    return sums, lax.associative_scan(m.add, n, reverse=True), lax.associative_scan(m.maximum, x, axis=-1)


@program(*(np.arange(size, dtype=np.int32) * 7 % 5 for size in range(6)))
def prefix_sums_of_few(m: Any, lax: Any, *arrays: Any) -> Any:
    return [lax.associative_scan(m.add, x) for x in arrays]


@program(floats(7, 2, 2), floats(7, 2))
def linear_recurrence(m: Any, lax: Any, a: Any, b: Any) -> Any:
    def combine(first: Any, second: Any) -> Any:
        return second[0] @ first[0], (second[0] @ first[1][..., None])[..., 0] + second[1]

    return lax.associative_scan(combine, (a, b))


@program(np.arange(5) % 2 == 0)
def prefix_of_bools(m: Any, lax: Any, x: Any) -> Any:
    return lax.associative_scan(m.logical_xor, x)
