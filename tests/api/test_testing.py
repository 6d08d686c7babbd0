# SPDX-License-Identifier: Apache-2.0
"""``sw.testing``: what it compares, which faults it finds, and how close results must be."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core, dtensor
from shardwise.recording.tracing import Trace, Tracer, current_trace
from shardwise.testing import assert_matches_unpartitioned
from tests.api.planted_faults import FAULTS, HELD, MESH, PROGRAMS, Fault, W, X


def plain(fn: Callable[..., Any]) -> None:
    assert_matches_unpartitioned(fn, X, W, mesh=MESH)


def jitted(fn: Callable[..., Any]) -> None:
    assert_matches_unpartitioned(sw.jit(fn, mesh=MESH), X, W)


def nested(fn: Callable[..., Any]) -> None:
    inner = sw.jit(fn, mesh=MESH)
    assert_matches_unpartitioned(lambda x, w: 2 * inner(x, w), X, W, mesh=MESH)


def with_arrays(fn: Callable[..., Any]) -> None:
    x = sw.device_put(X, sw.NamedSharding(MESH, HELD.get(fn, sw.P("x"))))
    assert_matches_unpartitioned(fn, x, W)


def closing_over_arrays(fn: Callable[..., Any]) -> None:
    w = sw.device_put(W, MESH)
    assert_matches_unpartitioned(lambda x: fn(x, w), X, mesh=MESH)


def differentiated(fn: Callable[..., Any]) -> None:
    assert_matches_unpartitioned(sw.value_and_grad(fn, argnums=(0, 1)), X, W, mesh=MESH)


def mapped(fn: Callable[..., Any]) -> None:
    examples = np.stack([X, 2 * X, X - 1])
    assert_matches_unpartitioned(sw.vmap(fn, in_axes=(0, None)), examples, W, mesh=MESH)


WAYS = [plain, jitted, nested, with_arrays, closing_over_arrays, differentiated, mapped]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_without_faults_pass(program: Callable[..., Any], way: Callable[..., None]) -> None:
    way(program)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    compile_ = _core.passes.compile

    def compile_with_fault(*args: Any, **options: Any) -> Any:
        compiled = compile_(*args, **options)
        text = fault.plant(compiled.stages["local"].text())
        return compiled.with_local_stage(_core.ir.parse(text))

    monkeypatch.setattr(_core.passes, "compile", compile_with_fault)


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_of_the_local_program_is_found(fault: Fault, way: Callable[..., None]) -> None:
    with pytest.raises(AssertionError, match="must equal NumPy's"):
        way(fault.program)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", ["stablehlo.negate", "stablehlo.sine"])
def test_an_annotation_that_changes_numbers_is_found(
    monkeypatch: pytest.MonkeyPatch, fault: str, way: Callable[..., None]
) -> None:
    constrain = Trace.constrain
    monkeypatch.setattr(Trace, "constrain", lambda self, x, s: constrain(self, self.emit(fault, (x,)), s))
    with pytest.raises(AssertionError, match=r"must equal NumPy's|must agree with finite differences"):
        way(PROGRAMS[0])


# ---- tolerance ------------------------------------------------------------------------------------------------------

LARGE = (np.random.default_rng(5).standard_normal(4001) * 1e4).astype(np.float32)


def test_a_float64_scalar_that_promotes_a_float32_loss_leaves_float32_rounding() -> None:
    def loss(x: Any) -> Any:
        return (x * x).sum() * np.float64(0.5)

    program = assert_matches_unpartitioned(loss, LARGE, mesh=MESH, in_shardings=sw.P(("x", "y")))
    assert program.output_shardings.spec == sw.P()


def test_sums_that_cancel_are_compared_with_their_own_rounding() -> None:
    both = np.concatenate([LARGE, -LARGE[::-1]])
    assert_matches_unpartitioned(lambda x: x.sum(), both, mesh=MESH, in_shardings=sw.P(("x", "y")))
    assert_matches_unpartitioned(np.mean, both.astype(np.float64), mesh=MESH, in_shardings=sw.P("x"))


def test_a_difference_names_rtol_and_atol_and_what_is_promoted() -> None:
    def different(x: Any) -> Any:
        return x.sum() * np.float64(2 if isinstance(x, np.ndarray) else 2.001)

    with pytest.raises(AssertionError) as caught:
        assert_matches_unpartitioned(different, np.arange(8, dtype=np.float32), mesh=MESH)
    assert re.sub(r"within [\d.e-]+", "within BOUND", str(caught.value)) == (
        "result must equal NumPy's within BOUND, got 1 of 1 elements that do not; the worst is 56.028 at [] "
        "where NumPy has 56.0; if that is rounding, pass rtol= or atol=; the result is float64 but depends on "
        "float32 values: something promotes them"
    )
    assert_matches_unpartitioned(different, np.arange(8, dtype=np.float32), mesh=MESH, rtol=1e-3)
    with pytest.raises(AssertionError, match=r"where NumPy has 56\.0$"):
        assert_matches_unpartitioned(different, np.arange(8, dtype=np.float32), mesh=MESH, rtol=1e-6)


def test_a_function_that_draws_is_refused() -> None:
    generator = np.random.default_rng(0)

    def noisy(x: Any) -> Any:
        return x + (generator.standard_normal(x.shape) if isinstance(x, np.ndarray) else 0)

    with pytest.raises(AssertionError, match=r"must return the same for the same arguments, got another result in a s"):
        assert_matches_unpartitioned(noisy, X, mesh=MESH)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [4, 100, 5000])
def test_the_wrong_gradient_of_one_leaf_is_found(monkeypatch: pytest.MonkeyPatch, size: int, dtype: type) -> None:
    name_gradients = Trace.name_gradients

    def with_a_wrong_bias(trace: Trace, results: list[int], names: list[str], since: int) -> None:
        name_gradients(trace, results, names, since)
        results[1] = trace.emit("stablehlo.negate", (Tracer(trace, results[1], x[0].shape, x.dtype),))._value

    def loss(x: Any, b: Any) -> Any:
        return np.tanh(x + b).sum()

    x = np.random.default_rng(1).standard_normal((3, size)).astype(dtype)
    assert_matches_unpartitioned(sw.grad(loss, argnums=(0, 1)), x, x[0], mesh=MESH)
    monkeypatch.setattr(Trace, "name_gradients", with_a_wrong_bias)
    with pytest.raises(AssertionError, match="must agree with finite differences"):
        assert_matches_unpartitioned(sw.grad(loss, argnums=(0, 1)), x, x[0], mesh=MESH)


def test_gradients_in_narrow_dtypes_are_checked_within_their_rounding() -> None:
    for dtype in (np.float16, sw.bfloat16):
        x = np.random.default_rng(1).standard_normal(60).astype(dtype)
        assert_matches_unpartitioned(sw.grad(lambda x: np.tanh(x + x).sum()), x, mesh=MESH, in_shardings=sw.P("x"))


# ---- what it takes --------------------------------------------------------------------------------------------------


def test_keyword_arguments_are_traced_and_static_ones_are_not() -> None:
    def scaled(x: Any, *, by: Any, twice: bool = False) -> Any:
        return x * by * (2 if twice else 1)

    assert_matches_unpartitioned(scaled, X, by=W[0, 0], mesh=MESH, in_shardings=sw.P("x"))
    assert_matches_unpartitioned(scaled, X, by=2.0, twice=True, mesh=MESH, static_argnames="twice")
    assert_matches_unpartitioned(sw.jit(scaled, mesh=MESH, static_argnames="twice"), X, by=2.0, twice=True)


def test_options_of_the_jit_hold_where_none_are_given() -> None:
    total = sw.jit(np.sum, mesh=MESH, in_shardings=sw.P("x"))
    assert assert_matches_unpartitioned(total, X).collectives().by_kind() == {"all_reduce": 1}
    assert assert_matches_unpartitioned(total, X, in_shardings=sw.P()).collectives().by_kind() == {}
    assert assert_matches_unpartitioned(sw.grad(total), X).mesh == MESH


def test_a_training_step_with_a_gradient_inside_is_plain_numpy_too() -> None:
    def step(w: Any, x: Any) -> Any:
        return w - 0.1 * sw.grad(PROGRAMS[0], argnums=1)(x, w)

    assert_matches_unpartitioned(sw.jit(step, mesh=MESH), W, X)


def test_a_function_that_is_no_numpy_is_refused() -> None:
    with pytest.raises(sw.UnsupportedError) as caught:
        assert_matches_unpartitioned(lambda x: x.at[0].set(0.0), X, mesh=MESH)
    assert str(caught.value).startswith(
        "assert_matches_unpartitioned: the function must also run as plain NumPy, got AttributeError: 'numpy.ndarray' "
        "object has no attribute 'at'; sw.at(x, index) works on NumPy arrays where x.at[index] does not (at "
    )


def test_examples_of_a_map_are_looped_over() -> None:
    def scores(x: Any, w: Any) -> Any:
        return {"rows": x @ w, "best": (x @ w).max()}

    mapped = sw.vmap(scores, in_axes=(1, None), out_axes={"rows": 1, "best": 0})
    program = assert_matches_unpartitioned(
        mapped, X.T, np.outer(W[:, 0], W[0]), mesh=MESH, in_shardings=(sw.P(None, "x"), None)
    )
    assert len(program.collectives()) == 0


def test_kinks_decide_nothing_in_finite_differences() -> None:
    ties = np.zeros((4, 3))
    assert_matches_unpartitioned(sw.grad(lambda x: np.maximum(x, 0).sum() + x.max()), ties, mesh=MESH)
    assert_matches_unpartitioned(sw.grad(lambda x: np.abs(x).sum()), ties, mesh=MESH)
    assert_matches_unpartitioned(sw.grad(lambda x: np.floor(3 * x).sum()), X, mesh=MESH)


def test_placements_are_ignored_in_the_plain_run() -> None:
    seen: list[str] = []
    rows = sw.NamedSharding(MESH, sw.P("x"))

    def placed(x: Any, w: Any) -> Any:
        x = sw.device_put(x, rows)
        w = dtensor.redistribute(w, placements=[dtensor.Replicate(), dtensor.Replicate()])
        h = dtensor.redistribute(x @ w, MESH, [dtensor.Replicate(), dtensor.Partial()])
        y = sw.reshard(h, sw.P("x")) + dtensor.distribute_tensor(h, MESH, [dtensor.Shard(0), dtensor.Replicate()])
        seen.extend(type(value).__name__ for value in (x, w, h, y))
        return y

    assert_matches_unpartitioned(placed, X, W, mesh=MESH)
    assert seen == ["Tracer"] * 4 + ["ndarray"] * 4
    with pytest.raises(AssertionError, match="must equal NumPy's"):
        assert_matches_unpartitioned(lambda x: placed(x, W) + (current_trace() is None), X, mesh=MESH)


def test_the_tolerance_is_that_of_the_worst_element() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_matches_unpartitioned(
            lambda x: x + 0.5 * np.array([0, 1]) * (current_trace() is None), np.array([1e6, 1.0]), mesh=MESH, rtol=1e-2
        )
    assert str(caught.value) == (
        "result must equal NumPy's within 0.015, got 1 of 2 elements that do not; "
        "the worst is 1.0 at [1] where NumPy has 1.5"
    )
