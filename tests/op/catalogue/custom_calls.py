# SPDX-License-Identifier: Apache-2.0
"""The custom calls of linear algebra: LAPACK's, which JAX prints on CPU, and those that it prints on TPU.

Each has a row, stablehlo.custom_call@TARGET. A call whose results are unique is compared with XLA:CPU. The others, and
those that XLA:CPU lacks, are compared with their definition: see invariants.py. One matrix of a batch may hold NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from shardwise.dtypes import is_complex, numpy_dtype
from tests.op.case import Application, OpCase
from tests.op.catalogue.instance import LAPACK_LETTERS, Build, Row, Table
from tests.op.catalogue.linalg import definite
from tests.op.catalogue.values import parts_of
from tests.op.inputs import Shape
from tests.op.linalg_references import linear_solve
from tests.op.references import Array

DTYPES = ("float32", "float64", "complex64", "complex128")
Core = tuple[Shape, str]  # the shape of one matrix, vector or scalar, and its dtype
# Rounding errors of LAPACK in units of eps times the largest element of the result.
STEPS = 2048


def custom_call_cases(n: int, dtype: str) -> list[Application]:
    attrs: dict[str, Any] = {"call_target_name": "shardwise.solve"}
    return [
        Application((a, b), linear_solve, attrs, result_shape=b, result_dtype=dtype, label=f"{a}{b}")
        for a, b in [((n, 3, 3), (n, 3, 2)), ((3, 3), (3, n)), ((n, n), (n, 2))]
    ]


CASES: list[OpCase] = [
    OpCase(
        "stablehlo.custom_call",
        ("float64", "float32"),
        custom_call_cases,
        definite,
        "magnitude",
        16,
        special_points="family",
    ),
]


def batch_of(b: Build) -> Shape:
    """None, an even one, one that no mesh divides, an empty one."""
    return tuple(b.pick(((), (1,), (3,), (4,), (5,), (7,), (2, 3), (0,))))


def matrices(b: Build, batch: Shape, rows: int, columns: int) -> Array:
    """Far from singular, with rows in any order."""
    x = b.rng.normal(0, 1, (*batch, rows, columns))
    if is_complex(numpy_dtype(b.dtype)):
        x = x + 1j * b.rng.normal(0, 1, x.shape)
    x = x + 4 * np.eye(rows, columns)
    return np.take(x, b.rng.permutation(rows), axis=-2).astype(b.dtype)


def hermitian(b: Build, batch: Shape, n: int) -> Array:
    """Positive definite, with distinct eigenvalues."""
    x = matrices(b, batch, n, n).astype(np.complex128 if is_complex(numpy_dtype(b.dtype)) else np.float64)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + np.diag(np.arange(n) + 1.0)).astype(b.dtype)


def with_nan(b: Build, x: Array, infinity: bool = False) -> Array:
    """A NaN, or an infinity, in the first matrix of some batches."""
    if x.ndim > 2 and x.size and b.chance(0.25):
        x = x.copy()
        x.reshape(-1, *x.shape[-2:])[0, 0, 0] = np.inf if infinity and b.chance(0.4) else np.nan
    return x


def layout(batch: int, core: int) -> str:
    order = [*range(batch, batch + core), *range(batch - 1, -1, -1)]
    return f"dense<{order or ''}> : tensor<{len(order)}xindex>"


def call(
    b: Build, stem: str, arrays: Sequence[Array], batch: Shape, results: Sequence[Core], options: str = ""
) -> None:
    """A call of LAPACK as JAX prints it: matrices in column-major order."""
    core = lambda shape: len(shape) - len(batch)  # noqa: E731
    given = ", ".join(layout(len(batch), core(x.shape)) for x in arrays)
    made = ", ".join(layout(len(batch), len(shape)) for shape, _ in results)
    properties = (
        f'call_target_name = "lapack_{LAPACK_LETTERS[b.dtype]}{stem}_ffi", has_side_effect = false, '
        f"api_version = 4 : i32, backend_config = {{{options}}}, operand_layouts = [{given}], result_layouts = [{made}]"
    )
    b.op([b.argument(x) for x in arrays], [((*batch, *shape), dtype) for shape, dtype in results], properties)


def letter(name: str, value: str) -> str:
    return f"{name} = {ord(value)} : ui8"


def sizes(b: Build) -> tuple[Shape, int, int, int]:
    m, n = b.below(1, 5), b.below(1, 5)
    return batch_of(b), m, n, min(m, n)


INFO: Core = ((), "int32")


def potrf(b: Build) -> None:
    batch, _, n, _ = sizes(b)
    a = with_nan(b, hermitian(b, batch, n), infinity=True)
    call(b, "potrf", [a], batch, [((n, n), b.dtype), INFO], letter("uplo", b.pick("LU")))
    b.compare_with("scaled", STEPS)


def getrf(b: Build) -> None:
    batch, m, n, k = sizes(b)
    a = with_nan(b, matrices(b, batch, m, n), infinity=True)
    call(b, "getrf", [a], batch, [((m, n), b.dtype), ((k,), "int32"), INFO])
    b.compare_with("scaled", STEPS)


def trsm(b: Build) -> None:
    batch, m, n, _ = sizes(b)
    side = b.pick("LR")
    s = m if side == "L" else n
    a, diagonal = (matrices(b, batch, s, s) / 8 + 2 * np.eye(s)).astype(b.dtype), b.pick("NU")
    a = with_nan(b, a) if diagonal == "N" else a  # a unit diagonal is not read
    options = [letter("diag", diagonal), letter("side", side), letter("trans_x", b.pick("NTC"))]
    right = matrices(b, batch, m, n)
    call(b, "trsm", [a, right], batch, [((m, n), b.dtype)], ", ".join([*options, letter("uplo", b.pick("LU"))]))
    b.compare_with("scaled", STEPS)


def geqrf(b: Build) -> None:
    batch, m, n, k = sizes(b)
    call(
        b, "geqrf", [with_nan(b, matrices(b, batch, m, n), infinity=True)], batch, [((m, n), b.dtype), ((k,), b.dtype)]
    )
    b.compare_with("scaled", STEPS)


def packed(b: Build, batch: Shape, m: int, n: int) -> tuple[Array, Array]:
    """Reflectors as geqrf leaves them, and their factors."""
    a = matrices(b, batch, m, n).astype(np.complex128 if is_complex(numpy_dtype(b.dtype)) else np.float64)
    h, tau = np.linalg.qr(a, "raw")
    return np.swapaxes(h, -1, -2).astype(b.dtype), tau.astype(b.dtype)


def orgqr(b: Build) -> None:
    batch = batch_of(b)
    n = b.below(1, 4)
    m = n + b.below(0, 2)
    stem = "ungqr" if is_complex(numpy_dtype(b.dtype)) else "orgqr"
    call(b, stem, packed(b, batch, m, n), batch, [((m, n), b.dtype)])
    b.compare_with("scaled", STEPS)


def gehrd(b: Build) -> None:
    batch, n = batch_of(b), b.below(2, 5)
    a = with_nan(b, matrices(b, batch, n, n))
    options = f"low = 1 : i32, high = {n} : i32"
    call(b, "gehrd", [a], batch, [((n, n), b.dtype), ((n - 1,), b.dtype), INFO], options)
    b.compare_with("scaled", STEPS)


def sytrd(b: Build) -> None:
    batch, n = batch_of(b), b.below(2, 5)
    stem, real = ("hetrd" if is_complex(numpy_dtype(b.dtype)) else "sytrd"), parts_of(b.dtype).name
    made = [((n, n), b.dtype), ((n,), real), ((n - 1,), real), ((n - 1,), b.dtype), INFO]
    call(b, stem, [with_nan(b, hermitian(b, batch, n))], batch, made, letter("uplo", b.pick("LU")))
    b.compare_with("scaled", STEPS)


def gtsv(b: Build) -> None:
    batch, n, other = batch_of(b), b.below(2, 5), b.below(1, 3)
    lower, upper = (b.tame((*batch, n)) for _ in range(2))
    diagonal = (b.tame((*batch, n)) + 5).astype(b.dtype)
    lower[..., 0] = upper[..., -1] = 0
    arrays = [lower, diagonal, upper, matrices(b, batch, n, other)]
    call(b, "gtsv", arrays, batch, [*[((n,), b.dtype)] * 3, ((n, other), b.dtype), INFO])
    b.compare_with("scaled", STEPS)


def syevd(b: Build) -> None:
    """The triangle that uplo does not name holds other numbers."""
    batch, n = batch_of(b), b.below(1, 5)
    stem, real, uplo = ("heevd" if is_complex(numpy_dtype(b.dtype)) else "syevd"), parts_of(b.dtype).name, b.pick("LU")
    options = f"{letter('mode', b.pick('VVN'))}, {letter('uplo', uplo)}"
    call(b, stem, [one_triangle(b, batch, n, uplo)], batch, [((n, n), b.dtype), ((n,), real), INFO], options)
    b.compare_with("definition", STEPS)


def one_triangle(b: Build, batch: Shape, n: int, uplo: str) -> Array:
    a = hermitian(b, batch, n)
    other = np.triu(np.full((n, n), 7), 1) if uplo == "L" else np.tril(np.full((n, n), 7), -1)
    return with_nan(b, (a + other).astype(b.dtype))


def svd(b: Build, stem: str) -> None:
    batch, m, n, k = sizes(b)
    mode = b.pick("ASN")
    full = mode == "A"
    left, right = ((m, m), (n, n)) if full else ((m, k), (k, n))
    made = [((m, n), b.dtype), ((k,), parts_of(b.dtype).name), (left, b.dtype), (right, b.dtype), INFO]
    call(b, stem, [with_nan(b, matrices(b, batch, m, n))], batch, made, letter("mode", mode))
    b.compare_with("definition", STEPS)


def eigenvalues(b: Build, n: int) -> list[Core]:
    """Complex ones, or the real and the imaginary parts."""
    complex_ = is_complex(numpy_dtype(b.dtype))
    return [((n,), b.dtype)] * (1 if complex_ else 2)


def geev(b: Build) -> None:
    batch, n = batch_of(b), b.below(1, 5)
    vectors = {"float32": "complex64", "float64": "complex128"}.get(b.dtype, b.dtype)
    options = f"{letter('compute_left', b.pick('VVN'))}, {letter('compute_right', b.pick('VVN'))}"
    made = [*eigenvalues(b, n), *[((n, n), vectors)] * 2, INFO]
    call(b, "geev", [with_nan(b, matrices(b, batch, n, n))], batch, made, options)
    b.compare_with("definition", STEPS)


def gees(b: Build) -> None:
    batch, n = batch_of(b), b.below(1, 5)
    made = [*[((n, n), b.dtype)] * 2, *eigenvalues(b, n), INFO, INFO]
    a = with_nan(b, matrices(b, batch, n, n))
    call(b, "gees", [a], batch, made, f"{letter('mode', b.pick('VVN'))}, {letter('sort', 'N')}")
    b.compare_with("definition", STEPS)


def on_tpu(b: Build, target: str) -> None:
    batch, m, n, k = sizes(b)
    config, arrays = "", [matrices(b, batch, m, n)]
    results: list[Core] = [((m, n), b.dtype)]
    if target == "LuDecomposition":
        results += [((k,), "int32"), ((m,), "int32")]
    elif target == "Qr":
        results += [((k,), b.dtype)]
    elif target == "Eigh":
        uplo = b.pick("LU")
        config, arrays = f"{int(uplo == 'L')},1,100,1e-6", [one_triangle(b, batch, n, uplo)]
        results = [((n, n), b.dtype), ((n,), parts_of(b.dtype).name)]
    else:
        arrays = list(packed(b, batch, max(m, n), k))
        results = [((max(m, n), k), b.dtype)]
    if target in ("LuDecomposition", "Qr"):
        arrays = [with_nan(b, arrays[0])]
    properties = f'call_target_name = "{target}", has_side_effect = false, backend_config = "{config}"'
    b.op([b.argument(x) for x in arrays], [((*batch, *shape), dtype) for shape, dtype in results], properties)
    b.compare_with("definition", STEPS)


MAKERS: dict[str, Callable[[Build], None]] = {
    "getrf": getrf, "trsm": trsm, "geqrf": geqrf, "orgqr": orgqr, "gehrd": gehrd, "sytrd": sytrd, "gtsv": gtsv,
    "syevd": syevd, "gesdd": partial(svd, stem="gesdd"), "gesvd": partial(svd, stem="gesvd"), "geev": geev,
    "gees": gees,
    **{target: partial(on_tpu, target=target) for target in (
        "LuDecomposition", "Qr", "ProductOfElementaryHouseholderReflectors", "Eigh",
    )},
}  # fmt: skip
DRAWS: Table = {
    "stablehlo.custom_call": Row(DTYPES, potrf),
    **{f"stablehlo.custom_call@{name}": Row(DTYPES, make) for name, make in MAKERS.items()},
}
