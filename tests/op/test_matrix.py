# SPDX-License-Identifier: Apache-2.0
"""Every op × scenario × dtype × executor mode gives NumPy's numbers, and the bits of the unpartitioned run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.op.cases import CASES, OpCase, registry_ops
from tests.op.matrix import CELLS, EVENNESS, failures
from tests.support.partitioned import SCENARIOS

GRID = [(case, dtype) for case in CASES for dtype in case.dtypes]


def test_every_registry_op_has_a_case() -> None:
    missing = {op.name for op in registry_ops()} - {case.name for case in CASES}
    assert not missing, f"add a row to tests/op/cases.py for {sorted(missing)}"
    unknown = {case.name for case in CASES} - {op.name for op in registry_ops()}
    assert not unknown


@pytest.mark.parametrize(("case", "dtype"), GRID, ids=[f"{case.id}-{dtype}" for case, dtype in GRID])
def test_op_gives_the_numbers_of_numpy(case: OpCase, dtype: str) -> None:
    found: list[str] = []
    turn = case.dtypes.index(dtype)
    for position, scenario in enumerate(SCENARIOS):
        with np.errstate(all="ignore"):
            found += failures(case, dtype, scenario, turn + position if turn else None)
    assert not found, f"{len(found)} failures:\n" + "\n".join(found[:3])


@pytest.mark.parametrize("evenness", EVENNESS)
def test_ops_with_each_way_to_split_a_dim(evenness: str) -> None:
    """A sample of ``python -m tests.conformance.op_matrix``: each op with one way and one assignment."""
    cells = [cell for (kind, _), cell in CELLS.items() if kind == evenness]
    found: list[str] = []
    for position, case in enumerate(CASES):
        with np.errstate(all="ignore"):
            found += failures(case, case.dtypes[0], cells[position % len(cells)], position)
    assert not found, f"{len(found)} failures:\n" + "\n".join(found[:3])
