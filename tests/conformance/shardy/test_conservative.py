# SPDX-License-Identifier: Apache-2.0
"""Conservative propagation moves whole axes only, and nothing along dims whose elements move: as Shardy's."""

from __future__ import annotations

import pytest
from hypothesis import Phase, assume, given, settings, strategies as st

from shardwise import _core
from tests.conformance.shardy.client import LEVELS, ShardyOracle, canonical_rule, differences, shardings_of
from tests.conformance.shardy.rule_instances.every_op import CONSERVATIVE_RULES
from tests.conformance.shardy.test_propagation_oracle import Annotated, annotated_programs

MESH = 'sdy.mesh @m = <["a"=4, "b"=2]>\n'


def propagate(text: str, conservative: bool) -> str:
    module = _core.ir.parse(MESH + text)
    propagated = _core.passes.run_passes(module, ["propagate_aggressive"], conservative=conservative)
    return str(propagated.result_shardings[0])


@pytest.mark.parametrize(
    ("dims", "sharding", "result", "op", "boldly", "cautiously"),
    [
        ("8", '{"a", ?}', "2x4", "stablehlo.reshape", '[{"a":(1)2, ?}, {"a":(2)2, ?}]', None),
        ("8", '{"a", ?}', "4x2", "stablehlo.reshape", '[{"a", ?}, {?}]', '[{"a", ?}, {?}]'),
        ("8", '{"a":(1)2, ?}', "8", "stablehlo.tanh", '[{"a":(1)2, ?}]', None),
    ],
)
def test_parts_of_axes_stay_where_they_are(
    dims: str, sharding: str, result: str, op: str, boldly: str, cautiously: str | None
) -> None:
    text = f"""func.func public @main(%x: tensor<{dims}xf32> {{sdy.sharding = #sdy.sharding<@m, [{sharding}]>}})
    -> tensor<{result}xf32> {{
  %0 = "{op}"(%x) : (tensor<{dims}xf32>) -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32>
}}"""
    assert boldly in propagate(text, conservative=False)
    assert (cautiously or "None") in propagate(text, conservative=True)


@settings(max_examples=120, phases=(Phase.explicit, Phase.generate))
@given(annotated_programs(), st.sampled_from(list(LEVELS)))
def test_conservative_propagation_is_that_of_shardy(shardy: ShardyOracle, drawn: Annotated, name: str) -> None:
    program, held = drawn
    module = program.record(held)
    # A rule that differs by a mechanism (mechanisms.py) may lead to other shardings.
    theirs_of_ops = shardy.run(module.text(), CONSERVATIVE_RULES)["rules"]
    for (_, rule), their in zip(module.sharding_rules(True), theirs_of_ops, strict=True):
        assume(their is None or canonical_rule(rule) == canonical_rule(their))
    ours = shardings_of(shardy.run(_core.passes.run_passes(module, [LEVELS[name]], conservative=True).text()))
    theirs = shardings_of(shardy.run(module.text(), f"{name}{{conservative-propagation=true}}"))
    found = differences(ours, theirs)
    assert not found, "\n".join([name, *found, module.text()])
