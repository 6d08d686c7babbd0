# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table for batch norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tests.op.case import FLOATS, Application, OpCase
from tests.op.inputs import Shape, within
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


def _inference(*operands: Array, feature: int, result: int) -> Array:
    x, scale, offset, mean, variance = map(wide, operands)
    return _normalised(x, scale, offset, mean, variance, feature)


def _training(*operands: Array, feature: int, result: int) -> Array:
    x, scale, offset = map(wide, operands)
    mean, variance = _moments(x, feature)
    return (_normalised(x, scale, offset, mean, variance, feature), mean, variance)[result]


def _grad(*operands: Array, feature: int, result: int) -> Array:
    x, scale, mean, variance, g = map(wide, operands)
    dims, spread = _around(feature, x.ndim), partial(_spread, feature=feature, ndim=x.ndim)
    centered = x - spread(mean)
    normal = centered / np.sqrt(spread(variance) + EPSILON)
    if result:
        return np.sum(g * normal, dims) if result == 1 else np.sum(g, dims)
    count = np.prod([x.shape[d] for d in dims])
    along = centered * spread(np.sum(g * centered, dims)) / (spread(variance) + EPSILON)
    return spread(scale / np.sqrt(variance + EPSILON)) / count * (count * g - spread(np.sum(g, dims)) - along)


def _batch_norm(name: str, reference: Callable[..., Array], results: int) -> Callable[[int, str], list[Application]]:
    def row(shape: Shape, feature: int, result: int) -> Application:
        attrs = {"epsilon": EPSILON, "feature_index": feature}
        per_feature = (shape[feature],)
        operands: tuple[Shape, ...] = (shape, *(per_feature,) * {"inference": 4, "training": 2, "grad": 3}[name])
        if name == "grad":
            operands = (*operands, shape)

        def record(trace: Any, values: Sequence[int]) -> int:
            return int(trace.emit_op(f"stablehlo.batch_norm_{name}", list(values), attrs)[result][0])

        return Application(
            operands, partial(reference, feature=feature, result=result), attrs,
            record=record, result=result, label=f"{shape}{feature}[{result}]",
        )  # fmt: skip

    def applications(n: int, dtype: str) -> list[Application]:
        shapes: list[tuple[Shape, int]] = [((n, 3), 1), ((4, n), 1), ((2, n, 3), 2), ((n, 5), 0)]
        return [row(shape, feature, i) for shape, feature in shapes for i in range(results)]

    return applications


def _norm_case(name: str, reference: Callable[..., Array], results: int) -> OpCase:
    return OpCase(
        f"stablehlo.batch_norm_{name}", FLOATS, _batch_norm(name, reference, results), within(0.5, 3), "magnitude", 64
    )


BATCH_NORMS = [
    _norm_case("inference", _inference, 1),
    _norm_case("training", _training, 3),
    _norm_case("grad", _grad, 3),
]
