# SPDX-License-Identifier: Apache-2.0
# mypy: allow-untyped-defs, allow-untyped-calls
"""Routines of LAPACK by functions of JAX, which emitted programs use; see helpers.py. Batches are leading dims.

Results have LAPACK's order; None is what LAPACK leaves in its workspace. The last one is its code; see `status`.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax


def upper_cholesky(x):
    """The upper factor, from the upper triangle."""
    lower = lax.linalg.cholesky(jnp.swapaxes(x, -1, -2).conj(), symmetrize_input=False)
    return jnp.swapaxes(lower, -1, -2).conj()


def status(x):
    """LAPACK's code: 0, or 1 where it did not succeed, for which JAX gives NaN in the last dim."""
    return jnp.isnan(x).any(-1).astype("int32")


def potrf(x, lower=False):
    """The triangular factor in its triangle of x."""
    factor = lax.linalg.cholesky(x, symmetrize_input=False) if lower else upper_cholesky(x)
    is_factor = jnp.tri(x.shape[-1], dtype=bool)
    is_factor = is_factor if lower else is_factor.T
    return jnp.where(is_factor, factor, x), status(jnp.diagonal(factor, 0, -2, -1))


def getrf(x):
    """L and U in one matrix, the row that each step swaps in, from 1, and the first 0 on the diagonal of U, from 1."""
    packed, pivots, _ = lax.linalg.lu(x)
    zeros = jnp.diagonal(packed, 0, -2, -1) == 0
    first = jnp.where(zeros.any(-1), jnp.argmax(zeros, -1) + 1, 0) if zeros.shape[-1] else jnp.zeros(x.shape[:-2])
    return packed, pivots + 1, first.astype("int32")


def gtsv(lower, diagonal, upper, b):
    """The solution of a tridiagonal system."""
    x = lax.linalg.tridiagonal_solve(lower, diagonal, upper, b)
    return None, None, None, x, status(x.reshape(*x.shape[:-2], -1))


def geqrf(x):
    """R on and above the diagonal, the reflectors of Q below it, and their factors."""
    packed, taus = jnp.linalg.qr(x, "raw")
    return jnp.swapaxes(packed, -1, -2), taus


def geqp3(x):
    """geqrf of the columns in an order that makes the diagonal of R fall, and the order from 1."""
    order = lax.linalg.qr(x, pivoting=True, full_matrices=False)[2]
    packed, taus = geqrf(jnp.take_along_axis(x, order[..., None, :], -1))
    return packed, order + 1, taus


def syevd(x, lower=False):
    """Eigenvectors and eigenvalues."""
    vectors, values = lax.linalg.eigh(x, lower=lower, symmetrize_input=False)
    return vectors, values, status(values)


def geev(x, left=False, right=False):
    """Eigenvalues, for a real matrix in two parts, then the left and the right eigenvectors."""
    w, *vectors = lax.linalg.eig(x, compute_left_eigenvectors=left, compute_right_eigenvectors=right)
    values = (w,) if jnp.iscomplexobj(x) else (w.real, w.imag)
    return *values, vectors[0] if left else None, vectors[-1] if right else None, status(w)


def gesdd(x, mode, algorithm=None):
    """Singular values and vectors: all of them (A), as many as there are values (S), or none (N)."""
    found = lax.linalg.svd(x, full_matrices=mode == "A", compute_uv=mode != "N", algorithm=algorithm)
    u, s, vt = (None, found, None) if mode == "N" else found
    return None, s, u, vt, status(s)


def gees(x):
    """The Schur form and its vectors."""
    form, vectors = lax.linalg.schur(x)
    values = (None,) if jnp.iscomplexobj(x) else (None, None)
    return form, vectors, *values, jnp.zeros(x.shape[:-2], "int32"), status(form[..., -1])


def gehrd(x):
    """The Hessenberg form with its reflectors below it, and their factors."""
    return *lax.linalg.hessenberg(x), jnp.zeros(x.shape[:-2], "int32")


def sytrd(x, lower):
    """The reflectors of a tridiagonal form, its diagonal, the one beside it, and the factors of the reflectors."""
    return *lax.linalg.tridiagonal(x, lower=lower), jnp.zeros(x.shape[:-2], "int32")
