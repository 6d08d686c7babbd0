# SPDX-License-Identifier: Apache-2.0
"""Models, optimizers and meshes for tests of weight-update sharding. No model has an annotation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P

BATCH = 192  # no batch is cheaper to move than the weights


def optimizers() -> dict[str, Any]:
    o = sw.optim
    return {
        "sgd": o.sgd(0.1),
        "momentum": o.sgd(0.1, momentum=0.9),
        "adam": o.adam(1e-2),
        "clipped": o.chain(o.clip_by_global_norm(0.5), o.adamw(1e-2, weight_decay=0.1)),
        "adafactor": o.adafactor(1e-2, min_dim_size_to_factor=8),
        "lars": o.lars(0.1, weight_decay=0.1, trust_coefficient=0.1),
        "lamb": o.lamb(1e-2, weight_decay=0.1),
    }


ELEMENTWISE = ("sgd", "momentum", "adam")


@dataclass(frozen=True)
class Model:
    """A loss of parameters and a batch, the shapes of the parameters, and the shardings of those that a mesh splits."""

    loss: Callable[[Any, Any, Any], Any]
    shapes: dict[str, tuple[int, ...]]
    batch: tuple[tuple[int, ...], tuple[int, ...]]
    on_model: dict[str, Any] = field(default_factory=dict)

    def params(self, seed: int = 0) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        return {name: (rng.normal(size=shape) * 0.3).astype(np.float32) for name, shape in self.shapes.items()}

    def data(self, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        x, y = (rng.normal(size=shape).astype(np.float32) for shape in self.batch)
        return x, y


def mlp_loss(p: Any, x: Any, y: Any) -> Any:
    h = np.maximum(x @ p["w1"] + p["b1"], 0)
    return np.mean((h @ p["w2"] - y) ** 2)


def resnet_loss(p: Any, x: Any, y: Any) -> Any:
    def conv(h: Any, w: Any) -> Any:
        return sw.lax.conv_general_dilated(h, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    h = conv(x, p["stem"])
    mean = h.mean((0, 1, 2))
    h = (h - mean) / np.sqrt(((h - mean) ** 2).mean((0, 1, 2)) + 1e-5) * p["scale"] + p["shift"]
    h = h + conv(np.maximum(h, 0), p["conv"])
    return np.mean((np.mean(h, (1, 2)) @ p["head"] - y) ** 2)


def transformer_loss(p: Any, x: Any, y: Any) -> Any:
    """One block whose embedding is tied to the softmax; `x` and `y` are fractions of the vocabulary."""
    size = p["embed"].shape[0]
    tokens = (np.abs(x) * 97).astype(np.int32) % size
    wanted = (np.abs(y) * 89).astype(np.int32) % size
    h = np.take(p["embed"], tokens, axis=0)
    q, k, v = (np.einsum("blm,mhd->blhd", h, p[name]) for name in ("wq", "wk", "wv"))
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(np.float32(q.shape[-1]))
    mixed = np.einsum("bhqk,bkhd->bqhd", sw.nn.softmax(scores), v)
    h = h + np.einsum("bqhd,hdm->bqm", mixed, p["wo"])
    h = h * p["norm"] + sw.nn.gelu(h @ p["up"]) @ p["down"]
    return np.mean(sw.nn.softmax_cross_entropy_with_integer_labels(h @ p["embed"].T, wanted))


def odd_loss(p: Any, x: Any, y: Any) -> Any:
    """Leaves of 13, 7 and 1 elements, of sizes that 8 does not divide, and a convolution of 3x3x256x256 at its size.

    Its batch has 3 KiB, so that it travels in place of the convolution; test_update_layouts.py has one that travels.
    """
    h = np.tanh(x @ p["first"] + p["seven"]) @ p["second"] + p["thirteen"]
    patches = np.einsum("bij,ijkl->bkl", x[:, :9].reshape(-1, 3, 3), p["conv"])
    return np.mean((h @ p["third"] * p["one"] - y) ** 2) + np.mean(patches**2)


MODELS: dict[str, Model] = {
    "mlp": Model(
        mlp_loss,
        {"w1": (32, 64), "b1": (64,), "w2": (64, 24)},
        ((BATCH, 32), (BATCH, 24)),
        {"w1": P(None, "model"), "b1": P("model"), "w2": P("model")},
    ),
    "resnet": Model(
        resnet_loss,
        {"stem": (3, 3, 3, 16), "scale": (16,), "shift": (16,), "conv": (3, 3, 16, 16), "head": (16, 10)},
        ((BATCH, 6, 6, 3), (BATCH, 10)),
        {"conv": P(None, None, None, "model"), "stem": P(None, None, None, "model")},
    ),
    "transformer": Model(
        transformer_loss,
        {
            "embed": (48, 16),
            "wq": (16, 4, 8),
            "wk": (16, 4, 8),
            "wv": (16, 4, 8),
            "wo": (4, 8, 16),
            "norm": (16,),
            "up": (16, 64),
            "down": (64, 16),
        },
        ((BATCH, 5), (BATCH, 5)),
        {name: P(None, "model") for name in ("wq", "wk", "wv", "up")} | {"wo": P("model"), "down": P("model")},
    ),
    "odd": Model(
        odd_loss,
        {
            "first": (17, 7),
            "seven": (7,),
            "second": (7, 13),
            "thirteen": (13,),
            "third": (13, 33),
            "one": (1,),
            "conv": (3, 3, 256, 256),
        },
        ((96, 17), (96, 33)),
        {"conv": P(None, None, None, "model")},
    ),
}

# Mesh, the axes of the batch, those of the update.
MESHES: dict[str, tuple[sw.Mesh, Any, Any]] = {
    "data": (sw.Mesh({"data": 8}), "data", "data"),
    "data x model": (sw.Mesh({"data": 4, "model": 2}), "data", "data"),
    "two axes": (sw.Mesh({"node": 2, "gpu": 4}), ("node", "gpu"), ("node", "gpu")),
    "sub-axis": (sw.Mesh({"data": 8}), "data", sw.sub("data", pre=2, size=4)),
    "six": (sw.Mesh({"data": 6}), "data", "data"),
}


def step_of(loss: Any, optimizer: Any, summed_over: Any = None) -> Callable[..., Any]:
    """A step of training. With `summed_over`, gradients are whole along these axes before the update reads them."""

    def summed(grad: Any) -> Any:
        if summed_over is None:
            return grad
        return sw.shard(grad, P(*[sw.open()] * grad.ndim, replicated=set(summed_over)))

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, grads = sw.value_and_grad(loss)(params, x, y)
        grads = sw.tree.map(summed, grads)
        updates, state = optimizer.update(grads, state, params)
        return sw.optim.apply_updates(params, updates), state, value

    return step


def jitted(model: Model, optimizer: Any, mesh: str, **options: Any) -> Any:
    """The step on a mesh: the batch is split, and so are the weights that the model has on the axis ``model``.

    With ``shard_update=False``, gradients are summed before the update: by default the partitioner may add the weight
    to the addends of one device and sum the results, which rounds in another order.
    """
    grid, batch, axes = MESHES[mesh]
    specs: Any = None
    if "model" in grid.shape and model.on_model:
        specs = {name: model.on_model.get(name) for name in model.shapes}
    is_split = options.pop("shard_update", True)
    if is_split:
        options["shard_update"] = axes
    whole = None if is_split else (batch,) if isinstance(batch, str) else batch
    in_shardings = (specs, None, P(batch), P(batch))
    return sw.jit(step_of(model.loss, optimizer, whole), mesh=grid, in_shardings=in_shardings, **options)
