# SPDX-License-Identifier: Apache-2.0
"""Where Shardwise does not give what Shardy gives, on purpose: each with its reason and a reproducer.

One table for the comparisons of rules, of programs and of origins, and for docs/shardy_differences.md:

    judge(call_of_instance(instance), ours, theirs)      # rules of one op
    has_other_rule(call_of_op(op))                       # then programs tell Shardy our rule of the op
    mechanism_of(program)                                # of a program that has been made small
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.shardy.client import canonical_rule
from tests.conformance.shardy.random_modules.texts import ModuleText, Op, Shape
from tests.conformance.shardy.rule_instances.calls import APPROXIMATE_TARGETS, MIXING_TARGETS
from tests.conformance.shardy.rule_instances.instance import Instance

RULES = "func.func(sdy-populate-op-sharding-rules)"
WHOLE = "sdy-propagation-pipeline"
# How rules of an op may differ.
NO_RULE = "no rule"  # in Shardy
NEEDS = "needs"  # the factors are Shardy's, which of them are reduced, replicated or permuted is not
FACTORS = "factors"
# In Shardy, beside all of CHLO.
WITHOUT_RULE = (
    "map", "broadcast", "einsum", "unary_einsum", "batch_norm_training", "batch_norm_grad", "constant", "iota",
)  # fmt: skip
LATE = ("chlo.mulhi", "chlo.next_after", "chlo.polygamma", "chlo.zeta")  # not elementwise to Shardy


@dataclass(frozen=True)
class Call:
    """An op as the predicates see it."""

    name: str
    attributes: str
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]


@dataclass(frozen=True)
class Mechanism:
    """A difference of rules has `rule` and the predicate `of_op`; `shardy` and `ours` are the rules of the last such
    op of `text`. Any other is found in programs; `shardy` and `ours` are pieces of what the whole propagation leaves.
    What is `told` excuses no program: Shardy gets a text in which it does as we do (oracle_runs.with_our_rules)."""

    name: str
    why: str
    text: str
    shardy: str  # "" for no rule
    ours: str
    rule: str = ""
    of_op: Callable[[Call], bool] | None = None
    of_program: Callable[[ModuleText], bool] | None = None
    told: bool = False

    def has_op(self, call: Call) -> bool:
        return self.of_op is not None and self.of_op(call)


# ---- ops of three kinds as calls -------------------------------------------------------------------------------------


def shape_of(kind: str) -> Shape:
    found = re.match(r"tensor<((?:\d+x)*)", kind)
    return tuple(int(n) for n in found[1].split("x")[:-1]) if found else ()


def shapes_of(types: str) -> tuple[Shape, ...]:
    return tuple(shape_of(kind) for kind in re.findall(r"tensor<[^<>]*(?:<[^<>]*>)?>|!stablehlo\.token", types))


def call_of_op(op: Op) -> Call:
    return Call(op.name, op.attrs, tuple(v.shape for v in op.operands), tuple(v.shape for v in op.results))


def call_of_instance(instance: Instance) -> Call:
    operands, results = ([shape_of(kind) for kind in types] for types in (instance.operands, instance.results))
    return Call(instance.op, instance.attributes, tuple(operands), tuple(results))


def calls_of_text(generic: str) -> list[Call]:
    """The ops of main's body, of a module in generic form."""
    found: list[Call] = []
    lines = iter(generic[generic.index("@main(") :].splitlines()[1:])
    for line in lines:
        if line == "  }":
            break
        head = re.match(r' {4}(?:%\w+\S* = )?"([\w.-]+)"\(', line)
        if head is None:
            continue
        attributes = line[line.index(")", head.end()) + 1 :].partition(" : (")[0]
        end = line
        while end.endswith("({") or not (end == line or end.startswith("    })")):
            end = next(lines)
        operands, results = end.rpartition(" : ")[2].split(" -> ")
        found.append(Call(head[1], attributes, shapes_of(operands), shapes_of(results)))
    return found


# ---- which ops, which programs ---------------------------------------------------------------------------------------


def numbers(attributes: str, name: str) -> list[int]:
    found = re.search(rf"{name} = (?:\[|array<i64: )([-\d, ]*)", attributes)
    return [int(n) for n in found[1].split(",")] if found and found[1] else []


