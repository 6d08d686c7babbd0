# SPDX-License-Identifier: Apache-2.0
"""The bytes of the programs of ``python -m benchmarks.communication``: each at its bound, or listed with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.communication.compiled import ABOVE_BOUND, ABOVE_BOUND_BY_BYTES, PROGRAMS, compiled
from benchmarks.communication.programs import Program


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
@pytest.mark.parametrize("by_bytes", [False, True], ids=["as it is", "by bytes"])
def test_bytes_are_at_the_bound(program: Program, by_bytes: bool) -> None:
    sent = compiled(replace(program, objective="bytes") if by_bytes else program).collectives().total_bytes
    known, reason = (ABOVE_BOUND_BY_BYTES if by_bytes else ABOVE_BOUND).get(program.name, (program.bound, ""))
    # A bound without a reason may be that of the fastest program.
    assert sent <= known if by_bytes and not reason else sent == known, reason
    assert (sent > program.bound) == bool(reason)


def test_names_are_distinct_and_exceptions_are_programs() -> None:
    names = [program.name for program in PROGRAMS]
    assert len(set(names)) == len(names)
    assert {*ABOVE_BOUND, *ABOVE_BOUND_BY_BYTES} <= set(names)
