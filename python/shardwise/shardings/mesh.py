# SPDX-License-Identifier: Apache-2.0
"""Meshes: named axes over virtual devices."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import _core
from ..errors import MeshError, called_as, expect_text, message
from ..process.foreign import native
from ..process.traceback_filtering import entry_point, entry_points
from ..viz import mesh_html

__all__ = ["Mesh", "get_mesh", "make_mesh", "set_mesh"]


_MOST_DEVICES = 2**63


def _integers(device_ids: Any, count: int) -> list[int]:
    limit = _core.mesh.MOST_DEVICES_TO_RUN
    if count > limit:
        rule = f"device ids can be given for at most {limit} devices, since each is kept"
        raise MeshError(message("Mesh", rule, f"{count} devices", "leave device_ids out: 0, 1, 2, … in order"))
    if isinstance(device_ids, range) and not 0 <= device_ids.stop - device_ids.start <= limit:
        rule = "device ids must be a permutation of the devices"
        raise MeshError(message("Mesh", rule, f"{device_ids} for {count} devices"))
    has_bools = isinstance(device_ids, (list, tuple)) and any(isinstance(each, bool) for each in device_ids)
    try:
        ids = np.asarray(device_ids)
    except ValueError:  # of lists of different lengths
        ids = np.empty(1, object)
    if not ids.size:
        raise MeshError(message("Mesh", "device ids must be a permutation of the devices", f"none for {count} devices"))
    if has_bools or ids.dtype.kind not in "iu":
        raise MeshError(message("Mesh", "device ids must be integers", repr(device_ids)))
    return [int(i) for i in ids.reshape(-1)]


@entry_points
class Mesh:
    """Virtual devices in a grid with named axes, the major axis first.

    Args:
        axes: axis sizes by name, for example ``{"data": 4, "model": 2}``.
        device_ids: the device at each position, row by row; a permutation of ``range(size)``.
        name: the name of the mesh in program text, ``sdy.mesh @name``.

    Raises:
        MeshError: a size below 1, or device ids that are not a permutation.

    Source: Shardy's mesh (`sdy.mesh`).

    >>> mesh = Mesh({"data": 4, "model": 2})
    >>> mesh
    Mesh('data': 4, 'model': 2)
    >>> mesh.size
    8

    ``with mesh:`` makes it the mesh of :func:`set_mesh` for the block:

    >>> with mesh:
    ...     get_mesh() is mesh
    True
    """

    __slots__ = ("_core",)

    def __init__(
        self, axes: Mapping[str, int], device_ids: Sequence[int] | np.ndarray | None = None, *, name: str = "mesh"
    ) -> None:
        if not isinstance(axes, Mapping):
            raise MeshError(
                message(
                    "Mesh", "axes must be a mapping from names to sizes", repr(axes), "make_mesh takes sizes and names"
                )
            )
        expect_text("Mesh", "name", name)
        if not name:
            raise MeshError(message("Mesh", "name must not be empty", repr(name)))
        entries: list[tuple[Any, Any]] = list(axes.items())
        for axis, size in entries:
            if not isinstance(axis, str) or isinstance(size, bool) or not isinstance(size, (int, np.integer)):
                raise MeshError(message("Mesh", "axes must map names to integers", f"{axis!r}: {size!r}"))
            if size >= _MOST_DEVICES:
                raise MeshError(message("Mesh", "the size of an axis must be below 2^63", f"{axis!r}: {size}"))
        ids = [] if device_ids is None else _integers(device_ids, math.prod(int(size) for _, size in entries))
        with called_as("Mesh", "mesh"):
            self._core = _core.mesh.Mesh(name, [(axis, int(size)) for axis, size in entries], ids)

    @classmethod
    def _wrap(cls, core: _core.mesh.Mesh) -> Mesh:
        mesh = cls.__new__(cls)
        mesh._core = core
        return mesh

    @property
    def name(self) -> str:
        """The name of the mesh in program text."""
        return self._core.name

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes, major to minor."""
        return self._core.axis_names

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The sizes of the axes, major to minor."""
        return self._core.axis_sizes

    @property
    def shape(self) -> Mapping[str, int]:
        """The axis sizes by name, as in JAX."""
        return MappingProxyType(dict(zip(self.axis_names, self.axis_sizes)))

    @property
    def size(self) -> int:
        """The number of devices."""
        return self._core.size

    @property
    def device_ids(self) -> tuple[int, ...]:
        """The device at each position, row by row; ``0, 1, 2, …`` by default.

        Raises:
            MeshError: the mesh has more devices than a program can run on.
        """
        self._core.expect_runnable("Mesh.device_ids")
        return self._core.device_ids or tuple(range(self.size))

    @property
    def devices(self) -> np.ndarray:
        """The device ids as an array with one dim per axis."""
        return np.array(self.device_ids, dtype=np.int64).reshape(self.axis_sizes)

    def text(self) -> str:
        """The mesh in Shardy's text form: ``<["data"=4, "model"=2]>``."""
        return self._core.text()

    def to_json(self) -> str:
        """The mesh as JSON text, for :meth:`from_json`."""
        return self._core.to_json()

    @classmethod
    def from_json(cls, text: str) -> Mesh:
        """Read the mesh that :meth:`to_json` wrote. Raises ParseError or MeshError for any other text."""
        expect_text("Mesh.from_json", "text", text)
        return cls._wrap(_core.mesh.Mesh.from_json(text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self._core)

    def __repr__(self) -> str:
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        ids = self._core.device_ids
        return f"Mesh({axes}, device_ids={list(ids)})" if ids else f"Mesh({axes})"

    def _repr_html_(self) -> str:
        return mesh_html(self)

    def __enter__(self) -> Mesh:
        """``with mesh:`` makes it the mesh of :func:`set_mesh` for the block, in this thread; blocks nest."""
        context = set_mesh(self)
        _ambient.entered.append(context)
        return self

    def __exit__(self, *exc: object) -> None:
        _ambient.entered.pop().__exit__(None, None, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (dict(self.shape), self._core.device_ids or None, self.name)


def _make(axes: dict[str, int], device_ids: tuple[int, ...] | None, name: str) -> Mesh:
    return Mesh(axes, device_ids, name=name)


@entry_point
def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[str], *, devices: Sequence[int] | None = None) -> Mesh:
    """Make a mesh from sizes and names, like ``jax.make_mesh``.

    Args:
        axis_shapes: the size of each axis, major to minor.
        axis_names: the name of each axis.
        devices: the device ids, row by row. Default: ``0, 1, 2, …``.

    Raises:
        MeshError: the numbers of sizes and names differ, a name occurs twice, or there is not one id per device.

    >>> make_mesh((4, 2), ("data", "model"))
    Mesh('data': 4, 'model': 2)
    """
    for listed in (axis_shapes, axis_names):
        if not isinstance(listed, Sequence):
            raise MeshError(message("make_mesh", "takes a sequence of sizes and one of names", repr(listed)))
    if len(axis_shapes) != len(axis_names):
        raise MeshError(
            message(
                "make_mesh", "as many axis names as sizes are needed", f"{tuple(axis_shapes)} and {tuple(axis_names)}"
            )
        )
    if len(set(axis_names)) != len(axis_names):
        raise MeshError(message("make_mesh", "axis names must differ", tuple(axis_names)))
    if devices is not None and len(devices) != math.prod(axis_shapes):
        raise MeshError(
            message("make_mesh", f"sizes {tuple(axis_shapes)} need {math.prod(axis_shapes)} devices", len(devices))
        )
    with called_as("make_mesh", "Mesh"):
        return Mesh(dict(zip(axis_names, axis_shapes)), devices)


class _Ambient(threading.local):
    def __init__(self) -> None:
        self.mesh: Mesh | None = None
        self.entered: list[AbstractContextManager[Mesh | None]] = []  # one for each block of `with mesh:`
        self.traces = 0  # number of programs that this thread is recording: their mesh is fixed


_ambient = _Ambient()


class _SetMesh(AbstractContextManager["Mesh | None"]):
    def __init__(self, mesh: Mesh | None, before: Mesh | None) -> None:
        self._mesh = mesh
        self._before = before

    def __enter__(self) -> Mesh | None:
        _ambient.mesh = self._mesh
        return self._mesh

    def __exit__(self, *exc: object) -> None:
        _ambient.mesh = self._before


@entry_point
def set_mesh(mesh: Mesh | None) -> AbstractContextManager[Mesh | None]:
    """Set the default mesh for :func:`jit`. As in JAX, this is a function and a context manager.

    Args:
        mesh: the new default, or None for no default.

    Raises:
        MeshError: not a mesh, or called inside a traced function, whose mesh is fixed.

    Source: `jax.set_mesh`.

    >>> with set_mesh(Mesh({"x": 2})):
    ...     get_mesh()
    Mesh('x': 2)
    """
    mesh = native(mesh)
    if mesh is not None and not isinstance(mesh, Mesh):
        raise MeshError(message("set_mesh", "takes a Mesh or None", repr(mesh)))
    if _ambient.traces:
        way_out = "give the mesh to jit, or set it before the call"
        raise MeshError(message("set_mesh", "must not be called in a traced function", None, way_out))
    before = _ambient.mesh
    _ambient.mesh = mesh
    return _SetMesh(mesh, before)


def begin_trace() -> None:
    """Refuse :func:`set_mesh` in this thread until the matching :func:`end_trace`."""
    _ambient.traces += 1


def end_trace() -> None:
    """End the innermost :func:`begin_trace`."""
    _ambient.traces -= 1


def get_mesh() -> Mesh | None:
    """The default mesh that :func:`set_mesh` set, or None."""
    return _ambient.mesh


_last_resort: list[Mesh | None] = [None]  # of all threads


def default_mesh() -> Mesh | None:
    """The mesh of what names none: that of :func:`set_mesh`, else that of :func:`use_as_last_resort`, else None."""
    return _ambient.mesh or _last_resort[0]


def use_as_last_resort(mesh: Mesh | None) -> None:
    """Use this mesh where neither the user nor the annotations of a program name one."""
    _last_resort[0] = mesh
