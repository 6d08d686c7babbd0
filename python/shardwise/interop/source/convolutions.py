# SPDX-License-Identifier: Apache-2.0
"""The dimension numbers of convolutions."""

from __future__ import annotations

import re

__all__ = ["specs_of"]


def specs_of(text: str) -> list[tuple[int, ...]]:
    """The places of batch, feature and spatial dims in ``[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]``, as JAX has them."""
    specs = []
    for dims, leading in zip(re.findall(r"\[(.*?)\]", text), ("bf", "oi", "bf")):
        names = dims.split(", ")
        specs.append(tuple(map(names.index, [*leading, *map(str, range(len(names) - 2))])))
    return specs
