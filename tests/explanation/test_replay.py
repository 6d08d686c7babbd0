# SPDX-License-Identifier: Apache-2.0
"""Explanations replay propagation: visits end as they were recorded, and counterfactuals are runs of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import shardwise as sw
from tests.explanation.programs import MESH, T, sharded

REPLAYS = """
import random
from shardwise import _core
from tests.conformance.shardy.random_modules.drawing import random_module
from tests.conformance.shardy.random_modules.region_steps import REGION_STEPS
from tests.conformance.shardy.random_modules.special_steps import SPECIAL_STEPS
from tests.conformance.shardy.random_modules.steps import STEPS

for index in range(60):
    text = random_module(random.Random(f"replay:{index}"), STEPS + SPECIAL_STEPS + REGION_STEPS).text()
    for strategy in ("aggressive", "basic"):
        propagate = _core.passes.propagate_program
        propagate(_core.ir.parse(text), strategy=strategy, conservative=index % 3 == 0).explain_all()
print("verified")
"""


def test_replayed_visits_end_as_they_were_recorded() -> None:
    """With SHARDWISE_VERIFY an explanation replays all visits of the program."""
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REPLAYS],
        env={**os.environ, "SHARDWISE_VERIFY": "1", "PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "verified\n", run.stderr


def test_a_counterfactual_without_effect_says_so() -> None:
    text = f"""{MESH}func.func @main(%x: {sharded('{"a"}, {?}')}, %y: {sharded('{"a"}, {?}')}) -> {T} {{
  %0 = stablehlo.add %x, %y : {T}
  return %0 : {T}
}}"""
    (value,) = sw.parse(text).why("%0", counterfactual=True).values
    assert str(value).endswith("\n  without argument %x at program text:2 nothing would change")
    (one,) = value.counterfactuals or ()
    assert str(one) == 'without argument %x at program text:2 it would be sharded [{"a"}, {}]'


def test_an_annotation_that_is_found_twice_has_one_counterfactual() -> None:
    """The constraint gives the value an axis, and closes its other dim."""
    text = f"""{MESH}func.func @main(%x: {sharded('{?}, {"b", ?}')}) -> {T} {{
  %0 = stablehlo.tanh %x : {T}
  %1 = sdy.sharding_constraint %0 <@mesh, [{{"a"}}, {{}}]> : {T}
  return %1 : {T}
}}"""
    (value,) = sw.parse(text).why("%0", counterfactual=True).values
    (lost,) = value.lost
    assert lost.closed_by is not None
    assert [(axis.origin, lost.closed_by.origin) for axis in value.axes] == [("sdy.sharding_constraint",) * 2]
    assert [(one.sharding, one.others) for one in value.counterfactuals or ()] == [('[{}, {"b"}]', 2)]
