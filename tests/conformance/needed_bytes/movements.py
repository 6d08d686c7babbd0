# SPDX-License-Identifier: Apache-2.0
"""Edge rows, batches and free results that move what they need, with the bytes that they may send."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

from shardwise import P

from ..known_places.programs import F32, Program, distinct, draw_split
from .programs import along, small

__all__ = ["MOVEMENTS"]


# ---- edge rows -------------------------------------------------------------------------------------------------------


def of_edges(rng: random.Random) -> Program:
    """Boundary conditions: a row of the edge is read by its owner, or by one neighbor."""
    split, size, columns = draw_split(rng), rng.choice([24, 25, 48]), rng.choice([1, 5])
    kinds: list[tuple[Callable[[Any], Any], int]] = [
        (lambda u: np.concatenate([u[1:], u[-1:]]) - u, 1),
        (lambda u: np.concatenate([u[:1], u[:-1]]) + np.concatenate([u[1:], u[-1:]]), 2),
        (lambda u: np.concatenate([u[1:], np.zeros_like(u[:1])]) - u, 1),
        (lambda u: np.concatenate([-u[1:2], u[1:]]), 1),
    ]
    function, rows = rng.choice(kinds)
    x, spec = distinct(size, columns), P(split.axes)
    return Program(f"edge {size}", function, (x,), split.mesh, (spec,), spec, rows * columns * 4, function(x))


# ---- chains of movements ---------------------------------------------------------------------------------------------


def of_chains(rng: random.Random) -> Program:
    """Two to four movements, one of them a join of two parts: rows go where the last result has them."""
    split, size, columns = draw_split(rng), rng.choice([24, 25, 48]), rng.choice([1, 5])
    k = rng.choice([1, 2, 3])
    cuts: list[Callable[[Any], Any]] = [lambda x: x[k:], lambda x: x[:-k], lambda x: np.pad(x, ((k, 1), (0, 0)))]
    joins: list[Callable[[Any], Any]] = [
        lambda x: np.concatenate([x, x[-k:]]),
        lambda x: np.concatenate([x[:k], x]),
        lambda x: np.roll(x, k, 0),
    ]
    steps = [rng.choice(cuts) for _ in range(rng.randrange(1, 4))]
    steps.insert(rng.randrange(len(steps) + 1), rng.choice(joins))

    def moved(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    x = distinct(size, columns)
    sources = (moved(np.arange(1, size + 1)[:, None])[:, 0] - 1).tolist()  # -1: padding
    missing = max(
        sum(sources[row] >= 0 and sources[row] not in split.tile(size, d) for row in split.tile(len(sources), d))
        for d in range(split.shards)
    )
    spec = P(split.axes)
    return Program(
        f"chain {sources}", lambda x: moved(x) * F32(0.5), (x,), split.mesh, (spec,), spec, missing * columns * 4,
        moved(x) * F32(0.5),
    )  # fmt: skip


def of_differences(rng: random.Random) -> Program:
    """Differences with rows before or after the first and the last one: a row of each neighbor."""
    split, size, columns = draw_split(rng), rng.choice([24, 25, 48]), rng.choice([1, 5])
    kinds: list[Callable[[Any], Any]] = [
        lambda u: np.diff(u, axis=0, append=u[-1:]),
        lambda u: np.diff(u, axis=0, prepend=u[:1]),
        lambda u: np.diff(u, axis=0, append=np.zeros_like(u[:1])),
    ]
    function, x, spec = rng.choice(kinds), distinct(size, columns), P(split.axes)
    return Program(f"diff {size}", function, (x,), split.mesh, (spec,), spec, columns * 4, function(x))


# ---- convolutions in groups ------------------------------------------------------------------------------------------


def of_grouped_convolutions(rng: random.Random) -> Program:
    """Groups of features along a split dim: each device has whole groups, and their kernels."""
    split = draw_split(rng)
    per_device, inputs, outputs = rng.choice([1, 2]), rng.choice([1, 2]), rng.choice([1, 3])
    groups = split.shards * per_device
    x, w = small(2, groups * inputs, 7), small(groups * outputs, inputs, 3)

    def function(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=groups)

    by_features = P(None, split.axes)
    if rng.random() < 0.5:
        return Program(
            f"{groups} groups", function, (x, w), split.mesh, (by_features, P(split.axes)), by_features, 0,
            np.asarray(function(x, w)), True, tolerance=1e-4,
        )  # fmt: skip
    gradient = jax.grad(lambda x, w: (function(x, w) ** 2).sum(), 1)
    return Program(
        f"gradient of {groups} groups", gradient, (x, w), split.mesh, (by_features, P(split.axes)), P(split.axes), 0,
        np.asarray(gradient(x, w)), True, tolerance=1e-3,
    )  # fmt: skip


def of_batched_convolutions(rng: random.Random) -> Program:
    """A convolution for each example, with the batch split: nothing moves."""
    split = draw_split(rng)
    x, w = small(split.shards * rng.choice([1, 2]), 2, 9), small(4, 2, 3)

    def convolved(w: Any, x: Any) -> Any:
        return lax.conv_general_dilated(x[None], w, (1,), "VALID")

    functions: list[Callable[..., Any]] = [
        jax.vmap(convolved, (None, 0)),
        jax.vmap(jax.grad(lambda w, x: (convolved(w, x) ** 2).sum()), (None, 0)),
        jax.vmap(jax.grad(lambda w, x: (convolved(w, x) ** 2).sum(), 1), (None, 0)),
    ]
    function, spec = rng.choice(functions), P(split.axes)
    return Program(
        f"batched convolution {len(x)}", function, (w, x), split.mesh, (P(), spec), spec, 0,
        np.asarray(function(w, x)), True, tolerance=1e-3,
    )  # fmt: skip


# ---- results that nothing places -------------------------------------------------------------------------------------


def of_free_results(rng: random.Random) -> Program:
    """Results without shardings are where their operands are, if no sum has to be complete."""
    split, rows, columns = draw_split(rng), rng.choice([24, 48]), rng.choice([24, 48])
    lengths = (np.arange(rows) * 5 % columns).astype(np.int32)
    a, c = distinct(rows, columns), distinct(rows, columns) * 2
    kind = rng.randrange(3)

    def function(n: Any, a: Any, c: Any) -> Any:
        mask = np.arange(columns)[None] < n[:, None]
        if kind == 0:
            return np.where(mask, a, 0), np.where(mask, c, 0)
        scale = n[:, None].astype(F32) * F32(0.5)
        return (a * scale, c * scale) if kind == 1 else (a + mask, np.maximum(c, mask))

    arguments = (lengths, a, c)
    given = (P(), along(split, 0), along(split, 1))
    return Program(f"free {kind}", function, arguments, split.mesh, given, None, 0, function(*arguments))


MOVEMENTS: dict[str, Callable[[random.Random], Program]] = {
    "edges": of_edges,
    "chains": of_chains,
    "differences": of_differences,
    "grouped convolutions": of_grouped_convolutions,
    "batched convolutions": of_batched_convolutions,
    "free results": of_free_results,
}
