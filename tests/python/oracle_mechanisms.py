# SPDX-License-Identifier: Apache-2.0
"""Where Shardwise does not give what Shardy gives, on purpose: each with its reason and a reproducer.

A mechanism claims a difference only after the program has been made as small as the difference allows, so that what is
left of the program is the mechanism alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from module_texts import ModuleText, Op
from rule_calls import MIXING_TARGETS

# Parts of a text that a reproducer needs: one op on arguments.
FUNCTION = "func.func @main({arguments}) -> {result} {{\n  %0 = {op}\n  return %0 : {result}\n}}"


@dataclass(frozen=True)
class Mechanism:
    """`shardy` and `ours` are pieces of the rules of `text`'s op, or of the text after `passes`; what it claims are
    programs with an op of which `of_op` holds, or programs of which `of_program` does."""

    name: str
    why: str
    text: str
    shardy: str
    ours: str
    passes: str = "func.func(sdy-populate-op-sharding-rules)"
    of_op: Callable[[Op], bool] | None = None
    of_program: Callable[[ModuleText], bool] | None = None

    def applies(self, program: ModuleText) -> bool:
        if self.of_program is not None:
            return self.of_program(program)
        return self.of_op is not None and any(self.of_op(op) for op in program.ops())


def groups_replicated_axes(program: ModuleText) -> bool:
    """A member of a sharding group of which only replicated axes are known."""
    members = {id(op.operands[0]) for op in program.ops() if op.name == "sdy.sharding_group"}
    annotated = [pair for op in program.ops() for pair in zip(op.results, op.shardings or ())]
    for op in program.ops():  # what a loop carries is sharded as its result
        annotated += [pair for block in op.blocks for pair in zip(block.arguments, op.shardings or ())]
    for function in program.functions:
        annotated += zip(function.block.arguments, function.argument_shardings)
    return any(
        id(value) in members and "replicated" in text and not re.search(r'\{"', text.partition("replicated")[0])
        for value, text in annotated
        if text
    )


def groups_results_of_manual(program: ModuleText) -> bool:
    members = {id(op.operands[0]) for op in program.ops() if op.name == "sdy.sharding_group"}
    manual = [value for op in program.ops() if op.name == "sdy.manual_computation" for value in op.results]
    return any(id(value) in members for value in manual)


def passes_on_what_is_used_later(program: ModuleText) -> bool:
    """An op that hands an operand to an argument of its region, or function, where a later op uses that operand too."""
    for block in program.blocks():
        for i, op in enumerate(block.ops):
            if op.name not in ("func.call", "sdy.manual_computation"):
                continue
            handed = {id(value) for value in op.operands}
            if any(id(value) in handed for later in block.ops[i + 1 :] for value in later.operands):
                return True
    return False


def numbers(attrs: str, name: str) -> list[int]:
    found = re.search(rf"{name} = (?:\[|array<i64: )([-\d, ]*)", attrs)
    return [int(n) for n in found[1].split(",")] if found and found[1] else []


def cuts_windows(op: Op) -> bool:
    """A scatter with a window as large as its dim at a computed start."""
    if op.name != "stablehlo.scatter":
        return False
    count = (len(op.operands) - 1) // 2
    x, update = op.operands[0], op.operands[count + 1]
    skipped = numbers(op.attrs, "inserted_window_dims") + numbers(op.attrs, "input_batching_dims")
    window = [i for i in range(x.ndim) if i not in skipped]
    sizes = dict(zip(window, (update.shape[i] for i in numbers(op.attrs, "update_window_dims")), strict=True))
    return any(i in sizes and sizes[i] == x.shape[i] for i in numbers(op.attrs, "scatter_dims_to_operand_dims"))


def moves_without_resizing(op: Op) -> bool:
    """A pad that shifts a dim: what enters on one side leaves on the other."""
    if op.name != "stablehlo.pad":
        return False
    low = numbers(op.attrs, "edge_padding_low")
    return any(a and n == m for a, n, m in zip(low, op.operands[0].shape, op.results[0].shape))


def mixes(op: Op) -> bool:
    targets = (*MIXING_TARGETS, "Eigh", "ApproxTopK", "PartialReduce")
    return any(f'call_target_name = "{target}"' in op.attrs for target in targets)


def one_op(arguments: str, result: str, op: str) -> str:
    return FUNCTION.format(arguments=arguments, result=result, op=op)


def has_no_rule(op: Op) -> bool:
    """In Shardy. Comparisons tell it ours, as a rule that the user attached to the op."""
    return op.name.startswith("chlo.") or op.name.removeprefix("stablehlo.") in UNKNOWN


UNKNOWN = ("map", "broadcast", "einsum", "unary_einsum", "batch_norm_training", "batch_norm_grad")
MECHANISMS = (
    Mechanism(
        name="windows of a scatter at computed starts",
        why=(
            "A window as large as its dim is cut where its start is not 0, element by element. Shardy lets that dim "
            "pass through; parts of the dim cannot tell what is cut, so here it needs replication and joins later."
        ),
        of_op=cuts_windows,
        text="""
