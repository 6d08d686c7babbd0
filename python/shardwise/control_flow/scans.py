# SPDX-License-Identifier: Apache-2.0
"""Loops over the rows of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError, described, message
from ..flags import as_flag
from ..numpy._primitives import static_integer
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Tracer, current_trace, refuse_escaped
from ..trees import flatten, unflatten
from ..trees.argument_names import names_of_leaves
from ..vmap import vmap
from .counted import CountedLoop
from .leaf_types import Leaves, expect_function, types_of

__all__ = ["MAX_LENGTH", "map", "scan", "unroll_factor"]

MAX_LENGTH = int(np.iinfo(np.int64).max)


@entry_point
def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Loop over the first dim of arrays, with a carry, and stack what each step returns; as `jax.lax.scan`.

    The body is recorded once, so the program has the same size for any length::

        def scan(f, init, xs):
            carry, ys = init, []
            for x in xs:
                carry, y = f(carry, x)
                ys.append(y)
            return carry, np.stack(ys)

    Args:
        f: takes the carry and a row of ``xs``, and returns the next carry and ``y``, a tree of arrays. The carry keeps
            its tree, shapes and dtypes.
        init: the first carry: a tree of arrays and numbers. A Python number takes the dtype of the body's result.
        xs: a tree of arrays with one size of their first dims, or None.
        length: the number of steps; needed if ``xs`` holds no array.
        reverse: start with the last row.
        unroll: how many steps each trip of the loop takes; 0 or True for all of them, without a loop.

    Returns:
        The last carry, and the tree of ``y`` with a new first dim.

    Raises:
        TypeError: ``f`` does not return a pair, or the carry is another tree after the body. DTypeError, ShapeError: a
            leaf of the carry changes its type; the first dims differ from each other or from ``length``.

    ``f`` may use traced values from around it.

    Source: `jax.lax.scan`.

    >>> import shardwise as sw
    >>> scan(lambda total, x: (total + x, total), 0, np.arange(4))
    (np.int64(6), array([0, 0, 1, 3]))
    """
    expect_function("scan", "f", f)

    def step(_: Any, carry: Any, row: Any) -> Any:
        result = f(carry, row)
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise TypeError(message("scan", "f must return a pair (carry, y)", described(result)))
        return result

    return _scanned("scan", step, f, (init, xs), length, reverse, unroll)


@entry_point
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply ``f`` to each row of arrays, one after another, and stack the results; as `jax.lax.map`.

    :func:`vmap` computes all rows at once, which is faster and takes more memory.

    Args:
        f: a function of one row of ``xs``.
        xs: a tree of arrays with one size of their first dims.
        batch_size: how many rows each trip of the loop takes, by :func:`vmap`; 0 for all of them. Default: one, without
            ``vmap``.

    Returns:
        The tree of results with a new first dim.

    Raises:
        ShapeError: the first dims differ, or ``xs`` holds no array.

    Source: `jax.lax.map`.

    >>> map(lambda row: row.sum(), np.arange(6.0).reshape(3, 2))
    array([1., 5., 9.])
    """
    expect_function("map", "f", f)
    parts, length = _checked_rows("map", xs, None)
    size = None if batch_size is None else static_integer("map", "batch_size", batch_size, 0, MAX_LENGTH)
    if size is None or current_trace() is None:  # on NumPy arrays, a batch is a loop as well
        return _mapped(f, xs)
    whole = length if size == 0 else length // size * size
    batched = vmap(f)
    results: list[Any] = []
    if 0 < size <= whole:
        blocks = [_lifted(x)[:whole].reshape(whole // size, size, *x.shape[1:]) for x in parts.leaves]
        leaves, structure = flatten(_mapped(batched, unflatten(parts.structure, blocks)))
        results.append(unflatten(structure, [y.reshape(whole, *y.shape[2:]) for y in leaves]))
    start = whole if size else 0
    if start < length or not results:
        results.append(batched(unflatten(parts.structure, [_lifted(x)[start:] for x in parts.leaves])))
    columns = zip(*(flatten(result)[0] for result in results))
    joined = [column[0] if len(column) == 1 else np.concatenate(column) for column in columns]
    return unflatten(flatten(results[0])[1], joined)


def _mapped(f: Callable[[Any], Any], xs: Any) -> Any:
    return _scanned("map", lambda _, carry, row: (carry, f(row)), f, ((), xs), None, False, 1)[1]


def _lifted(x: Any) -> Any:
    trace = current_trace()
    return x if trace is None else trace.lift(x)


def _scanned(
    what: str,
    step: Callable[[Any, Any, Any], Any],
    f: Callable[..., Any],
    trees: tuple[Any, Any],
    length: int | None,
    reverse: bool,
    unroll: int | bool,
) -> tuple[Any, Any]:
    """The scan of ``step`` over ``trees``, the initial carry and the arrays; ``f`` has the names of its arguments."""
    init, xs = trees
    parts, count = _checked_rows(what, xs, length)
    if what == "map":
        names: tuple[list[str], list[str]] = ([], names_of_leaves(f, (xs,)))
    else:
        both = names_of_leaves(f, (init, xs))
        names = (both[: len(both) - len(parts.leaves)], both[len(both) - len(parts.leaves) :])
    loop = CountedLoop(
        what=what,
        step=lambda i, carry, rows: step(i, carry, unflatten(parts.structure, rows)),
        names=("", *names),
        xs=parts.leaves,
        start=0,
        length=count,
        reverse=as_flag(what, "reverse", reverse),
        unroll=unroll_factor(what, unroll),
    )
    return loop.run(init)


def unroll_factor(what: str, unroll: int | bool) -> int:
    """How many steps a trip takes; 0 for all."""
    if isinstance(unroll, bool):
        return 0 if unroll else 1
    return static_integer(what, "unroll", unroll, 0, MAX_LENGTH)


def _checked_rows(what: str, xs: Any, length: Any) -> tuple[Leaves, int]:
    """The arrays to scan over, and the number of their rows."""
    parts = types_of(what, "xs", xs)
    for leaf, leaf_type, place in zip(parts.leaves, parts.types, parts.places):
        if isinstance(leaf, Tracer) and current_trace() is None:
            refuse_escaped(leaf)
        if not leaf_type.shape:
            raise ShapeError(message(what, "xs must hold arrays with a first dim", f"{leaf_type} at {place}"))
    sizes = [leaf.shape[0] for leaf in parts.types]
    shown = ", ".join(f"{size} for {place}" for size, place in zip(sizes, parts.places))
    if length is not None:
        count = static_integer(what, "length", length, 0, MAX_LENGTH)
        if any(size != count for size in sizes):
            raise ShapeError(message(what, f"the first dims of xs must be length={count}", shown))
        return parts, count
    if not sizes:
        way_out = "pass length=" if what == "scan" else ""
        raise ShapeError(message(what, "xs must hold an array", described(xs), way_out))
    if len(set(sizes)) != 1:
        raise ShapeError(message(what, "the first dims of xs must have one size", shown))
    return parts, sizes[0]
