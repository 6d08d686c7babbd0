# SPDX-License-Identifier: Apache-2.0
"""Programs of public reports that other compilers move too much for, a row for each kind."""

from __future__ import annotations

from typing import Any

import numpy

from .programs import COLUMNS, LINE, ROWS, Axes, Library, Program, X, moved

__all__ = ["NEEDLESS"]

CACHE = (4, 64, 8, 4)
IDS = numpy.arange(64)
INT32 = numpy.int32


def cache_written(library: Library, cache: Any, update: Any, starts: Any) -> Any:
    write = lambda c, u, i: library.lax.dynamic_update_slice(c, u, (i, 0, 0))  # noqa: E731
    return library.vmap(write)(cache, update, starts)


def masked(np: Any, lengths: Any, a: Any, c: Any) -> Any:
    mask = np.arange(16)[None] < lengths[:, None]
    return np.where(mask, a, 0), np.where(mask, c, 0)


def in_groups(library: Library, x: Any, w: Any) -> Any:
    return library.lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=16)


def moved_by_lax(
    name: str, function: Any, bound: int, shapes: tuple[Any, ...], given: tuple[Axes, ...], out: Axes
) -> Any:
    return Program(name, function, shapes, given, out, bound, LINE)


HEADS: Axes = (None, None, "x")

NEEDLESS = [
    moved_by_lax(
        "cache written, heads sharded",
        cache_written,
        0,
        (CACHE, (4, 1, 8, 4), ((4,), INT32)),
        (HEADS, HEADS, ()),
        HEADS,
    ),
    moved_by_lax(
        "3 rows written",
        lambda library, x, u: library.lax.dynamic_update_slice(x, u, (7, 0)),
        0,
        (ROWS, (3, 16)),
        (X, ()),
        X,
    ),
    moved("pairs of rows by known ids", lambda np, x: x[IDS ^ 1], 0),
    moved("rotated by known ids", lambda np, x: x[numpy.roll(IDS, 1)], 64),
    moved("labels by known rows", lambda np, x, t: x[np.arange(64), t], 0, ROWS, ((64,), INT32)),
    moved(
        "mask of lengths for rows and columns",
        masked,
        0,
        ((64,), INT32),
        ROWS,
        ROWS,
        given=[(), X, COLUMNS],
        out=[X, COLUMNS],
        objective="bytes",
    ),
    moved("join of joins", lambda np, w: np.concatenate([np.concatenate([w, w])] * 2), 0, given=()),
    moved("stack, then merge", lambda np, w: np.stack([w * 2] * 4).reshape(256, 16), 0, given=(), objective="bytes"),
    moved("differences to the last row", lambda np, u: np.concatenate([u[1:], u[-1:]]) - u, 64),
    moved("inverses of a batch", lambda np, m: np.linalg.inv(m), 0, (16, 3, 3)),
    moved_by_lax("convolution in 16 groups", in_groups, 0, ((2, 16, 9), (16, 1, 3)), ((None, "x"), X), (None, "x")),
]
