# SPDX-License-Identifier: Apache-2.0
"""Programs as text: every stage reads back as it was, jaxlib reads it too, and what JAX prints is read here."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import Phase, given, settings, strategies as st

import shardwise as sw
from shardwise import _core
from tests.conformance.shardy.client import ShardyOracle
from tests.support.example_programs import EXAMPLES, traced_example
from tests.support.mesh_strategies import meshes
from tests.support.random_programs import Program, programs

JAX_PROGRAMS = (  # of tests/conformance/jax/programs.py, which only the worker imports
    "mlp",
    "mlp_gradient",
    "softmax_cross_entropy",
    "softmax_gradient",
    "attention",
    "layer_norm",
    "elementwise",
    "integers",
    "movement",
    "reductions",
    "indexing",
    "embedding_gradient",
    "windows",
    "constants",
    "affine",
    "statistics",
    "argmax",
    "argmin",
    "conv_net",
    "recurrent",
    "recurrent_gradient",
    "loops",
    "sorting",
    "cumulative",
    "spectra",
    "solves",
    "decompositions",
    "normal",
    "hardware_bits",
    "one_hot",
    "einsums",
    "cross_entropy_step",
    "arguments_of_extrema",
    "pooling_gradient",
    "dynamic_slices",
    "narrow_types",
    "bits",
    "transformer_step",
    "manual_region",
    "partly_manual",
    "special_functions",
    "call_twice",
)
STAGES = ("global", "propagated", "resharded", "local")
FORMS: tuple[dict[str, bool], ...] = (
    {},
    {"locations": True},
    {"generic": True},
    {"locations": True, "generic": True},
)
PROGRAMS = meshes(sizes=(2, 3, 4, 6, 8), max_devices=48).flatmap(programs)


def check_round_trip(module: Any) -> None:
    for form in FORMS:
        text = module.text(**form)
        again = sw.parse(text)
        again.verify()
        assert again._core.structurally_equal(module), f"{form}\n{text}"
        assert again.as_text(**form) == text, form


def as_jaxlib_knows(text: str) -> str:
    """jaxlib's Shardy knows pending sums alone, and no word for them."""
    return re.sub(r"unreduced=(max|min|prod|and|or)\{", "unreduced={", text)


def check_stages(shardy: ShardyOracle, stages: Any) -> None:
    for stage in STAGES:
        module = stages[stage]
        check_round_trip(module)
        ours = stage == "local" or "shardwise.exchange" in module.text()  # a reshard may be an exchange
        read = {shardy.parse(as_jaxlib_knows(module.text(**form)), unregistered=ours) for form in FORMS}
        assert len(read) == 1, f"{stage}: the forms of the text are not one program for jaxlib\n{module.text()}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_stages_of_the_examples_round_trip_and_jaxlib_reads_them(shardy: ShardyOracle, name: str) -> None:
    check_stages(shardy, traced_example(name).lower().compile()._compiled.stages)


@settings(max_examples=40, phases=(Phase.explicit, Phase.generate))
@given(PROGRAMS, st.sampled_from(["basic", "aggressive"]))
def test_stages_of_random_programs_round_trip_and_jaxlib_reads_them(
    shardy: ShardyOracle, program: Program, strategy: str
) -> None:
    check_stages(shardy, _core.passes.compile(program.record(), program.mesh, strategy=strategy).stages)


@pytest.mark.parametrize("locations", [False, True], ids=["plain", "locations"])
@pytest.mark.parametrize("name", JAX_PROGRAMS)
def test_what_jax_lowers_reads_and_prints_back(shardy: ShardyOracle, name: str, locations: bool) -> None:
    text = shardy.lower(name, locations)
    module = sw.parse(text)
    module.verify()
    for form in FORMS:
        assert shardy.parse(module.as_text(**form)) == shardy.parse(text), form
    check_round_trip(module._core)


def test_stages_through_the_public_names_are_the_compiled_ones() -> None:
    program = traced_example("mlp").lower().compile()
    for stage in STAGES:
        assert sw.parse(program.as_text(stage)).as_text() == program.as_text(stage)
        assert sw.parse(program.as_text(stage, locations=True)) == sw.parse(program.as_text(stage, generic=True))
