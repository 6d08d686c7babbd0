# SPDX-License-Identifier: Apache-2.0
"""Training steps of MPT models on clusters, from shapes alone: the runs of ``data/llm_foundry.csv``."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P

DATA = Path(__file__).with_name("data") / "llm_foundry.csv"
VOCABULARY = 50368
SIZES = {  # width, layers
    "125m": (768, 12), "350m": (1024, 24), "760m": (1536, 24), "1b": (2048, 24), "3b": (2560, 32),
    "7b": (4096, 32), "13b": (5120, 40), "30b": (7168, 48), "70b": (8192, 80),
}  # fmt: skip
HEADS = {"125m": 12, "350m": 16}  # others have heads of 128
ALL = ("node", "gpu")


@dataclass(frozen=True)
class Run:
    """A row of the table.

    Attributes:
        micro_batch: sequences of a GPU in one pass, of which a step has ``passes``.
        is_gathered_again: weights are gathered for each layer, in the forward and in the backward pass.
        is_checkpointed: each layer is computed again in the backward pass.
        reduction: the dtype in which gradients are summed over devices.
        seconds: measured, of a step.
        mfu, hfu: utilisation as the table states it, from 0 to 1.
    """

    block: str
    model: str
    length: int
    gpus: int
    micro_batch: int
    passes: int
    is_gathered_again: bool
    is_checkpointed: bool
    reduction: str
    seconds: float
    mfu: float
    hfu: float

    @classmethod
    def of(cls, row: dict[str, str]) -> Run:
        return cls(
            row["block"], row["model"], int(row["seq_len"]), int(row["gpus"]), int(row["micro_batch"]),
            int(row["grad_accum"]), row["sharding"] == "FULL_SHARD", row["activation_checkpointing"] == "True",
            "bfloat16" if row["mp_mode"] == "PURE" else "float32",
            int(row["global_batch_tokens"]) / int(row["tokens_per_s"]),
            float(row["mfu"]) / 100, float(row["hfu"]) / 100,
        )  # fmt: skip

    def __str__(self) -> str:
        again = ", recomputed" if self.is_checkpointed else ""
        kept = "" if self.is_gathered_again else ", weights kept"
        sizes = f"{self.length} tokens, {self.gpus} GPUs, {self.passes} x {self.micro_batch}"
        return f"{self.model}, {sizes}{again}{kept}"


def runs(*blocks: str) -> list[Run]:
    """The rows of some blocks of the table."""
    with open(DATA, newline="", encoding="utf-8") as file:
        return [Run.of(row) for row in csv.DictReader(file) if row["block"] in blocks]


def layer_norm(x: Any, scale: Any) -> Any:
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    return centered / np.sqrt(variance + x.dtype.type(1e-5)) * scale


def attention(q: Any, k: Any, v: Any) -> Any:
    positions = np.arange(q.shape[1], like=q)
    scores = np.einsum("bqhc,bkhc->bhqk", q, k) * q.dtype.type(q.shape[-1] ** -0.5)
    scores = np.where(positions[:, None] >= positions, scores, q.dtype.type(-1e9))
    scores = np.exp(scores - sw.stop_gradient(scores.max(axis=-1, keepdims=True)))
    return np.einsum("bhqk,bkhc->bqhc", scores / scores.sum(axis=-1, keepdims=True), v)


def gelu(x: Any) -> Any:
    half, one = x.dtype.type(0.5), x.dtype.type(1)
    return half * x * (one + np.tanh(x.dtype.type(0.8) * (x + x.dtype.type(0.045) * x * x * x)))


def block(x: Any, p: Any, heads: int) -> Any:
    qkv = np.dot(layer_norm(x, p["norm1"]), p["qkv"]).reshape(*x.shape[:2], 3, heads, x.shape[-1] // heads)
    # As a flash kernel does, it computes the scores again in the backward pass.
    attended = sw.checkpoint(attention)(*(qkv[:, :, i] for i in range(3)))
    x = x + np.dot(attended.reshape(x.shape), p["out"])
    return x + np.dot(gelu(np.dot(layer_norm(x, p["norm2"]), p["up"])), p["down"])


def to_bfloat16(tree: Any) -> Any:
    return sw.tree.map(lambda w: w.astype(sw.bfloat16), tree)


def gathered(tree: Any) -> Any:
    return sw.tree.map(lambda w: sw.shard(w, P()), tree)


def loss(params: Any, tokens: Any, run: Run) -> Any:
    """The mean cross entropy of the next tokens; ``params`` may be float32, and are computed with in bfloat16."""
    heads = HEADS.get(run.model, SIZES[run.model][0] // 128)

    def layer(x: Any, p: Any) -> Any:
        # Without this, all layers are gathered at once, before the loop. In float32 that would be twice as many bytes.
        if run.is_gathered_again and run.reduction == "bfloat16":
            p = {name: sw.shard(w, P() if w.ndim == 1 else P(ALL)) for name, w in p.items()}
        return block(sw.shard(x, P(ALL)), to_bfloat16(p), heads)

    outside = to_bfloat16({name: params[name] for name in ("embed", "positions", "norm")})
    x = sw.shard(outside["embed"][tokens[:, :-1]] + outside["positions"], P(ALL))
    one = sw.checkpoint(layer) if run.is_checkpointed else layer
    x, _ = sw.scan(lambda x, p: (one(x, p), None), x, params["layers"])
    logits = np.dot(layer_norm(x, outside["norm"]), outside["embed"].T)
    shifted = logits.astype(np.float32) - sw.stop_gradient(logits.max(axis=-1, keepdims=True)).astype(np.float32)
    target = np.take_along_axis(shifted, tokens[:, 1:, None], axis=-1)[..., 0]
    return np.mean(np.log(np.exp(shifted).sum(axis=-1)) - target)


def step(state: Any, tokens: Any, run: Run, specs: Any) -> Any:
    """Adam on float32 parameters: FSDP, with ``tokens`` by pass."""
    params, first, second = state

    def one_pass(total: Any, batch: Any) -> Any:
        half = to_bfloat16(params)
        layers = params["layers"] if run.reduction == "float32" else half["layers"]
        used = gathered({name: half[name] for name in ("embed", "positions", "norm")})
        used["layers"] = layers if run.is_gathered_again else gathered(half["layers"])
        used = sw.tree.map(lambda w: w.astype(run.reduction), used)
        grads = sw.grad(lambda used: loss(used, batch, run))(used)
        return sw.tree.map(lambda t, g, s: sw.shard(t + g.astype(np.float32), s), total, grads, specs), None

    zeros = sw.tree.map(np.zeros_like, params)
    grads, _ = one_pass(zeros, tokens[0]) if run.passes == 1 else sw.scan(one_pass, zeros, tokens)
    first = sw.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = sw.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, second, grads)
    return sw.tree.map(lambda w, m, v: w - 1e-4 * m / (np.sqrt(v) + 1e-8), params, first, second), first, second


def compiled(run: Run, hardware: Any) -> sw.Program:
    """The step of a run. Parameters and both moments are split over all devices, the batch as well."""
    width, layers = SIZES[run.model]
    matrices = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    norms = {"norm1": (width,), "norm2": (width,)}

    def shape(*sizes: int) -> Any:
        return sw.ShapeDtypeStruct(sizes, np.float32)

    params = {
        "embed": shape(VOCABULARY, width), "positions": shape(run.length, width), "norm": shape(width),
        "layers": {name: shape(layers, *sizes) for name, sizes in (matrices | norms).items()},
    }  # fmt: skip
    specs = {
        "embed": P(ALL), "positions": P(ALL), "norm": P(),
        "layers": {name: P(None, ALL) if name in matrices else P() for name in params["layers"]},
    }  # fmt: skip
    function = sw.jit(
        lambda state, tokens: step(state, tokens, run, specs),
        mesh=sw.Mesh({"node": run.gpus // 8, "gpu": 8}), hardware=hardware, donate_argnums=0,
        in_shardings=((specs,) * 3, P(None, ALL)), out_shardings=(specs,) * 3,
    )  # fmt: skip
    tokens = sw.ShapeDtypeStruct((run.passes, run.micro_batch * run.gpus, run.length + 1), np.int32)
    return function.lower((params,) * 3, tokens).compile()
