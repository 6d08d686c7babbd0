# SPDX-License-Identifier: Apache-2.0
"""Vectorization: turn a function of one example into a function of many examples, op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .array_leaves import lifted_results
from .dtypes import dtype_name
from .errors import ShapeError, expect_text, is_integer, message, shown
from .jit import JitFunction, run_as_program
from .numpy._primitives import iota
from .process.traceback_filtering import entry_point
from .recording.tracing import BatchAxis, Trace, Tracer, current_trace
from .trees import broadcast, flatten, unflatten
from .trees.argument_names import names_of_leaves
from .trees.differences import difference
from .unpartitioned import as_numpy, unpartitioned_mesh

__all__ = ["vmap"]


@entry_point
def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: str | None = None,
    axis_size: int | None = None,
    spmd_axis_name: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Vectorize ``fun`` over a dim of its arguments, as in JAX. There is no loop: each op gets a batch dim.

    Args:
        fun: a function of trees of arrays, for one example.
        in_axes: a prefix tree: the dim of each positional argument to map over, or None for arguments that all examples
            share.
        out_axes: a prefix tree: the position of the new dim in each result, or None for results that do not depend on
            the example.
        axis_name: a name of the new dim, for the collectives of :mod:`shardwise.lax` in ``fun``:
            ``sw.lax.psum(x, axis_name)`` is the sum over the examples.
        axis_size: the number of examples; required if no argument is mapped.
        spmd_axis_name: the mesh axes that shard the new dim of the values that ``fun`` annotates. By default it is
            open: propagation shards it.

    Returns:
        A function of arrays with the batch dim. Keyword arguments are mapped over their first dim.

    Raises:
        ShapeError: mapped dims have different sizes, or another one than ``axis_size``; no argument is mapped, and
            there is no ``axis_size``; a dim does not exist; or the axes are not a prefix of the arguments.
        ShardingError: an annotation in ``fun`` uses an axis of ``spmd_axis_name``.
        UnsupportedError: ``fun`` differentiates ``pmax`` or ``pmin`` over ``axis_name``. A gradient of the vmap may
            pass it.

    >>> import shardwise as sw
    >>> rows = sw.jit(vmap(lambda x, w: (x * w).sum(), in_axes=(0, None)), mesh=sw.Mesh({"d": 2}))
    >>> np.asarray(rows(np.arange(6.0).reshape(3, 2), np.array([1.0, 10.0])))
    array([10., 32., 54.])
    """
    if not callable(fun):
        raise TypeError(message("vmap", "takes a function", repr(fun)))
    if axis_name is not None:
        expect_text("vmap", "axis_name", axis_name)
    if axis_size is not None and not is_integer(axis_size, 0):
        raise TypeError(message("vmap", "axis_size must be an integer of at least 0", shown(axis_size)))
    options = _Options(in_axes, out_axes, axis_name, axis_size, _mesh_axes(spmd_axis_name))
    programs: dict[Any, JitFunction] = {}

    @entry_point
    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is None:
            if unpartitioned_mesh() is not None and axis_name is None and axis_size is None:
                return _looped(fun, as_numpy(args), as_numpy(kwargs), in_axes, out_axes)
            return run_as_program("vmap", wrapped, fun, programs, args, kwargs)
        return _batched(trace, fun, args, kwargs, options)

    return wrapped


class _Options(NamedTuple):
    """The options of :func:`vmap`."""

    in_axes: Any
    out_axes: Any
    axis_name: str | None
    axis_size: int | None
    mesh_axes: list[str]


def _mesh_axes(spmd_axis_name: Any) -> list[str]:
    if spmd_axis_name is None:
        return []
    names = list(spmd_axis_name) if isinstance(spmd_axis_name, (tuple, list)) else [spmd_axis_name]
    for name in names:
        expect_text("vmap", "spmd_axis_name", name)
    return names


def _is_axis(x: Any) -> bool:
    return x is None or (isinstance(x, (int, np.integer)) and not isinstance(x, bool))


