# SPDX-License-Identifier: Apache-2.0
"""Arrays from their shards: ``make_array_from_callback``, ``make_array_from_single_device_arrays``, ``from_local``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P
from shardwise.dtensor import Partial, Replicate, Shard, from_local

MESH = sw.Mesh({"x": 2, "y": 3})
PERMUTED = sw.Mesh({"x": 2, "y": 3}, device_ids=[3, 1, 5, 0, 2, 4])
WHOLE = np.arange(35.0).reshape(5, 7)
SPECS = [P(), P("x"), P(None, "y"), P("x", "y"), P("y", "x"), P(("x", "y")), P(None, ("y", "x"))]


@pytest.mark.parametrize("mesh", [MESH, PERMUTED], ids=["in order", "permuted"])
@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_an_array_is_that_of_its_shards(mesh: sw.Mesh, spec: P) -> None:
    sharding = NamedSharding(mesh, spec)
    placed = sw.device_put(WHOLE, sharding)
    asked = []

    def part(index: tuple[slice, ...]) -> np.ndarray:
        asked.append(tuple((s.start, s.stop) for s in index))
        return WHOLE[index]

    made = sw.make_array_from_callback(WHOLE.shape, sharding, part)
    assert len(set(asked)) == len(asked) or 0 in [stop - start for row in asked for start, stop in row]
    shards = [shard.data for shard in placed.addressable_shards]
    from_list = sw.make_array_from_single_device_arrays(WHOLE.shape, sharding, shards)
    named = sw.make_array_from_single_device_arrays(WHOLE.shape, sharding, placed.addressable_shards[::-1])
    for array in (made, from_list, named):
        np.testing.assert_array_equal(array, WHOLE)
        assert array.sharding == placed.sharding
        for own, other in zip(array.addressable_shards, placed.addressable_shards):
            assert (own.device, own.index) == (other.device, other.index)
            np.testing.assert_array_equal(own.data, other.data)


@pytest.mark.parametrize("sizes", [(6, 6), (5, 6), (7, 4), (1, 1)], ids=repr)
@pytest.mark.parametrize(
    "placements", [[Shard(0), Replicate()], [Replicate(), Shard(1)], [Shard(1), Shard(0)]], ids=repr
)
def test_local_tensors_add_up(placements: list[Any], sizes: tuple[int, int]) -> None:
    whole = np.arange(sizes[0] * sizes[1]).reshape(sizes)
    placed = sw.dtensor.distribute_tensor(whole, MESH, placements)
    local = [shard.data for shard in placed.addressable_shards]
    for shape in (None, sizes):
        made = from_local(local, MESH, placements, shape=shape)
        np.testing.assert_array_equal(made, whole)
        assert made.sharding == placed.sharding


def test_a_process_with_one_device_passes_its_tensor() -> None:
    made = from_local(WHOLE, sw.Mesh({"dp": 1}), [Shard(0)])
    np.testing.assert_array_equal(made, WHOLE)


def test_dtypes_and_values_are_kept() -> None:
    rows = NamedSharding(sw.Mesh({"x": 2}), P("x"))
    parts = [np.array([1, np.nan], np.float32), np.array([np.nan], np.float32)]
    made = sw.make_array_from_single_device_arrays((3,), rows, parts)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, [1, np.nan, np.nan])
    narrow = sw.make_array_from_callback((3,), rows, lambda index: np.arange(3)[index], dtype=sw.bfloat16)
    assert narrow.dtype == sw.bfloat16
    copies = NamedSharding(sw.Mesh({"x": 2}), P())
    np.testing.assert_array_equal(sw.make_array_from_single_device_arrays((2,), copies, [parts[0]] * 2), parts[0])


ROWS = NamedSharding(sw.Mesh({"x": 2, "y": 2}), P("x"))
ONE, TWO = np.array([1.0, 2.0]), np.array([3.0])


@pytest.mark.parametrize(
    ("arrays", "kind", "text"),
    [
        ([ONE, TWO], sw.ShapeError, "there must be one shard for each of the 4 devices of this process, got 2"),
        ([ONE, ONE, ONE, TWO], sw.ShapeError, r"the shard of device 2 must have the shape \[1\], got \[2\]"),
        (
            [ONE, ONE * 2, TWO, TWO],
            sw.ShardingError,
            "pass equal bits, got other values for device 1 than for device 0",
        ),
        ([ONE, ONE, TWO, TWO.astype(int)], sw.DTypeError, "all shards must have one dtype, got float64, int64"),
        ([ONE, ONE, TWO, "a"], sw.DTypeError, "each shard must be an array of numbers, got str 'a'"),
        (ONE, TypeError, r"must be a sequence with one array for each device, got float64\[2\]; pass a list of 4"),
        ([ONE, ONE, TWO, TWO[:, None]], sw.ShapeError, r"all shards must have one ndim, got \[1, 2\]"),
    ],
)
def test_shards_that_do_not_fit_are_refused(arrays: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=f"^make_array_from_single_device_arrays: .*{text}"):
        sw.make_array_from_single_device_arrays((3,), ROWS, arrays)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(sw.ShardingError, match="make_array_from_callback: sharding must be a NamedSharding, got"):
        sw.make_array_from_callback((3,), P("x"), lambda index: ONE)
    with pytest.raises(TypeError, match="data_callback must be a function of an index, got float64"):
        sw.make_array_from_callback((3,), ROWS, ONE)  # type: ignore[arg-type]
    with pytest.raises(sw.ShapeError, match=r"the shard of device 0 must have the shape \[2\], got \[3\]"):
        sw.make_array_from_callback((3,), ROWS, lambda index: np.zeros(3))
    with pytest.raises(
        sw.ShapeError, match=r"from_local: the shards .* must be equal blocks, .*\[\[2\], \[1\], \[2\]\]"
    ):
        from_local([ONE, TWO, ONE], sw.Mesh({"x": 3}), [Shard(0)])
    with pytest.raises(sw.ShardingError, match="from_local: an array from shards must not be unreduced"):
        from_local([ONE, ONE], sw.Mesh({"x": 2}), [Partial()])
    with pytest.raises(sw.ShapeError, match="from_local: shards side by side must have one size in dim 1, got 2 and 1"):
        from_local([np.zeros((1, 2)), np.zeros((1, 1))], sw.Mesh({"x": 2}), [Shard(0)])
    with pytest.raises(sw.ShapeError, match="from_local: there must be a local tensor for each device, got none"):
        from_local([], sw.Mesh({"x": 2}), [Shard(0)])
    with pytest.raises(sw.UnsupportedError, match="make_array_from_callback: must not be called in a traced function"):
        sw.jit(
            lambda x: sw.make_array_from_callback((3,), ROWS, lambda index: np.arange(3.0)[index]) + x, mesh=ROWS.mesh
        )(1)
