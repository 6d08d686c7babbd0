# SPDX-License-Identifier: Apache-2.0
"""Collectives between the devices of a manual region (``sw.shard_map``, ``sw.manual``), or the examples of a vmap.

psum(x, "x")      %1 = "stablehlo.all_reduce"(%x) <{replica_groups = #stablehlo.replica_group_mesh_axes<…axes = [x]>}>
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..array_leaves import lifted_arguments
from ..dtypes import dtype_name, is_inexact
from ..errors import ShapeError, ShardingError, message, shown
from ..flags import takes_flags
from ..numpy._primitives import convert, reshape
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Trace, Tracer, current_trace
from ..trees import unflatten

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
]

AxisName = str | Sequence[str]
Groups = Sequence[Sequence[int]] | None

_GROUPS, _ALONG, _VARYING = "replica_groups", "shardwise.along", "shardwise.varying"


def _names(function: str, axis_name: Any) -> tuple[str, ...]:
    """The names as a tuple; ShardingError unless each is one, and once."""
    is_list = isinstance(axis_name, (tuple, list)) and all(isinstance(name, str) for name in axis_name)
    if not isinstance(axis_name, str) and not (is_list and axis_name):
        rule = "axis_name must be the name of a manual axis, or a tuple of such names"
        raise ShardingError(message(f"lax.{function}", rule, shown(axis_name)))
    names = (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)
    if len(set(names)) < len(names):
        raise ShardingError(message(f"lax.{function}", "axis_name must name an axis once", repr(names)))
    return names


def _groups_of_axes(function: str, axis_name: Any) -> list[tuple[str, ...]]:
    """The names of the manual axes, and on their own those of vmaps: what one collective can be over."""
    names = _names(function, axis_name)
    trace = current_trace()
    batched = () if trace is None else tuple(name for name in names if name in trace.annotations.batch_axes)
    manual = tuple(name for name in names if name not in batched)
    return [*([manual] if manual else []), *((name,) for name in batched)]


def _groups_in_order(function: str, axis_name: Any) -> list[tuple[str, ...]]:
    """The names in their order: the manual ones together, or each on its own if some are those of vmaps."""
    names = _names(function, axis_name)
    return [names] if len(_groups_of_axes(function, axis_name)) == 1 else [(name,) for name in names]


class _Axes:
    """The axes that a call names: manual ones of the region around it, or that of one vmap around it."""

    def __init__(self, function: str, axis_name: Any) -> None:
        self.function = f"lax.{function}"
        self.names = _names(function, axis_name)
        trace = current_trace()
        manual = () if trace is None else trace.manual_axes
        batched = {} if trace is None else trace.annotations.batch_axes
        for name in self.names:
            if name not in manual and name not in batched:
                around = [*manual, *batched]
                known = f"use one of {', '.join(map(repr, around))}" if around else "call it inside sw.shard_map"
                rule = "axis_name must name manual axes of a region around the call"
                raise ShardingError(message(self.function, rule, repr(name), known))
        if len(self.names) > 1 and any(name in batched for name in self.names):
            rule, way_out = "the axis of a vmap must be named alone", "write a call for each axis"
            raise ShardingError(message(self.function, rule, repr(self.names), way_out))
        assert trace is not None
        self.trace: Trace = trace
        if self.names[0] in batched:
            self._mesh_name = batched[self.names[0]].mesh.name
            self.size = batched[self.names[0]].size
            return
        assert trace.mesh is not None, "a region has a mesh"
        sizes = dict(zip(trace.mesh.axis_names, trace.mesh.axis_sizes))
        self._mesh_name = trace.mesh._core.name
        self.size = math.prod(sizes[name] for name in self.names)

    def attribute(self) -> _core.ir.Struct:
        """``#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>``."""
        axes = tuple(_core.ir.Struct("stablehlo.axis_ref", {"name": name}) for name in self.names)
        return _core.ir.Struct("stablehlo.replica_group_mesh_axes", {"mesh": self._symbol(), "axes": axes})

    def groups(self, axis_index_groups: Groups) -> tuple[dict[str, Any], int]:
        """The attributes of groups of devices, and the size of a group."""
        if axis_index_groups is None:
            return {_GROUPS: self.attribute()}, self.size
        rows = self.rows("axis_index_groups", axis_index_groups)
        if sorted(i for row in rows for i in row) != list(range(self.size)) or len(set(map(len, rows))) != 1:
            rule = f"axis_index_groups must be groups of one size, with each of the {self.size} positions once"
            raise ShardingError(message(self.function, rule, shown(rows)))
        return {_GROUPS: np.array(rows, np.int64), _ALONG: self.attribute()}, len(rows[0])

    def sum(self, x: Tracer, attrs: dict[str, Any]) -> Tracer:
        """The sum over the devices of each group. Its derivative counts it as equal on them where JAX does."""
        is_equal = self.names[0] not in self.trace.annotations.batch_axes and self.trace.core.matches_varying
        attrs = attrs if is_equal else {**attrs, _VARYING: True}
        return self.trace.emit("stablehlo.all_reduce", (x,), attrs, region_op="stablehlo.add")

    def index(self) -> Tracer:
        if self.names[0] in self.trace.annotations.batch_axes:
            return self.trace.annotations.batch_axes[self.names[0]].example
        attrs = {"axes": _core.ir.Axes(list(self.names)), "mesh": self._symbol()}
        return self.trace.emit_op("shardwise.axis_index", (), attrs)[0]

    def _symbol(self) -> _core.ir.Symbol:
        return _core.ir.Symbol(self._mesh_name)

    def of_leaves(self, x: Any, each: Callable[[Tracer], Tracer]) -> Any:
        """The tree with ``each`` of its leaves."""
        leaves, tree = lifted_arguments(self.trace, self.function, "x", x)
        return unflatten(tree, [each(leaf) for leaf in leaves])

    def integers(self, name: str, numbers: Any) -> list[int]:
        """Integers, for an argument that is a sequence of such."""
        try:
            return list(map(operator.index, numbers))
        except TypeError:
            raise TypeError(message(self.function, f"{name} must be a sequence of integers", shown(numbers))) from None

    def rows(self, name: str, rows: Any) -> list[list[int]]:
        """Lists of integers, for an argument that has such."""
        try:
            return [list(map(operator.index, row)) for row in rows]
        except TypeError:
            raise ShardingError(message(self.function, f"{name} must be lists of integers", shown(rows))) from None

    def dim(self, name: str, value: Any, ndim: int) -> int:
        """A dim, counted from the end if it is negative."""
        try:
            dim = operator.index(value)
        except TypeError:
            raise TypeError(message(self.function, f"{name} must be an integer", shown(value))) from None
        if not -ndim <= dim < ndim:
            raise ShapeError(message(self.function, f"{name} must be a dim of an array of {ndim} dims", dim))
        return dim % ndim

    def expect_size(self, name: str, x: Tracer, dim: int, size: int, is_exact: bool) -> None:
        """Raise ShapeError if the dim is not ``size`` long, or not a multiple of it."""
        fits = x.shape[dim] == size if is_exact else x.shape[dim] % size == 0
        if not fits:
            rule = f"dim {dim} ({name}) must {'be' if is_exact else 'be a multiple of'} {size}, the size of a group"
            way_out = "pass tiled=True to cut the dim" if is_exact else ""
            raise ShapeError(message(self.function, rule, f"{x.dtype.name}{list(x.shape)}", way_out))


