# SPDX-License-Identifier: Apache-2.0
"""The problem that the solver of a choice is given, and HiGHS's answer to it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix

import shardwise as sw
from shardwise import _core
from shardwise._core.solve import FORBIDDEN


@dataclass(frozen=True)
class Problem:
    """Options of nodes, with costs of each and of pairs.

    Attributes:
        known: the options of the program's choice.
        found: what a compilation finds around them.
    """

    graph: Any
    known: list[int]
    found: list[int]


def problem_of(program: sw.Program) -> Problem:
    """The problem around the choice of a program without pins."""
    module, mesh = program._traced._core, program.mesh._core
    return Problem(*_core.passes.choice_problem(module, mesh, **program._compile_options()))


class _Rows:
    """Equations of a linear program."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.values: list[float] = []
        self.sums: list[float] = []

    def add(self, columns: list[int], minus: int | None = None) -> None:
        """The columns add up to the column ``minus``, or else to 1."""
        signed = [(column, 1.0) for column in columns] + ([] if minus is None else [(minus, -1.0)])
        for column, value in signed:
            self.rows.append(len(self.sums))
            self.columns.append(column)
            self.values.append(value)
        self.sums.append(1.0 if minus is None else 0.0)


def least_cost(graph: Any, is_whole: bool) -> float:
    """The least cost that any picks have, as HiGHS finds it; otherwise a bound: that of fractions of options."""
    nodes, rows = graph.nodes, _Rows()
    costs = [np.array([cost for options in nodes for cost in options], float)]
    first = np.concatenate([[0], np.cumsum([len(options) for options in nodes])]).astype(int)
    for begin, end in itertools.pairwise(first):
        rows.add(list(range(begin, end)))
    size = int(first[-1])
    for a, b, pairs in graph.edges:
        table = np.arange(size, size + len(pairs)).reshape(len(nodes[a]), len(nodes[b]))
        costs.append(np.array(pairs, float))
        size += len(pairs)
        for options, node in ((table, a), (table.T, b)):
            for k, columns in enumerate(options):
                rows.add(columns.tolist(), int(first[node]) + k)
    cost = np.concatenate(costs)
    most = np.where(cost >= FORBIDDEN, 0.0, 1.0)
    cost = np.where(cost >= FORBIDDEN, 0.0, cost)
    unit = max(cost.max() / 1e6, 1e-9)
    equations = coo_matrix((rows.values, (rows.rows, rows.columns)), shape=(len(rows.sums), size)).tocsr()
    integral = np.zeros(size)
    integral[: first[-1]] = 1 if is_whole else 0
    made = milp(
        cost / unit,
        constraints=LinearConstraint(equations, rows.sums, rows.sums),
        integrality=integral,
        bounds=Bounds(0, most),
        options={"time_limit": 600, "mip_rel_gap": 1e-3},
    )
    assert made.x is not None
    # HiGHS may end before it has proven its solution: then its bound is below the least cost.
    return float(made.mip_dual_bound if is_whole else made.fun) * unit
