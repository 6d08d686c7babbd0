# SPDX-License-Identifier: Apache-2.0
"""Shardings: a mesh, and its axes that split each dim.

Internally, all shardings have Shardy's form: for each dim an ordered list of axes or sub-axes, open or closed.

>>> mesh = Mesh({"data": 4, "model": 2})
>>> NamedSharding(mesh, P("data", None)).text(2)
'[{"data"}, {}]'
>>> NamedSharding(mesh, P(open("model"), None)).text(2)
'[{"model", ?}, {}]'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .. import _core
from ..errors import MeshError, ShapeError, ShardingError, is_integer, message, naming, shown
from ..process.foreign import native
from ..process.traceback_filtering import entry_points
from ..viz import sharding_html
from .mesh import Mesh
from .other_meshes import check_same_devices, on_program_mesh
from .partition_spec import Axis, OpenDim, P, PartitionSpec, PriorityDim, SubAxis, open

__all__ = ["UNSPECIFIED", "NamedSharding", "P", "PartitionSpec", "open"]


class _Unspecified:
    """The type of :data:`UNSPECIFIED`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSPECIFIED"

    def __reduce__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED: Final = _Unspecified()
"""A placeholder for a sharding that is left to propagation. The default of ``in_shardings`` and ``out_shardings``."""


def _core_axes(axes: Sequence[Axis]) -> list[Any]:
    return [(axis.name, axis.pre, axis.size) if isinstance(axis, SubAxis) else axis for axis in axes]


def _core_dim(dim: Any) -> tuple[list[Any], bool, int | None]:
    if isinstance(dim, PriorityDim):
        axes, is_open, _ = _core_dim(dim.dim)
        return axes, is_open, dim.priority
    if dim is None:
        return [], False, None
    if isinstance(dim, OpenDim):
        return _core_axes(dim.axes), True, None
    return _core_axes(dim if isinstance(dim, tuple) else (dim,)), False, None


_MOST_DIMS = 256  # as in program text


def shape_of(what: str, shape: Any) -> tuple[int, ...]:
    """Convert a shape or a single size to integers. Raises ShapeError for anything else."""
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else shape
    rule, way_out = "a shape must be of integers that are not negative", "give a tuple such as (8, 16)"
    is_listed = isinstance(sizes, (Sequence, np.ndarray)) and not isinstance(sizes, str)
    if not is_listed or not all(is_integer(size, 0) for size in sizes):
        raise ShapeError(message(what, rule, shown(shape), way_out))
    if not all(size < 2**63 for size in sizes):
        raise ShapeError(message(what, "sizes must be below 2^63", shown(shape)))
    return tuple([int(size) for size in sizes])


def core_sharding(mesh: Mesh, spec: PartitionSpec, ndim: int) -> _core.mesh.Sharding:
    """The extension's TensorSharding of ``spec`` on an array of ``ndim`` dims."""
    if not is_integer(ndim, 0) or ndim > _MOST_DIMS:
        raise ShapeError(message("sharding", f"ndim must be an integer from 0 to {_MOST_DIMS}", shown(ndim)))
    if len(spec) > ndim:
        raise ShardingError(
            message("P", f"a spec for {ndim} dims must have at most {ndim} entries", repr(spec), "drop the extra ones")
        )
    dims = [_core_dim(dim) for dim in spec] + [([], False, None)] * (ndim - len(spec))
    reducer = "" if spec.reducer == "sum" else spec.reducer
    return _core.mesh.Sharding.make(mesh._core, dims, _core_axes(spec.replicated), _core_axes(spec.unreduced), reducer)


