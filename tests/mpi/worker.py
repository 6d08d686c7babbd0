# SPDX-License-Identifier: Apache-2.0
"""What each rank runs: every program on the ranks and on the virtual mesh of this process, whose bits must agree.

    mpirun -n 4 python -m tests.mpi.worker [--random 500 --seed 1]

Rank 0 prints a line for each program that differs on any rank, and at last how many agreed. Programs whose sub-axes cut
across the ranks are refused; random programs are drawn until as many as asked for have run.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import optree

import shardwise as sw
from shardwise import _core
from shardwise.process.processes import place_on
from tests.mpi import faults
from tests.mpi.programs import Program, fits, programs
from tests.support.draws import SeededDraws
from tests.support.mesh_strategies import drawn_mesh
from tests.support.random_programs import Drawer, Program as RandomProgram, drawn_program

REFUSED = "no sub-axis may cut across the ranks"
MOST_DRAWS = 4  # for each program that shall run


def same_bits(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def same_shards(array: sw.Array, whole: sw.Array) -> bool:
    """Whether this rank's shards are those of the same devices on the virtual mesh."""
    virtual = {shard.device: shard for shard in whole.addressable_shards}
    return all(
        shard.index == virtual[shard.device].index and same_bits(shard.data, virtual[shard.device].data)
        for shard in array.addressable_shards
    )


def difference(program: Program) -> str | None:
    """What differs between the ranks and the virtual mesh; None if nothing does."""
    compiled = sw.jit(program.function, mesh=program.mesh, **program.options).lower(*program.arguments).compile()
    results = optree.tree_leaves(compiled(*program.arguments))
    with sw.mpi.local():
        expected = optree.tree_leaves(compiled(*program.arguments))
    if program.terms is not None:
        return beyond_rounding(program, results, expected) or faithful_difference(compiled, program)
    for i, (got, want) in enumerate(zip(results, expected)):
        if not same_shards(got, want):
            return f"shards of result {i}"
        if not same_bits(got, want):
            return f"result {i}: {np.asarray(got)!r} instead of {np.asarray(want)!r}"
    return None if "reshard" in program.name else faithful_difference(compiled, program)  # a reshard has no arithmetic


def beyond_rounding(program: Program, results: list[Any], expected: list[Any]) -> str | None:
    """The first result that differs by more than rounding: by 8 eps of the sum of the terms' absolute values."""
    assert program.terms is not None
    terms = optree.tree_leaves(program.terms(*[np.abs(x).astype(np.float64) for x in program.arguments]))
    for i, (got, want, limit) in enumerate(zip(results, expected, terms, strict=True)):
        difference = np.abs(np.asarray(got, np.float64) - np.asarray(want, np.float64))
        share = np.max(difference / limit) / (program.products * np.finfo(np.float32).eps)
        if not share <= 8:
            return f"result {i}: {share:.3g} eps of the sum of the terms"
    return None


def faithful_difference(compiled: sw.Program, program: Program) -> str | None:
    """What differs if each device is computed separately; None if nothing does."""
    faithful = optree.tree_leaves(compiled.run(*program.arguments, faithful=True, poison=True))
    with sw.mpi.local():
        expected = optree.tree_leaves(compiled.run(*program.arguments, faithful=True, poison=True))
    for i, (got, want) in enumerate(zip(faithful, expected)):
        if not same_bits(got, want):
            return f"result {i} of a faithful run"
    return None


class Case(NamedTuple):
    """A random program as ranks send it to each other."""

    text: str
    mesh_axes: dict[str, int]
    device_ids: list[int]
    arguments: list[np.ndarray]
    expected: list[np.ndarray]
    description: str


def case_of(program: RandomProgram) -> Case:
    mesh = sw.Mesh._wrap(program.mesh)
    text = program.record().text()
    return Case(text, dict(mesh.shape), list(mesh.device_ids), program.arguments, program.expected, repr(program))


def random_difference(case: Case) -> str | None:
    mesh = sw.Mesh(case.mesh_axes, device_ids=case.device_ids)
    compiled = sw.parse(case.text).compile(mesh)._compiled
    place = place_on(mesh._core)
    for faithful in (False, True):
        virtual = random_results(case, compiled, faithful)
        for i, (got, want) in enumerate(zip(random_results(case, compiled, faithful, place), virtual, strict=True)):
            if not same_bits(got, want):
                return f"output {i}, faithful={faithful}: not as on the virtual mesh\n{case.description}"
            # Numbers, not bits: a sum of terms that cancel may be -0.0 on devices.
            if not np.array_equal(got, case.expected[i]):
                return f"output {i}, faithful={faithful}: not as NumPy\n{case.description}"
    return None


