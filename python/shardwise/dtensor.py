# SPDX-License-Identifier: Apache-2.0
"""PyTorch's words: a placement per mesh dim instead of axes per tensor dim. Thin aliases; the form inside is Shardy's.

``Shard(d)`` for a mesh dim adds its axis to dim d of the tensor: the axes of a dim stand in the order of the mesh.
``Replicate()`` adds nothing, ``Partial(op)`` makes the value unreduced over the axis.

>>> import shardwise as sw
>>> from shardwise.dtensor import Partial, Replicate, Shard, distribute_tensor, init_device_mesh, placements, spec
>>> mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
>>> spec(mesh, [Shard(0), Shard(0)], 2), spec(mesh, [Replicate(), Partial("max")], 2)
(P(('dp', 'tp'), None), P(None, None, unreduced={'tp'}, reducer='max'))
>>> x = distribute_tensor(np.zeros((8, 4)), mesh, [Shard(0), Shard(1)])
>>> x.sharding.spec, placements(x)
(P('dp', 'tp'), (Shard(dim=0), Shard(dim=1)))

Two things differ. A dim that is split over several mesh dims is cut once into equal blocks, and not by each mesh dim in
turn, which matters where sizes do not divide; and a tensor outside of a traced function cannot be ``Partial``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .array import Array
from .errors import MeshError, ShapeError, ShardingError, message, shown
from .mesh import Mesh, get_mesh, make_mesh
from .partition_spec import PartitionSpec, SubAxis, is_integer
from .placement import device_put, reshard
from .sharding import NamedSharding
from .tracing import Tracer, current_trace

__all__ = [
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_tensor",
    "init_device_mesh",
    "placements",
    "redistribute",
    "spec",
]


@dataclass(frozen=True)
class Shard:
    """Along this mesh dim, dim ``dim`` of the tensor is split; negative counts from the end."""

    dim: int


@dataclass(frozen=True)
class Replicate:
    """Along this mesh dim, every device holds the same."""


@dataclass(frozen=True)
class Partial:
    """Along this mesh dim, the devices hold parts that ``reduce_op`` is still to combine.

    ``reduce_op`` is ``"sum"``, ``"product"``, ``"max"``, ``"min"``, ``"band"`` or ``"bor"``.
    """

    reduce_op: str = "sum"


Placement = Shard | Replicate | Partial

_REDUCERS = {"sum": "sum", "product": "prod", "max": "max", "min": "min", "band": "and", "bor": "or"}
_REDUCE_OPS = {reducer: op for op, reducer in _REDUCERS.items()}


def DeviceMesh(  # noqa: N802
    device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None
) -> Mesh:
    """A :class:`Mesh` from an array of device ids; its dims are called ``dim_0``, ``dim_1``, … unless named.

    ``device_type`` is PyTorch's ``"cpu"`` or ``"cuda"``; a virtual mesh has no use for it.

    Raises:
        MeshError: not one name per dim, or ids that are no permutation.

    >>> DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp"))
    Mesh('dp': 2, 'tp': 2)
    """
    ids = np.asarray(mesh)
    if not ids.ndim:
        raise MeshError(message("DeviceMesh", "a mesh must have dims", repr(mesh), "use an array of device ids"))
    return make_mesh(ids.shape, _dim_names(ids.ndim, mesh_dim_names), devices=[int(i) for i in ids.reshape(-1)])


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None
) -> Mesh:
    """A :class:`Mesh` of this shape over the devices in order.

    Raises:
        MeshError: no sizes, not one name per dim, or a size below 1.

    >>> init_device_mesh("cpu", (2, 4))
    Mesh('dim_0': 2, 'dim_1': 4)
    """
    if not isinstance(mesh_shape, Sequence):
        raise MeshError(message("init_device_mesh", "takes a sequence of sizes", repr(mesh_shape), "write (size,)"))
    return make_mesh(mesh_shape, _dim_names(len(mesh_shape), mesh_dim_names))


def _dim_names(ndim: int, names: Sequence[str] | None) -> Sequence[str]:
    return [f"dim_{i}" for i in range(ndim)] if names is None else names


def spec(device_mesh: Mesh, placements: Sequence[Placement], ndim: int) -> PartitionSpec:
    """The spec that says the same of a tensor of ``ndim`` dims as one placement per dim of the mesh.

    Raises:
        ShardingError: not one placement per mesh dim, what is no placement, or two ways to combine parts. ShapeError: a
            dim that the tensor has not.
    """
    if not isinstance(device_mesh, Mesh):
        raise MeshError(message("spec", "device_mesh must be a Mesh", shown(device_mesh)))
    axes = device_mesh.axis_names
    given = list(placements) if isinstance(placements, (list, tuple)) else [placements]
    if len(given) != len(axes) or not all(isinstance(each, (Shard, Replicate, Partial)) for each in given):
        way_out = "use Shard(dim), Replicate() or Partial(op) for each"
        rule = f"must be one placement for each of the {len(axes)} dims of {device_mesh!r}"
        raise ShardingError(message("placements", rule, repr(placements), way_out))
    dims: list[list[str]] = [[] for _ in range(ndim)]
    reducers: dict[str, str] = {}
    for axis, placement in zip(axes, given):
        if isinstance(placement, Shard):
            if not is_integer(placement.dim, -ndim) or placement.dim >= ndim:
                raise ShapeError(message("Shard", f"dim must be an integer in [{-ndim}, {ndim})", repr(placement.dim)))
            dims[placement.dim].append(axis)
        if isinstance(placement, Partial):
            reducers[axis] = _reducer(placement)
    if len(set(reducers.values())) > 1:
        raise ShardingError(message("Partial", "all parts of a tensor must combine in one way", repr(placements)))
    return PartitionSpec(*map(tuple, dims), unreduced=reducers, reducer=next(iter(reducers.values()), "sum"))


def _reducer(placement: Partial) -> str:
    if placement.reduce_op not in _REDUCERS:
        rule = f"reduce_op must be one of {', '.join(_REDUCERS)}"
        raise ShardingError(message("Partial", rule, repr(placement.reduce_op)))
    return _REDUCERS[placement.reduce_op]


def placements(x: Array | NamedSharding) -> tuple[Placement, ...]:
    """One placement per mesh dim for an array or a sharding: the inverse of :func:`spec`.

    Raises:
        ShardingError: what placements cannot say: a dim whose axes are not in the order of the mesh, or sub-axes.
        TypeError: what is on no mesh.
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


