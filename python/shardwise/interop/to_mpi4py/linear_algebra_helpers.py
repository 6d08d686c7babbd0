# SPDX-License-Identifier: Apache-2.0
# mypy: allow-untyped-defs, allow-untyped-calls
"""Routines of LAPACK by functions of NumPy, which scripts for mpi4py use; see helpers.py. Batches are leading dims.

Results have LAPACK's order; None is what LAPACK leaves in its workspace. The last one is its code; see `status`.
"""

from __future__ import annotations

import numpy as np


def or_nan(function, *arrays, **options):
    """A function of np.linalg for stacks of matrices, with NaN for those for which it raises an error."""
    try:
        return function(*arrays, **options)
    except np.linalg.LinAlgError:
        known = [np.broadcast_to(np.eye(*x.shape[-2:], dtype=x.dtype), x.shape) for x in arrays]
        made = function(*known, **options)
        results = [np.full(y.shape, np.nan, y.dtype) for y in (made if isinstance(made, tuple) else [made])]
        for at in np.ndindex(arrays[0].shape[:-2]):
            try:
                own = function(*[x[at] for x in arrays], **options)
            except np.linalg.LinAlgError:
                continue
            for y, value in zip(results, own if isinstance(own, tuple) else [own]):
                y[at] = value
        return tuple(results) if isinstance(made, tuple) else results[0]


def status(x):
    """LAPACK's code: 0, or 1 where it did not succeed, and NaN is in the last dim."""
    return np.isnan(x).any(-1).astype("int32")


def triangular_solve(a, b, left_side=False, lower=False, transpose=False, conjugate=False, unit_diagonal=False):
    """x of a @ x = b, or of x @ a = b, for a triangle of a."""
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = a - a * np.eye(a.shape[-1], dtype=a.dtype) + np.eye(a.shape[-1], dtype=a.dtype)
    a = np.swapaxes(a, -1, -2) if transpose else a
    a = a.conj() if conjugate else a
    if left_side:
        return or_nan(np.linalg.solve, a, b)
    return np.swapaxes(or_nan(np.linalg.solve, np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def cholesky(x, upper=False):
    """The lower or the upper factor of positive definite matrices."""
    return or_nan(np.linalg.cholesky, x, upper=upper)


def potrf(x, upper=False):
    """The triangular factor in its triangle of x."""
    factor = cholesky(x, upper)
    is_factor = np.tri(x.shape[-1], dtype=bool).T if upper else np.tri(x.shape[-1], dtype=bool)
    return np.where(is_factor, factor, x), status(np.diagonal(factor, 0, -2, -1))


def lu(x):
    """L and U in one matrix, the row that each step swaps in, and the order of the rows."""
    x, k = np.array(x), min(x.shape[-2:])
    pivots = np.zeros((*x.shape[:-2], k), "int32")
    order = np.broadcast_to(np.arange(x.shape[-2], dtype="int32"), x.shape[:-1]).copy()
    for at in np.ndindex(x.shape[:-2]):
        a, rows = x[at], order[at]
        for j in range(k):
            i = j + int(np.argmax(np.abs(a[j:, j].real) + np.abs(a[j:, j].imag)))
            pivots[at][j] = i
            a[[j, i]], rows[[j, i]] = a[[i, j]], rows[[i, j]]
            a[j + 1 :, j] /= a[j, j] if a[j, j] else 1
            a[j + 1 :, j + 1 :] -= np.outer(a[j + 1 :, j], a[j, j + 1 :])
    return x, pivots, order


def getrf(x):
    """L and U in one matrix, the row that each step swaps in, from 1, and the first 0 on the diagonal of U, from 1."""
    packed, pivots, _ = lu(x)
    zeros = np.diagonal(packed, 0, -2, -1) == 0
    first = np.argmax(zeros, -1) + 1 if zeros.shape[-1] else 0
    return packed, pivots + 1, np.where(zeros.any(-1), first, 0).astype("int32")


def gtsv(lower, diagonal, upper, b):
    """The solution of a tridiagonal system. The first item of `lower` and the last one of `upper` are not read."""
    n = diagonal.shape[-1]
    matrix = np.zeros((*diagonal.shape, n), b.dtype)
    for offset, items in ((-1, lower[..., 1:]), (0, diagonal), (1, upper[..., :-1])):
        rows = np.arange(max(0, -offset), n - max(0, offset))
        matrix[..., rows, rows + offset] = items
    x = or_nan(np.linalg.solve, matrix, b)
    return None, None, None, x, status(x.reshape(*x.shape[:-2], -1))


def geqrf(x):
    """R on and above the diagonal, the reflectors of Q below it, and their factors."""
    packed, taus = np.linalg.qr(x, "raw")
    return np.swapaxes(packed, -1, -2), taus


def reflectors(x, taus):
    """The first columns of the product of the reflectors in the columns of x."""
    unit = np.tril(x, -1) + np.eye(*x.shape[-2:], dtype=x.dtype)
    q = np.broadcast_to(np.eye(*x.shape[-2:], dtype=x.dtype), x.shape)
    for i in reversed(range(taus.shape[-1])):
        column = unit[..., i : i + 1]
        q = q - taus[..., i, None, None] * (column @ (np.swapaxes(column, -1, -2).conj() @ q))
    return q


def ormqr(x, taus, c, left, transpose):
    """c times the product of the reflectors in the columns of x, from the left or from the right."""
    missing = x.shape[-2] - x.shape[-1]
    q = reflectors(np.concatenate([x, np.zeros((*x.shape[:-1], missing), x.dtype)], -1), taus)
    q = np.swapaxes(q, -1, -2).conj() if transpose else q
    return q @ c if left else c @ q


def eigh(x, uplo="L"):
    """Eigenvectors and eigenvalues of Hermitian matrices, from one triangle."""
    values, vectors = or_nan(np.linalg.eigh, x, UPLO=uplo)
    return vectors, values


def syevd(x, uplo):
    """Eigenvectors and eigenvalues of Hermitian matrices, from one triangle."""
    vectors, values = eigh(x, uplo)
    return vectors, values, status(values)


def eig(x):
    """Eigenvalues and eigenvectors, complex also where all imaginary parts are 0."""
    return tuple(y.astype(np.result_type(y, "complex64")) for y in or_nan(np.linalg.eig, x))


def geev(x):
    """Eigenvalues, for a real matrix in two parts, and the right eigenvectors."""
    w, vectors = eig(x)
    values = (w,) if np.iscomplexobj(x) else (w.real, w.imag)
    return *values, None, vectors, status(w)


def gesdd(x, full_matrices=False):
    """Singular values and vectors."""
    u, s, vt = or_nan(np.linalg.svd, x, full_matrices=full_matrices)
    return None, s, u, vt, status(s)
