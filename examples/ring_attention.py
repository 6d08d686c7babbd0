# SPDX-License-Identifier: Apache-2.0
"""Ring attention: a sequence that is split over devices attends to all of itself, and no device ever holds all of it.

Each device keeps its queries. Keys and values travel around a ring, one neighbor further after each block, while the
softmax is summed up block by block: the row maximum so far, the sum of exponentials, the weighted values. It is causal:
a block from later in the sequence is masked.

    python examples/ring_attention.py --length 4096 --devices 8

Source: Liu, Zaharia, Abbeel, "Ring Attention with Blockwise Transformers for Near-Infinite Context" (2023).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P, lax


def attention(q: Any, k: Any, v: Any) -> Any:
    """Causal attention of whole arrays, [heads, length, width]: what the ring computes."""
    scores = np.einsum("hqd,hkd->hqk", q, k) / np.sqrt(np.float32(q.shape[-1]))
    places = np.arange(q.shape[1])
    scores = np.where(places[:, None] >= places[None, :], scores, np.float32(-np.inf))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,hkd->hqd", weights / weights.sum(-1, keepdims=True), v)


def ring_attention(q: Any, k: Any, v: Any) -> Any:
    """The same on the shards of one device, [heads, length of a block, width]."""
    count, me = lax.axis_size("ring"), lax.axis_index("ring")
    block, width = q.shape[1:]
    ring = [(i, (i + 1) % count) for i in range(count)]
    own_places = me * block + np.arange(block, dtype=np.int32)

    def attended(k: Any, v: Any, i: Any, most: Any, total: Any, mixed: Any) -> Any:
        # After i moves, a device holds the block of the device i places before it.
        places = (me - i) % count * block + np.arange(block, dtype=np.int32)
        scores = np.einsum("hqd,hkd->hqk", q, k) / np.sqrt(np.float32(width))
        scores = np.where(own_places[:, None] >= places[None, :], scores, np.float32(-1e30))
        higher = np.maximum(most, scores.max(-1))
        weights, before = np.exp(scores - higher[..., None]), np.exp(most - higher)
        total = total * before + weights.sum(-1)
        return higher, total, mixed * before[..., None] + np.einsum("hqk,hkd->hqd", weights, v)

    def step(carry: Any, i: Any) -> Any:
        k, v, *sums = carry
        k, v = lax.ppermute((k, v), "ring", ring)
        return (k, v, *attended(k, v, i, *sums)), None

    rows = q[..., 0] * np.float32(0)
    own = attended(k, v, np.int32(0), rows - np.float32(1e30), rows, q * np.float32(0))
    (_, _, _, total, mixed), _ = sw.scan(step, (k, v, *own), np.arange(1, count, dtype=np.int32))
    return mixed / total[..., None]


def main() -> None:
    """Compare the ring with whole attention, and print what travels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--devices", type=int, default=8)
    args = parser.parse_args()

    mesh = sw.Mesh({"ring": args.devices})
    over_ring = P(None, "ring")
    ring = sw.shard_map(ring_attention, mesh=mesh, in_specs=(over_ring,) * 3, out_specs=over_ring)
    shape = (args.heads, args.length, args.width)
    q, k, v = np.random.default_rng(0).normal(size=(3, *shape)).astype(np.float32)

    compiled = sw.jit(ring, mesh=mesh).lower(q, k, v).compile()
    difference = np.abs(np.asarray(compiled(q, k, v)) - attention(q, k, v)).max()
    print(f"ring against whole attention: differs by at most {difference:.1e}")

    def loss(function: Any) -> Any:
        return sw.jit(sw.grad(lambda q, k, v: (function(q, k, v) ** 2).sum(), argnums=(0, 1, 2)), mesh=mesh)

    pairs = zip(loss(ring)(q, k, v), loss(attention)(q, k, v))
    difference = max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
    print(f"gradients: differ by at most {difference:.1e}")

    print(compiled.collectives())
    whole = sw.jit(attention, mesh=mesh).lower(q, k, v).compile()
    print(f"memory of a device: {compiled.memory().summary()}")
    print(f"of whole attention: {whole.memory().summary()}")


if __name__ == "__main__":
    main()
