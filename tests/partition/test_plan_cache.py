# SPDX-License-Identifier: Apache-2.0
"""Plans of reshards and their prices are kept across compilations."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P


def compiled(rows: int) -> sw.Program:
    def function(x: Any) -> Any:
        return np.tanh(sw.shard(np.tanh(x), P(None, "x")))

    x = sw.ShapeDtypeStruct((rows, 24), np.float32)
    mesh = sw.Mesh({"x": 8})  # another object each time
    return sw.jit(function, mesh=mesh, in_shardings=P("x"), out_shardings=P("x")).lower(x).compile()


def test_a_second_compilation_makes_no_plan() -> None:
    first, second = compiled(1931), compiled(1931)  # no other test has these rows
    assert first.counters["choose.new_plans"] > 0
    assert first.counters["plan_reshards.new_plans"] > 0  # the choice keeps prices, not plans
    assert second.counters["choose.new_plans"] == second.counters["plan_reshards.new_plans"] == 0
    assert second.counters["choose.plans"] == first.counters["choose.plans"] > 0
    assert second.as_text("local") == first.as_text("local")
    assert compiled(1932).counters["choose.new_plans"] > 0


def test_a_mesh_with_another_device_order_has_its_own_plans() -> None:
    def moved(order: list[int]) -> sw.Program:
        mesh = sw.Mesh({"x": 4}, device_ids=order)
        x = sw.ShapeDtypeStruct((1933, 24), np.float32)
        return sw.jit(lambda x: x, mesh=mesh, in_shardings=P("x"), out_shardings=P(None, "x")).lower(x).compile()

    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        first, second = moved(order), moved(order)
        assert first.counters["choose.new_plans"] == first.counters["plan_reshards.new_plans"] == 1
        assert second.counters["choose.new_plans"] == second.counters["plan_reshards.new_plans"] == 0
