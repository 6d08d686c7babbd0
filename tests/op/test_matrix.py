# SPDX-License-Identifier: Apache-2.0
"""Every op × scenario × dtype × executor mode gives NumPy's numbers, and the bits of the unpartitioned run."""

from __future__ import annotations

import numpy as np
import pytest

from shardwise import _core
from tests.op.cases import CASES, OpCase, registry_ops
from tests.support.partitioned import (
    ONE_DEVICE,
    SCENARIOS,
    Scenario,
    assignments,
    bitwise,
    difference,
    execute,
    record,
    run,
    same_bits,
)

GRID = [(case, dtype) for case in CASES for dtype in case.dtypes]


def test_every_registry_op_has_a_case() -> None:
    missing = {op.name for op in registry_ops()} - {case.name for case in CASES}
    assert not missing, f"add a row to tests/op/cases.py for {sorted(missing)}"
    unknown = {case.name for case in CASES} - {op.name for op in registry_ops()}
    assert not unknown


def failures(case: OpCase, dtype: str, scenario: Scenario, turn: int) -> list[str]:
    """What goes wrong for one op, dtype and scenario. Beyond the first dtype one assignment in turn is tried."""
    found = []
    mesh = scenario.mesh()
    for application in case.applications(scenario.size, dtype):
        operands = case.operands(application, dtype)
        whole_module = record(case, application, dtype)
        whole = run(whole_module, ONE_DEVICE, operands)[0]
        where = f"{case.id} {dtype} {application.label or application.shapes}, {scenario.name}"
        if reason := difference(case, application, operands, whole):
            found.append(f"{where}, one device: {reason}")
            continue
        choices = assignments(scenario, application, whole.shape)
        if dtype != case.dtypes[0]:
            choices = [choices[turn % len(choices)]]
        for shardings, result in choices:
            compiled = _core.passes.compile(record(case, application, dtype, shardings, result), mesh)
            for mode, (got,) in zip(("once per shard", "faithful"), execute(compiled, operands)):
                reason = difference(case, application, operands, got)
                if not reason and bitwise(case, dtype) and not same_bits(got, whole):
                    reason = f"other bits than the unpartitioned run:\n{got!r}\n{whole!r}"
                if reason:
                    found.append(f"{where}, arguments {shardings}, result {result}, {mode}: {reason}")
    return found


@pytest.mark.parametrize(("case", "dtype"), GRID, ids=[f"{case.id}-{dtype}" for case, dtype in GRID])
def test_op_gives_the_numbers_of_numpy(case: OpCase, dtype: str) -> None:
    found: list[str] = []
    turn = case.dtypes.index(dtype)
    for position, scenario in enumerate(SCENARIOS):
        with np.errstate(all="ignore"):
            found += failures(case, dtype, scenario, turn + position)
    assert not found, f"{len(found)} failures:\n" + "\n".join(found[:3])
