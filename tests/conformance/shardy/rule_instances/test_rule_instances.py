# SPDX-License-Identifier: Apache-2.0
"""Random instances of every op: their text makes the round trip, and their rules are Shardy's."""

from __future__ import annotations

import re

import pytest

from shardwise import _core, errors
from tests.conformance.shardy.client import ShardyOracle
from tests.conformance.shardy.mechanisms import MECHANISMS, RULES
from tests.conformance.shardy.rule_instances.every_op import DATA_FLOW, GENERATORS, Row, compare_op, instances_of
from tests.conformance.shardy.rule_instances.instance import module_text

REGISTRY = {op.name: op for op in _core.ir.all_ops()}
NOT_RUNNABLE = [name for name in GENERATORS if not REGISTRY[name].runnable]
COUNT = 8


def test_every_op_has_a_generator() -> None:
    ops = {name for name in REGISTRY if name.startswith(("stablehlo.", "chlo."))}
    assert ops - DATA_FLOW == set(GENERATORS)


@pytest.mark.parametrize("op", GENERATORS)
def test_rules_are_those_of_shardy(shardy: ShardyOracle, op: str) -> None:
    row = compare_op(shardy, op, COUNT, 0)
    assert not row.wrong, "\n".join(row.wrong)
    assert not row.died
    assert row.instances == COUNT


@pytest.mark.parametrize("op", GENERATORS)
def test_conservative_rules_are_those_of_shardy(shardy: ShardyOracle, op: str) -> None:
    row = compare_op(shardy, op, COUNT, 4, conservative=True)
    assert not row.wrong, "\n".join(row.wrong)


def test_every_mechanism_is_met(shardy: ShardyOracle) -> None:
    seen: set[str] = set()
    for op in GENERATORS:
        row: Row = compare_op(shardy, op, 60, 1)
        seen.update(row.by_mechanism)
    assert seen == {mechanism.name for mechanism in MECHANISMS if mechanism.rule}


@pytest.mark.parametrize("op", GENERATORS)
def test_the_text_of_an_op_makes_the_round_trip(shardy: ShardyOracle, op: str) -> None:
    text = module_text(instances_of(op, COUNT, 2))
    module = _core.ir.parse(text)
    printed = module.text()
    again = _core.ir.parse(printed)
    assert again.text() == printed
    assert module.structurally_equal(again)
    assert shardy.parse(printed) == shardy.parse(text), printed
    generic = module.text(generic=True)
    assert _core.ir.parse(generic).text() == printed
    assert shardy.parse(generic) == shardy.parse(text), generic


@pytest.mark.parametrize("op", GENERATORS)
def test_populated_rules_are_text_that_shardy_verifies(shardy: ShardyOracle, op: str) -> None:
    module = _core.ir.parse(module_text(instances_of(op, COUNT, 5)))
    for conservative in (False, True):
        populated = _core.passes.populate_rules(module, conservative=conservative).text()
        shown = shardy.run(populated)["rules"]
        for (name, rule), attribute in zip(module.sharding_rules(conservative), shown, strict=True):
            has_factors = rule and not rule.startswith("()") and not rule.endswith("->()")  # that two tensors share
            assert attribute == (f"#sdy.op_sharding_rule<{rule}>" if has_factors else None), name
        assert _core.ir.parse(populated).text() == populated


def test_populated_rules_are_those_of_shardy(shardy: ShardyOracle) -> None:
    text = """func.func public @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.tanh %x : tensor<4x8xf32>
  %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [1]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}"""
    populated = _core.passes.populate_rules(_core.ir.parse(text)).text()
    assert shardy.run(populated)["rules"] == shardy.run(text, RULES)["rules"]
    again = _core.passes.populate_rules(_core.ir.parse(populated)).text()
    assert again == populated


@pytest.mark.parametrize("op", NOT_RUNNABLE)
def test_an_op_without_kernel_is_propagated_but_not_compiled(op: str) -> None:
    module = _core.ir.parse(module_text(instances_of(op, 1, 3)))
    for level in ("propagate_basic", "propagate_user_priority"):
        _core.passes.run_passes(module, [level])
    with pytest.raises((errors.UnsupportedError, errors.DTypeError), match=f"{re.escape(op)}|must be a tensor"):
        _core.passes.compile(module, _core.mesh.Mesh("mesh", [("x", 2)]))


def test_an_op_without_kernel_is_named_with_its_line() -> None:
    text = """func.func public @main() -> tensor<2x4xf32> {
  %0 = stablehlo.create_token : !stablehlo.token
  %1:2 = "stablehlo.infeed"(%0) <{infeed_config = ""}> :
    (!stablehlo.token) -> (tensor<2x4xf32>, !stablehlo.token) loc("model.py":12:3)
  return %1#0 : tensor<2x4xf32>
}"""
    with pytest.raises(errors.UnsupportedError, match=r"stablehlo.infeed.*not run.*model.py:12"):
        _core.passes.compile(_core.ir.parse(text), _core.mesh.Mesh("mesh", [("x", 2)]))