def spec_of(core: _core.mesh.Sharding) -> PartitionSpec:
    """The spec of an extension's TensorSharding."""
    sizes = dict(zip(core.mesh.axis_names, core.mesh.axis_sizes))

    def axes_of(refs: Sequence[tuple[str, int, int]]) -> tuple[Axis, ...]:
        return tuple(name if pre == 1 and size == sizes[name] else SubAxis(name, pre, size) for name, pre, size in refs)

    dims: list[Any] = []
    for refs, is_open, priority in core.dims:
        dim: Any = OpenDim(axes_of(refs)) if is_open else axes_of(refs)
        dims.append(dim if priority is None else PriorityDim(_alone(dim), priority))
    return PartitionSpec(
        *dims,
        replicated=axes_of(core.replicated_axes),
        unreduced=axes_of(core.unreduced),
        reducer=core.reducer if core.unreduced else "sum",
    )


def _alone(dim: Any) -> Any:
    return dim[0] if isinstance(dim, tuple) and len(dim) == 1 else dim


@entry_points
class NamedSharding:
    """The layout of an array on a mesh, as in JAX.

    Args:
        mesh: the devices.
        spec: a :class:`PartitionSpec`, or Shardy's text with an entry for each dim, such as
            ``'[{"x":(1)2, ?}p1, {}], replicated={"y"}'``.

    Raises:
        ShardingError: the mesh does not have an axis, or an axis is used twice.
        ParseError: malformed text.
        MeshError: the text names another mesh.

    >>> NamedSharding(Mesh({"x": 4}), P("x"))
    NamedSharding(mesh=Mesh('x': 4), spec=P('x'))
    """

    __slots__ = ("_fixed", "mesh", "spec")

    def __init__(self, mesh: Mesh, spec: PartitionSpec | str) -> None:
        mesh, spec = native(mesh), native(spec)
        if not isinstance(mesh, Mesh):
            raise ShardingError(message("NamedSharding", "mesh must be a Mesh", repr(mesh)))
        if not isinstance(spec, (PartitionSpec, str)):
            raise ShardingError(message("NamedSharding", "spec must be P(...) or text", repr(spec)))
        self.mesh = mesh
        self._fixed: _core.mesh.Sharding | None = None  # text has an entry for each dim
        with naming("NamedSharding"):
            if isinstance(spec, str):
                _refuse_names(spec)
                self._fixed = _on_mesh(_core.mesh.Sharding.parse(mesh._core, spec), mesh)
                self._fixed.verify((1,) * self._fixed.ndim)  # an axis used twice
                self.spec = spec_of(self._fixed)
            else:
                core_sharding(mesh, spec, len(spec))  # an axis that is not in the mesh, or one used twice
                self.spec = spec

    @classmethod
    def _wrap(cls, core: _core.mesh.Sharding) -> NamedSharding:
        sharding = cls.__new__(cls)
        sharding.mesh = Mesh._wrap(core.mesh)
        sharding.spec = spec_of(core)
        sharding._fixed = None
        return sharding

    def core(self, ndim: int) -> _core.mesh.Sharding:
        """The form of the compiled core for an array of ``ndim`` dims. Raises ShardingError if it does not fit."""
        if self._fixed is None:
            return core_sharding(self.mesh, self.spec, ndim)
        if self._fixed.ndim != ndim:
            raise ShardingError(
                message("NamedSharding", f"an array of {ndim} dims needs as many entries", self._fixed.dims_text())
            )
        return self._fixed

    def text(self, ndim: int | None = None) -> str:
        """The dims in Shardy's text form: ``[{"data"}, {}]``."""
        return self.core(len(self.spec) if ndim is None else ndim).dims_text()

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one shard. The last shards of an uneven dim are smaller."""
        shape = shape_of("shard_shape", global_shape)
        return tuple(self.core(len(shape)).local_shape(shape))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[int, tuple[slice, ...]]:
        """The slices of the array that each device holds, by device id."""
        shape = shape_of("devices_indices_map", global_shape)
        self.mesh._core.expect_runnable("devices_indices_map")
        slices = self.core(len(shape)).slices(shape)
        return {
            device: tuple(slice(start, start + size) for start, size in dims)
            for device, dims in zip(self.mesh.device_ids, slices)
        }

    def is_equivalent_to(self, other: NamedSharding, ndim: int) -> bool:
        """Whether both lay out an array of ``ndim`` dims in the same way, as in JAX."""
        other = native(other)
        if not isinstance(other, NamedSharding):
            raise TypeError(message("is_equivalent_to", "takes a NamedSharding", shown(other)))
        return self.core(ndim) == other.core(ndim)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array, as in JAX."""
        dims = self.core(len(self.spec)).dims
        return not any(axes for axes, _, _ in dims) and not self.spec.unreduced

    @property
    def num_devices(self) -> int:
        """The number of devices of the mesh, as in JAX."""
        return self.mesh.size

    @property
    def device_set(self) -> set[int]:
        """The ids of the mesh's devices; in JAX the devices themselves."""
        return set(self.mesh.device_ids)

    @property
    def is_fully_addressable(self) -> bool:
        """True: all devices are virtual ones of this process; as in JAX."""
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedSharding, (self.mesh, self.spec if self._fixed is None else _short_text(self._fixed))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and (self.mesh, self.spec.key()) == (other.mesh, other.spec.key())

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec.key()))

    def __repr__(self) -> str:
        spec = repr(self.spec) if self._fixed is None else repr(_short_text(self._fixed))
        return f"NamedSharding(mesh={self.mesh!r}, spec={spec})"

    def _repr_html_(self) -> str:
        return sharding_html(self)


