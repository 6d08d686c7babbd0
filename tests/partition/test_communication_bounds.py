# SPDX-License-Identifier: Apache-2.0
"""The bytes of the programs of ``python -m benchmarks.communication``: each at its bound, or listed with a reason."""

from __future__ import annotations

import pytest

from benchmarks.communication.compiled import ABOVE_BOUND, PROGRAMS, compiled
from benchmarks.communication.programs import Program


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_bytes_are_at_the_bound(program: Program) -> None:
    sent = compiled(program).collectives().total_bytes
    known, reason = ABOVE_BOUND.get(program.name, (program.bound, ""))
    assert sent == known, reason
    assert (sent > program.bound) == bool(reason)


def test_names_are_distinct_and_exceptions_are_programs() -> None:
    names = [program.name for program in PROGRAMS]
    assert len(set(names)) == len(names)
    assert set(ABOVE_BOUND) <= set(names)