def cuts_windows(call: Call) -> bool:
    """A scatter with a window as large as its dim at a computed start."""
    if call.name != "stablehlo.scatter":
        return False
    count = (len(call.operands) - 1) // 2
    x, update = call.operands[0], call.operands[count + 1]
    skipped = numbers(call.attributes, "inserted_window_dims") + numbers(call.attributes, "input_batching_dims")
    window = [i for i in range(len(x)) if i not in skipped]
    sizes = dict(zip(window, (update[i] for i in numbers(call.attributes, "update_window_dims")), strict=True))
    return any(i in sizes and sizes[i] == x[i] for i in numbers(call.attributes, "scatter_dims_to_operand_dims"))


def moves_without_resizing(call: Call) -> bool:
    """A pad that shifts a dim: what enters on one side leaves on the other."""
    if call.name != "stablehlo.pad":
        return False
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    rows = zip(*(numbers(call.attributes, name) for name in names), strict=True)
    return any(any(row) and n == m for row, n, m in zip(rows, call.operands[0], call.results[0]))


def mixes(call: Call) -> bool:
    found = re.search(r'call_target_name = "(.*?)"', call.attributes)
    return found is not None and found[1] in (*MIXING_TARGETS, "Eigh", *APPROXIMATE_TARGETS)


def has(*names: str) -> Callable[[ModuleText], bool]:
    return lambda program: any(op.name in names for op in program.ops())


def shares_replicated_axes(program: ModuleText) -> bool:
    """A member of a sharding group of which only replicated axes are known."""
    members = {id(op.operands[0]) for op in program.ops() if op.name == "sdy.sharding_group"}
    annotated = [pair for op in program.ops() for pair in zip(op.results, op.shardings or ())]
    annotated += [(op.results[0], op.attrs) for op in program.ops() if op.name == "sdy.sharding_constraint"]
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


def groups_what_a_loop_carries(program: ModuleText) -> bool:
    members = {id(op.operands[0]) for op in program.ops() if op.name == "sdy.sharding_group"}
    return any(id(value) in members for op in program.ops() for block in op.blocks for value in block.arguments)


def passes_on_what_is_used_later(program: ModuleText) -> bool:
    """An op that hands an operand to an argument of its region, or function, where an op after it uses that operand
    too; what a loop carries has the loop's result after it."""
    carried = {id(value) for op in program.ops() for block in op.blocks for value in block.arguments}
    for block in program.blocks():
        for i, op in enumerate(block.ops):
            if op.name not in ("func.call", "sdy.manual_computation"):
                continue
            handed = {id(value) for value in op.operands}
            if handed & carried or any(id(v) in handed for later in block.ops[i + 1 :] for v in later.operands):
                return True
    return False


# ---- the table -------------------------------------------------------------------------------------------------------


def one_op(arguments: str, result: str, op: str) -> str:
    return f"\nfunc.func @main({arguments}) -> {result} {{\n  %0 = {op}\n  return %0 : {result}\n}}"


