# SPDX-License-Identifier: Apache-2.0
"""Rows of reductions, scans and windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .row import Make, Row, drawn, flat, side, square, type_of, type_text

FLOATS = ("float32", "float64")
AXES: dict[str, int | None] = {"all": None, "rows": 1, "columns": 0}


def along_axes(
    names: str, dtypes: tuple[str, ...], low: float = -4.0, high: float = 4.0, fill: bool | None = None
) -> list[Row]:
    """A row for all elements, along rows and along columns. `fill`: equal elements, of which NumPy must read all."""

    def arguments(dtype: str) -> Make:
        make = square(dtype, low, high)
        return make if fill is None else lambda n: (np.full_like(make(n)[0], fill),)

    def row(name: str, dtype: str, where: str, axis: int | None) -> Row:
        function = getattr(np, name)
        return Row(f"{name} {dtype}, {where}", arguments(dtype), lambda x: function(x, axis=axis))

    return [row(name, dtype, *item) for name in names.split() for dtype in dtypes for item in AXES.items()]


def shaped(name: str, shape: Callable[[int], tuple[int, ...]], function: Callable[..., Any], dtype: str) -> Row:
    return Row(f"{name} {dtype}", lambda n: (drawn(shape(n), dtype),), function)


# ---- windows --------------------------------------------------------------------------------------------------------


def image(n: int) -> tuple[Any, ...]:
    """(1, height, width, 16), n elements in all where n is a square of a multiple of 4."""
    size = max(side(n) // 4, 4)
    return (drawn((1, size, size, 16), "float32"),)


def pooling(op: str, window: int, stride: int) -> Callable[[Any], str]:
    def text(x: Any) -> str:
        out = (1, (x.shape[1] - window) // stride + 1, (x.shape[2] - window) // stride + 1, 16)
        init = "0xFF800000" if op == "maximum" else "0.0"
        to = type_text(out, np.float32)
        dims = f"array<i64: 1, {window}, {window}, 1>"
        body = (
            f"  %init = stablehlo.constant dense<{init}> : tensor<f32>\n"
            '  %r = "stablehlo.reduce_window"(%arg0, %init) ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
            f"    %m = stablehlo.{op} %a, %b : tensor<f32>\n    stablehlo.return %m : tensor<f32>\n"
            f"  }}) {{window_dimensions = {dims}, window_strides = array<i64: 1, {stride}, {stride}, 1>}}"
            f" : ({type_of(x)}, tensor<f32>) -> {to}"
        )
        return f"func.func @main(%arg0: {type_of(x)}) -> {to} {{\n{body}\n  return %r : {to}\n}}"

    return text


def pooled(function: Callable[..., Any], window: int, stride: int) -> Callable[[Any], Any]:
    """The same in NumPy: one strided view per place in the window."""

    def peer(x: Any) -> Any:
        rows, columns = ((size - window) // stride + 1 for size in x.shape[1:3])
        views = [
            x[:, i : i + stride * rows : stride, j : j + stride * columns : stride]
            for i in range(window)
            for j in range(window)
        ]
        total = views[0].copy()
        for view in views[1:]:
            function(total, view, out=total)
        return total

    return peer


def select_and_scatter_text(x: Any, source: Any) -> str:
    to = type_of(x)
    body = (
        "  %init = stablehlo.constant dense<0.0> : tensor<f32>\n"
        '  %r = "stablehlo.select_and_scatter"(%arg0, %arg1, %init) ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
        "    %m = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "    stablehlo.return %m : tensor<i1>\n  }, {\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
        "    %m = stablehlo.add %a, %b : tensor<f32>\n    stablehlo.return %m : tensor<f32>\n"
        "  }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}"
        f" : ({to}, {type_of(source)}, tensor<f32>) -> {to}"
    )
    return f"func.func @main(%arg0: {to}, %arg1: {type_of(source)}) -> {to} {{\n{body}\n  return %r : {to}\n}}"


def unpooled(x: Any, source: Any) -> Any:
    """The gradient of max pooling by argmax of 2x2 blocks."""
    batch, rows, columns, features = source.shape
    blocks = x.reshape(batch, rows, 2, columns, 2, features).transpose(0, 1, 3, 5, 2, 4).reshape(-1, 4)
    result = np.zeros_like(blocks)
    result[np.arange(len(blocks)), blocks.argmax(axis=1)] = source.ravel()
    return result.reshape(batch, rows, columns, features, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(x.shape)


def image_and_source(n: int) -> tuple[Any, ...]:
    (x,) = image(n)
    return x, drawn((1, x.shape[1] // 2, x.shape[2] // 2, 16), "float32", seed=1)


def batch_norm_text(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> str:
    types = [type_of(value) for value in (x, scale, offset, mean, variance)]
    shown = ", ".join(f"%arg{i}: {t}" for i, t in enumerate(types))
    body = (
        '  %r = "stablehlo.batch_norm_inference"(%arg0, %arg1, %arg2, %arg3, %arg4)'
        f" {{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}} : ({', '.join(types)}) -> {types[0]}"
    )
    return f"func.func @main({shown}) -> {types[0]} {{\n{body}\n  return %r : {types[0]}\n}}"


def normalised(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    return (x - mean) / np.sqrt(variance + np.float32(1e-3)) * scale + offset


def batch_norm_arguments(n: int) -> tuple[Any, ...]:
    features = side(n)
    vectors = (drawn((features,), "float32", 0.5, 2, seed) for seed in range(1, 5))
    return (*square("float32")(n), *vectors)


# ---- rows -----------------------------------------------------------------------------------------------------------

thin: Callable[[int], tuple[int, ...]] = lambda n: (n // 8, 8)  # noqa: E731
middle: Callable[[int], tuple[int, ...]] = lambda n: (n // 1024 or 1, 32, 32)  # noqa: E731
nan_free: Make = square("float32")

ROWS: list[Row] = [
    *along_axes("sum", (*FLOATS, "int32", "float16", "bfloat16", "complex64")),
    *along_axes("max", (*FLOATS, "int32", "int8")),
    *along_axes("min", ("float32",)),
    *along_axes("prod", ("float32", "int32"), 0.9, 1.1),
    *along_axes("any", ("bool",), fill=False),
    *along_axes("all", ("bool",), fill=True),
    *along_axes("mean var", ("float32",)),
    *along_axes("argmax", FLOATS),
    *along_axes("argmax", ("int32",), -1e9, 1e9),
    *along_axes("argmin", ("float32",)),
    shaped("sum of short rows", thin, lambda x: x.sum(axis=1), "float32"),
    shaped("max of short rows", thin, lambda x: x.max(axis=1), "float32"),
    shaped("argmax of short rows", thin, lambda x: x.argmax(axis=1), "float32"),
    shaped("sum of middle dim", middle, lambda x: x.sum(axis=1), "float32"),
    shaped("max of middle dim", middle, lambda x: x.max(axis=1), "float32"),
    *(
        Row(f"cumsum {dtype}, {where}", square(dtype), lambda x, axis=axis: np.cumsum(x, axis=axis))  # type: ignore[misc]
        for dtype in (*FLOATS, "int32")
        for where, axis in (("rows", 1), ("columns", 0))
    ),
    *(Row(f"cumsum {dtype}, one row", flat(1, dtype), np.cumsum) for dtype in (*FLOATS, "int32")),
    Row("cumprod float32, rows", square("float32", 0.9, 1.1), lambda x: np.cumprod(x, axis=1)),
    Row("max pool 2x2 float32", image, text=pooling("maximum", 2, 2), peer=pooled(np.maximum, 2, 2)),
    Row("max pool 3x3 float32", image, text=pooling("maximum", 3, 1), peer=pooled(np.maximum, 3, 1)),
    Row("sum pool 3x3 float32", image, text=pooling("add", 3, 1), peer=pooled(np.add, 3, 1)),
    Row("select_and_scatter 2x2 float32", image_and_source, text=select_and_scatter_text, peer=unpooled),
    Row("batch_norm_inference float32", batch_norm_arguments, text=batch_norm_text, peer=normalised),
]
