# SPDX-License-Identifier: Apache-2.0
"""The examples with manual regions, each with the function of whole arrays that it computes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from tests.support.paths import EXAMPLES

sys.path.insert(0, str(EXAMPLES))
try:
    import cannon
    import gather_dispatch
    import pipeline
    import ring_attention
finally:
    sys.path.remove(str(EXAMPLES))

__all__ = ["REGION_EXAMPLES", "RegionExample"]


@dataclass(frozen=True)
class RegionExample:
    """A function with a region, and the same on whole arrays, of which nothing is annotated."""

    mesh: sw.Mesh
    function: Callable[..., Any]
    whole: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]

    def compiled(self) -> Any:
        return sw.jit(self.function, mesh=self.mesh).lower(*self.arguments).compile()

    def expected(self) -> list[np.ndarray]:
        found = sw.jit(self.whole, mesh=self.mesh)(*self.arguments)
        return [np.asarray(x) for x in (found if isinstance(found, (tuple, list)) else [found])]


def _ring() -> RegionExample:
    mesh, over = sw.Mesh({"ring": 8}), P(None, "ring")
    ring = sw.shard_map(ring_attention.ring_attention, mesh=mesh, in_specs=(over,) * 3, out_specs=over)
    q, k, v = np.random.default_rng(0).normal(size=(3, 2, 32, 4)).astype(np.float32)
    return RegionExample(mesh, ring, ring_attention.attention, (q, k, v))


def _cannon() -> RegionExample:
    mesh, tiles = sw.Mesh({"row": 2, "column": 2}), P("row", "column")
    product = sw.shard_map(cannon.cannon, mesh=mesh, in_specs=(tiles, tiles), out_specs=tiles)
    a, b = np.random.default_rng(0).normal(size=(2, 8, 8))
    return RegionExample(mesh, product, np.matmul, (a, b))


def _pipeline() -> RegionExample:
    mesh = sw.Mesh({"stage": 8})
    whole = sw.value_and_grad(pipeline.whole_loss)
    return RegionExample(mesh, pipeline.mapped(mesh), whole, pipeline.arguments(8, 5, 2, 4))


def _dispatch() -> RegionExample:
    mesh = sw.Mesh({"expert": 8})
    return RegionExample(
        mesh,
        gather_dispatch.mapped(mesh, 2),
        lambda *args: gather_dispatch.whole_layer(*args, groups=8, capacity=2),
        gather_dispatch.arguments(8, 12, 4),
    )


REGION_EXAMPLES = {
    "ring attention": _ring,
    "Cannon's product": _cannon,
    "1F1B": _pipeline,
    "gather dispatch": _dispatch,
}
