# SPDX-License-Identifier: Apache-2.0
"""`sw.nn.dot_product_attention` against JAX's."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.nn.against_jax import JAX, MESH, check, check_gradient, near, of_jax, traced

RNG = np.random.default_rng(3)
B, T, S, N, H = 2, 5, 4, 6, 3
MASK = RNG.random((B, N, T, S)) < 0.7
MASK[0, 0, 0] = False  # a query that sees no key
BIAS = RNG.normal(size=(1, 1, T, S)).astype(np.float32)
LENGTHS = np.array([3, 2], np.int32)
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"scale": 0.3},
    "causal": {"is_causal": True},
    "mask": {"mask": MASK},
    "mask of all heads": {"mask": MASK[:1, :1]},
    "bias": {"bias": BIAS},
    "bias of each head": {"bias": RNG.normal(size=(B, N, T, S)).astype(np.float32), "is_causal": True},
    "lengths": {"query_seq_lengths": LENGTHS, "key_value_seq_lengths": LENGTHS[::-1].copy()},
    "window": {"local_window_size": (1, 2)},
    "all": {"mask": MASK, "bias": BIAS, "is_causal": True, "key_value_seq_lengths": LENGTHS, "local_window_size": 2},
}
ours, theirs = sw.nn.dot_product_attention, JAX.nn.dot_product_attention


def inputs(groups: int, dtype: Any = np.float32) -> list[np.ndarray]:
    shapes = [(B, T, N, H), (B, S, groups, H), (B, S, groups, H)]
    rng = np.random.default_rng(groups)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


@cache
def results(groups: int) -> dict[str, np.ndarray]:
    """JAX's results with all options: one program of XLA is compiled sooner than many."""
    found = of_jax(lambda *given: [theirs(*given, **options) for options in OPTIONS.values()], inputs(groups))
    return dict(zip(OPTIONS, found))


def functions(options: dict[str, Any]) -> list[Any]:
    return [lambda q, k, v, f=f: f(q, k, v, **options) for f in (ours, theirs)]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("groups", [6, 2, 1])
def test_results_are_those_of_jax(name: str, groups: int) -> None:
    options, given = OPTIONS[name], inputs(groups)
    expected = [results(groups)[name]]
    near(ours(*given, **options), expected, rtol=2e-5)
    for specs in ([P("y")] * 3, [P(None, None, "y")] * 3, [P(None, "x"), P(), P()], [P(), P(None, "x"), P(None, "x")]):
        if groups == 1 and specs[0] == P(None, None, "y"):
            specs = [specs[0], P(), P()]
        near(traced(partial(ours, **options), specs)(*given), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("groups", [6, 2])
def test_arrays_and_gradients(groups: int) -> None:
    check(*functions({}), *inputs(groups), atol=2e-6)
    check_gradient(*functions(OPTIONS["all"]), *inputs(groups), rtol=1e-4, atol=1e-5)


def test_gradient_of_a_bias() -> None:
    given = inputs(2)
    check_gradient(*(lambda b, f=f: f(*given, bias=b) for f in (ours, theirs)), BIAS, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [sw.bfloat16, np.float16], ids=lambda d: np.dtype(d).name)
def test_logits_of_16_bit_floats_are_of_32(dtype: Any) -> None:
    given = inputs(2, dtype)
    wide = of_jax(partial(theirs, is_causal=True), [x.astype(np.float32) for x in given])  # XLA has no such float16
    near(ours(*given, is_causal=True), [x.astype(dtype) for x in wide], rtol=2e-2, atol=1e-2)


def test_float64_stays_precise() -> None:
    q, k, v = inputs(6, np.float64)
    logits = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(H)
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(ours(q, k, v), np.einsum("bhqk,bkhd->bqhd", shares, v), rtol=1e-12)


def test_one_sequence_without_a_dim_for_it() -> None:
    given = [x[0] for x in inputs(2)]
    near(ours(*given), of_jax(theirs, given), rtol=2e-5)


def test_split_sequences_and_heads_need_no_communication() -> None:
    for spec in (P("y"), P(None, None, "y")):
        program = sw.jit(partial(ours, is_causal=True), mesh=MESH, in_shardings=spec).lower(*inputs(2)).compile()
        text = program.as_text()
        assert not [
            name for name in ("all_reduce", "all_gather", "all_to_all", "permute", "exchange") if name in text
        ], text


def test_split_keys_of_one_query_need_three_all_reduces() -> None:
    given = [np.ones((2, length, 4, 16), np.float32) for length in (1, 512, 512)]
    specs = (P(), P(None, "x"), P(None, "x"))
    text = sw.jit(ours, mesh=sw.Mesh({"x": 4}), in_shardings=specs).lower(*given).compile().as_text()
    assert text.count('"shardwise.all_reduce"') == 3
    assert "all_gather" not in text
    assert "exchange" not in text


def test_what_is_refused() -> None:
    q, k, v = inputs(6)
    with pytest.raises(sw.ShapeError, match=r"dot_product_attention: query must be"):
        ours(q, k[:, :, :, :2], v)
    with pytest.raises(sw.ShapeError, match=r"the number of query heads must be a multiple .*got 6 and 4"):
        ours(q, k[:, :, :4], v[:, :, :4])
    with pytest.raises(sw.DTypeError, match=r"query, key and value must have one floating dtype"):
        ours(q, k, v.astype(np.float64))
    with pytest.raises(sw.DTypeError, match=r"mask must be of bools"):
        ours(q, k, v, mask=BIAS)
    with pytest.raises(sw.ShapeError, match=r"bias must broadcast to"):
        ours(q, k, v, bias=BIAS[..., :2])
    with pytest.raises(sw.ShapeError, match=r"query_seq_lengths must have shape \(2,\)"):
        ours(q, k, v, query_seq_lengths=LENGTHS[:1])
