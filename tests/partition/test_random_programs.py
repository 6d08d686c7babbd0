# SPDX-License-Identifier: Apache-2.0
"""Random programs on random meshes with random shardings give NumPy's numbers; their text round-trips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import shardwise as sw
from shardwise import _core
from tests.support.mesh_strategies import meshes
from tests.support.partitioned import ONE_DEVICE, execute
from tests.support.random_programs import Program, programs

STAGES = ("global", "propagated", "resharded", "local")
PROGRAMS = meshes().flatmap(programs)
MOST = settings.default.max_examples  # of the profile


def check_results(program: Program, compiled: Any, what: str) -> None:
    for mode, results in zip(("once per shard", "faithful"), execute(compiled, program.arguments)):
        for i, (got, want) in enumerate(zip(results, program.expected)):
            assert got.dtype == want.dtype
            assert np.array_equal(got, want), f"{what}, {mode}, output {i}:\n{got!r}\nNumPy\n{want!r}\n{program!r}"


def check_text(module: Any) -> None:
    for generic in (False, True):
        text = module.text(generic=generic)
        again = _core.ir.parse(text)
        assert again.text(generic=generic) == text
        assert again.structurally_equal(module)
    read = _core.ir.module_from_json(module.to_json())
    assert read.structurally_equal(module)
    assert read.text() == module.text()


@given(PROGRAMS)
def test_partitioned_programs_give_the_numbers_of_numpy(program: Program) -> None:
    check_results(program, _core.passes.compile(program.record(), program.mesh), "partitioned")


@settings(max_examples=min(60, MOST))
@given(PROGRAMS, st.sampled_from(["basic", "aggressive"]))
def test_every_stage_round_trips_as_text(program: Program, strategy: str) -> None:
    module = program.record()
    check_text(module)
    compiled = _core.passes.compile(module, program.mesh, strategy=strategy)
    for stage in STAGES:
        check_text(compiled.stages[stage])
        compiled.stages[stage].verify()


@settings(max_examples=min(60, MOST))
@given(PROGRAMS, st.sampled_from(["basic", "aggressive"]))
def test_localize_takes_what_assign_and_plan_reshards_have_seen(program: Program, strategy: str) -> None:
    """All that they leave is taken, from text too, and nothing else."""
    stages = _core.passes.compile(program.record(), program.mesh, strategy=strategy).stages
    to_local = ["localize", "optimize_collectives", "form_scans", "combine_collectives"]
    for resharded in (stages["resharded"], _core.ir.parse(stages["resharded"].text())):
        assert _core.passes.run_passes(resharded, to_local).text() == stages["local"].text()
    refusal = r"localize: the program must have been through assign and plan_reshards, got a program at stage"
    for propagated in (stages["propagated"], _core.ir.parse(stages["propagated"].text())):
        with pytest.raises(sw.ShardingError, match=refusal):
            _core.passes.run_passes(propagated, to_local)


@settings(max_examples=min(40, MOST))
@given(PROGRAMS)
def test_parsed_programs_compile_to_the_same_program(program: Program) -> None:
    """What is read back is the program: it partitions to the same text and runs."""
    module = program.record()
    compiled = _core.passes.compile(module, program.mesh)
    again = _core.passes.compile(_core.ir.parse(module.text()), program.mesh)
    for stage in STAGES:
        assert again.stages[stage].text() == compiled.stages[stage].text()
    check_results(program, again, "parsed")


@settings(max_examples=min(30, MOST))
@given(st.just(ONE_DEVICE).flatmap(programs))
def test_one_device_gives_the_numbers_of_numpy(program: Program) -> None:
    check_results(program, _core.passes.compile(program.record(), ONE_DEVICE), "one device")


@settings(max_examples=min(60, MOST))
@given(PROGRAMS)
def test_aggressive_propagation_gives_the_same_numbers(program: Program) -> None:
    check_results(program, _core.passes.compile(program.record(), program.mesh, strategy="aggressive"), "aggressive")
