# SPDX-License-Identifier: Apache-2.0
"""The folders of steps: which are kept, removed, replaced and chosen, and what the file system refuses."""

from __future__ import annotations

import errno
import os
import re
import shutil
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.checkpoints import files, folders, reading, saving, writing
from shardwise.process.processes import use_processes
from tests.checkpoints.fake_ranks import OneRank
from tests.checkpoints.trees import assert_same, state


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def error_of(kind: type[Exception], call: Callable[[], Any]) -> str:
    """The message, without the place in this file."""
    with pytest.raises(kind) as raised:
        call()
    return re.sub(r" \(at .*", "", str(raised.value))


def test_the_newest_step_is_loaded_by_its_number(tmp_path: Path) -> None:
    for step in (9, 20, 100):
        sw.save(tmp_path / "a" / "run", {"x": step}, step=step)
    assert names(tmp_path / "a" / "run") == ["step-100", "step-20", "step-9"]
    assert sw.latest(tmp_path / "a" / "run") == 100
    assert sw.load(tmp_path / "a" / "run") == {"x": 100}
    assert sw.load(tmp_path / "a" / "run", step=20) == {"x": 20}
    assert sw.load(tmp_path / "a" / "run" / "step-9") == {"x": 9}


def test_latest_of_nothing_is_none(tmp_path: Path) -> None:
    assert sw.latest(tmp_path) is None
    assert sw.latest(tmp_path / "missing") is None
    (tmp_path / "file").write_text("")
    got = f"latest: path must be a folder, got Not a directory for {tmp_path}/file; pass another path"
    assert error_of(NotADirectoryError, lambda: sw.latest(tmp_path / "file")) == got


def test_keep_removes_all_but_the_newest(tmp_path: Path) -> None:
    for step in range(6):
        sw.save(tmp_path, {"x": step}, step=step, keep=3)
    assert names(tmp_path) == ["step-3", "step-4", "step-5"]


def is_rank(rank: int, size: int) -> Any:
    return use_processes(OneRank(rank, size))


@pytest.mark.parametrize("async_", [False, True])
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_run_that_went_back_loses_no_step_and_is_not_taken_up_from_the_steps_it_dropped(
    tmp_path: Path, ranks: int, async_: bool
) -> None:
    """Without the error, `latest` would be a step of the branch that the run left."""
    run = tmp_path / "run"
    for step in (100, 200, 300):
        sw.save(run, {"x": step}, step=step)
    assert sw.load(run, step=100) == {"x": 100}
    rule = "save: step must not be below the newest one in the folder, got step 101 with 2 steps up to 300 in RUN; "
    way_out = "to go on from an earlier step, remove step-200, step-300, or save in another folder"
    with is_rank(0, ranks) if ranks > 1 else nullcontext():
        for keep in (None, 1, 2):
            got = error_of(sw.CheckpointError, lambda k=keep: sw.save(run, {}, step=101, keep=k, async_=async_))  # type: ignore[misc]
            assert got.replace(str(run), "RUN") == rule + way_out
            assert names(run) == ["step-100", "step-200", "step-300"]
        for step in (200, 300):
            shutil.rmtree(run / f"step-{step}")
        for step in (101, 102, 103):
            sw.save(run, {"x": step}, step=step, keep=2, async_=async_)
        sw.wait_until_saved()
    assert names(run) == ["step-102", "step-103"]
    assert sw.latest(run) == 103
    assert sw.load(run) == {"x": 103}


@pytest.mark.parametrize("keep", [None, 1])
@pytest.mark.parametrize("async_", [False, True])
def test_a_folder_with_numbered_steps_needs_a_number(tmp_path: Path, keep: int | None, async_: bool) -> None:
    """Without it, the save would be step 0: removed at once or never found, and others would go in its place."""
    for step in (103, 300):
        sw.save(tmp_path, {"x": step}, step=step)
    got = error_of(sw.CheckpointError, lambda: sw.save(tmp_path, {}, keep=keep, async_=async_))
    assert got == (
        "save: a folder with numbered steps needs a number, got no step= with 2 steps up to 300 in "
        f"{tmp_path}; pass step="
    )
    assert names(tmp_path) == ["step-103", "step-300"]
    assert sw.load(tmp_path) == {"x": 300}


