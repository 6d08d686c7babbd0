# SPDX-License-Identifier: Apache-2.0
"""Partition specs, named shardings, and GShard's counts and device assignments."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P
from shardwise.shardings.device_assignment import assignment_sharding, axes_for_parts
from shardwise.shardings.other_meshes import on_program_mesh

MESH = sw.Mesh({"x": 4, "y": 2})
PERMUTED = sw.Mesh({"x": 4, "y": 2}, [3, 1, 4, 0, 7, 5, 2, 6])


# ---- specs ----------------------------------------------------------------------------------------------------------


def test_a_spec_is_immutable_hashable_and_no_tuple() -> None:
    spec = P("x", None, ["y", "z"])
    assert list(spec) == ["x", None, ("y", "z")]
    assert len(spec) == 3
    assert spec[2] == ("y", "z")
    assert hash(spec) == hash(P("x", None, ("y", "z")))
    assert spec != ("x", None, ("y", "z"))
    assert spec != P("x", None)


@pytest.mark.parametrize(
    ("said", "same"), [(P(("x",)), P("x")), (P(()), P(None)), (P([]), P(None)), (P(["x"]), P("x"))]
)
def test_a_tuple_of_one_axis_is_that_axis(said: P, same: P) -> None:
    assert said == same
    assert hash(said) == hash(same)


@pytest.mark.parametrize("dim", [1, 2.0, (None,), ("x", None), ("x", 3), object(), {"x"}])
def test_what_is_no_dim_of_a_spec_is_refused(dim: Any) -> None:
    with pytest.raises(sw.ShardingError, match="None, an axis name, a tuple of names"):
        P(dim)


@pytest.mark.parametrize(
    "spec",
    [P(), P("x"), P(None, ("x", "y")), P(sw.open(), sw.open("x")), P(sw.sub("x", pre=2, size=2))],
    ids=repr,
)
def test_the_repr_of_a_spec_makes_it_again_and_it_survives_pickle(spec: P) -> None:
    names = {"P": P, "open": sw.open, "sub": sw.sub}
    for other in (eval(repr(spec), names), pickle.loads(pickle.dumps(spec)), copy.deepcopy(spec)):
        assert other == spec
        assert hash(other) == hash(spec)


# ---- named shardings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "ndim", "text"),
    [
        (P(), 0, "[]"),
        (P("x"), 2, '[{"x"}, {}]'),
        (P(None, ("x", "y")), 2, '[{}, {"x", "y"}]'),
        (P(sw.open("y"), sw.open()), 2, '[{"y", ?}, {?}]'),
        (P(sw.sub("x", pre=2, size=2)), 1, '[{"x":(2)2}]'),
        ('[{"x":(1)2, ?}, {}]', 2, '[{"x":(1)2, ?}, {}]'),
        ('[{"x"}p1, {}], replicated={"y"}', 2, '[{"x"}p1, {}]'),
    ],
)
def test_text_of_a_sharding_is_shardys(spec: Any, ndim: int, text: str) -> None:
    assert NamedSharding(MESH, spec).text(ndim).startswith(text)


@pytest.mark.parametrize(
    ("spec", "ndim", "text"),
    [
        (P("z"), 1, "z"),
        (P("x", "x"), 2, "x"),
        (P(("x", "x")), 1, "x"),
        (P("x", None), 1, "at most 1 entries"),
        (P(sw.sub("x", pre=3, size=2)), 1, "x"),
        (P("x", sw.sub("x", pre=1, size=2)), 2, "x"),
        ('[{"x"}]', 2, "as many entries"),
    ],
)
def test_a_sharding_that_does_not_fit_the_mesh_or_array_is_refused(spec: Any, ndim: int, text: str) -> None:
    with pytest.raises(sw.ShardingError, match=text):
        NamedSharding(MESH, spec).core(ndim)


@pytest.mark.parametrize("text", ["", "[", '[{"x"]', "[x", '[{"x"}] trailing', '[{"x"}, replicated={"y"}'])
def test_malformed_text_is_a_parse_error_with_a_place(text: str) -> None:
    with pytest.raises(sw.ParseError) as caught:
        NamedSharding(MESH, text)
    assert caught.value.line >= 1
    assert caught.value.column >= 1


@pytest.mark.parametrize(("mesh", "spec"), [("mesh", P("x")), (MESH, ("x",)), (MESH, None)])
def test_a_named_sharding_is_of_a_mesh_and_a_spec(mesh: Any, spec: Any) -> None:
    with pytest.raises(sw.ShardingError, match="must be"):
        NamedSharding(mesh, spec)


def test_shardings_that_say_the_same_are_equal() -> None:
    same = [NamedSharding(MESH, P("x")), NamedSharding(MESH, P(("x",), None)), NamedSharding(MESH, '[{"x"}, {}]')]
    for a in same:
        for b in same:
            assert a == b
            assert hash(a) == hash(b)
            assert a.is_equivalent_to(b, 2)
    different = [
        NamedSharding(MESH, P("y")),
        NamedSharding(PERMUTED, P("x")),
        NamedSharding(MESH, '[{"x"}, {}], replicated={"y"}'),
        NamedSharding(MESH, '[{"x"}p1, {}]'),
        NamedSharding(MESH, P(sw.open("x"))),
    ]
    for other in different:
        assert same[0] != other


def test_the_sharding_of_a_result_equals_the_one_a_user_writes() -> None:
    y = sw.jit(lambda x: x + 1, mesh=MESH, in_shardings=P("x", "y"))(np.ones((8, 4)))
    assert y.sharding == NamedSharding(MESH, P("x", "y"))


@pytest.mark.parametrize(
    "sharding",
    [
        NamedSharding(MESH, P("x", "y")),
        NamedSharding(PERMUTED, P(None, ("y", "x"))),
        NamedSharding(MESH, '[{"x":(1)2, ?}p1, {}], replicated={"y"}'),
        NamedSharding(MESH, '[{"x"}], unreduced={"y"}'),
    ],
    ids=repr,
)
def test_a_sharding_survives_pickle_copy_and_its_repr(sharding: NamedSharding) -> None:
    for other in (pickle.loads(pickle.dumps(sharding)), copy.copy(sharding), copy.deepcopy(sharding)):
        assert other == sharding
        assert repr(other) == repr(sharding)
        assert other.text() == sharding.text()


def test_shard_shape_and_the_slices_of_devices_are_as_numpy_slices() -> None:
    sharding = NamedSharding(PERMUTED, P(("y", "x")))
    assert sharding.shard_shape((11, 3)) == (2, 3)
    x = np.arange(33).reshape(11, 3)
    slices = sharding.devices_indices_map((11, 3))
    assert sorted(slices) == list(range(8))
    by_shard = {}
    for position, device in enumerate(PERMUTED.device_ids):
        i, j = np.unravel_index(position, (4, 2))
        by_shard[j * 4 + i] = x[slices[device]]
    np.testing.assert_array_equal(np.concatenate([by_shard[k] for k in range(8)]), x)
    assert [len(by_shard[k]) for k in range(8)] == [2, 2, 2, 2, 2, 1, 0, 0]


# ---- counts and assignments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axes", "parts", "expected"),
    [
        ({"x": 8}, 8, ("x",)),
        ({"x": 8}, 1, ()),
        ({"x": 8}, 2, (sw.sub("x", pre=1, size=2),)),
        ({"x": 4, "y": 2}, 4, ("x",)),
        ({"x": 4, "y": 2}, 8, ("x", "y")),
        ({"x": 4, "y": 2}, 2, (sw.sub("x", pre=1, size=2),)),
        ({"x": 2, "y": 4}, 4, ("x", sw.sub("y", pre=1, size=2))),
        ({"x": 1, "y": 4}, 2, ("x", sw.sub("y", pre=1, size=2))),
    ],
)
def test_a_count_becomes_the_major_axes(axes: dict[str, int], parts: int, expected: tuple[Any, ...]) -> None:
    assert axes_for_parts(sw.Mesh(axes), parts) == expected


@pytest.mark.parametrize(("axes", "parts"), [({"x": 8}, 3), ({"x": 8}, 0), ({"x": 8}, -1), ({"x": 8}, 16)])
def test_a_count_that_does_not_divide_the_devices_is_refused(axes: dict[str, int], parts: int) -> None:
    with pytest.raises(sw.ShardingError, match=f"must divide the 8 devices .* got {parts}; use one of"):
        axes_for_parts(sw.Mesh(axes), parts)


@pytest.mark.parametrize(("axes", "parts"), [({"x": 2, "y": 3}, 3), ({"x": 3, "y": 2}, 2), ({"x": 4, "y": 3}, 6)])
def test_a_count_that_no_leading_axes_have_is_another_mesh(axes: dict[str, int], parts: int) -> None:
    """Partition i is on the i-th group of devices, in the order of the mesh."""
    count = math.prod(axes.values())
    ids = np.random.default_rng(1).permutation(count)
    mesh, x = sw.Mesh(axes, ids), np.arange(2 * count)
    assert axes_for_parts(mesh, parts) is None
    placed = sw.jit(lambda x: sw.split(x, 0, parts), mesh=mesh)(x)
    held = {shard.device: shard.data for shard in placed.addressable_shards}
    for i, device in enumerate(ids):
        part = i // (count // parts)
        np.testing.assert_array_equal(held[device], np.split(x, parts)[part])


def dims_of(mesh: sw.Mesh, assignment: np.ndarray) -> tuple[Any, ...]:
    """The axes of each dim, on the program's mesh."""
    written = on_program_mesh(mesh, assignment_sharding(mesh, assignment).core(assignment.ndim))
    assert written.mesh == mesh._core
    return tuple(NamedSharding._wrap(written).spec)


