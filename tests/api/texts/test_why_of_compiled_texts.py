# SPDX-License-Identifier: Apache-2.0
"""``why`` of a compiled text explains the shardings of the compiled program, with the names of the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shardwise as sw
from shardwise.cli import main
from tests.support.paths import GOLDEN

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
ON_X = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'

# Simplification merges %1 and %2, so that the constraint reaches %4; %a would not pass it on.
EQUAL_OPS = f"""{MESH}func.func @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}})
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
  %1 = stablehlo.tanh %a : tensor<8x8xf32>
  %2 = stablehlo.tanh %a : tensor<8x8xf32>
  %3 = stablehlo.exponential %1 : tensor<8x8xf32>
  %4 = stablehlo.negate %2 : tensor<8x8xf32>
  %5 = sdy.sharding_constraint %3 <@mesh, [{{"x"}}, {{}}]> : tensor<8x8xf32>
  return %5, %4 : tensor<8x8xf32>, tensor<8x8xf32>
}}"""

# Ops that stop propagation become others that do not.
COMPOSITE = f"""{MESH}func.func @main(%x: tensor<8x8xf32> {ON_X}) -> tensor<8x8xf32> {{
  %0 = stablehlo.composite "my.op" %x {{decomposition = @f}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}}
func.func private @f(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {{
  %0 = stablehlo.sine %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}"""
DYNAMIC = f"""{MESH}func.func @main(%x: tensor<8x8xf32> {ON_X}) -> tensor<8x8xf32> {{
  %s = stablehlo.constant dense<[8, 8]> : tensor<2xi64>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0, 1] : (tensor<8x8xf32>, tensor<2xi64>) -> tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}}"""
ROW = "tensor<4x8xf32>"
SCAN = f"""{MESH}func.func @main(%x: tensor<4x3x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}, {{}}]>}},
    %h: {ROW}) -> tensor<4x3x8xf32> {{
  %0:2 = chlo.scan(%x) inits (%h) dimension=1 {{
  ^bb0(%a: {ROW}, %b: {ROW}):
    %y = stablehlo.add %a, %b : {ROW}
    stablehlo.return %y, %y : {ROW}, {ROW}
  }} : (tensor<4x3x8xf32>, {ROW}) -> (tensor<4x3x8xf32>, {ROW})
  %1 = stablehlo.tanh %0#0 : tensor<4x3x8xf32>
  return %1 : tensor<4x3x8xf32>
}}"""


def golden_texts() -> Iterator[Any]:
    for name in ("inline_calls", "legalize", "propagate", "simplify", "simplify_loops"):
        for path in sorted((GOLDEN / name).glob("*.mlir")):
            text = path.read_text().partition("// ---- after")[0]
            if "sdy.mesh" in text:
                yield pytest.param(text, id=f"{name}/{path.stem}")


def result_names(text: str) -> list[str]:
    """The names of what main returns, as ``why`` takes them."""
    body = text[text.index("@main") :]
    returned = re.search(r"^ *(?:func\.)?return (.*?) : ", body, re.MULTILINE)
    return [f"@main {name}" for name in returned[1].split(", ")] if returned else []


def shardings_and_reasons(text: str, capsys: Any, path: Path) -> Iterator[tuple[str, str, str, str]]:
    """For each result: its name, its sharding, what ``why`` says of it, and what the command line says."""
    program = sw.parse(text).compile()
    path.write_text(text)
    signature = text[text.index("@main(") :].partition("{\n")[0]
    if "sdy.sharding" in signature.partition("->")[2]:  # it may be another one than that of the value
        return
    shardings = program.output_shardings
    for name, sharding in zip(result_names(text), shardings if isinstance(shardings, tuple) else (shardings,)):
        value = program.why(name).values[0]  # an op in its region may have the same name
        assert main(["why", str(path), name, "--compiled", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)["values"][0]
        yield name, sharding.text(), value.sharding, printed["sharding"]


@pytest.mark.parametrize(
    "text",
    [pytest.param(EQUAL_OPS, id="equal ops"), pytest.param(COMPOSITE, id="composite"),
     pytest.param(DYNAMIC, id="dynamic"), pytest.param(SCAN, id="scan"), *golden_texts()],
)  # fmt: skip
def test_why_explains_the_shardings_of_the_compiled_program(text: str, capsys: Any, tmp_path: Path) -> None:
    rows = list(shardings_and_reasons(text, capsys, tmp_path / "program.mlir"))
    assert rows or "sdy.sharding" in text.partition("->")[2]
    for name, sharding, explained, printed in rows:
        assert (explained, printed) == (sharding, sharding), name


def test_why_of_equal_ops() -> None:
    module = sw.parse(EQUAL_OPS, "equal.mlir")
    assert module.why("%4").values[0].sharding == "[{}, {}]"  # as it is written
    assert module.compile().why("%4").values[0].sharding == '[{"x"}, {}]'
    with pytest.raises(
        KeyError, match="'%2' is not in the propagated program, since inlining or simplification replaced it; "
    ):
        module.compile().why("%2")
