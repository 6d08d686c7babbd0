# SPDX-License-Identifier: Apache-2.0
"""Programs that read and write at known places, with the bytes that they may send.

A family draws shapes, places and a mesh. Its bound is computed from coordinates: which rows each device needs, and
which it has.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import shardwise as sw
from shardwise import P

__all__ = ["FAMILIES", "Program"]

F32 = np.float32


@dataclass(frozen=True)
class Program:
    """A function of NumPy or JAX, its arguments, and where they are.

    Attributes:
        bound: bytes that one device may receive.
        expected: the result or results, by NumPy.
        tolerance: of floats that are computed, relative and absolute; 0 for equal bits.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    mesh: sw.Mesh
    given: tuple[Any, ...]
    wanted: Any
    bound: float
    expected: Any
    is_jax: bool = False
    tolerance: float = 0

    def compiled(self) -> Any:
        """The program, for the fewest bytes."""
        function = sw.from_jax(self.function) if self.is_jax else self.function
        jitted = sw.jit(function, mesh=self.mesh, in_shardings=self.given, out_shardings=self.wanted, objective="bytes")
        return jitted.lower(*self.arguments).compile()


@dataclass(frozen=True)
class Split:
    """A dim that is split over axes of a mesh."""

    mesh: sw.Mesh
    axes: Any  # of a PartitionSpec
    shards: int

    def tile(self, size: int, device: int) -> set[int]:
        """The rows of the shard of this number."""
        block = -(-size // self.shards)
        return set(range(min(device * block, size), min((device + 1) * block, size)))


def draw_split(rng: random.Random) -> Split:
    meshes = [
        Split(sw.Mesh({"x": 4}), "x", 4),
        Split(sw.Mesh({"x": 3}), "x", 3),
        Split(sw.Mesh({"x": 8}), "x", 8),
        Split(sw.Mesh({"x": 4}, device_ids=[2, 0, 3, 1]), "x", 4),
        Split(sw.Mesh({"x": 2, "y": 3}), ("x", "y"), 6),
        Split(sw.Mesh({"x": 4, "y": 2}), "x", 4),
        Split(sw.Mesh({"y": 2, "x": 3}), "x", 3),
    ]
    return rng.choice(meshes)


def distinct(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape), dtype=F32).reshape(shape) % 8191) - 60


def rows_missing(split: Split, size: int, ids: np.ndarray) -> int:
    """The most rows that a device lacks: it has its tile of ``size`` rows, and makes its tile of x[ids].

    A row that is needed again beside another one is counted again: it belongs to another piece of a concatenate.
    """
    counts = []
    for device in range(split.shards):
        own = split.tile(size, device)
        places = split.tile(len(ids), device)
        pieces = {(int(ids[i]) % size, int(ids[i]) - i if repeats_few(ids) else 0) for i in places}
        counts.append(sum(row not in own for row, _ in pieces))
    return max(counts)


def repeats_few(ids: np.ndarray) -> bool:
    return len(ids) - len(set(ids.tolist())) <= 2


# ---- rows at known places --------------------------------------------------------------------------------------------


