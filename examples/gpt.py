# SPDX-License-Identifier: Apache-2.0
"""A small GPT that learns to write like a file, character by character, with all that a larger one needs.

    python examples/gpt.py --folder run --devices 8               # stop it with Ctrl-C, or kill -9
    python examples/gpt.py --folder run --devices 6               # goes on after the last whole step
    python examples/gpt.py --text my_book.txt --steps 2000 --decay-steps 2000

The layers are one scan whose body is computed again in the backward pass. A step adds up the gradients of its
microbatches, and the update of each weight is split over the devices (`shard_update`): weights and moments are float32
and stay split between steps, and the model receives the weights in bfloat16. There is no annotation but that of the
batch. A checkpoint also has the options that the numbers of a run depend on, and a CRC-32 of the text: the schedule is
the same however often the run is stopped, and whatever `--steps` is.
"""

from __future__ import annotations

import argparse
import functools
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import shardwise as sw

# The options that the numbers of a run depend on, beside the text.
KEPT = ("decay_steps", "rate", "batch", "microbatches", "dtype")


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model."""

    vocabulary: int = 256
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


def first_state(optimizer: Any, sizes: Sizes) -> Any:
    """The parameters and moments before the first step."""
    params = init(sw.random.key(0), sizes)
    return params, optimizer.init(params)


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


def characters_of(file: str, length: int) -> np.ndarray:
    """The characters of a file as numbers."""
    characters = np.frombuffer(Path(file).read_bytes(), np.uint8)
    if len(characters) <= length:
        raise SystemExit(f"gpt.py: --text must have more than {length} characters, got {len(characters)} in {file}")
    return characters


def batch_of(numbers: np.ndarray, length: int, rows: int, step: int) -> np.ndarray:
    """The rows of text of a step, drawn from its number: a run that is resumed sees the same ones."""
    starts = np.random.default_rng(step).integers(0, len(numbers) - length, rows)
    return np.stack([numbers[start : start + length + 1] for start in starts]).astype(np.int32)


def prepared(options: argparse.Namespace) -> tuple[Callable[[], Any], Any, sw.Mesh]:
    """A function that makes the first state, the step on a mesh, and that mesh."""
    schedule = sw.optim.warmup_cosine_decay_schedule(0.0, options.rate, 20, options.decay_steps)
    optimizer = sw.optim.chain(sw.optim.clip_by_global_norm(1.0), sw.optim.adamw(schedule))
    dtype = np.dtype(sw.bfloat16 if options.dtype == "bfloat16" else options.dtype)
    narrow = {"gather_dtype": "bfloat16"} if options.dtype == "bfloat16" else {}
    step, mesh = training_step(optimizer, options.microbatches, dtype), sw.Mesh({"data": options.devices})
    first = functools.partial(first_state, optimizer, Sizes())
    return first, sw.jit(step, mesh=mesh, donate_argnums=0, shard_update="data", **narrow), mesh


def expect_equal(folder: str, began: dict[str, Any], got: dict[str, Any]) -> None:
    """End the program if the run in the folder began with other options."""
    names = [name for name in got if began[name] != got[name]]
    if names:
        old, new = (" ".join(f"--{name.replace('_', '-')} {run[name]}" for name in names) for run in (began, got))
        way_out = "pass the same ones, or another --folder"
        raise SystemExit(f"gpt.py: the run in {folder} began with {old}, got {new}; {way_out}")


def train(options: argparse.Namespace) -> None:
    """Train from the newest step in the folder on."""
    text, (first, step_of, mesh) = characters_of(options.text, Sizes.length), prepared(options)
    kept = {name: getattr(options, name) for name in KEPT} | {"text": f"of CRC-32 {zlib.crc32(text):08x}"}
    done = sw.latest(options.folder) or 0
    if done:  # shapes take the saved shardings: each rank reads its own parts only
        run = sw.load(options.folder, like={"state": sw.eval_shape(first), "options": kept}, mesh=mesh)
        expect_equal(options.folder, run["options"], kept)
        print(f"resumed after step {done} on {options.devices} devices", flush=True)
    state = run["state"] if done else first()
    began, counted = time.perf_counter(), done
    for number in range(done + 1, options.steps + 1):
        state, loss = step_of(state, batch_of(text, Sizes.length, options.batch, number))
        sw.save(options.folder, {"state": state, "options": kept}, step=number, keep=2, async_=True)
        if number % options.every == 0:
            rate = (number - counted) * options.batch * Sizes.length / (time.perf_counter() - began)
            print(f"step {number} loss {float(loss):.9g}  {rate:.0f} characters/s", flush=True)
            began, counted = time.perf_counter(), number
    sw.wait_until_saved()


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command line, each of which is possible."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default=__file__, help="a file to learn from; default: this one")
    parser.add_argument("--folder", default="run", help="where the checkpoints are")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--decay-steps", type=int, default=400, help="steps until the learning rate is 0; at least 21")
    parser.add_argument("--batch", type=int, default=24, help="rows of text in a step")
    parser.add_argument("--microbatches", type=int, default=2, help="parts of a batch, one after the other")
    parser.add_argument("--rate", type=float, default=3e-3, help="the highest learning rate")
    parser.add_argument("--every", type=int, default=1, help="print every so many steps")
    parser.add_argument("--dtype", choices=["bfloat16", "float32", "float64"], default="bfloat16")
    options = parser.parse_args(arguments)
    for name, least in {"devices": 1, "decay_steps": 21, "batch": 1, "microbatches": 1, "every": 1}.items():
        if getattr(options, name) < least:
            flag = name.replace("_", "-")
            parser.error(f"--{flag} must be at least {least}, got {getattr(options, name)}")
    if options.batch % options.microbatches:
        got = f"--batch {options.batch} --microbatches {options.microbatches}"
        parser.error(f"--batch must be a multiple of --microbatches, got {got}")
    return options


if __name__ == "__main__":
    train(parsed())
