# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.ops` measures every op: the rows of its table run, and the ops without a row have a reason."""

from __future__ import annotations

import numpy as np

from benchmarks.ops.row import op_names
from benchmarks.ops.table import CONVOLUTION, MOST, REASONS, ROWS, WITHOUT_ROW, ceiling, reason_for_no_row
from shardwise import _core

ELEMENTS = 1 << 10
DRAWN = ("random.", "rng_bit_generator")  # rows whose peer draws other numbers
NOT_UNIQUE = ("svd", "eigh", "qr")  # up to signs
ROUNDED_OFTEN = ("sum bfloat16", "sum float16")  # by NumPy, after each addition


def test_every_row_computes_what_its_peer_computes_and_every_op_has_one() -> None:
    seen: set[str] = set()
    for row in ROWS:
        arguments = row.arguments(ELEMENTS)
        seen |= op_names(row.module(arguments))
        got = row.program(arguments)(*arguments)
        for baseline in row.baselines:
            with np.errstate(all="ignore"):
                expected = baseline(*arguments)
            if row.name.startswith(DRAWN + NOT_UNIQUE + ROUNDED_OFTEN):
                continue
            first, second = ((x[0] if isinstance(x, tuple) else x) for x in (got, expected))
            kind = complex if np.asarray(second).dtype.kind == "c" else float
            one, other = (np.asarray(x).astype(kind) for x in (first, second))
            np.testing.assert_allclose(one, other, rtol=2e-2, atol=1e-2, err_msg=row.name)
    missing = {op.name for op in _core.ir.all_ops() if op.runnable and not reason_for_no_row(op)} - seen
    assert not missing, f"add rows to benchmarks/ops, or reasons to WITHOUT_ROW, for {sorted(missing)}"
    assert not set(WITHOUT_ROW) & seen


def test_reasons_are_of_rows_and_ops_that_exist() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert set(REASONS) <= set(names)
    # A reason excuses a row up to its own ceiling, and none excuses a convolution.
    assert all(most > MOST and reason for most, reason in REASONS.values())
    assert {ceiling(name) for name in names if name.startswith("convolution ")} == {CONVOLUTION}
    assert ceiling("add float32") == MOST < ceiling("tanh float32") < 10
    assert set(WITHOUT_ROW) <= {op.name for op in _core.ir.all_ops() if op.runnable}