def _counted(x: Tracer) -> Tracer:
    """Booleans as integers, as a sum takes them: their addition is a logical or."""
    return convert(x, np.dtype(np.int32)) if x.dtype.kind == "b" else x


def _reduced(axes: _Axes, x: Any, op: str, axis_index_groups: Groups) -> Any:
    attrs, _ = axes.groups(axis_index_groups)
    return axes.of_leaves(x, lambda leaf: axes.trace.emit("stablehlo.all_reduce", (leaf,), attrs, region_op=op))


@entry_point
def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
    """The sum of the shards of all devices along manual axes, which each of them gets.

    Args:
        x: a tree of arrays, each of one device; of booleans, it counts those that are true, in int32. A Python number
            is the same on all devices: its sum needs no message.
        axis_name: a manual axis of the region around the call, or the axis of a vmap around it; or several.
        axis_index_groups: groups of positions along the axes, all of one size; each group has a sum of its own.

    Raises:
        ShardingError: an axis is not manual here, or the groups are not such.

    Source: `jax.lax.psum`; StableHLO all_reduce.
    """
    for names in _groups_of_axes("psum", axis_name):
        x = _summed(_Axes("psum", names), x, axis_index_groups)
    return x


def _summed(axes: _Axes, x: Any, axis_index_groups: Groups) -> Any:
    attrs, size = axes.groups(axis_index_groups)
    if isinstance(x, (int, float, complex)) and not isinstance(x, np.generic):
        return x * size
    return axes.of_leaves(x, lambda leaf: axes.sum(_counted(leaf), attrs))


@entry_point
def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
    """The mean of the shards of all devices along manual axes; of integers, it is floating-point.

    Args:
        x: a tree of arrays, each of one device.
        axis_name: as in :func:`psum`.
        axis_index_groups: as in :func:`psum`.

    Raises:
        ShardingError: as :func:`psum`.

    Source: `jax.lax.pmean`.
    """
    for names in _groups_of_axes("pmean", axis_name):
        x = _averaged(_Axes("pmean", names), x, axis_index_groups)
    return x


