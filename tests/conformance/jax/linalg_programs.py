# SPDX-License-Identifier: Apache-2.0
"""Functions of jax.numpy.linalg, jax.scipy.linalg and jax.lax.linalg, and arguments for them. The worker imports this.

A row is (function, arguments). Dim 0 of arguments with three dims is a batch of 8, which the test splits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import jax.scipy.linalg as scipy
import numpy as np
from jax import lax

from tests.conformance.jax.linalg_losses import INDEFINITE, TALL, WELL, WIDE, A, B, S, V, normal

L = jnp.linalg
QR_SVD = getattr(getattr(lax.linalg, "SvdAlgorithm", None), "QR", None)

Row = tuple[Callable[..., Any], tuple[Any, ...]]
PROGRAMS: dict[str, Row] = {
    "cholesky": (L.cholesky, (S,)),
    "cholesky of indefinite matrices": (L.cholesky, (INDEFINITE,)),
    "cho_solve": (lambda s, b: scipy.cho_solve((s, True), b), (np.tril(S), B)),
    "solve": (L.solve, (A, B)),
    "det": (L.det, (A,)),
    "slogdet": (L.slogdet, (A,)),
    "qr": (L.qr, (TALL,)),
    "qr complete": (lambda x: L.qr(x, "complete"), (TALL,)),
    "qr of wide matrices": (L.qr, (WIDE,)),
    "eigh": (L.eigh, (S,)),
    "eigvalsh": (L.eigvalsh, (S,)),
    "svd": (L.svd, (TALL,)),
    "svd reduced": (lambda x: L.svd(x, full_matrices=False), (WIDE,)),
    "svdvals": (L.svdvals, (TALL,)),
    "pinv": (L.pinv, (TALL,)),
    "matrix_rank": (L.matrix_rank, (TALL,)),
    "lstsq": (L.lstsq, (TALL[0], normal(5, 2))),
    "norm": (lambda x: L.norm(x, 2, (1, 2)), (TALL,)),
    "lu": (scipy.lu, (A[0],)),
    "lu_solve": (lambda a, b: scipy.lu_solve(scipy.lu_factor(a), b), (A[0], B[0])),
    "schur": (scipy.schur, (A[0],)),
    "hessenberg": (scipy.hessenberg, (A[0],)),
    "tridiagonal": (lax.linalg.tridiagonal, (S,)),
    "tridiagonal_solve": (lax.linalg.tridiagonal_solve, (V, V + 5, V, B)),
    "triangular_solve": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True, transpose_a=True),
        (WELL, B),
    ),
    "solve_triangular": (
        lambda a, b: scipy.solve_triangular(a, b, lower=False, unit_diagonal=True),
        (WELL[0], B[0]),
    ),
    "eig": (L.eig, (A,)),
    "cholesky of complex matrices": (
        lambda a: L.cholesky(a @ jnp.conj(jnp.swapaxes(a, 1, 2)) + 4 * jnp.eye(4)),
        ((A + 1j * A[::-1]).astype(np.complex64),),
    ),
    "eigh of complex matrices": (
        lambda a: L.eigvalsh(a + jnp.conj(jnp.swapaxes(a, 1, 2))),
        ((A + 1j * A[::-1]).astype(np.complex64),),
    ),
}
if hasattr(scipy, "qr_multiply"):
    PROGRAMS["qr_multiply"] = (lambda a, c: scipy.qr_multiply(a, c), (A[0], A[1]))
if QR_SVD is not None:
    PROGRAMS["svd by QR"] = (lambda x: lax.linalg.svd(x, algorithm=QR_SVD), (TALL,))
    PROGRAMS["qr with pivots"] = (lambda x: scipy.qr(x, pivoting=True, mode="economic"), (TALL[0],))
# Also lowered for TPU, where they are ops and other calls; JAX's numbers on CPU are theirs.
ON_TPU = ("cholesky", "cho_solve", "solve", "qr", "eigh", "triangular_solve")
