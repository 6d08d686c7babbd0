# SPDX-License-Identifier: Apache-2.0
"""Random vectors with a given covariance, and random orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError, is_one_of, message
from ..lax.calls import on_arrays
from ._arguments import checked_shape, checked_size, floating, operand, shape_with, wide_dtype
from ._floats import normal
from ._threefry import check_key

__all__ = ["multivariate_normal", "orthogonal"]

_METHODS = ("cholesky", "eigh", "svd")


@on_arrays("key", "mean", "cov", module="random", takes_lists=True)
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None, method: str = "cholesky"
) -> Any:
    """Random vectors from the normal distribution with this mean and covariance.

    Args:
        key: a key, uint32[2].
        mean: ``[..., n]``, floating.
        cov: ``[..., n, n]``: positive definite; for ``"eigh"`` and ``"svd"`` semidefinite.
        shape: the shape of the result without its last dim, to which those of ``mean`` and ``cov`` broadcast.
        dtype: float32 or float64; None for that of ``mean`` and ``cov``.
        method: how ``cov`` is factored: ``"cholesky"``, ``"eigh"`` or ``"svd"``.

    Returns:
        The draws of ``jax.random.multivariate_normal`` within rounding, of shape ``[*shape, n]``; for ``"eigh"`` and
        ``"svd"``, if LAPACK gives the vectors the same signs. Differentiable in ``mean`` and ``cov``.

    Raises:
        ShapeError, DTypeError: not a key, parameters that are not floating or do not fit, or another dtype.
        ValueError: an unknown method.

    >>> from shardwise.random import PRNGKey
    >>> multivariate_normal(PRNGKey(0), np.zeros(2), np.eye(2), (3,)).shape
    (3, 2)
    """
    what = "random.multivariate_normal"
    key = check_key(what, key)
    if not is_one_of(method, _METHODS):
        raise ValueError(message(what, "method must be 'cholesky', 'eigh' or 'svd'", repr(method)))
    mean, cov = floating(what, "mean", mean), floating(what, "cov", cov)
    found = wide_dtype(what, np.result_type(mean.dtype, cov.dtype) if dtype is None else dtype)
    size = mean.shape[-1] if mean.shape else -1
    if not mean.shape or tuple(cov.shape[-2:]) != (size, size):
        got = f"mean {tuple(mean.shape)} and cov {tuple(cov.shape)}"
        raise ShapeError(message(what, "mean must be [..., n] and cov [..., n, n]", got, "reshape them"))
    batches = {"mean": np.broadcast_to(np.empty(()), mean.shape[:-1])}
    batches["cov"] = np.broadcast_to(np.empty(()), cov.shape[:-2])
    sizes = shape_with(what, shape, **batches)
    factor = _factor(operand(what, "cov", cov, found), method)
    drawn = np.einsum("...ij,...j->...i", factor, normal(key, (*sizes, size), found))
    return operand(what, "mean", mean, found) + drawn


def _factor(cov: Any, method: str) -> Any:
    """A matrix whose product with its transpose is ``cov``."""
    if method == "cholesky":
        return np.linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = np.linalg.eigh(cov)
    else:
        vectors, values, _ = np.linalg.svd(cov)
    return vectors * np.sqrt(values)[..., None, :]


@on_arrays("key", module="random")
def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = np.float32, m: int | None = None) -> Any:
    """Random orthogonal matrices: uniform in the orthogonal group.

    Args:
        key: a key, uint32[2].
        n: the number of rows.
        shape: the shape of the result without its last two dims.
        dtype: float32 or float64.
        m: the number of columns; ``n`` by default. With fewer columns than rows these are orthonormal, else the rows.

    Returns:
        The matrices of ``jax.random.orthogonal`` within rounding, ``[*shape, n, m]``.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or another dtype.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups", Notices of the AMS 54, 2007.

    >>> from shardwise.random import PRNGKey
    >>> q = orthogonal(PRNGKey(0), 3)
    >>> bool(np.allclose(q @ q.T, np.eye(3), atol=1e-5))
    True
    """
    what = "random.orthogonal"
    key, found = check_key(what, key), wide_dtype(what, dtype)
    rows, columns = checked_size(what, "n", n), checked_size(what, "m", n if m is None else m)
    sizes = (*checked_shape(what, shape), max(rows, columns), min(rows, columns))
    # A QR decomposition is unique up to signs: those of the diagonal make the distribution uniform.
    q, r = np.linalg.qr(normal(key, sizes, found))
    result = q * np.expand_dims(np.sign(np.diagonal(r, axis1=-2, axis2=-1)), -2)
    return np.swapaxes(result, -1, -2) if rows < columns else result
