# SPDX-License-Identifier: Apache-2.0
"""Running totals of an associative function, in logarithmic depth and without a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError, message
from ..flags import as_flag
from ..numpy._primitives import normalize_axis
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Tracer, current_trace, refuse_escaped
from ..trees import unflatten
from .leaf_types import Leaves, check_trees, check_types, expect_function, types_of

__all__ = ["associative_scan"]


@entry_point
def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Combine the elements up to each index along ``axis`` by an associative function; as `jax.lax.associative_scan`.

    Element k of the result is ``fn(… fn(fn(x0, x1), x2) …, xk)``. ``fn`` is called on whole slices, about 2·log2(n)
    times.

    Args:
        fn: takes two trees like ``elems``, of any size along ``axis``, and combines them element by element; it must be
            associative.
        elems: a tree of arrays with one size along ``axis``.
        reverse: combine from the end.
        axis: the dim.

    Returns:
        A tree like ``elems``.

    Raises:
        ShapeError: the sizes along ``axis`` differ, an array does not have that dim, or ``fn`` returns another shape.
        TypeError, DTypeError: ``fn`` returns another tree or dtype.

    Source: `jax.lax.associative_scan`; Blelloch, "Prefix Sums and Their Applications" (1990).

    >>> associative_scan(np.add, np.arange(5))
    array([ 0,  1,  3,  6, 10])
    """
    expect_function("associative_scan", "fn", fn)
    parts = types_of("associative_scan", "elems", elems)
    if not parts.leaves:
        raise ShapeError(message("associative_scan", "elems must hold an array", "none"))
    trace = current_trace()
    for leaf in parts.leaves:
        if isinstance(leaf, Tracer) and trace is None:
            refuse_escaped(leaf)
    dim = normalize_axis("associative_scan", axis, parts.types[0].ndim)
    for leaf in parts.types:
        normalize_axis("associative_scan", dim, leaf.ndim)
    sizes = [leaf.shape[dim] for leaf in parts.types]
    if len(set(sizes)) != 1:
        shown = ", ".join(f"{size} for {place}" for size, place in zip(sizes, parts.places))
        raise ShapeError(message("associative_scan", f"elems must have one size along dim {dim}", shown))
    arrays: list[Any] = [_array(leaf) if trace is None else trace.lift(leaf) for leaf in parts.leaves]
    backwards = as_flag("associative_scan", "reverse", reverse)
    if backwards:
        arrays = [np.flip(x, dim) for x in arrays]
    results = _Scan(fn, parts, dim).scanned(arrays)
    return unflatten(parts.structure, [np.flip(x, dim) for x in results] if backwards else results)


def _array(leaf: Any) -> Any:
    return leaf if hasattr(leaf, "__shardwise_array__") else np.array(leaf)


class _Scan:
    """The recursion over pairs of elements."""

    def __init__(self, fn: Callable[[Any, Any], Any], parts: Leaves, dim: int) -> None:
        self._fn = fn
        self._parts = parts
        self._dim = dim

    def scanned(self, arrays: list[Any]) -> list[Any]:
        """The totals up to each index: of the odd ones by recursion over pairs, then of the even ones."""
        size = arrays[0].shape[self._dim]
        if size < 2:
            return arrays
        odd = self.scanned(self._combined(self._slices(arrays, 0, size - 1, 2), self._slices(arrays, 1, size, 2)))
        before = odd if size % 2 else self._slices(odd, 0, size // 2 - 1)
        even = self._slices(arrays, 0, 1)
        if size > 2:
            rest = self._combined(before, self._slices(arrays, 2, size, 2))
            even = [np.concatenate(pair, self._dim) for pair in zip(even, rest)]
        return [self._interleaved(*pair) for pair in zip(even, odd)]

    def _slices(self, arrays: list[Any], start: int, stop: int, step: int = 1) -> list[Any]:
        index = (*[slice(None)] * self._dim, slice(start, stop, step))
        return [x[index] for x in arrays]

    def _combined(self, first: list[Any], second: list[Any]) -> list[Any]:
        structure = self._parts.structure
        wanted = types_of("associative_scan", "elems", unflatten(structure, first))
        result = self._fn(unflatten(structure, first), unflatten(structure, second))
        found = types_of("associative_scan", "elems", result)
        names = ("elems", "the result")
        check_trees("associative_scan", "fn must return a tree like its arguments", (wanted, found), names)
        check_types("associative_scan", "fn must return the types of its arguments", wanted.types, found)
        return found.leaves

    def _interleaved(self, even: Any, odd: Any) -> Any:
        """``even[0], odd[0], even[1], …`` along the dim; ``even`` may have one element more."""
        dim, count = self._dim, odd.shape[self._dim]
        head = even if even.shape[dim] == count else self._slices([even], 0, count)[0]
        shape = (*odd.shape[:dim], 2 * count, *odd.shape[dim + 1 :])
        pairs = np.stack([head, odd], dim + 1).reshape(shape)
        return pairs if head is even else np.concatenate([pairs, self._slices([even], count, count + 1)[0]], dim)
