# SPDX-License-Identifier: Apache-2.0
"""PyTorch's vocabulary: one placement per mesh axis instead of axes per dim. These are thin aliases.

``Shard(d)`` at a mesh axis splits dim d over that axis. Several axes split a dim in the order of the mesh.
``Replicate()`` replicates over the axis, and ``Partial(op)`` makes the value unreduced over it.

>>> import shardwise as sw
>>> from shardwise.dtensor import Partial, Replicate, Shard, distribute_tensor, init_device_mesh, placements, spec
>>> mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
>>> spec(mesh, [Shard(0), Shard(0)], 2), spec(mesh, [Replicate(), Partial("max")], 2)
(P(('dp', 'tp'), None), P(None, None, unreduced={'tp'}, reducer='max'))
>>> x = distribute_tensor(np.zeros((8, 4)), mesh, [Shard(0), Shard(1)])
>>> x.sharding.spec, placements(x)
(P('dp', 'tp'), (Shard(dim=0), Shard(dim=1)))

Two things differ from PyTorch. A dim that is split over several mesh axes is cut once into equal blocks, not by one
axis after the other, which matters for uneven sizes. A tensor outside of a traced function cannot be ``Partial``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .array import Array
from .errors import MeshError, ShapeError, ShardingError, is_integer, message, shown
from .from_shards import array_from_shards
from .placement import placed, settled
from .process.foreign import native
from .process.traceback_filtering import entry_point
from .recording.tracing import Tracer, current_trace
from .shardings.mesh import Mesh, default_mesh, get_mesh, make_mesh
from .shardings.partition_spec import PartitionSpec, SubAxis
from .shardings.sharding import NamedSharding, shape_of
from .unpartitioned import unpartitioned_mesh

__all__ = [
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_tensor",
    "from_local",
    "init_device_mesh",
    "placements",
    "redistribute",
    "spec",
]


@dataclass(frozen=True)
class Shard:
    """Split dim ``dim`` of the tensor over this mesh axis; negative values count from the end."""

    dim: int


@dataclass(frozen=True)
class Replicate:
    """Replicate the tensor over this mesh axis."""


@dataclass(frozen=True)
class Partial:
    """Each device along this mesh axis holds one addend, and the reduction ``reduce_op`` is pending.

    ``reduce_op`` is ``"sum"``, ``"product"``, ``"max"``, ``"min"``, ``"band"`` or ``"bor"``.
    """

    reduce_op: str = "sum"


Placement = Shard | Replicate | Partial

_REDUCERS = {"sum": "sum", "product": "prod", "max": "max", "min": "min", "band": "and", "bor": "or"}
_REDUCE_OPS = {reducer: op for op, reducer in _REDUCERS.items()}


@entry_point
def DeviceMesh(  # noqa: N802
    device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None
) -> Mesh:
    """Make a :class:`Mesh` from an array of device ids.

    Args:
        device_type: PyTorch's ``"cpu"`` or ``"cuda"``; ignored.
        mesh: an array of device ids with one dim per mesh axis.
        mesh_dim_names: the names of the axes. Default: ``dim_0``, ``dim_1``, ….

    Raises:
        MeshError: the number of names is not the number of dims, or the ids are not a permutation.

    >>> DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp"))
    Mesh('dp': 2, 'tp': 2)
    """
    ids = np.asarray(mesh)
    if not ids.ndim:
        raise MeshError(message("DeviceMesh", "a mesh must have dims", repr(mesh), "use an array of device ids"))
    return make_mesh(ids.shape, _dim_names(ids.ndim, mesh_dim_names), devices=[int(i) for i in ids.reshape(-1)])


@entry_point
def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None
) -> Mesh:
    """Make a :class:`Mesh` of this shape, with devices in order.

    Raises:
        MeshError: the shape is not a sequence of sizes of at least 1, or the number of names is not its length.

    >>> init_device_mesh("cpu", (2, 4))
    Mesh('dim_0': 2, 'dim_1': 4)
    """
    if not isinstance(mesh_shape, Sequence):
        raise MeshError(message("init_device_mesh", "takes a sequence of sizes", repr(mesh_shape), "write (size,)"))
    names = _dim_names(len(mesh_shape), mesh_dim_names)
    if len(names) != len(mesh_shape):
        rule = f"mesh_dim_names must be one for each of the {len(mesh_shape)} dims"
        raise MeshError(message("init_device_mesh", rule, repr(mesh_dim_names)))
    return make_mesh(mesh_shape, names)


def _dim_names(ndim: int, names: Sequence[str] | None) -> Sequence[str]:
    return [f"dim_{i}" for i in range(ndim)] if names is None else names


@entry_point
def spec(device_mesh: Mesh, placements: Sequence[Placement], ndim: int) -> PartitionSpec:
    """Convert placements to the spec of a tensor of ``ndim`` dims.

    Args:
        device_mesh: the mesh.
        placements: one placement per axis of the mesh.
        ndim: the number of dims of the tensor.

    Raises:
        ShardingError: there is not one placement per mesh axis, or two ``Partial`` reductions differ.
        ShapeError: the tensor does not have a dim, or ``ndim`` is not a valid number of dims.
    """
    return _spec("spec", device_mesh, placements, ndim)


def _spec(what: str, device_mesh: Mesh, placements: Any, ndim: int) -> PartitionSpec:
    """:func:`spec` for a call of the public function ``what``."""
    if not isinstance(device_mesh, Mesh):
        raise MeshError(message(what, "device_mesh must be a Mesh", shown(device_mesh)))
    if not is_integer(ndim, 0):
        raise ShapeError(message(what, "ndim must be an integer that is not negative", shown(ndim), "give x.ndim"))
    axes = device_mesh.axis_names
    given = list(placements) if isinstance(placements, (list, tuple)) else [placements]
    if len(given) != len(axes) or not all(isinstance(each, (Shard, Replicate, Partial)) for each in given):
        way_out = "use Shard(dim), Replicate() or Partial(op) for each"
        rule = f"placements must be one for each of the {len(axes)} dims of {device_mesh!r}"
        raise ShardingError(message(what, rule, repr(placements), way_out))
    dims: list[list[str]] = [[] for _ in range(ndim)]
    reducers: dict[str, str] = {}
    for axis, placement in zip(axes, given):
        if isinstance(placement, Shard):
            if not is_integer(placement.dim, -ndim) or placement.dim >= ndim:
                raise ShapeError(
                    message(what, f"dim of Shard must be an integer in [{-ndim}, {ndim})", repr(placement.dim))
                )
            dims[placement.dim].append(axis)
        if isinstance(placement, Partial):
            reducers[axis] = _reducer(what, placement)
    if len(set(reducers.values())) > 1:
        raise ShardingError(message(what, "all parts of a tensor must combine in one way", repr(placements)))
    return PartitionSpec(*map(tuple, dims), unreduced=reducers, reducer=next(iter(reducers.values()), "sum"))


def _reducer(what: str, placement: Partial) -> str:
    if placement.reduce_op not in _REDUCERS:
        rule = f"reduce_op of Partial must be one of {', '.join(_REDUCERS)}"
        raise ShardingError(message(what, rule, repr(placement.reduce_op)))
    return _REDUCERS[placement.reduce_op]


@entry_point
def placements(x: Array | NamedSharding) -> tuple[Placement, ...]:
    """One placement per mesh axis for an array or a sharding: the inverse of :func:`spec`.

    Raises:
        ShardingError: placements cannot express sub-axes, or axes that are not in the order of the mesh.
        TypeError: neither an :class:`Array` nor a :class:`NamedSharding`.
    """
    if not isinstance(x, (Array, NamedSharding)):
        raise TypeError(message("placements", "takes an Array or a NamedSharding", type(x).__name__))
    sharding = x.sharding if isinstance(x, Array) else x
    names = sharding.mesh.axis_names
    found: dict[str, Placement] = {}
    for dim, entry in enumerate(sharding.spec):
        axes = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        plain = [axis for axis in axes if isinstance(axis, str)]
        if len(plain) < len(axes) or sorted(plain, key=names.index) != plain:
            rule = "placements need closed dims of whole axes in the order of the mesh"
            raise ShardingError(message("placements", rule, repr(sharding.spec)))
        found.update(dict.fromkeys(plain, Shard(dim)))
    for axis in sharding.spec.unreduced:
        if isinstance(axis, SubAxis):
            raise ShardingError(message("placements", "placements need whole axes", repr(sharding.spec)))
        found[axis] = Partial(_REDUCE_OPS[sharding.spec.reducer])
    return tuple(found.get(name, Replicate()) for name in names)


@entry_point
def distribute_tensor(
    tensor: Any, device_mesh: Mesh | None = None, placements: Sequence[Placement] | None = None
) -> Any:
    """Place a tensor on a mesh: :func:`shardwise.device_put` with placements.

    Args:
        tensor: a NumPy array, a number or an :class:`Array`; in a traced function, a traced value to constrain.
        device_mesh: the mesh. Default: the mesh of :func:`shardwise.set_mesh`, or of the program.
        placements: one per axis of the mesh. Default: replicated.

    Returns:
        An :class:`Array`.

    Raises:
        MeshError: no mesh is known.
        ShardingError, ShapeError: the placements do not fit.

    Source: `torch.distributed.tensor.distribute_tensor`.
    """
    mesh = _mesh_for("distribute_tensor", tensor, device_mesh)
    given = [Replicate()] * len(mesh.axis_names) if placements is None else placements
    return _placed("distribute_tensor", tensor, mesh, given)


@entry_point
def redistribute(tensor: Any, device_mesh: Mesh | None = None, placements: Sequence[Placement] | None = None) -> Any:
    """Change the placements of a tensor: :func:`shardwise.reshard`. ``device_mesh`` defaults to the tensor's own.

    Raises:
        ShardingError: placements are missing, or do not fit.
        MeshError: no mesh is known.

    Source: `torch.distributed.tensor.DTensor.redistribute`.
    """
    mesh = _mesh_for("redistribute", tensor, device_mesh)
    if placements is None:
        raise ShardingError(message("redistribute", "placements must be given", "None", "use one per dim of the mesh"))
    return _placed("redistribute", tensor, mesh, placements)


def _placed(what: str, tensor: Any, mesh: Mesh, given: Sequence[Placement]) -> Any:
    wanted = _spec(what, mesh, given, np.ndim(tensor))
    is_outside = current_trace() is None and unpartitioned_mesh() is None and not isinstance(tensor, Tracer)
    if wanted.unreduced and is_outside:
        way_out = "use Shard(dim) or Replicate() for this axis"
        raise ShardingError(message(what, "a tensor outside of a traced function cannot be Partial", given, way_out))
    return placed(what, tensor, NamedSharding(mesh, wanted))


@entry_point
def from_local(
    local_tensor: Any,
    device_mesh: Mesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    run_check: bool = False,
    shape: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Array:
    """Make a tensor from the local tensors of the devices, as ``DTensor.from_local``.

    In PyTorch each process passes the tensor of its device. Here one process may have several devices: it passes a
    list. Along an axis with ``Replicate()``, the devices must pass equal bits, which is always checked.

    Args:
        local_tensor: a list with the array of each device of this process, in the row-major order of the mesh; or the
            array itself if the process has one device.
        device_mesh: the mesh. Default: the mesh of :func:`shardwise.set_mesh`.
        placements: one per axis of the mesh. Default: replicated.
        run_check: accepted as in PyTorch.
        shape: the global shape. Default: what the local tensors add up to. The last shards of an uneven dim are
            shorter.
        stride: accepted as in PyTorch; arrays have no strides.

    Returns:
        An :class:`Array`.

    Raises:
        MeshError: no mesh is known.
        ShapeError: the number of local tensors or the shape of one does not fit. DTypeError: not numeric, or of
            different dtypes.
        ShardingError: the placements do not fit or are ``Partial``, or copies of a shard differ.

    Source: `torch.distributed.tensor.DTensor.from_local`.

    >>> import shardwise as sw
    >>> mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    >>> from_local([np.array([1, 2]), np.array([3])], mesh, [Shard(0)])
    Array([1, 2, 3], dtype=int64)
    """
    what = "from_local"
    mesh = _mesh_for(what, local_tensor, device_mesh)
    given = [Replicate()] * len(mesh.axis_names) if placements is None else placements
    locals_ = list(local_tensor) if isinstance(local_tensor, (list, tuple)) else [local_tensor]
    if not locals_:
        raise ShapeError(message(what, "there must be a local tensor for each device", "none"))
    wanted = _spec(what, mesh, given, np.ndim(locals_[0]))
    if shape is not None:
        shape = shape_of(what, shape)
    core = settled(NamedSharding(mesh, wanted).core(np.ndim(locals_[0])))
    return array_from_shards(what, core, locals_, shape)


def _mesh_for(what: str, tensor: Any, device_mesh: Mesh | None) -> Mesh:
    device_mesh = native(device_mesh)
    if device_mesh is not None and not isinstance(device_mesh, Mesh):
        raise MeshError(message(what, "device_mesh must be a Mesh", repr(device_mesh), "write placements= for those"))
    trace = tensor._trace if isinstance(tensor, Tracer) else current_trace()
    own = trace.mesh if trace is not None else tensor.sharding.mesh if isinstance(tensor, Array) else None
    mesh = device_mesh or own or get_mesh() or unpartitioned_mesh() or default_mesh()
    if mesh is None:
        way_out = "pass device_mesh, or call set_mesh first"
        raise MeshError(message(what, "no mesh given", None, way_out))
    return mesh


def __dir__() -> list[str]:
    return sorted(__all__)
