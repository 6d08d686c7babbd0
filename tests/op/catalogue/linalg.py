# SPDX-License-Identifier: Apache-2.0
"""Triangular matrices, and Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from shardwise import _core
from tests.op import references as ref
from tests.op.case import Application, OpCase
from tests.op.catalogue.instance import Build, Row, Table, ints
from tests.op.inputs import Shape, plain
from tests.op.linalg_references import cholesky, triangular_solve
from tests.op.references import Array

EnumValue = _core.ir.EnumValue


def definite(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Symmetric positive definite matrices where the last two dims are equal."""
    array = plain(shape, dtype, rng, -0.5, 0.5)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return array
    eye = np.eye(shape[-1], dtype=array.dtype)
    return np.asarray((array + np.swapaxes(array, -1, -2)) / 2 + shape[-1] * eye)


# ---- cases -----------------------------------------------------------------------------------------------------------


def cholesky_cases(n: int, dtype: str) -> list[Application]:
    return [
        Application((shape,), partial(cholesky, lower=lower), {"lower": lower}, label=f"{shape}{lower}")
        for shape, lower in [((n, 3, 3), True), ((2, n, 2, 2), False), ((n, n), True)]
    ]


def triangular_solve_cases(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, bool, bool, str, bool]] = [
        ((n, 3, 3), (n, 3, 2), True, True, "NO_TRANSPOSE", False),
        ((2, 3, 3), (2, 3, n), True, False, "TRANSPOSE", False),
        ((2, 3, 3), (2, n, 3), False, True, "ADJOINT", True),
        ((n, 2, 2), (n, 3, 2), False, False, "NO_TRANSPOSE", False),
    ]
    applications = []
    for a, b, left, lower, transpose, unit in rows:
        attrs = {
            "left_side": left,
            "lower": lower,
            "unit_diagonal": unit,
            "transpose_a": EnumValue("stablehlo", "transpose", transpose),
        }
        reference = partial(triangular_solve, left=left, lower=lower, transpose=transpose, unit=unit)
        applications.append(Application((a, b), reference, attrs, label=f"{a}{b}{left}{lower}{transpose}"))
    return applications


def recorded_size(name: str, application: Application) -> Application:
    """Complex numbers from two operands, and how large they are: a float, as references are."""

    def record(trace: Any, operands: Sequence[int]) -> int:
        return int(trace.emit("stablehlo.abs", [trace.emit(name, list(operands), application.attrs or None)[0]])[0])

    return replace(application, record=record)


def fft_cases(n: int, dtype: str) -> list[Application]:
    """How large the numbers of a transform of real numbers are."""
    attrs = {"fft_type": EnumValue("stablehlo", "fft_type", "RFFT"), "fft_length": (6,)}

    def record(trace: Any, operands: Sequence[int]) -> int:
        return int(trace.emit("stablehlo.abs", [trace.emit("stablehlo.fft", list(operands), attrs)[0]])[0])

    rows = [Application(((n, 6),), lambda x: np.asarray(np.abs(np.fft.rfft(ref.wide(x)))), attrs, record=record)]
    return [*rows, _size_of_complex_spectrum(n)]


def _size_of_complex_spectrum(n: int) -> Application:
    """How large the numbers of a transform of complex numbers are; their imaginary parts are cosines."""
    attrs = {"fft_type": EnumValue("stablehlo", "fft_type", "FFT"), "fft_length": (6,)}

    def reference(x: Array) -> Array:
        wide = ref.wide(x)
        return np.asarray(np.abs(np.fft.fft(wide + 1j * np.cos(wide))))

    def record(trace: Any, operands: Sequence[int]) -> int:
        imaginary = trace.emit("stablehlo.cosine", list(operands))[0]
        z = trace.emit("stablehlo.complex", [operands[0], imaginary])[0]
        return int(trace.emit("stablehlo.abs", [trace.emit("stablehlo.fft", [z], attrs)[0]])[0])

    return Application(((n, 6),), reference, attrs, record=record, label="FFT")


