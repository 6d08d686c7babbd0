# SPDX-License-Identifier: Apache-2.0
"""The rows of linear algebra of ``corpus_functions.py``: of batches of 8 matrices, or of one.

Factors that are unique up to signs (phases, if complex) are multiplied by signs that make them unique, and compared
element by element, beside their product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

from tests.conformance.jax.linalg_losses import TALL, WELL, WIDE, A, B, S, V, normal

L, SL = jnp.linalg, jsp.linalg
Row = tuple[Callable[..., Any], tuple[Any, ...]]
Rows = dict[str, Row]


def of_module(names: str, module: Any, *arrays: Any) -> Rows:
    """Rows of functions of a module with the same arguments."""
    return {name: (getattr(module, name), arrays) for name in names.split()}


def _t(a: Any) -> Any:
    """The conjugate transpose of each matrix."""
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def _signs(columns: Any) -> Any:
    """For each column the factor of modulus 1 that makes its element of largest modulus positive."""
    places = jnp.argmax(jnp.abs(columns), axis=-2, keepdims=True)
    largest = jnp.take_along_axis(columns, places, axis=-2)
    return jnp.conj(largest) / jnp.abs(largest)


def _signed_qr(q: Any, r: Any) -> Any:
    """Q and R with a positive diagonal of R, and their product."""
    d = jnp.diagonal(r, axis1=-2, axis2=-1)
    signs = d / jnp.abs(d)
    return q * signs[..., None, :], jnp.conj(signs)[..., :, None] * r, q @ r


def _signed_spectrum(values: Any, vectors: Any) -> Any:
    return values, vectors * _signs(vectors), (vectors * values[..., None, :]) @ _t(vectors)


def _spectrum_of_any(values: Any, vectors: Any) -> Any:
    """Of distinct eigenvalues: ordered by a sum of their parts, because pairs have one real part."""
    order = jnp.argsort(jnp.real(values) + 0.7 * jnp.imag(values))
    values, vectors = values[order], vectors[:, order]
    return values, vectors * _signs(vectors), (vectors * values[None, :]) @ L.inv(vectors)


def _signed_svd(u: Any, s: Any, vt: Any) -> Any:
    signs = _signs(u)
    return u * signs, s, _t(signs) * vt, (u * s[..., None, :]) @ vt


def _signed_schur(t: Any, z: Any) -> Any:
    """The form, its vectors, and the matrix that they make up."""
    signs = _signs(z)
    return _t(signs) * t * signs, z * signs, z @ t @ _t(z)


def _signed_hessenberg(h: Any, q: Any) -> Any:
    """A positive subdiagonal; the first column of Q is that of the identity."""
    below = jnp.diagonal(h, offset=-1, axis1=-2, axis2=-1)
    steps = jnp.sign(below)
    signs = jnp.concatenate([jnp.ones_like(steps[..., :1]), jnp.cumprod(steps, axis=-1)], axis=-1)
    return signs[..., :, None] * h * signs[..., None, :], q * signs[..., None, :], q @ h @ _t(q)


def _tridiagonal(a: Any) -> Any:
    """The diagonal, the moduli beside it (their signs are free), and the spectrum of the tridiagonal matrix."""
    _, d, e, _ = lax.linalg.tridiagonal(a)
    whole = jax.vmap(lambda d, e: jnp.diag(d) + jnp.diag(e, 1) + jnp.diag(e, -1))(d, e)
    return d, jnp.abs(e), L.eigvalsh(whole)


def _lu(a: Any) -> Any:
    lu, pivots, order = lax.linalg.lu(a)
    return lu, pivots, order, lax.linalg.lu_pivots_to_permutation(pivots, a.shape[-2])


def _householder(a: Any) -> Any:
    """The orthogonal factor of a QR decomposition from its reflectors, and R as the product with its transpose."""
    reflectors, taus = L.qr(a, mode="raw")
    reflectors = jnp.swapaxes(reflectors, -1, -2)
    size = a.shape[-1]
    q = lax.linalg.householder_product(reflectors, taus)
    r = lax.linalg.ormqr(reflectors, taus, a, left=True, transpose=True)[..., :size, :]
    return _signed_qr(q[..., :size], jnp.triu(r))


def _hessenberg_of_lax(a: Any) -> Any:
    packed, taus = lax.linalg.hessenberg(a)
    q = lax.linalg.householder_product(packed[1:, :-1], taus)
    return _signed_hessenberg(jnp.triu(packed, -1), SL.block_diag(jnp.ones((1, 1), a.dtype), q))


def _cholesky_update(s: Any, v: Any) -> Any:
    r = _t(L.cholesky(s))
    return lax.linalg.cholesky_update(r, v)


LINALG: Rows = {
    **of_module("det inv slogdet matrix_norm", L, WELL),
    **of_module("cholesky eigvalsh", L, S),
    **of_module("svdvals pinv matrix_rank cond", L, TALL),
    "cross": (L.cross, (normal(8, 3), normal(8, 3))),
    "outer": (L.outer, (V[0], V[1])),
    "matmul": (L.matmul, (A, B)),
    "solve": (L.solve, (WELL, B)),
    "eigh": (lambda a: _signed_spectrum(*L.eigh(a)), (S,)),
    "svd": (lambda a: _signed_svd(*L.svd(a, full_matrices=False)), (WIDE,)),
    "qr": (lambda a: _signed_qr(*L.qr(a)), (TALL,)),
    "cholesky, inv, det, solve of scipy": (
        lambda a, s, b: (SL.cholesky(s, lower=True), SL.inv(a), SL.det(a), SL.solve(a, b)),
        (WELL[0], S[0], B[0]),
    ),
    "eigh, qr, svd of scipy": (
        lambda a, s: (
            _signed_spectrum(*SL.eigh(s)),
            _signed_qr(*SL.qr(a, mode="economic")),
            _signed_svd(*SL.svd(a, full_matrices=False)),
        ),
        (TALL[0], S[0]),
    ),
    "cholesky, eigh, qr, svd of lax": (
        lambda a, s: (
            lax.linalg.cholesky(s),
            _signed_spectrum(*lax.linalg.eigh(s)[::-1]),
            _signed_qr(*lax.linalg.qr(a, full_matrices=False)),
            _signed_svd(*lax.linalg.svd(a, full_matrices=False)),
        ),
        (TALL, S),
    ),
    "lu, triangular_solve, symmetric_product of lax": (
        lambda a, b: (
            _lu(a),
            lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
            lax.linalg.symmetric_product(a, a + _t(a)),
        ),
        (WELL, B),
    ),
    "householder_product and ormqr": (_householder, (TALL,)),
    "cholesky_update": (_cholesky_update, (S[0], V[0])),
    "tridiagonal": (_tridiagonal, (S,)),
    "qdwh": (lambda a: lax.linalg.qdwh(a)[:2], (WELL[0],)),
    "eig of lax": (lambda a: _spectrum_of_any(*lax.linalg.eig(a, compute_left_eigenvectors=False)), (A[0],)),
    "schur and hessenberg of lax": (
        lambda a: (_signed_schur(*lax.linalg.schur(a)), _hessenberg_of_lax(a)),
        (A[0],),
    ),
    "lstsq": (lambda a, b: L.lstsq(a, b)[0], (TALL[0], normal(5, 2))),
    "matrix_power": (lambda a: L.matrix_power(a, 3), (A,)),
    "multi_dot": (lambda *a: L.multi_dot(a), (A[0], A[1], B[0])),
    "tensorsolve": (lambda a, b: L.tensorsolve(a.reshape(2, 2, 4), b), (WELL[0], V[0].reshape(2, 2))),
    "norms": (lambda a: (L.norm(a), L.norm(a, 1, axis=1), L.norm(a, "nuc", axis=(1, 2))), (TALL,)),
    "vander and vecdot": (lambda a, b: (jnp.vander(a[0], 3), L.vecdot(a, b)), (V, V + 1)),
    "eigvals": (lambda a: jnp.sort_complex(L.eigvals(a)), (A[0],)),
    "cho_factor and cho_solve": (lambda s, b: SL.cho_solve(SL.cho_factor(s), b), (S[0], B[0])),
    "lu": (SL.lu, (A[0],)),
    "lu_factor and lu_solve": (lambda a, b: SL.lu_solve(SL.lu_factor(a), b), (WELL[0], B[0])),
    "solve_triangular": (lambda a, b: SL.solve_triangular(a, b, lower=True), (WELL[0], B[0])),
    "expm": (SL.expm, (A[0] / 3,)),
    "sqrtm": (lambda a: (SL.sqrtm(a), SL.sqrtm(a) @ SL.sqrtm(a)), (S[0],)),
    "polar": (lambda a: SL.polar(a, method="svd"), (WELL[0],)),
    "block_diag and toeplitz": (lambda a, b: (SL.block_diag(a, b), SL.toeplitz(a[0])), (A[0], B[0])),
    "trace and diagonal": (lambda a: (L.trace(a), L.diagonal(a, offset=1)), (A,)),
    "matrix_transpose and tensordot": (lambda a, b: (L.matrix_transpose(a), L.tensordot(a[0], b[0], axes=1)), (A, B)),
    "norm and vector_norm": (lambda a: (L.norm(a, np.inf, axis=1), L.vector_norm(a, axis=-1, ord=3)), (A,)),
    "tensorinv": (lambda a: L.tensorinv(a.reshape(2, 2, 4), 2), (WELL[0],)),
    "eig": (lambda a: _spectrum_of_any(*L.eig(a)), (A[0],)),
    "eigh_tridiagonal": (lambda d: SL.eigh_tridiagonal(d, d[1:] / 3, eigvals_only=True), (V[0],)),
    "expm_frechet": (lambda a, e: SL.expm_frechet(a / 3, e), (A[0], A[1])),
    "funm": (lambda a: SL.funm(a, jnp.exp), (S[0] / 4,)),
    "rsf2csf": (lambda a: _signed_schur(*SL.rsf2csf(*SL.schur(a))), (A[0],)),
    "solve_sylvester": (lambda a, b: SL.solve_sylvester(a, b, a), (S[0], WELL[0])),
    "qr_multiply": (
        lambda a, b: (lambda product, r: _signed_qr(product, r)[:2])(*SL.qr_multiply(a, b, mode="right")),
        (WELL[0], A[1]),
    ),
    "circulant, hankel, leslie, companion": (
        lambda a: (SL.circulant(a), SL.hankel(a), SL.leslie(a, a[1:]), SL.companion(a)),
        (V[0],),
    ),
    "fiedler, fiedler_companion, convolution_matrix": (
        lambda a: (SL.fiedler(a), SL.fiedler_companion(a), SL.convolution_matrix(a, 5)),
        (V[0],),
    ),
    "dft, hadamard, helmert, hilbert, invhilbert, pascal, invpascal": (
        lambda a: tuple(
            a @ of(4).astype(a.dtype)
            for of in (
                lambda n: jnp.real(SL.dft(n)),
                SL.hadamard,
                lambda n: SL.helmert(n, full=True),
                SL.hilbert,
                SL.invhilbert,
                SL.pascal,
                SL.invpascal,
            )
        ),
        (A,),
    ),
    "schur": (lambda a: _signed_schur(*SL.schur(a)), (A[0],)),
    "hessenberg": (lambda a: _signed_hessenberg(*SL.hessenberg(a, calc_q=True)), (A[0],)),
    "tridiagonal_solve": (lambda d, b: lax.linalg.tridiagonal_solve(d, d + 5, d, b), (V, B)),
}
