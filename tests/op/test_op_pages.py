# SPDX-License-Identifier: Apache-2.0
"""docs/reference/ops/ has a section for each op, and docs/collectives.md shows what programs of one op send."""

from __future__ import annotations

import numpy as np
import pytest

from shardwise import _core
from tests.op.accepted_dtypes import ACCEPTED, accepted_by
from tests.op.cases import CASES
from tests.op.runnable_dtypes import runnable_dtypes
from tests.support.counted_bytes import differences, received_in_run
from tests.support.partitioned import ONE_DEVICE, bitwise, difference, record, run, same_bits
from tests.support.tools import tool


def test_the_pages_are_those_that_the_tool_writes() -> None:
    stale = [path.name for path, text in tool("make_op_pages").pages().items() if path.read_text() != text]
    assert not stale, f"run python tools/make_op_pages.py: {', '.join(stale)}"


def test_every_op_has_a_section() -> None:
    folder = tool("make_op_pages").DOCS / "reference" / "ops"
    headings = [
        line.removeprefix("## ")
        for page in folder.glob("*.md")
        for line in page.read_text().splitlines()
        if line.startswith("## ")
    ]
    assert sorted(headings) == sorted(op.name for op in _core.ir.all_ops())


def test_pages_name_kernels_and_rules_where_there_are_some() -> None:
    sections = {}
    for text in tool("make_op_pages").pages().values():
        for section in text.split("\n## ")[1:]:
            name, _, body = section.partition("\n")
            sections[name] = dict(line[2:].split(": ", 1) for line in body.splitlines() if line.startswith("- "))
    for op in _core.ir.all_ops():
        facts = sections[op.name]
        assert facts["Computed by"].startswith("a kernel") == op.has_kernel, op
        assert facts.get("Partitioned by", "").startswith("its rule") == (
            op.has_rule and op.runnable and not op.collective
        ), op
        if op.composed:
            assert ("before propagation" in facts["Computed by"]) == (not op.has_rule), op


def test_dtypes_of_the_pages_are_those_of_the_specification() -> None:
    """The pages list what runs; tests/conformance/stablehlo/test_ops.py compares it with the random instances."""
    specified = {}
    for op in ACCEPTED:
        name = op if op.startswith("chlo.") else f"stablehlo.{op}"
        left_open = {"complex64", "complex128"} if op == "remainder" else set()
        specified[name] = set(accepted_by(op)) - left_open
    assert {name: set(runnable_dtypes(name)) for name in specified} == specified


@pytest.mark.parametrize("name", sorted({case.name for case in CASES}))
def test_the_rows_of_collectives_are_what_runs(name: str) -> None:
    """The results are right, and a device receives the bytes of the row, collective by collective."""
    examples = tool("op_examples")
    for example, operand, dim in examples.sharded_dims(examples.examples(name)):
        case, application, dtype = example.case, example.application, example.dtype
        operands = case.operands(application, dtype)
        [whole] = run(record(case, application, dtype), ONE_DEVICE, operands)
        program = examples.program_of(example, operand, dim)
        got = np.asarray(program.run(*operands))
        assert not difference(case, application, operands, got)
        assert not bitwise(case, dtype) or same_bits(got, whole)
        executable = received_in_run(program, *operands)
        assert not differences(program._compiled, executable)
        received = sum((np.asarray(counted) for counted in executable.received().values()), np.zeros(1))
        assert received.max() == examples.sharded(example, operand, dim).bytes
