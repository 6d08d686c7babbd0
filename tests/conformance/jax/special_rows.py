# SPDX-License-Identifier: Apache-2.0
"""Rows of special_points.py for interpolation, statistics, choices, NaN reductions, ``where=`` and constructors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tests.conformance.jax.special_arrays import (
    ROWS,
    Row,
    angles,
    constant,
    finite,
    knots,
    matrices,
    moderate,
    pairs,
    size_one,
    tied,
    two_matrices,
    two_rows,
    values,
    weighted,
    zeros,
)

PLACES = np.array([0, 3, 0, 2, 3])
MASK = np.array([True, False, True, False, False])


def _every_third(x: Any) -> np.ndarray:
    """A known mask of rows: the first of three is all False, the second all True, the third mixed."""
    i, j = np.indices(x.shape)
    return (i % 3 == 1) | (i % 3 == 2) & (j % 2 == 0)


def _where(name: str, **options: Any) -> dict[str, Row]:
    """A reduction of the elements that a traced mask or a known one chooses; some rows have none."""
    return {
        f"{name}-where": (lambda n, x: getattr(n, name)(x, axis=1, where=x > 0, **options), ROWS),
        f"{name}-where-known": (
            lambda n, x: getattr(n, name)(x, axis=1, where=_every_third(x), keepdims=True, **options), ROWS,
        ),
    }  # fmt: skip


def _without_nan(name: str) -> dict[str, Row]:
    return {
        name: (lambda n, x: getattr(n, name)(x), (finite, size_one)),
        f"{name}-rows": (lambda n, x: getattr(n, name)(x, axis=1), ROWS),
    }


def _made(n: Any, name: str, like: Any, *args: Any) -> Any:
    """What a constructor makes, traced; jax.numpy has not all of them and needs no ``like``."""
    return getattr(np, name)(*args, like=like) if n is np else getattr(n, name, n.asarray)(*args)


def _constructors() -> dict[str, Row]:
    numbers = np.array([[2.0, 0.0, -1.0]])
    arguments: dict[str, Any] = {
        "zeros": [3], "ones": [3], "full": [3, 2.5], "eye": [3], "identity": [3], "tri": [3],
        "frombuffer": [numbers.tobytes()], "fromfunction": [lambda i: i + 0.5, (3,)],
    }  # fmt: skip
    rows: dict[str, Row] = {
        name: (lambda n, x, name=name, own=own: x[0, :3] * _made(n, name, x, *own), (finite,))
        for name, own in arguments.items()
    }
    for name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
        rows[name] = (lambda n, x, name=name: _made(n, name, x, [[x[0, 0], 1.0], [x[7, 0], x[7, 0]]]), ROWS)
    return rows | {
        "full-traced": (lambda n, x: _made(n, "full", x, (2, 3), x[4, 0]), ROWS),
        "empty": (lambda n, x: x[0, :3] * (0 * _made(n, "empty", x, 3).astype(np.int32)), (finite,)),
        "fromiter": (lambda n, x: x[0, :3] * (np.fromiter([1, 0, 2], float, like=x) if n is np else
                     n.asarray([1.0, 0.0, 2.0])), (finite,)),
    }  # fmt: skip


def _fix(n: Any, x: Any) -> Any:
    """JAX has trunc alone."""
    if n is not np:
        return n.trunc(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 2.5 deprecates it
        return np.fix(x)


def _norms() -> dict[str, Row]:
    return {
        **{
            f"linalg.vector_norm-{o}": (lambda n, x, o=o: n.linalg.vector_norm(x, axis=1, ord=o), ROWS)
            for o in (0, 1, 2, -np.inf)
        },
        "linalg.vector_norm": (lambda n, x: n.linalg.vector_norm(x, keepdims=True), (finite, zeros)),
        "linalg.matrix_norm": (lambda n, x: n.linalg.matrix_norm(x), (finite, zeros)),
        "linalg.matrix_norm-inf": (lambda n, x: n.linalg.matrix_norm(x, ord=np.inf), (tied, zeros)),
    }


NUMERICAL_ROWS: dict[str, Row] = {
    **{k: row for name in ("sum", "prod", "mean", "var", "std", "any", "all") for k, row in _where(name).items()},
    **_where("max", initial=1.0),
    **_where("min", initial=1.0),
    "var-mean": (lambda n, x, y: n.var(x, axis=1, mean=y[:, :1]), (two_rows,)),
    "std-mean": (lambda n, x, y: n.std(x, axis=1, mean=y[:, :1], where=x > 0), (two_rows,)),
    "std-where-ddof": (lambda n, x: n.std(x, axis=1, where=x > 0, ddof=1), ROWS),
    **{
        k: row
        for name in ("sum", "prod", "cumsum", "cumprod", "max", "min", "mean", "var", "std")
        for k, row in _without_nan(f"nan{name}").items()
    },
    "nanargmax": (lambda n, x: n.nanargmax(x, axis=1), (finite,)),
    "nanargmin": (lambda n, x: n.nanargmin(x, axis=1), (finite,)),
    # Choices.
    "select": (lambda n, x, y: n.select([x < y, x == y], [x * y, x], y), (pairs,)),
    "select-default": (lambda n, x: n.select([x > 1, x < 1], [n.log(x), x * x]), (values,)),
    "piecewise": (lambda n, x: n.piecewise(x, [x < 0, x >= 1], [lambda v: -v, lambda v: v * v, 3.0]), (values,)),
    "piecewise-domain": (lambda n, x: n.piecewise(x, [x > 0], [lambda v: n.sqrt(v) * n.log(v), 0.0]), (values,)),
    "choose": (lambda n, x, y: n.choose((x > y) + (x >= y).astype(int), [x, x * y, y], mode="clip"), (pairs,)),
    "compress": (lambda n, x: n.compress(MASK, x, axis=1) if n is np else x[:, MASK], ROWS),
    "extract": (lambda n, x: n.extract(_every_third(x), x) if n is np else x[_every_third(x)], ROWS),
    "delete": (lambda n, x: n.delete(x, PLACES[1:3], axis=1), ROWS),
    "insert": (lambda n, x, y: n.insert(x, np.array([1, 1, 3]), y[:, :3], axis=1), (two_rows,)),
    "resize": (lambda n, x: n.resize(x, (7, 4)), ROWS),
    # Differences and interpolation.
    "interp": (lambda n, x, xp, fp: n.interp(x, xp, fp), (knots,)),
    "interp-bounds": (lambda n, x, xp, fp: n.interp(x, xp, fp, left=fp[1], right=-1.0), (knots,)),
    "ediff1d": (lambda n, x: n.ediff1d(x[4:8], to_end=x[0, 0], to_begin=n.asarray([1.0], x.dtype)), ROWS),
    "gradient": (lambda n, x: n.gradient(x), (finite,)),
    "gradient-rows": (lambda n, x: n.gradient(x, 0.5, axis=1), ROWS),
    "gradient-spacing": (lambda n, x, y: n.gradient(x, 1 + y[0, 0] ** 2, axis=1), (two_rows,)),
    "trapezoid": (lambda n, x: n.trapezoid(x, axis=1), ROWS),
    "trapezoid-points": (lambda n, x, y: n.trapezoid(x, y, axis=1), (two_rows,)),
    "unwrap": (lambda n, x: n.unwrap(x, axis=1), (angles,)),
    "unwrap-period": (lambda n, x: n.unwrap(x, axis=1, period=2.0), (finite,)),
    "linspace": (lambda n, x, y: n.linspace(x, y, 4), (two_rows,)),
    "linspace-open": (lambda n, x, y: n.linspace(x, y, 3, endpoint=False), (two_rows,)),
    "logspace": (lambda n, x, y: n.logspace(x, y, 3), (two_matrices,)),
    "logspace-base": (lambda n, x, y: n.logspace(0, x, 3, base=1 + y * y), (two_matrices,)),
    # Statistics.
    "average": (lambda n, x: n.average(x, axis=1), ROWS),
    "average-weights": (lambda n, x, y: n.average(x, axis=1, weights=y), (weighted,)),
    "average-returned": (lambda n, x, y: n.average(x, weights=y, returned=True), (weighted,)),
    "cov": (lambda n, x: n.cov(x), (tied, constant)),
    "cov-columns": (lambda n, x, y: n.cov(x, y, rowvar=False, bias=True), (two_matrices,)),
    "corrcoef": (lambda n, x: n.corrcoef(x, rowvar=False), (tied, constant)),
    "corrcoef-equal": (lambda n, x: n.corrcoef(x, -x), (tied,)),
    "bincount": (lambda n, x: n.bincount(PLACES, weights=x[4], **{"minlength" if n is np else "length": 6}), ROWS),
    "histogram": (lambda n, x: n.histogram(x, 3), (finite, constant)),
    "histogram-weights": (lambda n, x, y: n.histogram(x, np.array([-1.0, 0.0, 1.0, 3.0]), weights=y), (weighted,)),
    "histogram-density": (lambda n, x: n.histogram(x, 2, density=True), (tied, constant)),
    "searchsorted": (lambda n, x: n.searchsorted(x[6], x, side="right"), ROWS),
    "digitize": (lambda n, x: n.digitize(x, x[6]), ROWS),
    "unravel_index": (lambda n, x: x[4] * n.unravel_index(n.argmax(x[4]), (3, 1000))[1], ROWS),
    "isin": (lambda n, x, y: n.isin(x, y[4]), (two_rows,)),
    # Products and polynomials.
    "polyval": (lambda n, x: n.polyval(x[7], x), ROWS),
    "vander": (lambda n, x: n.vander(x[7], 4), ROWS),
    "vander-increasing": (lambda n, x: n.vander(x[10:13].ravel(), 3, increasing=True), ROWS),
    "cross": (lambda n, x, y: n.cross(x, y), (matrices,)),
    "linalg.cross": (lambda n, x, y: n.linalg.cross(x, y, axis=0), (matrices,)),
    "convolve": (lambda n, x, y: n.convolve(x[7], y[4]), (two_rows,)),
    "convolve-same": (lambda n, x, y: n.convolve(x[10], y[7], "same"), (two_rows,)),
    "correlate": (lambda n, x, y: n.correlate(x[9], y[6, :3]), (two_rows,)),
    "correlate-full": (lambda n, x, y: n.correlate(x[8, :3], y[7], "full"), (two_rows,)),
    **{
        f"linalg.matrix_power-{k}": (lambda n, x, y, k=k: n.linalg.matrix_power(x, k) @ y, (two_matrices,))
        for k in (0, 1, 2, 3, 5)
    },
    "linalg.multi_dot": (lambda n, x, y: n.linalg.multi_dot([x, y, x]), (two_matrices,)),
    **_norms(),
    # Elementwise.
    "sinc": (lambda n, x: n.sinc(x), (moderate,)),
    "fix": (_fix, (values,)),
    "isposinf": (lambda n, x: n.isposinf(x), (values,)),
    "isneginf": (lambda n, x: n.isneginf(x), (values,)),
    "isreal": (lambda n, x: n.isreal(x), (values,)),
    "iscomplex": (lambda n, x: n.iscomplex(x), (values,)),
    "array_equiv": (lambda n, x, y: n.array_equiv(x, y[:1]), (two_rows,)),
    # Grids, places and blocks.
    "meshgrid": (lambda n, x, y: n.meshgrid(x[0], y[10]), (two_rows,)),
    "ix_": (lambda n, x: x[n.ix_(n.argmax(x, 0), n.asarray([1, 1, 0]))], ROWS),
    "block": (lambda n, x, y: n.block([[x, y], [y, x]]), (matrices,)),
    "diagflat": (lambda n, x: n.diagflat(x[10:12]), ROWS),
    "diag_indices_from": (lambda n, x: x[n.diag_indices_from(x[10:15])], ROWS),
    "tril_indices_from": (lambda n, x: x[n.tril_indices_from(x)], ROWS),
    "triu_indices_from": (lambda n, x: x[n.triu_indices_from(x, 1)], ROWS),
    "roll-traced": (lambda n, x: n.roll(x, n.argmax(x[4]) + 2, axis=1), ROWS),
    **_constructors(),
}  # fmt: skip
