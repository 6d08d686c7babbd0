# SPDX-License-Identifier: Apache-2.0
"""Rows of ops that move, create, order or draw elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import shardwise as sw

from .row import Array, Make, Row, drawn, flat, one_op, side, square, type_text

# ---- indexing -------------------------------------------------------------------------------------------------------


def places(n: int, count: int, dtype: Any = np.int64) -> Array:
    return np.random.default_rng(3).integers(0, n, count).astype(dtype)


def elements(dtype: str, index: Any = np.int64) -> Make:
    return lambda n: (drawn((n,), dtype), places(n, n, index))


def rows_of(dtype: str, width: int) -> Make:
    return lambda n: (drawn((n // width, width), dtype), places(n // width, n // width))


def columns_of(dtype: str) -> Make:
    return lambda n: (drawn((side(n), side(n)), dtype), places(side(n), side(n)))


def added(x: Any, ids: Any, updates: Any) -> Any:
    return x.at[ids].add(updates)


def added_by_numpy(x: Any, ids: Any, updates: Any) -> Any:
    result = x.copy()
    np.add.at(result, ids, updates)
    return result


def replaced(x: Any, ids: Any, updates: Any) -> Any:
    return x.at[ids].set(updates)


def replaced_by_numpy(x: Any, ids: Any, updates: Any) -> Any:
    result = x.copy()
    result[ids] = updates
    return result


def with_updates(make: Make) -> Make:
    def arguments(n: int) -> tuple[Any, ...]:
        x, ids = make(n)
        return x, ids, drawn((len(ids), *x.shape[1:]), str(x.dtype), seed=5)

    return arguments


INDEXING = [
    *(Row(f"x[ids] of elements {dtype}", elements(dtype), lambda x, ids: x[ids]) for dtype in ("float32", "float64")),
    Row("x[ids] of elements int8", elements("int8"), lambda x, ids: x[ids]),
    Row("x[ids] of elements float32, int32 ids", elements("float32", np.int32), lambda x, ids: x[ids]),
    Row("x[ids] of rows of 8 float32", rows_of("float32", 8), lambda x, ids: x[ids]),
    Row("x[ids] of rows of 256 float32", rows_of("float32", 256), lambda x, ids: x[ids]),
    Row("x[:, ids] float32", columns_of("float32"), lambda x, ids: x[:, ids]),
    Row(
        "take_along_axis float32",
        lambda n: (*square("float32")(n), places(side(n), n).reshape(side(n), side(n))),
        lambda x, ids: np.take_along_axis(x, ids, axis=1),
    ),
    Row(
        "x[i, j] float32",
        lambda n: (*square("float32")(n), places(side(n), n), places(side(n), n)[::-1].copy()),
        lambda x, i, j: x[i, j],
    ),
    Row("x.at[ids].add of elements float32", with_updates(elements("float32")), added, peer=added_by_numpy),
    Row("x.at[ids].add of rows float32", with_updates(rows_of("float32", 256)), added, peer=added_by_numpy),
    Row("x.at[ids].set of elements float32", with_updates(elements("float32")), replaced, peer=replaced_by_numpy),
    Row("x.at[ids].set of rows float32", with_updates(rows_of("float32", 256)), replaced, peer=replaced_by_numpy),
]

# ---- layout and slices ----------------------------------------------------------------------------------------------


def copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's result as an array of its own: a view costs nothing on either side until it is read."""
    return lambda *args: np.ascontiguousarray(function(*args))


def dense(name: str, make: Make, function: Callable[..., Any]) -> Row:
    """A view that is read once: the op itself copies nothing."""
    return Row(name, make, lambda *args: np.negative(function(*args)))


