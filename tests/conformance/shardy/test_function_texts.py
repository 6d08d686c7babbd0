# SPDX-License-Identifier: Apache-2.0
"""Calls and regions as Shardy has them in texts: propagated alike (texts/propagation has more), compiled and run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.shardy.client import OracleError, ShardyOracle

FOLDER = Path(__file__).parent / "texts" / "propagation"
X, Y = np.random.default_rng(0).standard_normal((2, 8, 8)).astype(np.float32)
MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'
T = "tensor<8x8xf32>"
EDGES = f"""{MESH}func.func @main(%x: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{?}}]>}},
    %w: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{?}}, {{"b", ?}}]>}}) -> {T} {{
  %0 = func.call @f(%x) : ({T}) -> {T}
  %1 = sdy.func_data_flow_edge %0 {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{?}}, {{?}}]>]>}} : {T} loc("n1")
  %2 = stablehlo.add %1, %w : {T} loc("n2")
  return %2 : {T}
}}
func.func private @f(%y: {T}) -> {T} {{
  %0 = sdy.func_data_flow_edge %y : {T} loc("n3")
  %1 = stablehlo.tanh %0 : {T} loc("n4")
  return %1 : {T}
}}
"""


def closed(rows: dict[str, Any]) -> dict[str, str]:
    return {name: str(row).replace(", ?", "").replace("?", "") for name, row in rows.items() if "call" not in name}


def test_function_edges_carry_shardings_between_a_function_and_its_calls(shardy: ShardyOracle) -> None:
    """Shardy's edges do this in the passes of its levels; its pipeline refuses them."""
    (theirs,) = shardy.ask_all([{"do": "compare", "text": EDGES, "passes": "sdy-user-priority-propagate", "ours": ""}])
    ours = sw.parse(EDGES).propagate().as_text(locations=True)
    (found,) = shardy.ask_all([{"do": "compare", "text": ours, "passes": "sdy-lift-inlined-meshes", "ours": ""}])
    assert closed(found["rows"]) == closed(theirs["rows"])
    assert '{"a"}, {"b"}' in str(found["rows"]["n3 sdy.func_data_flow_edge"])
    with pytest.raises(OracleError, match=r"expected operand of sdy\.func_data_flow_edge to be a result of call op"):
        shardy.after(EDGES, "sdy-propagation-pipeline")
    assert shardy.parse(EDGES) == shardy.parse(str(sw.parse(EDGES)))
    np.testing.assert_allclose(sw.parse(EDGES).run(X, Y), np.tanh(X) + Y, rtol=1e-5, atol=1e-6)


def test_constants_of_shardy_are_constants() -> None:
    text = (FOLDER / "shardy_constants.mlir").read_text()
    assert str(sw.parse(text)) == str(sw.parse(text.replace("sdy.constant", "stablehlo.constant")))
    found = sw.parse(text).run(X, Y)
    for result, expected in zip(found, (Y + 2, X + 2)):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def scattered() -> np.ndarray:
    expected = X.copy()
    expected[3] += Y[0]
    return np.asarray(np.tanh(expected))


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("constraint_in_a_scatter", (X, np.array([3], np.int32), Y[0]), [scattered()]),
        ("argument_on_an_empty_mesh", (X, Y), [X + Y, np.tanh(Y)]),
        ("calls_that_disagree", (X,), [np.tanh(X), np.tanh(np.tanh(np.tanh(X)))]),
    ],
)
@pytest.mark.parametrize("mode", [{}, {"faithful": True, "poison": True}], ids=["shared", "faithful"])
def test_texts_run(name: str, arguments: tuple[Any, ...], expected: list[np.ndarray], mode: dict[str, bool]) -> None:
    program = sw.parse((FOLDER / f"{name}.mlir").read_text()).compile()
    results = program.run(*arguments, **mode)
    results = results if isinstance(results, tuple) else (results,)
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


def test_a_call_that_disagrees_with_its_function_is_resharded() -> None:
    """One copy of the function per sharding of its results, and what moves is in the ledger with the call's line."""
    module = sw.parse((FOLDER / "calls_that_disagree.mlir").read_text(), "calls.mlir")
    assert re.findall(r"func.func private @(\w+)", str(module.propagate())) == ["f", "f_0"]
    rows = module.compile().collectives().rows
    assert [(row.kind, row.location, row.cause) for row in rows] == [
        ("collective_permute", "calls.mlir:4", "annotation"), ("all_to_all", "calls.mlir:4", "annotation"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tokens_through_a_call",
         "compile: a value must be a tensor, got !stablehlo.token; "
         "leave out the ops that have effects (at t.mlir:3)"),
        ("argument_on_one_device",
         "sharding: a value cannot be placed on a single device, got <[], device_ids=[1]>; "
         "shard or replicate it over the mesh (at t.mlir:4)"),
        ("inlined_mesh_of_an_all_reduce",
         "compile: the program must not have been through plan_reshards, got sdy.all_reduce; "
         "give it the program before that (at t.mlir:3)"),
    ],
)  # fmt: skip
def test_what_propagates_and_does_not_run(name: str, said: str) -> None:
    module = sw.parse((FOLDER / f"{name}.mlir").read_text(), "t.mlir")
    assert module.propagate()
    with pytest.raises(sw.Error) as caught:
        module.run(X, Y)
    assert str(caught.value) == said


RULED = f"""{MESH}func.func @main(%x: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{?}}]>}}, %z: tensor<f32>)
    -> tensor<8xf32> {{
  %0 = "stablehlo.reduce"(%x, %z) <{{dimensions = array<i64: 1>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    %t = stablehlo.abs %s : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }}) : ({T}, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @f(%0) {{sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {{i=8}}, custom>}}
      : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}}
"""


def test_rules_are_written_on_request_alone(shardy: ShardyOracle) -> None:
    """Shardy writes rules in regions, too; propagation leaves those that the user wrote."""
    module = sw.parse(RULED)
    populated = shardy.after(RULED, "func.func(sdy-populate-op-sharding-rules)")
    assert shardy.parse(str(module.apply("populate-rules"))) == shardy.parse(populated)
    theirs = shardy.after(populated, "sdy-propagation-pipeline")
    for text in (str(module.propagate()), str(module.apply("populate-rules", "propagate")), theirs):
        assert re.findall(r"sdy.sharding_rule = (#sdy.op_sharding_rule<.*?>)", text.replace("->", "→")) == [
            "#sdy.op_sharding_rule<([i])→([i]) {i=8}, custom>"
        ]


def test_dims_of_unknown_size_are_refused_by_both(shardy: ShardyOracle) -> None:
    text = "func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {\n  return %x : tensor<?x8xf32>\n}"
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(text)
    assert str(caught.value).startswith(
        "1:21: program text: a dim must have a static size, got tensor<?; lower the program with concrete shapes"
    )
    tanh = text.replace("  return %x", "  %0 = stablehlo.tanh %x : tensor<?x8xf32>\n  return %0")
    with pytest.raises(OracleError, match="propagation only supports ranked tensors with a static shape"):
        shardy.after(tanh, "sdy-propagation-pipeline")
