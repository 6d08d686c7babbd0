# SPDX-License-Identifier: Apache-2.0
"""Programs in which an axis does not get everywhere, one for each rule that may decide."""

from __future__ import annotations

from dataclasses import dataclass

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=3]>\n'
T = "tensor<8x8xf32>"


def sharded(dims: str, shape: str = "8x8", more: str = "") -> str:
    return f"tensor<{shape}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]{more}>}}"


@dataclass(frozen=True)
class LostCase:
    """In `text`, `value` does not get `axis` on `dim`; `winner` is where what it lost to comes from."""

    name: str
    text: str
    value: str
    dim: int
    axis: str
    reason: str
    rule: str
    winner: str = ""
    closed_by: str = ""
    strategy: str = "aggressive"
    conservative: bool = False


def add(x: str, y: str) -> str:
    return (
        MESH
        + f"""func.func @main(%x: {x}, %y: {y}) -> {T} {{
  %0 = stablehlo.add %x, %y : {T}
  return %0 : {T}
}}"""
    )


def dot(x: str, y: str) -> str:
    types = "(tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>"
    return (
        MESH
        + f"""func.func @main(%x: {x}, %y: {y}) -> tensor<8x64xf32> {{
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : {types}
  return %0 : tensor<8x64xf32>
}}"""
    )


