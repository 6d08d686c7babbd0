# SPDX-License-Identifier: Apache-2.0
"""Plans of random reshards against the least that any plan can send.

    python -m tests.conformance.reshards --pairs 10000 --seed 7
    python -m tests.conformance.reshards --meshes 1000

Each plan is executed on an array whose elements are their indices, and the tile of each device is compared. A pending
reduction is that of parts whose sum is that array. Movement takes one collective. Between even tiles that nest, it
sends exactly what a device lacks. Before and after a step, a device holds at most the larger of both tiles, and one
tile more. The tool exits with 1 if something is wrong; it shows times, and does not judge them. With ``--meshes``, the
placements are on two meshes over the same devices, and the reshard is run in every mode.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardwise import _core
from tests.conformance.reshards.meshes import draw_pair, wrong_in
from tests.conformance.reshards.pairs import KINDS, Pair, bound, draw, tiles
from tests.conformance.results import table, write
from tests.op.catalogue.instance import tensor
from tests.op.references import Array

ITEM = 4  # bytes


@dataclass(frozen=True)
class Outcome:
    """A plan: what it sends beside the bound, and what is wrong with it, if anything."""

    pair: Pair
    moves: tuple[str, ...]
    bytes: float
    bound: int
    seconds: float
    wrong: str

    @property
    def ratio(self) -> float:
        """To the bound."""
        return self.bytes / self.bound if self.bound else 1.0

    @property
    def collectives(self) -> int:
        """A slice is none."""
        return sum(move != "all_slice" for move in self.moves)


def measure(pair: Pair, repetitions: int = 3) -> Outcome:
    """Plan a reshard, execute it, and compare."""
    before, after = pair.shardings()
    seconds = math.inf  # the minimum is the time without disturbances
    for _ in range(repetitions):
        start = time.perf_counter()
        plan = _core.passes.plan_reshard(pair.shape, ITEM, before, after)
        seconds = min(seconds, time.perf_counter() - start)
    least = bound(pair) * ITEM
    wrong = fault(pair, plan["moves"], plan["bytes"], plan["tiles"], least)
    wrong = wrong or (sum_of_parts if pair.unreduced else difference)(pair, plan["moves"])
    return Outcome(pair, tuple(plan["moves"]), plan["bytes"], least, seconds, wrong)


def fault(pair: Pair, moves: list[str], sent: float, held: list[float], least: int) -> str:
    collectives = [move for move in moves if move != "all_slice"]
    ends = [ITEM * math.prod(_local(pair, axes)) for axes in (pair.before, pair.after)]
    if any(tile > max(ends) for tile in held):
        return f"a tile of {max(held):.0f} bytes on the way, where {max(ends)} are enough"
    live = max((sum(two) for two in itertools.pairwise([ends[0], *held])), default=0)
    # A reduction may keep the size of a tile that is then cut.
    if live > max(ends) + (max(ends) if pair.unreduced else min(ends)):
        return f"input and output of a step are {live:.0f} bytes, for tiles of {ends[0]} and {ends[1]}"
    if pair.kind == "reduced":
        return ""
    if len(collectives) > 1:
        return "more than one collective"
    if sent < least or (pair.kind == "nested" and sent != least):
        return f"sends {sent:.0f} bytes where a device lacks {least}"
    return ""


def difference(pair: Pair, moves: list[str]) -> str:
    """The first difference between the tiles of a run and the new placement's; "" if there is none."""
    before, after = pair.shardings()
    values = np.arange(math.prod(pair.shape), dtype=np.float32).reshape(pair.shape)
    trace = _core.ir.Trace("moved")
    module = trace.finish([trace.argument(pair.shape, "float32", "", before)], [after])
    return difference_in_run(pair, _core.passes.compile(module, before.mesh), values, values, moves)


def sum_of_parts(pair: Pair, moves: list[str]) -> str:
    """The same for the sum of parts that devices along the unreduced axes have, computed where they are."""
    before, after = pair.shardings()
    mesh = after.mesh
    part = np.arange(math.prod(pair.shape), dtype=np.float32).reshape(pair.shape)
    parts = np.stack([part + k for k in range(math.prod(size for _, _, size in pair.unreduced))])
    held = _core.mesh.Sharding.make(mesh, [(axes, False, None) for axes in (list(pair.unreduced), *pair.before)])
    text = f"""module {{ sdy.mesh @mesh = {mesh.text()}
      func.func public @main(%x: {tensor(parts.shape, "float32")} {{sdy.sharding = #sdy.sharding{held}}})
          -> ({tensor(pair.shape, "float32")} {{sdy.sharding = #sdy.sharding{after}}}) {{
        %0 = stablehlo.constant dense<0.0> : tensor<f32>
        %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [0] :
          ({tensor(parts.shape, "float32")}, tensor<f32>) -> {tensor(pair.shape, "float32")}
        return %1 : {tensor(pair.shape, "float32")} }} }}"""
    short = [str(sharding).removeprefix("<@mesh, ").removesuffix(">") for sharding in (held, before)]
    module = _core.ir.parse(text)
    unit = _core.passes.compile(module, mesh)
    if all(size > 1 for _, size in pair.mesh):  # an axis of one device is removed from programs
        program, [(at, op, _, _, _)], _, *texts = unit.choices()
        reduce = (at, op, "", [short[0], "[]"], [short[1]])
        unit = _core.passes.compile(module, mesh, choices=(program, [reduce], [(at, moves)], *texts))
    return difference_in_run(pair, unit, parts, parts.sum(0), moves)