def _averaged(axes: _Axes, x: Any, axis_index_groups: Groups) -> Any:
    attrs, size = axes.groups(axis_index_groups)

    def mean(leaf: Tracer) -> Any:
        leaf = _counted(leaf)
        total: Any = axes.sum(leaf, attrs)
        return total / (np.array(size, leaf.dtype) if is_inexact(leaf.dtype) else size)

    return axes.of_leaves(x, mean)


@entry_point
def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
    """The largest elements of the shards of all devices along manual axes; NaN where one has NaN.

    Args:
        x: a tree of arrays, each of one device.
        axis_name: as in :func:`psum`.
        axis_index_groups: as in :func:`psum`.

    Raises:
        ShardingError: as :func:`psum`.

    Source: `jax.lax.pmax`.
    """
    for names in _groups_of_axes("pmax", axis_name):
        x = _reduced(_Axes("pmax", names), x, "stablehlo.maximum", axis_index_groups)
    return x


@entry_point
def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
    """The smallest elements of the shards of all devices along manual axes; NaN where one has NaN.

    Args:
        x: a tree of arrays, each of one device.
        axis_name: as in :func:`psum`.
        axis_index_groups: as in :func:`psum`.

    Raises:
        ShardingError: as :func:`psum`.

    Source: `jax.lax.pmin`.
    """
    for names in _groups_of_axes("pmin", axis_name):
        x = _reduced(_Axes("pmin", names), x, "stablehlo.minimum", axis_index_groups)
    return x


@entry_point
@takes_flags("lax")
def all_gather(
    x: Any, axis_name: AxisName, *, axis_index_groups: Groups = None, axis: int = 0, tiled: bool = False
) -> Any:
    """The shards of all devices along manual axes, side by side; each device gets all of them.

    Args:
        x: a tree of arrays, each of one device.
        axis_name: as in :func:`psum`. Of several axes, the last one is the fastest.
        axis_index_groups: as in :func:`psum`.
        axis: the dim of the result along which the shards lie: a new one, or with ``tiled`` one of ``x``.
        tiled: concatenate instead of stacking.

    Raises:
        ShardingError: as :func:`psum`.
        ShapeError: ``axis`` is no dim of the result.

    Source: `jax.lax.all_gather`; StableHLO all_gather.
    """
    axes = _Axes("all_gather", axis_name)
    attrs, size = axes.groups(axis_index_groups)

    def gathered(leaf: Tracer) -> Tracer:
        dim = axes.dim("axis", axis, leaf.ndim if tiled else leaf.ndim + 1)
        part = leaf if tiled else reshape(leaf, (*leaf.shape[:dim], 1, *leaf.shape[dim:]))
        shape = (*part.shape[:dim], part.shape[dim] * size, *part.shape[dim + 1 :])
        types = [(shape, dtype_name(leaf.dtype))]
        return axes.trace.emit_op("stablehlo.all_gather", (part,), {"all_gather_dim": dim, **attrs}, types)[0]

    return axes.of_leaves(x, gathered)


