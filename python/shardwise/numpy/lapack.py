# SPDX-License-Identifier: Apache-2.0
"""Functions of LAPACK with gradients: the ops and custom calls behind np.linalg.

The last two dims are the matrix, the others a batch, which may be sharded. Where LAPACK does not succeed, results are
NaN. Gradients follow JAX: those of a Hermitian matrix are Hermitian, and cotangents of complex values are those of the
transposed map. The formulas below are for the conjugated ones, as in the literature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..errors import UnsupportedError, message
from ..recording.tracing import Tracer
from ._primitives import iota
from .calls import call, gradient_of

__all__ = [
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "lu",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "triangular_solve",
]

_TRANSPOSES = {t: _core.ir.EnumValue("stablehlo", "transpose", t) for t in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")}


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 of float32 and complex64, else float64."""
    return np.dtype(np.float32 if dtype in (np.float32, np.complex64) else np.float64)


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """complex64 of float32 and complex64, else complex128."""
    return np.dtype(np.complex64 if dtype in (np.float32, np.complex64) else np.complex128)


# ---- the calls ------------------------------------------------------------------------------------------------------


def cholesky(x: Tracer, lower: bool = True) -> Tracer:
    """The triangular factor of positive definite matrices; only one triangle of them is read."""
    return x._trace.emit("stablehlo.cholesky", (x,), {"lower": lower})


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = True,
    lower: bool = True,
    transpose: str = "NO_TRANSPOSE",
    unit_diagonal: bool = False,
) -> Tracer:
    """Solve op(a) x = b, or x op(a) = b, for triangular matrices ``a``."""
    attrs = {
        "left_side": left_side,
        "lower": lower,
        "transpose_a": _TRANSPOSES[transpose],
        "unit_diagonal": unit_diagonal,
    }
    x: Tracer = a._trace.emit("stablehlo.triangular_solve", (a, b), attrs)
    return x


def lu(x: Tracer) -> tuple[Tracer, Tracer, Tracer]:
    """L and U in one matrix, the pivots from 0, and the permutation: ``x[permutation] = L @ U``."""
    *batch, m, n = x.shape
    types = [(x.shape, x.dtype), ((*batch, min(m, n)), np.int32), ((*batch, m), np.int32)]
    packed, pivots, permutation = call("shardwise.lu", x._trace, [x], types)
    return packed, pivots, permutation


def solve(a: Tracer, b: Tracer) -> Tracer:
    """Solve a x = b. A singular matrix gives infinities or NaN."""
    (x,) = call("shardwise.solve", a._trace, [a, b], [(b.shape, b.dtype)])
    return x


def det(x: Tracer) -> Tracer:
    """The determinant."""
    (result,) = call("shardwise.det", x._trace, [x], [(x.shape[:-2], x.dtype)])
    return result


def slogdet(x: Tracer) -> tuple[Tracer, Tracer]:
    """The sign and the logarithm of the absolute determinant."""
    sign, logarithm = call(
        "shardwise.slogdet", x._trace, [x], [(x.shape[:-2], x.dtype), (x.shape[:-2], real_dtype(x.dtype))]
    )
    return sign, logarithm


def qr(x: Tracer, full_matrices: bool = False) -> tuple[Tracer, Tracer]:
    """Q and R."""
    *batch, m, n = x.shape
    columns = m if full_matrices else min(m, n)
    q, r = call("shardwise.qr", x._trace, [x], [((*batch, m, columns), x.dtype), ((*batch, columns, n), x.dtype)])
    return q, r


def eigh(x: Tracer, lower: bool = True) -> tuple[Tracer, Tracer]:
    """Eigenvectors and ascending eigenvalues of Hermitian matrices; only one triangle of them is read."""
    types = [(x.shape, x.dtype), (x.shape[:-1], real_dtype(x.dtype))]
    vectors, values = call("shardwise.eigh", x._trace, [x], types, _uplo(lower))
    return vectors, values