func.func @main(%x: tensor<4x8xf32>, %i: tensor<2x1xi32>, %u: tensor<4x2x8xf32>) -> tensor<4x8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    "stablehlo.return"(%b) : (tensor<f32>) -> ()
  }) : (tensor<4x8xf32>, tensor<2x1xi32>, tensor<4x2x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}""",
        shardy="need_replication={j, l}",
        ours="need_replication={i, j, l}",
    ),
    Mechanism(
        name="pads that shift a dim",
        why=(
            "Padding by 1 below and by -1 above moves every element to its neighbour, across the shards' borders. "
            "Shardy sees a dim of equal size and lets it pass through, so that nothing would be exchanged."
        ),
        of_op=moves_without_resizing,
        text=one_op(
            "%x: tensor<8xf32>, %v: tensor<f32>",
            "tensor<8xf32>",
            "stablehlo.pad %x, %v, low = [1], high = [-1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> "
            "tensor<8xf32>",
        ),
        shardy="([i], [])->([i]) {i=8}>",
        ours="permutation={i}",
    ),
    Mechanism(
        name="CHLO",
        why="Shardy has no rule for CHLO, which XLA rewrites before; shardings stop at such ops. Here they go on.",
        of_op=lambda op: op.name.startswith("chlo."),
        text=one_op("%x: tensor<8xf32>", "tensor<8xf32>", "chlo.erf %x : tensor<8xf32> -> tensor<8xf32>"),
        shardy="[None]",
        ours="([i])->([i])",
    ),
    Mechanism(
        name="ops that Shardy does not know",
        why="map, broadcast, einsum and batch norm's training have no rule in Shardy; here what they stand for.",
        of_op=lambda op: op.name.removeprefix("stablehlo.") in UNKNOWN,
        text=one_op(
            "%x: tensor<8xf32>",
            "tensor<4x8xf32>",
            '"stablehlo.broadcast"(%x) <{broadcast_sizes = array<i64: 4>}> : (tensor<8xf32>) -> tensor<4x8xf32>',
        ),
        shardy="[None]",
        ours="([j])->([i, j])",
    ),
    Mechanism(
        name="holes between the elements of a window's operand",
        why="With a base dilation an element of the result does not stand where its operand's does: an exchange.",
        of_op=lambda op: op.name == "stablehlo.reduce_window" and 2 in numbers(op.attrs, "base_dilations"),
        text="""
