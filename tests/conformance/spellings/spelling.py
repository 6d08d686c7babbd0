# SPDX-License-Identifier: Apache-2.0
"""The text of a program over labelled dims: in its plain form, or in a spelling that means the same.

x: [b, d] + v: [d]     plain      v broadcast to [b, d]
                       spelled    v reshaped to [1, d], then broadcast; or broadcast to [1, d] first, as jnp writes it
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.conformance.spellings.programs import Labels, Node, Program

Value = tuple[str, Labels]  # its name, and the label of each dim; "1" of one of size 1


class Text:
    """Writes one spelling. Without ``rng``, it is the plain one."""

    def __init__(self, program: Program, rng: random.Random | None, freedoms: Sequence[str]) -> None:
        self.program = program
        self.rng = rng if "movements" in freedoms else None
        self.swaps = rng if "ops" in freedoms else None
        self.lines: list[str] = []
        self.count = 0

    def chance(self, probability: float = 0.5) -> bool:
        return self.rng is not None and self.rng.random() < probability

    def is_swapped(self) -> bool:
        """Whether the second operand comes first."""
        return self.swaps is not None and self.swaps.random() < 0.5

    def shuffled(self, labels: Sequence[str]) -> Labels:
        return tuple(labels) if self.rng is None else tuple(self.rng.sample(list(labels), len(labels)))

    def type(self, labels: Labels, dtype: str = "f32") -> str:
        return f"tensor<{''.join(f'{self.program.sizes.get(label, 1)}x' for label in labels)}{dtype}>"

    def op(self, text: str, operands: Sequence[Value], labels: Labels, dtypes: Sequence[str] = ()) -> Value:
        """``text`` with the names of the operands in its places."""
        name = f"%{self.count}"
        self.count += 1
        names = [operand for operand, _ in operands]
        types = [self.type(dims, dtype) for (_, dims), dtype in zip(operands, dtypes or ["f32"] * len(operands))]
        result = self.type(labels, dtypes[0] if dtypes else "f32")
        self.lines.append(f"{name} = {text.format(*names)} : ({', '.join(types)}) -> {result}")
        return name, labels

    # ---- movements --------------------------------------------------------------------------------------------------

    def reshape(self, x: Value, labels: Labels, dtype: str = "f32") -> Value:
        return self.op("stablehlo.reshape {}", [x], labels, [dtype])

    def transpose(self, x: Value, labels: Labels, dtype: str = "f32") -> Value:
        dims = [x[1].index(label) for label in labels]
        return self.op(f"stablehlo.transpose {{}}, dims = {dims}", [x], labels, [dtype])

    def broadcast(self, x: Value, labels: Labels, dtype: str = "f32") -> Value:
        dims = [labels.index(label) for label in x[1]]
        return self.op(f"stablehlo.broadcast_in_dim {{}}, dims = {dims}", [x], labels, [dtype])

    def with_one(self, x: Value, at: int, dtype: str = "f32") -> Value:
        """A new dim of size 1, in one of three ways."""
        labels = (*x[1][:at], "1", *x[1][at:])
        if "1" in x[1] or self.chance():
            return self.reshape(x, labels, dtype)
        if x[1] and self.chance():  # elsewhere first
            other = self.reshape(x, ("1", *x[1]), dtype)
            return self.transpose(other, labels, dtype)
        return self.broadcast(x, labels, dtype) if self.rng else self.reshape(x, labels, dtype)

    def moved_about(self, x: Value) -> Value:
        """The value after movements that undo each other."""
        labels = x[1]
        if len(labels) > 1 and self.chance(0.15):
            x = self.transpose(self.transpose(x, self.shuffled(labels)), labels)
        if labels and self.chance(0.15):
            x = self.reshape(self.with_one(x, self.rng.randint(0, len(labels)) if self.rng else 0), labels)
        return x

    def in_order(self, x: Value, labels: Labels) -> Value:
        return x if x[1] == labels else self.transpose(x, labels)

    def expanded(self, x: Value, labels: Labels) -> Value:
        """Broadcast to the dims of another tensor."""
        x = self.in_order(x, tuple(label for label in labels if label in x[1]))
        missing = [i for i, label in enumerate(labels) if label not in x[1]]
        if not missing:
            return x
        if self.chance():  # a dim of size 1 that the broadcast repeats
            at = missing[0]
            ones = self.with_one(x, at)
            dims = [at if label == "1" else labels.index(label) for label in ones[1]]
            return self.op(f"stablehlo.broadcast_in_dim {{}}, dims = {dims}", [ones], labels)
        if len(missing) > 1 and self.chance():  # one dim after the other
            x = self.broadcast(x, tuple(label for i, label in enumerate(labels) if i != missing[0]))
        return self.broadcast(x, labels)

    # ---- ops --------------------------------------------------------------------------------------------------------

    def node(self, node: Node, operands: list[Value]) -> Value:
        operands = [self.moved_about(x) for x in operands] if node.op != "lookup" else operands
        return {"tanh": self._unary, "einsum": self._einsum, "reduce": self._reduce, "lookup": self._lookup}.get(
            node.op, self._binary
        )(node, operands)

    def _unary(self, node: Node, operands: list[Value]) -> Value:
        return self.op("stablehlo.tanh {}", operands, node.labels)

    def _binary(self, node: Node, operands: list[Value]) -> Value:
        x, y = (self.expanded(operand, node.labels) for operand in operands)
        if node.op != "subtract" and self.is_swapped():
            x, y = y, x
        return self.op(f"stablehlo.{node.op} {{}}, {{}}", [x, y], node.labels)

    def _einsum(self, node: Node, operands: list[Value]) -> Value:
        along = list(self.shuffled(node.along))
        shared = [label for label in operands[0][1] if label in operands[1][1]]
        batch = [label for label in node.labels if label in shared]
        sides = []
        for x in operands:
            free = [label for label in x[1] if label not in shared]
            # Transposed so that the free dims keep their order, which is that of the result.
            if self.chance():
                order = list(self.shuffled(x[1]))
                places = [i for i, label in enumerate(order) if label in free]
                for place, label in zip(places, free):
                    order[place] = label
                x = self.in_order(x, tuple(order))
            sides.append((x, free))
        (x, left), (y, right) = sides
        labels = node.labels
        if self.is_swapped():
            (x, left), (y, right) = (y, right), (x, left)
            labels = (*batch, *left, *right)
        numbers = [[side[1].index(label) for label in group] for group in (batch, along) for side in (x, y)]
        batching = f"batching_dims = {numbers[0]} x {numbers[1]}, " if batch else ""
        dims = f"{batching}contracting_dims = {numbers[2]} x {numbers[3]}"
        product = self.op(f"stablehlo.dot_general {{}}, {{}}, {dims}", [x, y], labels)
        return self.in_order(product, node.labels)

    def _reduce(self, node: Node, operands: list[Value]) -> Value:
        (x,) = operands
        zero = f"%{self.count}"
        self.count += 1
        self.lines.append(f"{zero} = stablehlo.constant dense<0.0> : tensor<f32>")
        dim = x[1].index(node.along[0])
        text = f"stablehlo.reduce({{}} init: {{}}) applies stablehlo.add across dimensions = [{dim}]"
        return self.op(text, [x, (zero, ())], node.labels)

    def _lookup(self, node: Node, operands: list[Value]) -> Value:
        table, ids = operands
        places = len(ids[1])
        indices = self.with_one(ids, places, "i32")
        columns = self.program.sizes[table[1][1]]
        text = (
            f'"stablehlo.gather"({{}}, {{}}) <{{{{dimension_numbers = #stablehlo.gather<offset_dims = [{places}], '
            f"collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = {places}>, "
            f"slice_sizes = array<i64: 1, {columns}>}}}}>"
        )
        return self.op(text, [table, indices], node.labels, ["f32", "i32"])


# What a spelling changes: movements, the order of arguments, and the order of ops, and of operands where it is free.
FREEDOMS = ("movements", "arguments", "ops")


@dataclass(frozen=True)
class Spelling:
    """A program as StableHLO."""

    text: str
    arguments: tuple[int, ...]  # the node of each


def spelled(program: Program, rng: random.Random | None = None, freedoms: Sequence[str] = FREEDOMS) -> Spelling:
    """The plain spelling; with ``rng``, another one."""
    text = Text(program, rng, freedoms)
    arguments = [i for i, node in enumerate(program.nodes) if not node.operands]
    order = [i for i, node in enumerate(program.nodes) if node.operands]
    if rng is not None and "arguments" in freedoms:
        rng.shuffle(arguments)
    if rng is not None and "ops" in freedoms:
        order = _reordered(program, order, rng)
    values: dict[int, Value] = {i: (f"%a{i}", program.nodes[i].labels) for i in arguments}
    for i in order:
        node = program.nodes[i]
        values[i] = text.node(node, [values[operand] for operand in node.operands])
    results = [values[i] for i in program.results()]
    mesh = ", ".join(f'"{axis}"={size}' for axis, size in program.mesh.items())
    heads = ", ".join(_argument(text, program, i) for i in arguments)
    types = ", ".join(text.type(labels) for _, labels in results)
    lines = [*text.lines, f"return {', '.join(name for name, _ in results)} : {types}"]
    body = "".join(f"  {line}\n" for line in lines)
    return Spelling(
        f"sdy.mesh @mesh = <[{mesh}]>\nfunc.func @main({heads}) -> ({types}) {{\n{body}}}\n", tuple(arguments)
    )


def _argument(text: Text, program: Program, i: int) -> str:
    node = program.nodes[i]
    head = f"%a{i}: {text.type(node.labels, 'i32' if node.op == 'ids' else 'f32')}"
    if not any(node.axes):
        return head
    dims = ", ".join(f'{{"{axis}"}}' if axis else "{?}" for axis in node.axes)
    return f"{head} {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"


def _reordered(program: Program, order: list[int], rng: random.Random) -> list[int]:
    """The ops in another order in which each comes after its operands."""
    left, found = set(order), list[int]()
    while left:
        ready = sorted(i for i in left if not left & set(program.nodes[i].operands))
        found.append(rng.choice(ready))
        left.remove(found[-1])
    return found