def eigvalsh(x: Tracer, lower: bool = True) -> Tracer:
    """Ascending eigenvalues of Hermitian matrices."""
    (values,) = call("shardwise.eigvalsh", x._trace, [x], [(x.shape[:-1], real_dtype(x.dtype))], _uplo(lower))
    return values


def _uplo(lower: bool) -> dict[str, int]:
    return {"uplo": ord("L" if lower else "U")}


def eig(x: Tracer) -> tuple[Tracer, Tracer]:
    """Complex eigenvalues and eigenvectors, which have length 1 and a largest component that is real."""
    dtype = complex_dtype(x.dtype)
    values, vectors = call("shardwise.eig", x._trace, [x], [(x.shape[:-1], dtype), (x.shape, dtype)])
    return values, vectors


def eigvals(x: Tracer) -> Tracer:
    """Complex eigenvalues."""
    (values,) = call("shardwise.eigvals", x._trace, [x], [(x.shape[:-1], complex_dtype(x.dtype))])
    return values


def svd(x: Any, full_matrices: bool = False) -> tuple[Tracer, Tracer, Tracer]:
    """U, descending singular values, and the adjoint of V."""
    *batch, m, n = x.shape
    k = min(m, n)
    columns, rows = (m, n) if full_matrices else (k, k)
    types = [((*batch, m, columns), x.dtype), ((*batch, k), real_dtype(x.dtype)), ((*batch, rows, n), x.dtype)]
    u, s, vh = call("shardwise.svd", x._trace, [x], types)
    return u, s, vh


def svdvals(x: Tracer) -> Tracer:
    """Descending singular values."""
    *batch, m, n = x.shape
    (values,) = call("shardwise.svdvals", x._trace, [x], [((*batch, min(m, n)), real_dtype(x.dtype))])
    return values


# ---- matrices in formulas -------------------------------------------------------------------------------------------


def transposed(x: Any) -> Any:
    """With the last two dims exchanged."""
    return np.swapaxes(x, -1, -2)


def _is_complex(x: Any) -> bool:
    return bool(x.dtype.kind == "c")


def _conj(x: Any) -> Any:
    return np.conj(x) if _is_complex(x) else x


def adjoint(x: Any) -> Any:
    """The conjugated transpose."""
    return _conj(transposed(x))


def _indices(x: Tracer) -> tuple[Tracer, Tracer]:
    last = len(x.shape) - 1
    return iota(x._trace, x.shape, last - 1, np.int32), iota(x._trace, x.shape, last, np.int32)


def _upper(x: Tracer) -> Any:
    rows, columns = _indices(x)
    return np.where(rows <= columns, x, 0)


def _strictly_lower(x: Tracer) -> Any:
    rows, columns = _indices(x)
    return np.where(rows > columns, x, 0)


def diagonal_matrix(x: Any, like: Tracer) -> Any:
    """Vectors on the diagonal of square matrices of the dtype and shape of ``like``."""
    rows, columns = _indices(like)
    return np.where(rows == columns, x[..., None, :].astype(like.dtype), 0)


def _identity(x: Tracer) -> Any:
    rows, columns = _indices(x)
    return (rows == columns).astype(x.dtype)


def _symmetric_part(x: Any) -> Any:
    return (x + adjoint(x)) / 2


def _inverse_adjoint(x: Tracer) -> Any:
    return solve(adjoint(x), _identity(x))


