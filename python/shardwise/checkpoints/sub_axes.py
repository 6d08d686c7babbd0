# SPDX-License-Identifier: Apache-2.0
"""The sub-axes of a saved spec on a mesh whose axes have other sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..shardings.mesh import Mesh
from ..shardings.partition_spec import Axis, OpenDim, PartitionSpec, PriorityDim, SubAxis

__all__ = ["spec_on"]


def spec_on(mesh: Mesh, spec: PartitionSpec) -> PartitionSpec:
    """The spec with sub-axes that fit a mesh.

    An axis keeps its sub-axes if its new size is a multiple of all of them. Otherwise, the first dim with one of them
    takes the whole axis, and the other dims lose theirs.

    >>> from shardwise import P, sub
    >>> spec = P(sub("x", pre=2, size=4), (sub("x", pre=1, size=2), "y"))
    >>> spec_on(Mesh({"x": 16, "y": 3}), spec)
    P(sub('x', pre=2, size=4), (sub('x', pre=1, size=2), 'y'))
    >>> spec_on(Mesh({"x": 6, "y": 3}), spec)
    P('x', 'y')
    """
    entries = [*(_axes_of(dim) for dim in spec), spec.replicated, spec.unreduced]
    cut = {
        axis.name
        for axes in entries
        for axis in axes
        if isinstance(axis, SubAxis) and axis.name in mesh.shape and mesh.shape[axis.name] % (axis.pre * axis.size)
    }
    taken: set[str] = set()

    def fitting(axes: Sequence[Axis]) -> Iterator[Axis]:
        for axis in axes:
            name = axis.name if isinstance(axis, SubAxis) else axis
            if name not in cut:
                yield axis
            elif name not in taken:
                taken.add(name)
                yield name

    dims = [_with_axes(dim, tuple(fitting(_axes_of(dim)))) for dim in spec]
    replicated, unreduced = tuple(fitting(spec.replicated)), tuple(fitting(spec.unreduced))
    reducer = spec.reducer if unreduced else "sum"
    return PartitionSpec(*dims, replicated=replicated, unreduced=unreduced, reducer=reducer)


def _axes_of(dim: Any) -> tuple[Axis, ...]:
    if isinstance(dim, PriorityDim):
        return _axes_of(dim.dim)
    if isinstance(dim, OpenDim):
        return dim.axes
    return () if dim is None else dim if isinstance(dim, tuple) else (dim,)


def _with_axes(dim: Any, axes: tuple[Axis, ...]) -> Any:
    """The dim with other axes, as open as it was; without axes, a closed dim has no priority."""
    if isinstance(dim, PriorityDim):
        inner = _with_axes(dim.dim, axes)
        return PriorityDim(inner, dim.priority) if inner else None
    if isinstance(dim, OpenDim):
        return OpenDim(axes)
    return axes if len(axes) > 1 else axes[0] if axes else None
