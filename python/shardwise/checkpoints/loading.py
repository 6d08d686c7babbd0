# SPDX-License-Identifier: Apache-2.0
"""``sw.load`` and ``sw.latest``: a tree from a checkpoint, on any mesh and number of ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .._core.mesh import Sharding
from .._core.runtime import ShardedArray
from ..array import Array
from ..dtypes import numpy_dtype
from ..errors import CheckpointError, Error, message, naming
from ..placement import settled
from ..process.foreign import native
from ..process.processes import place_on
from ..process.traceback_filtering import entry_point
from ..shardings.mesh import Mesh
from ..shardings.sharding import NamedSharding
from ..trees import broadcast_prefix, flatten, leaf_names, unflatten
from ..unpartitioned import unpartitioned_mesh
from . import background
from .folders import checked_path, checked_step, newest, reading
from .likeness import matched
from .manifest import ArrayEntry, Manifest, read_manifest
from .placing import as_example, checked_mesh, sharding_for
from .reading import BlockFiles, Target
from .structure import decoded_tree, decoded_value
from .team import Team
from .tiles import held_tiles

__all__ = ["latest", "load"]


@entry_point
def latest(path: Any) -> int | None:
    """The number of the newest step that is saved in a folder; None if there is none, or no folder.

    Waits for an asynchronous save of this process. With several MPI ranks, all of them call it, and get one answer.

    Raises:
        OSError: ``path`` is not a folder, or cannot be read. ValueError, TypeError: not a path.
    """
    folder = checked_path("latest", path)
    background.settle()
    team = Team("latest", folder, f"latest step in {folder}")
    with team.waiting():
        found = team.together(lambda: newest(folder) if team.rank == 0 else None)[0]
    return None if found is None else found.step


@entry_point
def load(path: Any, like: Any = None, mesh: Any = None, shardings: Any = None, *, step: int | None = None) -> Any:
    """Load a checkpoint that :func:`save` wrote, on any mesh and any number of ranks.

    Each process reads only the parts of the files that its devices need, and checks them. Beside the arrays, that takes
    1 MiB of memory.

    Args:
        path: the folder that was passed to :func:`save`, or one step's folder in it.
        like: a tree that the result is like: an :class:`Array` gives its sharding, a :class:`ShapeDtypeStruct` its
            sharding if it has one, any other array becomes a NumPy array, and a Python number takes an array without
            dims as well. Default: dicts, lists, tuples and None as they were saved, with a dict of fields for each
            object of another class.
        mesh: the mesh of all arrays whose sharding has none. Arrays without ``shardings`` keep their axes, and the
            sub-axes that fit it; where one does not fit, the whole axis takes its place. Default: for specs and text in
            ``shardings``, the default mesh; for arrays, that of ``like`` or the one that they were saved on.
        shardings: a prefix tree of shardings, as for :func:`device_put`: a :class:`NamedSharding`, a spec, text, or a
            mesh to replicate on. None or :data:`UNSPECIFIED`: as ``like`` says, else as saved.
        step: the step to load. Default: the newest.

    Returns:
        The tree. What was saved as an :class:`Array` is an Array, and what was saved as a NumPy array is one, unless
        ``like`` or ``shardings`` say otherwise.

    Raises:
        FileNotFoundError: no such checkpoint. CheckpointError: files are missing, cut short or damaged, or of a newer
        format, or ``like`` has other leaves; the message lists up to 8 of a kind. ShardingError, MeshError: a sharding
        does not fit. UnsupportedError: in a traced function.

    >>> import tempfile
    >>> import shardwise as sw
    >>> folder = tempfile.TemporaryDirectory()
    >>> sw.save(folder.name, {"w": sw.device_put(np.arange(6.0), sw.NamedSharding(sw.Mesh({"x": 4}), sw.P("x")))})
    >>> loaded = load(folder.name, mesh=sw.Mesh({"x": 3}))
    >>> loaded["w"].sharding, [len(shard.data) for shard in loaded["w"].addressable_shards]
    (NamedSharding(mesh=Mesh('x': 3), spec=P('x')), [2, 2, 2])
    >>> folder.cleanup()
    """
    folder = checked_path("load", path)
    step = None if step is None else checked_step("load", step)
    mesh = checked_mesh("load", mesh)
    background.settle()
    label = f"load of {folder}"
    team = Team("load", folder, label)
    if team.processes is None:
        return team.together(lambda: _loaded(folder, step, like, mesh, shardings))[0]
    team.processes.begin("load", f"{folder} {step}".encode(errors="surrogateescape"), {})()
    with team.waiting():
        return _loaded_on_ranks(team, folder, step, like, mesh, shardings)


def _loaded_on_ranks(team: Team, path: Path, step: int | None, like: Any, mesh: Mesh | None, shardings: Any) -> Any:
    """Rank 0 chooses the folder, and holds it until all ranks have read."""
    is_first = team.rank == 0
    held = reading("load", path, step)
    folder: Path | None = team.together(lambda: held.__enter__()[0] if is_first else None)[0]
    assert folder is not None
    found: list[Any] = []
    try:
        team.together(lambda: found.append(_loaded(folder, None, like, mesh, shardings)))
    finally:
        if is_first:
            held.__exit__(None, None, None)
    return found[0]


def _loaded(path: Path, step: int | None, like: Any, mesh: Mesh | None, shardings: Any) -> Any:
    with reading("load", path, step) as (folder, data, way_out):
        manifest = read_manifest("load", data, folder, way_out)
        files = BlockFiles(folder, manifest, way_out)
        try:
            files.check()
            return _tree(manifest, files, like, mesh, shardings, way_out)
        finally:
            files.close()


class _Slot:
    """The place of a leaf in the saved tree."""

    def __init__(self, number: int) -> None:
        self.number = number


def _tree(manifest: Manifest, files: BlockFiles, like: Any, mesh: Mesh | None, shardings: Any, way_out: str) -> Any:
    if like is None:
        try:
            tree = decoded_tree(manifest.tree, _Slot)
            slots, structure = flatten(tree)
            entries = [manifest.leaves[slot.number] for slot in slots]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
            rule = "the manifest must describe a tree"
            raise CheckpointError(message("load", rule, f"{type(error).__name__} {error}", way_out)) from None
        examples: list[Any] = [None] * len(slots)
    else:
        tree = like
        examples, structure = flatten(like)
        examples = list(map(native, examples))  # shapes of JAX
        entries = matched("load", leaf_names(like), examples, manifest.leaves)
    specs = broadcast_prefix(shardings, tree, "load")
    leaves = [
        _leaf(entry, example, spec, mesh, manifest, files) for entry, example, spec in zip(entries, examples, specs)
    ]
    return unflatten(structure, leaves)


def _leaf(
    entry: dict[str, Any], example: Any, spec: Any, mesh: Mesh | None, manifest: Manifest, files: BlockFiles
) -> Any:
    if "array" not in entry:
        return decoded_value(entry["value"])
    array: ArrayEntry = entry["array"]
    with naming(f"load of tree{entry['name']}"):
        sharding = sharding_for("load", entry["name"], example, spec, mesh, lambda: _saved_sharding(entry, manifest))
        core = None if sharding is None else settled(sharding.core(len(array.shape)))
        if core is not None:
            core.verify(array.shape)
            core.mesh.expect_runnable("load")
            if unpartitioned_mesh() is None:
                return _sharded(entry["name"], array, core, files)
    whole = np.empty(array.shape, numpy_dtype(array.dtype))
    files.read(entry["name"], array, [Target(tuple((0, size) for size in array.shape), whole)])
    if example is None and entry["kind"] == "scalar":
        return whole[()]
    return as_example(whole, example)


def _saved_sharding(entry: dict[str, Any], manifest: Manifest) -> NamedSharding | None:
    if "mesh" not in entry:
        return None
    try:
        mesh = Mesh.from_json(json.dumps(manifest.meshes[entry["mesh"]]))
        found = NamedSharding(mesh, entry["sharding"])
        found.core(len(entry["shape"])).verify(entry["shape"])
    except Error as error:
        got = f"{entry['sharding']!r} for tree{entry['name']}: {str(error).partition(' (at ')[0]}"
        raise CheckpointError(message("load", "the manifest must describe a sharding", got)) from None
    return found


def _sharded(name: str, array: ArrayEntry, core: Sharding, files: BlockFiles) -> Array:
    """Read the shards of this process's devices into memory that becomes the array's."""
    place = place_on(core.mesh)
    place.devices.expect_uncut(core)
    block = core.local_shape(array.shape)
    tiles = held_tiles(core, place.devices)
    shape, dtype = (len(tiles), *block), numpy_dtype(array.dtype)
    boxes = [tile.box(array.shape, block) for tile in tiles]
    is_even = all(size == part for box in boxes for (_, size), part in zip(box, block))
    blocks = np.empty(shape, dtype) if is_even else np.zeros(shape, dtype)  # padding is zero
    # The ellipsis makes a view also of a block without dims.
    indices: list[Any] = [(i, *[slice(0, size) for _, size in box], ...) for i, box in enumerate(boxes)]
    targets = [Target(box, blocks[index]) for box, index in zip(boxes, indices)]
    files.read(name, array, targets)
    del targets
    return Array(ShardedArray.from_blocks(blocks, array.shape, core, place.devices), place)
