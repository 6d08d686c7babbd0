# SPDX-License-Identifier: Apache-2.0
"""Arguments of a program on JAX's devices, and its results in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError, ShardingError, described, message
from ..jax_arrays import expect_alive
from ..optional import jax
from ..source.script import Border
from .meshes import settings

__all__ = ["argument", "expect_donated_once", "expect_type", "placed", "relabelled", "whole"]


def expect_type(name: str, x: Any, border: Border) -> None:
    """Raise ShapeError or DTypeError unless an argument has the compiled type."""
    if x.shape == border.shape and x.dtype == border.dtype:
        return
    wrong = ShapeError if x.shape != border.shape else DTypeError
    rule = f"argument {name} must be {border.dtype.name}{list(border.shape)} as compiled"
    way_out = "compile the function for these shapes"
    raise wrong(message("to_jax", rule, f"{x.dtype.name}{list(x.shape)}", way_out))


def expect_donated_once(arrays: Sequence[Any], donated: Sequence[int], names: Sequence[str]) -> None:
    """Raise ValueError if an array that is donated is also another argument: JAX would free it twice, and crash."""
    for i in donated:
        for j, other in enumerate(arrays):
            if j != i and other is arrays[i]:
                first, second = names[min(i, j)], names[max(i, j)]
                rule = f"argument {names[i]} is donated, so its array must not be another argument"
                way_out = "pass a copy of it, jax.numpy.copy(x), or do not donate it"
                raise ValueError(message("to_jax", rule, f"one array for {first} and {second}", way_out))


def argument(leaf: Any, border: Border, sharding: Any, name: str, strict: bool) -> Any:
    """An argument on the devices. ``strict``: an error for an array on several devices that would have to move."""
    if isinstance(leaf, jax.Array):
        expect_alive("to_jax", leaf, name)
    if (isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1) or _is_placed(leaf, border, sharding):
        return _own(leaf, border, sharding, name, strict)
    array = np.asarray(leaf)
    expect_type(name, array, border)
    return placed(array, border, sharding)


def _own(leaf: Any, border: Border, sharding: Any, name: str, strict: bool) -> Any:
    """A JAX array on several devices."""
    if leaf.dtype != border.dtype or leaf.shape not in (border.padded, border.shape):
        rule = f"argument {name} must be {border.dtype.name}{list(border.padded)} on the devices"
        raise ShapeError(message("to_jax", rule, described(leaf), "place it with put(…)"))
    if leaf.shape == border.padded and leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
        return leaf
    if strict:
        rule = f"argument {name} must have the sharding of the program, {sharding.spec}"
        got = getattr(leaf.sharding, "spec", leaf.sharding)
        if got == sharding.spec:
            rule += f" on {_mesh_text(sharding.mesh)}"
            got = f"it on {_mesh_text(leaf.sharding.mesh)}"
        raise ShardingError(message("to_jax", rule, got, "place it with put(…), which moves it"))
    if leaf.shape == border.padded:
        return jax.device_put(leaf, sharding)
    return placed(whole(leaf, sharding.mesh, border.dtype.itemsize == 8), border, sharding)


def _mesh_text(mesh: Any) -> str:
    ids = np.array([device.id for device in mesh.devices.flat])
    return f"the mesh {dict(mesh.shape)} of devices {np.array2string(ids, threshold=16, separator=', ')}"


def placed(array: np.ndarray, border: Border, sharding: Any) -> Any:
    """A NumPy array on the devices, with zeros behind its end."""
    parts: dict[tuple[tuple[int, int], ...], np.ndarray] = {}

    def part(index: tuple[slice, ...]) -> np.ndarray:
        ranges = tuple([dim.indices(n)[:2] for dim, n in zip(index, border.padded)])
        if ranges not in parts:
            parts[ranges] = _copied(array, ranges)
        return parts[ranges]

    return jax.make_array_from_callback(border.padded, sharding, part)


def whole(x: Any, mesh: Any, needs_x64: bool) -> np.ndarray:
    """An array in NumPy; all processes call it for one that is in parts on several of them."""
    if not isinstance(x, jax.Array) or x.is_fully_addressable or x.is_fully_replicated:
        return np.asarray(x)
    with settings(mesh, needs_x64):
        return np.asarray(jax.experimental.multihost_utils.process_allgather(x, tiled=True))


def relabelled(x: Any, shape: tuple[int, ...], sharding: Any) -> Any:
    """The same tile on each device as another array; nothing moves."""
    if x.size == 0:  # XLA replicates an array without elements, whatever its sharding
        empty = np.zeros(shape, x.dtype)
        return jax.make_array_from_callback(shape, sharding, lambda index: empty[index])
    tiles = {shard.device: shard.data for shard in x.addressable_shards}
    own = [tiles[device] for device in sharding.addressable_devices_indices_map(shape)]
    return jax.make_array_from_single_device_arrays(shape, sharding, own)


def _is_placed(leaf: Any, border: Border, sharding: Any) -> bool:
    if not isinstance(leaf, jax.Array) or leaf.shape != border.padded or leaf.dtype != border.dtype:
        return False
    return bool(leaf.sharding.is_equivalent_to(sharding, leaf.ndim))


def _copied(array: np.ndarray, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    """A copy of a part, with zeros after the end of the array. JAX may use its memory as long as it needs the part."""
    own = array[tuple(slice(min(a, n), min(b, n)) for (a, b), n in zip(ranges, array.shape))]
    missing = [(0, b - a - n) for (a, b), n in zip(ranges, own.shape)]
    return np.pad(own, missing) if any(high for _, high in missing) else np.array(own)
