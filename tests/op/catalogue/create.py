# SPDX-License-Identifier: Apache-2.0
"""Constants and iotas."""

from __future__ import annotations

from functools import partial

import numpy as np

from shardwise.dtypes import is_complex, is_float, is_integer, numpy_dtype
from tests.op import references as ref
from tests.op.case import ALL, NUMBERS, Application, OpCase
from tests.op.catalogue.instance import EVERY, Build, Row, Table, tensor
from tests.op.catalogue.values import integer_ends
from tests.op.dtype_values import ALL_DTYPES, COMPLEX, bits_of, mlir_name, width_of
from tests.op.inputs import Shape, dtype_of, plain

COUNTED = tuple(d for d in ALL_DTYPES if d != "bool")


# ---- cases -----------------------------------------------------------------------------------------------------------


def iota_cases(n: int, dtype: str) -> list[Application]:
    return [
        Application(
            (),
            partial(ref.iota, shape, dim, dtype_of(dtype)),
            {"iota_dimension": dim},
            result_shape=shape,
            result_dtype=dtype,
            has_local=False,
            label=f"{shape}{dim}",
        )
        for shape, dim in [((n, 3), 0), ((n, 3), 1), ((2, n), 1)]
    ]


def constant_cases(n: int, dtype: str) -> list[Application]:
    rng = np.random.default_rng(n)
    values = [plain((n, 3), dtype, rng), np.full((n, 3), 3, dtype_of(dtype)), plain((), dtype, rng)]
    return [
        Application((), lambda value=value: value, {"value": value}, has_local=False, label=f"{i}")
        for i, value in enumerate(values)
    ]


def chlo_constant_cases(n: int, dtype: str) -> list[Application]:
    value = plain((n, 3), dtype, np.random.default_rng(n))
    return [Application((), lambda: value, {"value": value}, has_local=False)]


def constant_like_cases(n: int, dtype: str) -> list[Application]:
    to = dtype_of(dtype)
    value = 2.5 if is_float(to) else True if to == np.bool_ else 1
    return [
        Application(((n, 3),), lambda x: np.full(x.shape, value, to), {"value": value}, result_shape=(n, 3),
                    result_dtype=dtype)
    ]  # fmt: skip


CASES: list[OpCase] = [
    OpCase("stablehlo.iota", NUMBERS, iota_cases, plain, differentiable=False),
    OpCase("stablehlo.constant", ALL, constant_cases, plain, differentiable=False),
    OpCase("chlo.constant", ALL, chlo_constant_cases, plain, differentiable=False),
    OpCase(
        "chlo.constant_like", ("float32", "float64", "int32", "bool"), constant_like_cases, plain, differentiable=False
    ),
]


# ---- random instances ------------------------------------------------------------------------------------------------


def draw_iota(b: Build) -> None:
    shape = b.shape(1, 3)
    b.op([], [(shape, b.dtype)], f"iota_dimension = {b.below(0, len(shape) - 1)} : i64")


def dense(b: Build, shape: Shape) -> str:
    """Elements as raw bytes, or one as a splat in hexadecimal."""
    t = tensor(shape, b.dtype)
    array = b.wild(shape)
    if array.size == 0:
        return f"dense<> : {t}"
    narrow = width_of(b.dtype) < 8
    if array.size == 1 or narrow or b.chance(0.3):
        array = np.full(shape, array.reshape(-1)[0])
        return f"dense<{scalar(array.reshape(-1)[0], b.dtype)}> : {t}"
    return f'dense<"0x{bits_of(array).tobytes().hex().upper()}"> : {t}'


def scalar(value: np.generic, dtype: str) -> str:
    to = numpy_dtype(dtype)
    if dtype == "bool":
        return "true" if value else "false"
    if is_complex(to):
        part = "float32" if dtype == "complex64" else "float64"
        return f"({scalar(value.real, part)}, {scalar(value.imag, part)})"
    if is_integer(to):
        return str(int(value))
    if is_float(to) and width_of(dtype) < 8:  # without NaN and infinities
        return repr(float(value))
    if is_float(to):
        digits = -(-width_of(dtype) // 4)
        return f"0x{np.asarray(value).tobytes()[::-1].hex().upper()[-digits:]}"
    raise AssertionError(dtype)


def draw_constant(b: Build) -> None:
    shape = b.shape()
    b.op([], [(shape, b.dtype)], f"value = {dense(b, shape)}")


def draw_constant_like(b: Build) -> None:
    shape, value = b.shape(), literal(b.dtype, b.below(0, 3 if b.dtype != "bool" else 1))
    b.op([b.argument(b.wild(shape))], [(shape, b.dtype)], f"value = {value}")


def literal(dtype: str, number: int) -> str:
    to = numpy_dtype(dtype)
    if dtype == "bool":
        return "true" if number else "false"
    if is_integer(to):
        return f"{min(number, integer_ends(dtype)[1])} : {mlir_name(dtype)}"
    shown = 2.0**number if dtype == "float8_e8m0fnu" else float(max(number, 1))  # that the dtype holds
    return f"{shown:.6e} : {mlir_name(dtype)}"


DRAWS: Table = {
    "stablehlo.iota": Row(COUNTED, draw_iota),
    "stablehlo.constant": Row(EVERY, draw_constant),
    "chlo.constant": Row(EVERY, draw_constant),
    "chlo.constant_like": Row(tuple(d for d in EVERY if d not in COMPLEX), draw_constant_like),
}
