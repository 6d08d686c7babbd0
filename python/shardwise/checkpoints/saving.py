# SPDX-License-Identifier: Apache-2.0
"""``sw.save``: a tree becomes a folder, which appears under its name only when it is whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..array import Array
from ..array_leaves import numbers_of
from ..dtypes import dtype_name, way_to_numbers
from ..errors import CheckpointError, DTypeError, UnsupportedError, described, is_integer, message, shown
from ..process.processes import current_processes
from ..process.traceback_filtering import entry_point
from ..programs.options import switch
from ..recording.tracing import Tracer, current_trace
from . import background
from .chunks import CHUNK_BYTES
from .files import sync_file, write_all
from .folders import Draft, checked_path, checked_step, expect_newest, expect_no_step, keep_newest, remove_leftovers
from .manifest import Manifest, manifest_bytes
from .structure import encoded_tree, encoded_value, is_value, named_leaf, named_trees
from .team import Team
from .writing import Written, block_shape, write_blocks

__all__ = ["save", "wait_until_saved"]


@entry_point
def save(path: Any, tree: Any, *, step: int | None = None, async_: bool = False, keep: int | None = None) -> None:
    """Save a tree as the checkpoint of a step, in the folder ``path/step-N``.

    The folder appears under its name when everything is on the disk. A save that fails or is killed leaves earlier
    checkpoints as they are, and what it has written goes with the next save. A checkpoint of the same step is replaced
    at once.

    With several MPI ranks (:mod:`shardwise.mpi`), all ranks call it with the same tree and a path on a file system that
    they share. Each distinct shard is written once, by the rank of its first owner; rank 0 writes NumPy arrays, which
    must be equal on all ranks.

    Args:
        path: the folder of the checkpoints; it is made if it does not exist.
        tree: a tree of :class:`Array`, arrays that ``np.asarray`` takes, random keys, Python numbers, strings and
            bytes.
        step: the number of the step, not below one that is in the folder. To go on from an earlier step, remove the
            folders of the later ones, or save in another folder. Default: 0, in a folder without other steps.
        async_: return after the arrays are held, and write in a thread. Later writes to NumPy arrays, and donation of
            an :class:`Array`, do not change what is saved. The next save waits for this one and raises its error, as
            does :func:`wait_until_saved`; at exit, an error makes the exit status 1.
        keep: the number of steps to keep: this one, and the newest ones before it. Default: all.

    Raises:
        DTypeError: a leaf that is none of these, or a dict key that is not a plain value.
        ValueError: not a step, a path or a number. TypeError: not a path.
        OSError: the disk is full, or the folder cannot be written; with the ``errno`` of the operating system.
        CheckpointError: the folder has a newer step, or numbered steps and no ``step`` is given; or ``path`` is itself
        the folder of a step. Nothing is removed. DeletedArrayError: a leaf was deleted or donated.
        RecursionError: a tree of too many levels.
        RankMismatchError: the ranks pass different trees.
        UnsupportedError: in a traced function, or ``async_`` on ranks of an MPI library without threads.

    >>> import tempfile
    >>> import shardwise as sw
    >>> folder = tempfile.TemporaryDirectory()
    >>> w = sw.device_put(np.arange(6.0), sw.NamedSharding(sw.Mesh({"x": 4}), sw.P("x")))
    >>> save(folder.name, {"w": w, "epoch": 3}, step=100)
    >>> sw.latest(folder.name), sw.load(folder.name)
    (100, {'epoch': 3, 'w': Array([0., 1., 2., 3., 4., 5.], dtype=float64)})
    >>> folder.cleanup()
    """
    folder = checked_path("save", path).absolute()
    number = 0 if step is None else checked_step("save", step)
    in_thread = switch("save", "async_", async_, False)
    if keep is not None and not is_integer(keep, 1):
        raise ValueError(message("save", "keep must be a number of steps of at least 1, or None", shown(keep)))
    if current_trace() is not None:
        way_out = "return the values, and save them outside"
        raise UnsupportedError(message("save", "must not be called in a traced function", None, way_out))
    processes = current_processes()
    if in_thread and processes is not None and not processes.has_threads:
        way_out = "save without async_, or use an MPI library with MPI_THREAD_MULTIPLE"
        raise UnsupportedError(message("save", "async_ needs an MPI library with threads", None, way_out))
    background.wait()
    label = f"save of step {number} in {folder}"
    team = Team("save", folder, label)
    with named_trees("save"):
        manifest, arrays = _described(tree, number)
        text = manifest_bytes(manifest)
    if processes is not None:
        plain = {f"tree{leaf['name']}": x for leaf, x in zip(manifest.leaves, arrays) if isinstance(x, np.ndarray)}
        program = f"{folder}{keep}{in_thread}".encode(errors="surrogateescape") + text
        processes.begin("save", program, plain)()
    saving = _Save(folder, manifest, arrays, None if keep is None else int(keep), team, step is not None)
    if not in_thread:
        with team.waiting():
            saving.run()
        return
    saving.snapshot()
    background.start(saving.run, label, processes)


@entry_point
def wait_until_saved() -> None:
    """Wait until the asynchronous :func:`save` of this process is on the disk. Raises its error.

    With several MPI ranks, all of them call it.
    """
    background.wait()


class _Save:
    """One save on one rank. All ranks take the same steps."""

    def __init__(
        self, path: Path, manifest: Manifest, arrays: list[Any], keep: int | None, team: Team, is_numbered: bool
    ) -> None:
        self._path = path
        self._manifest = manifest
        self._arrays = arrays
        self._keep = keep
        self._team = team
        self._is_numbered = is_numbered
        self._draft: Draft | None = None  # of rank 0
        with team.waiting():
            folder = team.together(self._begin)[0]
        assert folder is not None
        self._folder: Path = folder

    def snapshot(self) -> None:
        """Hold the arrays as they are now.

        An Array shares its buffers, which no donation overwrites while they have two owners. NumPy arrays are copied.
        """
        self._arrays = [x.copy() if isinstance(x, Array) else None if x is None else np.array(x) for x in self._arrays]

    def run(self) -> None:
        """Write, and publish when all ranks have written."""
        try:
            written = self._team.together(lambda: write_blocks(self._folder, self._team.rank, self._arrays))
            self._arrays = []
            self._team.together(lambda: self._finish(written))
        except BaseException:
            if self._draft is not None:
                self._draft.discard()
            raise

    def _begin(self) -> Path | None:
        if self._team.rank != 0:
            return None
        expect_no_step("save", self._path)
        expect_newest(self._path, self._manifest.step if self._is_numbered else None)
        remove_leftovers(self._path)
        self._draft = Draft(self._path, self._manifest.step)
        return self._draft.folder

    def _finish(self, written: list[Written]) -> None:
        """Write the manifest and publish: on rank 0, after all ranks reported that their blocks are on the disk."""
        draft = self._draft
        if draft is None:
            return
        for rank, (size, blocks) in enumerate(written):
            if blocks:
                self._manifest.files[rank] = size
            for leaf, number, offset, crcs in blocks:
                self._manifest.leaves[leaf]["blocks"][number] = [rank, offset, crcs]
        missing = [leaf["name"] for leaf in self._manifest.leaves if None in leaf.get("blocks", ())]
        if missing:
            way_out = "call it on all ranks of the array, outside of sw.mpi.local()"
            got = f"none with some shards of tree{missing[0]}"
            raise CheckpointError(message("save", "all shards must be on the ranks that save", got, way_out))
        with named_trees("save"):
            write_all(draft.manifest, manifest_bytes(self._manifest))
        sync_file(draft.manifest)
        draft.publish()
        self._draft = None
        keep_newest(self._path, self._manifest.step, self._keep)


# ---- leaves ---------------------------------------------------------------------------------------------------------


def _described(tree: Any, step: int) -> tuple[Manifest, list[Any]]:
    """The manifest without blocks, and for each leaf its array, or None for a plain value."""
    text, leaves = encoded_tree(tree)
    meshes: list[str] = []
    entries: list[dict[str, Any]] = []
    arrays: list[Any] = []
    for name, leaf in leaves:
        array = None if is_value(leaf) else _array_of(name, leaf)
        entry: dict[str, Any] = {"name": name, "kind": "value"}
        if array is None:
            entry["value"] = encoded_value(leaf)
        else:
            entry |= _array_entry(leaf, array, meshes)
        entries.append(entry)
        arrays.append(array)
    names = [entry["name"] for entry in entries]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DTypeError(message("save", "each leaf must have a name of its own", f"two leaves {twice}"))
    return Manifest(step, text, entries, [json.loads(mesh) for mesh in meshes], {}, CHUNK_BYTES), arrays


def _array_of(name: str, leaf: Any) -> Any:
    """The leaf as an Array or a NumPy array of a dtype of programs, in the machine's byte order."""
    if isinstance(leaf, Array):
        with named_leaf("save", f"tree{name}"):
            leaf.block_until_ready()
        return leaf
    array = None if isinstance(leaf, Tracer) else numbers_of(leaf)
    if array is None:
        rule = "leaves must be arrays of numbers, Python numbers, strings or bytes"
        way_out = way_to_numbers(leaf) or "take it out of the tree"
        raise DTypeError(message("save", rule, f"{described(leaf)} for tree{name}", way_out))
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _array_entry(leaf: Any, array: Any, meshes: list[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "kind": "scalar" if isinstance(leaf, np.generic) else "numpy",
        "dtype": dtype_name(array.dtype),
    }
    if isinstance(array, Array):
        mesh = array.sharding.mesh.to_json()
        if mesh not in meshes:
            meshes.append(mesh)
        entry |= {"kind": "array", "mesh": meshes.index(mesh), "sharding": array.sharding.text(array.ndim)}
    block = block_shape(array)
    count = int(np.prod([-(-size // part) for size, part in zip(array.shape, block)], dtype=np.int64))
    return {**entry, "shape": list(array.shape), "block": block, "blocks": [None] * count}
