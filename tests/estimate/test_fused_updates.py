# SPDX-License-Identifier: Apache-2.0
"""What is computed with a product does not hold it back: neither other updates, nor a transfer behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

F32 = np.float32
LAYERS, WIDTH, TOKENS = 4, 4096, 16384
WEIGHTS = [sw.ShapeDtypeStruct((WIDTH, WIDTH), F32)] * LAYERS
X = sw.ShapeDtypeStruct((TOKENS, WIDTH), F32)


def loss(weights: Any, x: Any) -> Any:
    for w in weights:
        x = np.tanh(x @ w)
    return (x * x).sum()


def sgd(weights: Any, x: Any) -> Any:
    return [w - F32(0.01) * g for w, g in zip(weights, sw.grad(loss)(weights, x))]


def momentum(weights: Any, x: Any, moments: Any) -> Any:
    moments = [F32(0.9) * m + F32(0.1) * g for m, g in zip(moments, sw.grad(loss)(weights, x))]
    return [w - F32(0.01) * m for w, m in zip(weights, moments)], moments


def estimate_of(step: Any, states: int, devices: int) -> Any:
    in_shardings = (P(), P("data"), *[P()] * states)
    function = sw.jit(step, mesh=sw.Mesh({"data": devices}), in_shardings=in_shardings, out_shardings=P())
    return function.lower(WEIGHTS, X, *[WEIGHTS] * states).compile().estimate("h100_sxm")


@pytest.mark.parametrize("devices", [8, 64])
def test_a_step_with_less_work_is_not_slower(devices: int) -> None:
    """One device adds each weight to the sum of its gradients: one comparison of its place serves all weights."""
    plain, with_moments = estimate_of(sgd, 0, devices), estimate_of(momentum, 1, devices)
    assert plain.estimate <= with_moments.estimate
    updates = [row for row in plain.rows if "subtract" in row.ops and "dot_general" in row.ops]
    assert all(row.ops.count("subtract") == 1 for row in updates if row.where == updates[-1].where)


def test_transfers_of_gradients_run_beside_other_products() -> None:
    """All but that of the first layer, whose product is the last one, and what queues before it."""
    estimate = estimate_of(sgd, 0, 8)
    sent = [row for row in estimate.rows if row.kind == "transfer" and row.bytes > WIDTH * WIDTH]
    assert len(sent) == LAYERS
    assert estimate.exposed < 2 * max(row.seconds for row in sent)


def test_a_product_does_not_wait_for_a_transfer_behind_it() -> None:
    """The gather of ``b`` runs beside the product that it is added to."""

    def biased(x: Any, w: Any, b: Any) -> Any:
        h = x @ w
        return h + np.exp(sw.shard(np.sin(b), P()))

    shapes = sw.ShapeDtypeStruct((8192, 8192), F32)
    function = sw.jit(biased, mesh=sw.Mesh({"x": 8}), in_shardings=(P(), P(), P("x")), out_shardings=P())
    estimate = function.lower(shapes, shapes, shapes).compile().estimate("h100_sxm")
    (gather,) = (row for row in estimate.rows if row.kind == "transfer" and row.seconds > 1e-4)
    product = next(row for row in estimate.rows if "dot_general" in row.ops)
    assert product.start < gather.start + gather.seconds
    assert "add" not in product.ops
