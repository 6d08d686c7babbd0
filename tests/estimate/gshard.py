# SPDX-License-Identifier: Apache-2.0
"""What section 5 of GShard measures: a Transformer layer and a layer of experts, as NumPy functions on shapes.

GShard (Lepikhin et al., 2020, arXiv 2006.16668) has one expert of each layer on each core, and as many tokens on each
core for any number of cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P

WIDTH, HIDDEN, HEADS, HEAD = 1024, 8192, 16, 128  # of all models (A.2)


def one_hot(indices: Any, size: int) -> Any:
    return (indices[..., None] == np.arange(size, like=indices)).astype(np.float32)


def gates_of(x: Any, w: Any) -> Any:
    """The first line of Algorithm 2: (G, S, E)."""
    logits = np.einsum("gsm,me->gse", x, sw.shard(w, P()))
    gates = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return gates / gates.sum(axis=-1, keepdims=True)


def choices(gates: Any, capacity: int) -> list[tuple[Any, ...]]:
    """Algorithm 1 up to its places: for both choices, the expert, the place there, and the weight, each (G, S)."""
    experts = gates.shape[-1]
    index1 = np.argmax(gates, axis=-1)
    mask1 = one_hot(index1, experts)
    weight1 = np.einsum("gse,gse->gs", gates, mask1)
    others = gates * (1 - mask1)
    index2 = np.argmax(others, axis=-1)
    mask2 = one_hot(index2, experts)
    weight2 = np.einsum("gse,gse->gs", others, mask2)
    place1 = np.cumsum(mask1, axis=1) - mask1
    kept1 = mask1 * (place1 < capacity).astype(np.float32)
    place2 = np.cumsum(mask2, axis=1) - mask2 + kept1.sum(axis=1, keepdims=True)
    kept2 = mask2 * (place2 < capacity).astype(np.float32)
    total = weight1 + weight2
    return [
        (index, np.einsum("gse,gse->gs", place, kept), weight / total * kept.sum(axis=-1))
        for index, place, kept, weight in ((index1, place1, kept1, weight1), (index2, place2, kept2, weight2))
    ]


def combination(chosen: list[tuple[Any, ...]], experts: int, capacity: int) -> Any:
    """The weights of the experts' results: (G, S, E, C)."""
    first, second = (
        np.einsum("gse,gsc->gsec", weight[..., None] * one_hot(expert, experts), one_hot(place, capacity))
        for expert, place, weight in chosen
    )
    return first + second


def dispatched(combine: Any, x: Any) -> Any:
    tokens = np.einsum("gsec,gsm->egcm", (combine != 0).astype(np.float32), x)
    return sw.shard(sw.shard(tokens, P(None, "core")), P("core"))  # split by groups, then by experts


def feed_forward(x: Any, w: Any) -> Any:
    """Of each expert, whose tokens are (E, G, C, M)."""
    answers = np.einsum("egch,ehm->gecm", np.maximum(np.einsum("egcm,emh->egch", x, w["wi"]), 0), w["wo"])
    return sw.shard(sw.shard(answers, P(None, "core")), P("core"))


def combined(combine: Any, answers: Any) -> Any:
    return np.einsum("gsec,gecm->gsm", combine, answers)


def moe(x: Any, w: Any, capacity: int) -> Any:
    """Algorithm 2."""
    gates = gates_of(sw.shard(x, P("core")), w["gate"])
    combine = combination(choices(gates, capacity), gates.shape[-1], capacity)
    return combined(combine, feed_forward(dispatched(combine, x), w))


def attended(q: Any, k: Any, v: Any) -> Any:
    scores = np.einsum("bqhc,bkhc->bhqk", q, k) * np.float32(HEAD**-0.5)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("bhqk,bkhc->bqhc", scores / scores.sum(axis=-1, keepdims=True), v)


@dataclass(frozen=True)
class Layers:
    """A Transformer layer, and one whose feed-forward network is experts: half of an encoder's layers are such.

    Attributes:
        cores: of TPU v3, and experts.
        tokens: of a core; they are one group.
        length: of a sequence. It is not in the paper.
    """

    cores: int
    tokens: int = 2048
    length: int = 512

    def attention(self, x: Any, w: Any) -> Any:
        split = x.reshape(-1, self.length, WIDTH)
        q, k, v = (np.einsum("blm,mhc->blhc", split, w[name]) for name in "qkv")
        return x + np.einsum("blhc,hcm->blm", attended(q, k, v), w["o"]).reshape(x.shape)

    def forward(self, x: Any, w: Any) -> Any:
        x = self.attention(x, w["dense"])
        x = x + np.dot(np.maximum(np.dot(x, w["dense"]["wi"]), 0), w["dense"]["wo"])
        x = self.attention(x, w["experts"])
        return x + moe(x, w["experts"], max(1, 2 * x.shape[1] // self.cores))

    def weights(self) -> dict[str, dict[str, Any]]:
        """Shapes."""

        def shape(*sizes: int) -> Any:
            return sw.ShapeDtypeStruct(sizes, np.float32)

        attention = {**{name: shape(WIDTH, HEADS, HEAD) for name in "qkv"}, "o": shape(HEADS, HEAD, WIDTH)}
        experts = {"wi": shape(self.cores, WIDTH, HIDDEN), "wo": shape(self.cores, HIDDEN, WIDTH)}
        return {
            "dense": {**attention, "wi": shape(WIDTH, HIDDEN), "wo": shape(HIDDEN, WIDTH)},
            "experts": {**attention, "gate": shape(WIDTH, self.cores), **experts},
        }

    def compiled(self) -> sw.Program:
        """The forward pass: tokens and experts are split over all cores."""
        weights = self.weights()
        specs = {layer: {name: P() for name in shapes} for layer, shapes in weights.items()}
        specs["experts"] |= {"wi": P("core"), "wo": P("core")}
        function = sw.jit(
            self.forward, mesh=sw.Mesh({"core": self.cores}), hardware="tpu_v3", in_shardings=(P("core"), specs),
            out_shardings=P("core"),
        )  # fmt: skip
        return function.lower(sw.ShapeDtypeStruct((self.cores, self.tokens, WIDTH), np.float32), weights).compile()
