# SPDX-License-Identifier: Apache-2.0
"""Reads and writes at places that are known: they send what the slice that a user could have written sends.

``python -m tests.conformance.known_places`` draws more of them.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shardwise as sw
from shardwise import P

F32 = np.float32
LINE = sw.Mesh({"x": 4})
ROWS, COLUMNS, HEADS = P("x"), P(None, "x"), P(None, None, "x")
STARTS = np.array([7, 0, 1023, 500], np.int32)


def distinct(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 8191 - 60).astype(F32).reshape(shape)


write = jax.vmap(lambda c, u, i: lax.dynamic_update_slice(c, u, (i, 0, 0)))
read_row = jax.vmap(lambda c, i: lax.dynamic_slice(c, (i, 0, 0), (1, 8, 16)))
read_two = jax.vmap(lambda c, i: lax.dynamic_slice(c, (i, 0, 0), (2, 8, 16)))
CACHE = distinct(4, 1024, 8, 16)


@pytest.mark.parametrize(
    ("function", "arguments", "given", "wanted", "sent"),
    [
        (write, (CACHE, distinct(4, 1, 8, 16), STARTS), (HEADS, HEADS, P()), HEADS, 0),
        (jax.grad(lambda c, i: (read_row(c, i) ** 2).sum()), (CACHE, STARTS), (HEADS, P()), HEADS, 0),
        (read_two, (CACHE, STARTS), (COLUMNS, P()), P(), 6144),  # an all_reduce of the windows
        (lambda x, u: x.at[0:3].set(u), (distinct(1024, 64), distinct(3, 64) * 2), (ROWS, P()), ROWS, 0),
        (lambda x, u: x.at[:, 2:5].add(u), (distinct(64, 1024), distinct(64, 3)), (COLUMNS, P()), COLUMNS, 0),
        (lambda x: x.at[1:-1].multiply(2.0), (distinct(64, 16),), (ROWS,), ROWS, 0),
        (lambda x, t: x[jnp.arange(1024), t], (distinct(1024, 64), STARTS.repeat(256) % 64), (ROWS, ROWS), ROWS, 0),
        (
            lambda c, u, p: c.at[jnp.arange(64), p].set(u),
            (distinct(64, 32, 16), distinct(64, 16) + 9, STARTS.repeat(16) % 32), (ROWS,) * 3, ROWS, 0,
        ),
        (lambda x: jax.image.resize(x, (128, 16), "nearest"), (distinct(64, 16),), (ROWS,), ROWS, 0),
    ],
    ids=[
        "cache write, heads split", "gradient of a read, heads split", "read of two rows", "window set", "window added",
        "window multiplied", "batched read", "batched write", "nearest",
    ],
)  # fmt: skip
def test_programs_of_jax(function: Any, arguments: Any, given: Any, wanted: Any, sent: float) -> None:
    jitted = sw.jit(sw.from_jax(function), mesh=LINE, in_shardings=given, out_shardings=wanted, objective="bytes")
    program = jitted.lower(*arguments).compile()
    np.testing.assert_array_equal(np.asarray(program(*arguments)), np.asarray(jax.jit(function)(*arguments)))
    assert program.collectives().total_bytes == sent


def at(ids: np.ndarray) -> Any:
    return lambda a: a[ids]


@pytest.mark.parametrize(
    ("function", "shape", "sent"),
    [
        (at(np.arange(1024) ^ 1), (1024, 64), 0),
        (at(np.arange(1024)), (1024, 64), 0),
        (at(np.arange(0, 1024, 2)), (1024, 64), 0),
        (at(np.roll(np.arange(1024), 1)), (1024, 64), 256),
        (np.diagonal, (64, 64), 0),
        (lambda a: a[np.arange(32)[:, None], np.broadcast_to(np.arange(8)[::-1], (32, 8))], (32, 8), 0),
    ],
    ids=["swapped pairs", "identity", "stride", "rotation", "diagonal", "reversed rows"],
)
def test_programs_of_numpy(function: Any, shape: Any, sent: float) -> None:
    x = distinct(*shape)
    jitted = sw.jit(lambda a: function(a), mesh=LINE, in_shardings=ROWS, out_shardings=ROWS, objective="bytes")
    program = jitted.lower(x).compile()
    np.testing.assert_array_equal(np.asarray(program(x)), function(x))
    assert program.collectives().total_bytes == sent


def test_an_array_is_read_as_it_was_when_the_function_was_traced() -> None:
    ids = np.arange(64)
    jitted = sw.jit(lambda a: a[ids], mesh=LINE, in_shardings=ROWS)
    x = distinct(64, 2)
    program = jitted.lower(x).compile()
    ids[:] = ids[::-1].copy()
    np.testing.assert_array_equal(np.asarray(program(x)), x)


def test_no_cause_says_that_a_known_place_is_unknown() -> None:
    ids = np.random.default_rng(3).permutation(64)  # a table: no slices make it
    program = (
        sw.jit(lambda a: a[ids], mesh=LINE, in_shardings=ROWS, out_shardings=ROWS).lower(distinct(64, 2)).compile()
    )
    assert "run time" not in str(program.collectives())
