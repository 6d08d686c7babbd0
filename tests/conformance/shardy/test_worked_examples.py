# SPDX-License-Identifier: Apache-2.0
"""The worked examples of texts/worked: what each value gets is written there, and Shardy gives it, too."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from shardwise import _core
from shardwise.reports.explanations import rows_of
from tests.conformance.shardy.client import OracleError, ShardyOracle
from tests.conformance.shardy.worked_examples import EXAMPLES, Example, shardy_gives, we_give


def name_of(example: Example) -> str:
    return f"{example.file}: {example.place}"


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_values_get_what_the_example_says(shardy: ShardyOracle, example: Example) -> None:
    theirs = shardy_gives(shardy, example)
    assert {name: theirs.get(name) for name in example.expected} == example.expected
    ours = we_give(shardy, example)
    assert {name: ours.get(name) for name in example.expected} == example.expected


DIMS = re.compile(r"(\[.*?\])(?:, |$)")
NAME = re.compile(r'"(\w+)"')


def reasons_of(text: str) -> int:
    """Every axis of every dim of every value comes from somewhere; how many there are."""
    propagated = _core.passes.propagate_program(_core.ir.parse(text))
    count = 0
    for number in range(1, 200):
        try:
            (why,) = rows_of(propagated.explain_value(number))
        except IndexError:  # more copies of constants than numbers
            continue
        said = DIMS.match(why["sharding"])
        for dim, axes in enumerate(re.findall(r"\{(.*?)\}", said[1] if said else "")):
            found = {NAME.findall(row["axis"])[0] for row in why["axes"] if row["dim"] == dim}
            assert found == set(NAME.findall(axes)), (number, why)
        assert all(row["origin"] for row in why["axes"]), (number, why)
        count += len(why["axes"])
    return count


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_every_axis_has_a_reason(example: Example) -> None:
    dims = [said.partition("]")[0] for said in example.expected.values()]
    assert reasons_of(example.text) or not any('"' in axes for axes in dims)


def test_examples_say_something() -> None:
    assert all(len(example.expected) >= 2 for example in EXAMPLES)
    places = Counter((example.file, example.place) for example in EXAMPLES)
    assert max(places.values()) == 1


MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'
REFUSED = [
    (
        "Sharding groups: members have one shape",
        """func.func @main(%x: tensor<8x8xf32>, %y: tensor<4x8xf32>) -> tensor<8x8xf32> {
  sdy.sharding_group %x group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %y group_id=0 : tensor<4x8xf32>
  return %x : tensor<8x8xf32>
}""",
        r"must have the same shape, got tensor<8x8xf32> and tensor<4x8xf32>",
    ),
    (
        "Sharding groups: members lie in one manual computation",
        """func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  sdy.sharding_group %x group_id=0 : tensor<8x8xf32>
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>]
      manual_axes={"a"} (%y: tensor<8x8xf32>) {
    sdy.sharding_group %y group_id=0 : tensor<8x8xf32>
    sdy.return %y : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}""",
        r"must be inside the same manual computation",
    ),
    (
        "Hierarchy: no tuples",
        """func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %t = stablehlo.tuple %x : tuple<tensor<8x8xf32>>
  %0 = stablehlo.get_tuple_element %t[0] : (tuple<tensor<8x8xf32>>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}""",
        r"got 'stablehlo.tuple'",
    ),
]


@pytest.mark.parametrize(("place", "text", "says"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_cannot_be_propagated_is_refused(shardy: ShardyOracle, place: str, text: str, says: str) -> None:
    with pytest.raises(OracleError):
        shardy.after(MESH + text, "sdy-propagation-pipeline")
    with pytest.raises(_core.error.Error, match=says):
        _core.passes.run_passes(_core.ir.parse(MESH + text), ["propagate"])


def test_sizes_are_static() -> None:
    """Hierarchy: no dynamic shapes; Shardy refuses them where something is sharded, Shardwise where it reads them."""
    with pytest.raises(_core.error.ParseError, match="a dim must have a static size"):
        _core.ir.parse("func.func @main(%x: tensor<8x?xf32>) -> tensor<8x?xf32> {\n  return %x : tensor<8x?xf32>\n}")