def difference_in_run(pair: Pair, unit: Any, argument: Array, values: Array, moves: list[str]) -> str:
    plans = [moves for _, moves in unit.choices()[2]]
    has_names = all(size > 1 for _, size in pair.mesh)  # an axis of one device is removed from programs
    if has_names and plans != [moves] and (moves or plans):
        return f"runs {plans}"
    given = _core.runtime.ShardedArray.scatter(argument, unit.argument_shardings[0], poison=True)
    [result] = _core.runtime.Executable(unit).run([given], poison=True)
    first, end = tiles(pair, pair.after)
    for device in range(len(first)):
        wanted = values[tuple(slice(a, b) for a, b in zip(first[device], end[device]))]
        tile = result.shard(device)[tuple(slice(b - a) for a, b in zip(first[device], end[device]))]
        if not np.array_equal(tile, wanted):
            return f"device {device} has another tile"
    return ""


def _local(pair: Pair, axes_of_dims: list[list[tuple[str, int, int]]]) -> list[int]:
    return [-(-size // math.prod(axis[2] for axis in axes)) for size, axes in zip(pair.shape, axes_of_dims)]


def row(kind: str, outcomes: list[Outcome]) -> dict[str, object]:
    """A line of the table. No bound is known of what a reduction must receive."""
    micros = sorted(outcome.seconds * 1e6 for outcome in outcomes)
    ratios = [outcome.ratio for outcome in outcomes if outcome.bound and kind != "reduced"]
    return {
        "kind": kind,
        "pairs": len(outcomes),
        "at the bound": f"{np.mean([r <= 1 for r in ratios]):.1%}" if ratios else "-",
        "geometric mean": f"{math.exp(np.mean(np.log(ratios))):.4f}" if ratios else "-",
        "worst": f"{max(ratios):.2f}" if ratios else "-",
        "one collective": f"{np.mean([o.collectives <= 1 for o in outcomes]):.1%}",
        "median µs": f"{micros[len(micros) // 2]:.1f}",
        "p99 µs": f"{micros[len(micros) * 99 // 100]:.1f}",
        "worst µs": f"{micros[-1]:.1f}",
        "wrong": sum(bool(outcome.wrong) for outcome in outcomes),
    }


def between_meshes(rng: random.Random, count: int) -> int:
    """Run random pairs on two meshes; 1 if one is wrong."""
    pairs = [draw_pair(rng) for _ in range(count)]
    found = [(wrong_in(pair), pair) for pair in pairs]
    wrong = [each for each in found if each[0]]
    nests = sum(pair.nests for pair in pairs)
    table("meshes", ["pairs", "even tiles that nest", "wrong"], [[count, nests, len(wrong)]])
    for fault_, pair in wrong[:20]:
        print(f"{fault_}: {pair}")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000, help="of even tiles that nest; a tenth of each other kind")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--meshes", type=int, default=0, help="instead: so many pairs of placements on two meshes")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    if arguments.meshes:
        return between_meshes(rng, arguments.meshes)
    rows, moves = [], Counter[str]()
    failures: list[Outcome] = []
    for kind in KINDS:
        count = arguments.pairs if kind == "nested" else max(arguments.pairs // 10, 1)
        outcomes = [measure(draw(rng, kind)) for _ in range(count)]
        rows.append(row(kind, outcomes))
        moves.update(", ".join(outcome.moves) or "nothing" for outcome in outcomes if kind != "reduced")
        failures += [outcome for outcome in outcomes if outcome.wrong]
    table("reshards", list(rows[0]), [list(cells.values()) for cells in rows])
    print("\n".join(f"{count:6} {name}" for name, count in moves.most_common(12)))
    for outcome in failures[:20]:
        print(f"{outcome.wrong}: {outcome.pair}, by {outcome.moves}")
    write("reshards", rows)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