def _conjugated(vjp: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient for conjugated cotangents as one for JAX's."""

    def of_jax(operands: Any, results: Any, cotangents: Any, **options: Any) -> Any:
        made = vjp(operands, results, tuple([_conj(ct) for ct in cotangents]), **options)
        return tuple([None if ct is None else _conj(ct) for ct in made])

    return of_jax


# ---- gradients ------------------------------------------------------------------------------------------------------


@gradient_of("shardwise.solve")
@_conjugated
def _solve_vjp(operands: Any, results: Any, cotangents: Any) -> Any:
    gb = solve(adjoint(operands[0]), cotangents[0])
    return -(gb @ adjoint(results[0])), gb


@gradient_of("shardwise.det")
@_conjugated
def _det_vjp(operands: Any, results: Any, cotangents: Any) -> Any:
    x, determinant = operands[0], results[0]
    singular = (determinant == 0)[..., None, None]
    # Both ways are computed, so neither may see what only the other one can take.
    regular = np.where(singular, _identity(x), x)
    rows, columns = _indices(x)
    spread = np.where(rows == columns, (columns + 1).astype(x.dtype), 0)  # distinct singular values
    by_inverse = _conj(determinant)[..., None, None] * _inverse_adjoint(regular)
    cofactors = np.where(singular, _adjoint_cofactors(np.where(singular, x, spread)), by_inverse)
    return (cotangents[0][..., None, None] * cofactors,)


def _adjoint_cofactors(x: Any) -> Any:
    """conj(det(x)) times the adjoint of the inverse, also for singular matrices: products of singular values."""
    u, s, vh = svd(x)
    n = x.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :])
    signs = _conj(det(u) * det(vh))[..., None, None]
    return signs * ((u * np.prod(others, axis=-1)[..., None, :].astype(x.dtype)) @ vh)


@gradient_of("shardwise.slogdet")
@_conjugated
def _slogdet_vjp(operands: Any, results: Any, cotangents: Any) -> Any:
    trace = cotangents[1].astype(operands[0].dtype)
    if _is_complex(operands[0]):
        trace = trace - 1j * np.imag(np.conj(cotangents[0]) * results[0])
    return (trace[..., None, None] * _inverse_adjoint(operands[0]),)


@gradient_of("shardwise.lu")
@_conjugated
def _lu_vjp(operands: Any, results: Any, cotangents: Any) -> Any:
    (packed, _, permutation), g = results, cotangents[0]
    *batch, m, n = packed.shape
    k = min(m, n)
    zero = np.zeros((), packed.dtype)
    right, under = (np.broadcast_to(zero, (*batch, *shape)) for shape in ((m, m - k), (n - k, n)))
    below: Any = np.concatenate([_strictly_lower(packed)[..., :k], right], axis=-1)
    above: Any = np.concatenate([_upper(packed)[..., :k, :], under], axis=-2)
    low = below + np.eye(m, dtype=packed.dtype)
    up = above + np.diag(np.arange(n) >= k).astype(packed.dtype)
    inner = _strictly_lower(adjoint(low) @ g) + _upper(g @ adjoint(up))
    inner = triangular_solve(low, inner, transpose="ADJOINT", unit_diagonal=True)
    inner = triangular_solve(up, inner, left_side=False, lower=False, transpose="ADJOINT")
    rows = permutation[..., None, :] == np.arange(m, dtype=np.int32)[:, None]
    return (rows.astype(packed.dtype) @ inner,)


@gradient_of("shardwise.qr")
@_conjugated
def _qr_vjp(operands: Any, results: Any, cotangents: Any) -> Any:
    (q, r), (gq, gr) = results, cotangents
    if q.shape[-1] != r.shape[-1]:
        rule = "the gradient of a QR decomposition needs a square R"
        way_out = "use mode='reduced' of a matrix with no more columns than rows"
        raise UnsupportedError(message("np.linalg.qr", rule, f"R of shape {r.shape}", way_out))
    inner = _upper(gr @ adjoint(r) - adjoint(q) @ gq)
    rows, columns = _indices(inner)
    inner = inner + adjoint(np.where(rows == columns, 0, inner))
    if _is_complex(inner):
        inner = np.where(rows == columns, np.real(inner).astype(inner.dtype), inner)
    return (triangular_solve(r, gq + q @ inner, left_side=False, lower=False, transpose="ADJOINT"),)


@gradient_of("shardwise.eigh")
@_conjugated
def _eigh_vjp(operands: Any, results: Any, cotangents: Any, uplo: int) -> Any:
    (v, w), (gv, gw) = results, cotangents
    rows, columns = _indices(v)
    gaps = np.where(rows == columns, 1, w[..., None, :] - w[..., :, None])
    inner = np.where(rows == columns, 0, (adjoint(v) @ gv) / gaps.astype(v.dtype))
    return (_symmetric_part(v @ (inner + diagonal_matrix(gw, v)) @ adjoint(v)),)


