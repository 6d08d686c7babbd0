# SPDX-License-Identifier: Apache-2.0
"""`live_bytes`, the memory of one device without a plan: never below the rehearsal of the plan, and close to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import shardwise as sw
from benchmarks.communication.compiled import PROGRAMS, compiled
from benchmarks.moe import sgd_step, shapes
from shardwise import P, _core, models
from tests.conformance.random_programs.checking import program_of
from tests.estimate.megatron import RUNS, layer_program
from tests.estimate.mpt import compiled as mpt_step, runs
from tests.estimate.training_steps import Step
from tests.partition.test_memory import CASES, MESH
from tests.support.mesh_strategies import meshes
from tests.support.random_programs import Program, programs

RANDOM_PROGRAMS = 400  # of a fixed seed: their distribution is checked, too


def counted(program: sw.Program, donated: list[int]) -> tuple[int, ...]:
    """Bytes at the peak, of arguments and of results."""
    found: tuple[int, ...] = _core.analysis.live_bytes(program._compiled.stages["local"], donated)[:3]
    return found


def rehearsed(program: sw.Program, donated: list[int]) -> tuple[int, ...]:
    found: tuple[int, ...] = _core.runtime.Executable(program._compiled).memory(donated=donated)[:3]
    return found


def moe_step() -> sw.Program:
    """Six layers of GShard's decoder and SGD on 8 devices."""
    config = models.TransformerConfig.gshard(8, 6)
    step = sw.jit(sgd_step(models, sw.value_and_grad, config, "x"), mesh=sw.Mesh({"x": 8}))
    return step.lower(*shapes(models, sw.ShapeDtypeStruct, config)).compile()


