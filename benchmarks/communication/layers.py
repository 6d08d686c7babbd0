# SPDX-License-Identifier: Apache-2.0
"""Layers and training steps of models, with the bytes of the best known schedule.

Letters of shapes: b batch, s sequence, m model, h hidden, n head, d width of a head, e expert, c capacity.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .programs import COLUMNS, LINE, Axes, Library, Program, X

__all__ = ["LAYERS"]

GRID = {"x": 2, "y": 4}
INT = np.int32


def relu_squares(np: Any, x: Any, w1: Any, w2: Any, y: Any) -> Any:
    return np.sum((np.maximum(x @ w1, 0) @ w2 - y) ** 2)


def mlp_gradients(library: Library, x: Any, y: Any, w1: Any, w2: Any) -> Any:
    return library.grad(lambda w1, w2: relu_squares(library.np, x, w1, w2, y), (0, 1))(w1, w2)


def mlp_update(library: Library, x: Any, y: Any, w1: Any, w2: Any) -> Any:
    d1, d2 = mlp_gradients(library, x, y, w1, w2)
    return w1 - 0.1 * d1, w2 - 0.1 * d2


def update_with_momentum(library: Library, x: Any, y: Any, w1: Any, w2: Any, m1: Any, m2: Any) -> Any:
    d1, d2 = mlp_gradients(library, x, y, w1, w2)
    m1, m2 = 0.9 * m1 + d1, 0.9 * m2 + d2
    return w1 - 0.1 * m1, w2 - 0.1 * m2, m1, m2


def used_twice(library: Library, x: Any, y: Any, w: Any) -> Any:
    return library.grad(lambda w: library.np.sum(library.np.tanh(x @ w) + library.np.sin(y @ w)), 0)(w)


def sequence_gradient(library: Library, x: Any, w: Any) -> Any:
    return library.grad(lambda w: library.np.sum(library.np.tanh(library.np.einsum("bsm,mh->bsh", x, w)) ** 2), 0)(w)


def feed_forward(np: Any, x: Any, w1: Any, w2: Any) -> Any:
    return np.einsum("bsh,hm->bsm", np.maximum(np.einsum("bsm,mh->bsh", x, w1), 0), w2)


def feed_forward_gradients(library: Library, x: Any, w1: Any, w2: Any) -> Any:
    loss = lambda x, w1, w2: library.np.sum(feed_forward(library.np, x, w1, w2) ** 2)  # noqa: E731
    return library.grad(loss, (0, 1, 2))(x, w1, w2)


def softmax(np: Any, x: Any) -> Any:
    exponentials = np.exp(x - np.max(x, -1, keepdims=True))
    return exponentials / np.sum(exponentials, -1, keepdims=True)


def attention(np: Any, q: Any, k: Any, v: Any) -> Any:
    return np.einsum("bnst,btnd->bsnd", softmax(np, np.einsum("bsnd,btnd->bnst", q, k)), v)


def attention_layer(np: Any, x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    q, k, v = (np.einsum("bsm,mnd->bsnd", x, w) for w in (wq, wk, wv))
    return np.einsum("bsnd,ndm->bsm", attention(np, q, k, v), wo)


def attention_gradients(library: Library, *arguments: Any) -> Any:
    loss = lambda *a: library.np.sum(attention_layer(library.np, *a) ** 2)  # noqa: E731
    return library.grad(loss, tuple(range(len(arguments))))(*arguments)


def block(np: Any, x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    x = x + attention_layer(np, x, wq, wk, wv, wo)
    return x + feed_forward(np, x, w1, w2)


def parallel_block(np: Any, x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    return x + attention_layer(np, x, wq, wk, wv, wo) + feed_forward(np, x, w1, w2)


def layer_norm(np: Any, x: Any) -> Any:
    return (x - np.mean(x, -1, keepdims=True)) / np.sqrt(np.var(x, -1, keepdims=True) + 1e-5)


def mixture(library: Library, x: Any, gate: Any, w1: Any, w2: Any, sides: int = 0) -> Any:
    """GShard's layer with top-2 routing and 4 slots for each group and expert.

    The two exchanges of tokens are annotated on no side, on the side where they arrive, or on both: Algorithm 2.
    """
    np = library.np
    gates = softmax(np, np.einsum("gsm,me->gse", x, gate))
    experts, slots = np.arange(gates.shape[-1]), np.arange(4)
    first = (np.argmax(gates, -1)[..., None] == experts).astype(np.float32)
    second = (np.argmax(gates * (1 - first), -1)[..., None] == experts).astype(np.float32)
    combine = 0
    for mask, place in ((first, np.cumsum(first, 1)), (second, np.cumsum(second, 1) + np.sum(first, 1, keepdims=True))):
        chosen = mask[..., None] * (place[..., None] - 1 == slots).astype(np.float32)
        combine = combine + chosen * np.sum(gates * mask, -1)[..., None, None]
    by_group, by_expert = (None, "x", None, None), ("x", None, None, None)

    def exchanged(array: Any, before: Axes, after: Axes) -> Any:
        array = library.shard(array, *before) if sides > 1 else array
        return library.shard(array, *after) if sides > 0 else array

    sent = exchanged(np.einsum("gsec,gsm->egcm", (combine > 0).astype(np.float32), x), by_group, by_expert)
    hidden = np.maximum(np.einsum("egcm,emh->egch", sent, w1), 0)
    back = exchanged(np.einsum("egch,ehm->egcm", hidden, w2), by_expert, by_group)
    return np.einsum("gsec,egcm->gsm", combine, back)


def mixture_gradients(library: Library, x: Any, gate: Any, w1: Any, w2: Any) -> Any:
    loss = lambda w1, w2: library.np.sum(mixture(library, x, gate, w1, w2, sides=1) ** 2)  # noqa: E731
    return library.grad(loss, (0, 1))(w1, w2)


def all_mixture_gradients(library: Library, *arguments: Any) -> Any:
    loss = lambda *a: library.np.sum(mixture(library, *a, sides=2) ** 2)  # noqa: E731
    return library.grad(loss, (0, 1, 2, 3))(*arguments)


def cross_entropy_gradient(library: Library, logits: Any, labels: Any) -> Any:
    np = library.np

    def loss(logits: Any) -> Any:
        picked = np.sum(logits * (labels[:, None] == np.arange(logits.shape[-1])).astype(np.float32), -1)
        return np.sum(np.log(np.sum(np.exp(logits), -1)) - picked)

    return library.grad(loss, 0)(logits)


def one_hot_rows(np: Any, table: Any, ids: Any) -> Any:
    return (ids[:, None] == np.arange(table.shape[0])).astype(np.float32) @ table


def layer(
    name: str,
    function: Any,
    bound: int,
    *arguments: Any,
    out: Any,
    mesh: dict[str, int] = LINE,
    plain: bool = True,
) -> Program:
    """A program whose arguments are pairs (shape, axes); ``plain`` functions take NumPy's functions only."""
    called = (lambda library, *arrays: function(library.np, *arrays)) if plain else function
    return Program(name, called, tuple(a[0] for a in arguments), tuple(a[1] for a in arguments), out, bound, mesh)


