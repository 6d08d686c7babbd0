# SPDX-License-Identifier: Apache-2.0
"""Every op × scenario × dtype × executor mode gives NumPy's numbers, and the bits of the unpartitioned run.

The first dtype of each op is tried with all assignments of axes to dims, a third of the other dtypes with one in turn.
With SHARDWISE_MATRIX=turn, as under sanitizers, the first dtype is one of the others.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.op.cases import CASES, OpCase, registry_ops
from tests.support.op_matrix import CELLS, EVENNESS, failures
from tests.support.partitioned import SCENARIOS
from tests.support.run_seed import THIRD, in_turn, is_whole, rounds, run_seed

IS_IN_TURN = os.environ.get("SHARDWISE_MATRIX") == "turn" and not is_whole()
WITH_ALL_ASSIGNMENTS = [] if IS_IN_TURN else [(case, case.dtypes[0]) for case in CASES]
GRID = WITH_ALL_ASSIGNMENTS + in_turn(
    [(case, dtype) for case in CASES for dtype in case.dtypes[0 if IS_IN_TURN else 1 :]]
)


def test_every_registry_op_has_a_case() -> None:
    missing = {op.name for op in registry_ops()} - {case.name for case in CASES}
    assert not missing, f"add a case to tests/op/catalogue for {sorted(missing)}"
    unknown = {case.name for case in CASES} - {op.name for op in registry_ops()}
    assert not unknown


@pytest.mark.parametrize(("case", "dtype"), GRID, ids=[f"{case.id}-{dtype}" for case, dtype in GRID])
def test_op_gives_the_numbers_of_numpy(case: OpCase, dtype: str) -> None:
    found: list[str] = []
    turn = None if dtype == case.dtypes[0] and not IS_IN_TURN else case.dtypes.index(dtype) + rounds()
    for position, scenario in enumerate(SCENARIOS):
        with np.errstate(all="ignore"):
            found += failures(case, dtype, scenario, None if turn is None else turn + position)
    assert not found, f"{len(found)} failures:\n" + "\n".join(found[:3])


@pytest.mark.parametrize("evenness", EVENNESS)
def test_ops_with_each_way_to_split_a_dim(evenness: str) -> None:
    """A share of ``python -m tests.conformance.op_matrix``: each op with one way and one assignment in turn."""
    cells = [cell for (kind, _), cell in CELLS.items() if kind == evenness]
    rows = list(enumerate(CASES))
    found: list[str] = []
    for position, case in in_turn(rows) if IS_IN_TURN else rows:
        cell = cells[(position + run_seed()) % len(cells)]
        with np.errstate(all="ignore"):
            found += failures(case, case.dtypes[0], cell, position + rounds(THIRD * len(cells)))
    assert not found, f"{len(found)} failures:\n" + "\n".join(found[:3])
