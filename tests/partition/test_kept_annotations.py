# SPDX-License-Identifier: Apache-2.0
"""The user's annotations stay where passes replace the annotated op by a value that exists already."""

from __future__ import annotations

import pytest

import shardwise as sw
from shardwise import P

ANNOTATION = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}'
CONSTANTS = """
  %n = stablehlo.constant dense<[4]> : tensor<1xi64>
  %none = stablehlo.constant dense<0> : tensor<1xi64>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>"""
REVERSED_TWICE = """
  %once = stablehlo.reverse %d, dims = [0] : tensor<4xf32>
  %twice = stablehlo.reverse %once, dims = [0] : tensor<4xf32>
  return %twice : tensor<4xf32>"""


def output_of(body: str, functions: str = "") -> sw.PartitionSpec:
    text = f"""sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{{body}
}}{functions}"""
    return sw.parse(text).compile().output_shardings.spec


@pytest.mark.parametrize(
    "called",
    [
        f"%0 = stablehlo.tanh %x {ANNOTATION} : tensor<4xf32>",
        '%1 = stablehlo.tanh %x : tensor<4xf32>  %0 = sdy.sharding_constraint %1 <@mesh, [{"x"}]> : tensor<4xf32>',
    ],
    ids=["annotation", "constraint"],
)
def test_ops_that_cancel_keep_the_annotation_inside_a_function(called: str) -> None:
    call = "\n  %d = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>"
    function = f"func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {{ {called} return %0 : tensor<4xf32> }}"
    assert output_of(call + REVERSED_TWICE, function) == P("x")


@pytest.mark.parametrize(
    "op",
    [
        f"stablehlo.dynamic_reshape %x, %n {ANNOTATION} : (tensor<4xf32>, tensor<1xi64>) -> tensor<4xf32>",
        f"stablehlo.dynamic_pad %x, %zero, %none, %none, %none {ANNOTATION} : (tensor<4xf32>, tensor<f32>, "
        "tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xf32>",
    ],
    ids=["dynamic_reshape", "dynamic_pad"],
)
def test_an_op_that_returns_its_operand_keeps_its_annotation(op: str) -> None:
    assert output_of(f"{CONSTANTS}\n  %d = {op}\n  return %d : tensor<4xf32>") == P("x")
    assert output_of(f"{CONSTANTS}\n  %d = {op}{REVERSED_TWICE}") == P("x")


def test_an_annotated_op_that_cancels_another_does_not_change_its_operand() -> None:
    reshaped = f"stablehlo.dynamic_reshape %x, %n {ANNOTATION} : (tensor<4xf32>, tensor<1xi64>) -> tensor<4xf32>"
    along_y = ANNOTATION.replace('"x"', '"y"')
    annotated = REVERSED_TWICE.replace("%once, dims = [0]", f"%once, dims = [0] {along_y}")
    assert output_of(f"{CONSTANTS}\n  %d = {reshaped}{annotated}") == P("y")
