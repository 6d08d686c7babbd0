# SPDX-License-Identifier: Apache-2.0
"""Orders of sorts: keys as integers, and the stable order by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardwise.dtypes import is_float
from tests.op.references import Array


def total(x: Array) -> Array:
    """Integers in the order of TOTALORDER: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    if not is_float(x.dtype):
        return x.astype(object) if x.dtype.kind != "b" else x.astype(int)
    signed = x.view(f"i{x.itemsize}").astype(object)
    return np.where(signed < 0, -1 - (signed + 2 ** (8 * x.itemsize - 1)), signed)


def numbers(x: Array) -> Array:
    """The same with -0 as 0 and every NaN as one, after infinity."""
    if not is_float(x.dtype):
        return total(x)
    x = np.where(x == 0, np.zeros((), x.dtype), x)
    return total(np.where(np.isnan(x), np.full((), np.nan, x.dtype), x).astype(x.dtype))


def places(keys: Sequence[Array], dim: int, descending: bool = False) -> Array:
    """The stable order along a dim by keys, the first one primary."""
    found = np.zeros(keys[0].shape, np.int64)
    for row in np.ndindex(*(1 if d == dim else size for d, size in enumerate(found.shape))):
        line = tuple(slice(None) if d == dim else i for d, i in enumerate(row))
        columns = [list(key[line]) for key in keys]
        found[line] = sorted(
            range(found.shape[dim]),
            key=lambda k: tuple(-int(c[k]) if descending else int(c[k]) for c in columns),
        )
    return found
