# SPDX-License-Identifier: Apache-2.0
"""Rows of products, convolutions, spectra and factorizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg

from .row import Make, Row, drawn, flat, one_op, side, square, type_of, type_text

# ---- products -------------------------------------------------------------------------------------------------------


def matrices(dtype: str, *shapes: Callable[[int], tuple[int, ...]]) -> Make:
    """Arrays of shapes that are given for the side of a square of n elements."""
    return lambda n: tuple(drawn(shape(side(n)), dtype, -1, 1, seed) for seed, shape in enumerate(shapes))


def square_pair(share: int) -> tuple[Callable[[int], tuple[int, ...]], ...]:
    """Two square matrices of a fraction of the side."""
    return (lambda s: (s // share, s // share),) * 2


def batch_pair(size: int) -> tuple[Callable[[int], tuple[int, ...]], ...]:
    """Two batches of small square matrices."""
    return (lambda s: (max(s * s // (size * size), 1), size, size),) * 2


PRODUCTS = [
    *(
        Row(f"matmul n x n {dtype}", matrices(dtype, *square_pair(2)), np.matmul)
        for dtype in ("float32", "float64", "complex64")
    ),
    Row("matmul n x n int32", matrices("int32", *square_pair(4)), np.matmul),
    Row("matmul n x n bfloat16", matrices("bfloat16", *square_pair(8)), np.matmul),
    Row("matmul x.T @ y float32", matrices("float32", *square_pair(2)), lambda x, y: x.T @ y),
    Row("matmul x @ y.T float32", matrices("float32", *square_pair(2)), lambda x, y: x @ y.T),
    Row("matmul matrix @ vector float32", matrices("float32", lambda s: (s, s), lambda s: (s,)), np.matmul),
    Row("matmul vector @ matrix float32", matrices("float32", lambda s: (s,), lambda s: (s, s)), np.matmul),
    Row("matmul thin float32", matrices("float32", lambda s: (s * 8, s // 8), lambda s: (s // 8, 8)), np.matmul),
    Row("matmul batch of 64 x 64 float32", matrices("float32", *batch_pair(64)), np.matmul),
    Row("matmul batch of 8 x 8 float32", matrices("float32", *batch_pair(8)), np.matmul),
    Row("dot of vectors float32", flat(2, "float32"), np.dot),
    Row("outer float32", matrices("float32", lambda s: (s,), lambda s: (s,)), np.outer),
    Row(
        "attention scores float32",
        matrices("float32", lambda s: (2, s // 4, 8, 64), lambda s: (2, s // 4, 8, 64)),
        lambda q, k: np.einsum("bshd,bthd->bhst", q, k),
        peer=lambda q, k: np.matmul(q.transpose(0, 2, 1, 3), k.transpose(0, 2, 3, 1)),
    ),
]

# ---- convolutions ---------------------------------------------------------------------------------------------------


def convolution_text(stride: int, low: int, groups: int) -> Callable[..., str]:
    def text(x: Any, kernel: Any) -> str:
        taps = kernel.shape[0]
        out = [(size + 2 * low - taps) // stride + 1 for size in x.shape[1:3]]
        to = type_text((x.shape[0], *out, kernel.shape[3]), np.float32)
        body = (
            "  %r = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],"
            f" window = {{stride = [{stride}, {stride}], pad = [[{low}, {low}], [{low}, {low}]]}}"
            f" {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}"
            f" : ({type_of(x)}, {type_of(kernel)}) -> {to}"
        )
        return (
            f"func.func @main(%arg0: {type_of(x)}, %arg1: {type_of(kernel)}) -> {to} {{\n{body}\n  return %r : {to}\n}}"
        )

    return text


def _windows(x: Any, taps: int, stride: int, low: int) -> Any:
    """(batch, rows, columns, features, taps, taps), a view of the padded images."""
    padded = np.pad(x, ((0, 0), (low, low), (low, low), (0, 0))) if low else x
    return np.lib.stride_tricks.sliding_window_view(padded, (taps, taps), axis=(1, 2))[:, ::stride, ::stride]


def im2col(stride: int, low: int) -> Callable[..., Any]:
    """The same in NumPy: windows as rows of a matrix, and one product of BLAS."""

    def peer(x: Any, kernel: Any) -> Any:
        taps, features, outputs = kernel.shape[0], kernel.shape[2], kernel.shape[3]
        windows = _windows(x, taps, stride, low)
        columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, taps * taps * features)
        return np.matmul(columns, kernel.reshape(-1, outputs)).reshape(*windows.shape[:3], outputs)

    return peer


def by_taps(stride: int, low: int, combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A sum over the taps: each adds `combine` of the shifted images and its part of the kernel."""

    def peer(x: Any, kernel: Any) -> Any:
        taps = kernel.shape[0]
        padded = np.pad(x, ((0, 0), (low, low), (low, low), (0, 0))) if low else x
        rows, columns = ((size - taps) // stride + 1 for size in padded.shape[1:3])
        total = None
        for i in range(taps):
            for j in range(taps):
                shifted = padded[:, i : i + stride * rows : stride, j : j + stride * columns : stride]
                term = combine(shifted, kernel[i, j])
                total = term if total is None else np.add(total, term, out=total)
        return total

    return peer


def depthwise_peers(stride: int, low: int) -> tuple[Callable[..., Any], ...]:
    """NumPy's spellings of one kernel per feature: products of shifted images, and contractions of windows."""

    def contracted(optimize: bool) -> Callable[..., Any]:
        return lambda x, kernel: np.einsum(
            "bhwfij,ijf->bhwf", _windows(x, kernel.shape[0], stride, low), kernel[:, :, 0], optimize=optimize
        )

    return by_taps(stride, low, lambda x, weight: x * weight[0]), contracted(False), contracted(True)


def convolution(
    name: str, size: int, batch: int, features: int, outputs: int, taps: int, stride: int = 1, groups: int = 1
) -> Row:
    low = taps // 2
    if groups > 1:
        assert groups == features == outputs, "only one kernel per feature has a peer"
        peers = depthwise_peers(stride, low)
    else:
        peers = (im2col(stride, low), by_taps(stride, low, np.matmul))

    def arguments(n: int) -> tuple[Any, ...]:
        scale = max((1 << 20) // n, 1)
        shape = (max(batch // scale, 1), max(size // scale, taps), max(size // scale, taps), features)
        return drawn(shape, "float32", -1, 1), drawn((taps, taps, features // groups, outputs), "float32", -1, 1, 1)

    return Row(
        f"convolution {name}",
        arguments,
        text=convolution_text(stride, low, groups),
        peer=peers[0],
        more_peers=peers[1:],
    )


CONVOLUTIONS = [
    convolution("3x3, 64 -> 64 of 56x56", 56, 5, 64, 64, 3),
    convolution("3x3, 256 -> 256 of 14x14", 14, 20, 256, 256, 3),
    convolution("3x3 stride 2, 64 -> 128 of 56x56", 56, 5, 64, 128, 3, 2),
    convolution("1x1, 256 -> 64 of 56x56", 56, 1, 256, 64, 1),
    convolution("7x7 stride 2, 3 -> 64 of 224x224", 224, 7, 3, 64, 7, 2),
    convolution("5x5, 1 -> 32 of 28x28", 28, 256, 1, 32, 5),
    convolution("depthwise 3x3, 64 of 56x56", 56, 5, 64, 64, 3, 1, 64),
]

# ---- spectra --------------------------------------------------------------------------------------------------------


def spectrum(kind: str, dtype: str, length: Callable[[int], int], name: str) -> Row:
    """Of rows of one length."""
    function, peer = getattr(np.fft, kind), getattr(scipy.fft, kind)

    def arguments(n: int) -> tuple[Any, ...]:
        size = length(n)
        return (drawn((max(n // size, 1), size), dtype, -1, 1),)

    return Row(f"{kind} {dtype}, {name}", arguments, function, peer=peer)


SPECTRA = [
    *(
        spectrum("fft", dtype, length, name)
        for dtype in ("complex64", "complex128")
        for length, name in (
            (lambda n: n, "one row"),
            (side, "rows"),
            (lambda n: 1000 if n >= 1000 else 10, "rows of 1000"),
            (lambda n: 1009 if n >= 1009 else 11, "rows of 1009, a prime"),
        )
    ),
    spectrum("rfft", "float32", side, "rows"),
    spectrum("rfft", "float64", side, "rows"),
    spectrum("irfft", "complex64", side, "rows"),
    spectrum("ifft", "complex64", side, "rows"),
    Row("fft2 complex64", square("complex64", -1, 1), np.fft.fft2, peer=scipy.fft.fft2),
]

# ---- factorizations -------------------------------------------------------------------------------------------------


def definite(dtype: str, size: int, batch: int = 0) -> Make:
    """Symmetric positive definite matrices: (size, size), or a batch of them; smaller for fewer elements."""

    def arguments(n: int) -> tuple[Any, ...]:
        s = min(size, side(n))
        a = drawn((*((max(n // (s * s), 1),) if batch else ()), s, s), dtype, -1, 1)
        return (a @ np.swapaxes(a, -1, -2) + s * np.eye(s, dtype=a.dtype),)

    return arguments


def with_right(make: Make, columns: int) -> Make:
    def arguments(n: int) -> tuple[Any, ...]:
        (a,) = make(n)
        return a, drawn((*a.shape[:-1], columns), str(a.dtype), -1, 1, 1)

    return arguments


def factors(name: str, function: Callable[..., Any], make: Callable[..., Make], size: int) -> list[Row]:
    return [
        Row(f"{name} of {size} x {size} {dtype}", make(dtype, size), function) for dtype in ("float32", "float64")
    ] + [Row(f"{name} of a batch of 32 x 32 float64", make("float64", 32, 1), function)]


TRIANGULAR = "left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>"

FACTORIZATIONS = [
    *factors("cholesky", np.linalg.cholesky, definite, 512),
    *factors("qr", np.linalg.qr, definite, 256),
    *factors("svd", np.linalg.svd, definite, 192),
    *factors("eigh", np.linalg.eigh, definite, 256),
    *factors("inv", np.linalg.inv, definite, 256),
    *factors("det", np.linalg.det, definite, 256),
    Row("solve of 512 x 512 float64", with_right(definite("float64", 512), 16), np.linalg.solve),
    Row(
        "triangular_solve of 512 x 512 float64",
        with_right(definite("float64", 512), 128),
        text=one_op("stablehlo.triangular_solve", TRIANGULAR, lambda a, b: type_of(b)),
        peer=lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True, check_finite=False),
    ),
]

ROWS: list[Row] = [*PRODUCTS, *CONVOLUTIONS, *SPECTRA, *FACTORIZATIONS]
