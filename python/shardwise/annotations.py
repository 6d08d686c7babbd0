# SPDX-License-Identifier: Apache-2.0
"""What a user says about a tensor: GShard's ``replicate``, ``split`` and ``shard``, and names for reports.

Each is the identity, and a constraint on the *returned* value: use what it returns. On a plain NumPy array, outside
:func:`shardwise.jit`, they return the array, so that an annotated function is still the NumPy program it was; what they
say must fit the array there, too, on the mesh of the sharding or of :func:`shardwise.set_mesh` where one is known. On
an :class:`Array` they return it resharded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core
from .array import Array
from .device_assignment import assignment_dims, axes_for_parts
from .errors import MeshError, ShapeError, ShardingError, is_one_of, message
from .jit import jit
from .layouts import Layout, current_layout
from .mesh import Mesh, get_mesh
from .partition_spec import Axis, PartitionSpec, SubAxis, is_integer
from .sharding import UNSPECIFIED, NamedSharding, check_ndim
from .tracing import Trace, Tracer, current_trace, recording
from .trees import broadcast_prefix, flatten, unflatten

__all__ = [
    "logical",
    "name",
    "propagation_barrier",
    "replicate",
    "shard",
    "sharding_group",
    "split",
    "with_sharding_constraint",
]


def _annotated(x: Any, annotation: Callable[..., Any], *how: Any) -> Any:
    """``x``, ready for the annotation: an array that a traced function closes over is traced; an Array is resharded.

    A Python number stays one, which beside an array has no dtype of its own, as an array outside a traced function
    stays one; but what is said must fit it.
    """
    trace = current_trace()
    if trace is not None and isinstance(x, (Array, np.ndarray, np.generic)):
        return trace.lift(x)
    if trace is not None and isinstance(x, (bool, int, float)):
        _try_on(trace.mesh, x, annotation, how)
        return x
    if trace is not None and not isinstance(x, Tracer):
        what = annotation.__name__
        way_out = "annotate each of its arrays, or use with_sharding_constraint"
        raise ShardingError(message(what, "takes one array in a traced function", type(x).__name__, way_out))
    if isinstance(x, Array):
        return jit(lambda traced: annotation(traced, *how))(x)
    mesh = next((said.mesh for said in how if isinstance(said, NamedSharding)), get_mesh())
    if mesh is not None and isinstance(x, (np.ndarray, np.generic, bool, int, float)):
        _try_on(mesh, x, annotation, how)
    return x


def _try_on(mesh: Mesh | None, x: Any, annotation: Callable[..., Any], how: tuple[Any, ...]) -> None:
    """Raise what the annotation raises for an array of this shape, whatever its elements are."""
    probe = Trace("probe", mesh)
    with recording(probe):
        annotation(probe.argument(np.shape(x), np.dtype(np.float32), "x", None), *how)


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
        if isinstance(x, (np.ndarray, np.generic)):
            check_ndim("split", dim, x.ndim)
        return x
    dim = check_ndim("split", dim, x.ndim)
    mesh = x._trace.require_mesh("split")
    if isinstance(partitions, (int, np.integer)) and not isinstance(partitions, bool):
        axes: tuple[Any, ...] = axes_for_parts(mesh, int(partitions), x._trace.manual_axes)
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
    return _sharded("shard", x, sharding) if isinstance(x, Tracer) else x


def _sharded(what: str, x: Tracer, sharding: Any) -> Tracer:
    mesh = x._trace.require_mesh(what)
    if isinstance(sharding, (np.ndarray, list)):
        assignment = np.asarray(sharding)
        if assignment.ndim != x.ndim or assignment.dtype.kind not in "iu":
            raise ShardingError(
                message(
                    what,
                    f"a device assignment must be an integer array of {x.ndim} dims",
                    f"{assignment.ndim}-dim {assignment.dtype}",
                )
            )
        sharding = PartitionSpec(*assignment_dims(mesh, assignment))
    if isinstance(sharding, (PartitionSpec, str)):
        sharding = NamedSharding(mesh, sharding)
    if not isinstance(sharding, NamedSharding):
        raise ShardingError(message(what, "takes P(...), NamedSharding, text or a device assignment", repr(sharding)))
    if sharding.mesh != mesh:
        rule = f"the sharding's mesh must be the program's {mesh!r}"
        raise MeshError(message(what, rule, repr(sharding.mesh), "use one mesh in a program"))
    return x._trace.constrain(x, sharding.core(x.ndim))


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Constrain every array of a tree, as :func:`shard` does for one.

    Args:
        x: a tree of arrays.
        shardings: a prefix tree of specs, :class:`NamedSharding` or text; None is ``P()``, every dim whole, and
            ``UNSPECIFIED`` constrains nothing.

    Returns:
        The tree with constrained values. As annotations do, it returns what is on no mesh as it is.

    Raises:
        ShardingError: shardings that are no prefix of ``x``, or that do not fit.

    Source: `jax.lax.with_sharding_constraint`.

    >>> import shardwise as sw
    >>> def f(tree):
    ...     return with_sharding_constraint(tree, {"a": sw.P("x"), "b": None})
    >>> placed = sw.jit(f, mesh=sw.Mesh({"x": 2}))({"a": np.zeros(4), "b": np.zeros(2)})
    >>> placed["a"].sharding.spec, placed["b"].sharding.spec
    (P('x'), P(None))
    """
    leaves, tree = flatten(x)
    wanted = broadcast_prefix(shardings, x, "with_sharding_constraint")
    wanted = [PartitionSpec() if sharding is None else sharding for sharding in wanted]
    pairs = zip(leaves, wanted)
    placed = [leaf if sharding is UNSPECIFIED else _one(leaf, sharding) for leaf, sharding in pairs]
    is_on_mesh = current_trace() is not None or any(isinstance(leaf, (Array, Tracer)) for leaf in leaves)
    return unflatten(tree, placed) if is_on_mesh else x


