# SPDX-License-Identifier: Apache-2.0
"""Annotations of tensors: GShard's ``replicate``, ``split`` and ``shard``, and names for reports.

Every annotation is an identity that constrains the value that it *returns*, so use the result. On a plain NumPy array,
outside :func:`shardwise.jit`, it returns the array unchanged: an annotated function is still a NumPy program. The
annotation is checked there, too, if the mesh is known from the sharding or from :func:`shardwise.set_mesh`. On an
:class:`Array`, it returns the resharded array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core
from .array import Array
from .errors import ShapeError, ShardingError, is_integer, is_one_of, message, naming, warn
from .jit import jit
from .layouts import Layout, current_layout
from .process.foreign import native
from .process.traceback_filtering import entry_point
from .recording.tracing import Trace, Tracer, current_trace, recording
from .shardings.device_assignment import assignment_sharding, axes_for_parts, mesh_for_parts
from .shardings.mesh import Mesh, get_mesh
from .shardings.other_meshes import check_same_devices, on_program_mesh
from .shardings.partition_spec import Axis, PartitionSpec, SubAxis
from .shardings.sharding import UNSPECIFIED, NamedSharding, check_ndim
from .trees import broadcast_prefix, flatten, leaf_names, unflatten

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
    """Prepare ``x`` for an annotation: trace an array that a traced function closes over, and reshard an Array.

    Python numbers, which are weakly typed, and NumPy arrays outside a traced function are returned unchanged, but the
    annotation must fit them.
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
    mesh = next((sharding.mesh for sharding in how if isinstance(sharding, NamedSharding)), get_mesh())
    if mesh is not None and isinstance(x, (np.ndarray, np.generic, bool, int, float)):
        _try_on(mesh, x, annotation, how)
    return x


def _try_on(mesh: Mesh | None, x: Any, annotation: Callable[..., Any], how: tuple[Any, ...]) -> None:
    """Raise the errors of the annotation for an array of this shape."""
    probe = Trace("probe", mesh)
    with recording(probe):
        annotation(probe.argument(np.shape(x), np.dtype(np.float32), "x", None), *how)


def _constrain(x: Tracer, what: str, dims: list[tuple[list[Any], bool, int | None]]) -> Tracer:
    mesh = x._trace.require_mesh(what)
    return x._trace.constrain(x, _core.mesh.Sharding.make(mesh._core, dims))


@entry_point
def replicate(x: Any) -> Any:
    """Replicate ``x``: every device holds the whole tensor. All dims are closed.

    Args:
        x: an array of any shape.

    Returns:
        ``x``, constrained.

    Raises:
        ShardingError: no mesh is known.

    Source: GShard (arXiv 2006.16668), section 3.1.
    """
    with naming("replicate"):
        x = _annotated(x, replicate)
        return _constrain(x, "replicate", [([], False, None)] * x.ndim) if isinstance(x, Tracer) else x


@entry_point
def split(x: Any, dim: int, partitions: int | Axis | tuple[Axis, ...]) -> Any:
    """Split one dim of ``x``. The other dims stay open, so propagation may split them, too.

    Args:
        x: an array of any shape.
        dim: the dim to split; negative values count from the end.
        partitions: an axis name, or a tuple of names, major to minor; or the number of partitions, which places
            partition i on the i-th group of devices. Where the number is no product of leading axes of the mesh (3 on
            ``{"x": 2, "y": 3}``), the sharding is on another mesh over the same devices.

    Returns:
        ``x``, constrained.

    Raises:
        ShapeError: ``x`` does not have this dim.
        ShardingError: the mesh does not have these axes, or the number does not divide the number of devices.

    Source: GShard (arXiv 2006.16668), section 3.1.
    """
    with naming("split"):
        x = _annotated(x, split, dim, partitions)
        return _split(x, dim, partitions) if isinstance(x, Tracer) else _checked(x, dim)


def _checked(x: Any, dim: int) -> Any:
    """An array outside of traced functions, which has the dim."""
    if isinstance(x, (np.ndarray, np.generic)):
        check_ndim("split", dim, x.ndim)
    return x


