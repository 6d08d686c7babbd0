# SPDX-License-Identifier: Apache-2.0
"""Where a rule is not Shardy's: each mechanism with its reason, the instances it touches, and one that shows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from rule_calls import MIXING_TARGETS
from rule_instance import Instance, combiner, comparator
from shardy_oracle import canonical_rule


@dataclass(frozen=True)
class Mechanism:
    """``kind`` "none": Shardy has no rule; "kinds": the factors are Shardy's, what they need is not; "factors"."""

    name: str
    why: str
    kind: str
    applies: Callable[[Instance], bool]
    shown_by: Instance
    shardy: str | None
    ours: str


def target(instance: Instance) -> str:
    found = re.search('call_target_name = "(.*?)"', instance.attributes)
    return found[1] if found else ""


def shifts(instance: Instance) -> bool:
    low, high, interior = (
        [int(n) for n in re.findall(r"-?\d+", text.partition(":")[2])]
        for text in re.findall(r"array<i64[^>]*>", instance.attributes)
    )
    return any(a or b or c for a, b, c in zip(low, high, interior))


def dilates(instance: Instance) -> bool:
    return (
        "2"
        in re.findall(r"base_dilations = array<i64: ([^>]*)>", instance.attributes + "base_dilations = array<i64: >")[0]
    )


COMPOSED = ("map", "broadcast", "einsum", "unary_einsum", "batch_norm_training", "batch_norm_grad")

MECHANISMS = (
    Mechanism(
        "CHLO",
        "Shardy has no rule for CHLO, which XLA takes apart before; a text that still holds such an op would be cut in "
        "two there. Ours is that of the ops it is made of.",
        "none",
        lambda i: i.op.startswith("chlo."),
        Instance("chlo.erf", ("tensor<8xf32>",), ("tensor<8xf32>",)),
        None,
        "([i])->([i]) {i=8}",
    ),
    Mechanism(
        "no operands",
        "There is nobody whom such an op could tell, so Shardy has no rule. Ours says what a device can make of it.",
        "none",
        lambda i: i.op in ("stablehlo.constant", "stablehlo.iota"),
        Instance("stablehlo.iota", (), ("tensor<8xi32>",), "iota_dimension = 0 : i64"),
        None,
        "()->([i]) {i=8}",
    ),
    Mechanism(
        "ops that stand for others",
        "Shardy warns of an op that it does not know, and stops there. Ours is that of the ops it stands for.",
        "none",
        lambda i: i.op.removeprefix("stablehlo.") in COMPOSED,
        Instance("stablehlo.broadcast", ("tensor<8xf32>",), ("tensor<2x8xf32>",), "broadcast_sizes = array<i64: 2>"),
        None,
        "([j])->([i, j]) {i=2, j=8}",
    ),
    Mechanism(
        "several shapes",
        "The operands of one all-reduce have nothing to do with each other. Shardy gives all of them the factors of "
        "the first: 2 elements would be sharded like 8, and operands of another rank are an error.",
        "factors",
        lambda i: i.op == "stablehlo.all_reduce" and len(set(i.operands)) > 1,
        Instance(
            "stablehlo.all_reduce",
            ("tensor<8xf32>", "tensor<2xf32>"),
            ("tensor<8xf32>", "tensor<2xf32>"),
            "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>",
            (combiner(),),
        ),
        "([i], [i])->([i], [i]) {i=8}",
        "([i], [j])->([i], [j]) {i=8, j=2}",
    ),
    Mechanism(
        "shifting pad",
        "A pad of 1 below and -1 above moves every element across the borders of the shards. Shardy looks at the size, "
        "which stays.",
        "kinds",
        lambda i: i.op == "stablehlo.pad" and shifts(i),
        Instance(
            "stablehlo.pad",
            ("tensor<8xf32>", "tensor<f32>"),
            ("tensor<8xf32>",),
            "edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: -1>, interior_padding = array<i64: 0>",
        ),
        "([i], [])->([i]) {i=8}",
        "([i], [])->([i]) {i=8} permutation={i}",
    ),
    Mechanism(
        "base dilation",
        "Holes between the elements make 7 of 4, so that element 1 stands at place 2: not on its shard. Shardy looks "
        "at window, stride and padding alone.",
        "kinds",
        lambda i: i.op == "stablehlo.reduce_window" and dilates(i),
        Instance(
            "stablehlo.reduce_window",
            ("tensor<4xf32>", "tensor<f32>"),
            ("tensor<7xf32>",),
            "window_dimensions = array<i64: 1>, base_dilations = array<i64: 2>",
            (combiner(),),
        ),
        "([i], [])->([i]) {i=7}",
        "([i], [])->([i]) {i=7} permutation={i}",
    ),
    Mechanism(
        "dims from the end",
        "A sort along dim -1 sorts the last one. Shardy finds no dim of that number, and lets all of them pass: each "
        "shard would be sorted by itself.",
        "kinds",
        lambda i: i.op == "stablehlo.sort" and "dimension = -" in i.attributes,
        Instance(
            "stablehlo.sort",
            ("tensor<2x8xf32>",),
            ("tensor<2x8xf32>",),
            "dimension = -1 : i64",
            (comparator(["f32"]),),
        ),
        "([i, j])->([i, j]) {i=2, j=8}",
        "([i, j])->([i, j]) {i=2, j=8} need_replication={j}",
    ),
    Mechanism(
        "cut windows",
        "A window as large as its dim is cut, element by element, where its computed start leaves the dim; a part of "
        "the dim cannot tell what is cut.",
        "kinds",
        lambda i: i.op == "stablehlo.scatter",
        Instance(
            "stablehlo.scatter",
            ("tensor<8xf32>", "tensor<1xi32>", "tensor<8xf32>"),
            ("tensor<8xf32>",),
            "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0]>",
            (combiner(),),
        ),
        "([i], [j], [i])->([i]) {i=8, j=1} need_replication={j}",
        "([i], [j], [i])->([i]) {i=8, j=1} need_replication={i, j}",
    ),
    Mechanism(
        "factorisations and partial top-k",
        "The rows and columns of a matrix are mixed, and the largest of a part are not those of the whole; Shardy lets "
        "these dims pass.",
        "kinds",
        lambda i: target(i) in (*MIXING_TARGETS, "Eigh", "ApproxTopK", "PartialReduce"),
        Instance(
            "stablehlo.custom_call",
            ("tensor<2x4x4xf32>",),
            ("tensor<2x4x4xf32>", "tensor<2x4xf32>"),
            'call_target_name = "Eigh"',
        ),
        "([i, j, k])->([i, j, k], [i, k]) {i=2, j=4, k=4}",
        "([i, j, k])->([i, j, k], [i, k]) {i=2, j=4, k=4} need_replication={j, k}",
    ),
)


def factors_only(rule: str) -> str:
    return re.sub(r" (reduction|need_replication|permutation|blocked_propagation)\{[^}]*\}", "", rule)


def judge(instance: Instance, ours: str, theirs: str | None) -> str | None:
    """None where both agree, the mechanism by which they may differ, or "" where they must not."""
    got, want = canonical_rule(ours), canonical_rule(theirs or "")
    if got == want:
        return None
    for mechanism in MECHANISMS:
        if not mechanism.applies(instance):
            continue
        if mechanism.kind == "none" and theirs is None:
            return mechanism.name
        same_factors = mechanism.kind == "kinds" and factors_only(got) == factors_only(want)
        if mechanism.kind == "factors" or same_factors:
            return mechanism.name
    return ""
