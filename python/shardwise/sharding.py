# SPDX-License-Identifier: Apache-2.0
"""Partition specs and shardings: which mesh axes split which dims.

One form stands behind all of them, Shardy's: per dim an ordered list of axes (or sub-axes), open or closed.

>>> mesh = Mesh({"data": 4, "model": 2})
>>> NamedSharding(mesh, P("data", None)).text(2)
'[{"data"}, {}]'
>>> NamedSharding(mesh, P(open("model"), None)).text(2)
'[{"model", ?}, {}]'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Union

import numpy as np

from . import _core
from .errors import ShapeError, ShardingError, message
from .mesh import Mesh

__all__ = ["NamedSharding", "OpenDim", "P", "PartitionSpec", "open", "sub"]

Axis = Union[str, "SubAxis"]


class SubAxis:
    """Some digits of an axis: ``sub("x", pre=2, size=4)`` is Shardy's ``"x":(2)4``."""

    __slots__ = ("name", "pre", "size")

    def __init__(self, name: str, pre: int, size: int) -> None:
        self.name, self.pre, self.size = name, pre, size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubAxis) and (self.name, self.pre, self.size) == (other.name, other.pre, other.size)

    def __hash__(self) -> int:
        return hash((self.name, self.pre, self.size))

    def __repr__(self) -> str:
        return f"sub({self.name!r}, pre={self.pre}, size={self.size})"


def sub(name: str, *, pre: int, size: int) -> SubAxis:
    """The digits of axis ``name`` behind the first ``pre`` parts, ``size`` parts in all (Shardy's sub-axis).

    The axis size must be a multiple of ``pre * size``; a mesh checks that when the axis is used (ShardingError).
    """
    return SubAxis(name, pre, size)


class OpenDim:
    """A dim of a spec that propagation may give further axes; made by :func:`open`."""

    __slots__ = ("axes",)

    def __init__(self, axes: tuple[Axis, ...]) -> None:
        self.axes = axes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenDim) and self.axes == other.axes

    def __hash__(self) -> int:
        return hash(("open", self.axes))

    def __repr__(self) -> str:
        return f"open({', '.join(map(repr, self.axes))})"


def open(*axes: Axis) -> OpenDim:
    """A dim sharded over ``axes`` that propagation may shard further (Shardy's ``{"x", ?}``).

    >>> P(open("x"), open())
    P(open('x'), open())
    """
    return OpenDim(axes)


class PartitionSpec:
    """Per dim the axes that split it: None, an axis, a tuple of axes (major to minor), or :func:`open`. Alias ``P``.

    As in JAX a spec may be shorter than the array's shape; the remaining dims are not sharded. Immutable, hashable, and
    a leaf of trees; not a tuple. A tuple of one axis is that axis, an empty one None.

    >>> P("data", None, ("x", "y"), ("z",))
    P('data', None, ('x', 'y'), 'z')
    """

    __slots__ = ("_dims",)

    def __init__(self, *dims: Axis | Sequence[Axis] | OpenDim | None) -> None:
        for dim in dims:
            axes = dim if isinstance(dim, (tuple, list)) else (dim,)
            for axis in axes:
                if not (axis is None or isinstance(axis, (str, SubAxis, OpenDim))) or (axis is None and axes is dim):
                    raise ShardingError(
                        message("P", "a dim must be None, an axis name, a tuple of names, or open(...)", repr(dim))
                    )
        self._dims = tuple(_one_form(dim) for dim in dims)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dims)

    def __len__(self) -> int:
        return len(self._dims)

    def __getitem__(self, index: int) -> Any:
        return self._dims[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self._dims == other._dims

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self._dims))})"


P = PartitionSpec


def _one_form(dim: Any) -> Any:
    if not isinstance(dim, (tuple, list)):
        return dim
    return None if not dim else dim[0] if len(dim) == 1 else tuple(dim)


def _core_axis(axis: Axis) -> Any:
    return (axis.name, axis.pre, axis.size) if isinstance(axis, SubAxis) else axis


def _core_dim(dim: Any) -> tuple[list[Any], bool, int | None]:
    if dim is None:
        return [], False, None
    if isinstance(dim, OpenDim):
        return [_core_axis(axis) for axis in dim.axes], True, None
    axes = dim if isinstance(dim, tuple) else (dim,)
    return [_core_axis(axis) for axis in axes], False, None


def core_sharding(mesh: Mesh, spec: PartitionSpec, ndim: int) -> _core.mesh.Sharding:
    """The extension's TensorSharding of ``spec`` on an array of ``ndim`` dims."""
    if len(spec) > ndim:
        raise ShardingError(
            message("P", f"a spec for {ndim} dims must have at most {ndim} entries", repr(spec), "drop the extra ones")
        )
    dims = [_core_dim(dim) for dim in spec] + [([], False, None)] * (ndim - len(spec))
    return _core.mesh.Sharding.make(mesh._core, dims)