def test_many_newer_steps_are_counted_and_the_newest_named(tmp_path: Path) -> None:
    for step in range(20):
        sw.save(tmp_path, {}, step=step)
    got = error_of(sw.CheckpointError, lambda: sw.save(tmp_path, {}, step=2))
    assert f"step 2 with 17 steps up to 19 in {tmp_path}; to go on" in got
    assert "remove …, step-12, step-13, step-14, step-15, step-16, step-17, step-18, step-19, or save" in got
    sw.save(tmp_path, {}, step=19, keep=1)  # the newest one again
    assert names(tmp_path) == ["step-19.1"]


def test_what_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    """Steps count up to the saved one: a newer one that another job publishes is not among them."""
    for step in (1, 2, 3, 9):
        sw.save(tmp_path, {}, step=step)
    folders.keep_newest(tmp_path, 3, 2)
    assert names(tmp_path) == ["step-2", "step-3", "step-9"]


def test_other_files_stay(tmp_path: Path) -> None:
    others = ["notes.txt", "step-x", "step-1.tmp", "step-01", "step-2.backup", "step-3.tmp-"]
    for name in others:
        (tmp_path / name).write_text("mine")
    sw.save(tmp_path, {"x": 1}, step=3, keep=1)
    assert names(tmp_path) == sorted([*others, "step-3"])


def test_a_step_is_replaced_and_an_occupied_name_is_passed_over(tmp_path: Path) -> None:
    sw.save(tmp_path, {"x": 1}, step=4)
    sw.save(tmp_path, {"x": 2}, step=4)
    assert names(tmp_path) == ["step-4.1"]
    assert sw.load(tmp_path) == {"x": 2}
    assert sw.latest(tmp_path) == 4


def leave_leftover(folder: Path) -> Path:
    """What a killed save leaves."""
    left = folder / "step-7.tmp-0123456789abcdef"
    left.mkdir(parents=True)
    (left / "manifest.json").write_bytes(b"")
    (left / "blocks-0").write_bytes(b"12")
    return left


def test_leftovers_are_no_checkpoints_and_go_with_the_next_save(tmp_path: Path) -> None:
    leave_leftover(tmp_path)
    (tmp_path / "step-8.tmp-aa").mkdir()  # killed before there was a manifest
    assert sw.latest(tmp_path) is None
    assert error_of(FileNotFoundError, lambda: sw.load(tmp_path)) == (
        f"load: path must be a folder with a checkpoint, got none in {tmp_path}; write one with sw.save"
    )
    sw.save(tmp_path, {"x": 1})
    assert names(tmp_path) == ["step-0"]


def test_the_folder_of_a_living_save_stays(tmp_path: Path) -> None:
    draft = folders.Draft(tmp_path, 5)
    sw.save(tmp_path, {"x": 1}, step=1, keep=1)
    assert names(tmp_path) == sorted(["step-1", draft.folder.name])
    draft.discard()
    assert names(tmp_path) == ["step-1"]


def test_what_is_being_loaded_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = {"a": np.arange(4), "b": np.arange(5)}
    sw.save(tmp_path, tree, step=1)
    during: list[list[str]] = []
    read = reading.BlockFiles._bytes

    def slow(self: Any, *arguments: Any) -> Any:
        sw.save(tmp_path, {"x": len(during)}, step=2, keep=1)
        during.append(names(tmp_path))
        return read(self, *arguments)

    monkeypatch.setattr(reading.BlockFiles, "_bytes", slow)
    assert_same(sw.load(tmp_path, step=1), tree)
    assert during == [["step-1", "step-2"], ["step-1", "step-2.1"]]
    sw.save(tmp_path, {"x": 1}, step=3, keep=1)
    assert names(tmp_path) == ["step-3"]


def test_readers_and_a_writer_that_replaces_a_step(tmp_path: Path) -> None:
    sw.save(tmp_path, state(0))
    ended, wrong = threading.Event(), []

    def read() -> None:
        while not ended.is_set():
            try:
                loaded = sw.load(tmp_path)
                assert_same(loaded, state(loaded["step"]))
            except Exception as error:
                wrong.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(30):
        sw.save(tmp_path, state(step))
    ended.set()
    reader.join()
    assert wrong == []


# ---- refused calls and file systems ---------------------------------------------------------------------------------

