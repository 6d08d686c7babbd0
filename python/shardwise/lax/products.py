# SPDX-License-Identifier: Apache-2.0
"""Products over any dims, and of rows in groups.

dot_general(x, w, (((2,), (1,)), ((0,), (0,))))     %1 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0],
                                                         contracting_dims = [2] x [1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ..dtypes import as_dtype, is_integer
from ..errors import DTypeError, Error, ShapeError, message, shown
from ..numpy._primitives import normalize_axes
from ..recording.tracing import Tracer
from .calls import lifted, on_arrays, recording
from .convolution import precision_of
from .slicing import dynamic_slice_in_dim

__all__ = ["dot_general", "ragged_dot"]

Pair = tuple[tuple[int, ...], tuple[int, ...]]


def _dims(function: str, numbers: Any, lhs: Tracer, rhs: Tracer) -> tuple[Pair, Pair]:
    """The contracting and the batch dims of both operands."""
    try:
        (contracted, batch) = numbers
        pairs = [tuple(pair) for pair in (contracted, batch)]
        lists = [[tuple(dims) for dims in pair] for pair in pairs]
        is_right = all(len(pair) == 2 for pair in lists)
    except Error:  # of a traced value, which must be known
        raise
    except (TypeError, ValueError):
        is_right = False
    if not is_right:
        rule = "dimension_numbers must be ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), lists of dims"
        raise ShapeError(message(function, rule, shown(numbers)))
    found = []
    for name, (left, right) in zip(("contracting", "batch"), lists):
        pair = (normalize_axes(function, left, lhs.ndim), normalize_axes(function, right, rhs.ndim))
        sizes = [[x.shape[dim] for dim in dims] for x, dims in zip((lhs, rhs), pair)]
        if sizes[0] != sizes[1]:
            got = f"{shown(sizes[0])} and {shown(sizes[1])} of {shown(lhs.shape)} and {shown(rhs.shape)}"
            raise ShapeError(message(function, f"the {name} dims of both operands must have equal sizes", got))
        found.append(pair)
    for x, dims in zip((lhs, rhs), zip(*found)):
        listed = [*dims[0], *dims[1]]
        if len(set(listed)) < len(listed):
            raise ShapeError(message(function, "a dim must be listed once", f"{shown(listed)} of {shown(x.shape)}"))
    return found[0], found[1]


def _dot(function: str, lhs: Tracer, rhs: Tracer, numbers: Any, precision: Any, preferred: Any) -> Tracer:
    if lhs.dtype != rhs.dtype:
        got = f"{lhs.dtype.name} and {rhs.dtype.name}"
        raise DTypeError(message(function, "both operands must have one dtype", got, "convert one of them"))
    contracted, batch = _dims(function, numbers, lhs, rhs)
    attrs: dict[str, Any] = {
        "dot_dimension_numbers": _core.ir.Struct(
            "stablehlo.dot",
            {
                "lhs_batching_dimensions": batch[0],
                "rhs_batching_dimensions": batch[1],
                "lhs_contracting_dimensions": contracted[0],
                "rhs_contracting_dimensions": contracted[1],
            },
        )
    }
    words = precision_of(function, precision)
    if words is not None:
        attrs["precision_config"] = [_core.ir.EnumValue("stablehlo", "precision", word) for word in words]
    free = [
        size
        for x, taken in ((lhs, (*contracted[0], *batch[0])), (rhs, (*contracted[1], *batch[1])))
        for dim, size in enumerate(x.shape)
        if dim not in taken
    ]
    shape = (*(lhs.shape[dim] for dim in batch[0]), *free)
    dtype = lhs.dtype if preferred is None else as_dtype(function, preferred)
    return recording().emit("stablehlo.dot_general", (lhs, rhs), attrs, shape, dtype)


@on_arrays("lhs", "rhs")
def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]],
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The product of two arrays, summed over contracting dims, for each index of their batch dims.

    Args:
        lhs, rhs: arrays of one dtype.
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``: lists of dims, in pairs of
            one size.
        precision: recorded for the programs of other libraries; kernels multiply floats as they are.
        preferred_element_type: the dtype of the result, in which sums are kept; None for that of the operands.

    Returns:
        An array whose dims are the batch dims, the other dims of ``lhs`` and the other dims of ``rhs``.

    Raises:
        ShapeError: dims do not fit, or there is no such precision.
        DTypeError: the dtypes differ, or the result cannot have that dtype.

    Source: `jax.lax.dot_general`; StableHLO dot_general.
    """
    left, right = lifted(lhs, rhs)
    return _dot("lax.dot_general", left, right, dimension_numbers, precision, preferred_element_type)


@on_arrays("lhs", "rhs", "group_sizes", "group_offset")
def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
) -> Any:
    """The product of each row of ``lhs`` with the matrix of its group; rows of a group stand one after the other.

    Every row is multiplied with the matrices of all groups, and the products of others are dropped: the shapes in a
    program do not depend on numbers. `shardwise.models.moe_layer` groups tokens by capacity and does a fixed part of
    that work.

    Args:
        lhs: (m, k).
        rhs: (g, k, n), a matrix for each group, of the dtype of ``lhs``.
        group_sizes: (g,) integers, the rows of each group. Rows behind the last group give zeros.
        precision, preferred_element_type: as in :func:`dot_general`.
        group_offset: (1,), the first of the groups in ``group_sizes`` that ``rhs`` has; there may be more sizes than
            matrices then. None: 0.

    Returns:
        (m, n).

    Raises:
        ShapeError: shapes do not fit. DTypeError: the sizes are no integers, or as in :func:`dot_general`.

    Source: `jax.lax.ragged_dot`.
    """
    left, right, sizes = lifted(lhs, rhs, group_sizes)
    function = "lax.ragged_dot"
    groups = right.shape[0] if right.ndim == 3 else 0
    is_right = left.ndim == 2 and right.ndim == 3 and left.shape[1] == right.shape[1] and sizes.ndim == 1
    if not is_right or (sizes.shape[0] != groups if group_offset is None else sizes.shape[0] < groups):
        rule = "operands must be (m, k), (g, k, n) and (g,)"
        raise ShapeError(message(function, rule, f"{shown(left.shape)}, {shown(right.shape)} and {shown(sizes.shape)}"))
    if not is_integer(sizes.dtype):
        raise DTypeError(message(function, "group_sizes must be integers", sizes.dtype.name))
    ends: Any = np.cumsum(sizes, dtype=sizes.dtype)
    starts: Any = ends - sizes
    if group_offset is not None:
        (offset,) = lifted(group_offset)
        if offset.shape != (1,):
            raise ShapeError(message(function, "group_offset must have the shape (1,)", shown(offset.shape)))
        starts, ends = (dynamic_slice_in_dim(each, offset[0], groups, 0) for each in (starts, ends))
    rows = np.arange(left.shape[0], dtype=np.int64, like=left)[:, None]
    is_own = (rows >= starts) & (rows < ends)  # (m, g)
    # All products first: a row must not see numbers of another group, such as a NaN times 0.
    products: Any = _dot(function, left, right, (((1,), (1,)), ((), ())), precision, preferred_element_type)
    zero = np.zeros((), products.dtype)
    return np.where(is_own[:, :, None], products, zero).sum(axis=1, dtype=products.dtype)
