# SPDX-License-Identifier: Apache-2.0
"""Programs whose choices are pinned: each application of the op table under each assignment, and the programs of the
communication benchmark. A program is recorded for a factor by which all axes of its mesh grow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import shardwise as sw
from benchmarks.communication.compiled import PROGRAMS, arguments_of, jitted
from benchmarks.communication.programs import Program, moved
from shardwise import _core
from tests.op.cases import CASES
from tests.support.partitioned import Scenario, assignments, record

MOST_ELEMENTS = 1 << 22  # of an operand that the table of ops allocates
MILLION = 1 << 20


@dataclass(frozen=True)
class Grown:
    """A program on meshes of several sizes: ``at(1)``, ``at(4)``, … are its module and mesh."""

    group: str
    name: str
    at: Callable[[int], tuple[Any, Any]]
    factors: tuple[int, ...]


# Even dims stay even, and uneven ones uneven, as far as the factors allow it.
SCENARIOS = [
    (Scenario("even", (("x", 2),), 32, ("x",)), (4, 16)),
    (Scenario("17 rows", (("x", 2),), 17, ("x",)), (4, 16, MILLION // 2)),
    (Scenario("one row", (("x", 2),), 1, ("x",)), (4, MILLION // 2)),
    (Scenario("two axes", (("x", 2), ("y", 2)), 64, ("y", "x")), (4, 512)),
    (Scenario("both dims", (("x", 2), ("y", 2)), 32, ("x",), others=("y",)), (4, 16)),
    (Scenario("both dims, 17 rows", (("x", 2), ("y", 2)), 17, ("x",), others=("y",)), (4, 16, 512)),
    (Scenario("sub-axes", (("x", 8),), 64, (("x", 2, 2),), others=(("x", 1, 2),)), (4, MILLION // 8)),
    (Scenario("many rows", (("x", 8),), 512, ("x",)), (4, 64)),
]


def of_ops(scenarios: Any = SCENARIOS) -> Iterator[Grown]:
    for case in CASES:
        dtype = case.dtypes[0]
        for scenario, factors in scenarios:
            for application in case.applications(scenario.size, dtype):
                if max(map(math.prod, application.shapes), default=0) > MOST_ELEMENTS:
                    continue
                [shape] = [record(case, application, dtype).result_types[0].shape]
                for turn in range(len(assignments(scenario, application, shape))):

                    def at(
                        factor: int,
                        case: Any = case,
                        application: Any = application,
                        scenario: Scenario = scenario,
                        shape: Any = shape,
                        turn: int = turn,
                    ) -> tuple[Any, Any]:
                        axes = tuple((name, size * factor) for name, size in scenario.axes_of_mesh)
                        grown = replace(scenario, axes_of_mesh=axes)
                        shardings, result = assignments(grown, application, shape)[turn]
                        return record(case, application, case.dtypes[0], shardings, result), grown.mesh()

                    label = application.label or application.shapes
                    yield Grown(case.id, f"{case.id} {label}, {scenario.name}, assignment {turn}", at, factors)


def accumulated(np: Any, x: Any) -> Any:
    return sw.fori_loop(0, 3, lambda i, total: total + np.sum(x * (i + 1), 0), np.zeros(16, np.float32))


# The device count also decides these: joined ranges, the carry of an accumulation, the source of a reshard.
DECIDED = (
    moved("three ranges", lambda np, x: x[0:54] + x[5:59] + x[10:64], 0, mesh={"x": 4}),
    moved("ranges of a pad", lambda np, x: sum(np.pad(x, ((1, 1), (0, 0)))[k : k + 64] for k in (0, 1, 2)), 0),
    moved("accumulation", accumulated, 0, out=()),
    moved("two placements", lambda np, x: sw.shard(x, sw.P()) + sw.shard(x, sw.P(None, "x")), 0, (64, 4096)),
)


def of_the_benchmark(factors: tuple[int, ...] = (4, 16, 4096)) -> Iterator[Grown]:
    for program in (*PROGRAMS, *DECIDED):
        yield Grown("benchmark", program.name, lambda factor, program=program: traced(program, factor), factors)


def traced(program: Program, factor: int) -> tuple[Any, Any]:
    """The module and the mesh of a program of the benchmark, with axes ``factor`` times as large."""
    function = jitted(program, factor)
    recorded = function.trace(*(sw.ShapeDtypeStruct(*argument) for argument in arguments_of(program)))
    sizes = [(axis, size * factor) for axis, size in program.mesh.items()]
    return _core.ir.parse(recorded.as_text()), _core.mesh.Mesh("mesh", sizes)
