# SPDX-License-Identifier: Apache-2.0
"""Runs functions as plain NumPy, as the reference for the partitioned runs of :mod:`shardwise.testing`.

Inside ``with unpartitioned(mesh):``, a jitted function runs its NumPy code, an :class:`Array` is gathered, ``vmap``
loops over examples, and gradients are checked against finite differences.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ._core.ir import Module, Op, Region
from .errors import UnsupportedError, message
from .shardings.mesh import Mesh
from .trees import flatten, unflatten

__all__ = ["as_numpy", "refuse_manual_regions", "unpartitioned", "unpartitioned_mesh"]


class _State(threading.local):
    mesh: Mesh | None = None


_state = _State()


def unpartitioned_mesh() -> Mesh | None:
    """The mesh whose annotations are ignored inside :func:`unpartitioned`; None outside."""
    return _state.mesh


@contextmanager
def unpartitioned(mesh: Mesh) -> Iterator[None]:
    """Run jitted functions, transforms and Arrays of this thread as plain NumPy. ``mesh`` resolves annotations."""
    before, _state.mesh = _state.mesh, mesh
    try:
        yield
    finally:
        _state.mesh = before


def as_numpy(tree: Any) -> Any:
    """The tree with a NumPy array in place of each :class:`Array`."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [np.asarray(x) if hasattr(x, "__shardwise_array__") else x for x in leaves])


def refuse_manual_regions(module: Module) -> None:
    """Raise UnsupportedError for a program whose functions compute on the shards of a mesh."""
    if any(op.name == "sdy.manual_computation" for f in module.functions for op in _ops_of(f.body)):
        rule = "a manual region (sw.manual, sw.shard_map) has no unpartitioned meaning"
        way_out = "compare the result of sw.jit(f) with NumPy code of your own"
        got = "one, whose function computes on the shards of a mesh"
        raise UnsupportedError(message("assert_matches_unpartitioned", rule, got, way_out))


def _ops_of(region: Region) -> Iterator[Op]:
    """The ops of a region, and those in their regions."""
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from _ops_of(inner)
