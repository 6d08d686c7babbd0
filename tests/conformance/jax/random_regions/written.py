# SPDX-License-Identifier: Apache-2.0
"""The collectives that a function of JAX's has in its jaxpr, in bytes that a device receives.

psum over 4 devices of float64[24,8]        all_reduce, 2 · 3/4 · 1536 B
in a scan of 3 steps                        three of them
in branches                                 those of all branches, as in the ledger
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

REDUCTIONS = ("psum", "psum_invariant", "pmax", "pmin")
KINDS = {
    **dict.fromkeys(REDUCTIONS, "all_reduce"),
    "all_gather": "all_gather",
    "all_gather_invariant": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "all_to_all": "all_to_all",
    "ppermute": "collective_permute",
}


def _bytes(name: str, elements: int, item: int, count: int) -> float:
    size = elements * item
    if name in REDUCTIONS:
        # Each device sums up a part, whole elements, or all of it if there are fewer elements than devices.
        return (count - 1) * item * min(2 * -(-elements // count), elements)
    return {
        "all_gather": size * (count - 1),
        "all_gather_invariant": size * (count - 1),
        "reduce_scatter": size * (count - 1) / count,
        "all_to_all": size * (count - 1) / count,
        "ppermute": size,
    }[name]


def _distances(pairs: Any, count: int) -> int:
    """A permutation of shards is sent as one for each distance, if these are few (ops/collectives/row_moves.h)."""
    return len({(target - source) % count for source, target in pairs} - {0})


def _inner(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            found = getattr(one, "jaxpr", one)
            if hasattr(found, "eqns"):
                yield found


def collectives(jaxpr: Any, sizes: dict[str, int]) -> Counter[str]:
    """The bytes by kind."""
    sent: Counter[str] = Counter()
    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        if name in KINDS:
            axes = params.get("axes", params.get("axis_name"))
            named = (axes,) if isinstance(axes, str) else tuple(axes)
            count = math.prod(sizes[axis] for axis in named)
            times = _distances(params["perm"], count) if name == "ppermute" else 1
            for operand in equation.invars:
                sent[KINDS[name]] += times * int(_bytes(name, operand.aval.size, operand.aval.dtype.itemsize, count))
            continue
        parts = [collectives(part, sizes) for part in _inner(params)]
        for part in parts:
            for kind, size in part.items():
                sent[kind] += size * params["length"] if name == "scan" else size
    return sent
