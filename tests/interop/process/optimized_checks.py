# SPDX-License-Identifier: Apache-2.0
"""A sample of programs with the optimizations of XLA, which the other checks of numbers do without.

XLA fuses ops and contracts products and sums, so results agree as assert_near states: every bit of movement, integers
and extremes; float32 within 8 eps of the largest magnitude of the result.
"""

from __future__ import annotations

import jax
import pytest

import shardwise as sw
from tests.interop.nearness import assert_near, exact_results
from tests.interop.process.handed_programs import PROGRAMS, Handed
from tests.interop.process.to_jax_checks import MESHES, compiled

NAMES = ("mlp", "extremes", "gradient_of_a_scan", "mixture_of_experts", "exchanges_with_holes", "factorizations")
SAMPLE = [handed for handed in PROGRAMS if handed.name in NAMES]


def test_xla_optimizes_here() -> None:
    assert len(SAMPLE) == len(NAMES)
    assert not jax.config.read("jax_disable_most_optimizations")


@pytest.mark.parametrize("handed", SAMPLE, ids=lambda handed: handed.name)
def test_an_optimized_program_gives_the_same_numbers(handed: Handed) -> None:
    program = compiled(handed, MESHES["4x2"])
    function = program.to_jax()
    expected = sw.tree.leaves(program(*handed.arguments))
    results = sw.tree.leaves(function.get(function(*handed.arguments)))
    for got, want, exact in zip(results, expected, exact_results(program), strict=True):
        assert_near(got, want, exact or handed.exact)