WRONG: dict[str, tuple[type[Exception], Callable[[Path], Any], str]] = {
    "path": (TypeError, lambda d: sw.save(3, {}), "save: path must be a str or a path, got 3"),
    "no path": (ValueError, lambda d: sw.save("", {}), "save: path must be the name of a folder, got ''"),
    "NUL": (ValueError, lambda d: sw.load("a\0b"), "load: path must be the name of a folder, got 'a\\x00b'"),
    "bucket": (
        ValueError,
        lambda d: sw.save("gs://bucket/run", {}),
        "save: path must be a folder of a file system, got 'gs://bucket/run'; pass a folder of a mounted file system, "
        "and copy it there",
    ),
    "step": (
        ValueError,
        lambda d: sw.save(d, {}, step=-1),
        "save: step must be an integer that is not negative, below 2^63, got -1",
    ),
    "step of load": (
        ValueError,
        lambda d: sw.load(d, step=1.5),  # type: ignore[arg-type]
        "load: step must be an integer that is not negative, below 2^63, got 1.5",
    ),
    "keep": (
        ValueError,
        lambda d: sw.save(d, {}, keep=0),
        "save: keep must be a number of steps of at least 1, or None, got 0",
    ),
    "async": (sw.ShardingError, lambda d: sw.save(d, {}, async_=1), "save: async_ must be True or False, got 1"),  # type: ignore[arg-type]
    "leaf": (
        sw.DTypeError,
        lambda d: sw.save(d, {"f": [len]}),
        "save: leaves must be arrays of numbers, Python numbers, strings or bytes, got the function len for "
        "tree['f'][0]; take it out of the tree",
    ),
    "strings": (
        sw.DTypeError,
        lambda d: sw.save(d, {"w": np.array(["a"])}),
        "save: leaves must be arrays of numbers, Python numbers, strings or bytes, got <U1[1] for tree['w']; number "
        "its strings with np.unique(x, return_inverse=True)",
    ),
    "key": (
        sw.DTypeError,
        lambda d: sw.save(d, {frozenset(): 1}),
        "save: keys must be strings, numbers, bytes, None or tuples of these, got frozenset() in the tree",
    ),
    "mesh": (sw.MeshError, lambda d: sw.load(d, mesh=3), "load: mesh must be a Mesh or None, got 3"),
    "folder": (
        FileNotFoundError,
        lambda d: sw.load(d / "none"),
        "load: path must be a folder with a checkpoint, got no folder DIR/none",
    ),
    "missing step": (
        FileNotFoundError,
        lambda d: sw.load(d, step=4),
        "load: the folder must have step 4, got steps 1 in DIR",
    ),
    "other leaves": (
        sw.CheckpointError,
        lambda d: sw.load(d, like={"w": np.zeros((3, 2)), "n": 2.5, "new": 1}),
        "load: like must have the leaves of the checkpoint, got missing in the checkpoint: ['new']; missing in like: "
        "['b']; of another type: ['n'] int for float, ['w'] float32[2, 3] for float64[3, 2]; change like, or load "
        "without it and convert the tree",
    ),
    "shardings": (
        sw.ShardingError,
        lambda d: sw.load(d, shardings={"w": P()}),
        "load: must be a prefix of the tree it describes, got a dict with key 'w' where the tree has a dict with keys "
        "'b', 'n', 'w'; give one spec for everything below a point of the tree, or one for each leaf",
    ),
    "spec": (
        sw.MeshError,
        lambda d: sw.load(d, shardings={"w": None, "n": None, "b": P("x")}),
        "load: a spec needs a mesh, got P('x') for tree['b']; pass mesh=, or a NamedSharding",
    ),
    "axis": (
        sw.ShardingError,
        lambda d: sw.load(d, mesh=sw.Mesh({"z": 3})),
        "load of tree['w']: a mesh without shardings= must have the axes of P('x', None), got Mesh('z': 3); pass "
        "shardings= for this mesh",
    ),
    "no sharding": (
        sw.ShardingError,
        lambda d: sw.load(d, shardings={"w": 5, "n": None, "b": None}),
        "load of tree['w']: takes a NamedSharding, a spec or a mesh, got 5",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_messages(tmp_path: Path, name: str) -> None:
    kind, call, expected = WRONG[name]
    w = sw.device_put(np.zeros((2, 3), np.float32), sw.NamedSharding(sw.Mesh({"x": 2}), P("x", None)))
    sw.save(tmp_path, {"w": w, "n": 1, "b": np.zeros(2)}, step=1)
    assert error_of(kind, lambda: call(tmp_path)).replace(str(tmp_path), "DIR").startswith(expected)


def test_leaves_that_cannot_be_read(tmp_path: Path) -> None:
    w = sw.device_put(np.zeros(4), sw.Mesh({"x": 2}))
    w.delete()
    assert error_of(sw.DeletedArrayError, lambda: sw.save(tmp_path, w)).startswith(
        "save: tree: a deleted array has no elements"
    )

    def traced(x: Any) -> Any:
        sw.save(tmp_path, x)
        return x

    got = "save: must not be called in a traced function; return the values, and save them outside"
    assert error_of(sw.UnsupportedError, lambda: sw.jit(traced)(np.zeros(3))) == got
    got = "load: must not be called in a traced function; load before the call, and pass the arrays as arguments"
    assert error_of(sw.UnsupportedError, lambda: sw.jit(lambda x: sw.load(tmp_path))(np.zeros(3))) == got
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_at_any_byte_keeps_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sw.save(tmp_path, state(1), step=1)
    size = sum(file.stat().st_size for file in (tmp_path / "step-1").iterdir())
    write_all = files.write_all
    left = 0

    def limited(fd: int, data: Any) -> None:
        nonlocal left
        memory = memoryview(data).cast("B")
        write_all(fd, memory[:left])
        left -= len(memory)
        if left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writing, "write_all", limited)
    monkeypatch.setattr(saving, "write_all", limited)
    found = []
    for limit in np.random.default_rng(0).integers(0, size, 50):
        left = int(limit)
        found.append(error_of(OSError, lambda: sw.save(tmp_path, state(2), step=2)))
        assert_same(sw.load(tmp_path), state(1))
    expected = (
        f"save: the disk must have room for the checkpoint, got No space left on device for {tmp_path}; free some "
        "space; checkpoints that were saved before are whole"
    )
    assert set(found) == {expected}
    assert names(tmp_path) == ["step-1"]


@pytest.mark.parametrize(
    ("number", "kind", "rule"),
    [
        (errno.EROFS, OSError, "the folder must be writable"),
        (errno.EACCES, PermissionError, "the folder must be accessible to this user"),
        (errno.EDQUOT, OSError, "the disk quota must have room for the checkpoint"),
        (errno.EIO, OSError, "the files must be accessible"),
    ],
)
def test_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[OSError], rule: str
) -> None:
    def refused(path: Any, *_: Any) -> None:
        raise OSError(number, os.strerror(number), os.fspath(path))

    monkeypatch.setattr(os, "mkdir", refused)  # tests run as root, whom no permission stops
    got = error_of(kind, lambda: sw.save(tmp_path / "run", {}))
    assert got.startswith(f"save: {rule}, got {os.strerror(number)} for {tmp_path}/run")


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    got = f"save: path must be a folder, got Not a directory for {tmp_path}/run; pass another path"
    assert error_of(OSError, lambda: sw.save(tmp_path / "run", {})) == got
    assert error_of(OSError, lambda: sw.load(tmp_path / "run")).startswith(
        "load: path must be a folder, got Not a directory"
    )


