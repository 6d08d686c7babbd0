# SPDX-License-Identifier: Apache-2.0
"""Gradients of loops and branches from end to end: on every mesh, in every mode, those of one device."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.conformance.jax.control_flow_losses import LOSSES
from tests.conformance.jax.control_flow_programs import Program
from tests.op.control_flow.test_control_flow import MESHES, MODES, SHARDINGS, on_sub_axes

EPS = float(np.finfo(np.float32).eps)
RNG = np.random.default_rng(3)


def with_gradients(loss: Program) -> Any:
    return sw.value_and_grad(lambda *arrays: loss.function(np, sw, *arrays), tuple(range(len(loss.inputs))))


def assert_close(found: Any, expected: Any) -> None:
    """Sums are split over devices: 1,000 eps of the largest element."""
    assert sw.tree.structure(found) == sw.tree.structure(expected)
    for ours, theirs in zip(map(np.asarray, sw.tree.leaves(found)), map(np.asarray, sw.tree.leaves(expected))):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1000 * EPS * max(1.0, np.abs(theirs).max(initial=0)))


def check(loss: Program, mesh: Any, spec: Any) -> None:
    function = with_gradients(loss)
    specs = sw.tree.map(lambda x: spec(np.ndim(x)), loss.inputs)
    expected = sw.jit(function, mesh=MESHES["one"]).lower(*loss.inputs).compile().run(*loss.inputs)
    compiled = sw.jit(function, mesh=mesh, in_shardings=specs).lower(*loss.inputs).compile()
    for mode in MODES:
        assert_close(compiled.run(*loss.inputs, **mode), expected)


@pytest.mark.parametrize("mesh", [name for name in MESHES if name != "one"])
@pytest.mark.parametrize("placed", SHARDINGS)
@pytest.mark.parametrize("loss", LOSSES, ids=[loss.name for loss in LOSSES])
def test_gradients_are_those_of_one_device(loss: Program, placed: str, mesh: str) -> None:
    check(loss, MESHES[mesh], SHARDINGS[placed])


@pytest.mark.parametrize("loss", LOSSES, ids=[loss.name for loss in LOSSES])
def test_gradients_on_sub_axes(loss: Program) -> None:
    check(loss, MESHES["eight"], on_sub_axes)


# ---- the unrolled program -------------------------------------------------------------------------------------------

STEPS, BATCH, WIDTH = 9, 6, 8
RNN = tuple(
    (RNG.standard_normal(shape) / 2).astype(np.float32)
    for shape in [(WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH,), (BATCH, WIDTH), (STEPS, BATCH, WIDTH)]
)


def rnn_step(h: Any, x: Any, w: Any, u: Any, b: Any) -> Any:
    return np.tanh(h @ w + x @ u + b)


def rolled(w: Any, u: Any, b: Any, h: Any, xs: Any) -> Any:
    def body(h: Any, x: Any) -> Any:
        h = rnn_step(h, x, w, u, b)
        return h, h

    return (sw.scan(body, h, xs)[1] ** 2).sum()


def unrolled(w: Any, u: Any, b: Any, h: Any, xs: Any) -> Any:
    rows = []
    for i in range(xs.shape[0]):
        h = rnn_step(h, xs[i], w, u, b)
        rows.append(h)
    return (np.stack(rows) ** 2).sum()


@pytest.mark.parametrize("specs", [(None, None, None, P("y"), P(None, "y")), (P(None, "x"), P("x"), P("x"), P(), P())])
def test_the_gradient_of_a_recurrent_network_is_that_of_the_unrolled_program(specs: Any) -> None:
    for mode in MODES:
        found, expected = (
            sw.jit(sw.value_and_grad(f, (0, 1, 2, 3, 4)), mesh=MESHES["permuted"], in_shardings=specs)
            .lower(*RNN)
            .compile()
            .run(*RNN, **mode)
            for f in (rolled, unrolled)
        )
        assert_close(found, expected)


# ---- values of the gradient's program -------------------------------------------------------------------------------


def test_a_loop_whose_carry_is_returned_beside_the_loss_runs_once() -> None:
    """The gradient replaces the loop by one that saves values; results that the function returns follow."""
    w, xs, h = RNN[0], RNN[4], RNN[3]

    def f(w: Any) -> Any:
        last, ys = sw.scan(lambda h, x: (np.tanh(h @ w + x),) * 2, h, xs)
        return ys.sum(), last

    function = sw.jit(sw.value_and_grad(f, has_aux=True), mesh=MESHES["one"])
    text = str(function.lower(w).compile().as_text("local"))
    assert text.count("shardwise.scan") == 2
    (_, last), _ = function(w)
    np.testing.assert_allclose(last, sw.jit(lambda w: f(w)[1], mesh=MESHES["one"])(w), rtol=1e-6)


ROWS = f"tensor<{STEPS}x{WIDTH}xf32>"


def stacked(f: Any, *arrays: Any) -> int:
    """The number of stacks of rows that the first loop makes."""
    text = str(sw.jit(sw.grad(f), mesh=MESHES["one"]).lower(*arrays).compile().as_text("local"))
    first = min(text.find(name) for name in ("shardwise.scan", "stablehlo.while") if name in text)
    if not text.startswith("shardwise.scan", first):
        return text[first : text.index("\n", first)].count(ROWS)
    last = re.compile(r"^    \}\) : .* -> (.*)$", re.MULTILINE).search(text, first)
    assert last is not None
    return last[1].count(ROWS)


def test_only_what_varies_and_is_expensive_is_saved() -> None:
    xs, w, h = RNN[4][:, 0], RNN[0], RNN[3][0]

    def scan(body: Any) -> Any:
        return lambda h: sw.scan(lambda h, x: (body(h, x), None), h, xs)[0].sum()

    assert stacked(scan(lambda h, x: h * x), h) == 0  # rows of xs are read again
    assert stacked(scan(lambda h, x: h * np.exp(x)), h) == 0  # and cheap ops on them computed again
    assert stacked(scan(lambda h, x: h * np.exp(h)), h) == 1  # the carry, from which exp(h) follows
    assert stacked(scan(lambda h, x: (h @ w) * (x @ w)), h) == 1  # not the other factor, h @ w
    assert stacked(scan(lambda h, x: np.tanh(h @ np.tanh(w @ w))), h) == 1  # an invariant is no row
    assert stacked(scan(lambda h, x: np.sin(np.tanh(h @ w) @ w)), h) == 2  # tanh(h @ w), and what sin reads


def test_a_row_that_the_loop_stacks_anyway_is_not_saved_again() -> None:
    xs, h = RNN[4][:, 0], RNN[3][0]

    def body(h: Any, x: Any) -> Any:
        h = np.tanh(h)
        return h * x, h

    def f(h: Any) -> Any:
        return sw.scan(body, h, xs, reverse=True)[1].sum()

    assert stacked(f, h) == 1
