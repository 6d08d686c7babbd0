# SPDX-License-Identifier: Apache-2.0
"""Training steps of one layer: forward and backward pass, and an update by gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P


@dataclass(frozen=True)
class Sizes:
    """b sequences of s tokens, m wide; h hidden features, n heads, e experts."""

    b: int
    s: int
    m: int
    h: int
    n: int = 8
    e: int = 8

    def __str__(self) -> str:
        return f"{self.m} wide"


SMALL = Sizes(16, 128, 128, 512)
LARGE = Sizes(8, 2048, 4096, 16384, 32)


def normed(x: Any, scale: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + np.float32(1e-5)) * scale


def attended(weights: Any, name: str, x: Any, source: Any, is_causal: bool) -> Any:
    q = np.einsum("bsm,mnd->bsnd", x, weights[name + "q"])
    k, v = (np.einsum("bsm,mnd->bsnd", source, weights[name + one]) for one in "kv")
    scores = np.einsum("bqnd,bknd->bnqk", q, k) * np.float32(q.shape[-1] ** -0.5)
    if is_causal:
        positions = np.arange(scores.shape[-1], like=scores)
        scores = np.where(positions[:, None] >= positions, scores, np.float32(-1e30))
    mixed = np.einsum("bnqk,bknd->bqnd", sw.nn.softmax(scores), v)
    return np.einsum("bqnd,ndm->bqm", mixed, weights[name + "o"])


def gpt(weights: Any, x: Any, shard: Callable[[Any], Any]) -> Any:
    y = normed(x, weights["g1"])
    x = shard(x + attended(weights, "s", y, y, True))
    y = normed(x, weights["g2"])
    return shard(x + sw.nn.gelu(y @ weights["up"]) @ weights["down"])


def llama(weights: Any, x: Any, shard: Callable[[Any], Any]) -> Any:
    """Rotated queries and keys, and a gate in the hidden features."""
    y = normed(x, weights["g1"])
    half = y.shape[-1] // 2
    angles = np.arange(x.shape[1], like=x)[:, None] * np.exp(-np.arange(half, like=x) / np.float32(half))
    turned = np.concatenate([y[..., half:] * np.cos(angles), y[..., :half] * np.sin(angles)], -1)
    x = shard(x + attended(weights, "s", turned, turned, True))
    y = normed(x, weights["g2"])
    return shard(x + (sw.nn.silu(y @ weights["gate"]) * (y @ weights["up"])) @ weights["down"])


def experts(weights: Any, x: Any, shard: Callable[[Any], Any]) -> Any:
    """GShard's layer with top-1 routing; only arguments and results are annotated."""
    gates = sw.nn.softmax(np.einsum("bsm,me->bse", x, weights["gate"]))
    count, slots = gates.shape[-1], np.arange(x.shape[1] // gates.shape[-1])
    chosen = (np.argmax(gates, -1)[..., None] == np.arange(count)).astype(np.float32)
    places = (np.cumsum(chosen, 1)[..., None] - 1 == slots).astype(np.float32)
    combine = (gates * chosen)[..., None] * places
    sent = np.einsum("bsec,bsm->ebcm", (combine > 0).astype(np.float32), x)
    hidden = np.maximum(np.einsum("ebcm,emh->ebch", sent, weights["up"]), 0)
    back = np.einsum("ebch,ehm->ebcm", hidden, weights["down"])
    return shard(x + np.einsum("bsec,ebcm->bsm", combine, back))


def decoder(weights: Any, x: Any, shard: Callable[[Any], Any]) -> Any:
    """An encoder's layer on the tokens in reverse, and a decoder's layer that reads its result."""
    source = x[:, ::-1]
    source = shard(source + attended(weights, "e", source, source, False))
    y = normed(x, weights["g1"])
    x = shard(x + attended(weights, "s", y, y, True))
    x = shard(x + attended(weights, "c", normed(x, weights["g2"]), source, False))
    return shard(x + sw.nn.gelu(x @ weights["up"]) @ weights["down"])


def _attention(name: str, by_heads: bool) -> dict[str, Any]:
    specs = [P(None, "x")] * 3 + [P("x")] if by_heads else [P()] * 4
    return {name + one: ("mnd", spec) for one, spec in zip("qkv", specs)} | {name + "o": ("ndm", specs[3])}


_SCALES = {"g1": ("m", P()), "g2": ("m", P())}
_BY_HIDDEN = {"up": ("mh", P(None, "x")), "down": ("hm", P("x"))}
_WHOLE = {"up": ("mh", P()), "down": ("hm", P())}
_ROWS = {name: (shape, P("x")) for name, (shape, _) in {**_attention("s", True), **_WHOLE, **_SCALES}.items()}


@dataclass(frozen=True)
class LayerStep:
    """A layer with its weights' shapes and shardings, and the sharding of its tokens."""

    name: str
    layer: Callable[..., Any]
    weights: dict[str, tuple[str, P]] = field(repr=False)
    tokens: P

    def __str__(self) -> str:
        return self.name

    def compiled(self, sizes: Sizes, **options: Any) -> sw.Program:
        width = {"m": sizes.m, "h": sizes.h, "n": sizes.n, "d": sizes.m // sizes.n, "e": sizes.e}

        def shard(x: Any) -> Any:
            return sw.shard(x, self.tokens)

        def step(weights: Any, x: Any, target: Any) -> Any:
            def loss(weights: Any) -> Any:
                return ((self.layer(weights, x, shard) - target) ** 2).mean()

            value, gradients = sw.value_and_grad(loss)(weights)
            return value, sw.tree.map(lambda w, g: w - np.float32(0.1) * g, weights, gradients)

        shapes = {
            name: sw.ShapeDtypeStruct(tuple(width[letter] for letter in shape), np.float32)
            for name, (shape, _) in self.weights.items()
        }
        specs = {name: spec for name, (_, spec) in self.weights.items()}
        tokens = sw.ShapeDtypeStruct((sizes.b, sizes.s, sizes.m), np.float32)
        ins, outs = (specs, self.tokens, self.tokens), (P(), specs)
        mesh = sw.Mesh({"x": 8})
        jitted = sw.jit(step, mesh=mesh, in_shardings=ins, out_shardings=outs, **options)
        return jitted.lower(shapes, tokens, tokens).compile()


LAYER_STEPS = [
    LayerStep("GPT, tensor parallel", gpt, {**_attention("s", True), **_BY_HIDDEN, **_SCALES}, P()),
    LayerStep("GPT, FSDP", gpt, _ROWS, P("x")),
    LayerStep(
        "LLaMA, context parallel", llama,
        {**_attention("s", False), **_WHOLE, "gate": ("mh", P()), **_SCALES}, P(None, "x"),
    ),
    LayerStep(
        "experts", experts, {"gate": ("me", P()), "up": ("emh", P("x")), "down": ("ehm", P("x"))}, P("x"),
    ),
    LayerStep(
        "decoder with cross attention", decoder,
        {**_attention("e", True), **_attention("s", True), **_attention("c", True), **_BY_HIDDEN, **_SCALES}, P(),
    ),
]  # fmt: skip
