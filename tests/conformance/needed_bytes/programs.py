# SPDX-License-Identifier: Apache-2.0
"""Programs of other kinds that move what they need, with the bytes that they may send.

The bounds come from coordinates: what a device needs of a tile in another place, without what it has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, PartitionSpec as JaxP

import shardwise as sw
from shardwise import P

from ..known_places.programs import F32, UPDATES, Program, Split, distinct, draw_split

__all__ = ["FAMILIES"]


def small(*shape: int) -> np.ndarray:
    """Numbers between -1 and 1 without order."""
    return np.sin(np.arange(np.prod(shape), dtype=np.float64) * 1.7 + 0.3).astype(F32).reshape(shape)


def along(split: Split, dim: int) -> P:
    return P(*[None] * dim, split.axes)


def moved_elements(split: Split, shape: Sequence[int], before: int, after: int) -> int:
    """The most elements that a device receives where a tile along one dim becomes one along another dim."""
    counts = []
    for device in range(split.shards):
        have, need = len(split.tile(shape[before], device)), len(split.tile(shape[after], device))
        rest = int(np.prod([n for d, n in enumerate(shape) if d not in (before, after)]))
        counts.append(rest * need * (shape[before] - have))
    return max(counts)


# ---- another dim can be whole ----------------------------------------------------------------------------------------


def of_transforms(rng: random.Random) -> Program:
    """A transform along a split dim: its axes go to another dim, and back."""
    split = draw_split(rng)
    shape = [rng.choice([12, 24, 25]) for _ in range(rng.choice([2, 3]))]
    dim = rng.randrange(len(shape))
    kind = rng.choice(["fft", "ifft", "rfft", "fftn"])
    x = small(*shape) if kind == "rfft" else (small(*shape) + 1j * small(*shape)[::-1]).astype(np.complex64)
    axes = (dim,)
    if kind == "fftn":
        axes = tuple(sorted({dim, (dim + 1) % len(shape)}))

    def function(x: Any) -> Any:
        return np.fft.fftn(x, axes=axes) if kind == "fftn" else getattr(np.fft, kind)(x, axis=dim)

    expected = function(x)
    others = [d for d in range(len(shape)) if d != dim]
    sent = min(
        moved_elements(split, x.shape, dim, d) * x.itemsize
        + moved_elements(split, expected.shape, d, dim) * np.complex64().itemsize
        for d in others
    )
    spec = along(split, dim)
    return Program(f"{kind} {shape} {axes}", function, (x,), split.mesh, (spec,), spec, sent, expected, tolerance=1e-3)


def of_cumulative_regions(rng: random.Random) -> Program:
    """A cumulative op by a region of its own sends the totals of the shards."""
    split, columns = draw_split(rng), rng.choice([1, 3, 8])
    size, reverse = rng.choice([24, 25, 48]), rng.random() < 0.5
    x = small(size, columns)
    logs = np.logaddexp.accumulate(x.astype(np.float64)[:: -1 if reverse else 1], 0)[:: -1 if reverse else 1]
    spec = P(split.axes)
    return Program(
        f"cumlogsumexp {size} {reverse}", lambda x: lax.cumlogsumexp(x, 0, reverse=reverse), (x,), split.mesh, (spec,),
        spec, (split.shards - 1) * columns * 4, logs, True, tolerance=1e-4,
    )  # fmt: skip


def of_heads(rng: random.Random) -> Program:
    """Columns become heads and columns again: each device has the heads of one tile between the two."""
    split = draw_split(rng)
    rows, heads, size = rng.choice([1, 5]), rng.choice([6, 10, 15, 30]), rng.choice([2, 8])
    x = small(rows, heads * size)
    columns = heads * size
    counts = []
    for device in range(split.shards):
        have = split.tile(columns, device)
        need = {head * size + i for head in split.tile(heads, device) for i in range(size)}
        counts.append((len(need - have), len(have - need)))
    sent = rows * (max(c for c, _ in counts) + max(c for _, c in counts)) * 4
    spec = along(split, 1)
    return Program(
        f"{heads} heads of {size}", lambda x: np.abs(x.reshape(rows, heads, size)).reshape(rows, columns), (x,),
        split.mesh, (spec,), spec, sent, np.abs(x),
    )  # fmt: skip


def of_batched_calls(rng: random.Random) -> Program:
    """Linear algebra over a split batch sends nothing."""
    split, count, n = draw_split(rng), rng.choice([7, 12, 24]), rng.choice([2, 3])
    a = small(count, n, n) + 3 * np.eye(n, dtype=F32)
    symmetric = (a + a.transpose(0, 2, 1)) / 2
    kinds: dict[str, tuple[Callable[..., Any], Callable[..., Any], np.ndarray]] = {
        "inv": (jnp.linalg.inv, np.linalg.inv, a),
        "det": (jnp.linalg.det, np.linalg.det, a),
        "slogdet": (lambda m: jnp.linalg.slogdet(m)[1], lambda m: np.linalg.slogdet(m)[1], a),
        "solve": (lambda m: jnp.linalg.solve(m, m[..., :1]), lambda m: np.linalg.solve(m, m[..., :1]), a),
        "cholesky": (jnp.linalg.cholesky, np.linalg.cholesky, symmetric),
        "eigvalsh": (jnp.linalg.eigvalsh, np.linalg.eigvalsh, symmetric),
    }
    name = rng.choice(list(kinds))
    function, of_numpy, x = kinds[name]
    spec = P(split.axes)
    return Program(
        f"{name} of {count}", function, (x,), split.mesh, (spec,), spec, 0, of_numpy(x), True, tolerance=1e-3
    )


# ---- known places that are written -----------------------------------------------------------------------------------


def written_ids(rng: random.Random, size: int, shards: int) -> np.ndarray:
    """Different rows: all of them in another order, or steps."""
    block = rng.choice([b for b in (1, 2, 4) if size % (b * shards) == 0] or [1])
    start = rng.randrange(3)
    kinds = [
        np.arange(size),
        np.roll(np.arange(size), rng.choice([1, -1, 2])),
        np.arange(size) // block * block + (block - 1 - np.arange(size) % block),
        np.arange(start, size, rng.choice([2, 3])),
        np.arange(size)[::-1],
        np.arange(size) - size,
    ]
    return kinds[rng.randrange(len(kinds))].astype(np.int32)


def of_written_rows(rng: random.Random) -> Program:
    """x.at[ids].op(u), both split: a device receives the rows of u that belong to its rows of x."""
    split, size, columns = draw_split(rng), rng.choice([24, 25, 48]), rng.choice([1, 4])
    ids, how = written_ids(rng, size, split.shards), rng.choice(list(UPDATES))
    x, update = distinct(size, columns), distinct(len(ids), columns) * 3 - 7
    expected = x.copy()
    UPDATES[how](expected, ids, update)
    place = {int(row) % size: i for i, row in enumerate(ids)}
    missing = max(
        len({place[row] for row in split.tile(size, d) if row in place} - split.tile(len(ids), d))
        for d in range(split.shards)
    )
    spec = P(split.axes)
    return Program(
        f"written rows {ids.tolist()} {how}", lambda x, u: getattr(x.at[ids], how)(u), (x, update), split.mesh,
        (spec, spec), spec, missing * columns * 4, expected, True,
    )  # fmt: skip


def of_split_windows(rng: random.Random) -> Program:
    """x.at[start:stop].op(u), both split: the rows of u that belong to the rows of a device."""
    split, size, columns = draw_split(rng), rng.choice([24, 25, 48]), rng.choice([1, 4])
    start = rng.randrange(size // 2)
    stop = rng.randrange(start + size // 4, size + 1)
    how = rng.choice(list(UPDATES))
    x, update = distinct(size, columns), distinct(stop - start, columns) * 3 - 7
    expected = x.copy()
    UPDATES[how](expected, slice(start, stop), update)
    missing = max(
        len({row - start for row in split.tile(size, d) if start <= row < stop} - split.tile(stop - start, d))
        for d in range(split.shards)
    )
    spec = P(split.axes)
    return Program(
        f"window {start}:{stop} of {size} {how}", lambda x, u: getattr(x.at[start:stop], how)(u), (x, update),
        split.mesh, (spec, spec), spec, missing * columns * 4, expected, True,
    )  # fmt: skip


# ---- values that follow from whole arguments -------------------------------------------------------------------------


def whole_expression(rng: random.Random, scale: Any, lengths: Any, shape: tuple[int, int], depth: int) -> Any:
    """An array of this shape, made of one that is whole, of lengths, and of numbers."""
    columns = shape[1]
    if depth == 0:
        kind = rng.randrange(3)
        if kind == 0:
            return scale
        if kind == 1:
            return np.broadcast_to(lengths[:, None], shape) * F32(0.5)
        return np.where(np.arange(columns)[None] < lengths[:, None], F32(1.5), F32(-2))
    a, b = (whole_expression(rng, scale, lengths, shape, depth - 1) for _ in range(2))
    return [
        lambda: a + b,
        lambda: a - b * F32(0.25),
        lambda: np.maximum(a, b),
        lambda: np.where(a > b, a, -b),
        lambda: np.abs(a) * F32(2),
    ][rng.randrange(5)]()


def of_whole_values(rng: random.Random) -> Program:
    """One expression over whole arguments, for a user that is split by rows and one that is split by columns."""
    split, shape = draw_split(rng), (rng.choice([24, 25]), rng.choice([24, 25]))
    a, b, scale = distinct(*shape), distinct(*shape) * 2, small(*shape)
    lengths = (np.arange(shape[0]) * 7 % shape[1]).astype(np.int32)
    state, depth = rng.getstate(), rng.randrange(1, 4)

    def function(a: Any, b: Any, scale: Any, lengths: Any) -> Any:
        again = random.Random()
        again.setstate(state)
        value = whole_expression(again, scale, lengths, shape, depth)
        return a + value, b * value

    given = (along(split, 0), along(split, 1), P(), P())
    arguments = (a, b, scale, lengths)
    return Program(f"whole {depth} {shape}", function, arguments, split.mesh, given, given[:2], 0, function(*arguments))


def of_random_numbers(rng: random.Random) -> Program:
    """Random numbers of one key, for a user by rows and one by columns: each device draws its part of both."""
    split, shape = draw_split(rng), (rng.choice([24, 25]), rng.choice([24, 25]))
    a, b, seed = distinct(*shape), distinct(*shape) * 2, rng.randrange(99)
    draw: Callable[[Any], Any] = rng.choice(
        [
            lambda key: jax.random.uniform(key, shape),
            lambda key: jax.random.normal(key, shape),
            lambda key: jax.random.bernoulli(key, 0.3, shape).astype(F32),
            lambda key: jax.random.truncated_normal(key, -1, 1, shape),
            lambda key: jax.random.exponential(key, shape),
        ]
    )
    of_argument, twice = rng.random() < 0.5, rng.random() < 0.5

    def function(a: Any, b: Any, seed: Any) -> Any:
        first = draw(jax.random.key(seed if of_argument else 5))
        again = draw(jax.random.key(seed if of_argument else 5)) if twice else first
        return a + first, b + again

    given = (along(split, 0), along(split, 1), P())
    arguments = (a, b, np.int32(seed))
    expected = tuple(np.asarray(x) for x in function(*arguments))
    return Program(
        f"random {shape}", function, arguments, split.mesh, given, given[:2], 0, expected, True, tolerance=1e-5
    )


# ---- sums for split users --------------------------------------------------------------------------------------------


def of_gathered_weights(rng: random.Random) -> Program:
    """A loss that gathers its weights by an annotation: their gradients are scattered."""
    split = draw_split(rng)
    rows, columns, wide = rng.choice([24, 48]), rng.choice([24, 25]), rng.choice([3, 8])
    x, w = small(rows, columns), small(columns, wide)
    half_square = rng.random() < 0.5

    def loss(w: Any, x: Any) -> Any:
        y = x @ sw.replicate(w)
        return ((y * y) * F32(0.5)).sum() if half_square else y.sum()

    expected = x.T @ (x @ w) if half_square else x.T @ np.ones((rows, wide), F32)
    spec = P(split.axes)
    block = -(-columns // split.shards)
    bound = 2 * (split.shards - 1) * block * wide * 4
    return Program(
        f"gathered weights {columns}", lambda w, x: sw.grad(loss)(w, x), (w, x), split.mesh, (spec, spec), spec, bound,
        expected, tolerance=1e-3,
    )  # fmt: skip


# ---- groups along a part of an axis ----------------------------------------------------------------------------------


def groups_of(size: int, part: int, minor: bool) -> list[list[int]]:
    """The groups of `part` positions of an axis: neighbours, or positions that are far apart."""
    rest = size // part
    if minor:
        return [[k * part + i for i in range(part)] for k in range(rest)]
    return [[i * rest + k for i in range(part)] for k in range(rest)]


def of_groups(rng: random.Random) -> Program:
    """A collective with axis_index_groups sends what one along that part of the axis sends."""
    sizes = rng.choice([{"x": 4}, {"x": 8}, {"x": 6}, {"x": 4, "y": 2}, {"y": 3, "x": 4}])
    mesh = sw.Mesh(sizes, device_ids=[2, 0, 3, 1] if sizes == {"x": 4} and rng.random() < 0.5 else None)
    size = sizes["x"]
    part = rng.choice([n for n in (2, 3, 4) if size % n == 0 and n < size])
    groups = groups_of(size, part, rng.random() < 0.5)
    rows, columns = 2, part * rng.choice([2, 3])
    x = distinct(rows * size, columns)
    tiles = x.reshape(size, rows, columns)
    kind = rng.choice(["psum", "all_gather", "psum_scatter", "pmax"])
    bytes_of_tile = rows * columns * 4

    def body(t: Any) -> Any:
        if kind == "all_gather":
            return lax.all_gather(t, "x", axis=1, tiled=True, axis_index_groups=groups)
        if kind == "psum_scatter":
            return lax.psum_scatter(t, "x", scatter_dimension=1, tiled=True, axis_index_groups=groups)
        return {"psum": lax.psum, "pmax": lax.pmax}[kind](t, "x", axis_index_groups=groups)

    made: dict[int, np.ndarray] = {}
    for group in groups:
        together = tiles[group]
        for place, member in enumerate(group):
            if kind == "all_gather":
                made[member] = np.concatenate(list(together), 1)
            elif kind == "psum_scatter":
                made[member] = np.split(together.sum(0), part, 1)[place]
            else:
                made[member] = together.sum(0) if kind == "psum" else together.max(0)
    expected = np.concatenate([made[i] for i in range(size)])
    bound = {
        "psum": 2 * (part - 1) * -(-rows * columns // part) * 4,
        "pmax": 2 * (part - 1) * -(-rows * columns // part) * 4,
        "all_gather": (part - 1) * bytes_of_tile,
        "psum_scatter": (part - 1) * bytes_of_tile // part,
    }[kind]
    names = tuple(sizes)
    abstract = AbstractMesh(tuple(sizes.values()), names)

    def function(x: Any) -> Any:
        return jax.shard_map(body, mesh=abstract, in_specs=JaxP("x"), out_specs=JaxP("x"), check_vma=False)(x)

    return Program(f"{kind} {groups}", function, (x,), mesh, (P("x"),), P("x"), bound, expected, True, tolerance=1e-6)


# ---- results that nothing uses ---------------------------------------------------------------------------------------


def of_unused_parts(rng: random.Random) -> Program:
    """Arguments and results of a region that nothing uses cost nothing, and are no error."""
    sizes = rng.choice([{"x": 4}, {"x": 2, "y": 2}, {"x": 3}])
    abstract = AbstractMesh(tuple(sizes.values()), tuple(sizes))
    rows = sizes["x"] * rng.choice([1, 3])
    x, y = distinct(rows, 2), distinct(rows, 2) * 3
    kind = rng.randrange(4)

    def region(body: Any, count: int, results: int) -> Any:
        specs: Any = tuple([JaxP("x")] * results) if results > 1 else JaxP("x")
        return jax.shard_map(body, mesh=abstract, in_specs=(JaxP("x"),) * count, out_specs=specs)

    functions: list[tuple[Callable[..., Any], np.ndarray]] = [
        (lambda x, y: region(lambda x, y: 2 * x, 2, 1)(x, y), 2 * x),
        (lambda x, y: region(lambda x, y: (x + y, lax.psum(y, "x")), 2, 2)(x, y)[0], x + y),
        (lambda x, y: jax.grad(lambda x: (region(lambda x, y: x * y, 2, 1)(x, y)).sum())(x), y),
        (lambda x, y: region(lambda x, tree: x - tree["a"], 2, 1)(x, {"a": y, "b": y * 2}), x - y),
    ]
    function, expected = functions[kind]
    return Program(f"unused {kind}", function, (x, y), sw.Mesh(sizes), (P("x"), P("x")), P("x"), 0, expected, True)


FAMILIES: dict[str, Callable[[random.Random], Program]] = {
    "transforms": of_transforms,
    "cumulative regions": of_cumulative_regions,
    "heads": of_heads,
    "batched calls": of_batched_calls,
    "written rows": of_written_rows,
    "split windows": of_split_windows,
    "whole values": of_whole_values,
    "random numbers": of_random_numbers,
    "gathered weights": of_gathered_weights,
    "groups": of_groups,
    "unused parts": of_unused_parts,
}
