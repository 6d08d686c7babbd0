# SPDX-License-Identifier: Apache-2.0
"""The sub-axis algebra and device → slice, against a brute-force model of digits.

The model: an axis of size n is split into *atoms*, the steps of a divisor chain that has all boundaries in question; a
ref is the set of atoms between its pre and pre * size. Refs whose boundaries no chain has cannot coexist.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from hypothesis import assume, given, strategies as st

from shardwise import _core
from tests.support.mesh_strategies import Ref, all_refs, digit_chains, disjoint_refs, divisors, meshes, shardings

algebra = _core.mesh.algebra
AXIS_SIZES = (2, 4, 6, 8, 12, 16, 24, 36)
PAIRS = st.sampled_from(AXIS_SIZES).flatmap(
    lambda n: st.tuples(
        st.just(_core.mesh.Mesh("m", [("x", n)])), *[st.sampled_from(all_refs(_core.mesh.Mesh("m", [("x", n)])))] * 2
    )
)


def boundaries(ref: Ref) -> tuple[int, int]:
    return ref[1], ref[1] * ref[2]


def chain_of(refs: Sequence[Ref], size: int) -> list[int] | None:
    """The common split of refs of one axis, or None."""
    points = sorted({1, size, *itertools.chain.from_iterable(map(boundaries, refs))})
    return points if all(b % a == 0 for a, b in itertools.pairwise(points)) else None


def atoms(ref: Ref, chain: Sequence[int]) -> list[tuple[str, int, int]]:
    """The steps of the chain inside the ref, major first."""
    low, high = boundaries(ref)
    return [(ref[0], a, b) for a, b in itertools.pairwise(chain) if low <= a and b <= high]


def ref_of(steps: Sequence[tuple[str, int, int]]) -> Ref | None:
    """The ref of neighbouring atoms."""
    if not steps:
        return None
    assert all(a[2] == b[1] for a, b in itertools.pairwise(steps))
    return steps[0][0], steps[0][1], steps[-1][2] // steps[0][1]


def coordinate(ref: Ref, size: int, position: int) -> int:
    """The digit of an axis coordinate that a ref reads."""
    return position // (size // (ref[1] * ref[2])) % ref[2]


@given(PAIRS)
def test_two_refs_are_sets_of_digits(drawn: tuple[Any, Ref, Ref]) -> None:
    mesh, a, b = drawn
    chain = chain_of([a, b], mesh.axis_sizes[0])

    def ask(op: str) -> Any:
        return algebra(mesh, op, [a], [b])

    assert ask("can_coexist") == (chain is not None)
    (a_low, a_high), (b_low, b_high) = boundaries(a), boundaries(b)
    assert ask("overlaps") == (max(a_low, b_low) < min(a_high, b_high))
    if chain is None:
        assert not ask("contains")
        assert not ask("prefix_of")
        assert not ask("suffix_of")
        assert ask("overlap") is None
        assert ask("prefix_without_overlap") is None
        assert ask("suffix_without_overlap") is None
        return
    of_a, of_b = atoms(a, chain), atoms(b, chain)
    assert ask("contains") == (set(of_b) <= set(of_a))
    assert ask("prefix_of") == (of_a == of_b[: len(of_a)])
    assert ask("suffix_of") == (of_a == of_b[len(of_b) - len(of_a) :])
    assert ask("overlap") == ref_of([s for s in of_a if s in of_b])
    disjoint = not set(of_a) & set(of_b)
    assert ask("prefix_without_overlap") == (a if disjoint else ref_of([s for s in of_a if s[2] <= b_low]))
    assert ask("suffix_without_overlap") == (a if disjoint else ref_of([s for s in of_a if s[1] >= b_high]))


@given(PAIRS)
def test_containing_is_knowing(drawn: tuple[Any, Ref, Ref]) -> None:
    """a contains b exactly when a's digit tells b's, for refs that coexist."""
    mesh, a, b = drawn
    size = mesh.axis_sizes[0]
    assume(algebra(mesh, "can_coexist", [a], [b]))
    told = {coordinate(a, size, c): coordinate(b, size, c) for c in range(size)}
    knows = all(told[coordinate(a, size, c)] == coordinate(b, size, c) for c in range(size))
    assert algebra(mesh, "contains", [a], [b]) == knows


# ---- lists ----------------------------------------------------------------------------------------------------------

LISTS = meshes(sizes=(1, 2, 4, 6, 8, 12), max_devices=10_000, permuted=False).flatmap(
    lambda mesh: st.tuples(
        st.just(mesh),
        *[disjoint_refs(mesh).flatmap(lambda refs: st.integers(0, len(refs)).map(lambda k: refs[:k]))] * 2,
    )
)


def common_chains(mesh: Any, *lists: Sequence[Ref]) -> dict[str, list[int]] | None:
    """A split per axis that has every ref of all lists; None when there is none."""
    chains = {}
    for axis, size in zip(mesh.axis_names, mesh.axis_sizes):
        chain = chain_of([ref for refs in lists for ref in refs if ref[0] == axis], size)
        if chain is None:
            return None
        chains[axis] = chain
    return chains


def expand(refs: Sequence[Ref], chains: dict[str, list[int]]) -> list[tuple[str, int, int]]:
    return [atom for ref in refs for atom in atoms(ref, chains[ref[0]])]


@given(LISTS)
def test_lists_are_sequences_of_digits(drawn: tuple[Any, list[Ref], list[Ref]]) -> None:
    mesh, a, b = drawn
    chains = common_chains(mesh, a, b)
    assume(chains is not None)
    of_a, of_b = expand(a, chains), expand(b, chains)

    def ask(op: str) -> list[Ref]:
        return algebra(mesh, op, a, b)

    assert expand(ask("difference"), chains) == [s for s in of_a if s not in of_b]
    kept = expand(ask("truncate_at_overlap"), chains)
    assert kept == list(itertools.takewhile(lambda s: s not in of_b, of_a))
    assert algebra(mesh, "is_prefix_of", a, b) == (of_a == of_b[: len(of_a)])
    common = [s for s, t in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(of_a, of_b))]
    assert expand(ask("greatest_common_prefix"), chains) == common[: len(expand(ask("greatest_common_prefix"), chains))]


@given(
    meshes(sizes=(1, 2, 4, 6, 8, 12), max_devices=10_000, permuted=False).flatmap(
        lambda m: st.tuples(st.just(m), disjoint_refs(m))
    )
)
def test_sorting_keeps_the_digits(drawn: tuple[Any, list[Ref]]) -> None:
    mesh, refs = drawn
    merged = algebra(mesh, "sort_and_merge", refs, [])
    chains = common_chains(mesh, refs)
    assert chains is not None
    order = {axis: i for i, axis in enumerate(mesh.axis_names)}
    assert expand(merged, chains) == sorted(expand(refs, chains), key=lambda s: (order[s[0]], s[1]))
    for left, right in itertools.pairwise(merged):
        assert left[0] != right[0] or left[1] * left[2] != right[1], "neighbours are merged"


@given(st.sampled_from(AXIS_SIZES).flatmap(lambda n: st.tuples(st.just(n), digit_chains(n))))
def test_digits_number_the_axis(drawn: tuple[int, list[int]]) -> None:
    """Row-major over the digits of any split is the axis coordinate itself."""
    size, chain = drawn
    mesh = _core.mesh.Mesh("m", [("x", size)])
    refs = [("x", a, b // a) for a, b in itertools.pairwise(chain)]
    for order in (refs, [("x", 1, size)]):
        merged = algebra(mesh, "sort_and_merge", order, [])
        assert merged == [("x", 1, size)]
    held = _core.mesh.Sharding.make(mesh, [([("x", 1, size)], False, None)]).slices((size,))
    assert [s[0][0] for s in held] == list(range(size))


# ---- device → slice -------------------------------------------------------------------------------------------------


def model_slice(mesh: Any, dims: Sequence[Any], shape: Sequence[int], logical: int) -> tuple[tuple[int, int], ...]:
    """(start, size) per dim, from the digits of the device's coordinates."""
    coordinates = {}
    for axis, size in reversed(list(zip(mesh.axis_names, mesh.axis_sizes))):
        coordinates[axis] = (logical % size, size)
        logical //= size
    result = []
    for (axes, _, _), n in zip(dims, shape):
        shard, shards = 0, 1
        for axis, pre, size in axes:
            position, axis_size = coordinates[axis]
            shard = shard * size + coordinate((axis, pre, size), axis_size, position)
            shards *= size
        block = math.ceil(n / shards)
        start = min(shard * block, n)
        result.append((start, min(start + block, n) - start))
    return tuple(result)


