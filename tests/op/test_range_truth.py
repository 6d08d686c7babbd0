# SPDX-License-Identifier: Apache-2.0
"""The ranges of sharding rules against NumPy.

A range states which indices of an operand's dim a part of the result reads, and what is outside the dim.

* A part of the result depends on those indices alone.
* An op that only moves elements reads every one of them.
* Reads outside the dim are what the range declares: none, a scalar operand, or another operand's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from shardwise import _core
from tests.op.cases import CASES, Application, OpCase
from tests.op.references import Array
from tests.op.test_rule_truth import Rule, close, parse_rule, perturbed
from tests.support.partitioned import record

SIZES = (6, 5, 1)
MOVEMENT = {op.name for op in _core.ir.all_ops() if op.movement}


@dataclass(frozen=True)
class RangeOf:
    """The range of one dim of an operand, with the value of its start."""

    operand: int
    dim: int
    result_dim: int
    size: int
    start: int
    fields: dict[str, Any]

    def read(self, indices: range) -> tuple[set[int], set[int]]:
        """The elements that these indices of the result read; the indices that read something else as well."""
        fields = self.fields
        elements, outside = set(), set()
        for i in indices:
            first = fields["scale"] * i + fields["offset"] + self.start
            for t in range(fields["window"]):
                at, hole = divmod(first + t * fields["dilation"], fields["holes"])
                if hole == 0 and 0 <= at < self.size:
                    elements.add(at)
                else:
                    outside.add(i)
        return elements, outside


def ranges_of(case: OpCase, application: Application, dtype: str, operands: list[Array]) -> list[RangeOf]:
    module = record(case, application, dtype)
    [ranges] = [ranges for name, ranges in module.ranges if name == case.name]
    [text] = [text for name, text in module.sharding_rules() if name == case.name]
    if not ranges:
        return []
    rule = parse_rule(text)
    return [range_of(rule, application, operands, place, fields) for place, fields in ranges.items()]


def range_of(
    rule: Rule, application: Application, operands: list[Array], place: tuple[int, int], fields: dict[str, Any]
) -> RangeOf:
    operand, dim = place
    result = rule.results[application.result]
    # The update of a dynamic_update_slice has factors of its own.
    result_dim = next((d for d, factors in enumerate(result) if factors == rule.operands[operand][dim]), dim)
    size = operands[operand].shape[dim]
    start = 0
    if fields["start"] >= 0:
        shape = np.asarray(application.reference(*operands)).shape
        # The rows are read from there; where another operand has the rest, those of this operand begin there.
        sign = -1 if fields["outside"] == "absent" else 1
        room = sign * (size - shape[result_dim])
        start = sign * min(max(int(operands[fields["start"]]), 0), room)
    return RangeOf(operand, dim, result_dim, size, start, fields)


def parts_of(count: int) -> Iterator[range]:
    """The whole, both halves, the first index and the last."""
    yield from {range(count), range(count // 2), range(count // 2, count)}
    yield from {range(min(count, 1)), range(max(count - 1, 0), count)}


def keep_only(operands: list[Array], found: RangeOf, elements: set[int]) -> list[list[Array]]:
    keep = [[np.arange(size) for size in array.shape] for array in operands]
    keep[found.operand][found.dim] = np.array(sorted(elements), np.int64)
    return keep


def check_reads(case: OpCase, application: Application, dtype: str, operands: list[Array], found: RangeOf) -> None:
    whole = np.asarray(application.reference(*operands))
    for part in parts_of(whole.shape[found.result_dim]):
        where = f"{case.id} {application.label}: {found} of {part}"
        elements, outside = found.read(part)
        assert not outside or found.fields["outside"] != "never", where
        changed = perturbed(case, application, dtype, operands, keep_only(operands, found, elements))
        again = np.asarray(application.reference(*changed))
        chosen = np.array(part, np.int64)
        mine = whole.take(chosen, found.result_dim)
        assert close(case, again.take(chosen, found.result_dim), mine), f"{where}: reads more"
        if case.name not in MOVEMENT or not mine.size:
            continue
        for element in elements:
            others = set(range(found.size)) - {element}
            changed = perturbed(case, application, dtype, operands, keep_only(operands, found, others))
            again = np.asarray(application.reference(*changed))
            assert not close(case, again.take(chosen, found.result_dim), mine), f"{where}: does not read {element}"


def check_outside(operands: list[Array], whole: Array, ranges: list[RangeOf]) -> None:
    """A pad's scalar is outside; of the operands of a concatenate, one has each index."""
    absent = [found for found in ranges if found.fields["outside"] == "absent" and found.fields["start"] < 0]
    for i in range(whole.shape[absent[0].result_dim]) if absent else ():
        assert sum(len(found.read(range(i, i + 1))[0]) for found in absent) == 1
    for found in ranges:
        if found.fields["outside"] != "scalar":
            continue
        _, outside = found.read(range(whole.shape[found.result_dim]))
        assert (whole.take(np.array(sorted(outside), np.int64), found.result_dim) == operands[1]).all()


@pytest.mark.parametrize("case", [c for c in CASES if c.has_range], ids=lambda case: case.id)
def test_ranges_are_true(case: OpCase) -> None:
    count = 0
    with np.errstate(all="ignore"):
        for size in SIZES:
            for application in case.applications(size, case.dtypes[0]):
                operands = case.operands(application, case.dtypes[0])
                whole = np.asarray(application.reference(*operands))
                ranges = ranges_of(case, application, case.dtypes[0], operands)
                for found in ranges:
                    check_reads(case, application, case.dtypes[0], operands, found)
                check_outside(operands, whole, ranges)
                count += len(ranges)
    assert count


def test_other_ops_have_no_ranges() -> None:
    """An op that gets ranges belongs to the test above."""
    found = set()
    for case in CASES:
        application = case.applications(6, case.dtypes[0])[0]
        found |= {name for name, ranges in record(case, application, case.dtypes[0]).ranges if ranges}
    assert found == {case.name for case in CASES if case.has_range}