def _axes_of_leaves(axes: Any, tree: Any, what: str) -> list[int | None]:
    """One axis, or None, for every leaf of ``tree``."""
    if _is_axis(axes):
        return [axes] * len(flatten(tree)[0])
    if isinstance(axes, list):
        axes = tuple(axes)
    try:
        spread = broadcast(axes, tree, _is_axis)
    except ValueError:
        way_out = "give one axis for everything below a point of the tree, or one for each leaf"
        rule = f"{what} must be a prefix of the tree it describes"
        raise ShapeError(message("vmap", rule, difference(axes, tree, _is_axis), way_out)) from None
    for axis in spread:
        if not _is_axis(axis):
            raise ShapeError(message("vmap", f"{what} must hold dims or None", repr(axis)))
    return spread


def _axes_of_call(in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int | None]:
    """The axis of every leaf of positional arguments, then of keyword arguments: 0."""
    return _axes_of_leaves(in_axes, args, "in_axes") + _axes_of_leaves(0, kwargs, "in_axes")


def _batched(
    trace: Trace, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: _Options
) -> Any:
    in_axes = options.in_axes
    leaves, tree = flatten((args, kwargs))
    if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(args):
        rule = f"in_axes must have one entry for each of the {len(args)} positional arguments"
        raise ShapeError(message("vmap", rule, in_axes, "write None for an argument that is not mapped"))
    axes = _axes_of_call(in_axes, args, kwargs)
    mapped: list[Tracer] = []
    sizes: list[tuple[str, int]] = []
    for leaf, axis, name in zip(leaves, axes, names_of_leaves(fun, args, kwargs)):
        x: Any = trace.lift(leaf)
        if axis is not None:
            axis = _checked_axis("in_axes", axis, x.ndim, name)
            sizes.append((name, x.shape[axis]))
            x = x if axis == 0 else np.moveaxis(x, axis, 0)
        mapped.append(x)
    if not leaves and options.axis_size is None:
        raise ShapeError(message("vmap", "an argument must hold an array", shown((*args, *kwargs.values()))))
    if not sizes and options.axis_size is None:
        way_out = "write in_axes=0, or call the function without vmap"
        raise ShapeError(message("vmap", "in_axes must map an argument", repr(in_axes), way_out))
    if len({size for _, size in sizes}) > 1:
        got = ", ".join(f"{size} for {name}" for name, size in sizes)
        way_out = "give every example a row in each of them"
        raise ShapeError(message("vmap", "mapped dims must have one size", got, way_out))
    if options.axis_size is not None and any(size != options.axis_size for _, size in sizes):
        got = ", ".join(f"{size} for {name}" for name, size in sizes)
        raise ShapeError(message("vmap", f"mapped dims must have axis_size={options.axis_size}", got))
    size = sizes[0][1] if options.axis_size is None else int(options.axis_size)
    is_mapped = [axis is not None for axis in axes]
    first = len(trace.prints)
    recorded = _Recorded(trace, mapped, is_mapped, options.axis_name, size)
    region, results, out_tree, result = recorded.record(fun, tree)
    values = trace.core.batch(
        region, [x._value for x in recorded.operands], recorded.is_mapped, size, trace.derivatives,
        recorded.mesh, options.mesh_axes,
    )  # fmt: skip
    printed = iter(values[len(results) :])
    for call in trace.prints[first:]:
        call.batch(list(islice(printed, len(call.values))), size)
    outputs = [
        _placed(trace, x, value, batched, axis, size)
        for x, (value, batched), axis in zip(results, values, _axes_of_leaves(options.out_axes, result, "out_axes"))
    ]
    return unflatten(out_tree, outputs)


