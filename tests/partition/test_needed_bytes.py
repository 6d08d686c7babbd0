# SPDX-License-Identifier: Apache-2.0
"""Programs that send no more than what devices need, by kind; five of each in a commit, fifty in a whole run.

``python -m tests.conformance.needed_bytes`` draws more of them.
"""

from __future__ import annotations

import pytest

from ..conformance.known_places import checking, programs
from ..conformance.needed_bytes.movements import MOVEMENTS
from ..conformance.needed_bytes.programs import FAMILIES
from ..conformance.needed_bytes.reports import ABOVE, REPORTS, Report
from ..support.run_seed import is_whole, run_seed

ALL = {**programs.FAMILIES, **FAMILIES, **MOVEMENTS}
COUNT = 50 if is_whole() else 5


@pytest.mark.filterwarnings("ignore::shardwise.ShardingWarning")
@pytest.mark.parametrize("family", ALL)
def test_programs_of_a_kind(family: str) -> None:
    programs_of_it = [checking.drawn(ALL, family, str(run_seed()), index) for index in range(COUNT)]
    faults = [(program.name, program.mesh, checking.fault(program)) for program in programs_of_it]
    assert [fault for fault in faults if fault[2]] == []


@pytest.mark.filterwarnings("ignore::shardwise.ShardingWarning")
@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_a_public_report_sends_its_right_bytes(report: Report) -> None:
    bytes_of_it = report.compiled(objective="bytes").collectives().total_bytes
    assert bytes_of_it <= ABOVE.get(report.name, report.right)


def test_a_program_that_sends_more_is_a_fault() -> None:
    program = checking.drawn(ALL, "heads", "0", 0)
    less = checking.Program(**{**vars(program), "bound": program.bound - 1})
    assert "above" in checking.fault(less)


def test_wrong_numbers_are_a_fault() -> None:
    program = checking.drawn(ALL, "transforms", "0", 0)
    other = checking.Program(**{**vars(program), "expected": program.expected * 1.01})
    assert checking.fault(other) == "wrong numbers"
