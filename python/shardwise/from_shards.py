# SPDX-License-Identifier: Apache-2.0
"""Arrays from the shards of their devices: JAX's ``make_array_from_callback`` and its siblings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, product
from typing import Any

import numpy as np

from . import _core
from .array import Array, Shard, put
from .array_leaves import numbers_of
from .dtypes import as_dtype
from .errors import DTypeError, MeshError, ShapeError, ShardingError, UnsupportedError, described, message
from .placement import settled
from .process.foreign import native
from .process.processes import ALONE, place_on
from .process.traceback_filtering import entry_point
from .recording.tracing import current_trace
from .shardings.sharding import NamedSharding, shape_of
from .unpartitioned import unpartitioned_mesh

__all__ = ["array_from_shards", "make_array_from_callback", "make_array_from_single_device_arrays"]

_Coordinates = tuple[int, ...]  # of a shard: its number along each dim


@entry_point
def make_array_from_callback(
    shape: Sequence[int], sharding: Any, data_callback: Callable[[tuple[slice, ...]], Any], dtype: Any = None
) -> Array:
    """Make an array whose shards ``data_callback`` returns, so that no process needs the whole array.

    With several MPI ranks (:mod:`shardwise.mpi`), all ranks call it, and each asks for the shards of its devices.

    Args:
        shape: the global shape.
        sharding: a :class:`NamedSharding`.
        data_callback: takes the index of a shard in the global array, a tuple of slices with start and stop, and
            returns the elements there. It is called once for each distinct shard, also for those without elements.
        dtype: the dtype of the array. Default: that of the returned shards.

    Returns:
        An :class:`Array`.

    Raises:
        ShapeError: a shard has another shape than its index. DTypeError: shards are not numeric, or of several dtypes.
        ShardingError: the sharding does not fit, or is unreduced. UnsupportedError: in a traced function.

    Source: `jax.make_array_from_callback`.

    >>> import shardwise as sw
    >>> whole = np.arange(10)
    >>> rows = sw.NamedSharding(sw.Mesh({"x": 4}), sw.P("x"))
    >>> x = make_array_from_callback((10,), rows, lambda index: whole[index])
    >>> [len(shard.data) for shard in x.addressable_shards]
    [3, 3, 3, 1]
    """
    what = "make_array_from_callback"
    if not callable(data_callback):
        raise TypeError(message(what, "data_callback must be a function of an index", described(data_callback)))
    core, shape = _checked_sharding(what, shape, sharding)
    slices = core.slices(shape)
    found: dict[_Coordinates, Any] = {}
    shards = []
    for device, coordinates in _own_coordinates(core):
        if coordinates not in found:
            found[coordinates] = data_callback(tuple(slice(start, start + size) for start, size in slices[device]))
        shards.append(found[coordinates])
    return array_from_shards(what, core, shards, shape, dtype)


@entry_point
def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Array:
    """Make an array from the shards of all devices.

    With several MPI ranks, all ranks call it, and each passes the shards of its devices.

    Args:
        shape: the global shape.
        sharding: a :class:`NamedSharding`.
        arrays: one array for each device of this process, in the row-major order of the mesh, which is the order of
            :attr:`Array.addressable_shards`; or :class:`Shard` objects, which name their devices, in any order. The
            last shards of an uneven dim are shorter, or empty. Devices that hold the same shard must pass equal bits.
        dtype: the dtype of the array. Default: that of the shards.

    Returns:
        An :class:`Array`.

    Raises:
        ShapeError: the number of arrays or the shape of one does not fit. DTypeError: arrays are not numeric, or their
            dtypes differ. ShardingError: the sharding does not fit or is unreduced, or copies of a shard differ.
            UnsupportedError: in a traced function.

    Source: `jax.make_array_from_single_device_arrays`.

    >>> import shardwise as sw
    >>> rows = sw.NamedSharding(sw.Mesh({"x": 2}), sw.P("x"))
    >>> make_array_from_single_device_arrays((3,), rows, [np.array([1, 2]), np.array([3])])
    Array([1, 2, 3], dtype=int64)
    """
    what = "make_array_from_single_device_arrays"
    core, shape = _checked_sharding(what, shape, sharding)
    return array_from_shards(what, core, arrays, shape, dtype)


def _checked_sharding(what: str, shape: Any, sharding: Any) -> tuple[_core.mesh.Sharding, tuple[int, ...]]:
    sharding = native(sharding)
    if not isinstance(sharding, NamedSharding):
        way_out = "use sw.NamedSharding(mesh, spec)"
        raise ShardingError(message(what, "sharding must be a NamedSharding", described(sharding), way_out))
    shape = shape_of(what, shape)
    core = settled(sharding.core(len(shape)))
    core.verify(shape)
    return core, shape


def _own_coordinates(core: _core.mesh.Sharding) -> list[tuple[int, _Coordinates]]:
    """The position in the mesh of each device of this process, and the coordinates of its shard."""
    core.mesh.expect_runnable("an array from shards")
    parts = [math.prod(size for _, _, size in axes) for axes, _, _ in core.dims]
    numbers = core.slices(parts)  # of an array that has one element per shard
    owned = place_on(core.mesh).devices.owned(core.mesh)
    return [(device, tuple(start for start, _ in numbers[device])) for device in owned]


def array_from_shards(
    what: str, core: _core.mesh.Sharding, arrays: Sequence[Any], shape: tuple[int, ...] | None, dtype: Any = None
) -> Array:
    """The array of these shards, one for each device of this process. ``shape`` None: what the shards add up to."""
    if current_trace() is not None:
        way_out = "make the array before the call, and pass it as an argument"
        raise UnsupportedError(message(what, "must not be called in a traced function", None, way_out))
    if core.unreduced:
        rule, way_out = "an array from shards must not be unreduced", "add up the shards first"
        raise ShardingError(message(what, rule, core.text(), way_out))
    own = _own_coordinates(core)
    ids = core.mesh.device_ids or range(len(core.slices([1] * core.ndim)))
    devices = [ids[position] for position, _ in own]
    by_device = _by_device(what, arrays, devices, dtype)
    slices = None if shape is None else core.slices(shape)
    tiles: dict[_Coordinates, np.ndarray] = {}
    for device, (position, coordinates) in zip(devices, own):
        data = by_device[device]
        expected = data.shape if slices is None else tuple(size for _, size in slices[position])
        if data.shape != expected:
            rule = f"the shard of device {device} must have the shape {list(expected)}"
            raise ShapeError(message(what, rule, list(data.shape), "see NamedSharding.devices_indices_map"))
        first = tiles.setdefault(coordinates, data)
        if first is not data and not _same_bits(first, data):
            rule = "devices that hold the same shard must pass equal bits"
            holder = next(other for other, (_, place) in zip(devices, own) if place == coordinates)
            raise ShardingError(message(what, rule, f"other values for device {device} than for device {holder}"))
    part = _assembled(what, tiles, core.ndim)
    place = place_on(core.mesh)
    if place is ALONE:
        if shape is None and any(
            by_device[device].shape != tuple(size for _, size in tile)
            for device, tile in zip(ids, core.slices(part.shape))
        ):
            sizes = [list(by_device[device].shape) for device in devices]
            rule = f"the shards of {core.dims_text()} must be equal blocks, of which the last ones may be shorter"
            raise ShapeError(message(what, rule, sizes, "pad them, or move rows between them"))
        return part if unpartitioned_mesh() is not None else put(part, core)  # type: ignore[return-value]
    made = Array(place.from_own_part(part, core), place)
    if shape is not None and made.shape != shape:
        raise ShapeError(message(what, f"the shards of all ranks must make up {list(shape)}", list(made.shape)))
    return made


def _by_device(what: str, arrays: Any, devices: list[int], dtype: Any) -> dict[int, np.ndarray]:
    """The shard of each device, all of one dtype."""
    if not isinstance(arrays, (list, tuple)):
        rule = "the shards must be a sequence with one array for each device"
        raise TypeError(message(what, rule, described(arrays), f"pass a list of {len(devices)}"))
    if len(arrays) != len(devices):
        rule = f"there must be one shard for each of the {len(devices)} devices of this process"
        raise ShapeError(message(what, rule, len(arrays)))
    named = [shard.device if isinstance(shard, Shard) else None for shard in arrays]
    order: list[Any] = list(devices) if all(device is None for device in named) else named
    if sorted(map(str, order)) != sorted(map(str, devices)):
        raise MeshError(message(what, f"the shards must be of devices {devices}, each once", named))
    found: dict[int, np.ndarray] = {}
    for device, shard in zip(order, arrays):
        data = numbers_of(shard.data if isinstance(shard, Shard) else shard)
        if data is None:
            raise DTypeError(message(what, "each shard must be an array of numbers", described(shard)))
        found[device] = data if dtype is None else data.astype(as_dtype(what, dtype), copy=False)
    dtypes = {data.dtype for data in found.values()}
    ndims = {data.ndim for data in found.values()}
    if len(dtypes) > 1:
        got = ", ".join(sorted(each.name for each in dtypes))
        raise DTypeError(message(what, "all shards must have one dtype", got, "convert them with astype"))
    if len(ndims) > 1:
        raise ShapeError(message(what, "all shards must have one ndim", sorted(ndims)))
    return found


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def _assembled(what: str, tiles: dict[_Coordinates, np.ndarray], ndim: int) -> np.ndarray:
    """The shards side by side, in the order of their coordinates."""
    first = next(iter(tiles.values()))
    if first.ndim != ndim:
        raise ShapeError(message(what, f"a shard must have {ndim} dims", first.ndim))
    sizes: list[dict[int, int]] = [{} for _ in range(ndim)]
    for coordinates, data in tiles.items():
        for dim, (number, size) in enumerate(zip(coordinates, data.shape)):
            if sizes[dim].setdefault(number, size) != size:
                rule = f"shards side by side must have one size in dim {dim}"
                raise ShapeError(message(what, rule, f"{sizes[dim][number]} and {size}"))
    starts = []
    for of_dim in sizes:
        ordered = sorted(of_dim)
        begins = [0, *accumulate(of_dim[number] for number in ordered)]
        starts.append(dict(zip(ordered, begins)))
    whole = np.empty([sum(of_dim.values()) for of_dim in sizes], first.dtype)
    for coordinates in product(*map(sorted, sizes)):
        begin = [starts[dim][number] for dim, number in enumerate(coordinates)]
        data = tiles[coordinates]
        whole[tuple(slice(b, b + size) for b, size in zip(begin, data.shape))] = data
    return whole