@pytest.mark.parametrize(
    ("mesh", "assignment", "dims"),
    [
        (MESH, np.arange(8).reshape(4, 2), ("x", "y")),
        (MESH, np.arange(8), (("x", "y"),)),
        (MESH, np.arange(8).reshape(4, 2).T, ("y", "x")),
        (MESH, np.arange(8).reshape(4, 2).T.reshape(8), (("y", "x"),)),
        (MESH, np.arange(8).reshape(2, 4), (sw.sub("x", pre=1, size=2), (sw.sub("x", pre=2, size=2), "y"))),
        (MESH, np.arange(8).reshape(2, 2, 2), (sw.sub("x", pre=1, size=2), sw.sub("x", pre=2, size=2), "y")),
        (PERMUTED, np.array(PERMUTED.device_ids).reshape(4, 2), ("x", "y")),
        (sw.Mesh({"x": 6}), np.arange(6).reshape(2, 3), (sw.sub("x", pre=1, size=2), sw.sub("x", pre=2, size=3))),
    ],
)
def test_a_device_assignment_becomes_axes(mesh: sw.Mesh, assignment: np.ndarray, dims: tuple[Any, ...]) -> None:
    assert dims_of(mesh, assignment) == dims


def test_a_device_assignment_puts_each_tile_on_its_device() -> None:
    rng = np.random.default_rng(0)
    mesh = sw.Mesh({"a": 2, "b": 3, "c": 2}, rng.permutation(12))
    digits = mesh.devices.transpose(2, 0, 1).reshape(2, 6)  # tiles of a 2-D array: c on dim 0, a and b on dim 1
    spec = P(*dims_of(mesh, digits))
    x = np.arange(4 * 12).reshape(4, 12)
    for shard in sw.device_put(x, NamedSharding(mesh, spec)).addressable_shards:
        i, j = (int(k[0]) for k in np.nonzero(digits == shard.device))
        np.testing.assert_array_equal(shard.data, x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2])


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 6], "each device"),
        ([0, 1, 2, 3], "each device"),
    ],
)
def test_a_device_assignment_names_each_device(assignment: list[int], text: str) -> None:
    with pytest.raises(sw.ShardingError, match=text):
        assignment_sharding(MESH, np.array(assignment))