@gradient_of("shardwise.eigvalsh")
@_conjugated
def _eigvalsh_vjp(operands: Any, results: Any, cotangents: Any, uplo: int) -> Any:
    v, _ = eigh(operands[0], uplo == ord("L"))
    return (_symmetric_part((v * cotangents[0][..., None, :].astype(v.dtype)) @ adjoint(v)),)


def _by_eigenvectors(v: Any, inner: Any, like: Tracer) -> Any:
    """The cotangent of ``like`` whose matrix is ``inner`` in the basis of the eigenvectors."""
    found = solve(adjoint(v), inner @ adjoint(v))
    return found if _is_complex(like) else np.real(found)


@gradient_of("shardwise.eigvals")
@_conjugated
def _eigvals_vjp(operands: Any, results: Any, cotangents: Any) -> Any:
    _, v = eig(operands[0])
    return (_by_eigenvectors(v, diagonal_matrix(cotangents[0], v), operands[0]),)


@gradient_of("shardwise.eig")
@_conjugated
def _eig_vjp(operands: Any, results: Any, cotangents: Any) -> Any:
    (w, v), (gw, gv) = results, cotangents
    # LAPACK turns each vector so that its largest component is real, which takes the cotangent of its phase.
    sizes = np.real(v * np.conj(v))
    rows, columns = _indices(v)
    largest = rows == np.argmax(sizes, axis=-2)[..., None, :].astype(np.int32)
    phase = np.imag(np.sum(np.conj(v) * gv, axis=-2, keepdims=True))
    gv = gv - np.where(largest, (1j * phase).astype(v.dtype) / np.where(largest, v, 1), 0)
    overlap = adjoint(v) @ gv
    along = np.real(np.sum(np.where(rows == columns, overlap, 0), axis=-2, keepdims=True))
    inner = overlap - adjoint(v) @ (v * along.astype(v.dtype))
    gaps = np.where(rows == columns, 1, w[..., None, :] - w[..., :, None])
    inner = np.where(rows == columns, gw[..., None, :], inner / np.conj(gaps))
    return (_by_eigenvectors(v, inner, operands[0]),)


@gradient_of("shardwise.svdvals")
@_conjugated
def _svdvals_vjp(operands: Any, results: Any, cotangents: Any) -> Any:
    u, _, vh = svd(operands[0])
    return ((u * cotangents[0][..., None, :].astype(u.dtype)) @ vh,)


@gradient_of("shardwise.svd")
@_conjugated
def _svd_vjp(operands: Any, results: Any, cotangents: Any) -> Any:
    (u, s, vh), (gu, gs, gvh) = results, cotangents
    *_, m, n = operands[0].shape
    if u.shape[-1] != vh.shape[-2]:
        rule = "the gradient of a singular value decomposition needs full_matrices=False"
        raise UnsupportedError(message("np.linalg.svd", rule, f"U of shape {u.shape} and V of shape {vh.shape}"))
    v, gv = adjoint(vh), adjoint(gvh)
    u_part, v_part = adjoint(u) @ gu, vh @ gv
    rows, columns = _indices(u_part)
    squares = s * s
    gaps = np.where(rows == columns, 1, squares[..., None, :] - squares[..., :, None]).astype(u.dtype)
    scale = s.astype(u.dtype)
    inner = ((u_part - adjoint(u_part)) / gaps) * scale[..., None, :]
    inner = inner + scale[..., :, None] * ((v_part - adjoint(v_part)) / gaps)
    inner = np.where(rows == columns, 0, inner) + diagonal_matrix(gs, inner)
    if _is_complex(u):
        phase = (u_part - adjoint(u_part)) / (2 * scale[..., None, :])
        inner = inner + np.where(rows == columns, phase, 0)
    gradient = u @ inner @ vh
    if m > n:
        gradient = gradient + ((gu - u @ u_part) / scale[..., None, :]) @ vh
    if m < n:
        gradient = gradient + (u / scale[..., None, :]) @ adjoint(gv - v @ v_part)
    return (gradient,)
