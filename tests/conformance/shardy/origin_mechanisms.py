# SPDX-License-Identifier: Apache-2.0
"""Where Shardy's debug information says something else than why(): each with its reason and a reproducer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OriginMechanism:
    """`shardy` is a piece of the text that Shardy's pass leaves, `ours` what why() says instead."""

    name: str
    why: str
    text: str
    shardy: str
    ours: str


CONTRADICTED = "origins that Shardy's own edges contradict"
NOT_CARRIED = "axes that are noted and not carried"
IN_PIECES = "axes that came in pieces"
MECHANISMS = (
    OriginMechanism(
        name=CONTRADICTED,
        why=(
            "Shardy keeps one origin per axis of a value, filled in before it propagates: a constraint becomes the "
            "origin of what its annotated operand says, and a result of main that of the value returned, wherever the "
            "value got the axis from. The edges that Shardy writes beside it lead to the annotation that we name."
        ),
        text="""
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  %1 = sdy.sharding_constraint %x <@mesh, [{"a"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
        shardy='sdy.sharding_origins = {b = "constraint_0"}',
        ours="argument 0",
    ),
    OriginMechanism(
        name=NOT_CARRIED,
        why=(
            "After a reshape that joins dims, an axis of the minor one is kept only where the major one is split to "
            "its end. Shardy notes it as carried although the value does not get it, or has it already, or notes the "
            "whole axis where the value gets its first digits."
        ),
        text="""
sdy.mesh @mesh = <["b"=8]>
func.func @main(%x: tensor<64x7xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(1)2}, {"b":(2)4}]>})
    -> tensor<448xi32> {
  %0 = stablehlo.reshape %x : (tensor<64x7xi32>) -> tensor<448xi32>
  return %0 : tensor<448xi32>
}""",
        shardy='{"b" = operand-0 -> [result-0]}',
        ours='"b":(1)2',
    ),
    OriginMechanism(
        name=IN_PIECES,
        why=(
            "The argument has the first digit of the axis, the result's annotation adds the others. Shardy has one "
            "origin for the axis that they make together; why() has one for each part."
        ),
        text="""
sdy.mesh @mesh = <["c"=8]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c":(1)2, ?}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c", ?}]>}) {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
        shardy='c = "output: 0"',
        ours='"c":(1)2',
    ),
)
