# SPDX-License-Identifier: Apache-2.0
"""A value that one op made of a narrower one travels in the narrower dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 8})


def distinct(*shape: int) -> np.ndarray:
    return (np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape) - 7).astype(np.float32)


def weight_in_bfloat16(x: Any, w: Any) -> Any:
    return x @ w.astype(ml_dtypes.bfloat16).astype(np.float32)


def weight_mask(x: Any, w: Any) -> Any:
    return x @ (w > 3).astype(np.float32)


def weight_in_a_loop(x: Any, w: Any) -> Any:
    narrow = w.astype(ml_dtypes.bfloat16).astype(np.float32)
    return sw.fori_loop(0, 5, lambda i, y: np.tanh(y @ narrow), x)


def converted_in_a_loop(x: Any, w: Any) -> Any:
    narrow = w.astype(ml_dtypes.bfloat16)
    return sw.fori_loop(0, 5, lambda i, y: np.tanh(y @ narrow.astype(np.float32)), x)


def converted_in_a_branch(x: Any, w: Any) -> Any:
    narrow = w.astype(ml_dtypes.bfloat16).astype(np.float32)
    return sw.cond(x.sum() > 0, lambda: x @ narrow, lambda: x - x @ narrow) + x @ narrow


PROGRAMS: list[tuple[Callable[..., Any], tuple[int, ...], str, int]] = [
    (weight_in_bfloat16, (24, 24), "all_gather", 24 * 21 * 2),
    (weight_mask, (24, 24), "all_gather", 24 * 21),
    (weight_in_a_loop, (24, 24), "all_gather", 24 * 21 * 2),
    (converted_in_a_loop, (24, 24), "all_gather", 24 * 21 * 2),
]


@pytest.mark.parametrize(("function", "shape", "kind", "bytes_"), PROGRAMS)
def test_bytes_are_those_of_the_narrower_value(
    function: Callable[..., Any], shape: tuple[int, ...], kind: str, bytes_: int
) -> None:
    x, w = distinct(*shape), distinct(*shape)[::-1].copy()
    program = sw.jit(function, mesh=MESH, in_shardings=(P("x"), P("x"))).lower(x, w).compile()
    rows = program.collectives().rows
    assert [(row.kind, row.total_bytes) for row in rows] == [(kind, bytes_)]


@pytest.mark.parametrize("shape", [(24, 24), (17, 17), (3, 3)])
@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("function", sorted({row[0] for row in PROGRAMS} | {converted_in_a_branch}, key=str))
def test_values_are_those_of_the_whole_program(
    function: Callable[..., Any], shape: tuple[int, ...], faithful: bool
) -> None:
    x, w = distinct(*shape) / 64, distinct(*shape)[::-1].copy()
    program = sw.jit(function, mesh=MESH, in_shardings=(P("x"), P("x"))).lower(x, w).compile()
    result = program.run(x, w, faithful=faithful, poison=True)
    expected = sw.jit(function, mesh=sw.Mesh({"x": 1}))(x, w)
    np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=1e-5, atol=1e-5)


def test_a_wider_operand_is_not_moved() -> None:
    """The op computes where the wide operand is, and its narrow result travels."""
    w = distinct(24, 24)
    program = sw.jit(lambda w: sw.replicate(w.astype(np.float16)), mesh=MESH, in_shardings=P("x")).lower(w).compile()
    assert [(row.kind, row.type) for row in program.collectives().rows] == [("all_gather", "float16[3,24]")]
