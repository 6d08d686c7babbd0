# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of ops, handed over to JAX in every scenario: what StableHLO and XLA do differently.

`tests.conformance.jax.handover` has all rows.
"""

from __future__ import annotations

import pytest

from tests.conformance.jax.handover import op_failures
from tests.op.cases import CASES

ROWS = [
    ("scatter-add", "float32"),  # windows that are outside in part
    ("scatter-subtract", "float32"),
    ("scatter-replace", "int16"),
    ("gather", "int32"),  # slices at the end
    ("reduce-ends", "float32"),  # initial values that are not neutral
    ("reduce-argmax", "int8"),
    ("rng_bit_generator-three_fry", "float32"),  # bits that JAX does not generate
    ("real", "float32"),
]


@pytest.mark.parametrize(("op", "dtype"), ROWS)
def test_an_op_gives_the_numbers_of_numpy(op: str, dtype: str) -> None:
    cases = [case for case in CASES if case.id == op]
    assert cases
    for case in cases:
        assert op_failures(case, dtype) == []
