# SPDX-License-Identifier: Apache-2.0
"""The dtypes that an op accepts and runs in, by trying each one in the rows of the table of op cases.

    runnable_dtypes("stablehlo.popcnt")    # ["int2", "int4", …]

A row is recorded in each dtype. Where the op has no operand or result of it, as in a row that makes complex operands of
real ones, the dtype of its first operand counts.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import shardwise as sw
from shardwise.dtypes import numpy_dtype
from tests.op.case import Application, OpCase
from tests.op.cases import CASES
from tests.op.dtype_values import ALL_DTYPES
from tests.support.partitioned import ONE_DEVICE, record, run

SIZE = 2  # of the dims that rows vary


@cache
def runnable_dtypes(name: str) -> list[str]:
    """The dtypes in the order of the registry; none for an op without a row."""
    found: set[str] = set()
    for dtype in ALL_DTYPES:
        for case in CASES:
            if case.name != name:
                continue
            for application in _applications(case, dtype):
                if dtype not in found or application.record is not None:
                    found |= _runs(case, application, dtype)
    return [dtype for dtype in ALL_DTYPES if dtype in found]


def _applications(case: OpCase, dtype: str) -> list[Application]:
    try:
        found = case.applications(SIZE, dtype)
    except (ValueError, TypeError, ArithmeticError):  # NumPy's reference has no limits of this dtype
        found = []
    return found or case.applications(SIZE, case.dtypes[0])


def _runs(case: OpCase, application: Application, dtype: str) -> set[str]:
    """The dtype of the op in a program that runs; nothing if the program is refused."""
    try:
        module = record(case, application, dtype)
        operands = [_ones(case, application, i, dtype) for i in range(len(application.shapes))]
        run(module, ONE_DEVICE, operands)
    except sw.Error:
        return set()
    op = next(op for op in reversed(module.main.body.ops) if op.name == case.name)
    return {_dtype_of(op, dtype)}


def _ones(case: OpCase, application: Application, i: int, dtype: str) -> np.ndarray:
    if i in application.fixed:
        return application.fixed[i]
    return np.ones(application.shapes[i], numpy_dtype(application.operand_dtype(i, dtype)))


def _dtype_of(op: Any, dtype: str) -> str:
    found = [str(value.type.dtype) for value in (*op.operands, *op.results)]
    return dtype if dtype in found else found[0]