def training(name: str, function: Any, bound: int, *arguments: Any, out: Any, mesh: dict[str, int] = LINE) -> Program:
    return layer(name, function, bound, *arguments, out=out, mesh=mesh, plain=False)


REPLICATED: Axes = ()
BATCH = ((256, 32), X)
W1, W2 = (32, 64), (64, 32)
TOKENS = (2, 16, 32)
MEGATRON = (((32, 128), COLUMNS), ((128, 32), X))
HEADS = (((32, 8, 4), COLUMNS),) * 3 + (((8, 4, 32), X),)
EXPERTS = (((8, 16, 16), X), ((16, 8), REPLICATED), ((8, 16, 32), X), ((8, 32, 16), X))
WIDE = (((16, 8, 32), ("x", None, "y")), ((32, 64), ("x", "y")), ((64, 32), ("y", "x")))
SEQUENCE = ((1, 64, 8, 8), COLUMNS)
TWO_AXES = ((1, 64, 8, 8), (None, "y", "x"))
TABLE, IDS = ((512, 32), X), ((64,), INT)
CUBE = {"x": 2, "y": 2, "z": 2}

LAYERS = [
    training("DP gradients", mlp_gradients, 28672, BATCH, BATCH, (W1, ()), (W2, ()), out=[(), ()]),
    training("a weight used twice", used_twice, 14336, BATCH, BATCH, (W1, ()), out=()),
    training(
        "ZeRO-1 update",
        update_with_momentum,
        28672,
        BATCH,
        BATCH,
        *((w, ()) for w in (W1, W2)),
        *((w, X) for w in (W1, W2)),
        out=[(), (), X, X],
    ),
    training("ZeRO-3 update, FSDP", mlp_update, 28672, BATCH, BATCH, (W1, X), (W2, X), out=[X, X]),
    training("DP x SP gradient", sequence_gradient, 14336, ((8, 32, 32), ("x", "y")), (W1, ()), out=(), mesh=GRID),
    layer("Megatron MLP", feed_forward, 7168, (TOKENS, ()), *MEGATRON, out=()),
    layer("Megatron MLP, sequence parallel", feed_forward, 7168, (TOKENS, COLUMNS), *MEGATRON, out=COLUMNS),
    training("Megatron MLP gradients", feed_forward_gradients, 14336, (TOKENS, ()), *MEGATRON, out=[(), COLUMNS, X]),
    layer("Megatron attention", attention_layer, 7168, (TOKENS, ()), *HEADS, out=()),
    training(
        "Megatron attention gradients",
        attention_gradients,
        14336,
        (TOKENS, ()),
        *HEADS,
        out=[(), COLUMNS, COLUMNS, COLUMNS, X],
    ),
    training("2-D FFN gradients", feed_forward_gradients, 28672, *WIDE, out=[a for _, a in WIDE], mesh=GRID),
    layer("parallel block", parallel_block, 7168, (TOKENS, ()), *HEADS, *MEGATRON, out=()),
    layer("block, sequence parallel", block, 14336, (TOKENS, COLUMNS), *HEADS, *MEGATRON, out=COLUMNS),
    layer("attention, heads sharded", attention, 0, *[((1, 64, 8, 8), (None, None, "x"))] * 3, out=(None, None, "x")),
    layer("attention, sequence sharded", attention, 7168, *[SEQUENCE] * 3, out=COLUMNS),
    layer("attention, sequence and heads", attention, 6144, *[TWO_AXES] * 3, out=(None, "y", "x"), mesh=GRID),
    training("MoE, inputs and experts annotated", mixture, 3584, *EXPERTS, out=X),
    training("MoE, arriving side annotated", lambda *a: mixture(*a, sides=1), 3584, *EXPERTS, out=X),
    # Two exchanges of tokens, and one of the cotangent, from which the masks' side needs nothing.
    training("MoE gradients, arriving side annotated", mixture_gradients, 5376, *EXPERTS, out=[X, X]),
    training("MoE, Algorithm 2", lambda *a: mixture(*a, sides=2), 3584, *EXPERTS, out=X),
    # Four exchanges, and an all-reduce of the (16, 8) gate.
    training("MoE gradients, Algorithm 2", all_mixture_gradients, 8064, *EXPERTS, out=[X, (), X, X]),
    layer("softmax over the sharded dim", softmax, 224, ((16, 64), COLUMNS), out=COLUMNS),
    layer("layer norm over the sharded dim", layer_norm, 224, ((16, 64), COLUMNS), out=COLUMNS),
    training(
        "cross-entropy over the vocabulary",
        cross_entropy_gradient,
        448,
        ((64, 512), COLUMNS),
        (IDS, ()),
        out=COLUMNS,
    ),
    layer("embedding, ids replicated", lambda np, t, i: np.take(t, i, 0), 14336, TABLE, (IDS, ()), out=()),
    layer("embedding, ids sharded", lambda np, t, i: np.take(t, i, 0), 7392, TABLE, (IDS, X), out=X),
    layer("one-hot embedding", one_hot_rows, 7168, TABLE, (IDS, ()), out=X),
    layer("scatter-add of few rows", lambda np, t, i, u: t.at[i].add(u), 7392, TABLE, (IDS, X), ((64, 32), X), out=X),
    layer(
        "scatter-add of many rows",
        lambda np, t, i, u: t.at[i].add(u),
        7168,
        ((64, 32), X),
        (((512,), INT), X),
        ((512, 32), X),
        out=X,
    ),
    layer(
        "take_along_axis",
        lambda np, x, i: np.take_along_axis(x, i, 1),
        392,
        ((8, 64), COLUMNS),
        (((8, 24), INT), COLUMNS),
        out=COLUMNS,
    ),
    layer(
        "dynamic_update_slice in one shard",
        lambda np, x, rows: x.at[9:11].set(rows),
        0,
        ((64, 16), X),
        ((2, 16), ()),
        out=X,
    ),
    layer("contraction sharded on one side", lambda np, a, b: a @ b, 1792, ((64, 64), COLUMNS), ((64, 64), ()), out=X),
    layer(
        "batch against contraction",
        lambda np, a, b: a @ b,
        896,
        ((8, 16, 16), X),
        ((8, 16, 16), COLUMNS),
        out=X,
    ),
    layer(
        "matmul of 64, 3-D layout",
        lambda np, a, b: a @ b,
        6144,
        ((64, 64), ("x", ("z", "y"))),
        ((64, 64), (("z", "x"), "y")),
        out=(("x", "z"), "y"),
        mesh=CUBE,
    ),
    layer(
        "partial sums to two dims",
        lambda np, a, b: a @ b,
        896,
        ((16, 64), (None, ("x", "y"))),
        ((64, 16), (("x", "y"),)),
        out=("x", "y"),
        mesh=GRID,
    ),
    layer(
        "partial sums, replicated",
        lambda np, a, b: a @ b,
        1792,
        ((16, 64), (None, ("x", "y"))),
        ((64, 16), (("x", "y"),)),
        out=(),
        mesh=GRID,
    ),
    layer(
        "bfloat16 weight gathered",
        lambda np, x, w: x @ w.astype(ml_dtypes.bfloat16),
        3584,
        (((256, 32), ml_dtypes.bfloat16), X),
        (W1, X),
        out=X,
    ),
    layer("FFT, batch sharded", lambda np, x: np.fft.fft(x), 0, (((64, 32), np.complex64), X), out=X),
]
