# SPDX-License-Identifier: Apache-2.0
"""Checks of mistakes, which every rank reports, and of what does not compute: placing, gathering, printing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from shardwise.process.processes import current_processes

Check = Callable[[], "str | None"]


def raises(kind: type[Exception], pattern: str, call: Callable[[], Any]) -> str | None:
    try:
        call()
    except kind as error:
        return None if re.fullmatch(pattern, str(error), re.DOTALL) else f"another message: {error}"
    return f"no {kind.__name__}"


def expect(condition: bool, what: str) -> str | None:
    return None if condition else what


def same(a: Any, b: Any) -> bool:
    return np.array_equal(np.asarray(a), np.asarray(b))


def checks(ranks: sw.mpi.Ranks) -> Iterator[tuple[str, Check]]:
    if ranks.size in (2, 4, 8):  # they divide the mesh of 8 devices
        yield from mistakes(ranks)
        yield from sub_axes(ranks)
        yield from placements(ranks)
        yield from own_parts(ranks)


def mistakes(ranks: sw.mpi.Ranks) -> Iterator[tuple[str, Check]]:
    mesh = sw.Mesh({"x": 4, "y": 2})
    rows = sw.NamedSharding(mesh, P("x", None))
    double = sw.jit(lambda x: sw.shard(x, P("x", None)) * 2, mesh=mesh)
    last = ranks.size - 1
    x = np.arange(24, dtype=np.float32).reshape(8, 3)

    def other_input() -> str | None:
        pattern = rf"the program of f: mpi: all ranks must pass the same x, got other elements on rank {last}; .*"
        return raises(sw.mpi.RankMismatchError, pattern, lambda: double(x + (ranks.rank == last)))

    def other_array_to_place() -> str | None:
        def put(value: Any, sharding: Any = rows) -> Any:
            return sw.device_put({"w": value}, sharding)

        pattern = (
            rf"device_put of x\['w'\]: mpi: all ranks must pass the same x\['w'\], got other elements on rank {last}; "
        )
        differing = [
            raises(sw.mpi.RankMismatchError, pattern + ".* own_part=True.*", lambda: put(x + (ranks.rank == last))),
            raises(sw.mpi.RankMismatchError, pattern + ".*", lambda: put(x[: 8 - (ranks.rank == last)], mesh)),
            raises(
                sw.mpi.RankMismatchError,
                r"mpi: all ranks must run the same programs .*",
                lambda: put(x, mesh if ranks.rank == last else rows),
            ),
        ]
        with sw.mpi.local():  # no other rank sees this one
            here = put(x + ranks.rank)
        return next(filter(None, differing), None) or expect(same(here["w"], x + ranks.rank), "device_put in local()")

    def other_program() -> str | None:
        def call() -> Any:
            return double(x) if ranks.rank == last else sw.jit(np.sum, mesh=mesh)(x)

        pattern = r"mpi: all ranks must run the same programs in the same order, got the program of sum on ranks? .*"
        return raises(sw.mpi.RankMismatchError, pattern, call)

    def gather_on_one() -> str | None:
        placed = sw.device_put(x, rows)
        pattern = r"mpi: all ranks must run .* got np.asarray of float32\[8, 3\] on rank 0, the program of .*"
        return raises(
            sw.mpi.RankMismatchError, pattern, lambda: np.asarray(placed) if ranks.rank == 0 else double(placed)
        )

    def unfit_mesh() -> str | None:
        pattern = (
            rf"mesh: the ranks must divide the devices, 7 in <\[\"x\"=7\]>, got {ranks.size} ranks; start 1 or 7 "
            rf"ranks, or use a mesh with a multiple of {ranks.size} devices.*"
        )
        return raises(sw.MeshError, pattern, lambda: sw.device_put(x, sw.Mesh({"x": 7})))

    def too_few() -> str | None:
        pattern = r"mpi.communicator: the script needs 64 ranks, got \d+; start it with mpirun -n 64 python .*"
        return raises(sw.MeshError, pattern, lambda: sw.mpi.communicator(ranks=64))

    checks = (
        other_input, other_array_to_place, other_program, gather_on_one, unfit_mesh, too_few,
    )  # fmt: skip
    for check in checks:
        yield check.__name__, check


def sub_axes(ranks: sw.mpi.Ranks) -> Iterator[tuple[str, Check]]:
    x = np.arange(24, dtype=np.float32).reshape(8, 3)

    def sub_axis_across_the_ranks() -> str | None:
        three = sw.NamedSharding(sw.Mesh({"x": 3 * ranks.size}), P(sw.sub("x", pre=1, size=3)))
        wide = sw.jit(lambda x: x + 1, in_shardings=three)
        whole = sw.device_put(x, sw.NamedSharding(three.mesh, P()))
        rule = (
            rf"no sub-axis may cut across the ranks, got ranks along {{\"x\":\(1\){ranks.size}}} and {{\"x\":\(1\)3}}; "
            rf"start 1, 3.* or {3 * ranks.size} ranks, or use other axis sizes.*"
        )
        refused = {
            "run": [lambda: wide(x)],
            "array": [
                lambda: sw.device_put(x, three),
                lambda: sw.device_put(x if ranks.rank == 0 else None, three, root=0),
                lambda: sw.device_put(x[:4], three, own_part=True),
                lambda: sw.device_put(whole, three),
            ],
        }
        for what, actions in refused.items():
            for action in actions:
                if differs := raises(sw.UnsupportedError, f"{what}: {rule}", action):
                    return differs
        return expect(same(sw.jit(lambda x: x * 2)(whole), x * 2), "a program after one that is refused")

    yield sub_axis_across_the_ranks.__name__, sub_axis_across_the_ranks


def placements(ranks: sw.mpi.Ranks) -> Iterator[tuple[str, Check]]:
    mesh = sw.Mesh({"x": 4, "y": 2})
    rows = sw.NamedSharding(mesh, P("x", None))
    double = sw.jit(lambda x: sw.shard(x, P("x", None)) * 2, mesh=mesh)
    last = ranks.size - 1
    x = np.arange(24, dtype=np.float32).reshape(8, 3)

    def from_one_rank() -> str | None:
        tree = sw.device_put({"w": x, "n": 3} if ranks.rank == last else None, rows.mesh, root=last)
        placed = sw.device_put(x if ranks.rank == 0 else None, rows, root=0)
        fine = np.array_equal(np.asarray(placed), x) and int(tree["n"]) == 3
        return expect(fine and np.array_equal(np.asarray(tree["w"]), x), "device_put from a rank")

    def other_placement() -> str | None:
        placed = sw.device_put(x, rows)
        moved = sw.reshard(placed, P(None, "y"))
        with sw.mpi.local():
            here = double(placed)
        mixed = double(here)  # an array of all devices
        fine = same(moved, x) and same(here, x * 2) and same(mixed, x * 4) and here.is_fully_addressable
        return expect(fine and not placed.is_fully_addressable, "arrays between ranks and the virtual mesh")

    def printed() -> str | None:
        placed = sw.device_put(x, rows)
        text = repr(placed) if ranks.rank == 0 else ""  # no communication
        known = repr(sw.device_put(np.float32(2), mesh))
        wanted = "Array(shape=(8, 3), dtype=float32, sharding=P('x', None))"
        return expect(text in ("", wanted) and known == "Array(2., dtype=float32)", f"{text} {known}")

    def nested_blocks() -> str | None:
        used = [current_processes()]
        with sw.mpi.local():
            with sw.mpi.communicator() as outer:
                with sw.mpi.communicator():
                    sw.mpi.communicator()
                    used.append(current_processes())
                used.append(current_processes())
            used.append(current_processes())
            with outer:
                used.append(current_processes())
            used.append(current_processes())
        return expect(used == [ranks, ranks, ranks, None, ranks, None], f"blocks of communicator() use {used}")

    for check in (from_one_rank, other_placement, printed, nested_blocks):
        yield check.__name__, check


def own_parts(ranks: sw.mpi.Ranks) -> Iterator[tuple[str, Check]]:
    mesh = sw.Mesh({"x": 4, "y": 2})
    rows = sw.NamedSharding(mesh, P("x", None))
    last = ranks.size - 1

    def from_own_parts() -> str | None:
        for shape, spec in (((8, 3), P("x", None)), ((13, 3), P(("y", "x"))), ((6, 9), P("y", "x"))):
            sharding = sw.NamedSharding(mesh, spec)
            whole = np.random.default_rng(0).standard_normal(shape)
            shards = sw.device_put(whole, sharding).addressable_shards
            index = [sorted({(s.index[d].start, s.index[d].stop) for s in shards}) for d in range(2)]
            part = whole[np.ix_(*[[i for begin, end in each for i in range(begin, end)] for each in index])]
            placed = sw.device_put(part, sharding, own_part=True)
            if placed.shape != shape or not np.array_equal(np.asarray(placed), whole):
                return f"device_put of own parts of {shape} as {spec}: {placed.shape}"
        return None

    def own_part_of_another_shape() -> str | None:
        part = np.zeros((2 + (ranks.rank == 0), 3))
        pattern = (
            r"(on rank \d+: )?device_put: the part of this rank must have the shape .* give the rows of this rank's .*"
        )
        return raises(sw.ShapeError, pattern, lambda: sw.device_put(part, rows, own_part=True))

    def own_parts_of_the_same_rows() -> str | None:
        pairs = sw.NamedSharding(sw.Mesh({"x": ranks.size // 2, "y": 2}), P("x"))
        part = np.full((2, 3), ranks.rank // 2, np.float32)
        part[0, 0] = np.nan  # equal bits are equal

        def put() -> sw.Array:
            return sw.device_put(part + (ranks.rank == last), pairs, own_part=True)

        pattern = (
            rf"device_put: ranks that hold the same rows must pass equal parts, got other elements on rank {last} than "
            rf"on rank {last - 1}; pass equal parts, or use root=.*"
        )
        differs = raises(sw.mpi.RankMismatchError, pattern, put)
        placed = np.asarray(sw.device_put(part, pairs, own_part=True))
        return differs or expect(placed[::2, 1].tolist() == list(range(ranks.size // 2)), f"equal parts: {placed}")

    for check in (from_own_parts, own_part_of_another_shape, own_parts_of_the_same_rows):
        yield check.__name__, check