CONFLICT = dot(sharded('{"a"}, {?}', "8x16"), sharded('{?}, {"a"}', "16x64"))
SLICE = (
    MESH
    + f"""func.func @main(%x: {sharded('{"a"}', "8")}) -> tensor<4xf32> {{
  %0 = stablehlo.slice %x [0:4] : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""
)
SORT = (
    MESH
    + f"""func.func @main(%x: {sharded('{"a"}', "8")}) -> tensor<8xf32> {{
  %0 = "stablehlo.sort"(%x) <{{dimension = 0 : i64}}> ({{
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }}) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""
)
BARRIER = (
    MESH
    + f"""func.func @main(%x: {T}) -> ({sharded('{"a"}, {}')}) {{
  %0 = sdy.propagation_barrier %x allowed_direction=FORWARD : {T}
  return %0 : {T}
}}"""
)
BEHIND = (
    MESH
    + f"""func.func @main(%x: {sharded('{"a"}, {}')}) -> {T} {{
  %0 = sdy.propagation_barrier %x allowed_direction=BACKWARD : {T}
  %1 = stablehlo.tanh %0 : {T}
  %2 = stablehlo.transpose %1, dims = [1, 0] : ({T}) -> {T}
  return %2 : {T}
}}"""
)
SHUT = (
    MESH
    + f"""func.func @main(%x: {T}) -> ({sharded('{"a"}, {}')}) {{
  %0 = stablehlo.transpose %x, dims = [1, 0] : ({T}) -> {T}
  %1 = sdy.propagation_barrier %0 allowed_direction=NONE : {T}
  return %1 : {T}
}}"""
)
RESHAPE = (
    MESH
    + f"""func.func @main(%x: {sharded('{"b", "a"}', "32")}) -> tensor<8x4xf32> {{
  %0 = stablehlo.reshape %x : (tensor<32xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}}"""
)
PARTS = (
    'sdy.mesh @mesh = <["a"=4]>\n'
    + f"""func.func @main(%x: {sharded('{"a"}', "8")}) -> tensor<2x4xf32> {{
  %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}}"""
)


def reshape(x: str, given: str) -> str:
    return (
        MESH
        + f"""func.func @main(%x: {x}) -> tensor<{given}xf32> {{
  %0 = stablehlo.reshape %x : ({x.split()[0]}) -> tensor<{given}xf32>
  return %0 : tensor<{given}xf32>
}}"""
    )


ROUNDS = (
    MESH
    + f"""func.func @main(%x: {sharded('{"a", ?}, {?}')}, %w: {sharded('{?}, {"a", ?}')}, %z: {T}) -> ({T}, {T}) {{
  %0 = stablehlo.dot_general %x, %z, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
  %1 = stablehlo.add %0, %w : {T}
  return %1, %0 : {T}, {T}
}}"""
)
ROUNDS_OF_A_DIM = (
    MESH
    + f"""func.func @main(%x: {sharded('{"a", ?}, {?}')}, %w: {sharded('{"b", ?}, {?}')}, %z: {T}) -> {T} {{
  %0 = stablehlo.dot_general %w, %z, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
  %1 = stablehlo.add %x, %0 : {T}
  return %1 : {T}
}}"""
)
PRIORITIES = (
    MESH
    + f"""func.func @main(%x: {sharded('{"a", ?}p1, {"b", ?}p2')}) -> ({sharded('{"b", ?}p0, {?}')}) {{
  %0 = stablehlo.tanh %x : {T}
  return %0 : {T}
}}"""
)
BEGINNINGS = (
    'sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>\n'
    + f"""func.func @main(%x: {sharded('{"a", "b"}, {}')}, %y: {sharded('{"a", "c"}, {}')}) -> {T} {{
  %0 = stablehlo.add %x, %y : {T}
  return %0 : {T}
}}"""
)
RESULT = (
    MESH
    + f"""func.func @main(%x: {sharded("{}, {?}")}) -> ({sharded('{"a"}, {"b"}')}) {{
  return %x : {T}
}}"""
)
OPEN_BUT_FOR_A = '#sdy.sharding_per_value<[<@mesh, [{?}, {?}], replicated={"a"}>]>'
REPLICATED_RESULT = (
    MESH
    + f"""func.func @main(%x: {sharded("{?}, {?}")}, %y: {sharded('{"a"}, {?}')}) -> {T} {{
  %0 = stablehlo.add %x, %y {{sdy.sharding = {OPEN_BUT_FOR_A}}} : {T}
  return %0 : {T}
}}"""
)
SQUARES = (
    dot(sharded('{"a"}, {?}'), sharded('{?}, {"a"}'))
    .replace("8x16", "8x8")
    .replace("16x64", "8x8")
    .replace("8x64", "8x8")
)
SAME_SIZE = "of two factors that want an axis, and whose axes come from tensors of the same size, "
BEFORE_IN_FULL = "a part of a dim is split only if those before it are fully split"
PARTS_DIVIDE = "a dim that an op takes apart is split where its parts divide"
IN_COMMON = "tensors that disagree about a dim keep what they have in common"
LOST = (
    LostCase("the larger source", CONFLICT, "%0", 0, '"a"', "the axis shards result 0 dim 1",
             "of two factors that want an axis, the one whose axes come from the larger tensor goes first",
             winner="argument %y"),
    LostCase("the first of two sources of one size", SQUARES, "%0", 1, '"a"', "the axis shards result 0 dim 0",
             SAME_SIZE + "that of operand 0 goes before that of operand 1", winner="argument %x"),
    LostCase("more shards from a source of the same size", add(sharded('{"a", ?}, {?}'), sharded('{?}, {"a", "b"}')),
             "%0", 0, '"a"', "the axis shards result 0 dim 1", SAME_SIZE + "the one with more shards goes first",
             winner="argument %y"),
    LostCase("basic", CONFLICT, "%0", 1, '"a"', "the axis shards operand 0 dim 0",
             "basic propagation resolves no conflicts", winner="argument %x", strategy="basic"),
    LostCase("a closed dim", add(sharded('{"a"}, {?}'), sharded("{}, {?}")), "%y", 0, '"a"',
             "an annotation closes the dim", "closed dims take no further axes", closed_by="argument %y"),
    LostCase("a closed dim, and a result", RESULT, "%x", 0, '"a"', "an annotation closes the dim",
             "closed dims take no further axes", closed_by="argument %x"),
    LostCase("a replicated axis", add(sharded('{"a"}, {?}'), sharded("{?}, {?}", more=', replicated={"a"}')), "%y",
             0, '"a"', "its annotation lists the axis as replicated", "replicated axes shard no dim of the value",
             closed_by="argument %y"),
    LostCase("an annotation", add(sharded('{"a", ?}, {?}'), sharded('{?}, {"a", ?}')), "%x", 1, '"a"',
             "the axis shards operand 0 dim 0", "annotations are never changed", winner="argument %x"),
    LostCase("two axes for a dim", add(sharded('{"a", ?}, {?}'), sharded('{"b", ?}, {?}')), "%x", 0, '"b"',
             'the dim is sharded along {"a"} already', IN_COMMON, winner="argument %x"),
    LostCase("two axes for a dim of the result", add(sharded('{"a", ?}, {?}'), sharded('{"b", ?}, {?}')), "%0", 0,
             '"a"', "the tensors of the op disagree", IN_COMMON, winner="argument %y"),
    LostCase("a priority", add(sharded('{"a"}p1, {?}'), sharded('{?}, {"a"}')), "%0", 0, '"a"',
             "the axis shards result 0 dim 1", "priority 0 goes before 1", winner="argument %y"),
    LostCase("a large priority", add(sharded('{"a"}p70000, {?}'), sharded('{?}, {"a"}p66000')), "%0", 0, '"a"',
             "the axis shards result 0 dim 1", "priority 66000 goes before 70000", winner="argument %y"),
    LostCase("a round", ROUNDS, "%0", 0, '"a"', "the axis shards result 0 dim 1",
             "round 1 goes before round 2 of this op", winner="argument %w"),
    LostCase("a priority, of one dim", add(sharded('{"a", ?}p1, {?}'), sharded('{"b", ?}, {?}')), "%0", 0, '"a"',
             'the dim is sharded along {"b"} already', "priority 0 goes before 1", winner="argument %y"),
    LostCase("priorities of one dim, and a result", PRIORITIES, "%0", 0, '"a"',
             'the dim is sharded along {"b"} already', "priority 0 goes before 1", winner="result 0 of main"),
    LostCase("priorities of two dims, and a result", PRIORITIES, "%0", 1, '"b"', "the axis shards result 0 dim 0",
             "priority 0 goes before 2", winner="result 0 of main"),
    LostCase("a round, of one dim", ROUNDS_OF_A_DIM, "%0", 0, '"b"', 'the dim is sharded along {"a"} already',
             "round 0 goes before round 2 of this op", winner="argument %x"),
    LostCase("more than what two lists begin with", BEGINNINGS, "%0", 0, '"c"', "the tensors of the op disagree",
             IN_COMMON, winner="argument %x"),
    LostCase("a direction", BARRIER, "%x", 0, '"a"', "the barrier blocks propagation in this direction",
             "the direction that the op allows"),
    LostCase("a direction, from further off", BEHIND, "%2", 1, '"a"',
             "the barrier blocks propagation in this direction, and this value is downstream of it",
             "the direction that the op allows"),
    LostCase("no direction", SHUT, "%0", 0, '"a"', "the barrier blocks propagation",
             "the direction that the op allows"),
    LostCase("no direction, from further off", SHUT, "%x", 1, '"a"',
             "the barrier blocks propagation, and this value is downstream of it", "the direction that the op allows"),
    LostCase("a blocked factor", SORT, "%0", 0, '"a"', "the op does not propagate along this dim",
             "the op's sharding rule"),
    LostCase("an uneven part", RESHAPE, "%0", 0, '"b"', "it does not divide the part of size 8 of the dim",
             PARTS_DIVIDE),
    LostCase("a part after one that is whole", reshape(sharded('{}, {"a"}'), "4x16"), "%0", 1, '"a"',
             "the part of size 2 before it in the dim is not fully split", BEFORE_IN_FULL),
    LostCase("a dim after one that is half split", reshape(sharded('{"a"}, {"b"}'), "64"), "%0", 0, '"b"',
             "the part of size 8 before it in the dim is not fully split", BEFORE_IN_FULL),
    LostCase("a part after one that cannot be split", reshape(sharded('{"b"}', "8"), "4x2"), "%0", 0, '"b"',
             "it does not divide the part of size 4 of the dim", PARTS_DIVIDE),
    LostCase("basic, and a closed dim", add(sharded('{"a"}, {?}'), sharded("{}, {?}")), "%0", 0, '"a"',
             "operand 1 dim 0 cannot take it: an annotation closes the dim",
             "basic propagation gives an axis to all tensors that have the dim, or to none",
             closed_by="argument %y", strategy="basic"),
    LostCase("a result that cannot", REPLICATED_RESULT, "%x", 0, '"a"',
             "result 0 dim 0 cannot take it: its annotation lists the axis as replicated",
             "an elementwise operand may only use axes that its result can use", closed_by="stablehlo.add"),
    LostCase("an exchange", SLICE, "%0", 0, '"a"', "the op does not propagate along this dim",
             "conservative propagation causes no communication", conservative=True),
    LostCase("a part of an axis", PARTS, "%0", 0, '"a":(1)2', "it is a part of an axis",
             "conservative propagation moves whole axes only", conservative=True),
)  # fmt: skip
