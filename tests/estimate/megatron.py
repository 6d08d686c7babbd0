# SPDX-License-Identifier: Apache-2.0
"""Megatron's training steps on A100s, from shapes alone: the runs that Korthikanti et al. measured on Selene.

The runs are those of table 5 of "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198). A
step is a pipeline of stages with equal layers, so that the programs of one layer, of the loss and of the optimizer give
it:

    step = (m + (p - 1) / v) (L / p layers, and the transfers between stages) + m losses + L / p updates
           m microbatches, p stages, v parts of a stage; the bubble takes (p - 1) / (m v + p - 1) of the layers

The last stage computes the loss, too, and all others wait for it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from shardwise.reports.calibration import quantities_of

LENGTH, VOCABULARY = 2048, 51200
NODE = sw.Mesh({"tp": 8})
# Megatron of 2022 has no fused attention.
SELENE = sw.hardware.load(
    {"format": "shardwise.hardware", "version": 1, "name": "selene", "base": "a100_80", "fused_attention": False}
)


@dataclass(frozen=True)
class Run:
    """A row of the table: a model, how it is split, and the seconds of its step.

    Attributes:
        stages, parts: of the pipeline; a stage has ``parts`` groups of adjacent layers.
        batch, micro_batch: sequences of a step, and of one pass through the pipeline.
        is_selective: with sequence parallelism, and only attention computed again in the backward pass; otherwise
            without, and all of each layer is.
        seconds: measured.
    """

    model: str
    width: int
    heads: int
    layers: int
    stages: int
    parts: int
    batch: int
    micro_batch: int
    is_selective: bool
    seconds: float

    def __str__(self) -> str:
        return f"{self.model}, {'selective' if self.is_selective else 'full'}"

    @cached_property
    def layer(self) -> sw.Program:
        return layer_program(self)

    @cached_property
    def loss(self) -> sw.Program:
        return _loss_program(self)

    @cached_property
    def update(self) -> sw.Program:
        return _update_program(self)

    def transfer(self) -> float:
        """Seconds of a microbatch from one stage to the next, where each of 8 GPUs sends a part; without latency."""
        mesh = sw.Mesh({"stage": self.stages, "tp": 8})
        time = SELENE.collective_time("shift", self.micro_batch * LENGTH * self.width * 2 // 8, mesh, "stage")
        return time.seconds - time.latency

    def step(self, layer: float, loss: float, update: float, transfer: float) -> float:
        """What a step takes, by what each of its parts takes."""
        microbatches = self.batch / self.micro_batch
        stage = self.layers / self.stages * layer + (2 * self.parts * transfer if self.stages > 1 else 0.0)
        passes = microbatches + (self.stages - 1) / self.parts
        return passes * stage + microbatches * loss + self.layers / self.stages * update

    def lower(self) -> float:
        """Seconds that no schedule of the step goes below."""
        return self.step(*(p.estimate(SELENE).lower for p in (self.layer, self.loss, self.update)), 0.0)

    def quantities(self) -> dict[str, float]:
        """Seconds of the step by the terms of a calibration."""
        programs = (self.layer, self.loss, self.update)
        parts = [Counter(quantities_of(program.estimate(SELENE).rows)) for program in programs]
        parts.append(Counter({"tiers.infiniband": self.transfer()}))
        return {
            term: self.step(*(part[term] for part in parts)) for term in sorted({t for part in parts for t in part})
        }


def _runs(*row: Any) -> list[Run]:
    return [Run(*row[:-2], is_selective, row[-2 + is_selective]) for is_selective in (False, True)]


RUNS = [
    *_runs("22B", 6144, 64, 48, 1, 1, 4, 4, 1.42, 1.10),
    *_runs("175B", 12288, 96, 96, 8, 3, 64, 1, 18.13, 13.75),
    *_runs("530B", 20480, 128, 105, 35, 3, 280, 1, 49.05, 37.83),
    *_runs("1T", 25600, 160, 128, 64, 1, 512, 1, 94.42, 71.49),
]


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    x32 = x.astype(np.float32)
    centered = x32 - x32.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    return (centered / np.sqrt(variance + 1e-5)).astype(x.dtype) * scale + bias


def gelu(x: Any) -> Any:
    half, one = x.dtype.type(0.5), x.dtype.type(1)
    return half * x * (one + np.tanh(x.dtype.type(0.8) * (x + x.dtype.type(0.045) * x * x * x)))


def dropped(x: Any, kept: Any) -> Any:
    """Dropout: ``kept`` is a mask of bytes, as Megatron stores it."""
    return x * kept.astype(x.dtype) * x.dtype.type(1 / 0.9)


def attention(q: Any, k: Any, v: Any, kept: Any) -> Any:
    positions = np.arange(q.shape[1], like=q)
    scores = np.einsum("bqhc,bkhc->bhqk", q, k) * q.dtype.type(q.shape[-1] ** -0.5)
    scores = np.where(positions[:, None] >= positions, scores, q.dtype.type(-1e4))
    scores = np.exp(scores - sw.stop_gradient(scores.max(axis=-1, keepdims=True)))
    return np.einsum("bhqk,bkhc->bqhc", dropped(scores / scores.sum(axis=-1, keepdims=True), kept), v)


def layer(x: Any, w: Any, masks: Any, is_selective: bool) -> Any:
    """A transformer layer. Weights of columns are multiplied with whole tokens, those of rows make partial sums."""
    between = P(None, "tp") if is_selective else P()

    def again(function: Any) -> Any:
        # Of a product of gathered tokens, that gathers them again in the backward pass.
        return sw.checkpoint(function) if is_selective else function

    def block_input(x: Any, scale: Any, bias: Any) -> Any:
        normed = layer_norm(x, scale, bias)
        return normed if is_selective else sw.shard(normed, P())

    def summed(partial: Any) -> Any:
        return sw.shard(sw.shard(partial, P(unreduced=("tp",))), between)

    project = again(lambda x, w: np.einsum("bsm,mihc->ibshc", x, w))
    qkv = project(block_input(x, w["scale1"], w["bias1"]), w["qkv"]) + w["qkv_bias"][:, None, None]
    qkv = sw.shard(qkv, P(None, None, None, "tp"))
    mixed = sw.shard(again(attention)(qkv[0], qkv[1], qkv[2], masks["attention"]), P(None, None, "tp"))
    made = summed(np.einsum("bshc,hcm->bsm", mixed, w["out"]))
    x = sw.shard(x + dropped(made + w["out_bias"], masks["out"]), between)
    hidden = again(np.dot)(block_input(x, w["scale2"], w["bias2"]), w["up"])
    hidden = gelu(sw.shard(hidden, P(None, None, "tp")) + w["up_bias"])
    made = summed(np.dot(hidden, w["down"]))
    return sw.shard(x + dropped(made + w["down_bias"], masks["down"]), between)


def _shapes(run: Run) -> tuple[Any, Any]:
    """Shapes and shardings of the activations, the weights and the masks of a layer."""
    m, heads = run.width, run.heads
    c = m // heads
    tokens = (run.micro_batch, LENGTH)
    x = P(None, "tp") if run.is_selective else P()
    table = {
        "qkv": ((m, 3, heads, c), P(None, None, "tp")), "qkv_bias": ((3, heads, c), P(None, "tp")),
        "out": ((heads, c, m), P("tp")), "out_bias": ((m,), P()),
        "up": ((m, 4 * m), P(None, "tp")), "up_bias": ((4 * m,), P("tp")),
        "down": ((4 * m, m), P("tp")), "down_bias": ((m,), P()),
        "scale1": ((m,), P()), "bias1": ((m,), P()), "scale2": ((m,), P()), "bias2": ((m,), P()),
    }  # fmt: skip
    weights = {name: sw.ShapeDtypeStruct(size, sw.bfloat16) for name, (size, _) in table.items()}
    masks = {
        "attention": ((run.micro_batch, heads, LENGTH, LENGTH), P(None, "tp")), "out": ((*tokens, m), x),
        "down": ((*tokens, m), x),
    }  # fmt: skip
    kept = {name: sw.ShapeDtypeStruct(size, np.uint8) for name, (size, _) in masks.items()}
    activations = sw.ShapeDtypeStruct((*tokens, m), sw.bfloat16)
    specs = x, {n: spec for n, (_, spec) in table.items()}, {n: spec for n, (_, spec) in masks.items()}
    return (activations, weights, kept), specs


def layer_program(run: Run) -> sw.Program:
    """Forward and backward pass of a layer for one microbatch; gradients are added to sums in float32."""
    (x, weights, masks), specs = _shapes(run)

    def one(x: Any, w: Any, masks: Any, gradient: Any) -> Any:
        # Any loss whose gradient needs the layer's result: with full recomputation, Megatron computes that again, too.
        return (layer(x, w, masks, run.is_selective) ** 2 * gradient).sum()

    def step(x: Any, w: Any, masks: Any, gradient: Any, sums: Any) -> Any:
        whole = one if run.is_selective else sw.checkpoint(one)
        value, (dx, dw) = sw.value_and_grad(lambda x, w: whole(x, w, masks, gradient), argnums=(0, 1))(x, w)
        return value, dx, sw.tree.map(lambda total, g: total + g.astype(np.float32), sums, dw)

    sums = sw.tree.map(lambda w: sw.ShapeDtypeStruct(w.shape, np.float32), weights)
    function = sw.jit(
        step, mesh=NODE, hardware=SELENE, in_shardings=(*specs, specs[0], specs[1]), donate_argnums=4,
        out_shardings=(P(), specs[0], specs[1]),
    )  # fmt: skip
    return function.lower(x, weights, masks, x, sums).compile()


def _loss_program(run: Run) -> sw.Program:
    """Logits and loss of a microbatch, forward and backward; the vocabulary is split."""
    spec = P(None, "tp") if run.is_selective else P()

    def loss(x: Any, table: Any, targets: Any) -> Any:
        logits = sw.shard(np.einsum("bsm,vm->bsv", x, table).astype(np.float32), P(None, None, "tp"))
        shifted = logits - sw.stop_gradient(logits.max(axis=-1, keepdims=True))
        chosen = np.where(np.arange(VOCABULARY, like=x) == targets[..., None], shifted, 0).sum(axis=-1)
        return np.mean(np.log(np.exp(shifted).sum(axis=-1)) - chosen)

    def step(x: Any, table: Any, targets: Any, total: Any) -> Any:
        value, (dx, dtable) = sw.value_and_grad(loss, argnums=(0, 1))(x, table, targets)
        return value, dx, total + dtable.astype(np.float32)

    tokens = (run.micro_batch, LENGTH)
    function = sw.jit(
        step, mesh=NODE, hardware=SELENE, in_shardings=(spec, P("tp"), P(), P("tp")), donate_argnums=3,
        out_shardings=(P(), spec, P("tp")),
    )  # fmt: skip
    x, table = (sw.ShapeDtypeStruct((*sizes, run.width), sw.bfloat16) for sizes in (tokens, (VOCABULARY,)))
    total = sw.ShapeDtypeStruct((VOCABULARY, run.width), np.float32)
    return function.lower(x, table, sw.ShapeDtypeStruct(tokens, np.int32), total).compile()


def _update_program(run: Run) -> sw.Program:
    """Adam on the matrices of a layer, with gradients that are clipped by their norm."""

    def step(w: Any, m: Any, v: Any, g: Any) -> Any:
        g = g / np.maximum(np.sqrt((g * g).sum()), 1)
        m = 0.9 * m + 0.1 * g
        v = 0.95 * v + 0.05 * g * g
        w = w - 1e-4 * (m / (np.sqrt(v) + 1e-8) + 0.1 * w)
        return w, m, v, w.astype(sw.bfloat16)

    weights = sw.ShapeDtypeStruct((12 * run.width, run.width), np.float32)
    function = sw.jit(
        step, mesh=NODE, hardware=SELENE, in_shardings=P("tp"), out_shardings=P("tp"), donate_argnums=(0, 1, 2)
    )
    return function.lower(weights, weights, weights, weights).compile()
