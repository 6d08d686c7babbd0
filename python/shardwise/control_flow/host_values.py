# SPDX-License-Identifier: Apache-2.0
"""Leaves of loops that run outside a traced function: NumPy arrays, Arrays and Python numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..array import Array
from ..jit import JitFunction
from ..numpy._primitives import convert
from ..recording.tracing import Trace, Tracer, WeakTracer, recording, refuse_escaped
from ..shardings.mesh import Mesh, default_mesh
from ..trees import flatten, unflatten
from .leaf_types import LeafType, type_of
from .regions import index_dtype, read_row

__all__ = ["Probe", "host_row", "host_value", "host_values", "known_mesh", "probe"]


def host_value(leaf: Any, wanted: LeafType, keeps_weak: bool = True) -> Any:
    """The leaf in this dtype, as a copy that the caller may write into; a weak one as a Python number."""
    if isinstance(leaf, Tracer):
        refuse_escaped(leaf)
    if wanted.weak is not None and keeps_weak:
        return wanted.weak(np.asarray(leaf))
    return leaf if isinstance(leaf, Array) else np.array(leaf, wanted.dtype)[()]


def host_values(leaves: Sequence[Any], types: Sequence[LeafType], keeps_weak: bool = True) -> list[Any]:
    """:func:`host_value` for each leaf."""
    return [host_value(leaf, wanted, keeps_weak) for leaf, wanted in zip(leaves, types)]


def _read(x: Any, i: Any) -> Any:
    return read_row(x, convert(i, index_dtype(x.shape[0])))


_read_traced = JitFunction(_read)  # one program for all rows


def host_row(x: Any, i: int) -> Any:
    """``x[i]`` as a copy."""
    return _read_traced(x, np.int64(i)) if isinstance(x, Array) else np.array(np.asarray(x)[i])[()]


class Probe(Trace):
    """A program that is recorded for the types of its results, and never runs."""

    __slots__ = ()

    def lift(self, x: Any) -> Tracer:
        """An Array from around is an argument, whatever mesh it is on."""
        if hasattr(x, "__shardwise_array__"):
            return self.argument(x.shape, x.dtype)
        return super().lift(x)


def probe(function: Callable[..., Any], trees: tuple[Any, ...]) -> Any:
    """The result of ``function``, recorded for arguments of the types of ``trees``; its leaves are tracers or numbers.

    Raises:
        ShardingError: an annotation in ``function`` needs a mesh, and none is known.
    """
    leaves, structure = flatten(trees)
    trace = Probe("probe", known_mesh(trees))
    with recording(trace):
        tracers = [_argument(trace, type_of("trace", leaf, "an argument")) for leaf in leaves]
        return function(*unflatten(structure, tracers))


def _argument(trace: Trace, leaf: LeafType) -> Tracer:
    x = trace.argument(leaf.shape, leaf.dtype)
    return x if leaf.weak is None else WeakTracer.of(x, leaf.weak)


def known_mesh(trees: tuple[Any, ...]) -> Mesh | None:
    """The mesh of the Arrays among the leaves, or that of :func:`set_mesh`."""
    return next((leaf.sharding.mesh for leaf in flatten(trees)[0] if isinstance(leaf, Array)), default_mesh())