def distribute_tensor(
    tensor: Any, device_mesh: Mesh | None = None, placements: Sequence[Placement] | None = None
) -> Any:
    """Place a tensor on a mesh: :func:`shardwise.device_put` with placements. Returns an :class:`Array`.

    Args:
        tensor: a NumPy array, a number, or an Array; in a traced function a traced value, which is constrained.
        device_mesh: default: the mesh of :func:`shardwise.set_mesh`, or of the program.
        placements: one per dim of the mesh; default: replicated.

    Raises:
        MeshError: no mesh is known. ShardingError, ShapeError: placements that do not fit.

    Source: `torch.distributed.tensor.distribute_tensor`.
    """
    mesh = _mesh_for("distribute_tensor", tensor, device_mesh)
    given = [Replicate()] * len(mesh.axis_names) if placements is None else placements
    return device_put(tensor, NamedSharding(mesh, spec(mesh, given, np.ndim(tensor))))


def redistribute(tensor: Any, device_mesh: Mesh | None = None, placements: Sequence[Placement] | None = None) -> Any:
    """The tensor with other placements: :func:`shardwise.reshard`. ``device_mesh`` defaults to the tensor's own.

    Raises:
        ShardingError: no placements, or some that do not fit. MeshError: no mesh is known.

    Source: `torch.distributed.tensor.DTensor.redistribute`.
    """
    mesh = _mesh_for("redistribute", tensor, device_mesh)
    if placements is None:
        raise ShardingError(message("redistribute", "placements must be given", "None", "use one per dim of the mesh"))
    return reshard(tensor, NamedSharding(mesh, spec(mesh, placements, np.ndim(tensor))))


def _mesh_for(what: str, tensor: Any, device_mesh: Mesh | None) -> Mesh:
    if device_mesh is not None and not isinstance(device_mesh, Mesh):
        raise MeshError(message(what, "device_mesh must be a Mesh", repr(device_mesh), "write placements= for those"))
    trace = tensor._trace if isinstance(tensor, Tracer) else current_trace()
    own = trace.mesh if trace is not None else tensor.sharding.mesh if isinstance(tensor, Array) else None
    mesh = device_mesh or own or get_mesh()
    if mesh is None:
        way_out = "pass device_mesh, or call set_mesh first"
        raise MeshError(message(what, "a mesh must be known", None, way_out))
    return mesh