def _refuse_names(text: str) -> None:
    """Raise ShardingError for axis names in place of the text of a sharding."""
    if re.fullmatch(r"\s*[A-Za-z_]\w*(\s*,\s*[A-Za-z_]\w*)*\s*", text):
        names = ", ".join(f'"{name.strip()}"' for name in text.split(","))
        rule = """text must be that of a sharding, such as '[{"x"}, {}]'"""
        raise ShardingError(message("NamedSharding", rule, repr(text), f"write P({names}) for names of axes"))


def _on_mesh(core: _core.mesh.Sharding, mesh: Mesh) -> _core.mesh.Sharding:
    """The sharding that a string describes, on ``mesh``. Raises MeshError if the text contains another mesh."""
    if core.mesh == mesh._core:
        return core
    if any(
        getattr(core.mesh, what) != getattr(mesh._core, what) for what in ("axis_names", "axis_sizes", "device_ids")
    ):
        rule = f"the mesh of the text must be {mesh!r}"
        raise MeshError(message("NamedSharding", rule, repr(Mesh._wrap(core.mesh)), "leave it out"))
    return _core.mesh.Sharding.parse(mesh._core, _short_text(core))


def _short_text(core: _core.mesh.Sharding) -> str:
    """Shardy's text without the mesh, which :class:`NamedSharding` reads: ``[{"x"}, {}], replicated={"y"}``."""
    text = core.text()
    return text[text.index(core.dims_text()) :].removesuffix(">")


def sharding_on(mesh: Mesh, spec: Any, ndim: int, what: str) -> Any:
    """The extension's sharding for a spec on the program's mesh; None if unspecified."""
    if spec is None:
        return None
    with naming(what):
        sharding = NamedSharding(mesh, spec) if isinstance(spec, (PartitionSpec, str)) else spec
        if not isinstance(sharding, NamedSharding):
            raise ShardingError(message(what, "takes P(...), NamedSharding or text", repr(spec)))
        check_same_devices(what, mesh, sharding.mesh)
        return on_program_mesh(mesh, sharding.core(ndim))


def check_ndim(what: str, dim: int, ndim: int) -> int:
    """``dim`` as a non-negative index of an array of ``ndim`` dims; ShapeError outside, TypeError for no integer."""
    if not is_integer(dim, dim):
        raise TypeError(message(what, "dim must be an integer", repr(dim)))
    if not -ndim <= dim < ndim:
        raise ShapeError(message(what, f"dim must be in [{-ndim}, {ndim})", dim))
    return dim % ndim