SHARDED = meshes().flatmap(
    lambda mesh: st.integers(0, 3).flatmap(
        lambda d: st.tuples(shardings(mesh, d), st.tuples(*[st.integers(0, 19)] * d))
    )
)


@given(SHARDED)
def test_devices_hold_what_their_digits_say(drawn: tuple[Any, tuple[int, ...]]) -> None:
    held, shape = drawn
    mesh = held.mesh
    got = held.slices(shape)
    assert len(got) == mesh.size
    for logical, parts in enumerate(got):
        assert tuple(map(tuple, parts)) == model_slice(mesh, held.dims, shape, logical)
        assert tuple(held.slice_of(shape, logical)) == tuple(parts)
        assert all(size <= block for (_, size), block in zip(parts, held.local_shape(shape)))


@given(SHARDED)
def test_shards_cover_the_tensor(drawn: tuple[Any, tuple[int, ...]]) -> None:
    held, shape = drawn
    boxes = {tuple(map(tuple, s)) for s in held.slices(shape)}
    volume = sum(math.prod(size for _, size in box) for box in boxes if all(size for _, size in box))
    assert volume == math.prod(shape) if all(shape) else volume == (1 if shape == () else 0)


@given(SHARDED)
def test_sharding_text_and_json_round_trip(drawn: tuple[Any, tuple[int, ...]]) -> None:
    held, _ = drawn
    mesh = held.mesh
    assert _core.mesh.Sharding.parse(mesh, held.text()) == held
    assert _core.mesh.Sharding.parse(mesh, held.text()).text() == held.text()
    assert _core.mesh.Sharding.from_json(held.to_json()) == held
    assert _core.mesh.Mesh.from_json(mesh.to_json()) == mesh


@given(meshes())
def test_device_ids_are_a_permutation(mesh: Any) -> None:
    devices = [mesh.device_at(i) for i in range(mesh.size)]
    assert sorted(devices) == list(range(mesh.size))
    assert [mesh.logical_index(d) for d in devices] == list(range(mesh.size))


def test_divisors() -> None:
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
