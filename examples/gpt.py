# SPDX-License-Identifier: Apache-2.0
"""A small GPT that learns to write like a file, character by character, with all that a larger one needs.

    python examples/gpt.py --folder run --devices 8               # stop it with Ctrl-C, or kill -9
    python examples/gpt.py --folder run --devices 6               # goes on after the last whole step
    python examples/gpt.py --text my_book.txt --steps 2000

The layers are one scan whose body is computed again in the backward pass. A step adds up the gradients of its
microbatches, and the update of each weight is split over the devices (`shard_update`): weights and moments are float32
and stay split between steps, and the model receives the weights in bfloat16. There is no annotation but that of the
batch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import shardwise as sw


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model."""

    vocabulary: int
    layers: int = 4
    width: int = 64
    heads: int = 4
    length: int = 64


def init(key: Any, sizes: Sizes) -> Any:
    """The parameters, with those of all layers stacked."""
    width = sizes.width
    shapes = {
        "qkv": (sizes.layers, width, 3, sizes.heads, width // sizes.heads),
        "out": (sizes.layers, sizes.heads, width // sizes.heads, width),
        "up": (sizes.layers, width, 4 * width),
        "down": (sizes.layers, 4 * width, width),
    }
    keys = dict(zip([*shapes, "characters", "places"], sw.random.split(key, len(shapes) + 2)))
    layers = {name: sw.random.normal(keys[name], shape) * width**-0.5 / 2 for name, shape in shapes.items()}
    layers["norms"] = np.ones((sizes.layers, 2, width), np.float32)
    return {
        "layers": layers,
        "characters": sw.random.normal(keys["characters"], (sizes.vocabulary, width)) * 0.05,
        "places": sw.random.normal(keys["places"], (sizes.length, width)) * 0.05,
        "norm": np.ones(width, np.float32),
    }


def layer(x: Any, w: Any) -> tuple[Any, None]:
    """Attention to the characters before, and two products with a function between them."""
    length, head = x.shape[1], w["qkv"].shape[-1]
    q, k, v = np.moveaxis(np.einsum("bsm,mihc->bsihc", sw.nn.rms_norm(x, w["norms"][0]), w["qkv"]), 2, 0)
    scores = np.einsum("bqhc,bkhc->bhqk", q, k).astype(np.float32) * np.float32(head**-0.5)
    before = np.tri(length, dtype=bool)
    weights = sw.nn.softmax(np.where(before, scores, np.float32(-1e9))).astype(x.dtype)
    x = x + np.einsum("bqhc,hcm->bqm", np.einsum("bhqk,bkhc->bqhc", weights, v), w["out"])
    hidden = sw.nn.gelu(np.einsum("bsm,mh->bsh", sw.nn.rms_norm(x, w["norms"][1]), w["up"]))
    return x + np.einsum("bsh,hm->bsm", hidden, w["down"]), None


def loss_of(params: Any, text: Any, dtype: Any) -> Any:
    """The mean of minus the log-probability of each character, given those before it."""
    narrow = sw.tree.map(lambda leaf: leaf.astype(dtype), params)
    read, next_one = text[:, :-1], text[:, 1:]
    x = np.take(narrow["characters"], read, axis=0) + narrow["places"]
    x, _ = sw.scan(sw.checkpoint(layer), x, narrow["layers"])
    logits = np.einsum("bsm,vm->bsv", sw.nn.rms_norm(x, narrow["norm"]), narrow["characters"])
    logits = logits.astype(np.float64 if dtype == np.float64 else np.float32)
    chosen = np.take_along_axis(sw.nn.log_softmax(logits), next_one[..., None], axis=-1)
    return -chosen.mean()


def training_step(optimizer: Any, microbatches: int, dtype: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    """A function of the state and a batch of text, int32[batch, length + 1]."""

    def step(state: Any, text: Any) -> tuple[Any, Any]:
        params, moments = state

        def add_up(total: Any, part: Any) -> tuple[Any, None]:
            found = sw.value_and_grad(loss_of)(params, sw.split(part, 0, "data"), dtype)
            return sw.tree.map(lambda a, b: a + b.astype(a.dtype) / microbatches, total, found), None

        zeros = np.zeros((), np.float32), sw.tree.map(np.zeros_like, params)
        # Rows of one microbatch are apart in the batch, so that each device has its own ones.
        parts = np.moveaxis(text.reshape(-1, microbatches, text.shape[1]), 1, 0)
        (loss, gradients), _ = sw.scan(add_up, zeros, parts)
        updates, moments = optimizer.update(gradients, moments, params)
        return (sw.optim.apply_updates(params, updates), moments), loss

    return step


def train(options: argparse.Namespace) -> None:
    """Train from the newest step in the folder on."""
    text = np.frombuffer(Path(options.text).read_bytes(), np.uint8)
    characters, numbers = np.unique(text, return_inverse=True)
    sizes, dtype = Sizes(len(characters)), np.dtype(sw.bfloat16 if options.dtype == "bfloat16" else options.dtype)
    schedule = sw.optim.warmup_cosine_decay_schedule(0.0, options.rate, 20, max(options.steps, 21))
    optimizer = sw.optim.chain(sw.optim.clip_by_global_norm(1.0), sw.optim.adamw(schedule))
    narrow = {"gather_dtype": "bfloat16"} if options.dtype == "bfloat16" else {}
    step_of = sw.jit(
        training_step(optimizer, options.microbatches, dtype), mesh=sw.Mesh({"data": options.devices}),
        donate_argnums=0, shard_update="data", **narrow,
    )  # fmt: skip
    params = init(sw.random.key(0), sizes)
    state, done = (params, optimizer.init(params)), sw.latest(options.folder)
    if done is not None:
        state = sw.load(options.folder, like=state)
        print(f"resumed after step {done} on {options.devices} devices", flush=True)
    began = time.perf_counter()
    for number in range((done or 0) + 1, options.steps + 1):
        random = np.random.default_rng(number)  # each step draws its batch from its own number
        starts = random.integers(0, len(numbers) - sizes.length, options.batch)
        batch = np.stack([numbers[start : start + sizes.length + 1] for start in starts]).astype(np.int32)
        state, loss = step_of(state, batch)
        sw.save(options.folder, state, step=number, keep=2, async_=True)
        if number % options.every == 0:
            rate = options.every * batch.size / (time.perf_counter() - began)
            print(f"step {number} loss {float(loss):.9g}  {rate:.0f} characters/s", flush=True)
            began = time.perf_counter()
    sw.wait_until_saved()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default=__file__, help="a file to learn from; default: this one")
    parser.add_argument("--folder", default="run", help="where the checkpoints are")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=24, help="rows of text in a step")
    parser.add_argument("--microbatches", type=int, default=2, help="parts of a batch, one after the other")
    parser.add_argument("--rate", type=float, default=3e-3, help="the highest learning rate")
    parser.add_argument("--every", type=int, default=1, help="print every so many steps")
    parser.add_argument("--dtype", choices=["bfloat16", "float32", "float64"], default="bfloat16")
    train(parser.parse_args())
