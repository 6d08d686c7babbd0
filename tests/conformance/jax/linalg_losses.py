# SPDX-License-Identifier: Apache-2.0
"""Losses of np.linalg or jnp.linalg, and matrices for them: without jax, so that tests can import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


A, B, TALL, WIDE, V = normal(8, 4, 4), normal(8, 4, 3), normal(8, 5, 3), normal(8, 3, 5), normal(8, 4)
S = A @ np.swapaxes(A, 1, 2) + 4 * np.eye(4, dtype=np.float32)
WELL = A + 4 * np.eye(4, dtype=np.float32)
INDEFINITE = np.where(np.arange(8)[:, None, None] % 2, S, -S)  # LAPACK refuses every other one

WEIGHTS = RANDOM.normal(size=(8, 5, 5))


def weighted(x: Any) -> Any:
    """A sum in which every element counts differently."""
    weights = WEIGHTS[(slice(0, x.shape[0]), *(slice(0, size) for size in x.shape[1:]), *([0] * (3 - x.ndim)))]
    return (x * weights).sum()


def losses(np_: Any) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Losses of NumPy's functions by the module that has them, and their arguments in float64."""
    a, b, s, tall = (x.astype(np.float64)[:3] for x in (A, B, S, TALL))
    linalg = np_.linalg
    return {
        "cholesky": (lambda x: weighted(linalg.cholesky(x)), (s,)),
        "solve": (lambda x, y: weighted(linalg.solve(x, y)), (a, b)),
        "inv": (lambda x: weighted(linalg.inv(x)), (a,)),
        "det": (lambda x: weighted(linalg.det(x)), (a,)),
        "det of singular": (lambda x: weighted(linalg.det(x)), (a - a[:, :1],)),
        "slogdet": (lambda x: weighted(linalg.slogdet(x)[1]), (a,)),
        "qr": (lambda x: weighted(linalg.qr(x)[0]) + weighted(linalg.qr(x)[1]), (tall,)),
        "eigh": (lambda x: weighted(linalg.eigh(x)[1] ** 2) + weighted(linalg.eigh(x)[0]), (s,)),
        "eigvals": (lambda x: weighted(abs(linalg.eigvals(x)) ** 2) + weighted(np_.real(linalg.eigvals(x)) ** 3), (a,)),
        "svd": (lambda x: sum(weighted(part**2) for part in linalg.svd(x, full_matrices=False)), (tall,)),
    }
