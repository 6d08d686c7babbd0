# SPDX-License-Identifier: Apache-2.0
"""Programs of one op each, from the table of op cases, for the pages that tools/make_op_pages.py writes."""

from __future__ import annotations

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
EXAMPLES = 2  # of each case


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
        """The op's lines in the text of the program."""
        lines = self.module.text().splitlines()
        begin = next(i for i, line in reversed(list(enumerate(lines))) if f"{self.case.name}" in line)
        indent = len(lines[begin]) - len(lines[begin].lstrip())
        end = begin
        while not (end > begin and lines[end].startswith(" " * indent + "}")) and lines[begin].endswith("({"):
            end += 1
        return "\n".join(line[indent:] for line in lines[begin : end + 1])

    @property
    def rule(self) -> str:
        return dict(self.module.sharding_rules())[self.case.name]

    @property
    def ranges(self) -> dict[tuple[int, int], dict[str, Any]]:
        return dict(self.module.ranges)[self.case.name]


class Sharded(NamedTuple):
    """The collectives of an example one dim of which is sharded over all devices."""

    operand: int
    dim: int
    results: str  # the dims of the first result
    collectives: list[str]
    causes: list[str]
    bytes: float


def examples(name: str) -> Iterator[Example]:
    """The first applications of each case of an op, with different rules or ranges."""
    for case in CASES:
        if case.name != name:
            continue
        seen: list[Any] = []
        dtype = "float32" if "float32" in case.dtypes else case.dtypes[0]
        for application in case.applications(SIZE, dtype):
            example = Example(case, application, dtype, record(case, application, dtype))
            key = (example.rule, example.ranges)
            if key in seen or len(seen) == EXAMPLES:
                continue
            seen.append(key)
            yield example


def sharded(example: Example) -> Iterator[Sharded]:
    """Each dim of each operand in turn; propagation shards the result."""
    mesh = _core.mesh.Mesh("mesh", [("x", DEVICES)])
    shapes = example.application.shapes
    for i, shape in enumerate(shapes):
        for dim, size in enumerate(shape):
            if size < DEVICES:
                continue
            axes = [("x",) if d == dim else () for d in range(len(shape))]
            given = [sharding(mesh, axes) if j == i else None for j in range(len(shapes))]
            module = record(example.case, example.application, example.dtype, given)
            program = sw.parse(module.text()).compile()
            rows = list(program.collectives())
            yield Sharded(
                i,
                dim,
                str(program.output_shardings.spec),
                [f"{row.kind}" for row in rows],
                list(dict.fromkeys(row.cause for row in rows)),
                sum(row.total_bytes for row in rows),
            )