CASES: list[OpCase] = [
    OpCase("stablehlo.fft", ("float32", "float64"), fft_cases, plain, "magnitude", 8, special_points="family"),
    OpCase(
        "stablehlo.cholesky", ("float64", "float32"), cholesky_cases, definite, "magnitude", 16, special_points="family"
    ),
    OpCase(
        "stablehlo.triangular_solve",
        ("float64", "float32"),
        triangular_solve_cases,
        definite,
        "magnitude",
        16,
        special_points="family",
    ),
]


# ---- random instances ------------------------------------------------------------------------------------------------


WIDE = ("float32", "float64", "complex64", "complex128")
HALVES = ("float16", "bfloat16")  # XLA rounds each step of a solve, shardwise the result


def square(b: Build) -> Shape:
    n = b.below(0, 5)
    return (*b.pick(((), (), (3,), (2, 2), (0,), (1,))), n, n)


def draw_cholesky(b: Build) -> None:
    shape = square(b)
    x = b.tame(shape).astype(np.complex128 if b.dtype.startswith("complex") else np.float64)
    a = x @ np.conj(np.swapaxes(x, -1, -2)) + (shape[-1] + 1) * np.eye(shape[-1])
    lower = b.chance(0.5)
    b.op([b.argument(a.astype(b.dtype))], [(shape, b.dtype)], f"lower = {str(lower).lower()}")
    b.compare_with("triangle", (8 if b.dtype in HALVES else 64) * (1 + shape[-1]))


def draw_triangular_solve(b: Build) -> None:
    shape = square(b)
    n = shape[-1]
    left, lower, unit = b.chance(0.5), b.chance(0.5), b.chance(0.3)
    transposed = b.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    a = b.tame(shape) + (n + 2) * np.eye(n)
    other = b.below(0, 4)
    rhs = (*shape[:-2], n, other) if left else (*shape[:-2], other, n)
    flags = {"left_side": left, "lower": lower, "unit_diagonal": unit}
    properties = ", ".join(f"{k} = {str(v).lower()}" for k, v in flags.items())
    operands = [b.argument(a.astype(b.dtype)), b.argument(b.tame(rhs))]
    b.op(operands, [(rhs, b.dtype)], f"{properties}, transpose_a = #stablehlo<transpose {transposed}>")
    b.compare_with("scaled", 1e4 if unit else 32 if b.dtype in HALVES else 256)


def draw_fft(b: Build) -> None:
    """Every kind; lengths with large primes too."""
    kind = b.pick(("FFT", "IFFT") if b.dtype.startswith("complex") else ("RFFT", "IRFFT"))
    wide = b.dtype in ("float64", "complex128")
    real, complex_ = ("float64", "complex128") if wide else ("float32", "complex64")
    lengths = [b.pick((1, 2, 3, 4, 5, 8, 11, 12, 16, 30, 37)) for _ in range(b.below(1, 3))]
    batch = b.shape(0, 2)
    half = [*lengths[:-1], lengths[-1] // 2 + 1]
    given, made = {
        "FFT": ((lengths, complex_), (lengths, complex_)),
        "IFFT": ((lengths, complex_), (lengths, complex_)),
        "RFFT": ((lengths, real), (half, complex_)),
        "IRFFT": ((half, complex_), (lengths, real)),
    }[kind]
    x = b.argument(b.tame((*batch, *given[0]), given[1]))
    properties = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {ints(lengths)}"
    b.op([x], [((*batch, *made[0]), made[1])], properties)
    b.compare_with("scaled", 64 + 8 * math.log2(math.prod(lengths) + 1))


DRAWS: Table = {
    "stablehlo.cholesky": Row(WIDE + HALVES, draw_cholesky),
    "stablehlo.triangular_solve": Row(WIDE + HALVES, draw_triangular_solve),
    "stablehlo.fft": Row(WIDE, draw_fft),
}
