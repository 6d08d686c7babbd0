# SPDX-License-Identifier: Apache-2.0
"""Placing values on a mesh: ``device_put`` and ``reshard``, for arrays, trees and traced values, as in JAX."""

from __future__ import annotations

from typing import Any

from . import _core
from .array import Array, put
from .array_leaves import numbers_of
from .dtypes import way_to_numbers
from .errors import DTypeError, MeshError, ShardingError, described, message, naming
from .mesh import Mesh, get_mesh
from .partition_spec import PartitionSpec
from .sharding import UNSPECIFIED, NamedSharding
from .traceback_filtering import entry_point
from .tracing import Tracer, current_trace
from .trees import broadcast_prefix, flatten, leaf_names, unflatten
from .unpartitioned import as_numpy, unpartitioned_mesh

__all__ = ["device_put", "reshard"]


@entry_point
def device_put(x: Any, device: Any = None) -> Any:
    """Place a copy of ``x`` on a mesh. Later writes to ``x`` do not change the copy.

    Args:
        x: a tree of NumPy arrays and numbers, or of :class:`Array`, which are resharded. In a traced function, the
            leaves are traced values, which are constrained.
        device: a prefix tree of destinations: a :class:`NamedSharding`; a spec or text, for the default mesh or an
            array's own; a mesh, to replicate on it; or None, to replicate on the default mesh (in a traced function:
            no constraint). Open dims and priorities are dropped, because an array on a mesh has neither.

    Returns:
        The tree with :class:`Array` leaves.

    Raises:
        ShardingError: a sharding does not fit.
        MeshError: no mesh is known.
        DTypeError: a leaf is not an array of numbers.

    Source: `jax.device_put`.

    >>> import numpy as np
    >>> mesh = Mesh({"x": 2})
    >>> rows = NamedSharding(mesh, PartitionSpec("x"))
    >>> placed = device_put({"w": np.zeros((4, 2)), "b": 1.0}, {"w": rows, "b": mesh})
    >>> placed["w"].sharding.spec, placed["b"].sharding.spec
    (P('x', None), P())
    """
    return _placed("device_put", x, device)


@entry_point
def reshard(xs: Any, out_shardings: Any) -> Any:
    """Change the sharding of arrays: immediately on the mesh, or as a constraint in a traced function.

    Args:
        xs: a tree of arrays, or of traced values.
        out_shardings: a prefix tree of shardings, specs or text. Specs refer to the default mesh, the mesh of the
            traced program, or the array's own.

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
    return _placed("reshard", xs, out_shardings)


def _placed(what: str, x: Any, shardings: Any) -> Any:
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
        named = _named(what, sharding, trace.require_mesh(what, own))
        if named.mesh != trace.mesh:
            raise MeshError(message(what, f"must be on the program's mesh, {trace.mesh!r}", repr(named.mesh)))
        traced = trace.lift(x)
        return trace.constrain(traced, named.core(traced.ndim))
    reference = unpartitioned_mesh()
    x = x if reference is None else as_numpy(x)
    ambient = get_mesh() or reference
    own = x.sharding.mesh if isinstance(x, Array) else None
    named = _named(what, sharding, own if ambient is None else ambient)
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
    core = _settled(named.core(array.ndim))
    if not isinstance(array, Array):
        return put(array, core)
    core.verify(array.shape)
    return Array(array._data.reshard(core))


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


def _settled(core: _core.mesh.Sharding) -> _core.mesh.Sharding:
    """The sharding of an array on devices: closed dims, without replicated axes and priorities."""
    dims = [(axes, False, None) for axes, _, _ in core.dims]
    reducer = core.reducer if core.unreduced else ""
    return _core.mesh.Sharding.make(core.mesh, dims, [], core.unreduced, reducer)