MODELS: dict[str, Callable[[], sw.Program]] = {
    "FSDP, unrolled": Step(is_scanned=False).compile,
    "FSDP, scanned": Step().compile,
    "FSDP and tensor parallelism, recomputed": Step(model=2, is_recomputed=True).compile,
    "FSDP, layers and recomputation unrolled": Step(is_scanned=False, is_recomputed=True).compile,
    "mixture of experts": moe_step,
    "layer of Megatron 22B": lambda: layer_program(RUNS[0]),
    "MPT 70B": lambda: mpt_step(runs("h100")[0], sw.hardware.load("h100_sxm")),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("donates", [False, True], ids=["kept", "donated"])
def test_steps_of_models_are_counted_as_they_are_rehearsed(name: str, donates: bool) -> None:
    program = MODELS[name]()
    donated = list(range(len(program._compiled.argument_shardings))) if donates else []
    assert counted(program, donated) == rehearsed(program, donated)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs_of_benchmarks_are_counted_as_they_are_rehearsed(program: Any) -> None:
    made = compiled(program)
    assert counted(made, []) == rehearsed(made, [])


@pytest.mark.parametrize("name", CASES)
def test_loops_and_branches_are_bounds(name: str) -> None:
    function, arguments = CASES[name]
    program = sw.jit(function, mesh=MESH).lower(*arguments).compile()
    peak, of_arguments, of_results = counted(program, [])
    most, *others = rehearsed(program, [])
    assert of_arguments == others[0]
    assert of_results >= others[1]  # more where there are branches: of each, the results of all count
    assert most <= peak <= 1.2 * most


def test_branches_in_a_loop_are_a_loose_bound() -> None:
    """Each trip may keep the memory that one branch keeps, and make that of the other."""

    def run(x: Any) -> Any:
        def step(i: Any, carry: Any) -> Any:
            return sw.cond(i > 2, lambda a, b: (b, a), lambda a, b: (a @ a, b.T), *carry)

        return sw.fori_loop(0, 5, step, (x, x + 1))

    program = sw.jit(run, mesh=MESH).lower(np.zeros((64, 64), np.float32)).compile()
    peak, most = counted(program, [])[0], rehearsed(program, [])[0]
    assert most <= peak <= 2 * most


@settings(max_examples=150)
@given(meshes().flatmap(programs))
def test_random_programs_are_bounds(program: Program) -> None:
    made = _core.passes.compile(program.record(), program.mesh)
    executable = _core.runtime.Executable(made)
    for donated in ([], list(range(len(made.argument_shardings)))):
        peak = _core.analysis.live_bytes(made.stages["local"], donated)[0]
        assert peak >= executable.memory(donated=donated)[0]


def test_most_random_programs_are_counted_closely() -> None:
    """95 % within 1.5 times of the rehearsal, ops of every kind among them."""
    ratios = []
    for index in range(RANDOM_PROGRAMS):
        with np.errstate(all="ignore"):
            _, program = program_of(1, index)
            module = program.record()
        mesh = next(iter(module.meshes.values()), program.mesh)
        made = _core.passes.compile(module, mesh)
        rehearsal = _core.runtime.Executable(made).memory()[0]
        peak = _core.analysis.live_bytes(made.stages["local"])[0]
        assert peak >= rehearsal
        ratios.append(peak / max(rehearsal, 1))
    assert len(ratios) == RANDOM_PROGRAMS
    assert np.quantile(ratios, 0.95) <= 1.5


def test_views_and_writes_in_place_take_nothing() -> None:
    mesh = sw.Mesh({"x": 2})

    def bytes_above_arguments(function: Any, *sizes: tuple[int, ...]) -> int:
        arguments = [sw.ShapeDtypeStruct(size, np.float32) for size in sizes]
        program = sw.jit(function, mesh=mesh).lower(*arguments).compile()
        peak, of_arguments, _ = counted(program, [])
        return peak - of_arguments

    kib = 4 * 256
    assert bytes_above_arguments(lambda x: x.T.T.reshape(2, 128), (16, 16)) == 0
    # A copy: the elements of the transpose are not in row-major order.
    assert bytes_above_arguments(lambda x: x.T.reshape(256), (16, 16)) == kib
    # One chain, and the second over the first, which a dot lies between.
    assert bytes_above_arguments(lambda x: np.tanh(x + 1) * x, (16, 16)) == kib
    assert bytes_above_arguments(lambda x: np.tanh(x @ x), (16, 16)) == kib
    # An update of a copy, and of the copy again.
    assert bytes_above_arguments(lambda x, y: x.at[3].set(y).at[5].set(y), (16, 16), (16,)) == kib


def test_windows_are_known_without_memory_of_their_size() -> None:
    """A rehearsal once computed the prefix sums of 4 TiB, and did not count them."""
    mesh = sw.Mesh({"x": 8})
    size = (1 << 20, 1 << 20)
    program = (
        sw.jit(lambda x: np.cumsum(x, 0), mesh=mesh, in_shardings=(P(None, "x"),))
        .lower(sw.ShapeDtypeStruct(size, np.float32))
        .compile()
    )
    tile = 4 * size[0] * size[1] // 8
    assert counted(program, []) == (2 * tile, tile, tile)
    assert program.memory().peak_bytes == 2 * tile


def test_what_is_larger_than_the_address_space_is_an_error() -> None:
    mesh = sw.Mesh({"x": 2})
    program = sw.jit(lambda x: x.T, mesh=mesh).lower(sw.ShapeDtypeStruct((1 << 25, 1 << 25), np.float32)).compile()
    with pytest.raises(MemoryError, match=r"live_bytes.*33554432x33554432"):
        counted(program, [])


def test_a_call_that_is_the_identity_takes_nothing() -> None:
    """Nothing else needs its operand, which a kernel might take over."""
    program = sw.parse("""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %x, %x : tensor<8xf32>
  %1 = stablehlo.custom_call @LayoutConstraint(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}""").compile()
    np.testing.assert_array_equal(program(np.arange(8, dtype=np.float32)), 2 * np.arange(8))
    assert counted(program, []) == rehearsed(program, []) == (32, 16, 16)