@entry_point
@takes_flags("lax")
def psum_scatter(
    x: Any, axis_name: AxisName, *, scatter_dimension: int = 0, axis_index_groups: Groups = None, tiled: bool = False
) -> Any:
    """As :func:`psum`, but each device gets its part of the sum.

    Args:
        x: a tree of arrays, each of one device.
        axis_name: as in :func:`psum`.
        scatter_dimension: the dim that is cut into parts.
        axis_index_groups: as in :func:`psum`.
        tiled: keep the dim; without it, the dim has the size of a group, and the result lacks it.

    Raises:
        ShardingError: as :func:`psum`.
        ShapeError: the dim does not fit the size of a group.

    Source: `jax.lax.psum_scatter`; StableHLO reduce_scatter.
    """
    axes = _Axes("psum_scatter", axis_name)
    attrs, size = axes.groups(axis_index_groups)

    def scattered(leaf: Tracer) -> Tracer:
        leaf = _counted(leaf)
        dim = axes.dim("scatter_dimension", scatter_dimension, leaf.ndim)
        axes.expect_size("scatter_dimension", leaf, dim, size, is_exact=not tiled)
        before, after = leaf.shape[:dim], leaf.shape[dim + 1 :]
        part = axes.trace.emit(
            "stablehlo.reduce_scatter", (leaf,), {"scatter_dimension": dim, **attrs},
            (*before, leaf.shape[dim] // size, *after), leaf.dtype, "stablehlo.add",
        )  # fmt: skip
        return part if tiled else reshape(part, (*before, *after))

    return axes.of_leaves(x, scattered)


@entry_point
@takes_flags("lax")
def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> Any:
    """Each device cuts its shard into a part per device, and gets the parts that the others cut for it.

    Args:
        x: a tree of arrays, each of one device.
        axis_name: as in :func:`psum`.
        split_axis: the dim that is cut.
        concat_axis: the dim of the result along which the parts lie: a new one, or with ``tiled`` one of ``x``.
        axis_index_groups: as in :func:`psum`.
        tiled: keep both dims; without it, the dim that is cut has the size of a group, and the result lacks it.

    Raises:
        ShardingError: as :func:`psum`.
        ShapeError: the dim does not fit the size of a group.

    Source: `jax.lax.all_to_all`; StableHLO all_to_all.
    """
    axes = _Axes("all_to_all", axis_name)
    attrs, size = axes.groups(axis_index_groups)

    def exchanged(leaf: Tracer) -> Tracer:
        split = axes.dim("split_axis", split_axis, leaf.ndim)
        concat = axes.dim("concat_axis", concat_axis, leaf.ndim)
        axes.expect_size("split_axis", leaf, split, size, is_exact=not tiled)
        if not tiled:
            # A dim of 1 for the parts, at its place once the dim that is cut has gone.
            new = concat if concat <= split else concat + 1
            split = split + 1 if new <= split else split
            leaf, concat = reshape(leaf, (*leaf.shape[:new], 1, *leaf.shape[new:])), new
        numbers = {"split_dimension": split, "concat_dimension": concat, "split_count": size}
        made = axes.trace.emit("stablehlo.all_to_all", (leaf,), {**numbers, **attrs})
        return made if tiled else reshape(made, (*made.shape[:split], *made.shape[split + 1 :]))

    return axes.of_leaves(x, exchanged)


def _permuted(axes: _Axes, x: Any, perm: Any) -> Any:
    pairs = axes.rows("perm", perm)
    if any(len(pair) != 2 for pair in pairs):
        raise ShardingError(message(axes.function, "perm must have pairs of a source and a target", shown(pairs)))
    for side, ends in zip(("source", "target"), zip(*pairs)):
        if len(set(ends)) < len(ends) or not all(0 <= end < axes.size for end in ends):
            rule = f"perm must have each {side} once, from 0 to {axes.size - 1}"
            raise ShardingError(message(axes.function, rule, shown(pairs)))
    attrs = {"source_target_pairs": np.array(pairs, np.int64).reshape(-1, 2), _ALONG: axes.attribute()}
    return axes.of_leaves(x, lambda leaf: axes.trace.emit("stablehlo.collective_permute", (leaf,), attrs))


@entry_point
def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Each device sends its shard to another one along manual axes.

    Args:
        x: a tree of arrays, each of one device.
        axis_name: as in :func:`psum`. Of several axes, the last one is the fastest.
        perm: pairs of positions along the axes, a source and a target. A device that is no target gets zeros.

    Raises:
        ShardingError: an axis is not manual here; or a source or a target is named twice, or does not exist.

    Source: `jax.lax.ppermute`; StableHLO collective_permute.
    """
    return _permuted(_Axes("ppermute", axis_name), x, perm)


@entry_point
def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """The shard of device ``perm[i]`` along manual axes for device ``i``.

    Args:
        x: a tree of arrays, each of one device.
        axis_name: as in :func:`psum`.
        perm: a permutation of the positions along the axes.

    Raises:
        ShardingError: an axis is not manual here, or ``perm`` is no permutation.

    Source: `jax.lax.pshuffle`.
    """
    axes = _Axes("pshuffle", axis_name)
    sources = axes.integers("perm", perm)
    if sorted(sources) != list(range(axes.size)):
        rule = f"perm must be a permutation of the {axes.size} positions along the axes"
        raise ShardingError(message(axes.function, rule, shown(sources)))
    return _permuted(axes, x, list(zip(sources, range(axes.size))))


@entry_point
def axis_index(axis_name: AxisName) -> Any:
    """The position of each device along manual axes, int32[]. Of several axes, the last one is the fastest.

    Args:
        axis_name: as in :func:`psum`.

    Raises:
        ShardingError: an axis is not manual here.

    Source: `jax.lax.axis_index`.
    """
    position: Any = None
    for names in _groups_in_order("axis_index", axis_name):
        axes = _Axes("axis_index", names)
        position = axes.index() if position is None else position * np.int32(axes.size) + axes.index()
    return position


@entry_point
def axis_size(axis_name: AxisName) -> int:
    """The number of devices along manual axes, a Python int.

    Args:
        axis_name: as in :func:`psum`.

    Raises:
        ShardingError: an axis is not manual here.

    Source: `jax.lax.axis_size`.
    """
    return math.prod(_Axes("axis_size", names).size for names in _groups_in_order("axis_size", axis_name))
