# SPDX-License-Identifier: Apache-2.0
"""The solver of the choice on the sharding problems of a public contest, beside the best costs that are known.

    python -m benchmarks.iopddl FOLDER [--json FILE]

FOLDER has problems in the contest's format, ``NAME.json.gz`` or ``NAME.json``: nodes with strategies (cost, memory) and
the time in which each is live, edges with a cost for each pair of strategies, and a limit of memory. FILE gets
``{file: {"cost", "feasible", "bound", "seconds"}}``: no solution costs less than the bound. Costs and memory are
computed here from the file and the strategies that the solver returned. The effort of the solver is counted, so the
costs are the same on every machine.

Problems and best costs: ASPLOS / EuroSys 2025 contest on intra-operator parallelism (google/iopddl, Apache-2.0);
best of all entries on 8 cores in 60 to 300 s.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from pathlib import Path
from typing import Any, TypedDict

from benchmarks.report import table
from shardwise._core.solve import FORBIDDEN, CostGraph, solve

BEST_KNOWN = {
    "A": 6548641531,
    "B": 532843,
    "C": 84102445200,
    "D": 309396217000,
    "G": 217039,
    "K": 2242635780,
    "M": 49928157500,
    "N": 199470115000,
    "Q": 526776842042,
    "V": 1617084,
}
EFFORT = {"bound_cells": 10_000_000_000, "search_cells": 10_000_000_000, "rounds_without_gain": 1500}


class Result(TypedDict):
    """What the solver found for a file."""

    cost: int | None
    feasible: bool
    bound: int
    seconds: float


def problem_of(path: Path) -> dict[str, Any]:
    """The problem in a file."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    problem: dict[str, Any] = json.loads(text)["problem"]
    return problem


def graph_of(problem: dict[str, Any]) -> CostGraph:
    """The problem as a cost graph."""
    graph = CostGraph()
    nodes, edges = problem["nodes"], problem["edges"]
    for costs, usages, (begin, end) in zip(nodes["costs"], nodes["usages"], nodes["intervals"], strict=True):
        graph.add_use(graph.add_node(costs), begin, end, usages)
    for (a, b), costs in zip(edges["nodes"], edges["costs"], strict=True):
        graph.add_edge(a, b, costs)
    if "usage_limit" in problem:
        graph.set_limit(problem["usage_limit"])
    return graph


def cost_of(problem: dict[str, Any], picks: list[int]) -> int:
    """The sum of the costs of these strategies."""
    nodes, edges = problem["nodes"]["costs"], problem["edges"]
    cost = sum(costs[pick] for costs, pick in zip(nodes, picks, strict=True))
    for (a, b), costs in zip(edges["nodes"], edges["costs"], strict=True):
        cost += costs[picks[a] * len(nodes[b]) + picks[b]]
    return int(cost)


def peak_of(problem: dict[str, Any], picks: list[int]) -> int:
    """The most memory that these strategies use at a time."""
    nodes = problem["nodes"]
    changes: dict[int, int] = {}
    for usages, (begin, end), pick in zip(nodes["usages"], nodes["intervals"], picks, strict=True):
        if begin < end:
            changes[begin] = changes.get(begin, 0) + usages[pick]
            changes[end] = changes.get(end, 0) - usages[pick]
    used = peak = 0
    for moment in sorted(changes):
        used += changes[moment]
        peak = max(peak, used)
    return peak


def solved(path: Path) -> Result:
    """Solve the problem in a file. The time includes reading."""
    start = time.perf_counter()
    problem = problem_of(path)
    picks, _, bound = solve(graph_of(problem), **EFFORT)
    seconds = time.perf_counter() - start
    cost = cost_of(problem, picks) if picks else FORBIDDEN
    fits = bool(picks) and peak_of(problem, picks) <= problem.get("usage_limit", FORBIDDEN)
    feasible = fits and cost < FORBIDDEN
    return Result(cost=cost if feasible else None, feasible=feasible, bound=bound, seconds=round(seconds, 2))


def ratio(path: Path, result: Result) -> float | None:
    """Best known cost / cost: 0 if nothing was found, none for problems whose best cost is not known here."""
    best = BEST_KNOWN.get(path.name.split(".")[0])
    if best is None:
        return None
    return best / result["cost"] if result["cost"] else 0.0


def main() -> None:
    """Solve all problems of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    paths = sorted(path for path in arguments.folder.iterdir() if path.name.endswith((".json.gz", ".json")))
    results: dict[str, Result] = {}
    rows, ratios = [], []
    for path in paths:
        result = results[path.name] = solved(path)
        known = ratio(path, result)
        if known is not None:
            ratios.append(known)
        gap = 1 - result["bound"] / result["cost"] if result["cost"] else float("nan")
        rows.append([path.name, result["cost"] or "none", result["bound"], gap, known or "", result["seconds"]])
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(results, indent=1))
    table("sharding problems", ["file", "cost", "bound", "gap", "best known / cost", "seconds"], rows)
    if ratios:
        print(f"mean of best known / cost: {statistics.mean(ratios):.4f}")


if __name__ == "__main__":
    main()
