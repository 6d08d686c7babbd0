# SPDX-License-Identifier: Apache-2.0
"""The ledger of programs with loops and branches, and collectives that a text has inside of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 2})
X = np.arange(8, dtype=np.float32)


def add_sum(x: Any) -> Any:
    return x + np.sum(x)  # one all_reduce


def counted(x: Any) -> Any:
    return sw.fori_loop(0, 3, lambda _, x: add_sum(x), x)


def nested(x: Any) -> Any:
    return sw.fori_loop(0, 5, lambda _, x: counted(x), x)


def unknown(x: Any) -> Any:
    return sw.while_loop(lambda x: np.max(np.abs(x)) < 1e6, add_sum, x)


def branch(x: Any) -> Any:
    return sw.cond(np.max(x) < 3, add_sum, lambda x: x, x)


def branch_in_loop(x: Any) -> Any:
    return sw.fori_loop(0, 4, lambda i, x: sw.cond(i < 2, add_sum, lambda x: x, x), x)


PROGRAMS: dict[Callable[[Any], Any], tuple[int, str]] = {
    counted: (3, ""),
    nested: (15, ""),
    unknown: (1, "per trip"),
    branch: (1, "at most"),
    branch_in_loop: (4, "at most"),
}


def compiled(f: Callable[[Any], Any]) -> sw.Program:
    return sw.jit(f, mesh=MESH, in_shardings=P("x")).lower(X).compile()


def sums(f: Callable[[Any], Any]) -> list[Any]:
    """The rows of the sum in ``add_sum``; the predicates have collectives of their own."""
    return [row for row in compiled(f).collectives().rows if row.kind == "all_reduce" and row.dtype == "float32"]


def test_the_summary_says_that_branches_may_not_run() -> None:
    for f in PROGRAMS:
        ledger = compiled(f).collectives()
        assert ("at most" in ledger.summary()) == any(row.bound == "at most" for row in ledger.rows)
    assert compiled(branch).collectives().summary().startswith("2 collectives, at most ")


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_row_counts_its_trips(f: Callable[[Any], Any]) -> None:
    assert PROGRAMS[f] in [(row.count, row.bound) for row in sums(f)]


def test_the_ledger_shows_what_it_does_not_know() -> None:
    ledger = compiled(unknown).collectives()
    assert "1 per trip" in repr(ledger)
    assert ledger.summary().endswith("received per device, with one trip of each loop of unknown length")
    assert "per trip" not in compiled(counted).collectives().summary()


def test_a_bound_needs_a_known_number_of_trips() -> None:
    sw.testing.assert_collectives(compiled(counted), all_reduce=3, bytes_max=1000)
    with pytest.raises(AssertionError, match=r"a loop of unknown length, where sw\.fori_loop or sw\.scan would give"):
        sw.testing.assert_collectives(compiled(unknown), bytes_max=1000)


REGIONS = {
    "while": """%r = stablehlo.while(%i = %a) : tensor<8xf32> cond {
      %p = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      {collective}
      stablehlo.return %g : tensor<8xf32>
    }""",
    "case": """%z = stablehlo.constant dense<0> : tensor<i32>
    %r = "stablehlo.case"(%z) ({
      {collective}
      stablehlo.return %g : tensor<8xf32>
    }) : (tensor<i32>) -> tensor<8xf32>""",
}


@pytest.mark.parametrize("region", REGIONS)
def test_a_collective_in_a_region_needs_a_resharded_program(region: str) -> None:
    collective = '%g = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>'
    text = f"""sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<8xf32> {{
    {REGIONS[region].replace("{collective}", collective)}
    return %r : tensor<8xf32> }}"""
    with pytest.raises(
        sw.ShardingError, match=r"assign: the program must not have been through plan_reshards, got sdy\."
    ):
        sw.parse(text).apply("propagate", "assign")