func.func @main(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<7xf32> {
  %0 = "stablehlo.reduce_window"(%x, %v) <{window_dimensions = array<i64: 1>, base_dilations = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    "stablehlo.return"(%b) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}""",
        shardy="([i], [])->([i]) {i=7}>",
        ours="permutation={i}",
    ),
    Mechanism(
        name="sorted dims counted from the end",
        why="The dim -2 of a matrix is its dim 0. Shardy takes no dim for the sorted one and lets all of them pass.",
        of_op=lambda op: op.name == "stablehlo.sort" and "dimension = -" in op.attrs,
        text="""
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = -2 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}""",
        shardy="([i, j])->([i, j]) {i=4, j=8}>",
        ours="need_replication={i}",
    ),
    Mechanism(
        name="branches of if",
        why="Shardy gives edges to case and not to if, which is a case of two: shardings stop there. Here both go on.",
        of_op=lambda op: op.name == "stablehlo.if",
        text="""
sdy.mesh @mesh = <["a"=2]>
func.func @main(%p: tensor<i1>, %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
        shardy="}) : (tensor<i1>)",
        ours='}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : (tensor<i1>)',
        passes="sdy-propagation-pipeline",
    ),
    Mechanism(
        name="operands of one all_reduce",
        why="Its operands have nothing to do with each other. Shardy takes the first one's dims for all of them.",
        of_op=lambda op: op.name == "stablehlo.all_reduce" and len({x.shape for x in op.operands}) > 1,
        text="""
func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
  %0:2 = "stablehlo.all_reduce"(%x, %y) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<2xf32>, tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<3xf32>
}""",
        shardy="([i], [i])->([i], [i]) {i=2}>",
        ours="([i], [j])->([i], [j]) {i=2, j=3}",
    ),
    Mechanism(
        name="replicated axes of a group",
        why="All members share what the user wrote of one. Shardy shares axes of dims only; replicated ones are lost.",
        of_program=groups_replicated_axes,
        text="""
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},
                %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}], replicated={"a"}>]>} : tensor<8xf32>
  %1 = stablehlo.tanh %x : tensor<8xf32>
  sdy.sharding_group %0 group_id=0 : tensor<8xf32>
  sdy.sharding_group %1 group_id=0 : tensor<8xf32>
  %2 = stablehlo.divide %0, %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}""",
        shardy='stablehlo.negate %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>}',
        ours="-> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>})",
        passes="sdy-propagation-pipeline",
    ),
    Mechanism(
        name="groups with results of manual computations",
        why=(
            "All members of a group have one sharding. What comes from inside a manual computation reaches the other "
            "members in Shardy without the manual axes of the result."
        ),
        of_program=groups_results_of_manual,
        text="""
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a", "b"}]>] out_shardings=[<@mesh, [{"a", ?}]>]
      manual_axes={"a"} (%z: tensor<4xf32>) {
    sdy.return %z : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  sdy.sharding_group %0 group_id=0 : tensor<8xf32>   sdy.sharding_group %y group_id=0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
        shardy='%arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}',
        ours='%arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}',
        passes="sdy-propagation-pipeline",
    ),
    Mechanism(
        name="arguments that hear late",
        why=(
            "What reaches the operand of a call, or of a manual computation, from an op behind it goes on into the "
            "function. Shardy looks at arguments once a round only: what comes in the last round stays outside."
        ),
        of_program=passes_on_what_is_used_later,
        text="""
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x4xf32>, %v: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) ->
    (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = func.call @f(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.add %x, %1 : tensor<8x4xf32>
  return %0, %2 : tensor<8x4xf32>, tensor<8x4xf32>
}
func.func private @f(%y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.tanh %y : tensor<8x4xf32>   return %0 : tensor<8x4xf32> }""",
        shardy="@f(%arg0: tensor<8x4xf32>)",
        ours='@f(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})',
        passes="sdy-propagation-pipeline",
    ),
    Mechanism(
        name="factorisations",
        why="What these calls compute mixes the dims that Shardy lets pass: half of a matrix has other factors.",
        of_op=mixes,
        text=one_op(
            "%x: tensor<8x8xf32>",
            "tensor<8x8xf32>",
            "stablehlo.custom_call @Cholesky(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>",
        ),
        shardy="([i, j])->([i, j]) {i=8, j=8}>",
        ours="need_replication={i, j}",
    ),
    Mechanism(
        name="concatenations of slices",
        why=(
            "Shardy looks at the ops before a concatenation, and exchanges neighbours where all are slices. A rule "
            "here looks at its own op alone, and so needs the dim whole; shardings are handed on alike."
        ),
        text="""
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.slice %x [1:8] : (tensor<8xf32>) -> tensor<7xf32>
  %1 = stablehlo.slice %x [0:1] : (tensor<8xf32>) -> tensor<1xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<7xf32>, tensor<1xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}""",
        shardy="([i], [i])->([i]) {i=8} permutation={i}",
        ours="([i], [i])->([i]) {i=8} need_replication={i}",
    ),
    Mechanism(
        name="updates at constant starts",
        why=(
            "Where the starts of a dynamic_update_slice are constants, Shardy lets the update's own dims pass through. "
            "A rule here looks at its own op alone; shardings are handed on alike."
        ),
        text="""
func.func @main(%x: tensor<8xf32>, %u: tensor<2xf32>) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<4> : tensor<i32>
  %1 = stablehlo.dynamic_update_slice %x, %u, %0 : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}""",
        shardy="([i], [j], [])->([i]) {i=8, j=2}>",
        ours="([i], [j], [])->([i]) {i=8, j=2} need_replication={j}",
    ),
)
RULES = Mechanism.passes


def mechanism_of(program: ModuleText) -> Mechanism | None:
    """The one that explains a difference in this program, which is already small."""
    return next((m for m in MECHANISMS if m.applies(program)), None)
