# SPDX-License-Identifier: Apache-2.0
"""Sorts of several arrays by one or more keys, and the largest elements.

top_k(x, 2)     %1:2 = chlo.top_k(%x, k = 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, message, shown
from ..numpy._primitives import iota, normalize_axis, static_integer
from ..numpy._promote import is_complex
from ..numpy.sorting import sort_together
from ..recording.tracing import Tracer
from .calls import lifted, on_arrays, recording
from .slicing import LARGEST

__all__ = ["argsort", "sort", "sort_key_val", "top_k"]


@on_arrays("operand")
def top_k(operand: Any, k: int, *, axis: int = -1) -> Any:
    """The ``k`` largest elements along a dim, the largest first, and their indices.

    Of equal elements the first ones win. The order is IEEE 754's total order: -NaN, -inf, …, -0.0, 0.0, …, inf, NaN.

    Args:
        operand: an array with an order.
        k: how many, at most the size of the dim.
        axis: the dim.

    Returns:
        The elements, and their indices as int32.

    Raises:
        ShapeError: ``k`` is negative or larger than the dim, or there is no such dim.
        DTypeError: complex numbers.

    Source: `jax.lax.top_k`; CHLO top_k.
    """
    x: Any = lifted(operand)[0]
    dim = normalize_axis("lax.top_k", axis, x.ndim)
    count = static_integer("lax.top_k", "k", k, -LARGEST, LARGEST)
    if not 0 <= count <= x.shape[dim]:
        got = f"{count} for {x.dtype.name}{list(x.shape)}"
        raise ShapeError(message("lax.top_k", f"k must be from 0 to the size of dim {dim}", got))
    if is_complex(x.dtype):
        raise DTypeError(message("lax.top_k", "elements must have an order", x.dtype.name, "take np.abs first"))
    moved = np.moveaxis(x, dim, -1)
    found: list[Any] = recording().emit_op("chlo.top_k", (moved,), {"k": count})
    return tuple(np.moveaxis(x, -1, dim) for x in found)


def _checked(function: str, operands: Sequence[Any], dimension: int, keys: int) -> tuple[list[Tracer], int, int]:
    arrays = lifted(*operands)
    if not arrays or any(x.shape != arrays[0].shape for x in arrays):
        got = shown([x.shape for x in arrays])
        raise ShapeError(message(f"lax.{function}", "operands must be one or more arrays of one shape", got))
    count = static_integer(f"lax.{function}", "num_keys", keys, -LARGEST, LARGEST)
    if not 1 <= count <= len(arrays):
        rule = f"num_keys must be from 1 to {len(arrays)}, the number of operands"
        raise ShapeError(message(f"lax.{function}", rule, count))
    return arrays, normalize_axis(f"lax.{function}", dimension, arrays[0].ndim), count


@on_arrays("operand")
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Arrays sorted alike along a dim, by the first of them; ascending, NaN last.

    Args:
        operand: an array, or a tuple or list of arrays of one shape.
        dimension: the dim.
        is_stable: without effect: every sort is stable.
        num_keys: how many of the operands are keys: a later one orders what is equal in those before it.

    Returns:
        An array, or a tuple of arrays.

    Raises:
        ShapeError: the shapes differ, or ``num_keys`` or ``dimension`` does not exist.

    Source: `jax.lax.sort`; StableHLO sort.
    """
    is_list = isinstance(operand, (tuple, list))
    arrays, dim, keys = _checked("sort", operand if is_list else [operand], dimension, num_keys)
    found = sort_together(arrays, dim, keys)
    return tuple(found) if is_list else found[0]


@on_arrays("keys", "values")
def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> Any:
    """Keys sorted along a dim, and values in the order of their keys.

    Args:
        keys: an array.
        values: an array of the same shape.
        dimension: the dim.
        is_stable: without effect: every sort is stable.

    Raises:
        ShapeError: the shapes differ, or the dim does not exist.

    Source: `jax.lax.sort_key_val`.
    """
    arrays, dim, _ = _checked("sort_key_val", [keys, values], dimension, 1)
    return tuple(sort_together(arrays, dim, 1))


@on_arrays("keys")
def argsort(keys: Any, dimension: int = -1) -> Any:
    """The indices that sort by one or more keys; equal rows keep their order.

    Args:
        keys: an array, or a tuple or list of arrays of one shape; the first one is the primary one.
        dimension: the dim.

    Returns:
        The indices, int32 (int64 for a dim of 2^31 elements or more).

    Raises:
        ShapeError: the shapes differ, or the dim does not exist.

    >>> argsort((np.array([1, 0, 1, 0]), np.array([5, 6, 4, 7])))
    array([1, 3, 2, 0], dtype=int32)
    """
    rows = keys if isinstance(keys, (tuple, list)) else [keys]
    arrays, dim, count = _checked("argsort", rows, dimension, len(rows))
    dtype = np.dtype(np.int32 if arrays[0].shape[dim] <= np.iinfo(np.int32).max else np.int64)
    places = iota(recording(), arrays[0].shape, dim, dtype)
    return sort_together([*arrays, places], dim, count)[-1]
