# SPDX-License-Identifier: Apache-2.0
"""``x[np.arange(n), ids]``: dims that are indexed by their own places keep their sharding, and nothing is gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"data": 4, "model": 2})
RNG = np.random.default_rng(3)
LOGITS = RNG.normal(size=(30, 5))
LABELS = RNG.integers(0, 5, 30)
DEEP = RNG.normal(size=(6, 7, 5, 3))
PLACES = RNG.integers(0, 5, (6, 7))
ROWS = P("data")

READS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda z, i: z[np.arange(6), i[:, 0] % 5],
    "rows and columns": lambda z, i: z[np.arange(6)[:, None], np.arange(7), i],
    "rows of pairs": lambda z, i: z[np.arange(6)[:, None], i],
    "columns of pairs": lambda z, i: z[np.arange(6), np.arange(7)[:, None], i.T],
    "a slice between": lambda z, i: z[np.arange(6), :, i[:, 0]],
    "None and a slice": lambda z, i: z[np.arange(6)[:, None], np.arange(7), i, None, 1:],
    "a number": lambda z, i: z[np.arange(6), 2, i[:, 0]],
    "twice along one dim": lambda z, i: z[np.arange(6), np.arange(6), i[:, 0]],
}


@pytest.mark.parametrize("name", READS)
def test_reads_stay_where_they_are(name: str) -> None:
    check = sw.testing.assert_matches_unpartitioned
    program = check(READS[name], DEEP, PLACES, mesh=MESH, in_shardings=(ROWS, ROWS))
    assert program.collectives().by_kind() == {}


@pytest.mark.parametrize(
    "read",
    [
        lambda z, i: z[np.arange(6), 2, i[0, :1]],  # one number for all rows
        lambda z, i: z[np.arange(4), i[:4, 0]],  # some rows
        lambda z, i: z[np.arange(6)[::-1], i[:, 0]],
        lambda z, i: z[np.arange(1, 6), i[1:, 0]],
        lambda z, i: z[i[:, 0], np.arange(6)],  # counts the other way round: dim 1 has 7 elements
        lambda z, i: z[np.arange(6), np.arange(6)],
        lambda z, i: z[np.arange(6) - 6, i[:, 0]],
    ],
)
def test_other_known_indices_are_numpys(read: Callable[[Any, Any], Any]) -> None:
    sw.testing.assert_matches_unpartitioned(read, DEEP, PLACES, mesh=MESH, in_shardings=(ROWS, ROWS))


def cross_entropy(logits: Any, labels: Any) -> Any:
    return -np.mean(logits[np.arange(len(labels)), labels])


@pytest.mark.parametrize("labels", [ROWS, None])
def test_a_loss_sends_only_its_sum(labels: Any) -> None:
    shardings = (ROWS, labels)
    check = sw.testing.assert_matches_unpartitioned
    program = check(cross_entropy, LOGITS, LABELS, mesh=MESH, in_shardings=shardings)
    sw.testing.assert_collectives(program, all_reduce=1, all_gather=0, bytes_max=24)  # one number, three times
    program = check(sw.grad(cross_entropy), LOGITS, LABELS, mesh=MESH, in_shardings=shardings)
    assert program.collectives().by_kind() == {}


def test_examples_of_vmap() -> None:
    def pick(z: Any, i: Any) -> Any:
        return z[np.arange(7), i]

    program = sw.testing.assert_matches_unpartitioned(sw.vmap(pick), DEEP, PLACES, mesh=MESH, in_shardings=(ROWS, ROWS))
    assert program.collectives().by_kind() == {}


@pytest.mark.parametrize("how", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"])
def test_updates_stay_where_they_are(how: str) -> None:
    def update(x: Any, i: Any, values: Any) -> Any:
        return getattr(sw.at(x, (np.arange(30), i)), how)(values)

    def loss(x: Any, i: Any, values: Any) -> Any:
        return np.sum(update(x, i, values) ** 2)

    arguments = (np.abs(LOGITS) + 1, LABELS, np.arange(30.0) / 8 + 1.1)
    check = sw.testing.assert_matches_unpartitioned
    program = check(update, *arguments, mesh=MESH, in_shardings=(ROWS, ROWS, ROWS))
    assert program.collectives().by_kind() == {}
    if how in ("set", "add", "subtract"):
        program = check(sw.grad(loss, argnums=(0, 2)), *arguments, mesh=MESH, in_shardings=(ROWS, ROWS, ROWS))
        assert program.collectives().by_kind() == {}


@pytest.mark.parametrize("mode", ["drop", "clip", "fill"])
def test_modes_outside(mode: str) -> None:
    def update(z: Any, i: Any) -> Any:
        return sw.at(z, (np.arange(6), 2, i[:, 0])).add(1.0, mode=mode)

    def get(z: Any, i: Any) -> Any:
        return sw.at(z, (np.arange(6), 2, i[:, 0])).get(mode=mode, fill_value=-1.0)

    for function in (update, get) if mode != "drop" else (update,):
        sw.testing.assert_matches_unpartitioned(function, DEEP, PLACES + 2, mesh=MESH, in_shardings=(ROWS, ROWS))