def _split(x: Tracer, dim: int, partitions: Any) -> Tracer:
    dim = check_ndim("split", dim, x.ndim)
    mesh = x._trace.require_mesh("split")
    if isinstance(partitions, (int, np.integer)) and not isinstance(partitions, bool):
        found = axes_for_parts(mesh, int(partitions), x._trace.manual_axes)
        if found is None:  # the sizes of the axes do not nest with the number
            mesh = mesh_for_parts(mesh, int(partitions))
        axes: tuple[Any, ...] = ("part",) if found is None else found
    else:
        axes = tuple(partitions) if isinstance(partitions, (tuple, list)) else (partitions,)
    if not all(isinstance(axis, (str, SubAxis)) for axis in axes):
        raise ShardingError(
            message("split", "partitions must be a number, an axis name, or a tuple of names", repr(partitions))
        )
    dims: list[tuple[list[Any], bool, int | None]] = [([], True, None)] * x.ndim
    dims[dim] = ([a if isinstance(a, str) else (a.name, a.pre, a.size) for a in axes], False, None)
    with naming("split"):
        return x._trace.constrain(x, _core.mesh.Sharding.make(mesh._core, dims))


@entry_point
def shard(x: Any, sharding: PartitionSpec | NamedSharding | str | np.ndarray | list[Any]) -> Any:
    """Fix the sharding of ``x``. Every dim is closed, unless ``open(...)`` or ``?`` opens it.

    Args:
        x: an array of any shape.
        sharding: a spec ``P(...)``; a :class:`NamedSharding`; Shardy's text, such as ``'[{"x":(1)2, ?}, {}]'``; or a
            device assignment: an integer array with ``x``'s ndim whose elements are the ids of the devices that hold
            the tiles. The mesh of a sharding may be another one over the same devices.

    Returns:
        ``x``, constrained.

    Raises:
        MeshError: the mesh has another number of devices than that of the program.
        ShardingError: the mesh does not have an axis, an axis is used twice, or there are more entries than dims.
        ParseError: malformed text.

    Source: GShard (arXiv 2006.16668), section 3.1.
    """
    sharding = native(sharding)
    with naming("shard"):
        x = _annotated(x, shard, sharding)
        return _sharded("shard", x, sharding) if isinstance(x, Tracer) else x


def _sharded(what: str, x: Tracer, sharding: Any) -> Tracer:
    mesh = x._trace.require_mesh(what, sharding.mesh if isinstance(sharding, NamedSharding) else None)
    if _is_spec_without_p(sharding):
        way_out = f"write P({', '.join(map(repr, sharding))})"
        raise ShardingError(message(what, "takes P(...), NamedSharding or text", repr(sharding), way_out))
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
        sharding = assignment_sharding(mesh, assignment)
    if isinstance(sharding, (PartitionSpec, str)):
        with naming(what):
            sharding = NamedSharding(mesh, sharding)
    if not isinstance(sharding, NamedSharding):
        raise ShardingError(message(what, "takes P(...), NamedSharding, text or a device assignment", repr(sharding)))
    check_same_devices(what, mesh, sharding.mesh)
    with naming(what):
        return x._trace.constrain(x, on_program_mesh(mesh, sharding.core(x.ndim)))


def _is_spec_without_p(sharding: Any) -> bool:
    """Whether this is a list or a tuple of what P takes: axes, tuples of axes, and None."""
    entries = sharding if type(sharding) in (list, tuple) else []
    axes = [axis for entry in entries for axis in (entry if type(entry) is tuple and entry else [entry])]
    return any(isinstance(axis, (str, SubAxis)) for axis in axes) and all(
        axis is None or isinstance(axis, (str, SubAxis)) for axis in axes
    )


@entry_point
def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Constrain every array of a tree, as :func:`shard` does for one.

    Args:
        x: a tree of arrays.
        shardings: a prefix tree of specs, :class:`NamedSharding` or text. None is ``P()``, which replicates, and
            ``UNSPECIFIED`` constrains nothing.

    Returns:
        The tree with constrained values. NumPy arrays outside of traced functions are returned unchanged.

    Raises:
        ShardingError: the shardings are not a prefix of ``x``, or do not fit.

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
    rows = zip(leaves, wanted, leaf_names(x))
    placed = [leaf if sharding is UNSPECIFIED else _one(leaf, sharding, path) for leaf, sharding, path in rows]
    is_on_mesh = current_trace() is not None or any(isinstance(leaf, (Array, Tracer)) for leaf in leaves)
    return unflatten(tree, placed) if is_on_mesh else x


def _one(x: Any, sharding: Any, path: str) -> Any:
    """A leaf of the tree of :func:`with_sharding_constraint`."""
    with naming(f"with_sharding_constraint of x{path}" if path else "with_sharding_constraint"):
        x = _annotated(x, with_sharding_constraint, sharding)
        return _sharded("with_sharding_constraint", x, sharding) if isinstance(x, Tracer) else x