def cube(dtype: str) -> Make:
    return lambda n: (drawn((max(n // 4096, 1), 64, 64), dtype),)


def dynamic_slice_arguments(n: int) -> tuple[Any, ...]:
    return (*square("float32")(n), np.int32(3), np.int32(5))


def dynamic_slice_text(x: Any, i: Any, j: Any) -> str:
    size = x.shape[0] - 8
    to = type_text((size, size), np.float32)
    whole = type_text(x.shape, np.float32)
    body = (
        f"  %0 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [{size}, {size}]"
        f" : ({whole}, tensor<i32>, tensor<i32>) -> {to}\n  %r = stablehlo.negate %0 : {to}"
    )
    return (
        f"func.func @main(%arg0: {whole}, %arg1: tensor<i32>, %arg2: tensor<i32>) -> {to} {{\n{body}\n"
        f"  return %r : {to}\n}}"
    )


def dynamic_update_slice_arguments(n: int) -> tuple[Any, ...]:
    half = side(n) // 2
    return (*square("float32")(n), drawn((half, half), "float32", seed=1), np.int32(3), np.int32(5))


def updated(x: Any, update: Any, i: Any, j: Any) -> Any:
    result = x.copy()
    result[i : i + update.shape[0], j : j + update.shape[1]] = update
    return result


LAYOUT = [
    *(dense(f"transpose {dtype}", square(dtype), lambda x: x.T) for dtype in ("float32", "float64", "int8")),
    dense("transpose (2, 0, 1) float32", cube("float32"), lambda x: x.transpose(2, 0, 1)),
    dense("transpose (0, 2, 1) float32", cube("float32"), lambda x: x.transpose(0, 2, 1)),
    dense(
        "broadcast of a row float32",
        flat(1, "float32"),
        lambda x: np.broadcast_to(x[: len(x) // 64], (64, len(x) // 64)),
    ),
    dense(
        "broadcast of a column float32",
        flat(1, "float32"),
        lambda x: np.broadcast_to(x[: len(x) // 64, None], (len(x) // 64, 64)),
    ),
    Row("x + row float32", lambda n: (*square("float32")(n), drawn((side(n),), "float32")), lambda x, r: x + r),
    Row("x + column float32", lambda n: (*square("float32")(n), drawn((side(n), 1), "float32")), lambda x, c: x + c),
    Row("x + x.T float32", square("float32"), lambda x: x + x.T),
    dense("reshape float32", flat(1, "float32"), lambda x: x.reshape(-1, 8)),
    dense("reshape of a transpose float32", square("float32"), lambda x: x.T.reshape(-1)),
    dense("reverse float32", flat(1, "float32"), lambda x: x[::-1]),
    dense("reverse of rows float32", square("float32"), lambda x: x[::-1]),
    dense("slice float32", square("float32"), lambda x: x[4:-4, 4:-4]),
    dense("slice of every other float32", flat(1, "float32"), lambda x: x[::2]),
    Row("pad float32", square("float32"), lambda x: np.pad(x, 4)),
    Row("concatenate of rows float32", lambda n: square("float32")(n) * 2, lambda x, y: np.concatenate([x, y], 0)),
    Row("concatenate of columns float32", lambda n: square("float32")(n) * 2, lambda x, y: np.concatenate([x, y], 1)),
    Row("roll float32", flat(1, "float32"), lambda x: np.roll(x, 7)),
    Row(
        "dynamic_slice float32",
        dynamic_slice_arguments,
        text=dynamic_slice_text,
        peer=lambda x, i, j: np.negative(x[i : i + x.shape[0] - 8, j : j + x.shape[0] - 8]),
    ),
    Row(
        "dynamic_update_slice float32",
        dynamic_update_slice_arguments,
        text=one_op("stablehlo.dynamic_update_slice"),
        peer=updated,
    ),
]

# ---- order ----------------------------------------------------------------------------------------------------------


def stable(function: Callable[..., Any], axis: int = -1) -> Callable[..., Any]:
    return lambda x: function(x, axis=axis, kind="stable")


def top_k_text(k: int) -> Callable[[Any], str]:
    def text(x: Any) -> str:
        whole, to = type_text(x.shape, x.dtype), type_text((*x.shape[:-1], k), x.dtype)
        places = type_text((*x.shape[:-1], k), np.int32)
        body = f"  %r, %p = chlo.top_k(%arg0, k = {k}) : {whole} -> ({to}, {places})"
        return f"func.func @main(%arg0: {whole}) -> ({to}, {places}) {{\n{body}\n  return %r, %p : {to}, {places}\n}}"

    return text


def largest(k: int) -> Callable[[Any], Any]:
    def peer(x: Any) -> Any:
        found = np.argpartition(x, -k, axis=-1)[..., -k:]
        values = np.take_along_axis(x, found, axis=-1)
        order = np.argsort(-values, axis=-1, kind="stable")
        return np.take_along_axis(values, order, axis=-1), np.take_along_axis(found, order, axis=-1)

    return peer


wide = 1e9  # few equal elements
ORDER = [
    *(
        Row(f"sort {dtype}, one row", flat(1, dtype, -wide, wide), stable(np.sort))
        for dtype in ("float32", "float64", "int32", "int64", "int8")
    ),
    Row("sort float16, one row", flat(1, "float16"), stable(np.sort)),
    *(Row(f"sort {dtype}, rows", square(dtype, -wide, wide), stable(np.sort)) for dtype in ("float32", "int32")),
    Row("sort float32, columns", square("float32", -wide, wide), stable(np.sort, 0)),
    *(
        Row(f"argsort {dtype}, one row", flat(1, dtype, -wide, wide), stable(np.argsort))
        for dtype in ("float32", "float64", "int32")
    ),
    Row("argsort float32, rows", square("float32", -wide, wide), stable(np.argsort)),
    Row("sort of rows of 8 float32", lambda n: (drawn((n // 8, 8), "float32"),), stable(np.sort)),
    Row("top_k of 10 float32, one row", flat(1, "float32", -wide, wide), text=top_k_text(10), peer=largest(10)),
    Row("top_k of 10 float32, rows", square("float32", -wide, wide), text=top_k_text(10), peer=largest(10)),
    Row(
        "top_k of half float32, one row",
        flat(1, "float32", -wide, wide),
        text=lambda x: top_k_text(len(x) // 2)(x),
        peer=lambda x: largest(len(x) // 2)(x),
    ),
]

# ---- create ---------------------------------------------------------------------------------------------------------


def of_size(n: int) -> tuple[Any, ...]:
    return (np.zeros((n,), np.bool_),)


def generator_text(algorithm: str, dtype: Any) -> Callable[..., str]:
    def text(state: Any, like: Any) -> str:
        to = type_text(like.shape, dtype)
        body = (
            f"  %s, %r = stablehlo.rng_bit_generator %arg0, algorithm = {algorithm}"
            f" : (tensor<2xui64>) -> (tensor<2xui64>, {to})"
        )
        like_type = type_text(like.shape, np.bool_)
        return f"func.func @main(%arg0: tensor<2xui64>, %arg1: {like_type}) -> {to} {{\n{body}\n  return %r : {to}\n}}"

    return text


def random_arguments(n: int) -> tuple[Any, ...]:
    return np.array([1, 2], np.uint64), *of_size(n)


_philox = np.random.Generator(np.random.Philox(1))
_default = np.random.default_rng(1)
key_and_size: Make = lambda n: (np.asarray(sw.random.PRNGKey(0)), *of_size(n))  # noqa: E731

CREATE = [
    Row("arange float32", of_size, lambda x: np.arange(x.size, dtype=np.float32)),
    Row("zeros float32", of_size, lambda x: np.zeros(x.size, np.float32) + x),
    Row("iota of rows int32", of_size, lambda x: np.arange(len(x), dtype=np.int32).reshape(-1, 64) * np.int32(2)),
    Row(
        "rng_bit_generator THREE_FRY uint32",
        random_arguments,
        text=generator_text("THREE_FRY", np.uint32),
        peer=lambda state, like: _philox.integers(0, 2**32, like.size, np.uint32),
    ),
    Row(
        "rng_bit_generator PHILOX uint32",
        random_arguments,
        text=generator_text("PHILOX", np.uint32),
        peer=lambda state, like: _philox.integers(0, 2**32, like.size, np.uint32),
    ),
    Row(
        "rng_bit_generator THREE_FRY uint64",
        random_arguments,
        text=generator_text("THREE_FRY", np.uint64),
        peer=lambda state, like: _philox.integers(0, 2**64, like.size, np.uint64),
    ),
    Row(
        "random.bits uint32",
        key_and_size,
        lambda key, like: sw.random.bits(key, like.shape),
        peer=lambda key, like: _philox.integers(0, 2**32, like.size, np.uint32),
    ),
    Row(
        "random.uniform float32",
        key_and_size,
        lambda key, like: sw.random.uniform(key, like.shape),
        peer=lambda key, like: _default.random(like.size, np.float32),
    ),
    Row(
        "random.normal float32",
        key_and_size,
        lambda key, like: sw.random.normal(key, like.shape),
        peer=lambda key, like: _default.standard_normal(like.size, np.float32),
    ),
]

ROWS: list[Row] = [*INDEXING, *LAYOUT, *ORDER, *CREATE]
