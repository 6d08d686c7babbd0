# SPDX-License-Identifier: Apache-2.0
"""Programs of one op each, from the table of op cases, for the pages that tools/make_op_pages.py writes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import shardwise as sw
from shardwise import _core
from tests.op.case import Application, OpCase
from tests.op.cases import CASES
from tests.support.partitioned import record, sharding

SIZE = 8  # of the dims that cases vary
DEVICES = 4
EXAMPLES = 3  # of an op
ELEMENTS = re.compile(r"dense<\[.{40,}?\]>")


class Example(NamedTuple):
    """An op on whole arrays."""

    case: OpCase
    application: Application
    dtype: str
    module: Any

    @property
    def op(self) -> Any:
        """The op of the case; constants come before it."""
        return next(op for op in reversed(self.module.main.body.ops) if op.name == self.case.name)

    @property
    def statement(self) -> str:
        """The op's line in the text of the program; the ops of a region are left out."""
        lines = self.module.text().splitlines()
        begin = next(i for i, line in reversed(list(enumerate(lines))) if self.case.name in line)
        first = ELEMENTS.sub("dense<…>", lines[begin].strip())
        if not first.endswith("({"):
            return first
        indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
        last = next(line for line in lines[begin + 1 :] if line.startswith(indent + "}"))
        return f"{first} … {last.strip()}"

    @property
    def rule(self) -> str:
        """The sharding rule of the op."""
        return dict(self.module.sharding_rules())[self.case.name]

    def factor(self, operand: int, dim: int) -> tuple[str, str]:
        """The factors of a dim in the rule, and their kind if one of them is not passed through. "" without a rule."""
        if not self.rule:
            return "", ""
        operands = self.rule.partition("->")[0]
        factors = re.findall(r"\[([^\]]*)\]", operands)[operand].split(", ")[dim]
        for kind in ("reduction", "need_replication", "permutation"):
            of_kind = re.search(rf" {kind}={{([^}}]*)}}", self.rule)
            if of_kind and set(of_kind[1].split(", ")) & set(re.findall("[a-z][0-9_]*", factors)):
                return factors, kind.replace("_", " ")
        return factors, ""

    @property
    def ranges(self) -> dict[tuple[int, int], dict[str, Any]]:
        """By operand and dim, the range that is read if it is not the whole dim."""
        return dict(self.module.ranges)[self.case.name]


class Sharded(NamedTuple):
    """The collectives of an example one dim of which is sharded over all devices."""

    operand: int
    dim: int
    result: str  # the spec of the first result
    methods: list[str]  # of the ops, "rule" for those that have none
    collectives: list[str]
    causes: list[str]
    bytes: float


def examples(name: str) -> list[Example]:
    """The first applications of an op that differ in rule or ranges, with float32 if the op takes it."""
    found: list[Example] = []
    for case in CASES:
        if case.name != name:
            continue
        dtype = "float32" if "float32" in case.dtypes else case.dtypes[0]
        for application in case.applications(SIZE, dtype):
            example = Example(case, application, dtype, record(case, application, dtype))
            same = any((example.rule, example.ranges) == (other.rule, other.ranges) for other in found)
            if not same and len(found) < EXAMPLES:
                found.append(example)
    return found


def sharded_dims(found: list[Example]) -> Iterator[tuple[Example, int, int]]:
    """(example, operand, dim) of the examples of an op; dims smaller than the mesh only if no example has a larger one.

    Dims of one element are left out.
    """
    places = [
        (example, i, dim, size)
        for example in found
        for i, shape in enumerate(example.application.shapes)
        for dim, size in enumerate(shape)
    ]
    large = {(i, dim) for _, i, dim, size in places if size >= DEVICES}
    for example, i, dim, size in places:
        if size >= DEVICES or (size > 1 and (i, dim) not in large):
            yield example, i, dim


def program_of(example: Example, operand: int, dim: int) -> sw.Program:
    """The example with one dim sharded."""
    mesh = _core.mesh.Mesh("mesh", [("x", DEVICES)])
    shapes = example.application.shapes
    axes = [("x",) if d == dim else () for d in range(len(shapes[operand]))]
    given = [sharding(mesh, axes) if j == operand else None for j in range(len(shapes))]
    return sw.parse(record(example.case, example.application, example.dtype, given).text()).compile()


def sharded(example: Example, operand: int, dim: int) -> Sharded:
    """What the example sends with one dim sharded; propagation shards the result."""
    program = program_of(example, operand, dim)
    rows = list(program.collectives())
    return Sharded(
        operand,
        dim,
        str(program.output_shardings.spec),
        list(dict.fromkeys(op.method or "rule" for op in program.choices.ops.values())),
        [row.kind for row in rows],
        list(dict.fromkeys(row.cause for row in rows)),
        float(program.collectives().total_bytes),
    )
