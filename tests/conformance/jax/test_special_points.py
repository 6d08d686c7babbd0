# SPDX-License-Identifier: Apache-2.0
"""Values and gradients at ties, zeros, domain borders, infinities and NaN: values are NumPy's, gradients are JAX's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from tests.conformance.jax.gradient_conventions import CONVENTIONS, At
from tests.conformance.jax.special_points import (
    DTYPES,
    RUNS,
    WIDE,
    Points,
    all_points,
    arrays_of,
    is_elementwise,
    names_without_row,
    weighted_sum,
)
from tests.op.catalogue import CASES
from tests.support.once_per_run import written_by

WORKER = "tests.conformance.jax.gradient_worker"
POINTS = all_points()
ONE, FOUR = sw.Mesh({"x": 1}), sw.Mesh({"x": 4})
# NumPy warns about the divisions by zero that the table asks for.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def program(point: Points, mesh: sw.Mesh, specs: Any = None) -> Any:
    """The function's results and its gradients."""

    def loss(*xs: Any) -> Any:
        result = point.function(np, *xs)
        return weighted_sum(result, xs[0].dtype.name), listed(result)

    count = len(point.arrays("float32"))
    return sw.jit(sw.grad(loss, tuple(range(count)), has_aux=True), mesh=mesh, in_shardings=specs)


