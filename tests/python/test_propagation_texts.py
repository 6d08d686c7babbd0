# SPDX-License-Identifier: Apache-2.0
"""tests/propagation: programs that were once sharded otherwise than by Shardy, compared value by value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from oracle_runs import PIPELINE, propagated
from shardy_oracle import ShardyOracle

import shardwise as sw

FILES = sorted((Path(__file__).parents[1] / "propagation").glob("*.mlir"))


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
    assert '[{"a"}]' in str(sw.parse(text).run("propagate"))


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
        sw.parse(text).run("propagate-basic")
