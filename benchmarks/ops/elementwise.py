# SPDX-License-Identifier: Apache-2.0
"""Rows of elementwise ops: by dtype, where NumPy or SciPy has a peer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .row import Row, drawn, flat, one_op, type_of, type_text

FLOATS = ("float32", "float64")
NARROW = ("float16", "bfloat16")


def functions(names: str, dtypes: Sequence[str], low: float = -4.0, high: float = 4.0, operands: int = 1) -> list[Row]:
    """A row for each function of NumPy and dtype."""
    return [
        Row(f"{name} {dtype}", flat(operands, dtype, low, high), getattr(np, name))
        for name in names.split()
        for dtype in dtypes
    ]


def of_op(op: str, peer: Callable[..., Any], dtypes: Sequence[str], low: float = -4.0, high: float = 4.0) -> list[Row]:
    """A row for each dtype of an op of one operand that no function of NumPy becomes."""
    name = op.split(".")[1]
    return [Row(f"{name} {dtype}", flat(1, dtype, low, high), text=one_op(op), peer=peer) for dtype in dtypes]


def converts() -> list[Row]:
    pairs = [
        ("float32", "float64"), ("float64", "float32"), ("float32", "float16"), ("float16", "float32"),
        ("float32", "bfloat16"), ("bfloat16", "float32"), ("int32", "float32"), ("float32", "int32"),
        ("int64", "int32"), ("int8", "int32"), ("float32", "bool"), ("bool", "float32"),
        ("float32", "complex64"), ("uint8", "float32"),
    ]  # fmt: skip

    def row(source: str, to: str) -> Row:
        target = np.zeros((), drawn((), to).dtype).dtype
        return Row(f"convert {source} to {to}", flat(1, source), lambda x: x.astype(target))

    return [row(*pair) for pair in pairs]


def _reduce_precision(x: Any) -> Any:
    return x.astype(np.float16).astype(np.float32)


def _copied(name: str) -> Callable[[Any], Any]:
    """NumPy's part of a complex array is a view."""
    return lambda x: getattr(np, name)(x).copy()


def others() -> list[Row]:
    """Ops with operands of several types, or attributes."""
    rows = [
        Row("where " + d, lambda n, d=d: (drawn(flat(1, d)(n)[0].shape, "bool"), *flat(2, d)(n)), np.where)  # type: ignore[misc]
        for d in ("float32", "float64", "int8", "int32")
    ]
    rows += [
        Row("clip " + d, lambda n, d=d: (*flat(1, d)(n), np.asarray(-1, d), np.asarray(2, d)), np.clip)  # type: ignore[misc]
        for d in ("float32", "float64", "int32")
    ]
    bounds = lambda n: (np.float32(-1), *flat(1, "float32")(n), np.float32(2))  # noqa: E731
    to_bits = one_op("stablehlo.bitcast_convert", result=lambda x: type_text(x.shape, np.int32))
    formats = "exponent_bits = 5 : i32, mantissa_bits = 10 : i32"
    return [
        *rows,
        Row(
            "clamp float32",
            bounds,
            text=one_op("stablehlo.clamp", result=lambda low, x, high: type_of(x)),
            peer=lambda low, x, high: np.minimum(np.maximum(x, low), high),
        ),
        Row("bitcast_convert float32", flat(1, "float32"), text=to_bits, peer=lambda x: x.view(np.int32).copy()),
        Row(
            "reduce_precision float32",
            flat(1, "float32"),
            text=one_op("stablehlo.reduce_precision", formats),
            peer=_reduce_precision,
        ),
        Row("x * 2 + y float32", flat(2, "float32"), lambda x, y: x * np.float32(2) + y),
        Row("softmax weights float32", flat(1, "float32"), lambda x: np.exp(x - np.float32(4)) / np.float32(7)),
        Row("map float32", flat(1, "float32"), text=_map_text, peer=lambda x: x * x),
    ]