def spec_of(core: _core.mesh.Sharding) -> PartitionSpec:
    """The spec that says the same as the extension's TensorSharding; open dims keep ``open``."""
    sizes = dict(zip(core.mesh.axis_names, core.mesh.axis_sizes))
    dims: list[Any] = []
    for axes, is_open, _ in core.dims:
        refs = tuple(
            name if (pre == 1 and size == sizes[name]) else SubAxis(name, pre, size) for name, pre, size in axes
        )
        if is_open:
            dims.append(OpenDim(refs))
        else:
            dims.append(None if not refs else refs[0] if len(refs) == 1 else refs)
    return PartitionSpec(*dims)


class NamedSharding:
    """A mesh and a spec: how the devices hold one array, as in JAX.

    Args:
        mesh: the devices.
        spec: a :class:`PartitionSpec`, or Shardy text such as ``'[{"x":(1)2, ?}, {}], replicated={"y"}'``.

    >>> NamedSharding(Mesh({"x": 4}), P("x"))
    NamedSharding(mesh=Mesh('x': 4), spec=P('x'))
    """

    __slots__ = ("_fixed", "mesh", "spec")

    def __init__(self, mesh: Mesh, spec: PartitionSpec | str) -> None:
        if not isinstance(mesh, Mesh):
            raise ShardingError(message("NamedSharding", "mesh must be a Mesh", repr(mesh)))
        if not isinstance(spec, (PartitionSpec, str)):
            raise ShardingError(message("NamedSharding", "spec must be P(...) or text", repr(spec)))
        self.mesh = mesh
        self._fixed: _core.mesh.Sharding | None = None
        if isinstance(spec, str):
            self._fixed = _core.mesh.Sharding.parse(mesh._core, spec)
            self.spec = spec_of(self._fixed)
        else:
            self.spec = spec

    @classmethod
    def _wrap(cls, core: _core.mesh.Sharding) -> NamedSharding:
        sharding = cls.__new__(cls)
        sharding.mesh = Mesh._wrap(core.mesh)
        sharding.spec = spec_of(core)
        sharding._fixed = core if sharding._says_more(core) else None
        return sharding

    def _says_more(self, core: _core.mesh.Sharding) -> bool:
        """Whether ``core`` has what a spec does not: replicated or unreduced axes, priorities."""
        return core_sharding(self.mesh, self.spec, core.ndim) != core

    def core(self, ndim: int) -> _core.mesh.Sharding:
        """The extension's form for an array of ``ndim`` dims; raises ShardingError when they do not fit."""
        if self._fixed is None:
            return core_sharding(self.mesh, self.spec, ndim)
        if self._fixed.ndim != ndim:
            raise ShardingError(
                message("NamedSharding", f"an array of {ndim} dims needs as many entries", self._fixed.dims_text())
            )
        return self._fixed

    def text(self, ndim: int | None = None) -> str:
        """Shardy's text of the dims: ``[{"data"}, {}]``."""
        return self.core(len(self.spec) if ndim is None else ndim).dims_text()

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one device's block; the last shards of an uneven dim hold less."""
        return tuple(self.core(len(global_shape)).local_shape(tuple(global_shape)))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[int, tuple[slice, ...]]:
        """The slice of the array that each device id holds."""
        slices = self.core(len(global_shape)).slices(tuple(global_shape))
        return {
            device: tuple(slice(start, start + size) for start, size in dims)
            for device, dims in zip(self.mesh.device_ids, slices)
        }

    def is_equivalent_to(self, other: NamedSharding, ndim: int) -> bool:
        """Whether both hold an array of ``ndim`` dims in the same way; as in JAX."""
        return self.core(ndim) == other.core(ndim)

    def _key(self) -> tuple[Any, ...]:
        dims = self.spec._dims
        while dims and dims[-1] is None:
            dims = dims[:-1]
        return (self.mesh, dims, self._fixed.text() if self._fixed and self._says_more(self._fixed) else None)

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedSharding, (self.mesh, self.spec if self._fixed is None else _short_text(self._fixed))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        spec = repr(self.spec) if self._fixed is None else repr(_short_text(self._fixed))
        return f"NamedSharding(mesh={self.mesh!r}, spec={spec})"


def _short_text(core: _core.mesh.Sharding) -> str:
    """Shardy's text without the mesh, which :class:`NamedSharding` reads: ``[{"x"}, {}], replicated={"y"}``."""
    return core.text().partition(", ")[2].removesuffix(">")


