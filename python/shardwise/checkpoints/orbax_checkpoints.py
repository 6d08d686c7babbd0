# SPDX-License-Identifier: Apache-2.0
"""Reads checkpoints of Orbax, through Orbax."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..dtypes import dtype_name
from ..errors import CheckpointError, message
from ..interop.optional import jax, needs_orbax
from ..process.traceback_filtering import entry_point
from ..trees import flatten, leaf_paths
from ..trees.registry import DictKey, GetAttrKey, SequenceKey
from .files import explained_errors
from .folders import checked_path
from .placing import checked_mesh, placed_tree
from .structure import encoded_value, is_value

__all__ = ["load_orbax", "plain_keys"]

_MARKS = ("_METADATA", "_CHECKPOINT_METADATA", "manifest.ocdbt")
_ITEM = "default"  # of a CheckpointManager with one item


@entry_point
def load_orbax(path: Any, like: Any = None, mesh: Any = None, shardings: Any = None) -> Any:
    """Load a checkpoint of `orbax.checkpoint`, on any mesh. It needs the packages ``orbax-checkpoint`` and ``jax``.

    Each process reads all arrays whole. :func:`save` writes the loaded tree in Shardwise's own format.

    Args:
        path: the folder of a checkpoint, or of a step of a ``CheckpointManager``.
        like: a tree of its leaves, as for :func:`load`. Orbax keeps no classes: a named tuple of ``like`` takes the
            dict of its fields, and a tuple takes a list. Default: dicts and lists of NumPy arrays and numbers.
        mesh: the mesh of specs and text in ``shardings``; without ``shardings`` and ``like``, all arrays are replicated
            on it. Default: the default mesh, for specs and text.
        shardings: a prefix tree of shardings, as for :func:`load`. Default: those of ``like``.

    Returns:
        The tree.

    Raises:
        UnsupportedError: Orbax is not installed, or the call is in a traced function. FileNotFoundError: no checkpoint.
        CheckpointError: Orbax cannot read it, or ``like`` has other leaves. ShardingError, MeshError: a sharding does
        not fit.
    """
    what = "load_orbax"
    folder = checked_path(what, path)
    mesh = checked_mesh(what, mesh)
    orbax = needs_orbax(what)
    with explained_errors(what, folder):
        found = sorted(os.listdir(folder))
    if _ITEM in found and (folder / _ITEM).is_dir():
        folder = folder / _ITEM
        found = sorted(os.listdir(folder))
    if not any(mark in found for mark in _MARKS):
        way_out = "pass the folder of a step" if any(name.isdigit() for name in found) else "load it with sw.load"
        raise FileNotFoundError(message(what, "path must be a checkpoint of Orbax", str(folder), way_out))
    saved = _restored(orbax, folder)
    leaves = flatten(saved)[0]
    entries = [_entry(i, name, leaf) for i, (name, leaf) in enumerate(zip(_plain_names(saved), leaves))]
    shardings = mesh if like is None and shardings is None else shardings
    return placed_tree(what, saved, entries, like, mesh, shardings, _plain_names)


def _restored(orbax: Any, folder: Path) -> Any:
    """The tree with NumPy arrays: no device of JAX is needed for them."""
    numbers = (orbax.metadata.value.ScalarMetadata, orbax.metadata.value.StringMetadata)

    def arguments(metadata: Any) -> Any:
        return orbax.RestoreArgs() if isinstance(metadata, numbers) else orbax.RestoreArgs(restore_type=np.ndarray)

    try:
        with orbax.PyTreeCheckpointer() as checkpointer:
            metadata = checkpointer.metadata(folder.absolute()).item_metadata.tree
            wanted = jax.tree.map(arguments, metadata, is_leaf=lambda x: not isinstance(x, (dict, list, tuple)))
            return checkpointer.restore(folder.absolute(), restore_args=wanted)
    except Exception as error:
        lines = str(error).splitlines() or [""]
        got = f"{type(error).__name__}: {lines[0][:200]} for {folder}"
        raise CheckpointError(message("load_orbax", "Orbax must be able to read the checkpoint", got)) from error


def _entry(number: int, name: str, leaf: Any) -> dict[str, Any]:
    if is_value(leaf):
        return {"number": number, "name": name, "kind": "value", "value": encoded_value(leaf)}
    described = {"dtype": dtype_name(leaf.dtype), "shape": leaf.shape, "array": None}
    return {"number": number, "name": name, "kind": "numpy", **described}


def _plain_names(tree: Any) -> list[str]:
    """The names of leaves, where fields and indices are keys: Orbax keeps no classes."""
    return ["".join(f"[{key!r}]" for key in plain_keys(path)) for path in leaf_paths(tree)]


def plain_keys(path: tuple[Any, ...]) -> list[str]:
    """The keys, fields and indices on the way to a leaf as texts."""
    return [_key(step) for step in path]


def _key(step: Any) -> str:
    if isinstance(step, DictKey):
        return str(step.key)
    if isinstance(step, GetAttrKey):
        return step.name
    return str(step.idx) if isinstance(step, SequenceKey) else str(step)
