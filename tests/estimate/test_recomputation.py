# SPDX-License-Identifier: Apache-2.0
"""Model flops utilisation, which does not count what a checkpoint computes again, and the marks of these ops."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.estimate.training_steps import BF16, Step

MARK = re.compile(r"shardwise\.again = (\d+)")
STEP = Step(layers=4, width=4096, hidden=16384, tokens=32768, is_recomputed=True)


def test_recomputation_counts_for_hfu_alone() -> None:
    step = Step(layers=4, width=4096, hidden=16384, tokens=32768)
    plain, again = (step.but(is_recomputed=flag).compile().estimate("h100_sxm") for flag in (False, True))
    # Of each weight: forward, dx, dw. Once more that of the first weight alone: no gradient needs the layer's result.
    assert again.hfu / again.mfu == pytest.approx(7 / 6, rel=1e-6)
    assert plain.hfu == pytest.approx(plain.mfu)
    unrolled = step.but(is_recomputed=True, is_scanned=False).compile().estimate("h100_sxm")
    assert unrolled.hfu / unrolled.mfu == pytest.approx(27 / 23, rel=1e-6)  # no dx of the first layer


@pytest.mark.parametrize("are_layers_scanned", [False, True])
@pytest.mark.parametrize("are_steps_scanned", [False, True])
@pytest.mark.parametrize("steps", [2, 3])
def test_several_steps_have_the_utilisation_of_one(
    steps: int, are_steps_scanned: bool, are_layers_scanned: bool
) -> None:
    step = STEP.but(is_scanned=are_layers_scanned, steps=1, data=1)  # without transfers, which overlap otherwise
    one = step.compile().estimate("h100_sxm")
    several = step.but(steps=steps, are_steps_scanned=are_steps_scanned).compile().estimate("h100_sxm")
    assert several.hfu / several.mfu == pytest.approx(one.hfu / one.mfu, rel=1e-6)
    assert several.mfu * several.estimate == pytest.approx(steps * one.mfu * one.estimate, rel=1e-6)
    assert several.mfu == pytest.approx(one.mfu, rel=2e-3)
    assert 1.1 < one.hfu / one.mfu < 1.2


def _products(program: Any) -> tuple[float, float]:
    """Of the model and of the device, in units of a product of two matrices of 4096."""
    estimate = program.estimate("default")
    unit = 2 * 4096**3 / sw.hardware.load("default").peak("matrix", BF16)
    return estimate.mfu * estimate.estimate / unit, estimate.hfu * estimate.estimate / unit


def _compiled(f: Any, arguments: int, leading: tuple[int, ...] = ()) -> Any:
    square = sw.ShapeDtypeStruct((*leading, 4096, 4096), BF16)
    return sw.jit(f, mesh=sw.Mesh({"x": 1}), in_shardings=P()).lower(*[square] * arguments).compile()


def _two(x: Any, w: Any) -> Any:
    return np.tanh(np.dot(np.tanh(np.dot(x, w)), w))


def _loss(layer: Any, layers: int = 1) -> Any:
    def loss(w: Any, x: Any) -> Any:
        for _ in range(layers):
            x = layer(x, w)
        return (x * x).sum()

    return loss


def test_what_is_inside_two_checkpoints_is_computed_twice_again() -> None:
    layer = sw.checkpoint(lambda x, w: np.tanh(sw.checkpoint(_two)(x, w) + x))
    program = _compiled(sw.grad(_loss(layer)), 2)
    # Two products forward; backward two for w and one for x. Each checkpoint computes both again.
    assert _products(program) == pytest.approx((5, 9))
    assert set(MARK.findall(program.as_text("global"))) == {"1", "2"}


def test_a_product_that_is_saved_is_not_computed_again() -> None:
    layer = sw.checkpoint(_two, policy=sw.checkpoint_policies.dots_saveable)
    assert _products(_compiled(sw.grad(_loss(layer)), 2)) == pytest.approx((5, 5))


def test_a_product_that_is_computed_again_alone_counts() -> None:
    # The loss is not returned, so that nothing reads the first run.
    def loss(w: Any, x: Any) -> Any:
        return sw.checkpoint(_two)(x, w).sum()

    assert _products(_compiled(sw.grad(loss), 2)) == pytest.approx((5, 5))
    assert _products(_compiled(sw.value_and_grad(loss), 2)) == pytest.approx((5, 7))


def test_marks_survive_batching_and_calls() -> None:
    @sw.jit
    def product(x: Any, w: Any) -> Any:
        return np.dot(x, w)

    def called(x: Any, w: Any) -> Any:
        return np.tanh(product(np.tanh(product(x, w)), w))

    gradient = sw.grad(_loss(sw.checkpoint(called), layers=2))
    assert _products(_compiled(gradient, 2)) == pytest.approx((11, 15))
    batched = _compiled(lambda ws, xs: sw.vmap(gradient)(ws, xs), 2, leading=(3,))
    assert _products(batched) == pytest.approx((33, 45))


@pytest.mark.parametrize("is_scanned", [False, True])
def test_texts_have_marks(is_scanned: bool) -> None:
    program = STEP.but(steps=2, is_scanned=is_scanned, data=1).compile()
    estimate = program.estimate("h100_sxm")
    read = sw.parse(program.as_text("global")).compile().estimate("h100_sxm")
    assert (read.mfu, read.hfu) == pytest.approx((estimate.mfu, estimate.hfu))


def test_one_step_of_a_program_without_marks() -> None:
    def of(steps: int) -> tuple[Any, Any]:
        program = STEP.but(steps=steps, is_scanned=False, data=1).compile()
        text = program._compiled.stages["global"].text(locations=True)
        unmarked = sw.parse(re.sub(r" \{shardwise\.again = 1 : i64\}", "", text))
        return program.estimate("h100_sxm"), unmarked.compile().estimate("h100_sxm")

    marked, unmarked = of(1)
    assert unmarked.mfu == pytest.approx(marked.mfu)
    marked, unmarked = of(3)
    assert unmarked.mfu > 1.05 * marked.mfu  # products of later steps are behind barriers, too


def test_equal_numbers_with_marks() -> None:
    layer = sw.checkpoint(lambda x, w: np.tanh(sw.checkpoint(_two)(x, w) + x))
    rng = np.random.default_rng(3)
    w, x = rng.normal(size=(2, 8, 8))
    found = sw.jit(sw.grad(_loss(layer, layers=2)), mesh=sw.Mesh({"x": 2}), in_shardings=(P(), P("x")))(w, x)
    plain = sw.jit(sw.grad(_loss(lambda x, w: np.tanh(_two(x, w) + x), layers=2)), mesh=sw.Mesh({"x": 1}))(w, x)
    np.testing.assert_allclose(np.asarray(found), np.asarray(plain), rtol=1e-12)
