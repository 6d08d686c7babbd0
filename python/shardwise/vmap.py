# SPDX-License-Identifier: Apache-2.0
"""Vectorization: turn a function of one example into a function of many examples, op by op."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import optree

from .dtypes import dtype_name
from .errors import ShapeError, message
from .jit import JitFunction, run_as_program
from .sharding import check_ndim
from .tracing import Trace, Tracer, current_trace
from .trees import flatten, unflatten

__all__ = ["vmap"]


def vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Vectorize ``fun`` over a dim of its arguments, as in JAX. There is no loop: each op gets a batch dim.

    Args:
        fun: a function of trees of arrays, for one example.
        in_axes: a prefix tree: the dim of each positional argument to map over, or None for arguments that all examples
            share.
        out_axes: a prefix tree: the position of the new dim in each result, or None for results that do not depend on
            the example.

    Returns:
        A function of arrays with the batch dim.

    Raises:
        ShapeError: mapped dims have different sizes, no argument is mapped, a dim does not exist, or the axes are not a
            prefix of the arguments.

    >>> import shardwise as sw
    >>> rows = sw.jit(vmap(lambda x, w: (x * w).sum(), in_axes=(0, None)), mesh=sw.Mesh({"d": 2}))
    >>> np.asarray(rows(np.arange(6.0).reshape(3, 2), np.array([1.0, 10.0])))
    array([10., 32., 54.])
    """
    programs: dict[Any, JitFunction] = {}

    @wraps(fun)
    def wrapped(*args: Any) -> Any:
        trace = current_trace()
        if trace is None:
            return run_as_program(wrapped, fun, programs, args, {})
        return _batched(trace, fun, args, in_axes, out_axes)

    return wrapped


def _is_axis(x: Any) -> bool:
    return x is None or (isinstance(x, (int, np.integer)) and not isinstance(x, bool))


def _axes_of_leaves(axes: Any, tree: Any, what: str) -> list[int | None]:
    """One axis, or None, for every leaf of ``tree``."""
    if _is_axis(axes):
        return [axes] * len(flatten(tree)[0])
    if isinstance(axes, list):
        axes = tuple(axes)
    try:
        broadcast = optree.broadcast_prefix(axes, tree, is_leaf=_is_axis, none_is_leaf=True)
    except ValueError as error:
        raise ShapeError(
            message("vmap", f"{what} must be a prefix of the tree it describes", axes, str(error))
        ) from None
    for axis in broadcast:
        if not _is_axis(axis):
            raise ShapeError(message("vmap", f"{what} must hold dims or None", repr(axis)))
    leaves = optree.tree_leaves(tree, none_is_leaf=True)
    return [axis for axis, leaf in zip(broadcast, leaves) if leaf is not None]


def _batched(trace: Trace, fun: Callable[..., Any], args: tuple[Any, ...], in_axes: Any, out_axes: Any) -> Any:
    leaves, tree = flatten(args)
    axes = _axes_of_leaves(in_axes, args, "in_axes")
    mapped: list[Tracer] = []
    sizes: list[int] = []
    for leaf, axis in zip(leaves, axes):
        x: Any = trace.lift(leaf)
        if axis is not None:
            axis = check_ndim("vmap", axis, x.ndim)
            sizes.append(x.shape[axis])
            x = x if axis == 0 else np.moveaxis(x, axis, 0)
        mapped.append(x)
    if not sizes or len(set(sizes)) != 1:
        way_out = "give every example a row in each of them"
        raise ShapeError(message("vmap", "mapped dims must have one size", sizes, way_out))
    is_mapped = [axis is not None for axis in axes]
    region, results, out_tree, result = _record(trace, fun, tree, mapped, is_mapped)
    values = trace.core.batch(region, [x._value for x in mapped], is_mapped, sizes[0])
    outputs = [
        _placed(trace, x, value, batched, axis, sizes[0])
        for x, (value, batched), axis in zip(results, values, _axes_of_leaves(out_axes, result, "out_axes"))
    ]
    return unflatten(out_tree, outputs)


def _record(
    trace: Trace, fun: Callable[..., Any], tree: Any, mapped: list[Tracer], is_mapped: list[bool]
) -> tuple[int, list[Tracer], Any, Any]:
    """Record ``fun`` for one example into a region of its own."""
    region = trace.core.begin_region()
    results: list[Tracer] = []
    try:
        example = []
        for x, batched in zip(mapped, is_mapped):
            shape = x.shape[1:] if batched else x.shape
            example.append(Tracer(trace, trace.core.region_argument(shape, dtype_name(x.dtype)), shape, x.dtype))
        result = fun(*unflatten(tree, example))
        out_leaves, out_tree = flatten(result)
        results = [trace.lift(leaf) for leaf in out_leaves]
    finally:  # the caller of a function that raised may go on recording
        trace.core.end_region([x._value for x in results])
    return region, results, out_tree, result


def _placed(trace: Trace, x: Tracer, value: int, batched: bool, axis: int | None, size: int) -> Any:
    """A result with its new dim where ``out_axes`` wants it."""
    if axis is None:
        if batched:
            must_hold = "a result with out_axes None must be the same for all examples"
            raise ShapeError(message("vmap", must_hold, repr(x), "give it a dim"))
        return Tracer(trace, value, x.shape, x.dtype)
    shape = (size, *x.shape) if batched else x.shape
    result: Any = Tracer(trace, value, shape, x.dtype)
    if not batched:
        result = np.broadcast_to(result, (size, *x.shape))
    axis = check_ndim("vmap", axis, x.ndim + 1)
    return result if axis == 0 else np.moveaxis(result, 0, axis)