def _one(x: Any, sharding: Any) -> Any:
    """A leaf of the tree of :func:`with_sharding_constraint`."""
    x = _annotated(x, with_sharding_constraint, sharding)
    return _sharded("with_sharding_constraint", x, sharding) if isinstance(x, Tracer) else x


def logical(x: Any, names: str | Sequence[str | None]) -> Any:
    """Name the dims of ``x``, and lay them out as the rules of :func:`shardwise.axis_rules` say.

    Every dim is closed: one whose name has no rule, or that has no name (``"_"`` or None), is whole on every device.
    Without rules nothing is said about ``x``.

    Args:
        x: an array of any shape.
        names: one name per dim, ``"batch hidden"`` or ``("batch", "hidden")``.

    Raises:
        ShapeError: not one name per dim. ShardingError: a name used twice; an illegal layout, in which two dims of one
            tensor lie on one mesh axis; a rule for an axis that the mesh has not.

    Source: Mesh-TensorFlow (arXiv 1811.02084): dims have names, and a layout is a map from names to mesh dims.
    """
    layout = current_layout()
    listed: Any = names.split() if isinstance(names, str) else names
    if not isinstance(listed, Sequence) or not all(dim is None or isinstance(dim, str) for dim in listed):
        raise ShardingError(message("logical", "the names of dims must be text", repr(names)))
    dims = tuple(None if dim == "_" else dim for dim in listed)
    x = _annotated(x, logical, names)
    if isinstance(x, (Tracer, np.ndarray, np.generic)) and len(dims) != x.ndim:
        raise ShapeError(message("logical", f"an array of {x.ndim} dims needs as many names", repr(names)))
    if not isinstance(x, Tracer) or layout is None:
        return x
    mesh = x._trace.require_mesh("logical")
    _check_layout(dims, layout, mesh)
    return shard(x, PartitionSpec(*(() if dim is None else layout.axes(dim) for dim in dims)))


def sharding_group(values: Any, group_id: int | None = None) -> Any:
    """Let all arrays of a tree have one sharding, whatever propagation makes it.

    Args:
        values: a tree of arrays of one shape. Outside a traced function nothing happens to it.
        group_id: puts them into the group of that number, with what other calls put there; default: a new group.

    Returns:
        ``values``; it need not be used.

    Raises:
        ShapeError: values of different shapes. ValueError: a number below 0.

    Source: Shardy's `sdy.sharding_group`.

    >>> import shardwise as sw
    >>> def f(x, y):
    ...     x = sw.split(x, 0, "x")
    ...     sw.sharding_group((x, y))
    ...     return y
    >>> sw.jit(f, mesh=sw.Mesh({"x": 2}))(np.zeros((4, 2)), np.ones((4, 2))).sharding.spec
    P('x', None)
    """
    if group_id is not None and (not is_integer(group_id, 0) or group_id >= 2**63):
        raise ValueError(message("sharding_group", "group_id must be an integer in [0, 2^63)", repr(group_id)))
    leaves = flatten(values)[0]
    traced = next((leaf._trace for leaf in leaves if isinstance(leaf, Tracer)), current_trace())
    if traced is None:
        return values
    number = max(traced.groups, default=-1) + 1 if group_id is None else int(group_id)
    for leaf in leaves:
        x = traced.lift(leaf)
        shape = traced.groups.setdefault(number, x.shape)
        if shape != x.shape:
            raise ShapeError(message("sharding_group", f"all values of a group must have one shape, {shape}", x.shape))
        traced.emit_op("sdy.sharding_group", [x], {"group_id": number})
    return values


