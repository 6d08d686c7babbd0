# SPDX-License-Identifier: Apache-2.0
"""What a layer keeps for its backward pass, to the byte: the formulas of Korthikanti et al., and the statistics.

``python -m tests.estimate.test_korthikanti`` prints every row.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.estimate.korthikanti import (
    MODELS,
    MODES,
    Mode,
    Model,
    alive_at_the_loss,
    compiled,
    kept,
    plain,
    stacked,
    step,
)

GIB = 2**30
ALONE, TENSORS, SEQUENCE, SELECTIVE, BOTH, FULL = MODES
# GiB of activations on a device of the first stage, with tensor parallelism alone and with all that the paper proposes.
FIGURE_1 = {"22B": (59.25, 9.56), "175B": (66.84, 12.35), "530B": (114.02, 23.08), "1T": (131.25, 26.56)}


@cache
def program(model: Model, mode: Mode) -> sw.Program:
    return compiled(model, mode)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_formulas_are_those_of_the_figure(model: Model) -> None:
    found = [round(mode.paper(model) * model.layers / GIB, 2) for mode in (TENSORS, BOTH)]
    assert tuple(found) == FIGURE_1[model.name]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_layer_keeps_what_the_paper_counts_and_its_statistics(model: Model, mode: Mode) -> None:
    rows = kept(program(model, mode))
    assert sum(row.bytes for row in rows) == mode.paper(model) + mode.statistics(model) + mode.place
    # A run holds just that when the forward pass is done.
    assert alive_at_the_loss(program(model, mode)) == sum(row.bytes for row in rows if row.name != "x")


def elements(model: Model, mode: Mode) -> tuple[int, int, int, int]:
    """On one device: of activations between the products, of those in them, of scores, and of their rows."""
    activations, rows = model.s * model.b * model.h, model.a * model.s * model.b // mode.t
    return activations // (mode.t if mode.splits_sequence else 1), activations // mode.t, rows * model.s, rows


@pytest.mark.parametrize("mode", [ALONE, TENSORS, SEQUENCE], ids=str)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_what_each_line_keeps(model: Model, mode: Mode) -> None:
    between, inside, scores, rows = elements(model, mode)
    norm = [2 * between, 4 * between // model.h, 4 * between // model.h, 2 * between]  # input, mean, rstd, result
    softmax = [2 * scores, 4 * rows, 4 * rows, scores, 2 * scores]  # scores, maximum, sum, mask, dropped
    attention = [6 * inside, *softmax, 2 * inside]  # q, k and v, and the mixed values
    # Each dropout keeps its mask; the GELU its input, and the product after it the result.
    expected = [*norm, *attention, between, *norm, 8 * inside, 8 * inside, between]
    assert [row.bytes for row in kept(program(model, mode))] == expected


@pytest.mark.parametrize("mode", [ALONE, TENSORS, SEQUENCE], ids=str)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_plain_numpy_keeps_what_each_op_needs(model: Model, mode: Mode) -> None:
    between, inside, scores, rows = elements(model, mode)
    # In place of the input: x - mean in float32, for the variance. The deviation and rstd. The normalised tokens in 16
    # bits, for the gradient of the scale. The result.
    norm = [4 * between, 4 * between // model.h, 4 * between // model.h, 2 * between, 2 * between]
    # Which tokens come before; in place of scores the exponentials in float32; their sum, the mask, dropped.
    softmax = [model.s**2, 4 * scores, 4 * rows, scores, 2 * scores]
    attention = [6 * inside, *softmax, 2 * inside]
    gelu = [8 * inside] * 7  # the input, both factors of each product of two variables, the result
    expected = [*norm, *attention, between, *norm, *gelu, between]
    found = compiled(model, mode, plain)
    assert [row.bytes for row in kept(found)] == expected
    assert alive_at_the_loss(found) == sum(expected)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_scan_of_layers_keeps_less(model: Model, mode: Mode) -> None:
    stacks = stacked(compiled(model, mode, plain, layers=3), 3)
    assert sum(stacks) == mode.cut(model) + mode.statistics(model)
    assert mode.cut(model) <= mode.paper(model)


@pytest.mark.parametrize(
    ("mode", "limited", "layers"), [(SELECTIVE, TENSORS, 3), (BOTH, SEQUENCE, 3), (FULL, TENSORS, 12)], ids=str
)
def test_what_the_paper_computes_again_is_found_under_the_limit_that_it_implies(
    mode: Mode, limited: Mode, layers: int
) -> None:
    by_hand = compiled(MODELS[0], mode, layers=layers)
    limit = by_hand.memory().peak_bytes
    assert compiled(MODELS[0], limited, layers=layers).memory().peak_bytes > 1.2 * limit
    found = compiled(MODELS[0], limited, layers=layers, memory_limit=limit)
    assert found.memory().peak_bytes <= limit
    # The scores of attention are the largest values and cheap to compute.
    assert (found.rematerialized()[0].value, found.rematerialized()[0].how) == ("scores", "computed again")
    assert found.estimate().estimate <= by_hand.estimate().estimate


def gradients(mode: Mode, *kernel: Any) -> list[np.ndarray]:
    """The results of a small step in float32."""
    function, shapes = step(Model("small", h=32, a=8, b=2, s=8), mode, *kernel, dtype=np.float32)
    rng = np.random.default_rng(3)

    def numbers(one: Any) -> Any:
        if one.dtype == np.uint32:
            return rng.integers(0, 2**32, one.shape, np.uint32)
        return (rng.standard_normal(one.shape) / 4).astype(one.dtype)

    results = function(*sw.tree.map(numbers, shapes))
    return [np.asarray(leaf) for leaf in sw.tree.leaves(results)]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_the_numbers_do_not_depend_on_what_is_kept(mode: Mode) -> None:
    found, expected = gradients(mode), gradients(ALONE, plain)
    assert len(found) == len(expected) == 14
    np.testing.assert_allclose(
        np.concatenate([x.ravel() for x in found]), np.concatenate([x.ravel() for x in expected]), rtol=2e-4, atol=2e-5
    )


def report() -> None:
    for mode in MODES:
        for model in MODELS:
            total = sum(row.bytes for row in kept(program(model, mode)))
            paper, statistics = mode.paper(model), mode.statistics(model)
            in_a_scan = sum(stacked(compiled(model, mode, plain, layers=3), 3))
            print(
                f"{mode!s:39} {model!s:5} {total:13,} = {paper:13,} + {statistics:10,} + {total - paper - statistics}"
                f"; scan {in_a_scan:13,}"
            )


if __name__ == "__main__":
    report()
