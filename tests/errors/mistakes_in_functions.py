# SPDX-License-Identifier: Apache-2.0
"""What NumPy has and traced functions have not: functions and options, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import shardwise as sw
from tests.errors.mistakes import MESH, N, X, on_mesh, says

# ---- functions and options ------------------------------------------------------------------------------------------


@says(sw.UnsupportedError, "np.partition is not supported in traced functions; call it on np.asarray(x) outside jit")
def partition_of_a_tracer() -> None:
    on_mesh(lambda x: np.partition(x, 2)).trace(X)


@says(sw.UnsupportedError, "np.setdiff1d is not supported in traced functions; call it on np.asarray(x) outside jit")
def a_set_of_a_tracer() -> None:
    on_mesh(lambda x: np.setdiff1d(x, 0)).trace(X)


@says(
    sw.UnsupportedError, "np.put is not supported in traced functions; sw.at(x, index).set(values) returns a new array"
)
def put_into_a_tracer() -> None:
    on_mesh(lambda x: np.put(x, 0, 1)).trace(X)


def instead(name: str, way_out: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """A row for a function that has another form."""
    return says(sw.UnsupportedError, f"np.{name} is not supported in traced functions; {way_out}")


@instead("putmask", "np.where(mask, values, x) returns a new array")
def putmask_into_a_tracer() -> None:
    on_mesh(lambda x: np.putmask(x, x > 0, 0)).trace(X)


@instead("fill_diagonal", "sw.at(x, np.diag_indices(n)).set(values) returns a new array")
def diagonal_of_a_tracer_filled() -> None:
    on_mesh(lambda x: np.fill_diagonal(x, 0)).trace(X)


@instead("apply_along_axis", "use sw.vmap(f)")
def function_along_an_axis() -> None:
    on_mesh(lambda x: np.apply_along_axis(np.sum, 1, x)).trace(X)


@says(
    sw.TracerConversionError,
    "np.vectorize: calls its function with numbers; call f on whole arrays, or use sw.vmap(f)",
)
def vectorized_function() -> None:
    on_mesh(lambda x: np.vectorize(abs)(x)).trace(X)


@says(
    sw.TracerConversionError,
    'format: a traced array has no numbers yet, got Tracer<float32[]>; use sw.debug.print("{:.3f}", x)',
)
def format_of_a_tracer() -> None:
    on_mesh(lambda x: f"{x.sum():.3f}").trace(X)


@says(ValueError, "np.linalg.norm: a matrix's order must be 1, 2, inf, these negative, 'fro' or 'nuc', got 3")
def norm_of_another_order() -> None:
    on_mesh(lambda x: np.linalg.norm(x, 3)).trace(X)


LOOP = "use sw.while_loop(condition, body, x), or a fixed number of steps with np.where(condition, a, b)"


@says(
    sw.TracerBoolConversionError,
    f"bool: a condition of Python's if, while, and, or must be known during tracing, got Tracer<bool[]>; {LOOP}",
)
def loop_until_converged() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            previous, x = x, x / 2
            if np.abs(x - previous).max() < 1e-3:
                break
        return x

    on_mesh(f).trace(X)


@says(
    sw.TracerBoolConversionError,
    f"bool: a condition of Python's if, while, and, or must be known during tracing, got Tracer<bool[]>; {LOOP}",
)
def while_a_traced_value() -> None:
    def f(x: Any) -> Any:
        while x.sum() > 1:
            x = x / 2
        return x

    on_mesh(f).trace(X)


IDS = np.array([1, 1, 3])


@says(
    sw.TracerConversionError,
    "c[i] += 1: a NumPy array cannot hold traced values; start from "
    "c = np.zeros_like(i, shape=(4,), dtype=np.float64), and write c = c.at[i].set(c[i] + 1)",
)
def counts_in_a_numpy_array() -> None:
    def f(i: Any) -> Any:
        c = np.zeros(4)
        c[i] += 1
        return c

    on_mesh(f).trace(IDS)


@says(
    sw.TracerConversionError,
    "c[i] = 0.5: a NumPy array cannot hold traced values; start from "
    "c = np.zeros_like(i, shape=(4,), dtype=np.float64), and write c = c.at[i].set(0.5)",
)
def fractions_at_traced_ids() -> None:
    def f(i: Any) -> Any:
        c = np.zeros(4)
        c[i] = 0.5
        return c

    on_mesh(f).trace(IDS)


@says(
    sw.TracerConversionError,
    "c[0] = x[0]: a NumPy array cannot hold traced values; start from "
    "c = np.zeros_like(x, shape=(2, 6)), and write c = c.at[0].set(x[0])",
)
def several_statements_on_a_line() -> None:
    def f(x: Any) -> Any:
        c = np.zeros((2, 6)); c[0] = x[0]; return c  # fmt: skip # noqa: E702

    on_mesh(f).trace(X)


@says(
    sw.UnsupportedError,
    "np.divide: out= is not supported in traced functions, got out=float32[8, 6]; "
    "use np.where(mask, np.divide(a, b), out)",
)
def masked_division() -> None:
    on_mesh(lambda x: np.divide(x, x, out=np.zeros_like(X), where=N > 0)).trace(X)


@says(
    sw.ShapeError,
    "np.roll: there must be one shift for each axis, got Tracer<int64[3]> along (0, 1); give as many as axes",
)
def roll_by_too_many_traced_shifts() -> None:
    on_mesh(lambda x, n: np.roll(x, n, axis=(0, 1))).trace(X, np.array([1, 2, 3]))


@says(AttributeError, "array: has no attribute 'unsqueeze'; use np.expand_dims(x, axis)")
def method_of_pytorch() -> None:
    on_mesh(lambda x: x.unsqueeze(0)).trace(X)


@says(
    sw.UnsupportedError,
    "np.nan_to_num: copy= is not supported in traced functions, got copy=False; use what the function returns",
)
def nan_to_num_in_place() -> None:
    on_mesh(lambda x: np.nan_to_num(x, copy=False)).trace(X)


@says(
    sw.UnsupportedError,
    "np.clip: out= is not supported on sharded arrays, got out=float32[8, 6]; use what the function returns",
)
def clip_into_a_sharded_array() -> None:
    x = sw.device_put(X, MESH)
    np.clip(x, 0, 1, out=x)


@says(sw.DTypeError, "np.add: operands must be arrays or numbers, got NoneType None")
def sum_with_none() -> None:
    on_mesh(lambda x, bias: x + bias).trace(X, None)