_DIRECTIONS = {"none": np.int32(0), "forward": np.int32(1), "backward": np.int32(2)}  # Shardy's numbers


def propagation_barrier(x: Any, allowed_direction: str) -> Any:
    """The identity that shardings pass in one direction only.

    Args:
        x: a tree of arrays.
        allowed_direction: ``"forward"``, from ``x`` to what uses the result; ``"backward"``, from there to ``x``; or
            ``"none"``.

    Returns:
        ``x``'s values, behind the barrier.

    Raises:
        ValueError: another direction.

    Source: Shardy's `sdy.propagation_barrier`.

    >>> import shardwise as sw
    >>> def f(x):
    ...     return sw.propagation_barrier(sw.split(x, 0, "x"), "backward") + 1
    >>> sw.jit(f, mesh=sw.Mesh({"x": 2}))(np.zeros(4)).sharding.spec
    P(None)
    """
    if not is_one_of(allowed_direction, _DIRECTIONS):
        rule = "allowed_direction must be 'forward', 'backward' or 'none'"
        raise ValueError(message("propagation_barrier", rule, repr(allowed_direction)))
    leaves, tree = flatten(x)
    traced = next((leaf._trace for leaf in leaves if isinstance(leaf, Tracer)), current_trace())
    if traced is None:
        return x
    attrs = {"allowed_direction": _DIRECTIONS[allowed_direction]}
    return unflatten(tree, [traced.emit("sdy.propagation_barrier", [traced.lift(leaf)], attrs) for leaf in leaves])


def _check_layout(dims: tuple[str | None, ...], layout: Layout, mesh: Mesh) -> None:
    """Mesh-TensorFlow's rule: a legal layout puts the dims of a tensor on different mesh axes."""
    named = [dim for dim in dims if dim is not None]
    for i, dim in enumerate(named):
        if dim in named[:i]:
            raise ShardingError(message("logical", "the dims of a tensor must have different names", f"{dim!r} twice"))
        for axis in layout.axes(dim):
            name = axis if isinstance(axis, str) else axis.name
            if name not in mesh.axis_names:
                rule = f"the rule of a dim must name an axis of {mesh!r}"
                way_out = f"use one of {', '.join(map(repr, mesh.axis_names))}, or give {dim!r} no rule"
                raise ShardingError(message("logical", rule, f"{dim!r}: {axis!r}", way_out))
            for other in named[:i]:
                if any(_overlap(axis, taken) for taken in layout.axes(other)):
                    rule = "two dims of a tensor must lie on different mesh axes"
                    got = f"{other!r} and {dim!r} both on {name!r}"
                    raise ShardingError(message("logical", rule, got, "change the rule of one of them"))


def _overlap(a: Axis, b: Axis) -> bool:
    if isinstance(a, SubAxis) and isinstance(b, SubAxis):
        return a.name == b.name and a.pre < b.pre * b.size and b.pre < a.pre * a.size
    return (a if isinstance(a, str) else a.name) == (b if isinstance(b, str) else b.name)


def name(x: Any, text: str) -> Any:
    """Name ``x`` in programs and reports: ``prog.why(text)`` then finds it. Returns ``x``."""
    if not isinstance(text, str):
        raise TypeError(message("name", "a name must be a string", repr(text)))
    if text.startswith(("%", "@")) or not text:
        rule = "a name must not be empty, nor start with % or @, as those of program text do"
        raise ValueError(message("name", rule, repr(text)))
    trace = current_trace()
    if trace is not None and isinstance(x, (Array, np.ndarray)):
        x = trace.lift(x)
    if isinstance(x, Tracer):
        x._trace.set_name(x, text)
    return x
