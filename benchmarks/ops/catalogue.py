# SPDX-License-Identifier: Apache-2.0
"""Rows of the ops to which tests/op/catalogue gives a peer: those that no function of NumPy becomes."""

from __future__ import annotations

from typing import Any

from tests.op.cases import CASES, OpCase
from tests.support.partitioned import record

from .row import Row


def row(case: OpCase, dtype: str) -> Row:
    """The first application of a case, on about n elements."""
    texts: dict[tuple[Any, ...], str] = {}

    def arguments(n: int) -> tuple[Any, ...]:
        application = case.applications(max(n // 3, 1), dtype)[0]
        arrays = case.operands(application, dtype)
        texts[tuple(x.shape for x in arrays)] = record(case, application, dtype).text()
        return tuple(arrays)

    name = case.name.partition(".")[2]
    return Row(f"{name} {dtype}", arguments, text=lambda *xs: texts[tuple(x.shape for x in xs)], peer=case.peer)


ROWS: list[Row] = [row(case, dtype) for case in CASES if case.peer for dtype in case.dtypes[:2]]
