# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for meshes, axis refs and shardings.

An axis ref is (name, pre, size); a full axis has pre 1 and the axis' size. Lists are drawn so that one split of each
axis into digits has all of its refs, and neighbours that would merge are kept apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from shardwise import _core

Ref = tuple[str, int, int]


@st.composite
def meshes(
    draw: st.DrawFn,
    max_axes: int = 3,
    sizes: Sequence[int] = (1, 2, 3, 4, 6),
    max_devices: int = 24,
    name: str = "mesh",
    permuted: bool = True,
) -> Any:
    """A small mesh, sometimes with device ids in another order."""
    count = draw(st.integers(1, max_axes))
    axes: list[tuple[str, int]] = []
    devices = 1
    for axis in "xyzw"[:count]:
        size = draw(st.sampled_from([s for s in sizes if s * devices <= max_devices] or [1]))
        axes.append((axis, size))
        devices *= size
    ids = draw(st.permutations(range(devices))) if permuted and draw(st.integers(0, 3)) == 0 else []
    return _core.mesh.Mesh(name, axes, list(ids))


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def all_refs(mesh: Any) -> list[Ref]:
    """Every axis and sub-axis of size above 1, and full axes of size 1."""
    refs = []
    for axis, size in zip(mesh.axis_names, mesh.axis_sizes):
        refs.append((axis, 1, size))
        for pre in divisors(size):
            refs += [(axis, pre, k) for k in divisors(size // pre) if 1 < k < size]
    return refs


@st.composite
def digit_chains(draw: st.DrawFn, size: int) -> list[int]:
    """1 = c0 | c1 | … = size: one split of an axis into digits, most major first."""
    chain = [1]
    while chain[-1] != size:
        rest = size // chain[-1]
        chain.append(chain[-1] * draw(st.sampled_from(divisors(rest)[1:])))
    return chain


@st.composite
def disjoint_refs(draw: st.DrawFn, mesh: Any) -> list[Ref]:
    """Digits that do not overlap and coexist, in any order."""
    refs: list[Ref] = []
    for axis, size in zip(mesh.axis_names, mesh.axis_sizes):
        if size == 1:
            continue
        chain = draw(digit_chains(size))
        refs += [(axis, a, b // a) for a, b in itertools.pairwise(chain)]
    return list(draw(st.permutations(refs)))


def merge_neighbours(mesh: Any, refs: Sequence[Ref]) -> list[Ref]:
    """(1)2 followed by (2)2 is (1)4."""
    merged: list[Ref] = []
    for axis, pre, size in refs:
        if merged and merged[-1][0] == axis and merged[-1][1] * merged[-1][2] == pre:
            merged[-1] = (axis, merged[-1][1], merged[-1][2] * size)
        else:
            merged.append((axis, pre, size))
    return merged


@st.composite
def shardings(draw: st.DrawFn, mesh: Any, ndim: int, closed: bool = False, extras: bool = True) -> Any:
    """Any legal sharding: axes and digits dealt out to the dims, some of them left, replicated."""
    hands: list[list[Ref]] = [[] for _ in range(ndim)]
    replicated: list[Ref] = []
    for ref in draw(disjoint_refs(mesh)):
        place = draw(st.integers(0, ndim + (1 if extras else 0)))
        if place < ndim:
            hands[place].append(ref)
        elif place == ndim + 1:
            replicated.append(ref)
    dims = []
    for hand in hands:
        is_open = not closed and draw(st.booleans())
        axes = merge_neighbours(mesh, hand)
        priority = draw(st.sampled_from([None, None, 0, 1, 2])) if extras and (axes or is_open) and not closed else None
        dims.append((axes, is_open, priority))
    return _core.mesh.Sharding.make(mesh, dims, replicated)