@pytest.mark.parametrize("link", [False, True])
def test_the_folder_of_a_step_takes_no_steps(tmp_path: Path, link: bool) -> None:
    sw.save(tmp_path, {"a": 1}, step=3)
    folder = tmp_path / "step-3"
    if link:
        (tmp_path / "best").symlink_to(folder)
    with pytest.raises(
        sw.CheckpointError, match=f"^save: path must be the folder of the checkpoints, got .*{folder}; "
    ):
        sw.save(tmp_path / "best" if link else folder, {"a": 2})
    assert os.listdir(folder) == ["manifest.json"]


@pytest.mark.parametrize("levels", [340, 450, 3000])
def test_a_tree_of_too_many_levels_is_refused_before_anything_is_written(tmp_path: Path, levels: int) -> None:
    tree: Any = np.ones(2)
    for _ in range(levels):
        tree = {"a": tree}
    with pytest.raises(RecursionError, match=r"^save: a tree must have fewer levels, got "):
        sw.save(tmp_path / "run", tree, async_=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("how", ["delete", "donate"])
def test_a_leaf_that_is_deleted_is_named(tmp_path: Path, how: str) -> None:
    w = sw.device_put(np.ones(4), sw.Mesh({"x": 2}))
    if how == "delete":
        w.delete()
    else:
        sw.jit(lambda a: a + 1, donate_argnums=0)(w)
    for call, head in (
        (lambda: sw.save(tmp_path / "run", {"params": [w]}), r"save: tree\['params'\]\[0\]"),
        (lambda: sw.save_safetensors(tmp_path / "file", {"params": [w]}), "save_safetensors: leaf 'params.0'"),
    ):
        with pytest.raises(sw.DeletedArrayError, match=f"^{head}: a deleted array has no elements, got "):
            call()
