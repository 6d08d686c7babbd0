# SPDX-License-Identifier: Apache-2.0
"""Placing values on a mesh: ``device_put`` and ``reshard``, JAX's names for arrays, trees and traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from .array import Array, put
from .dtypes import refuse_subclass
from .errors import MeshError, ShardingError, message
from .mesh import Mesh, get_mesh
from .partition_spec import PartitionSpec
from .sharding import UNSPECIFIED, NamedSharding
from .tracing import Tracer, current_trace
from .trees import broadcast_prefix, flatten, unflatten

__all__ = ["device_put", "reshard"]


def device_put(x: Any, device: Any = None) -> Any:
    """Place a copy of ``x`` on a mesh; later writes to ``x`` do not show.

    Args:
        x: a tree of NumPy arrays, numbers, and :class:`Array` (which are resharded). In a traced function: of traced
            values, which are constrained.
        device: a prefix tree of where to: a :class:`NamedSharding`; a spec or text, on the ambient mesh (else an
            Array's own); a mesh, to replicate; None, to replicate on the ambient mesh (in a traced function: anywhere).
            An array has no open dims and no priorities: they are dropped.

    Returns:
        The tree with Arrays.

    Raises:
        ShardingError: a sharding that does not fit. MeshError: no mesh is known. DTypeError: no array of numbers.

    Source: `jax.device_put`.

    >>> mesh = Mesh({"x": 2})
    >>> rows = NamedSharding(mesh, PartitionSpec("x"))
    >>> placed = device_put({"w": np.zeros((4, 2)), "b": 1.0}, {"w": rows, "b": mesh})
    >>> placed["w"].sharding.spec, placed["b"].sharding.spec
    (P('x', None), P())
    """
    return _placed("device_put", x, device)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The same values, held as ``out_shardings`` says: on the devices at once, in a traced function as a constraint.

    Args:
        xs: a tree of arrays, or of traced values.
        out_shardings: a prefix tree of shardings, specs or text; specs are on the ambient mesh, a traced program's
            mesh, or the array's own.

    Raises:
        ShardingError: a sharding that does not fit. MeshError: a spec without a mesh.

    Source: `jax.reshard`.

    >>> mesh = Mesh({"x": 2, "y": 2})
    >>> reshard(device_put(np.zeros((4, 2)), mesh), PartitionSpec("x", "y")).sharding.spec
    P('x', 'y')
    """
    return _placed("reshard", xs, out_shardings)


def _placed(what: str, x: Any, shardings: Any) -> Any:
    leaves, tree = flatten(x)
    wanted = broadcast_prefix(shardings, x, what)
    return unflatten(tree, [_place(what, leaf, sharding) for leaf, sharding in zip(leaves, wanted)])


def _place(what: str, x: Any, sharding: Any) -> Any:
    trace = current_trace()
    if isinstance(x, Tracer) or trace is not None:
        trace = x._trace if isinstance(x, Tracer) else trace
        assert trace is not None
        if what == "device_put" and (sharding is None or sharding is UNSPECIFIED):
            return trace.lift(x)
        named = _named(what, sharding, trace.require_mesh(what))
        if named.mesh != trace.mesh:
            raise MeshError(message(what, f"must be on the program's mesh, {trace.mesh!r}", repr(named.mesh)))
        traced = trace.lift(x)
        return trace.constrain(traced, named.core(traced.ndim))
    ambient = get_mesh()
    own = x.sharding.mesh if isinstance(x, Array) else None
    named = _named(what, sharding, own if ambient is None else ambient)
    refuse_subclass(x)
    array = x if isinstance(x, Array) else np.asarray(x)
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
    """What the devices can hold: closed dims, and nothing that only propagation reads."""
    dims = [(axes, False, None) for axes, _, _ in core.dims]
    reducer = core.reducer if core.unreduced else ""
    return _core.mesh.Sharding.make(core.mesh, dims, [], core.unreduced, reducer)
