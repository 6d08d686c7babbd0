# SPDX-License-Identifier: Apache-2.0
"""texts/propagation: programs that were once sharded otherwise than by Shardy, compared value by value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shardwise as sw
from tests.conformance.shardy.client import ShardyOracle
from tests.conformance.shardy.oracle_runs import PIPELINE, propagated

FILES = sorted((Path(__file__).parent / "texts" / "propagation").glob("*.mlir"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_value_is_sharded_as_by_shardy(shardy: ShardyOracle, file: Path) -> None:
    text = file.read_text()
    given = re.match("// passes: (.*)", text)
    passes = given[1] if given else PIPELINE
    request = {"do": "compare", "text": text, "passes": passes, "ours": propagated(text, passes)}
    (reply,) = shardy.ask_all([request])
    differences = reply["differences"]
    assert not [row for row in differences if row[1] is not None]  # none: we drop ops that do nothing


def test_digits_around_an_axis_of_size_one_are_the_axis() -> None:
    """Shardy leaves both digits, which its verifier then refuses."""
    text = """
sdy.mesh @mesh = <["a"=4, "b"=1]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, "b", "a":(2)2}]>}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}"""
    assert '[{"a"}]' in str(sw.parse(text).apply("propagate"))


def test_a_function_called_in_a_manual_region_cannot_use_its_axes() -> None:
    text = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%y: tensor<4xf32>) {
    %1 = func.call @f(%y) : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.sharding_constraint %y <@mesh, [{"x"}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""  # noqa: E501
    with pytest.raises(sw.ParseError, match="an axis that a manual computation around it has taken cannot be used"):
        sw.parse(text)


def test_what_a_level_leaves_is_verified() -> None:
    text = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{?}]>] out_shardings=[<@mesh, [{?}]>] manual_axes={"a"} (%y: tensor<8xf32>) {
    sdy.return %y : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}"""  # noqa: E501
    with pytest.raises(sw.ShapeError, match="the region must see result 0"):
        sw.parse(text).apply("propagate-basic")


def chain(count: int) -> str:
    """Functions that call the next one each."""
    call = "func.func private @f{}(%y: tensor<4xf32>) -> tensor<4xf32> {{ %0 = func.call @f{}(%y) : (tensor<4xf32>) -> tensor<4xf32>\n return %0 : tensor<4xf32> }}\n"  # noqa: E501
    end = f"func.func private @f{count}(%y: tensor<4xf32>) -> tensor<4xf32> {{ return %y : tensor<4xf32> }}\n"
    return "".join(call.format(i, i + 1) for i in range(count)) + end


def test_functions_called_in_a_manual_region_may_go_deeper_than_a_stack() -> None:
    text = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%y: tensor<4xf32>) {
    %1 = func.call @f0(%y) : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""  # noqa: E501
    with pytest.raises(sw.ShardingError, match="must nest at most 256 deep"):
        sw.parse(text + chain(20_000)).apply("propagate")


def test_copies_of_constants_are_bounded() -> None:
    """Functions that double each other make 2^17 ops of one constant, which each of 200 users would copy."""
    double = "func.func private @d{0}(%y: tensor<4xf32>) -> tensor<4xf32> {{ %0 = func.call @d{1}(%y) : (tensor<4xf32>) -> tensor<4xf32>\n %1 = func.call @d{1}(%y) : (tensor<4xf32>) -> tensor<4xf32>\n %2 = stablehlo.add %0, %1 : tensor<4xf32>\n return %2 : tensor<4xf32> }}\n"  # noqa: E501
    functions = "".join(double.format(i, i + 1) for i in range(16))
    functions += "func.func private @d16(%y: tensor<4xf32>) -> tensor<4xf32> { return %y : tensor<4xf32> }\n"
    users = "".join(f"  %u{i} = stablehlo.add %x, %c : tensor<4xf32>\n" for i in range(200))
    text = f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %k = stablehlo.constant dense<1.0> : tensor<4xf32>
  %c = func.call @d0(%k) : (tensor<4xf32>) -> tensor<4xf32>
{users}  return %x : tensor<4xf32>
}}
{functions}"""
    with pytest.raises(sw.ShardingError, match="copies of constants must come to at most"):
        sw.parse(text).apply("propagate")
