# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 (a case is read best on one line, as a user writes it)
"""Rows of numpy_cases for functions that are composed of others: a name, a function of arrays, its arrays.

A row in DIFFERENTIABLE is also a row of the gradients: the function of its first array, whose gradient exists there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

RNG = np.random.default_rng(8)
X = RNG.uniform(-3, 3, (6, 4))
V = RNG.uniform(-3, 3, 9)
EDGES = np.array([-2.0, -0.5, 0.25, 1.5])
HEIGHTS = np.array([3.0, -1.0, 2.0, 0.5])
MASK = np.array([True, False, True, True, False, True])
N = np.where(RNG.random((6, 4)) < 0.3, np.nan, X)
N[:, 1], N[2] = np.nan, X[2]
N[2, 1] = np.nan
I = np.array([[3, 0, -2, 7], [1, 1, 9, -4]])  # noqa: E741


def _fix(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 2.5 deprecates it
        return np.fix(x)


Rows = dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]]

DIFFERENTIABLE: Rows = {
    "select": (lambda x: np.select([x < -1, x > 1], [x * x, np.sin(x)], x), (X,)),
    "select-number": (lambda x: np.select([x < -1, x[0] > 1], [2 * x, 3], 0.5), (X,)),
    "select-known": (lambda x: np.select([MASK[:, None], True], [x, -x]), (X,)),
    "piecewise": (lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda x: -x, lambda x: x * x]), (X,)),
    "piecewise-otherwise": (lambda x: np.piecewise(x, [x < -1, x > 1], [-1, lambda x, k: x * k, lambda x, k: x + k], 2), (X,)),
    "choose": (lambda x: np.choose(I % 3, [x[:2], x[2:4], x[4:]]), (X,)),
    "delete": (lambda x: np.delete(x, [0, -1], axis=0), (X,)),
    "delete-slice": (lambda x: np.delete(x, np.s_[1::2], axis=1), (X,)),
    "delete-mask": (lambda x: np.delete(x, MASK, axis=0), (X,)),
    "delete-flat": (lambda x: np.delete(x, 3), (X,)),
    "insert": (lambda x: np.insert(x, 2, x[0], axis=0), (X,)),
    "insert-column": (lambda x: np.insert(x, 1, x[:, 0], axis=1), (X,)),
    "insert-number": (lambda x: np.insert(x, 2, 5.5, axis=1), (X,)),
    "insert-several": (lambda x: np.insert(x, [0, 2, 2], x[:3], axis=0), (X,)),
    "insert-one-listed": (lambda x: np.insert(x, [1], x[:, :2], axis=1), (X,)),
    "insert-flat": (lambda x: np.insert(x, slice(0, 3), 0), (X,)),
    "compress": (lambda x: np.compress(MASK, x, axis=0), (X,)),
    "extract": (lambda x: np.extract(MASK[:, None] & [True, True, False, False], x), (X,)),
    "resize": (lambda x: np.resize(x, (5, 7)), (X,)),
    "block": (lambda x: np.block([[x, x[:, :1]], [x[:2], np.zeros((2, 1))]]), (X,)),
    "block-list": (lambda x: np.block([x[0], x[1], 1.0]), (X,)),
    "meshgrid": (lambda x: np.meshgrid(x, x[:3]), (V,)),
    "meshgrid-ij": (lambda x: np.meshgrid(x[:2], np.arange(3.0), x, indexing="ij"), (V,)),
    "meshgrid-sparse": (lambda x: np.meshgrid(x[:2], x, sparse=True), (V,)),
    "diagflat": (lambda x: np.diagflat(x[:2], 1), (X,)),
    "triangle": (lambda x: x[np.tril_indices_from(x)].sum() + x[np.triu_indices_from(x, 1)].sum() + x[:4][np.diag_indices_from(x[:4])], (X,)),
    "interp": (lambda x: np.interp(x, EDGES, HEIGHTS), (X,)),
    "interp-ends": (lambda x: np.interp(x, EDGES, HEIGHTS, left=-7, right=9), (V,)),
    "interp-traced": (lambda x, e, h: np.interp(x, e, h), (V, EDGES, HEIGHTS)),
    "interp-one": (lambda x: np.interp(x, EDGES[:1], HEIGHTS[:1]) * x, (V,)),
    "ediff1d": (lambda x: np.ediff1d(x, to_end=[1.0, 2.0], to_begin=x[0, 0]), (X,)),
    "trapezoid": (lambda x: np.trapezoid(x, dx=0.5), (X,)),
    "trapezoid-x": (lambda x: np.trapezoid(x, x=[0, 1, 3, 4, 6, 7], axis=0), (X,)),
    "trapezoid-traced": (lambda x: np.trapezoid(x, x=x * 2), (X,)),
    "gradient": (np.gradient, (X,)),
    "gradient-1d": (lambda x: np.gradient(x, 0.5), (V,)),
    "gradient-axis": (lambda x: np.gradient(x, 2.0, axis=1, edge_order=2), (X,)),
    "gradient-coordinates": (lambda x: np.gradient(x, np.array([0.0, 1, 3, 4, 6, 7]), 0.5, axis=(0, 1)), (X,)),
    "unwrap": (np.unwrap, (3 * V,)),
    "unwrap-period": (lambda x: np.unwrap(x, axis=0, period=4, discont=3), (X,)),
    "average": (np.average, (X,)),
    "average-axis": (lambda x: np.average(x, axis=1, keepdims=True, returned=True), (X,)),
    "average-weights": (lambda x: np.average(x, axis=0, weights=[1, 2, 3, 4, 5, 6], returned=True), (X,)),
    "average-all": (lambda x: np.average(x, weights=x * x), (X,)),
    "average-axes": (lambda x: np.average(x.reshape(2, 3, 4), axis=(2, 0), weights=np.arange(1.0, 9).reshape(4, 2)), (X,)),
    "cov": (np.cov, (X,)),
    "cov-columns": (lambda x: np.cov(x, rowvar=False, bias=True), (X,)),
    "cov-two": (lambda x: np.cov(x[0], x[1], ddof=0), (X,)),
    "cov-one": (lambda x: np.cov(x), (V,)),
    "corrcoef": (lambda x: np.corrcoef(x[:3]), (X,)),
    "polyval": (lambda x: np.polyval([1.0, -2.0, 0.5], x), (X,)),
    "polyval-traced": (lambda x: np.polyval(x, 0.7) + np.polyval(x[:3], x), (V,)),
    "vander": (lambda x: np.vander(x, 4), (V,)),
    "vander-increasing": (lambda x: np.vander(x[:3], increasing=True), (V,)),
    "cross": (lambda x: np.cross(x[:, :3], x[:, 1:]), (X,)),
    "cross-axis": (lambda x: np.cross(x[:3], x[3:], axis=0), (X,)),
    "linalg.cross": (lambda x: np.linalg.cross(x[:, :3], x[0, :3]), (X,)),
    "convolve": (lambda x: [np.convolve(x, HEIGHTS, mode) for mode in ("full", "same", "valid")], (V,)),
    "convolve-short": (lambda x: [np.convolve(x[:3], x, mode) for mode in ("full", "same", "valid")], (V,)),
    "correlate": (lambda x: [np.correlate(x, HEIGHTS, mode) for mode in ("full", "same", "valid")], (V,)),
    "correlate-short": (lambda x: [np.correlate(x[:4], x, mode) for mode in ("full", "same", "valid")], (V,)),
    "matrix_power": (lambda x: [np.linalg.matrix_power(x[:4], n) for n in (0, 1, 2, 5)], (X,)),
    "multi_dot": (lambda x: np.linalg.multi_dot([x, x.T, x[:, 0]]), (X,)),
    "vector_norm": (lambda x: [np.linalg.vector_norm(x), np.linalg.vector_norm(x, axis=1, ord=1), np.linalg.vector_norm(x, keepdims=True)], (X,)),
    "matrix_norm": (lambda x: [np.linalg.matrix_norm(x), np.linalg.matrix_norm(x[None], keepdims=True, ord=1)], (X,)),
    "sinc": (np.sinc, (X,)),
    "linspace": (lambda x: np.linspace(x[0], x[1], 5), (X,)),
    "linspace-step": (lambda x: np.linspace(0, x[:, 0], 4, endpoint=False, retstep=True, axis=-1), (X,)),
    "linspace-one": (lambda x: np.linspace(x[0, 0], 2, 1), (X,)),
    "logspace": (lambda x: np.logspace(x[0], 1, 4, base=2.0), (X,)),
    "nansum": (lambda x: [np.nansum(x), np.nansum(x, axis=0)], (X,)),
    "nanmean": (lambda x: np.nanmean(np.where(np.isnan(N), np.nan, x), axis=1, keepdims=True), (X,)),
    "nanvar": (lambda x: np.nanvar(np.where(np.isnan(N[:, ::2]), np.nan, x[:, ::2]), axis=0, ddof=1), (X,)),
    "nanstd": (lambda x: np.nanstd(np.where(np.isnan(N[:, ::2]), np.nan, x[:, ::2])), (X,)),
    "nanprod": (lambda x: np.nanprod(np.where(np.isnan(N), np.nan, x), axis=0), (X,)),
    "nancumsum": (lambda x: np.nancumsum(np.where(np.isnan(N), np.nan, x), axis=1), (X,)),
    "sort": (lambda x: np.sort(x), (X,)),
    "sort-0": (lambda x: np.sort(x, axis=0), (X,)),
    "sort-flat": (lambda x: np.sort(x, None), (X,)),
    "median": (lambda x: np.median(x, axis=0), (X,)),
    "median-odd": (lambda x: np.median(x), (V,)),
    "quantile": (lambda x: np.quantile(x, [0.1, 0.5, 1], axis=1), (X,)),
    "percentile": (lambda x: np.percentile(x, 37, keepdims=True), (X,)),
}  # fmt: skip

OTHERS: Rows = {
    "sort-nan": (lambda x: [np.sort(x, axis=0), np.sort(x, kind="stable")], (N,)),
    "argsort": (lambda x: [np.argsort(x, kind="stable"), np.argsort(x, axis=0, stable=True), np.argsort(x, None, "stable")], (N,)),
    "argsort-integers": (lambda i: [np.argsort(i % 3, kind="stable"), i.argsort(axis=0), np.sort(i.astype(np.uint8)), np.sort(i > 0)], (I,)),
    "argsort-zeros": (lambda x: np.argsort(x, kind="stable"), (np.array([0.0, -0.0, 1.0, -0.0, -1.0, 0.0], np.float16),)),
    "lexsort": (lambda x, i: [np.lexsort((x[0], i[0] % 2)), np.lexsort(i % 3), np.lexsort((i, x[:2] > 0), axis=0)], (X, I)),
    "median-nan": (lambda x: [np.median(x, axis=0), np.median(x, axis=(0, 1), keepdims=True)], (N,)),
    "median-integers": (lambda i: [np.median(i), np.median(i, axis=1), np.percentile(i, [10, 99])], (I,)),
    "median-infinite": (np.median, (np.array([np.inf, 1.0, -np.inf, np.inf]),)),
    "quantile-methods": (lambda x: [np.quantile(x, [0, 0.13, 0.5, 1], axis=0, method=m) for m in ("lower", "higher", "nearest", "midpoint", "weibull", "hazen", "median_unbiased", "normal_unbiased")], (X,)),
    "bincount": (lambda i: np.bincount(i, minlength=8), (I[0] % 8,)),
    "bincount-weights": (lambda i, w: np.bincount(i, w, minlength=10), (I[1] % 8, np.array([0.5, 1, 2, 4], np.float32))),
    "bincount-uint8": (lambda i: np.bincount(i, minlength=200), ((I[0] % 8).astype(np.uint8),)),
    "histogram": (lambda x: np.histogram(x, EDGES), (np.append(X, EDGES),)),
    "histogram-number": (lambda x: [np.histogram(x), np.histogram(x, 4), np.histogram(x[:1, :1], 3)], (X,)),
    "histogram-range": (lambda x: [np.histogram(x, 5, (-1, 1)), np.histogram(x, 5, (-2.0, 2.0), density=True)], (X,)),
    "histogram-weights": (lambda x, w: [np.histogram(x, EDGES, weights=w), np.histogram(x, EDGES, weights=w, density=True)], (X, X * X)),
    "histogram-nan": (lambda x: np.histogram(x, EDGES), (N,)),
    "histogram-float32": (lambda x: np.histogram(x, 4, (-1.0, 3.0)), (X.astype(np.float32),)),
    "histogram-integers": (lambda i: [np.histogram(i, 3), np.histogram(i, [0, 1, 9])], (I,)),
    "searchsorted": (lambda x: [np.searchsorted(EDGES, x), np.searchsorted(EDGES, x, side="right")], (np.append(X, EDGES),)),
    "searchsorted-nan": (lambda x: [np.searchsorted(np.append(EDGES, np.nan), x, side=s) for s in ("left", "right")], (N,)),
    "searchsorted-number": (lambda x: np.searchsorted(x, 0.3), (EDGES,)),
    "digitize": (lambda x: [np.digitize(x, EDGES), np.digitize(x, EDGES, right=True)], (np.append(X, EDGES),)),
    "digitize-down": (lambda x: [np.digitize(x, EDGES[::-1]), np.digitize(x, EDGES[::-1], right=True)], (np.append(X, EDGES),)),
    "digitize-traced": (np.digitize, (X, EDGES)),
    "digitize-traced-down": (lambda x, e: [np.digitize(x, e), np.digitize(x, e, right=True)], (np.append(X, [*EDGES, np.nan]), EDGES[::-1])),
    "digitize-traced-equal": (lambda x, e, f, g: [np.digitize(x, b, right=r) for b in (e, f, g) for r in (False, True)], (I, np.array([7, 1, 1]), np.array([1, 1]), np.array([3]))),
    "interp-nan": (lambda x: np.interp(x, EDGES, HEIGHTS), (N,)),
    "interp-float32": (lambda x: np.interp(x, EDGES, HEIGHTS), (X.astype(np.float32),)),
    "isin": (lambda x: [np.isin(x, [1, 7, -4]), np.isin(x, x[0, :2], invert=True)], (I,)),
    "isin-traced": (lambda x, i: np.isin(I, i), (X, I[0])),
    "choose-traced": (lambda x, i: [np.choose(i % 2, [x, x + 1]), np.choose(i, [x, 5], mode="wrap"), np.choose(i, [1, 2, 3], mode="clip")], (I, I)),
    "ix_": (lambda x: x[np.ix_([0, 2], [1, 3])], (X,)),
    "ix_-traced": (lambda x, i, j: x[np.ix_(i, j)], (X, np.array([5, 0, -1]), np.array([1, 3]))),
    "isposinf": (lambda x: [np.isposinf(x), np.isneginf(x)], (np.array([np.inf, -np.inf, 0.0, np.nan]),)),
    "isreal": (lambda x: [np.isreal(x), np.iscomplex(x)], (X,)),
    "fix": (_fix, (X,)),
    "array_equiv": (lambda x: [np.array_equiv(x, x[:1]), np.array_equiv(x, x), np.array_equiv(x, X[0, :3])], (X,)),
    "sinc-zero": (np.sinc, (np.array([0.0, 1.0, -0.5], np.float32),)),
    "nanmax": (lambda x: [np.nanmax(x), np.nanmax(x, axis=1), np.nanmin(x, axis=1, keepdims=True), np.nanmin(x)], (N,)),
    "nanargmax": (lambda x: [np.nanargmax(x), np.nanargmin(x), np.nanargmax(x[:, ::2], axis=1), np.nanargmin(x[:, [0, 2]], axis=0)], (N,)),
    "nancumprod": (np.nancumprod, (N,)),
    "nan-float32": (lambda x: [np.nanmean(x[:, ::2], axis=0), np.nanstd(x[:, ::2], axis=0), np.nansum(x), np.nanvar(x, ddof=1)], (N.astype(np.float32),)),
    "nan-float16": (lambda x: [np.nanmean(x[:, ::2], axis=0), np.nansum(x, axis=1), np.nanmax(x)], (N.astype(np.float16),)),
    "nan-integers": (lambda x: [np.nansum(x), np.nanmean(x, axis=0), np.nanvar(x), np.nanmax(x, axis=0), np.nanprod(x % 3), np.nanargmin(x)], (I,)),
    "integers": (lambda x: [np.gradient(x, axis=1), np.average(x, axis=0), np.average(x, weights=x * x), np.cov(x), np.polyval([1, 2], x), np.ediff1d(x), np.trapezoid(x), np.sinc(x), np.unwrap(x, period=4), np.unwrap(x, period=5, axis=0)], (I,)),
    "integer-vectors": (lambda x: [np.convolve(x, [1, 2]), np.vander(x, 3), np.correlate(x, x, "full"), np.insert(x, 1, 2.7), np.delete(x, 0), np.piecewise(x, [x > 1], [2.5, -x[0]]) if x.ndim == 2 else x], (I[0],)),
    "float32": (lambda x: [np.gradient(x), np.average(x, axis=0, weights=x[:, 0] ** 2), np.cov(x, dtype=np.float32), np.corrcoef(x[:2]), np.select([x > 0], [x], 1.5), np.linspace(x[0], 1, 3), np.unwrap(x), np.trapezoid(x)], (X.astype(np.float32),)),
}  # fmt: skip