def axes_for_parts(mesh: Mesh, parts: int) -> tuple[Axis, ...]:
    """The major axes (and a first part of one) whose sizes multiply to ``parts``: where GShard's partition i lies.

    Raises:
        ShardingError: ``parts`` does not divide the devices, or no prefix of the axes has that many parts.
    """
    if parts < 1 or mesh.size % parts:
        raise ShardingError(
            message(
                "split",
                f"the number of partitions must divide the {mesh.size} devices of {mesh!r}",
                parts,
                f"use one of {[n for n in range(1, mesh.size + 1) if mesh.size % n == 0][:12]} or name the axes",
            )
        )
    axes: list[Axis] = []
    left = parts
    for name, size in mesh.shape.items():
        if left == 1:
            break
        if left % size == 0:
            axes.append(name)
            left //= size
        elif size % left == 0:
            axes.append(SubAxis(name, 1, left))
            left = 1
        else:
            raise ShardingError(
                message(
                    "split",
                    f"{parts} partitions must be a product of the leading axes of {mesh!r}",
                    parts,
                    "name the axes to split over, or use a mesh whose sizes nest with the count",
                )
            )
    return tuple(axes)


def assignment_dims(mesh: Mesh, assignment: np.ndarray) -> list[tuple[Axis, ...]]:
    """Axes per dim of a GShard device assignment (appendix A.3): ``assignment[i, j, …]`` is the device of that tile.

    The assignment must be a reordering of the mesh's digits: each dim's tiles lie at a product of sub-axes.

    Raises:
        ShardingError: other device orders, or ids that are not one per device.
    """
    logical = {device: index for index, device in enumerate(mesh.device_ids)}
    flat = assignment.reshape(-1)
    if sorted(int(d) for d in flat) != sorted(mesh.device_ids):
        raise ShardingError(
            message("shard", f"a device assignment must name each device of {mesh!r} once", f"{flat.tolist()[:16]}")
        )
    grid = np.array([logical[int(d)] for d in flat]).reshape(assignment.shape)
    dims: list[tuple[Axis, ...]] = []
    model = np.zeros((1,) * grid.ndim, dtype=np.int64)
    for dim in range(grid.ndim):
        line = np.moveaxis(grid, dim, 0).reshape(grid.shape[dim], -1)[:, 0] - grid.flat[0]
        digits = _digits_of_line(mesh, line)
        shape = [1] * grid.ndim
        shape[dim] = -1
        model = model + line.reshape(shape)
        dims.append(digits)
    if grid.flat[0] != 0 or not np.array_equal(model, grid):
        raise ShardingError(
            message(
                "shard",
                f"a device assignment must follow the axes of {mesh!r}",
                f"{assignment.tolist()}",
                "make a mesh with these device_ids and use P(...)",
            )
        )
    return dims


def _digits_of_line(mesh: Mesh, line: np.ndarray) -> tuple[Axis, ...]:
    """The (sub-)axes, major to minor, whose mixed-radix count gives the offsets in ``line``."""
    strides: dict[int, tuple[str, int, int]] = {}  # logical stride of a prime digit → (name, pre, size)
    stride = mesh.size
    for name, size in mesh.shape.items():
        pre, left = 1, size
        while left > 1:
            prime = next(p for p in range(2, left + 1) if left % p == 0)
            stride //= prime
            strides[stride] = (name, pre, prime)
            pre *= prime
            left //= prime
    digits: list[tuple[str, int, int]] = []
    step = 1
    while step < len(line):  # minor to major: line[step] is the stride of the next digit
        found = strides.get(int(line[step]))
        if found is None or len(line) % (step * found[2]):
            raise ShardingError(
                message("shard", f"a device assignment must follow the axes of {mesh!r}", line.tolist())
            )
        digits.insert(0, found)
        step *= found[2]
    merged: list[tuple[str, int, int]] = []
    for name, pre, size in digits:
        if merged and merged[-1][0] == name and merged[-1][1] * merged[-1][2] == pre:
            merged[-1] = (name, merged[-1][1], merged[-1][2] * size)
        else:
            merged.append((name, pre, size))
    sizes = mesh.shape
    return tuple(n if (p == 1 and s == sizes[n]) else SubAxis(n, p, s) for n, p, s in merged)


def check_ndim(what: str, dim: int, ndim: int) -> int:
    """``dim`` as a non-negative index of an array of ``ndim`` dims; ShapeError outside."""
    if not -ndim <= dim < ndim:
        raise ShapeError(message(what, f"dim must be in [{-ndim}, {ndim})", dim))
    return dim % ndim
