# SPDX-License-Identifier: Apache-2.0
"""Gradients of every differentiable op against directional differences of the NumPy references; the ops without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardwise import _core
from tests.op.cases import CASES, CONTROL_FLOW, OF_FUNCTIONS, OF_OTHERS_WITHOUT_KERNEL, Application, OpCase
from tests.op.inputs import dtype_of, extreme, plain
from tests.op.references import Array, is_float, wide
from tests.support.partitioned import ONE_DEVICE, SCENARIOS, Axes, execute, sharding

DEFINITIONS = {op.name: op for op in _core.ir.all_ops()}
DIFFERENTIABLE = [
    case for case in CASES if DEFINITIONS[case.name].differentiable and case.gradient_dtype in case.dtypes
]


def test_ops_without_derivative_give_a_reason() -> None:
    without = {name for name, op in DEFINITIONS.items() if op.runnable and not op.differentiable}
    known = {case.name for case in CASES if not case.differentiable}
    assert {n for n in without if n.startswith(("stablehlo.", "chlo."))} == known
    assert all(DEFINITIONS[name].no_vjp_reason for name in without)
    assert not any(op.no_vjp_reason for op in DEFINITIONS.values() if op.differentiable)


def test_every_differentiable_op_is_tried() -> None:
    names = {name for name, op in DEFINITIONS.items() if op.differentiable and name.startswith(("stablehlo.", "chlo."))}
    assert names - OF_FUNCTIONS - CONTROL_FLOW - OF_OTHERS_WITHOUT_KERNEL == {case.name for case in DIFFERENTIABLE}


class Loss:
    """The weighted sum of an op's result, as a function of its float operands."""

    def __init__(self, case: OpCase, application: Application) -> None:
        self.case = case
        self.application = application
        self.dtype = case.gradient_dtype
        draw = case.gradient_draw or (plain if case.draw is extreme else case.draw)  # no specials, no ties
        self.operands = case.operands(application, self.dtype, draw)
        self.result = self.whole(self.operands)
        self.weights = np.random.default_rng(1).uniform(0.5, 1.5, self.result.shape)
        constants = application.fixed if application.baked else {}
        self.wrt = [i for i, x in enumerate(self.operands) if is_float(x.dtype) and i not in constants]

    def whole(self, operands: list[Array]) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(self.application.reference(*operands))

    def value(self, operands: list[Array]) -> Any:
        return np.sum(wide(self.whole(operands)) * self.weights)

    def directional(self, direction: list[Array], step: float) -> float:
        """Central difference, with operands of the op's own dtype."""
        sides = []
        for sign in (1, -1):
            moved = [
                x + (sign * step * d).astype(x.dtype) if i in self.wrt else x
                for i, (x, d) in enumerate(zip(self.operands, direction))
            ]
            sides.append(self.value(moved))
        return float((sides[0] - sides[1]) / (2 * step))

    def record(self, shardings: list[Any] | None = None) -> Any:
        trace = _core.ir.Trace("gradient")
        values = [
            trace.argument(x.shape, x.dtype.name, "", shardings[i] if shardings else None)
            for i, x in enumerate(self.operands)
        ]
        result = self.case.emit(trace, values, self.application, self.dtype)
        seed = trace.constant(self.weights.astype(dtype_of(trace.type_of(result).dtype)))[0]
        gradients = trace.vjp([result], [seed], [values[i] for i in self.wrt])
        return trace.finish(gradients)

    def gradients(self, shardings: list[Any] | None = None, mesh: Any = ONE_DEVICE) -> list[list[Array]]:
        return execute(_core.passes.compile(self.record(shardings), mesh), self.operands)


def losses(case: OpCase, size: int) -> list[Loss]:
    """Applications whose result is a float (convert to an integer has no gradient), of 32 bits or more."""
    dtype = case.gradient_dtype
    rows = []
    for application in case.applications(size, dtype):
        if application.differentiable and (application.result_dtype or dtype) in ("float32", "float64"):
            rows.append(Loss(case, application))
    return rows


