# SPDX-License-Identifier: Apache-2.0
"""Random meshes, axis refs and shardings, as functions of a source of decisions and as Hypothesis strategies.

An axis ref is (name, pre, size); a full axis has pre 1 and the axis' size. Lists are drawn so that one split of each
axis into digits has all of its refs, and neighbours that would merge are kept apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from shardwise import _core
from tests.support.draws import Draws, HypothesisDraws

Ref = tuple[str, int, int]


def drawn_mesh(
    draws: Draws,
    max_axes: int = 3,
    sizes: Sequence[int] = (1, 2, 3, 4, 6),
    max_devices: int = 24,
    name: str = "mesh",
    permuted: bool = True,
) -> Any:
    """A small mesh, sometimes with device ids in another order."""
    count = draws.integer(1, max_axes)
    axes: list[tuple[str, int]] = []
    devices = 1
    for axis in "xyzw"[:count]:
        size = draws.pick([s for s in sizes if s * devices <= max_devices] or [1])
        axes.append((axis, size))
        devices *= size
    ids = draws.permutation(range(devices)) if permuted and draws.integer(0, 3) == 0 else []
    return _core.mesh.Mesh(name, axes, ids)


@st.composite
def meshes(draw: st.DrawFn, **options: Any) -> Any:
    return drawn_mesh(HypothesisDraws(draw), **options)


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


def drawn_chain(draws: Draws, size: int) -> list[int]:
    """1 = c0 | c1 | … = size: one split of an axis into digits, most major first."""
    chain = [1]
    while chain[-1] != size:
        rest = size // chain[-1]
        chain.append(chain[-1] * draws.pick(divisors(rest)[1:]))
    return chain


@st.composite
def digit_chains(draw: st.DrawFn, size: int) -> list[int]:
    return drawn_chain(HypothesisDraws(draw), size)


def drawn_refs(draws: Draws, mesh: Any) -> list[Ref]:
    """Digits that do not overlap and coexist, in any order."""
    refs: list[Ref] = []
    for axis, size in zip(mesh.axis_names, mesh.axis_sizes):
        if size == 1:
            continue
        chain = drawn_chain(draws, size)
        refs += [(axis, a, b // a) for a, b in itertools.pairwise(chain)]
    return draws.permutation(refs)


@st.composite
def disjoint_refs(draw: st.DrawFn, mesh: Any) -> list[Ref]:
    return drawn_refs(HypothesisDraws(draw), mesh)


def merge_neighbours(mesh: Any, refs: Sequence[Ref]) -> list[Ref]:
    """(1)2 followed by (2)2 is (1)4."""
    merged: list[Ref] = []
    for axis, pre, size in refs:
        if merged and merged[-1][0] == axis and merged[-1][1] * merged[-1][2] == pre:
            merged[-1] = (axis, merged[-1][1], merged[-1][2] * size)
        else:
            merged.append((axis, pre, size))
    return merged


def drawn_sharding(
    draws: Draws, mesh: Any, ndim: int, closed: bool = False, extras: bool = True, unreduced: bool = False
) -> Any:
    """Any legal sharding: axes and digits dealt out to the dims, some of them left, replicated, or unreduced."""
    hands: list[list[Ref]] = [[] for _ in range(ndim)]
    replicated: list[Ref] = []
    pending: list[Ref] = []
    for ref in drawn_refs(draws, mesh):
        place = draws.integer(0, ndim + (1 if extras else 0) + (1 if unreduced else 0))
        if place < ndim:
            hands[place].append(ref)
        elif place == ndim + 1:
            replicated.append(ref)
        elif place == ndim + 2:
            pending.append(ref)
    dims = []
    for hand in hands:
        is_open = not closed and draws.boolean()
        axes = merge_neighbours(mesh, hand)
        priority = draws.pick([None, None, 0, 1, 2]) if extras and (axes or is_open) and not closed else None
        dims.append((axes, is_open, priority))
    reducer = draws.pick(("", "", "max", "min")) if pending else ""
    pending = merge_neighbours(mesh, sorted(pending, key=lambda ref: (mesh.axis_names.index(ref[0]), ref[1])))
    return _core.mesh.Sharding.make(mesh, dims, replicated, pending, reducer)


@st.composite
def shardings(draw: st.DrawFn, mesh: Any, ndim: int, **options: Any) -> Any:
    return drawn_sharding(HypothesisDraws(draw), mesh, ndim, **options)