def random_results(case: Case, compiled: Any, faithful: bool, place: Any = None) -> list[np.ndarray]:
    """What the program computes on the ranks, or without a place, on the virtual mesh."""
    devices = {} if place is None else {"devices": place.devices}
    processes = None if place is None else place.communicator
    arguments = [
        _core.runtime.ShardedArray.scatter(x, held, poison=True, **devices)
        for x, held in zip(case.arguments, compiled.argument_shardings, strict=True)
    ]
    executable = _core.runtime.Executable(compiled, **devices)
    return [array.gather(processes) for array in executable.run(arguments, faithful, True, processes=processes)]


def drawn(seed: int, number: int, ranks: int) -> RandomProgram:
    """Random program ``number`` of a seed, on a mesh that the ranks divide."""
    draws = SeededDraws(seed, number)
    mesh = drawn_mesh(draws)
    while mesh.size % ranks:
        mesh = drawn_mesh(draws)
    return drawn_program(Drawer(draws, mesh))


def random_runs(count: int, seed: int, comm: Any, report: Report) -> None:
    """Check random programs until ``count`` have run. Rank 0 draws them: the others have nothing to add."""
    for number in range(MOST_DRAWS * count):
        if report.ran == count:  # on all ranks
            break
        own = case_of(drawn(seed, number, comm.Get_size())) if comm.Get_rank() == 0 else None
        case: Case = comm.bcast(own, 0)
        report.check(f"random program {number}", lambda case=case: random_difference(case))  # type: ignore[misc]


class Report:
    """Counts what agreed on all ranks and what all of them refused, and prints what differed."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.agreed = self.refused = self.differing = 0

    @property
    def ran(self) -> int:
        return self.agreed + self.differing

    def check(self, name: str, find: Callable[[], str | None]) -> None:
        everywhere: list[str | None] = self._comm.allgather(self._found(name, find))
        if set(everywhere) == {REFUSED}:
            self.refused += 1
            return
        bad = [(rank, text) for rank, text in enumerate(everywhere) if text is not None]
        self.agreed += not bad
        self.differing += bool(bad)
        if bad and self._comm.Get_rank() == 0:
            print(f"DIFFERS {name}: rank {bad[0][0]}: {bad[0][1]}", flush=True)

    def _found(self, name: str, find: Callable[[], str | None]) -> str | None:
        """What differs on this rank; REFUSED if nothing has run; None if all is well."""
        try:
            return find()
        except Exception as error:
            if isinstance(error, sw.UnsupportedError) and REFUSED in str(error):
                return REFUSED
            found = traceback.format_exc()
            # Printed now: the other ranks may wait for this one in a collective.
            print(f"rank {self._comm.Get_rank()} raised in {name}: {found}", file=sys.stderr, flush=True)
            return found

    def summary(self) -> str:
        ranks = self._comm.Get_size()
        return f"{self.agreed} programs agree on {ranks} ranks, {self.refused} refused, {self.differing} differ"


def listed_runs(ranks: sw.mpi.Ranks, report: Report) -> None:
    """Check the list of programs, and then the mistakes."""
    for program in programs():
        if fits(program, ranks.size):
            report.check(program.name, lambda program=program: difference(program))  # type: ignore[misc]
    for name, fault in faults.checks(ranks):
        report.check(name, fault)


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=0, help="random programs instead of the list")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(None if arguments is None else list(arguments))
    ranks = sw.mpi.communicator()
    from mpi4py import MPI

    report = Report(MPI.COMM_WORLD)
    if options.random:
        random_runs(options.random, options.seed, MPI.COMM_WORLD, report)
        is_complete = report.ran == options.random
    else:
        listed_runs(ranks, report)
        is_complete = not report.refused
    if ranks.rank == 0:
        print(report.summary(), flush=True)
    sys.exit(1 if ranks.rank == 0 and (report.differing or not is_complete) else 0)


if __name__ == "__main__":
    main()