@cache
def run(point: Points, dtype: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    gradients, results = program(point, ONE)(*point.arrays(dtype))
    return [np.asarray(x) for x in results], [np.asarray(g) for g in gradients]


@pytest.fixture(scope="module")
def jax(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return dict(np.load(written_by(tmp_path_factory, WORKER, "out.npz")))


# ---- completeness ---------------------------------------------------------------------------------------------------


def test_every_function_of_the_registry_is_tried() -> None:
    assert names_without_row() == set()


def test_every_differentiable_op_is_tried() -> None:
    recorded: set[str] = set()
    for point in POINTS:
        text = (
            sw.jit(lambda *xs, p=point: listed(p.function(np, *xs)), mesh=ONE).lower(*point.arrays("float32")).as_text()
        )
        recorded |= set(re.findall(r"\b(?:stablehlo|chlo)\.\w+", text))
    # An op that decomposes has the gradients of the ops that it becomes.
    own = (op for op in _core.ir.all_ops() if op.differentiable and not op.composed)
    ops = {op.name for op in own if not op.name.startswith(("sdy.", "shardwise."))}
    # The gradients of a barrier and of control flow have no special points of their own; those of the other ops are
    # compared in tests/op/test_gradients.py and beside the tests of the family.
    of_families = {case.name for case in CASES if case.special_points == "family"}
    control = {"stablehlo.optimization_barrier", "func.call", "stablehlo.case", "stablehlo.if", "stablehlo.while"}
    assert ops - recorded == control | of_families


# ---- values ---------------------------------------------------------------------------------------------------------

LOGARITHMS_OF_SUMS = ("logaddexp", "logaddexp2")  # near 0 they are differences of numbers near 1
LARGEST_POWERS = ("power", "float_power")  # SLEEF's power overflows a billionth below the largest float64


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("point", [p for p in POINTS if p.in_numpy], ids=[p.name for p in POINTS if p.in_numpy])
def test_value_is_numpys(point: Points, dtype: str) -> None:
    limits = np.finfo(dtype)
    coarse = not is_elementwise(point) or point.name in LOGARITHMS_OF_SUMS
    results = run(point, dtype)[0]
    assert results
    for result, want in zip(results, listed(point.function(np, *point.arrays(dtype))), strict=True):
        assert result.shape == np.shape(want)
        assert result.dtype == np.asarray(want).dtype
        near = np.abs(want) > 0.999999 * limits.max if point.name in LARGEST_POWERS else np.zeros(np.shape(want), bool)
        atol = 8 * limits.eps if coarse else limits.smallest_subnormal
        np.testing.assert_allclose(
            np.where(near, 0, result.astype(np.float64)), np.where(near, 0, np.asarray(want, np.float64)),
            rtol=32 * limits.eps, atol=atol,
        )  # fmt: skip


# ---- gradients ------------------------------------------------------------------------------------------------------


def subnormal_places(at: At, dtype: str) -> np.ndarray:
    """Where an operand or the result is subnormal: XLA takes it for zero on CPUs."""
    numbers = [*at.arrays, *(x for x, _ in at.results())]
    return np.any([(x != 0) & (np.abs(x) < np.finfo(dtype).tiny) for x in numbers], axis=0)


def gradient_rows(point: Points, run_name: str, jax: Any) -> Iterator[At]:
    """One :class:`At` for each of the point's arrays."""
    dtype = "float32" if run_name == WIDE else run_name
    arrays = arrays_of(point, run_name)
    assert arrays is not None
    results, gradients = run(point, dtype)
    values = listed(point.function(np, *arrays)) if point.in_numpy else results
    theirs = [jax[f"{point.name}/{run_name}/value/{i}"] for i in range(len(results))]
    for i, ours in enumerate(gradients):
        want = jax[f"{point.name}/{run_name}/gradient/{i}"].astype(dtype)
        yield At(point.name, arrays, i, ours, want, tuple(values), tuple(theirs))


def differences(point: Points, run_name: str, jax: Any) -> Iterator[tuple[At, np.ndarray]]:
    """The gradients, and at which elements they are not JAX's."""
    dtype = "float32" if run_name == WIDE else run_name
    limits = np.finfo(dtype)
    # 1 - tanh(x)**2 has an absolute error, and so have sums.
    absolute = 16 * limits.eps if not is_elementwise(point) or point.name == "tanh" else 8 * limits.tiny
    for at in gradient_rows(point, run_name, jax):
        different = ~np.isclose(at.ours, at.jax, rtol=1024 * limits.eps, atol=absolute, equal_nan=True)
        if is_elementwise(point):
            subnormal = subnormal_places(at, dtype)
            different &= subnormal if run_name == WIDE else ~subnormal
        yield at, different


def described(at: At, where: np.ndarray) -> str:
    places = list(zip(*np.nonzero(where)))[:8]
    operands = [x for x in at.arrays if x.shape == where.shape]
    rows = [f"at {[float(x[i]) for x in operands]}: {at.ours[i]}, in JAX {at.jax[i]}" for i in places]
    return f"{at.name} by operand {at.operand}, {where.sum()} elements: " + "; ".join(rows)


# Points and their runs: those that are the same in float64 as in float32 have no wide run.
RUNS_IN_JAX = [(p, run) for p in POINTS if p.in_jax for run in RUNS if arrays_of(p, run) is not None]


@pytest.mark.parametrize(("point", "run_name"), RUNS_IN_JAX, ids=[f"{p.name}-{run}" for p, run in RUNS_IN_JAX])
def test_gradient_is_jaxs(point: Points, run_name: str, jax: Any) -> None:
    compared = list(differences(point, run_name, jax))
    assert len(compared) == len(point.arrays("float32"))
    for at, different in compared:
        for convention in CONVENTIONS:
            different &= ~convention.covers(at)
        assert not different.any(), described(at, different)


def test_conventions_are_few_and_each_is_needed(jax: Any) -> None:
    assert len(CONVENTIONS) <= 10
    needed = set()
    for point, run_name in RUNS_IN_JAX:
        for at, different in differences(point, run_name, jax):
            needed |= {c.reason for c in CONVENTIONS if np.any(different & c.covers(at))}
    assert needed == {c.reason for c in CONVENTIONS}


@pytest.mark.parametrize("dtype", DTYPES)
def test_sinc_is_flat_near_zero(dtype: str) -> None:
    """Its derivative is -pi**2 * x / 3 there; in JAX it is infinite at the smallest numbers."""
    limits = np.finfo(dtype)
    x = np.array([0.0, -0.0, limits.smallest_subnormal, limits.tiny, limits.eps, -limits.eps], dtype)
    gradient = np.asarray(sw.jit(sw.grad(lambda x: np.sinc(x).sum()), mesh=ONE)(x))
    np.testing.assert_allclose(gradient, -(np.pi**2) / 3 * x, rtol=8 * limits.eps, atol=limits.tiny)


def test_nextafter_has_no_gradient() -> None:
    (point,) = [p for p in POINTS if not p.in_jax]
    assert point.name == "nextafter"
    gradients = run(point, "float64")[1]
    assert len(gradients) == 2
    for gradient in gradients:
        np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("point", POINTS, ids=[p.name for p in POINTS])
def test_partitioned_gradient_is_the_same(point: Points) -> None:
    arrays = point.arrays("float32")
    specs = tuple(P("x") for _ in arrays)
    gradients, _ = program(point, FOUR, specs)(*arrays)
    assert len(gradients) == len(arrays) > 0
    for got, want in zip(gradients, run(point, "float32")[1], strict=True):
        if is_elementwise(point):
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