MECHANISMS = (
    Mechanism(
        name="windows of a scatter at computed starts",
        why=(
            "A scatter window as large as its dim is clipped element by element where its start is not 0. Shardy lets"
            " that dim pass through. A shard of the window cannot tell which elements are clipped, so here the dim "
            "needs replication."
        ),
        text="""
func.func @main(%x: tensor<4x8xf32>, %i: tensor<2x1xi32>, %u: tensor<4x2x8xf32>) -> tensor<4x8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    "stablehlo.return"(%b) : (tensor<f32>) -> ()
  }) : (tensor<4x8xf32>, tensor<2x1xi32>, tensor<4x2x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}""",
        shardy="([i, k], [j, l], [i, j, k])->([i, k]) {i=4, j=2, k=8, l=1} need_replication={j, l}",
        ours="([i, k], [j, l], [i, j, k])->([i, k]) {i=4, j=2, k=8, l=1} need_replication={i, j, l}",
        rule=NEEDS,
        of_op=cuts_windows,
    ),
    Mechanism(
        name="pads that shift a dim",
        why=(
            "Padding by 1 at the low end and by -1 at the high end moves every element to its neighbor, across shard "
            "borders. Shardy sees a dim of unchanged size and lets it pass through, so no data would be exchanged."
        ),
        text=one_op(
            "%x: tensor<8xf32>, %v: tensor<f32>",
            "tensor<8xf32>",
            "stablehlo.pad %x, %v, low = [1], high = [-1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> "
            "tensor<8xf32>",
        ),
        shardy="([i], [])->([i]) {i=8}",
        ours="([i], [])->([i]) {i=8} permutation={i}",
        rule=NEEDS,
        of_op=moves_without_resizing,
    ),
    Mechanism(
        name="ops without a rule",
        why=(
            "Shardy has no rules for CHLO, map, broadcast, einsum, batch norm training and batch norm gradients, "
            "because XLA expands them earlier; shardings stop at them. Here these ops use the rules of their "
            "expansions. Shardy has no rules for constants and iota either. Here their rules state which shards a "
            "device can generate."
        ),
        text=one_op("%x: tensor<8xf32>", "tensor<8xf32>", "chlo.erf %x : tensor<8xf32> -> tensor<8xf32>"),
        shardy="",
        ours="([i])->([i]) {i=8}",
        rule=NO_RULE,
        of_op=lambda call: call.name.startswith("chlo.") or call.name.removeprefix("stablehlo.") in WITHOUT_RULE,
    ),
    Mechanism(
        name="dilated operands of window ops",
        why=(
            "With a base dilation of 2, holes turn 4 elements into 7: element 1 moves to index 2, which is on another"
            " shard. Shardy considers only window, stride and padding, so no data would be exchanged."
        ),
        text="""
func.func @main(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<7xf32> {
  %0 = "stablehlo.reduce_window"(%x, %v) <{window_dimensions = array<i64: 1>, base_dilations = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    "stablehlo.return"(%b) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}""",
        shardy="([i], [])->([i]) {i=7}",
        ours="([i], [])->([i]) {i=7} permutation={i}",
        rule=NEEDS,
        of_op=(
            lambda call: (
                call.name == "stablehlo.reduce_window"
                and any(n > 1 for n in numbers(call.attributes, "base_dilations"))
            )
        ),
    ),
    Mechanism(
        name="sorted dims counted from the end",
        why=(
            "Dim -2 of a matrix is dim 0. Shardy does not recognize it as the sorted dim and lets all dims pass "
            "through, so each shard would be sorted separately."
        ),
        text="""
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = -2 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}""",
        shardy="([i, j])->([i, j]) {i=4, j=8}",
        ours="([i, j])->([i, j]) {i=4, j=8} need_replication={i}",
        rule=NEEDS,
        of_op=lambda call: call.name == "stablehlo.sort" and "dimension = -" in call.attributes,
    ),
    Mechanism(
        name="operands of one all_reduce",
        why=(
            "The operands of an all_reduce are independent of each other. Shardy uses the dims of the first operand "
            "for all of them: it would shard 3 elements like 2, and reports an error for operands of different ndim."
        ),
        text="""
func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
  %0:2 = "stablehlo.all_reduce"(%x, %y) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<2xf32>, tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<3xf32>
}""",
        shardy="([i], [i])->([i], [i]) {i=2}",
        ours="([i], [j])->([i], [j]) {i=2, j=3}",
        rule=FACTORS,
        of_op=lambda call: call.name == "stablehlo.all_reduce" and len(set(call.operands)) > 1,
    ),
    Mechanism(
        name="factorizations and partial top-k",
        why=(
            "These calls mix the dims that Shardy lets pass through: half of a matrix has another factorization, and "
            "the largest elements of a shard are not those of the whole tensor."
        ),
        text=one_op(
            "%x: tensor<8x8xf32>",
            "tensor<8x8xf32>",
            "stablehlo.custom_call @Cholesky(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>",
        ),
        shardy="([i, j])->([i, j]) {i=8, j=8}",
        ours="([i, j])->([i, j]) {i=8, j=8} need_replication={i, j}",
        rule=NEEDS,
        of_op=mixes,
    ),
    Mechanism(
        name="branches of if",
        why=(
            "Shardy adds data-flow edges to case, but not to if, so shardings stop there. Here shardings propagate "
            "through both."
        ),
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
        told=True,
    ),
    Mechanism(
        name="elementwise ops of CHLO",
        why=(
            "Elementwise ops propagate in the first round. Shardy does not treat mulhi, next_after, polygamma and "
            "zeta as elementwise, so matrix products come before them."
        ),
        text="""
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) ->
    (tensor<8x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
  %0 = stablehlo.dot %y, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = chlo.next_after %0, %0 {
    sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}>
  } : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}""",
        shardy='%0 = stablehlo.dot %arg1, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}',
        ours='%0 = stablehlo.dot %arg1, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}',
        of_program=has(*LATE),
    ),
    Mechanism(
        name="constants of CHLO",
        why=(
            "Before propagation, Shardy converts chlo.constant_like to chlo.constant and drops its annotation. Here "
            "it is an op like any other, and the annotation reaches its operand. In Shardy, all users of a "
            "chlo.constant share its sharding; here each user gets a copy, as for stablehlo.constant."
        ),
        text="""
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "chlo.constant_like"(%x) <{value = 1.5 : f32}> {
    sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
        shardy="%arg0: tensor<8xf32>)",
        ours='%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}',
        of_program=has("chlo.constant", "chlo.constant_like"),
    ),
    Mechanism(
        name="replicated axes of sharding groups",
        why=(
            "All members of a group share the annotation of one member. Shardy shares the axes of dims only, and "
            "drops replicated axes."
        ),
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
        of_program=shares_replicated_axes,
    ),
    Mechanism(
        name="groups with results of manual computations",
        why=(
            "All members of a group have one sharding. In Shardy, a sharding that comes from inside a manual "
            "computation reaches the other members without the manual axes of the result."
        ),
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
        of_program=groups_results_of_manual,
    ),
    Mechanism(
        name="groups of loop-carried values",
        why=(
            "A value that a loop carries has the sharding of the loop's result. If a sharding group contains the "
            "value inside the loop, Shardy does not update the group when the result changes, so its members end up "
            "with different shardings."
        ),
        text="""
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>, %p: tensor<i1>) -> tensor<8xf32> {
  %0 = stablehlo.while(%s = %x) : tensor<8xf32> cond { stablehlo.return %p : tensor<i1> }
    do { sdy.sharding_group %s group_id=0 : tensor<8xf32>   stablehlo.return %s : tensor<8xf32> }
  sdy.sharding_group %y group_id=0 : tensor<8xf32>
  %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
  return %1 : tensor<8xf32>
}""",
        shardy="%arg1: tensor<8xf32>, %arg2",
        ours='%arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg2',
        of_program=groups_what_a_loop_carries,
    ),
    Mechanism(
        name="arguments of functions in the last round",
        why=(
            "An op may propagate a sharding backward to the operand of an earlier call or manual computation. Here it"
            " continues into the function. Shardy visits the function's arguments once per round, so a sharding that "
            "arrives in the last round stays outside."
        ),
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
        of_program=passes_on_what_is_used_later,
    ),
)


def has_other_rule(call: Call) -> bool:
    return any(mechanism.has_op(call) for mechanism in MECHANISMS)


def factors_only(rule: str) -> str:
    return re.sub(r" (reduction|need_replication|permutation|blocked_propagation)\{[^}]*\}", "", rule)


def judge(call: Call, ours: str, theirs: str | None) -> str | None:
    """None where both rules agree, the mechanism by which they may differ, or "" where they must not."""
    got, want = canonical_rule(ours), canonical_rule(theirs or "")
    if got == want:
        return None
    kind = FACTORS
    if theirs is None:
        kind = NO_RULE
    elif factors_only(got) == factors_only(want):
        kind = NEEDS
    return next((m.name for m in MECHANISMS if m.rule == kind and m.has_op(call)), "")


def mechanism_of(program: ModuleText) -> Mechanism | None:
    """The one that explains a difference in this program, which is already small and has our rules on its ops."""
    return next((m for m in MECHANISMS if m.of_program is not None and m.of_program(program)), None)