@pytest.mark.parametrize("assignment", [[1, 0, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1, 0], [0, 3, 1, 2, 4, 7, 5, 6]])
def test_a_device_assignment_that_is_no_order_of_the_axes_is_another_mesh(assignment: list[int]) -> None:
    x = np.arange(16)
    placed = sw.jit(lambda x: sw.shard(x, assignment), mesh=MESH)(x)
    assert placed.sharding.mesh.device_ids == tuple(assignment)
    for shard in placed.addressable_shards:
        tile = assignment.index(shard.device)
        np.testing.assert_array_equal(shard.data, x[2 * tile : 2 * tile + 2])


@pytest.mark.parametrize("mesh_text", ["@mesh", 'mesh<["x"=4, "y"=2]>'])
def test_text_may_name_the_mesh_and_is_shown_without(mesh_text: str) -> None:
    sharding = NamedSharding(MESH, f'<{mesh_text}, [{{"x":(1)2, ?}}p1, {{}}], replicated={{"y"}}>')
    short = '[{"x":(1)2, ?}p1, {}], replicated={"y"}'
    assert repr(sharding) == f"NamedSharding(mesh=Mesh('x': 4, 'y': 2), spec={short!r})"
    assert sharding == NamedSharding(MESH, short) == pickle.loads(pickle.dumps(sharding))