@entry_point
def logical(x: Any, names: str | Sequence[str | None]) -> Any:
    """Name the dims of ``x``, and shard them by the rules of :func:`shardwise.axis_rules`.

    Every dim is closed. A dim without a name (``"_"`` or None), or whose name has no rule, is not split; a
    ShardingWarning names each dim whose name has no rule. The rule ``{"hidden": None}`` states that a dim is not split.
    Outside of :func:`shardwise.axis_rules`, ``x`` is not constrained, and a ShardingWarning says so.

    Args:
        x: an array of any shape.
        names: one name per dim, ``"batch hidden"`` or ``("batch", "hidden")``.

    Returns:
        ``x``, constrained.

    Raises:
        ShapeError: the number of names is not the number of dims.
        ShardingError: a name is used twice; the rules map two dims to one mesh axis; or the mesh does not have an axis.

    Source: Mesh-TensorFlow (arXiv 1811.02084): dims have names, and a layout maps names to mesh dims.
    """
    layout = current_layout()
    listed: Any = names.split() if isinstance(names, str) else names
    if not isinstance(listed, Sequence) or not all(dim is None or isinstance(dim, str) for dim in listed):
        raise ShardingError(message("logical", "the names of dims must be text", repr(names)))
    dims = tuple(None if dim == "_" else dim for dim in listed)
    x = _annotated(x, logical, names)
    if isinstance(x, (Tracer, np.ndarray, np.generic)) and len(dims) != x.ndim:
        raise ShapeError(message("logical", f"an array of {x.ndim} dims needs as many names", repr(names)))
    if not isinstance(x, Tracer):
        return x
    if layout is None:
        if x._trace.mesh is not None and x._trace.mesh.size > 1:
            way_out = 'call the jitted function inside of "with sw.axis_rules({name: axis}):"'
            warn("logical", "a dim is left unsharded without rules", repr(names), way_out)
        return x
    mesh = x._trace.require_mesh("logical")
    _check_layout(dims, layout, mesh)
    for dim in dims:
        doubt = None if dim is None else layout.doubt(dim)
        if doubt is not None:
            way_out = f"{doubt} The rule {{{dim!r}: None}} states that it is unsharded"
            warn("logical", "a dim without a rule is left unsharded", repr(dim), way_out)
    return shard(x, PartitionSpec(*(() if dim is None else layout.axes(dim) for dim in dims)))


@entry_point
def sharding_group(values: Any, group_id: int | None = None) -> Any:
    """Give all arrays of a tree the same sharding; propagation decides which.

    Args:
        values: a tree of arrays of one shape. Outside of a traced function, the call has no effect.
        group_id: the number of the group; calls with the same number extend one group. Default: a new group.

    Returns:
        ``values``; unlike for other annotations, you need not use it.

    Raises:
        ShapeError: the values have different shapes.
        ValueError: the number is negative.

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
    number = max(traced.annotations.groups, default=-1) + 1 if group_id is None else int(group_id)
    for leaf in leaves:
        x = traced.lift(leaf)
        shape = traced.annotations.groups.setdefault(number, x.shape)
        if shape != x.shape:
            raise ShapeError(message("sharding_group", f"all values of a group must have one shape, {shape}", x.shape))
        traced.emit_op("sdy.sharding_group", [x], {"group_id": number})
    return values


_DIRECTIONS = {"none": np.int32(0), "forward": np.int32(1), "backward": np.int32(2)}  # Shardy's numbers


@entry_point
def propagation_barrier(x: Any, allowed_direction: str) -> Any:
    """An identity that propagates shardings in one direction only.

    Args:
        x: a tree of arrays.
        allowed_direction: ``"forward"``, from ``x`` to the users of the result; ``"backward"``, from the users to
            ``x``; or ``"none"``.

    Returns:
        The tree of results, behind the barrier.

    Raises:
        ValueError: any other direction.

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
                    rule = "two dims of a tensor must use different mesh axes"
                    got = f"{other!r} and {dim!r} both on {name!r}"
                    raise ShardingError(message("logical", rule, got, "change the rule of one of them"))


def _overlap(a: Axis, b: Axis) -> bool:
    if isinstance(a, SubAxis) and isinstance(b, SubAxis):
        return a.name == b.name and a.pre < b.pre * b.size and b.pre < a.pre * a.size
    return (a if isinstance(a, str) else a.name) == (b if isinstance(b, str) else b.name)


@entry_point
def name(x: Any, text: str) -> Any:
    """Name ``x`` in program text and reports, so that ``program.why(text)`` finds it. Returns ``x``."""
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
