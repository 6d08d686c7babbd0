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


@dataclass(frozen=True)
class Mechanism:
    """`shardy` and `ours` are pieces of the two texts after `passes`, which the reproducer must show."""

    name: str
    why: str  # Shardy is wrong, or that what it does is no part of the semantics
    applies: Callable[[ModuleText, str], bool]  # of the small program and the passes
    passes: str
    text: str
    shardy: str
    ours: str


def numbers(attrs: str, name: str) -> list[int]:
    found = re.search(rf"{name} = (?:\[|array<i64: )([-\d, ]*)", attrs)
    return [int(n) for n in found[1].split(",")] if found and found[1] else []


def cuts_windows(op: Op) -> bool:
    """A scatter with a window as large as its dim at a computed start."""
    if op.name != "stablehlo.scatter":
        return False
    x, update = op.operands[0], op.operands[-1]
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


MECHANISMS = (
    Mechanism(
        name="scatter windows at computed starts",
        why=(
            "A window as large as its dim is cut where its start is not 0, element by element. Shardy lets that dim "
            "pass through; parts of the dim cannot tell what is cut, so here it needs replication and joins a round "
            "later."
        ),
        applies=lambda program, passes: any(cuts_windows(op) for op in program.ops()),
        passes="func.func(sdy-populate-op-sharding-rules)",
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
        applies=lambda program, passes: any(moves_without_resizing(op) for op in program.ops()),
        passes="func.func(sdy-populate-op-sharding-rules)",
        text="""
func.func @main(%x: tensor<8xf32>, %v: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.pad %x, %v, low = [1], high = [-1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
        shardy="([i], [])->([i]) {i=8}>",
        ours="permutation={i}",
    ),
)


def mechanism_of(program: ModuleText, passes: str) -> Mechanism | None:
    """The one that explains a difference in this program, which is already small."""
    return next((m for m in MECHANISMS if m.applies(program, passes)), None)
