# SPDX-License-Identifier: Apache-2.0
"""Random programs over labelled dims.

Each dim of a tensor has a label, as in an einsum:

    x[b, d] {b: "x"}, w[d, f] {d: "x"} -> h[b, f] = sum of x * w over d

Here the annotations disagree about "x", as in FSDP. In half of the programs, an axis is on one label in all arguments:
then no two annotations want it for two dims of a tensor, and the order of ops decides nothing.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

MESHES = ({"x": 2}, {"x": 4}, {"x": 2, "y": 2}, {"x": 2, "y": 4})
LABELS = "abcdefg"
# All differ: two equal ops, which `simplify` merges, are then on the same labels.
SIZES = (4, 8, 12, 16, 20, 24, 28)
MAX_NDIM, MAX_ELEMENTS = 4, 1 << 17
Labels = tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """An argument, or an op on earlier nodes. ``along``: the labels that it contracts, reduces or looks up."""

    op: str
    operands: tuple[int, ...]
    labels: Labels
    along: Labels = ()
    axes: tuple[str | None, ...] = ()  # of an annotated argument: by dim


@dataclass
class Program:
    """A graph of nodes. The ops that no other reads are the results."""

    mesh: dict[str, int]
    sizes: dict[str, int]
    axes: dict[str, str] | None  # label -> the axis that it may have; None: annotations may disagree
    nodes: list[Node] = field(default_factory=list)

    def add(self, op: str, operands: tuple[int, ...], labels: Labels, along: Labels = ()) -> int:
        """The number of a new node."""
        self.nodes.append(Node(op, operands, labels, along))
        return len(self.nodes) - 1

    def results(self) -> list[int]:
        """The ops that no other reads."""
        read = {operand for node in self.nodes for operand in node.operands}
        return [i for i, node in enumerate(self.nodes) if node.operands and i not in read]

    def fits(self, labels: Labels) -> bool:
        """Whether a tensor of these dims is small enough."""
        return len(labels) <= MAX_NDIM and math.prod(self.sizes[label] for label in labels) <= MAX_ELEMENTS


def _shuffled(rng: random.Random, labels: set[str] | Labels) -> Labels:
    return tuple(rng.sample(sorted(labels), len(labels)))


def draw(rng: random.Random, agrees: bool, steps: int = 8) -> Program:
    """Draw a program, whose annotations agree or may disagree."""
    mesh = rng.choice(MESHES)
    labels = LABELS[: rng.randint(3, len(LABELS))]
    split = rng.sample(labels, len(mesh))
    sizes = dict(zip(labels, rng.sample(SIZES, len(labels))))
    program = Program(mesh, sizes, dict(zip(split, mesh)) if agrees else None)
    count = rng.randint(2, 5)
    for _ in range(count):
        _add_argument(rng, program)
    least = count + rng.randint(2, steps)
    while len(program.nodes) < least or not program.results():
        rng.choice((_unary, _binary, _binary, _einsum, _einsum, _reduce, _lookup))(rng, program)
    return program


def _add_argument(rng: random.Random, program: Program, labels: Labels = (), op: str = "argument") -> int:
    while not labels or not program.fits(labels):
        labels = _shuffled(rng, set(rng.sample(sorted(program.sizes), rng.randint(1, 3))))
    axes: tuple[str | None, ...] = ()
    if program.axes is None:
        places = [*program.mesh, *[None] * len(labels)]
        axes = tuple(rng.sample(places, len(labels)))
    elif rng.random() < 0.6:
        axes = tuple(program.axes.get(label) for label in labels)
    program.nodes.append(Node(op, (), labels, axes=axes))
    return len(program.nodes) - 1


def _pick(rng: random.Random, program: Program) -> int:
    return rng.choice([i for i, node in enumerate(program.nodes) if node.op != "ids"])


def _unary(rng: random.Random, program: Program) -> None:
    x = _pick(rng, program)
    program.add("tanh", (x,), program.nodes[x].labels)


def _binary(rng: random.Random, program: Program) -> None:
    """Of two tensors that are broadcast to the dims of both."""
    x, y = _pick(rng, program), _pick(rng, program)
    labels = _shuffled(rng, {*program.nodes[x].labels, *program.nodes[y].labels})
    if x != y and program.fits(labels):
        program.add(rng.choice(("add", "multiply", "subtract")), (x, y), labels)


def _einsum(rng: random.Random, program: Program) -> None:
    x, y = _pick(rng, program), _pick(rng, program)
    left, right = program.nodes[x].labels, program.nodes[y].labels
    shared = [label for label in left if label in right]
    # The same product twice would be one product in those spellings that have its operands in one order.
    if x == y or not shared or any({*node.operands} == {x, y} for node in program.nodes if node.op == "einsum"):
        return
    along = tuple(label for label in shared if rng.random() < 0.7) or (shared[0],)
    batch = tuple(label for label in shared if label not in along)
    # The order of dot_general: batching dims, then the free dims of both sides.
    free = [tuple(label for label in side if label not in shared) for side in (left, right)]
    labels = (*batch, *free[0], *free[1])
    if program.fits(labels):
        program.add("einsum", (x, y), labels, along)


def _reduce(rng: random.Random, program: Program) -> None:
    x = _pick(rng, program)
    labels = program.nodes[x].labels
    if labels:
        along = rng.choice(labels)
        program.add("reduce", (x,), tuple(label for label in labels if label != along), (along,))


def _lookup(rng: random.Random, program: Program) -> None:
    """Rows of a table by ids."""
    row, column = rng.sample(sorted(program.sizes), 2)
    others = [label for label in program.sizes if label not in (row, column)]
    places = tuple(rng.sample(others, min(len(others), rng.randint(1, 2))))
    if program.fits((*places, column)):
        table = _add_argument(rng, program, (row, column))
        ids = _add_argument(rng, program, places, "ids")
        program.add("lookup", (table, ids), (*places, column), (row,))