def check(loss: Loss, gradients: list[Array]) -> None:
    rng = np.random.default_rng(2)
    single = any(x.dtype == np.float32 for x in loss.operands) or loss.application.result_dtype == "float32"
    step, tolerance = (2.0**-6, 1e-4) if single else (1e-5, 1e-6)
    for only in [None, *range(len(loss.wrt))]:
        direction = [
            rng.uniform(-1, 1, x.shape) if only is None or i == loss.wrt[only] else np.zeros(x.shape)
            for i, x in enumerate(loss.operands)
        ]
        got = sum(float(np.sum(g.astype(np.float64) * direction[i])) for g, i in zip(gradients, loss.wrt))
        want = loss.directional(direction, step)
        scale = sum(float(np.sum(np.abs(g.astype(np.float64) * direction[i]))) for g, i in zip(gradients, loss.wrt)) + 1
        assert abs(got - want) <= tolerance * scale, (
            f"{loss.case.id} {loss.application.label}: gradient {got}, difference {want}"
        )


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=[case.id for case in DIFFERENTIABLE])
def test_gradient_is_the_directional_difference(case: OpCase) -> None:
    tried = 0
    for loss in losses(case, 5):
        gradients, faithful = loss.gradients()
        for g, f, i in zip(gradients, faithful, loss.wrt):
            assert g.shape == loss.operands[i].shape
            assert g.dtype == loss.operands[i].dtype
            assert np.array_equal(g, f)
        check(loss, gradients)
        tried += 1
    assert tried


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=[case.id for case in DIFFERENTIABLE])
def test_partitioned_gradient_is_the_whole_one(case: OpCase) -> None:
    chosen = [s for s in SCENARIOS if s.name in ("7 over 8", "several axes", "permuted devices", "swapped sub-axes")]
    compared = 0
    for scenario in chosen:
        mesh = scenario.mesh()
        for loss in losses(case, scenario.size):
            whole = loss.gradients()[0]
            for operand, x in enumerate(loss.operands):
                for dim in range(x.ndim):
                    axes: list[Axes] = [scenario.axes if d == dim else () for d in range(x.ndim)]
                    held: list[Any] = [None] * len(loss.operands)
                    held[operand] = sharding(mesh, axes)
                    for got in loss.gradients(held, mesh):
                        for g, w in zip(got, whole):
                            eps = np.finfo(w.dtype).eps
                            close = np.allclose(g, w, rtol=64 * eps, atol=64 * eps * np.abs(w).max(initial=1))
                            assert close, f"{case.id} {loss.application.label}, {scenario.name}, {held}:\n{g}\n{w}"
                            compared += 1
    assert compared


def test_ties_of_maximum_share_the_gradient() -> None:
    trace = _core.ir.Trace("ties")
    x, y = trace.argument((3,), "float64"), trace.argument((3,), "float64")
    larger = trace.emit("stablehlo.maximum", [x, y])[0]
    seed = trace.constant(np.ones(3))[0]
    module = trace.finish(trace.vjp([larger], [seed], [x, y]))
    arrays = [np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])]
    (gx, gy), _ = execute(_core.passes.compile(module, ONE_DEVICE), arrays)
    assert gx.tolist() == [0.5, 0.0, 1.0]
    assert gy.tolist() == [0.5, 1.0, 0.0]


def test_a_reduction_by_maximum_shares_the_gradient_among_ties() -> None:
    mesh = _core.mesh.Mesh("mesh", [("x", 4)])
    trace = _core.ir.Trace("ties")
    x = trace.argument((5,), "float64", "", sharding(mesh, [("x",)]))
    init = trace.constant(np.asarray(-np.inf))[0]
    largest = trace.emit("stablehlo.reduce", [x, init], {"dimensions": (0,)}, region_op="stablehlo.maximum")[0]
    seed = trace.constant(np.asarray(6.0))[0]
    module = trace.finish(trace.vjp([largest], [seed], [x]))
    for (gradient,) in execute(_core.passes.compile(module, mesh), [np.array([4.0, 1.0, 4.0, 2.0, 4.0])]):
        assert gradient.tolist() == [2.0, 0.0, 2.0, 0.0, 2.0]


def test_a_product_with_zeros_has_the_right_gradient() -> None:
    mesh = _core.mesh.Mesh("mesh", [("x", 4)])
    for array, want in [
        ([2.0, 0.0, 3.0, 4.0, 5.0], [0.0, 120.0, 0.0, 0.0, 0.0]),
        ([0.0, 0.0, 3.0, 1.0, 1.0], [0.0] * 5),
    ]:
        trace = _core.ir.Trace("product")
        x = trace.argument((5,), "float64", "", sharding(mesh, [("x",)]))
        init = trace.constant(np.asarray(1.0))[0]
        product = trace.emit("stablehlo.reduce", [x, init], {"dimensions": (0,)}, region_op="stablehlo.multiply")[0]
        seed = trace.constant(np.asarray(1.0))[0]
        module = trace.finish(trace.vjp([product], [seed], [x]))
        for (gradient,) in execute(_core.passes.compile(module, mesh), [np.array(array)]):
            assert gradient.tolist() == want
