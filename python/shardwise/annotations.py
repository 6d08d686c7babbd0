# SPDX-License-Identifier: Apache-2.0
"""What a user says about a tensor: GShard's ``replicate``, ``split`` and ``shard``, and names for reports.

Each is the identity, and a constraint on the *returned* value: use what it returns. On a plain NumPy array, outside
:func:`shardwise.jit`, they return the array, so that an annotated function is still the NumPy program it was; on an
:class:`Array` they return it resharded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from .array import Array
from .errors import ShardingError, message
from .jit import jit
from .sharding import Axis, NamedSharding, PartitionSpec, SubAxis, assignment_dims, axes_for_parts, check_ndim
from .tracing import Tracer, current_trace

__all__ = ["name", "replicate", "shard", "split", "with_sharding_constraint"]


def _annotated(x: Any, annotation: Callable[..., Any], *how: Any) -> Any:
    """``x``, ready for the annotation: an array that a traced function closes over is traced; an Array is resharded."""
    trace = current_trace()
    if trace is not None and isinstance(x, (Array, np.ndarray)):
        return trace.lift(x)
    if isinstance(x, Array):
        return jit(lambda traced: annotation(traced, *how))(x)
    return x


def _constrain(x: Tracer, what: str, dims: list[tuple[list[Any], bool, int | None]]) -> Tracer:
    mesh = x._trace.require_mesh(what)
    return x._trace.constrain(x, _core.mesh.Sharding.make(mesh._core, dims))


def replicate(x: Any) -> Any:
    """Every device holds the whole of ``x``: all dims closed, without axes (GShard section 3.1).

    Returns ``x``'s value, constrained. Raises ShardingError when no mesh is known.
    """
    x = _annotated(x, replicate)
    if not isinstance(x, Tracer):
        return x
    return _constrain(x, "replicate", [([], False, None)] * x.ndim)


def split(x: Any, dim: int, partitions: int | Axis | tuple[Axis, ...]) -> Any:
    """Split dim ``dim`` of ``x``; the other dims stay open to propagation (GShard section 3.1).

    Args:
        x: an array of any shape.
        dim: the dim to split; negative counts from the end.
        partitions: axis names, major to minor; or a number, which puts partition i on the i-th group of devices.

    Raises:
        ShapeError: no such dim. ShardingError: unknown axes, or a number that does not divide the devices.
    """
    x = _annotated(x, split, dim, partitions)
    if not isinstance(x, Tracer):
        return x
    dim = check_ndim("split", dim, x.ndim)
    mesh = x._trace.require_mesh("split")
    if isinstance(partitions, (int, np.integer)) and not isinstance(partitions, bool):
        axes: tuple[Any, ...] = axes_for_parts(mesh, int(partitions))
    else:
        axes = tuple(partitions) if isinstance(partitions, (tuple, list)) else (partitions,)
    if not all(isinstance(axis, (str, SubAxis)) for axis in axes):
        raise ShardingError(
            message("split", "partitions must be a number, an axis name, or a tuple of names", repr(partitions))
        )
    dims: list[tuple[list[Any], bool, int | None]] = [([], True, None)] * x.ndim
    dims[dim] = ([a if isinstance(a, str) else (a.name, a.pre, a.size) for a in axes], False, None)
    return _constrain(x, "split", dims)


def shard(x: Any, sharding: PartitionSpec | NamedSharding | str | np.ndarray | list[Any]) -> Any:
    """Shard ``x`` as said; every dim is closed unless ``open(...)`` or ``?`` opens it (GShard section 3.1).

    Args:
        x: an array of any shape.
        sharding: a spec ``P(...)``; a :class:`NamedSharding`; Shardy text, ``'[{"x":(1)2, ?}, {}]'``; or a device
            assignment, an integer array of ``x``'s ndim whose elements are the ids of the devices that hold the tiles.

    Raises:
        ShardingError: unknown axes, an axis used twice, more entries than dims. ParseError: malformed text.
    """
    x = _annotated(x, shard, sharding)
    if not isinstance(x, Tracer):
        return x
    mesh = x._trace.require_mesh("shard")
    if isinstance(sharding, (np.ndarray, list)):
        assignment = np.asarray(sharding)
        if assignment.ndim != x.ndim or assignment.dtype.kind not in "iu":
            raise ShardingError(
                message(
                    "shard",
                    f"a device assignment must be an integer array of {x.ndim} dims",
                    f"{assignment.ndim}-dim {assignment.dtype}",
                )
            )
        sharding = PartitionSpec(*assignment_dims(mesh, assignment))
    if isinstance(sharding, (PartitionSpec, str)):
        sharding = NamedSharding(mesh, sharding)
    if not isinstance(sharding, NamedSharding):
        raise ShardingError(
            message("shard", "takes P(...), NamedSharding, text or a device assignment", repr(sharding))
        )
    if sharding.mesh != mesh:
        raise ShardingError(
            message(
                "shard",
                f"the sharding's mesh must be the program's {mesh!r}",
                repr(sharding.mesh),
                "use one mesh in a program",
            )
        )
    return x._trace.constrain(x, sharding.core(x.ndim))


def with_sharding_constraint(x: Any, sharding: PartitionSpec | NamedSharding | str) -> Any:
    """JAX's name for :func:`shard`."""
    return shard(x, sharding)


def name(x: Any, text: str) -> Any:
    """Name ``x`` in programs and reports: ``prog.why(text)`` then finds it. Returns ``x``."""
    if not isinstance(text, str):
        raise TypeError(message("name", "a name must be a string", repr(text)))
    trace = current_trace()
    if trace is not None and isinstance(x, (Array, np.ndarray)):
        x = trace.lift(x)
    if isinstance(x, Tracer):
        x._trace.set_name(x, text)
    return x
