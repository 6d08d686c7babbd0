# SPDX-License-Identifier: Apache-2.0
"""Forward mode of every differentiable op against its own vjp, which is checked by differences in test_gradients.

For a tangent t of the operands and a cotangent w of the result: the sum of w · jvp(t) is the sum of vjp(w) · t.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardwise import _core
from tests.op.case import OpCase
from tests.op.inputs import dtype_of
from tests.op.references import Array, wide
from tests.op.test_gradients import DIFFERENTIABLE, Loss, losses
from tests.support.partitioned import ONE_DEVICE, SCENARIOS, Axes, execute, sharding


def tangents_of(loss: Loss) -> list[Array]:
    rng = np.random.default_rng(3)
    return [rng.uniform(-1, 1, loss.operands[i].shape).astype(loss.operands[i].dtype) for i in loss.wrt]


def record(loss: Loss, shardings: list[Any] | None = None) -> Any:
    """The tangent of the result, and the gradients, in one program."""
    trace = _core.ir.Trace("tangent")
    values = [
        trace.argument(x.shape, x.dtype.name, "", shardings[i] if shardings else None)
        for i, x in enumerate(loss.operands)
    ]
    tangents = [trace.argument(t.shape, t.dtype.name) for t in tangents_of(loss)]
    # No op is made by two programs: the gradients are those of a second copy.
    first, second = (loss.case.emit(trace, values, loss.application, loss.dtype) for _ in range(2))
    wrt = [values[i] for i in loss.wrt]
    pushed = trace.jvp([first], wrt, tangents)
    seed = trace.constant(loss.weights.astype(dtype_of(trace.type_of(second).dtype)))[0]
    return trace.finish([*pushed, *trace.vjp([second], [seed], wrt)])


def check(loss: Loss, results: list[Array], where: str = "") -> None:
    pushed, *gradients = results
    assert pushed.shape == loss.result.shape
    products = [wide(g) * wide(t) for g, t in zip(gradients, tangents_of(loss))]
    terms = wide(pushed) * loss.weights
    got, want = np.sum(terms), sum(np.sum(product) for product in products)
    scale = np.sum(np.abs(terms)) + sum(np.sum(np.abs(product)) for product in products) + 1
    eps = max(np.finfo(x.dtype).eps for x in (pushed, *gradients))
    assert abs(got - want) <= 1024 * eps * scale, f"{loss.case.id} {loss.application.label}{where}: {got}, not {want}"


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=[case.id for case in DIFFERENTIABLE])
def test_forward_mode_is_the_transpose_of_reverse_mode(case: OpCase) -> None:
    tried = 0
    for loss in losses(case, 5):
        for results in execute(_core.passes.compile(record(loss), ONE_DEVICE), [*loss.operands, *tangents_of(loss)]):
            check(loss, results)
            tried += 1
    assert tried


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=[case.id for case in DIFFERENTIABLE])
def test_forward_mode_of_a_sharded_operand(case: OpCase) -> None:
    (scenario,) = (s for s in SCENARIOS if s.name == "7 over 8")
    mesh = scenario.mesh()
    tried = 0
    for loss in losses(case, scenario.size):
        axes: list[list[Axes]] = [[scenario.axes, *[()] * (x.ndim - 1)] if x.ndim else [] for x in loss.operands]
        held = [sharding(mesh, of) for of in axes]
        program = _core.passes.compile(record(loss, held), mesh)
        for results in execute(program, [*loss.operands, *tangents_of(loss)]):
            check(loss, results, f", {scenario.name}")
            tried += 1
    assert tried
