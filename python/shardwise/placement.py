# SPDX-License-Identifier: Apache-2.0
"""Placing values on a mesh: ``device_put`` and ``reshard``, for arrays, trees and traced values, as in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from .array import Array, ShapeDtypeStruct, put
from .array_leaves import numbers_of
from .dtypes import way_to_numbers
from .errors import DTypeError, MeshError, ShardingError, described, message, naming
from .process.processes import current_processes, place_on
from .process.traceback_filtering import entry_point
from .programs.options import switch
from .recording.tracing import Tracer, current_trace
from .shardings.mesh import Mesh, default_mesh, get_mesh
from .shardings.other_meshes import check_same_devices, on_program_mesh
from .shardings.partition_spec import PartitionSpec
from .shardings.sharding import UNSPECIFIED, NamedSharding
from .trees import broadcast_prefix, flatten, leaf_names, unflatten
from .unpartitioned import as_numpy, unpartitioned_mesh

__all__ = ["device_put", "placed", "reshard", "settled"]


@entry_point
def device_put(x: Any, device: Any = None, *, root: int | None = None, own_part: bool = False) -> Any:
    """Place a copy of ``x`` on a mesh. Later writes to ``x`` do not change the copy.

    With several MPI ranks (:mod:`shardwise.mpi`), all ranks call it, and each passes the same ``x`` and keeps the part
    of its devices, unless ``root`` or ``own_part`` is given. The ranks compare ``x``, and all of them raise
    ``RankMismatchError`` if it differs.

    Args:
        x: a tree of NumPy arrays and numbers, or of :class:`Array`, which are resharded. In a traced function, the
            leaves are traced values, which are constrained.
        device: a prefix tree of destinations: a :class:`NamedSharding`; a spec or text, for the default mesh or an
            array's own; a mesh, to replicate on it; or None, to replicate on the default mesh (in a traced function:
            no constraint). Open dims and priorities are dropped, because an array on a mesh has neither.
        root: only this rank passes ``x``, and sends each rank its part; the others may pass None.
        own_part: each rank passes the rows that its devices hold, in the order of the whole array. In one process
            that is the whole array. Ranks that hold the same rows must pass equal bits: all ranks raise
            ``RankMismatchError`` if they differ.

    Returns:
        The tree with :class:`Array` leaves.

    Raises:
        ShardingError: a sharding does not fit.
        MeshError: no mesh is known.
        DTypeError: a leaf is not an array of numbers.
        ShapeError: ``own_part`` of another shape than the sharding has.

    Source: `jax.device_put`.

    >>> import numpy as np
    >>> mesh = Mesh({"x": 2})
    >>> rows = NamedSharding(mesh, PartitionSpec("x"))
    >>> placed = device_put({"w": np.zeros((4, 2)), "b": 1.0}, {"w": rows, "b": mesh})
    >>> placed["w"].sharding.spec, placed["b"].sharding.spec
    (P('x', None), P())
    """
    if root is None and not switch("device_put", "own_part", own_part, False):
        return placed("device_put", x, device)
    if current_trace() is not None:
        rule = "root= and own_part= must not be given in a traced function"
        raise ShardingError(message("device_put", rule, None, "place the array before the call"))
    if own_part:
        if root is not None:
            raise ShardingError(message("device_put", "takes either root= or own_part=", "both"))
        return _from_ranks(x, device, _from_own_part)
    processes = current_processes()
    ranks = 1 if processes is None else processes.size
    if isinstance(root, bool) or not isinstance(root, int) or not 0 <= root < ranks:
        raise ShardingError(message("device_put", f"root must be a rank from 0 to {ranks - 1}", repr(root)))
    if processes is None or unpartitioned_mesh() is not None:
        return placed("device_put", x, device)
    leaves, tree = flatten(x)
    arrays = [_numpy_leaf(leaf) for leaf in leaves] if processes.rank == root else []
    shapes = [ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in arrays]
    avals = processes.broadcast(unflatten(tree, shapes) if processes.rank == root else None, root)
    mine = iter(arrays)
    return _from_ranks(avals, device, lambda aval, core: _from_root(root, next(mine, None), aval, core))


def _from_ranks(x: Any, device: Any, make: Callable[[Any, _core.mesh.Sharding], Array]) -> Any:
    """The tree with Arrays that ``make`` assembles from what the ranks have."""
    leaves, tree = flatten(x)
    placed = []
    for leaf, path, sharding in zip(leaves, leaf_names(x), broadcast_prefix(device, x, "device_put")):
        with naming(f"device_put of x{path}" if path else "device_put"):
            array = leaf if isinstance(leaf, ShapeDtypeStruct) else _numpy_leaf(leaf)
            core = settled(_named("device_put", sharding, default_mesh()).core(array.ndim))
            placed.append(make(array, core))
    return unflatten(tree, placed)


def _numpy_leaf(leaf: Any) -> np.ndarray:
    array = None if isinstance(leaf, (Array, Tracer)) else numbers_of(leaf)
    if array is None:
        rule = "root= and own_part= take NumPy arrays of numbers"
        raise DTypeError(message("device_put", rule, described(leaf), "leave the option out"))
    return np.asarray(array)


def _from_root(root: int, array: np.ndarray | None, aval: ShapeDtypeStruct, core: _core.mesh.Sharding) -> Array:
    core.verify(aval.shape)
    place = place_on(core.mesh)
    return Array(place.scatter_from(root, array, aval, core), place)


def _from_own_part(part: np.ndarray, core: _core.mesh.Sharding) -> Array:
    place = place_on(core.mesh)
    return Array(place.from_own_part(part, core), place)


@entry_point
def reshard(xs: Any, out_shardings: Any) -> Any:
    """Change the sharding of arrays: immediately on the mesh, or as a constraint in a traced function.

    Args:
        xs: a tree of arrays, or of traced values.
        out_shardings: a prefix tree of shardings, specs or text. Specs refer to the default mesh, the mesh of the
            traced program, or the array's own. The mesh of a sharding may be another one over the same devices.

    Returns:
        The tree with the new shardings.

    Raises:
        ShardingError: a sharding does not fit.
        MeshError: a spec, and no mesh is known.

    Source: `jax.reshard`.

    >>> import numpy as np
    >>> mesh = Mesh({"x": 2, "y": 2})
    >>> reshard(device_put(np.zeros((4, 2)), mesh), PartitionSpec("x", "y")).sharding.spec
    P('x', 'y')
    """
    return placed("reshard", xs, out_shardings)


def placed(what: str, x: Any, shardings: Any) -> Any:
    """``x`` with these shardings, a prefix tree, for a call of the public function ``what``."""
    leaves, tree = flatten(x)
    wanted = broadcast_prefix(shardings, x, what)
    names = leaf_names(x)
    return unflatten(tree, [_named_place(what, *each) for each in zip(leaves, names, wanted)])


def _named_place(what: str, x: Any, path: str, sharding: Any) -> Any:
    with naming(f"{what} of x{path}" if path else what):
        return _place(what, x, path, sharding)


def _place(what: str, x: Any, path: str, sharding: Any) -> Any:
    trace = current_trace()
    if isinstance(x, Tracer) or trace is not None:
        trace = x._trace if isinstance(x, Tracer) else trace
        assert trace is not None
        if what == "device_put" and (sharding is None or sharding is UNSPECIFIED):
            return trace.lift(x)
        own = sharding.mesh if isinstance(sharding, NamedSharding) else None
        mesh = trace.require_mesh(what, own)
        named = _named(what, sharding, mesh)
        check_same_devices(what, mesh, named.mesh)
        traced = trace.lift(x)
        return trace.constrain(traced, on_program_mesh(mesh, named.core(traced.ndim)))
    reference = unpartitioned_mesh()
    x = x if reference is None else as_numpy(x)
    own = x.sharding.mesh if isinstance(x, Array) else None
    named = _named(what, sharding, get_mesh() or reference or own or default_mesh())
    array = x if isinstance(x, Array) else numbers_of(x)
    if array is None:
        rule = "every leaf must be an array of numbers"
        way_out = (
            "leave it out of the tree"
            if path and not hasattr(x, "dtype")
            else way_to_numbers(x) or "convert it with astype"
        )
        raise DTypeError(message(what, rule, f"{described(x)} for x{path}", way_out))
    if reference is not None:
        named.core(array.ndim)  # checked, as in the partitioned run
        return array
    core = settled(named.core(array.ndim))
    if not isinstance(array, Array):
        return put(array, core, (f"{what} of x{path}", f"x{path}"))
    core.verify(array.shape)
    place = place_on(core.mesh)
    return Array(array._moved(core, place), place)


def _named(what: str, sharding: Any, mesh: Mesh | None) -> NamedSharding:
    if isinstance(sharding, NamedSharding):
        return sharding
    if what == "reshard" and not isinstance(sharding, (PartitionSpec, str)):
        raise ShardingError(message(what, "takes P(...), NamedSharding or text", repr(sharding)))
    if isinstance(sharding, Mesh):
        return NamedSharding(sharding, PartitionSpec())
    spec = PartitionSpec() if sharding is None or sharding is UNSPECIFIED else sharding
    if not isinstance(spec, (PartitionSpec, str)):
        raise ShardingError(message(what, "takes a NamedSharding, a spec or a mesh", repr(sharding)))
    if mesh is None:
        way_out = "use NamedSharding(mesh, spec) or set_mesh"
        raise MeshError(message(what, "a spec needs a mesh", repr(spec), way_out))
    return NamedSharding(mesh, spec)


def settled(core: _core.mesh.Sharding) -> _core.mesh.Sharding:
    """The sharding of an array on devices: closed dims, without replicated axes and priorities."""
    dims = [(axes, False, None) for axes, _, _ in core.dims]
    reducer = core.reducer if core.unreduced else ""
    return _core.mesh.Sharding.make(core.mesh, dims, [], core.unreduced, reducer)
