# SPDX-License-Identifier: Apache-2.0
"""Every op under vmap gives what a loop over the examples gives, in every dtype of its row, with a sharded batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardwise import _core
from tests.op.case import Application, OpCase
from tests.op.cases import CASES, COMPOSED
from tests.support.partitioned import ONE_DEVICE, SCENARIOS, difference, execute, record, same_bits, sharding

ROWS = 3
WITHOUT_OPERANDS = ("chlo.constant", "stablehlo.dynamic_iota", "stablehlo.constant", "stablehlo.iota")
BATCHED = [case for case in CASES if case.name not in WITHOUT_OPERANDS]


def examples(case: OpCase, application: Application, dtype: str) -> list[list[np.ndarray]]:
    """The same numbers in another order; operands that are not drawn are the same in all."""
    first = case.operands(application, dtype, case.draw)
    if case.name == "stablehlo.cholesky":  # they must stay positive definite
        return [[np.asarray((i + 1) * x, x.dtype) for x in first] for i in range(ROWS)]
    moved = [[x if k in application.fixed else np.roll(x, i) for k, x in enumerate(first)] for i in range(1, ROWS)]
    return [first, *moved]


def check(case: OpCase, application: Application, dtype: str) -> None:
    rows = examples(case, application, dtype)
    one = _core.passes.compile(record(case, application, dtype), ONE_DEVICE)
    whole = [execute(one, row, (False,))[0][0] for row in rows]
    mesh = SCENARIOS[1].mesh()
    trace = _core.ir.Trace("batched")
    region = trace.begin_region()
    inner = [trace.region_argument(x.shape, x.dtype.name) for x in rows[0]]
    trace.end_region([case.emit(trace, inner, application, dtype)])
    flags = [k not in application.fixed for k in range(len(inner))]
    stacked = [np.stack([row[k] for row in rows]) if flag else rows[0][k] for k, flag in enumerate(flags)]
    outer = [
        trace.argument(x.shape, x.dtype.name, "", sharding(mesh, [("x",), *[()] * (x.ndim - 1)]) if flag else None)
        for x, flag in zip(stacked, flags)
    ]
    ((value, batched),) = trace.batch(region, outer, flags, ROWS)
    module = trace.finish([value])
    for (got,) in execute(_core.passes.compile(module, mesh), stacked):
        for i, want in enumerate(whole):
            found = np.asarray(got[i] if batched else got)
            where = f"{case.id} {dtype} {application.label}"
            assert (found.shape, found.dtype) == (want.shape, want.dtype), where
            if case.kind == "exact":
                assert same_bits(found, want), where
            else:
                assert not difference(case, application, rows[i], found), where


@pytest.mark.parametrize("case", BATCHED, ids=[case.id for case in BATCHED])
def test_a_batched_op_computes_row_by_row(case: OpCase) -> None:
    """All applications in the first dtype of an op that others make up; otherwise one for each dtype, in turn."""
    tried = 0
    for k, dtype in enumerate(case.dtypes):
        found: list[Any] = case.applications(5, dtype)
        chosen = found if case in COMPOSED and k == 0 else found[k % len(found) :][:1]
        for application in chosen:
            check(case, application, dtype)
            tried += 1
    assert tried >= len(case.dtypes) > 0
