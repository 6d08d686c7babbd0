# SPDX-License-Identifier: Apache-2.0
"""What a program has whole is not sent: closed-over arrays that nobody places, and parts of copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, ShapeDtypeStruct

MESH = sw.Mesh({"x": 8})
SPLITS = (P(None, "x"), P(None, None, "x"), P("x"), P(None, None, None, "x"))


def attention(mask: Any) -> Any:
    def attend(q: Any, k: Any, v: Any, mask: Any = mask) -> Any:
        scores = np.einsum("bqhk,bshk->bhqs", q, k)
        scores = np.where(mask, scores, np.float32(-1e9))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("bhqs,bshk->bqhk", weights / weights.sum(-1, keepdims=True), v)

    return attend


def causal(length: int) -> np.ndarray:
    return np.tril(np.ones((length, length), bool))


@pytest.mark.parametrize("spec", SPLITS)
def test_a_closed_over_mask_is_not_sent(spec: Any) -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 4, 24, 8, 16), np.float32)
    function = sw.jit(attention(causal(24)), mesh=MESH, in_shardings=(spec, spec, spec), out_shardings=spec)
    program = function.lower(q, k, v).compile()
    assert {row.dtype for row in program.collectives()} <= {"float32"}
    np.testing.assert_allclose(np.asarray(function(q, k, v)), attention(causal(24))(q, k, v), rtol=2e-5, atol=2e-5)


def test_its_program_is_found_again_by_its_choices() -> None:
    x = ShapeDtypeStruct((4, 4096, 32, 128), np.float32)
    spec = SPLITS[0]
    shardings = {"in_shardings": (spec, spec, spec), "out_shardings": spec}
    first = sw.jit(attention(causal(4096)), mesh=MESH, **shardings).lower(x, x, x).compile()
    again = sw.jit(attention(causal(4096)), mesh=MESH, choices=first.choices, **shardings).lower(x, x, x).compile()
    assert again.as_text() == first.as_text()
    assert first.collectives().total_bytes == 4 * 28 * 2**20  # the exchanges of q, k, v and the result


def test_a_limit_of_memory_keeps_it_split() -> None:
    x = ShapeDtypeStruct((4, 4096, 32, 128), np.float32)
    spec = SPLITS[0]
    shardings = {"in_shardings": (spec, spec, spec), "out_shardings": spec}
    program = sw.jit(attention(causal(4096)), mesh=MESH, memory_limit="80GB", **shardings).lower(x, x, x).compile()
    assert "bool" in {row.dtype for row in program.collectives()}


def test_what_all_users_take_split_stays_split() -> None:
    weights = np.arange(4096 * 32, dtype=np.float32).reshape(4096, 32)
    mask = np.arange(16 * 16).reshape(16, 16) % 3 == 0

    def f(x: Any) -> Any:
        y = x @ weights  # split along the contraction: few rows are added up for less than the columns take to gather
        return y, np.where(mask, x @ x.T, 0)

    x = ShapeDtypeStruct((16, 4096), np.float32)
    program = sw.jit(f, mesh=MESH, in_shardings=P(None, "x")).lower(x).compile()
    local = program.as_text().split("{", 2)[2].splitlines()
    assert "tensor<512x32xf32>" in "".join(local[:3])


@pytest.mark.parametrize("constrain", [sw.shard, sw.with_sharding_constraint])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_annotation_places_it(constrain: Any, dtype: str) -> None:
    """A gather where the weights are used is what the annotation asks for, also behind a convert."""
    weights = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    x = ShapeDtypeStruct((1024, 64), sw.bfloat16 if dtype == "bfloat16" else np.float32)

    def product(x: Any) -> Any:
        return x @ constrain(weights if dtype == "float32" else sw.numpy.asarray(weights).astype(dtype), P("x"))

    program = sw.jit(product, mesh=MESH, in_shardings=P("x")).lower(x).compile()
    assert [(row.kind, row.type) for row in program.collectives()] == [("all_gather", f"{dtype}[8,32]")]


def test_an_array_that_is_split_keeps_its_split() -> None:
    weights = sw.device_put(np.arange(64 * 32, dtype=np.float32).reshape(64, 32), sw.NamedSharding(MESH, P("x")))
    program = (
        sw.jit(lambda x: x @ weights, mesh=MESH, in_shardings=P("x"))
        .lower(ShapeDtypeStruct((1024, 64), np.float32))
        .compile()
    )
    assert [row.kind for row in program.collectives()] == ["all_gather"]


@pytest.mark.parametrize("spec", SPLITS[:2])
def test_a_device_makes_its_part_of_copies(spec: Any) -> None:
    """A mask for each head is made for the heads of the device, not for all of them and then cut."""
    x, mask = ShapeDtypeStruct((4, 4096, 32, 128), np.float32), ShapeDtypeStruct((4096, 4096), bool)
    program = (
        sw.jit(attention(None), mesh=MESH, in_shardings=(spec, spec, spec, P()), out_shardings=spec)
        .lower(x, x, x, mask)
        .compile()
    )
    text = program.as_text()
    assert "4x32x4096x4096" not in text
    assert "dynamic_slice" not in text
    assert program.estimate().seconds < 1.05 * program.choice_price().seconds


@pytest.mark.parametrize("rows", [16, 17])
@pytest.mark.parametrize("shape", [(12,), (1, 12), (16, 1), (1, 1)])
@pytest.mark.parametrize("mesh", [MESH, sw.Mesh({"x": 4, "y": 2})])
def test_parts_of_copies_are_equal(mesh: sw.Mesh, shape: tuple[int, ...], rows: int) -> None:
    if shape[0] == 16:
        shape = (rows, 1)
    small = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1
    x = np.arange(rows * 12, dtype=np.float32).reshape(rows, 12)
    last = list(mesh.shape)[-1]

    def f(small: Any, x: Any) -> Any:
        copies = np.broadcast_to(np.exp(small), x.shape)
        return sw.shard(copies, P("x")) + x, sw.shard(copies, P(None, last)) * x, copies.sum()

    expected = (np.exp(small) + x, np.exp(small) * x, np.broadcast_to(np.exp(small), x.shape).sum())
    found = sw.jit(f, mesh=mesh)(small, x)
    np.testing.assert_allclose(np.asarray(found[0]), expected[0], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(found[1]), expected[1], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(found[2]), expected[2], rtol=1e-5)