def known_ids(rng: random.Random, size: int, shards: int) -> np.ndarray:
    # Blocks that lie in one shard; others are moved as their reshape is.
    block = rng.choice([b for b in (1, 2, 3, 4, 8) if size % (b * shards) == 0] or [1])
    inside = np.arange(size) // block * block + (block - 1 - np.arange(size) % block)
    start = rng.randrange(size // 2)
    kinds = [
        np.arange(size),
        np.roll(np.arange(size), rng.choice([1, -1, 2])),
        np.arange(start, size),
        np.arange(0, size, rng.choice([2, 3])),
        inside,
        np.arange(size)[::-1],
        # Of uneven shards, rows are repeated before they move.
        np.repeat(np.arange(size), rng.choice([2, 3]) if size % shards == 0 else 1),
        np.concatenate([[0], np.arange(size), [size - 1]]),
        np.full(rng.choice([5, 8]), start),
        np.arange(size) - size,  # negative
    ]
    return kinds[rng.randrange(len(kinds))].astype(rng.choice([np.int32, np.int64]))


def of_rows(rng: random.Random) -> Program:
    """x[ids] along a split dim: what the slices of these rows send."""
    split, columns = draw_split(rng), rng.choice([1, 5])
    size = rng.choice([24, 25, 48, 72])
    ids = known_ids(rng, size, split.shards)
    x = distinct(size, columns)
    missing = rows_missing(split, size, ids)
    functions: list[tuple[Callable[..., Any], bool]] = [
        (lambda x: x[ids], False),
        (lambda x: np.take(x, ids, 0), False),
        (lambda x: x[jnp.asarray(ids)], True),
        (lambda x: jnp.take(x, ids, axis=0, mode="clip") if ids.min() >= 0 else x[ids], True),
    ]
    function, is_jax = rng.choice(functions)
    spec = P(split.axes)
    return Program(
        f"rows {size} {ids.tolist()}", function, (x,), split.mesh, (spec,), spec, missing * columns * 4, x[ids], is_jax
    )


# ---- windows ---------------------------------------------------------------------------------------------------------

UPDATES: dict[str, Callable[[np.ndarray, Any, np.ndarray], None]] = {
    "set": lambda x, at, u: x.__setitem__(at, u),
    "add": lambda x, at, u: x.__setitem__(at, x[at] + u),
    "multiply": lambda x, at, u: x.__setitem__(at, x[at] * u),
    "min": lambda x, at, u: x.__setitem__(at, np.minimum(x[at], u)),
    "max": lambda x, at, u: x.__setitem__(at, np.maximum(x[at], u)),
}


def of_written_window(rng: random.Random) -> Program:
    """x.at[start:stop].op(u) along a split dim, u whole: nothing is sent."""
    split, size, columns = draw_split(rng), rng.choice([24, 25, 48]), rng.choice([1, 4])
    start = rng.randrange(size - 1)
    stop = rng.randrange(start + 1, size + 1)
    how, dim = rng.choice(list(UPDATES)), rng.randrange(2)
    shape = (size, columns) if dim == 0 else (columns, size)
    at: Any = (slice(start, stop),) if dim == 0 else (slice(None), slice(start, stop))
    x, update = distinct(*shape), distinct(*shape)[at] * 3 - 7
    expected = x.copy()
    UPDATES[how](expected, at, update)
    spec = P(split.axes) if dim == 0 else P(None, split.axes)
    return Program(
        f"written {shape} {at} {how}", lambda x, u: getattr(x.at[at], how)(u), (x, update), split.mesh, (spec, P()),
        spec, 0, expected, True,
    )  # fmt: skip


def of_written_window_at_runtime(rng: random.Random) -> Program:
    """A KV cache: each sequence is written at its own place along a split dim, and the heads may be split instead."""
    split, count, size, heads = draw_split(rng), rng.choice([2, 3]), rng.choice([24, 25]), 12
    length = rng.choice([1, 2, 5])
    cache, update = distinct(count, size, heads), distinct(count, length, heads) * 2 + 5
    starts = np.array([rng.randrange(-3, size + 3) for _ in range(count)], np.int32)
    expected = cache.copy()
    for i, start in enumerate(starts):
        begin = min(max(start + size if start < 0 else start, 0), size - length)
        expected[i, begin : begin + length] = update[i]
    write = jax.vmap(lambda c, u, i: lax.dynamic_update_slice(c, u, (i, 0)))
    by_heads = rng.random() < 0.5
    spec = P(None, None, split.axes) if by_heads else P(None, split.axes)
    given = (spec, spec if by_heads else P(), P())
    return Program(
        f"cache {starts} of {size}", write, (cache, update, starts), split.mesh, given, spec, 0, expected, True
    )


def of_read_window(rng: random.Random) -> Program:
    """Windows at places of each sequence: along a split dim, the devices add up what they have of them."""
    split, count, size, heads = draw_split(rng), rng.choice([2, 3]), rng.choice([24, 25]), 12
    length = rng.choice([1, 2, 5])
    cache = distinct(count, size, heads)
    starts = np.array([rng.randrange(size + 3) for _ in range(count)], np.int32)
    begins = np.minimum(starts, size - length)
    expected = np.stack([cache[i, b : b + length] for i, b in enumerate(begins)])
    read = jax.vmap(lambda c, i: lax.dynamic_slice(c, (i, 0), (length, heads)))
    by_heads = rng.random() < 0.4
    spec = P(None, None, split.axes) if by_heads else P(None, split.axes)
    # A ring sends each part twice but for one; parts of uneven size are rounded up.
    parts = -(-expected.size // split.shards)
    bound = 0 if by_heads else 2 * (split.shards - 1) * parts * 4
    return Program(
        f"read {starts} of {size}", read, (cache, starts), split.mesh, (spec, P()), spec if by_heads else P(), bound,
        expected, True,
    )  # fmt: skip


# ---- columns that count ----------------------------------------------------------------------------------------------


def of_batched_columns(rng: random.Random) -> Program:
    """x[arange(n), ids] with n split: each device has the rows of its ids."""
    split, size, classes = draw_split(rng), rng.choice([24, 25, 48]), rng.choice([3, 10])
    x = distinct(size, classes)
    ids = np.array([rng.randrange(-classes, classes) for _ in range(size)], np.int32)
    spec = P(split.axes)
    rows = np.arange(size)
    if rng.random() < 0.5:
        kinds: list[tuple[Callable[..., Any], bool]] = [
            (lambda x, ids: x[jnp.arange(size), ids], True),
            (lambda x, ids: x[np.arange(size), ids], False),
            (lambda x, ids: jnp.take_along_axis(x, ids[:, None], 1)[:, 0], True),
        ]
        function, is_jax = rng.choice(kinds)
        return Program(f"columns {size}", function, (x, ids), split.mesh, (spec, spec), spec, 0, x[rows, ids], is_jax)
    update, how = distinct(size) * 2 - 9, rng.choice(list(UPDATES))
    expected = x.copy()
    UPDATES[how](expected, (rows, ids), update)
    return Program(
        f"columns {size} {how}", lambda x, ids, u: getattr(x.at[jnp.arange(size), ids], how)(u), (x, ids, update),
        split.mesh, (spec, spec, spec), spec, 0, expected, True,
    )  # fmt: skip


# ---- arithmetic of indices -------------------------------------------------------------------------------------------

DTYPES = (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32)


def index_expression(rng: random.Random, ids: Any, size: int, depth: int) -> Any:
    """Integers of one dtype, made of ``ids``, of an iota and of numbers at the borders of the dtype and of the dim."""
    dtype, count = ids.dtype, ids.shape[0]
    info = jnp.iinfo(dtype)
    if depth == 0:
        number = rng.choice([info.min, info.max, 0, 1, size - 1, size, size + 1, -1, -size])
        number = min(max(number, int(info.min)), int(info.max))
        return rng.choice([ids, jnp.arange(count).astype(dtype), jnp.full(count, number, dtype)])
    a, b = (index_expression(rng, ids, size, depth - 1) for _ in range(2))
    kind = rng.randrange(9)
    if kind < 5:
        return [jnp.add, jnp.subtract, jnp.multiply, jnp.minimum, jnp.maximum][kind](a, b)
    if kind == 5:
        return lax.clamp(jnp.asarray(rng.choice([0, 1]), dtype), a, jnp.asarray(rng.choice([0, 1, 3, 100]), dtype))
    if kind == 6:
        return jnp.where(rng.choice([jnp.less, jnp.equal, jnp.greater_equal])(a, b), a, b)
    if kind == 7:
        return a.astype(rng.choice(DTYPES)).astype(dtype)
    return jnp.concatenate([a, b])[rng.choice([slice(count), slice(0, 2 * count, 2), slice(count, None)])]


def of_index_arithmetic(rng: random.Random) -> Program:
    """Whatever the analysis of indices finds out, the numbers are those of JAX."""
    split, size, columns = draw_split(rng), rng.choice([5, 24, 100]), 3
    x, count = distinct(size, columns), rng.choice([6, 24])
    ids = np.array([rng.randrange(-100, 100) for _ in range(count)]).astype(rng.choice(DTYPES))
    state, depth = rng.getstate(), rng.randrange(4)
    pairs, mode, writes = rng.random() < 0.3, rng.choice(["clip", "fill", "promise"]), rng.random() < 0.4

    def function(x: Any, ids: Any) -> Any:
        again = random.Random()
        again.setstate(state)
        rows = index_expression(again, ids, size, depth)
        at: Any = (rows, index_expression(again, ids, columns, depth)) if pairs else rows
        if mode == "promise":
            at = tuple(jnp.abs(i.astype(jnp.int32)) % n for i, n in zip(at, x.shape, strict=True)) if pairs else (
                jnp.abs(rows.astype(jnp.int32)) % size
            )  # fmt: skip
        kept = "clip" if mode == "clip" else "fill"
        return x.at[at].add(2.0, mode="clip" if mode == "clip" else "drop") if writes else x.at[at].get(mode=kept)

    spec = P(split.axes)
    return Program(
        f"indices {ids.dtype} {mode}", function, (x, ids), split.mesh, (spec, P()), None, np.inf,
        np.asarray(jax.jit(function)(x, ids)), True,
    )  # fmt: skip


FAMILIES: dict[str, Callable[[random.Random], Program]] = {
    "rows": of_rows,
    "written windows": of_written_window,
    "cache writes": of_written_window_at_runtime,
    "read windows": of_read_window,
    "columns that count": of_batched_columns,
    "index arithmetic": of_index_arithmetic,
}
