# SPDX-License-Identifier: Apache-2.0
"""The functions of np.linalg that call LAPACK (lapack.py).

NumPy raises LinAlgError where LAPACK does not succeed; a traced function cannot, and gives NaN or infinities, as JAX
does.

np.linalg.solve(a, b)      %2 = stablehlo.custom_call @shardwise.solve(%0, %1)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import DTypeError, ShapeError, UnsupportedError, message
from ..recording.tracing import Tracer
from . import lapack
from ._primitives import broadcast, broadcast_shape, common_trace, convert, operand, reshape, transpose
from ._promote import result_dtype
from ._registry import implements
from .lapack import adjoint, real_dtype

__all__: list[str] = []

_NUMPY_1 = int(np.__version__.partition(".")[0]) < 2
_DTYPES = ("float32", "float64", "complex64", "complex128")


class QRResult(NamedTuple):
    """The result of ``np.linalg.qr``."""

    Q: Any
    R: Any


class EighResult(NamedTuple):
    """The result of ``np.linalg.eigh``."""

    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    """The result of ``np.linalg.eig``."""

    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """The result of ``np.linalg.svd``."""

    U: Any
    S: Any
    Vh: Any


class SlogdetResult(NamedTuple):
    """The result of ``np.linalg.slogdet``."""

    sign: Any
    logabsdet: Any


# ---- arguments ------------------------------------------------------------------------------------------------------


def _arrays(function: str, *arrays: Any) -> list[Tracer]:
    """Trace arrays in one dtype of LAPACK: float64 for integers."""
    trace = common_trace(arrays)
    arrays = tuple([x if hasattr(x, "dtype") else np.asarray(x) for x in arrays])
    dtype = result_dtype(*arrays)
    if dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    if dtype.name not in _DTYPES:
        rule = f"{function} takes float32, float64 and complex matrices"
        raise DTypeError(message(f"np.linalg.{function}", rule, dtype.name, "convert it with astype"))
    return [operand(trace, x, dtype) for x in arrays]


def _matrix(function: str, a: Any) -> Tracer:
    (x,) = _arrays(function, a)
    if x.ndim < 2:
        raise ShapeError(message(f"np.linalg.{function}", "a matrix must have two dims or more", f"shape {x.shape}"))
    return x


def _square(function: str, a: Any) -> Tracer:
    x = _matrix(function, a)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(message(f"np.linalg.{function}", "the last two dims must be equal", f"shape {x.shape}"))
    return x


def _lower(function: str, uplo: Any) -> bool:
    if uplo not in ("L", "U", "l", "u"):
        raise ValueError(message(f"np.linalg.{function}", "UPLO must be 'L' or 'U'", repr(uplo)))
    return bool(uplo in "Ll")


def _identity(x: Tracer) -> Tracer:
    eye = operand(x._trace, np.eye(x.shape[-1], dtype=x.dtype), x.dtype)
    return broadcast(eye, x.shape)


# ---- factors --------------------------------------------------------------------------------------------------------


@implements("linalg.cholesky")
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """``numpy.linalg.cholesky``. NaN for a matrix that is not positive definite."""
    return lapack.cholesky(_square("cholesky", a), lower=not upper)


@implements("linalg.qr")
def qr(a: Any, mode: str = "reduced") -> Any:
    """``numpy.linalg.qr`` with modes reduced, complete and r."""
    if mode not in ("reduced", "complete", "r"):
        way_out = "use 'reduced', 'complete' or 'r'"
        raise UnsupportedError(message("np.linalg.qr", "this mode is not supported", repr(mode), way_out))
    q, r = lapack.qr(_matrix("qr", a), full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@implements("linalg.eigh")
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """``numpy.linalg.eigh``."""
    vectors, values = lapack.eigh(_square("eigh", a), _lower("eigh", UPLO))
    return EighResult(values, vectors)


@implements("linalg.eigvalsh")
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """``numpy.linalg.eigvalsh``."""
    return lapack.eigvalsh(_square("eigvalsh", a), _lower("eigvalsh", UPLO))


@implements("linalg.eig")
def eig(a: Any) -> Any:
    """``numpy.linalg.eig``. Complex, also where all imaginary parts are zero: the values are unknown while tracing."""
    return EigResult(*lapack.eig(_square("eig", a)))


@implements("linalg.eigvals")
def eigvals(a: Any) -> Any:
    """``numpy.linalg.eigvals``. Complex, also where all imaginary parts are zero."""
    return lapack.eigvals(_square("eigvals", a))


@implements("linalg.svd")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """``numpy.linalg.svd``. ``hermitian`` changes nothing but the time that NumPy takes."""
    x = _matrix("svd", a)
    return SVDResult(*lapack.svd(x, full_matrices)) if compute_uv else lapack.svdvals(x)


@implements("linalg.svdvals")
def svdvals(x: Any, /) -> Any:
    """``numpy.linalg.svdvals``."""
    return lapack.svdvals(_matrix("svdvals", x))


# ---- solutions ------------------------------------------------------------------------------------------------------


@implements("linalg.solve")
def solve(a: Any, b: Any) -> Any:
    """``numpy.linalg.solve``. Infinities or NaN for a singular matrix."""
    a, b = _arrays("solve", a, b)
    a = _square("solve", a)
    is_vector = b.ndim == 1 or (_NUMPY_1 and b.ndim == a.ndim - 1)
    b = reshape(b, (*b.shape, 1)) if is_vector else b
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ShapeError(
            message("np.linalg.solve", "b must have as many rows as the matrix", f"shapes {a.shape} and {b.shape}")
        )
    batch = broadcast_shape("np.linalg.solve", (a.shape[:-2], b.shape[:-2]))
    x = lapack.solve(broadcast(a, (*batch, *a.shape[-2:])), broadcast(b, (*batch, *b.shape[-2:])))
    return reshape(x, x.shape[:-1]) if is_vector else x


@implements("linalg.inv")
def inv(a: Any) -> Any:
    """``numpy.linalg.inv``. Infinities or NaN for a singular matrix."""
    x = _square("inv", a)
    return lapack.solve(x, _identity(x))


@implements("linalg.det")
def det(a: Any) -> Any:
    """``numpy.linalg.det``."""
    return lapack.det(_square("det", a))


@implements("linalg.slogdet")
def slogdet(a: Any) -> Any:
    """``numpy.linalg.slogdet``."""
    return SlogdetResult(*lapack.slogdet(_square("slogdet", a)))


def _cutoff(s: Any, factor: Any) -> Any:
    """``factor`` times the largest singular value, with a dim for the others."""
    return np.max(s, axis=-1, keepdims=True, initial=0) * np.asarray(factor, s.dtype)[..., None]


@implements("linalg.lstsq")
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """``numpy.linalg.lstsq``: solution, residuals, rank and singular values.

    The residuals of a matrix with more rows than columns are there whatever its rank, which is unknown while tracing.
    """
    a, b = _arrays("lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        rule = "a must be a matrix, and b a vector or matrix with as many rows"
        raise ShapeError(message("np.linalg.lstsq", rule, f"shapes {a.shape} and {b.shape}"))
    m, n = a.shape
    columns = reshape(b, (m, 1)) if b.ndim == 1 else b
    eps = float(np.finfo(a.dtype).eps)
    factor = eps * max(m, n) if rcond is None else eps if rcond == -1 else rcond
    u, s, vh = lapack.svd(a)
    kept = s > _cutoff(s, factor)
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(a.dtype)
    x = adjoint(vh) @ (inverse[:, None] * (adjoint(u) @ columns))
    if m > n:
        residuals: Any = np.sum(np.square(np.abs(columns - a @ x)), axis=0)
    else:
        residuals = operand(a._trace, np.zeros(0, real_dtype(a.dtype)), real_dtype(a.dtype))
    solution = reshape(x, (n,)) if b.ndim == 1 else x
    return solution, residuals, np.sum(kept, dtype=np.int32), s


@implements("linalg.pinv")
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = 0) -> Any:
    """``numpy.linalg.pinv``. ``hermitian`` changes nothing but the time that NumPy takes."""
    x = _matrix("pinv", a)
    if rcond is None:
        by_size = rtol is None
        rcond = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps) if by_size else rtol or 1e-15
    u, s, vh = lapack.svd(x)
    kept = s > _cutoff(s, rcond)
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(x.dtype)
    return adjoint(vh) @ (inverse[..., None] * adjoint(u))


@implements("linalg.matrix_rank")
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:  # noqa: N803
    """``numpy.linalg.matrix_rank``. ``hermitian`` changes nothing but the time that NumPy takes."""
    (x,) = _arrays("matrix_rank", A)
    if x.ndim < 2:
        return np.any(x != 0).astype(np.int64)
    s = lapack.svdvals(x)
    if tol is None:
        factor = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps) if rtol is None else rtol
        return np.sum(s > _cutoff(s, factor), axis=-1)
    return np.sum(s > np.asarray(tol)[..., None], axis=-1)


@implements("linalg.cond")
def cond(x: Any, p: Any = None) -> Any:
    """``numpy.linalg.cond``."""
    matrix = _matrix("cond", x)
    if p in (None, 2, -2):
        s = lapack.svdvals(matrix)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    inverse = inv(_square("cond", matrix))
    return np.linalg.norm(matrix, p, (-2, -1)) * np.linalg.norm(inverse, p, (-2, -1))


@implements("linalg.matrix_power")
def matrix_power(a: Any, n: Any) -> Any:
    """``numpy.linalg.matrix_power``; negative powers are of the inverse."""
    if n < 0:
        return matrix_power(inv(a), -n)
    result: Any = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype, like=a), a.shape)
    power = a
    while n:
        result = result @ power if n % 2 else result
        n //= 2
        power = power @ power if n else power
    return result


@implements("linalg.tensorinv")
def tensorinv(a: Any, ind: int = 2) -> Any:
    """``numpy.linalg.tensorinv``."""
    (x,) = _arrays("tensorinv", a)
    if ind <= 0:
        raise ValueError(message("np.linalg.tensorinv", "ind must be positive", ind))
    rows, columns = math.prod(x.shape[:ind]), math.prod(x.shape[ind:])
    _expect_square("tensorinv", x.shape, rows, columns)
    return reshape(inv(reshape(x, (rows, columns))), (*x.shape[ind:], *x.shape[:ind]))


@implements("linalg.tensorsolve")
def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Any:
    """``numpy.linalg.tensorsolve``."""
    x, y = _arrays("tensorsolve", a, b)
    if axes is not None:
        kept = [d for d in range(x.ndim) if d not in axes]
        x = transpose(x, (*kept, *axes))
    shape = x.shape[y.ndim :]
    _expect_square("tensorsolve", x.shape, math.prod(x.shape[: y.ndim]), math.prod(shape))
    return reshape(solve(reshape(x, (y.size, y.size)), reshape(y, (y.size,))), shape)


def _expect_square(function: str, shape: tuple[int, ...], rows: int, columns: int) -> None:
    if rows != columns:
        rule = "the products of the first and of the other sizes must be equal"
        raise ShapeError(message(f"np.linalg.{function}", rule, f"shape {shape}"))


def norm_by_singular_values(x: Any, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Norms 2, -2 and nuc of matrices."""
    if x.dtype.name not in _DTYPES:
        x = convert(x, np.dtype(np.float64))
    s = lapack.svdvals(np.moveaxis(x, axes, (-2, -1)))
    if order == "nuc":
        result: Any = np.sum(s, axis=-1)
    else:
        result = np.max(s, axis=-1, initial=0) if order == 2 else np.min(s, axis=-1)
    return np.expand_dims(result, tuple(sorted(axes))) if keepdims else result
