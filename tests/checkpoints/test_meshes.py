# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of one mesh load on another one: equal bits, no more reads and no more memory than needed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.checkpoints.reading import BlockFiles
from shardwise.process.processes import use_processes
from shardwise.unpartitioned import unpartitioned
from tests.checkpoints.fake_ranks import OneRank
from tests.checkpoints.trees import assert_shards, of_dtype

REVERSED = list(range(32))[::-1]
SOURCE = sw.Mesh({"x": 8, "y": 4}, device_ids=REVERSED)
SPECS = {
    "rows": P("x"),
    "both": P("x", "y"),
    "swapped": P("y", "x"),
    "one": P(("y", "x")),
    "sub": P(sw.sub("x", pre=2, size=2), (sw.sub("x", pre=1, size=2), "y")),
    "whole": P(),
}
SHAPES = {"even": (64, 32), "uneven": (37, 11), "few": (3, 50), "empty": (0, 5)}
TARGETS = {
    "4": sw.NamedSharding(sw.Mesh({"a": 2, "b": 2}, device_ids=[2, 0, 3, 1]), P("b", "a")),
    "5": sw.NamedSharding(sw.Mesh({"a": 5}), P(None, "a")),
    "64": sw.NamedSharding(sw.Mesh({"a": 64}), P(sw.sub("a", pre=1, size=4), sw.sub("a", pre=8, size=8))),
    "1": sw.NamedSharding(sw.Mesh({"a": 1}), P()),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    """Arrays on 32 devices: every spec and shape."""
    folder = tmp_path_factory.mktemp("run")
    names = ["bfloat16", "float64", "int8", "float32"]
    whole = {
        f"{spec} {shape}": of_dtype(names[i], SHAPES[shape], 3) for i, shape in enumerate(SHAPES) for spec in SPECS
    }
    tree = {key: sw.device_put(x, sw.NamedSharding(SOURCE, SPECS[key.split()[0]])) for key, x in whole.items()}
    sw.save(folder, tree)
    return folder, whole


@pytest.mark.parametrize("target", TARGETS)
def test_32_devices_load_on_others(saved: tuple[Path, dict[str, np.ndarray]], target: str) -> None:
    folder, whole = saved
    loaded = sw.load(folder, shardings=TARGETS[target])
    assert list(loaded) == sorted(whole)
    assert all(array.sharding == TARGETS[target] for array in loaded.values())
    for name, array in loaded.items():
        assert_shards(array, whole[name])


def test_the_saved_layout_is_the_default(saved: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, whole = saved
    loaded = sw.load(folder)
    shardings = {name: sw.NamedSharding(SOURCE, SPECS[name.split()[0]]) for name in whole}
    assert all(array.sharding.is_equivalent_to(shardings[name], 2) for name, array in loaded.items())
    for name, array in loaded.items():
        assert_shards(array, whole[name])


def test_loaded_arrays_can_be_donated_and_computed_with(tmp_path: Path) -> None:
    mesh = sw.Mesh({"x": 3})
    x = np.arange(10.0)
    sw.save(tmp_path, sw.device_put(x, sw.NamedSharding(sw.Mesh({"y": 4}), P("y"))))
    loaded = sw.load(tmp_path, shardings=sw.NamedSharding(mesh, P("x")))
    step = sw.jit(lambda a: a * 2 + a.sum(), mesh=mesh, donate_argnums=0)
    np.testing.assert_array_equal(step(loaded), x * 2 + x.sum())
    assert loaded.is_deleted()


def test_mesh_places_the_saved_specs_on_other_axis_sizes(tmp_path: Path) -> None:
    x = np.arange(35.0).reshape(5, 7)
    sw.save(tmp_path, {"w": sw.device_put(x, sw.NamedSharding(sw.Mesh({"x": 2, "y": 3}), P("y", "x"))), "n": x})
    mesh = sw.Mesh({"y": 2, "x": 5})
    loaded = sw.load(tmp_path, mesh=mesh)
    assert loaded["w"].sharding == sw.NamedSharding(mesh, P("y", "x"))
    assert type(loaded["n"]) is np.ndarray
    assert_shards(loaded["w"], x)


SUB = SPECS["sub"]
BY_MESH = {  # the layouts "sub" and "one" on other sizes of the axes
    "4": (sw.Mesh({"x": 4, "y": 1}), SUB, P(("y", "x"))),
    "5": (sw.Mesh({"x": 5, "y": 1}), P("x", "y"), P(("y", "x"))),
    "6": (sw.Mesh({"x": 2, "y": 3}), P("x", "y"), P(("y", "x"))),
}


@pytest.mark.parametrize("target", BY_MESH)
def test_mesh_keeps_the_sub_axes_that_fit(saved: tuple[Path, dict[str, np.ndarray]], target: str) -> None:
    folder, whole = saved
    mesh, sub, one = BY_MESH[target]
    loaded = sw.load(folder, mesh=mesh)
    assert loaded["sub uneven"].sharding.is_equivalent_to(sw.NamedSharding(mesh, sub), 2)
    assert loaded["one uneven"].sharding.is_equivalent_to(sw.NamedSharding(mesh, one), 2)
    for name, array in loaded.items():
        assert_shards(array, whole[name])


@pytest.mark.parametrize("devices", [4, 5, 6, 16])
@pytest.mark.parametrize("shape", [(64, 48), (37, 11)])
def test_mesh_places_an_update_that_is_split_over_a_sub_axis(tmp_path: Path, devices: int, shape: Any) -> None:
    def step(w: Any, x: Any) -> Any:
        return w - sw.grad(lambda w: ((x @ w) ** 2).mean())(w)

    options = {"in_shardings": (None, P("data")), "shard_update": sw.sub("data", pre=2, size=4)}
    update = sw.jit(step, mesh=sw.Mesh({"data": 8}), **options)
    w = update(of_dtype("int8", shape).astype(np.float32), np.ones((16, shape[0]), np.float32))
    assert "sub('data', pre=2, size=4)" in repr(w.sharding.spec)
    sw.save(tmp_path, w)
    loaded = sw.load(tmp_path, mesh=sw.Mesh({"data": devices}))
    parts = 4 if devices == 16 else devices
    assert len({repr(shard.index) for shard in loaded.addressable_shards}) == parts
    assert_shards(loaded, np.asarray(w))


def test_mesh_changes_sub_axes_of_dims_that_are_open_or_have_a_priority(tmp_path: Path) -> None:
    x = np.arange(48.0).reshape(8, 6)
    sw.save(tmp_path, x)
    sharding = sw.NamedSharding(SOURCE, '[{"x":(2)4, ?}p1, {"x":(1)2}p2], replicated={"y":(2)2}')
    mesh = sw.Mesh({"x": 3, "y": 2})
    loaded = sw.load(tmp_path, like=sw.ShapeDtypeStruct((8, 6), np.float64, sharding=sharding), mesh=mesh)
    assert loaded.sharding == sw.NamedSharding(mesh, P("x", None))
    assert_shards(loaded, x)


def test_specs_and_text_take_the_mesh_that_is_given_or_the_saved_one(tmp_path: Path) -> None:
    saved, other = sw.Mesh({"x": 2}), sw.Mesh({"x": 3})
    x = np.arange(7.0)
    sw.save(tmp_path, {"w": sw.device_put(x, saved), "n": x})
    found = [
        sw.load(tmp_path, shardings={"w": P("x"), "n": None})["w"].sharding,
        sw.load(tmp_path, mesh=other, shardings={"w": '[{"x"}]', "n": P("x")})["n"].sharding,
        sw.load(tmp_path, shardings=other)["n"].sharding,
        sw.load(tmp_path, shardings={"w": sw.UNSPECIFIED, "n": None})["w"].sharding,
    ]
    with sw.set_mesh(other):
        found.append(sw.load(tmp_path, shardings=P("x"))["n"].sharding)
    wanted = [(saved, P("x")), (other, P("x")), (other, P()), (saved, P()), (other, P("x"))]
    assert [sharding.is_equivalent_to(sw.NamedSharding(*want), 1) for sharding, want in zip(found, wanted)] == [
        True
    ] * 5
    assert [sharding.mesh for sharding in found] == [mesh for mesh, _ in wanted]


def test_an_unpartitioned_run_loads_numpy_arrays(tmp_path: Path) -> None:
    mesh = sw.Mesh({"x": 2})
    x = np.arange(7.0)
    sw.save(tmp_path, {"w": sw.device_put(x, sw.NamedSharding(mesh, P("x")))})
    with unpartitioned(mesh):
        loaded = sw.load(tmp_path)["w"]
    assert type(loaded) is np.ndarray
    np.testing.assert_array_equal(loaded, x)


def test_each_distinct_shard_is_written_once(saved: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, whole = saved
    written = sum(file.stat().st_size for file in (folder / "step-0").glob("blocks-*"))
    assert written == sum(x.nbytes for x in whole.values())


# ---- reads and memory -----------------------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all reads from now on."""
    found: list[int] = []
    read: Callable[..., Any] = BlockFiles._bytes

    def counted(self: BlockFiles, file: int, offset: int, count: int) -> Any:
        found.append(count)
        return read(self, file, offset, count)

    monkeypatch.setattr(BlockFiles, "_bytes", counted)
    return found


MIB = 2**20


@pytest.mark.parametrize(("spec", "share"), [(P("a"), 1 / 4), (P(None, "a"), 1), (P(), 1)])
def test_a_rank_reads_only_what_its_devices_hold(tmp_path: Path, reads: list[int], spec: Any, share: float) -> None:
    whole = np.arange(2 * MIB, dtype=np.float32).reshape(2048, 1024)  # saved as one block of 8 MiB: 8 chunks
    sw.save(tmp_path, whole)
    mesh = sw.Mesh({"a": 4})
    with use_processes(OneRank(2, 4)):
        loaded = sw.load(tmp_path, shardings=sw.NamedSharding(mesh, spec))
    assert sum(reads) == share * whole.nbytes
    (shard,) = loaded.addressable_shards
    assert shard.device == 2
    np.testing.assert_array_equal(shard.data, whole[shard.index])


def test_ranks_write_and_read_their_own_blocks(tmp_path: Path, reads: list[int]) -> None:
    mesh = sw.Mesh({"a": 8})
    whole = np.arange(80.0).reshape(8, 10)
    sw.save(tmp_path, sw.device_put(whole, sw.NamedSharding(mesh, P("a"))))
    with use_processes(OneRank(1, 4)):
        loaded = sw.load(tmp_path)
    assert reads == [80, 80]
    assert [shard.device for shard in loaded.addressable_shards] == [2, 3]


def test_an_array_of_several_ranks_is_not_saved_by_one(tmp_path: Path) -> None:
    with use_processes(OneRank(1, 4)):
        own = sw.device_put(np.arange(8), sw.NamedSharding(sw.Mesh({"a": 4}), P("a")))
    rule = r"save: all shards must be on the ranks that save, got none with some shards of tree\['w'\]; call it on all"
    with pytest.raises(sw.CheckpointError, match=rule):
        sw.save(tmp_path, {"w": own})
    assert list(tmp_path.iterdir()) == []


def peak_of(run: Callable[[], Any]) -> tuple[Any, int]:
    """What it returns, and the most memory of NumPy and Python that it had beside what was there."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = run()
        return result, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_no_memory_beside_the_arrays_and_one_shard(tmp_path: Path) -> None:
    whole = np.arange(8 * MIB, dtype=np.float32).reshape(1024, 8192)
    source = sw.device_put(whole, sw.NamedSharding(sw.Mesh({"x": 32}), P("x")))
    shard = whole.nbytes // 32
    _, peak = peak_of(lambda: sw.save(tmp_path, {"w": source}))
    assert peak < shard + 0.2 * MIB
    targets = [(sw.Mesh({"a": n}), spec) for n in (4, 5, 64) for spec in (P("a"), P(None, "a"))]
    for mesh, spec in targets:
        sharding = sw.NamedSharding(mesh, spec)
        held = mesh.size * int(np.prod(sharding.shard_shape(whole.shape))) * 4
        loaded, peak = peak_of(lambda sharding=sharding: sw.load(tmp_path, shardings=sharding))
        assert held <= peak < held + shard + 0.2 * MIB
        np.testing.assert_array_equal(loaded["w"], whole)
        del loaded
