# SPDX-License-Identifier: Apache-2.0
"""The mesh of JAX that a program runs on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ...errors import MeshError, described, message
from ...shardings.mesh import Mesh
from ..optional import jax
from ..source.mesh_axes import MeshAxes

__all__ = ["jax_mesh", "named_sharding", "settings"]


def jax_mesh(axes: MeshAxes, what: str, devices: Sequence[Any] | None, mesh: Any) -> Any:
    """JAX's mesh for a program, over the given devices or the given mesh. MeshError if they do not fit."""
    if devices is not None and mesh is not None:
        raise ValueError(message(what, "takes devices or a mesh", "both", "leave one of them out"))
    sizes = tuple(axes.sizes.values())
    if mesh is None:
        return jax.sharding.Mesh(_devices_in_order(axes, what, devices).reshape(sizes), axes.all)
    if not isinstance(mesh, (jax.sharding.Mesh, jax.sharding.AbstractMesh)):
        raise TypeError(message(what, "mesh must be a jax.sharding.Mesh", described(mesh)))
    own = Mesh._wrap(axes.mesh)
    is_abstract = isinstance(mesh, jax.sharding.AbstractMesh)
    # Devices in a row may have any names, but those of the program mean its axes.
    named = is_abstract or any(name in own.shape or name in axes.sizes for name in mesh.shape)
    if named and list(mesh.shape.items()) not in (list(own.shape.items()), list(axes.sizes.items())):
        rule = f"mesh must have the axes of the program's mesh, in this order: {own!r}"
        raise MeshError(message(what, rule, dict(mesh.shape), "compile the program for this mesh"))
    if is_abstract:
        return jax.sharding.AbstractMesh(sizes, axes.all)
    given = np.asarray(mesh.devices).reshape(-1)
    if len(given) != own.size:
        rule = f"mesh must have the {own.size} devices of the program's mesh, {own!r}"
        raise MeshError(message(what, rule, f"{len(given)}: {dict(mesh.shape)}", "compile the program for this mesh"))
    return jax.sharding.Mesh(given.reshape(sizes), axes.all)


def _devices_in_order(axes: MeshAxes, what: str, devices: Sequence[Any] | None) -> np.ndarray:
    """The devices of JAX in the order of the program's mesh."""
    count = axes.mesh.size
    found = list(jax.devices() if devices is None else _checked_devices(what, devices))
    if len(found) < count:
        rule = f"needs {count} devices, as many as {Mesh._wrap(axes.mesh)!r}"
        if not found:
            raise MeshError(message(what, rule, "none", "pass jax.devices(), or leave devices out"))
        kind = found[0].platform
        way_out = f"compile the program for a mesh of {len(found)}"
        if kind == "cpu":
            way_out = f"set XLA_FLAGS=--xla_force_host_platform_device_count={count} before Python starts, or {way_out}"
        raise MeshError(message(what, rule, f"{len(found)} ({kind})", way_out))
    picked = np.empty(count, object)
    picked[:] = [found[i] for i in axes.mesh.device_ids or range(count)]
    return picked


def _checked_devices(what: str, devices: Any) -> Sequence[Any]:
    found = list(devices) if isinstance(devices, (Sequence, np.ndarray)) else None
    if found is None or not all(isinstance(device, jax.Device) for device in found):
        raise TypeError(
            message(what, "devices must be a sequence of JAX's devices", described(devices), "pass jax.devices()")
        )
    repeated = next((device for i, device in enumerate(found) if device in found[:i]), None)
    if repeated is not None:
        rule = "devices must be different ones"
        raise MeshError(message(what, rule, f"{repeated} {found.count(repeated)} times", "pass jax.devices()"))
    return found


def named_sharding(mesh: Any, spec: Sequence[Sequence[str]]) -> Any:
    """A `NamedSharding` of the refined axes of each dim."""
    dims = [None if not axes else axes[0] if len(axes) == 1 else tuple(axes) for axes in spec]
    while dims and dims[-1] is None:
        dims.pop()
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*dims))


@contextmanager
def settings(mesh: Any, needs_x64: bool, is_traced: bool = False) -> Iterator[None]:
    """The program's mesh and, for values of 64 bits, x64, whatever the caller has set.

    ``is_traced``: inside of a transformation of JAX, which refuses a mesh of devices there.
    """
    with ExitStack() as stack:
        if needs_x64:
            stack.enter_context(jax.enable_x64(True))
        if is_traced or isinstance(mesh, jax.sharding.AbstractMesh):
            stack.enter_context(jax.sharding.use_abstract_mesh(getattr(mesh, "abstract_mesh", mesh)))
        else:
            stack.enter_context(jax.set_mesh(mesh))
        stack.enter_context(jax.default_matmul_precision("highest"))
        yield
