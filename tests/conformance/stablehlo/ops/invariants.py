# SPDX-License-Identifier: Apache-2.0
"""What the results of a decomposition must satisfy: they rebuild the matrix, and have the structure that LAPACK states.

    broken(instance, results)  # sentences; none if the results are right

NaN in a matrix is NaN in its results, or an error number, and nothing in the results of the other matrices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from shardwise.dtypes import is_inexact
from tests.op.catalogue.instance import Instance
from tests.op.catalogue.values import Array, parts_of


def target_of(instance: Instance) -> str:
    """The name of the call without the letter of the dtype."""
    found = re.search(r'call_target_name = "(?:lapack_[sdcz])?(\w+?)(?:_ffi)?"', instance.body)
    assert found
    return found[1]


def batch_rank(instance: Instance) -> int:
    return instance.arguments[0].ndim - (1 if target_of(instance) == "gtsv" else 2)


def has_numbers(instance: Instance) -> Array:
    """Which problems of the batch have only finite operands."""
    rank = batch_rank(instance)
    batch = instance.arguments[0].shape[:rank]
    found = np.ones(batch, bool)
    for x in instance.arguments:
        if is_inexact(x.dtype):
            found &= np.isfinite(x).all(axis=tuple(range(rank, x.ndim)))
    return found


def option(instance: Instance, name: str) -> str:
    found = re.search(rf"{name} = (\d+) : ui8", instance.body)
    return chr(int(found[1])) if found else ""


@dataclass
class Problem:
    """One matrix of a batch: operands and results in wide floats; the last two dims of what is a matrix."""

    instance: Instance
    operands: list[Array]
    results: list[Array]

    @property
    def a(self) -> Array:
        return self.operands[0]

    def near(self, got: Array, want: Array) -> bool:
        eps = float(np.finfo(parts_of(self.instance.dtype)).eps)
        size = max(1.0, float(np.max(np.abs(self.a), initial=0)))
        return got.shape == want.shape and bool(np.all(np.abs(got - want) <= self.instance.ulps * eps * size))

    def is_unitary(self, q: Array) -> bool:
        """Whether the columns are orthogonal and of length 1."""
        return self.near(np.conj(q.T) @ q, np.eye(q.shape[1]))


def broken(instance: Instance, results: list[Array]) -> list[str]:
    found, finite = [], has_numbers(instance)
    for at in np.ndindex(*finite.shape):
        operands = [wide(x[at]) for x in instance.arguments]
        own = [wide(x[at]) for x in results]
        if finite[at]:
            if instance.kind == "definition":
                check = CHECKS[target_of(instance)]
                found += [f"matrix {at}: {text}" for text in check(Problem(instance, operands, own))]
        elif not has_error(own, results):
            found.append(f"matrix {at} has a NaN, which its results lack")
    return found


def wide(x: Array) -> Array:
    return np.asarray(x).astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def has_error(own: list[Array], results: list[Array]) -> bool:
    """NaN in a result, or an error number."""
    numbers = [x for x, of in zip(own, results) if is_inexact(of.dtype)]
    infos = [x for x, of in zip(own, results) if not is_inexact(of.dtype) and x.ndim == 0]
    return any(not np.isfinite(x).all() for x in numbers) or any(bool(x != 0) for x in infos)


def reflectors_of(h: Array, tau: Array) -> Array:
    """The product of the reflectors I - tau·v·vᴴ whose vectors are below the diagonal of h."""
    m = h.shape[0]
    q = np.eye(m, dtype=np.result_type(h, tau))
    for i, factor in enumerate(tau):
        v = np.concatenate([np.zeros(i), np.ones(1), h[i + 1 :, i]])
        q = q @ (np.eye(m) - factor * np.outer(v, np.conj(v)))
    return q


def lu(p: Problem) -> Iterator[str]:
    packed, pivots, order = p.results[:3]
    m, n = packed.shape
    k = min(m, n)
    lower, upper = np.tril(packed[:, :k], -1) + np.eye(m, k), np.triu(packed[:k])
    rows = list(range(m))
    for i, pivot in enumerate(pivots.astype(int)):
        if not i <= pivot < m:
            yield f"pivot {i} is {pivot}"
            return
        rows[i], rows[pivot] = rows[pivot], rows[i]
    if rows != order.astype(int).tolist():
        yield f"the permutation {order} is not that of the pivots, {rows}"
    if not p.near(lower @ upper, p.a[rows]):
        yield "L·U is not the matrix with its rows in the order of the pivots"
    if np.max(np.abs(np.tril(packed[:, :k], -1)), initial=0) > np.sqrt(2) + 1e-3:
        yield "a pivot is not the largest of its column"


def qr(p: Problem) -> Iterator[str]:
    packed, tau = p.results
    q, r = reflectors_of(packed, tau), np.triu(packed)
    if not p.near(q @ r, p.a):
        yield "Q·R is not the matrix"
    if not p.is_unitary(q):
        yield "Q is not unitary"
    if not p.near(np.diag(r).imag, np.zeros(len(np.diag(r)))):
        yield "the diagonal of R is not real"


def reflectors(p: Problem) -> Iterator[str]:
    (q,) = p.results
    if not p.near(q, reflectors_of(p.a, p.operands[1])[:, : q.shape[1]]):
        yield "not the product of the reflectors"


def symmetric(p: Problem) -> Iterator[str]:
    vectors, values = p.results[:2]
    lower = "U" not in (option(p.instance, "uplo"), "L" if 'backend_config = "0' not in p.instance.body else "U")
    half = np.tril(p.a, -1) if lower else np.triu(p.a, 1)
    a = half + np.conj(half.T) + np.diag(np.diag(p.a).real)
    if not p.near(values, np.linalg.eigvalsh(a)):
        yield f"eigenvalues are {values} and not {np.linalg.eigvalsh(a)}"
    if option(p.instance, "mode") == "N":
        return
    if not p.near(a @ vectors, vectors * values):
        yield "A·v is not w·v"
    if not p.is_unitary(vectors):
        yield "eigenvectors are not orthogonal and of length 1"


def singular(p: Problem) -> Iterator[str]:
    values, u, vt = p.results[1:4]
    if not p.near(values, np.linalg.svd(p.a, compute_uv=False)):
        yield f"singular values are {values}"
    if option(p.instance, "mode") == "N":
        return
    k = len(values)
    if not p.near((u[:, :k] * values) @ vt[:k], p.a):
        yield "U·S·Vᴴ is not the matrix"
    if not p.is_unitary(u) or not p.is_unitary(np.conj(vt.T)):
        yield "singular vectors are not orthogonal and of length 1"


def spectrum(p: Problem, first: int) -> tuple[Array, list[Array]]:
    """The eigenvalues among the results from `first` on, and what follows them."""
    if p.a.dtype.kind == "c":
        return p.results[first], p.results[first + 1 :]
    return p.results[first] + 1j * p.results[first + 1], p.results[first + 2 :]


def has_values(p: Problem, values: Array) -> bool:
    """Whether each eigenvalue of the matrix is once among the values."""
    left = list(np.linalg.eigvals(p.a))
    for value in values:
        if not left:
            return False
        nearest = int(np.argmin([abs(x - value) for x in left]))
        if not p.near(np.asarray(value), np.asarray(left.pop(nearest))):
            return False
    return True


def eigen(p: Problem) -> Iterator[str]:
    values, (left, right, info) = spectrum(p, 0)
    if info or not has_values(p, values):
        yield f"eigenvalues are {values}, info {info}"
    for name, vectors in (("left", left), ("right", right)):
        if option(p.instance, f"compute_{name}") == "N":
            continue
        product = np.conj(np.conj(vectors.T) @ p.a).T if name == "left" else p.a @ vectors
        if not p.near(product, vectors * (np.conj(values) if name == "left" else values)):
            yield f"{name} eigenvectors are not"
        if not p.near(np.linalg.norm(vectors, axis=0), np.ones(len(values))):
            yield f"{name} eigenvectors are not of length 1"


def schur(p: Problem) -> Iterator[str]:
    t, q = p.results[:2]
    values, _ = spectrum(p, 2)
    if not has_values(p, values):
        yield f"eigenvalues are {values}"
    if not p.near(np.tril(t, -2 if p.a.dtype.kind == "f" else -1), np.zeros(t.shape)):
        yield "the Schur form is not triangular"
    if p.a.dtype.kind == "c" and not p.near(np.diag(t), values):
        yield "the diagonal of the Schur form does not have the eigenvalues"
    if option(p.instance, "mode") == "N":
        return
    if not p.near(q @ t @ np.conj(q.T), p.a):
        yield "Q·T·Qᴴ is not the matrix"
    if not p.is_unitary(q):
        yield "Q is not unitary"


CHECKS: dict[str, Callable[[Problem], Iterator[str]]] = {
    "LuDecomposition": lu, "Qr": qr, "ProductOfElementaryHouseholderReflectors": reflectors, "Eigh": symmetric,
    "syevd": symmetric, "heevd": symmetric, "gesdd": singular, "gesvd": singular, "geev": eigen, "gees": schur,
}  # fmt: skip