def _map_text(x: Any) -> str:
    body = (
        '  %r = "stablehlo.map"(%arg0) ({\n  ^bb0(%a: tensor<f32>):\n'
        "    %m = stablehlo.multiply %a, %a : tensor<f32>\n    stablehlo.return %m : tensor<f32>\n"
        f"  }}) {{dimensions = array<i64: 0>}} : ({type_of(x)}) -> {type_of(x)}"
    )
    return f"func.func @main(%arg0: {type_of(x)}) -> {type_of(x)} {{\n{body}\n  return %r : {type_of(x)}\n}}"


COMPLEX = ("complex64", "complex128")

ROWS: list[Row] = [
    *functions("negative", (*FLOATS, "int32", "int8", "float16", "bfloat16")),
    *functions("absolute", (*FLOATS, "int32", "int8")),
    *functions("sign ceil floor rint isfinite", FLOATS),
    *functions("sqrt", (*FLOATS, *NARROW), 0.1, 9),
    *functions("reciprocal", FLOATS, 0.1, 9),
    *functions("cbrt", FLOATS, 0.1, 9),
    *functions("exp", (*FLOATS, *NARROW)),
    *functions("expm1 exp2", FLOATS),
    *functions("log", (*FLOATS, "float16"), 0.1, 9),
    *functions("log1p log2 log10", FLOATS, 0.1, 9),
    *functions("sin cos", (*FLOATS, "float16")),
    *functions("tan", FLOATS, -1.4, 1.4),
    *functions("tanh", (*FLOATS, "bfloat16")),
    *functions("sinh cosh arctan arcsinh", FLOATS),
    *functions("arcsin arccos arctanh", FLOATS, -0.99, 0.99),
    *functions("arccosh", FLOATS, 1.01, 9),
    *of_op("stablehlo.popcnt", np.bitwise_count, ("int32", "uint8"), 0, 90),
    *of_op("chlo.square", np.square, ("float32", "int32")),
    *functions("invert", ("int32", "int8", "bool")),
    *functions("add", (*FLOATS, "int32", "int64", "int8", "bool", *NARROW, *COMPLEX), operands=2),
    *functions("subtract", (*FLOATS, "int32"), operands=2),
    *functions("multiply", (*FLOATS, "int32", "int64", "int8", *NARROW, *COMPLEX), operands=2),
    *functions("true_divide", (*FLOATS, "bfloat16", *COMPLEX), 0.5, 9, 2),
    *functions("floor_divide", ("int32", "int64"), 1, 90, 2),
    *of_op("stablehlo.count_leading_zeros", lambda x: 31 - np.log2(x).astype(np.int32), ("int32",), 1, 90),
    *functions("fmod", (*FLOATS, "int32"), 1, 90, 2),
    *functions("remainder", ("int32",), 1, 90, 2),
    *functions("power", FLOATS, 0.1, 3, 2),
    *functions("power", ("int32",), 0, 5, 2),
    *functions("arctan2", FLOATS, operands=2),
    *functions("maximum minimum", (*FLOATS, "int32", "int8", "float16"), operands=2),
    *functions("bitwise_and bitwise_or bitwise_xor", ("int32", "bool"), operands=2),
    *functions("left_shift right_shift", ("int32",), 0, 9, 2),
    *functions("right_shift", ("uint32",), 0, 9, 2),
    *functions("less equal", (*FLOATS, "int32", "int8", "float16"), operands=2),
    *functions("absolute exp log sqrt sin conjugate", ("complex64",)),
    *(
        Row(f"{name} complex64", flat(1, "complex64"), getattr(np, name), peer=_copied(name))
        for name in ("real", "imag")
    ),
    *functions("absolute exp", ("complex128",)),
    Row(
        "complex of parts float32",
        flat(2, "float32"),
        text=one_op("stablehlo.complex", result=lambda x, y: type_text(x.shape, np.complex64)),
        peer=lambda x, y: x + np.complex64(1j) * y,
    ),
    *converts(),
    *others(),
]
