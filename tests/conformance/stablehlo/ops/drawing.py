# SPDX-License-Identifier: Apache-2.0
"""The table of all ops, and one instance from (op, seed)."""

from __future__ import annotations

import zlib

import numpy as np

from tests.op.catalogue import DRAWS as TABLE
from tests.op.catalogue.instance import Build, Instance

__all__ = ["TABLE", "drawn"]


def drawn(op: str, seed: int) -> Instance:
    """The instance of a seed, always the same one. Consecutive seeds cycle through the dtypes of the op."""
    row = TABLE[op]
    build = Build(op, row.dtypes[seed % len(row.dtypes)], np.random.default_rng([zlib.crc32(op.encode()), seed]))
    with np.errstate(all="ignore"):
        row.make(build)
    return build.built(seed)
