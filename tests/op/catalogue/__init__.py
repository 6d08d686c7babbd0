# SPDX-License-Identifier: Apache-2.0
"""The ops by family, as in cpp/shardwise/ops: for each op the instances on which every test tries it.

``CASES`` are representative applications for a dim size ``n``, with a NumPy reference. ``DRAWS`` writes random
instances: attributes, shapes and numbers in every dtype. The tables of the tests are views of these two.
"""

from __future__ import annotations

from tests.op.case import OpCase
from tests.op.catalogue import (
    chlo_broadcast,
    collectives,
    contraction,
    control,
    create,
    custom_calls,
    dynamism,
    elementwise,
    indexing,
    layout,
    linalg,
    random,
    reduce,
    slicing,
    sort,
    window,
)
from tests.op.catalogue.instance import Table

FAMILIES = (
    elementwise, layout, slicing, contraction, reduce, window, sort, random, indexing, create, linalg, custom_calls,
    dynamism, control, chlo_broadcast, collectives,
)  # fmt: skip
CASES: list[OpCase] = [case for family in FAMILIES for case in family.CASES]
DRAWS: Table = {op: row for family in FAMILIES for op, row in family.DRAWS.items()}