def _looped(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], in_axes: Any, out_axes: Any) -> Any:
    """The reference of ``vmap``: a loop over examples in NumPy."""
    leaves, tree = flatten((args, kwargs))
    axes = _axes_of_call(in_axes, args, kwargs)
    size = next(np.shape(leaf)[axis] for leaf, axis in zip(leaves, axes) if axis is not None)
    results = []
    for i in range(size):
        example = [leaf if axis is None else np.take(leaf, i, axis) for leaf, axis in zip(leaves, axes)]
        example_args, example_kwargs = unflatten(tree, example)
        results.append(fun(*example_args, **example_kwargs))
    if not results:
        raise ShapeError(message("vmap", "a loop over examples needs at least one", "none"))
    columns = zip(*(flatten(result)[0] for result in results))
    where = _axes_of_leaves(out_axes, results[0], "out_axes")
    stacked = [column[0] if axis is None else np.stack(column, axis) for column, axis in zip(columns, where)]
    return unflatten(flatten(results[0])[1], stacked)


def _checked_axis(what: str, axis: int, ndim: int, whose: str) -> int:
    if not -ndim <= axis < ndim:
        raise ShapeError(message("vmap", f"{what} must be in [{-ndim}, {ndim}) for {whose} of {ndim} dims", axis))
    return axis % ndim


class _Recorded:
    """The function for one example, as a region of its own."""

    def __init__(
        self, trace: Trace, mapped: list[Tracer], is_mapped: list[bool], axis_name: str | None, size: int
    ) -> None:
        self._trace = trace
        self._count = len(mapped)
        self._axis_name = axis_name
        self._size = size
        self.operands, self.is_mapped, self.mesh = mapped, is_mapped, None
        if axis_name is not None:
            self.operands = [*mapped, iota(trace, (size,), 0, np.int32)]
            self.is_mapped = [*is_mapped, True]
            self.mesh = _core.mesh.Mesh(f"vmap_{axis_name}", [(axis_name, size)])

    def record(self, fun: Callable[..., Any], tree: Any) -> tuple[int, list[Tracer], Any, Any]:
        """The number of the region, its results, and the result of ``fun`` with its structure."""
        trace = self._trace
        region = trace.core.begin_region()
        results: list[Tracer] = []
        first, recorded = len(trace.prints), len(trace.prints)
        outer = trace.annotations.batch_axes
        try:
            example = [self._argument(x, batched) for x, batched in zip(self.operands, self.is_mapped)]
            if self._axis_name is not None:
                trace.annotations.batch_axes = {**outer, self._axis_name: BatchAxis(self.mesh, self._size, example[-1])}
            args, kwargs = unflatten(tree, example[: self._count])
            result = fun(*args, **kwargs)
            results, out_tree = lifted_results(trace, "vmap", result)
            recorded = len(trace.prints)
        finally:  # the caller may catch an error of the function and keep recording
            trace.annotations.batch_axes = outer
            del trace.prints[recorded:]
            printed = [value for call in trace.prints[first:] for value in call.values]
            trace.core.end_region([x._value for x in results] + printed)
        return region, results, out_tree, result

    def _argument(self, x: Tracer, batched: bool) -> Tracer:
        trace = self._trace
        shape = x.shape[1:] if batched else x.shape
        example = Tracer(trace, trace.core.region_argument(shape, dtype_name(x.dtype)), shape, x.dtype)
        if x._value in trace.annotations.foreign_types:
            known = trace.annotations.foreign_types[x._value]
            trace.annotations.foreign_types[example._value] = known.lost("vmap") if batched else known
        if not batched and x._value in trace.arguments:
            trace.arguments[example._value] = trace.arguments[x._value]
        return example


def _placed(trace: Trace, x: Tracer, value: int, batched: bool, axis: int | None, size: int) -> Any:
    """Move the new dim of a result to its position in ``out_axes``."""
    if axis is None:
        if batched:
            must_hold = "a result with out_axes None must be the same for all examples"
            raise ShapeError(message("vmap", must_hold, repr(x), "give it a dim"))
        return Tracer(trace, value, x.shape, x.dtype)
    shape = (size, *x.shape) if batched else x.shape
    result: Any = Tracer(trace, value, shape, x.dtype)
    if not batched:
        result = np.broadcast_to(result, (size, *x.shape))
    axis = _checked_axis("out_axes", axis, x.ndim + 1, "a result")
    return result if axis == 0 else np.moveaxis(result, 0, axis)
