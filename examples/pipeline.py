# SPDX-License-Identifier: Apache-2.0
"""A pipeline by hand, with the 1F1B schedule: each device holds one layer, and microbatches travel through the devices.

In each tick, a device runs one microbatch forward and an earlier one backward. The last device turns a microbatch
around at once, so that device i of n keeps the inputs of at most 2 (n - 1 - i) + 1 microbatches, however many there
are:

    tick        0    1    2    3    4    5
    device 0    F0   F1   F2B0 F3B1   B2   B3       activations go down, cotangents up
    device 1         F0B0 F1B1 F2B2 F3B3

The backward pass of a layer is sw.vjp of it on the input that was kept.

    python examples/pipeline.py --devices 8 --microbatches 16

Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training" (2021).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P, lax


def layer(x: Any, w: Any) -> Any:
    """One layer, which one device holds."""
    return x + np.tanh(x @ w)


def whole_loss(weights: Any, x: Any, targets: Any) -> Any:
    """All layers one after the other, on all microbatches: what the pipeline computes."""
    for i in range(weights.shape[0]):
        x = layer(x, weights[i])
    return ((x - targets) ** 2).sum() / 2


def pipeline(weights: Any, x: Any, targets: Any) -> Any:
    """The loss, and the gradient by the layer of this device; ``x`` and ``targets`` are [microbatches, rows, width]."""
    w = weights[0]
    count, me = lax.axis_size("stage"), lax.axis_index("stage")
    down = [(i, i + 1) for i in range(count - 1)]
    up = [(i + 1, i) for i in range(count - 1)]
    is_first, is_last = me == 0, me == count - 1
    microbatches, kept_count = x.shape[0], 2 * count - 1
    slots = np.arange(kept_count)[:, None, None]

    def of_microbatch(arrays: Any, i: Any) -> Any:
        return np.take(arrays, np.clip(i, 0, microbatches - 1), axis=0)

    def tick(carry: Any, t: Any) -> Any:
        arrived, cotangent, kept, loss, gradient = carry
        forward, backward = t - me, t - (2 * (count - 1) - me)
        runs_forward = (forward >= 0) & (forward < microbatches)
        runs_backward = (backward >= 0) & (backward < microbatches)

        given = np.where(is_first, of_microbatch(x, forward), arrived)
        kept = np.where((slots == forward % kept_count) & runs_forward, given, kept)
        made = layer(given, w)
        error = made - of_microbatch(targets, forward)
        loss = loss + np.where(is_last & runs_forward, (error**2).sum() / 2, 0.0)

        # The last device has the cotangent of the microbatch that it has just run.
        of_result = np.where(is_last, error, cotangent)
        input_again = np.where(slots == backward % kept_count, kept, 0.0).sum(0)
        _, pull_back = sw.vjp(layer, input_again, w)
        by_input, by_weight = pull_back(of_result)
        gradient = gradient + np.where(runs_backward, by_weight, 0.0)
        return (lax.ppermute(made, "stage", down), lax.ppermute(by_input, "stage", up), kept, loss, gradient), None

    none = x[0] * 0 + me * 0.0
    kept = np.zeros((kept_count, 1, 1)) + none
    ticks = np.arange(microbatches + 2 * (count - 1))
    (_, _, _, loss, gradient), _ = sw.scan(tick, (none, none, kept, none.sum(), w * 0), ticks)
    return lax.psum(loss, "stage"), gradient[None]


def arguments(devices: int, microbatches: int, rows: int, width: int) -> tuple[np.ndarray, ...]:
    """Weights of a layer per device, inputs and targets."""
    source = np.random.default_rng(0)
    weights = source.normal(size=(devices, width, width)) / width
    x, targets = source.normal(size=(2, microbatches, rows, width))
    return weights, x, targets


def mapped(mesh: sw.Mesh) -> Any:
    """The pipeline on whole arrays."""
    return sw.shard_map(pipeline, mesh=mesh, in_specs=(P("stage"), P(), P()), out_specs=(P(), P("stage")))


def main() -> None:
    """Compare the pipeline with all layers in one program, and print what travels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--microbatches", type=int, default=16)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--width", type=int, default=32)
    args = parser.parse_args()

    mesh = sw.Mesh({"stage": args.devices})
    given = arguments(args.devices, args.microbatches, args.rows, args.width)
    compiled = sw.jit(mapped(mesh), mesh=mesh).lower(*given).compile()
    loss, gradient = compiled(*given)
    whole, by_weights = sw.jit(sw.value_and_grad(whole_loss), mesh=mesh)(*given)
    print(f"loss: differs by at most {abs(float(loss) - float(whole)):.1e}")
    print(f"gradients: differ by at most {np.abs(np.asarray(gradient) - np.asarray(by_weights)).max():.1e}")
    print(compiled.collectives())


if __name__ == "__main__":
    main()
