# SPDX-License-Identifier: Apache-2.0
"""Batch norms in extended precision."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.op.references import Array, wide

EPSILON = 0.0625


def _around(feature: int, ndim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != feature)


def _spread(x: Array, feature: int, ndim: int) -> Array:
    return np.expand_dims(x, _around(feature, ndim))


def _moments(x: Array, feature: int) -> tuple[Array, Array]:
    dims = _around(feature, x.ndim)
    count = np.longdouble(np.prod([x.shape[d] for d in dims]))
    mean = np.sum(x, dims) / count
    return mean, np.sum((x - _spread(mean, feature, x.ndim)) ** 2, dims) / count


def _normalised(x: Array, scale: Array, offset: Array, mean: Array, variance: Array, feature: int) -> Array:
    spread = partial(_spread, feature=feature, ndim=x.ndim)
    return spread(scale) * (x - spread(mean)) / np.sqrt(spread(variance) + EPSILON) + spread(offset)


def inference(*operands: Array, feature: int, result: int) -> Array:
    x, scale, offset, mean, variance = map(wide, operands)
    return _normalised(x, scale, offset, mean, variance, feature)


def training(*operands: Array, feature: int, result: int) -> Array:
    x, scale, offset = map(wide, operands)
    mean, variance = _moments(x, feature)
    return (_normalised(x, scale, offset, mean, variance, feature), mean, variance)[result]


def grad(*operands: Array, feature: int, result: int) -> Array:
    x, scale, mean, variance, g = map(wide, operands)
    dims, spread = _around(feature, x.ndim), partial(_spread, feature=feature, ndim=x.ndim)
    centered = x - spread(mean)
    normal = centered / np.sqrt(spread(variance) + EPSILON)
    if result:
        return np.sum(g * normal, dims) if result == 1 else np.sum(g, dims)
    count = np.prod([x.shape[d] for d in dims])
    along = centered * spread(np.sum(g * centered, dims)) / (spread(variance) + EPSILON)
    return spread(scale / np.sqrt(variance + EPSILON)) / count * (count * g - spread(np.sum(g, dims)) - along)
