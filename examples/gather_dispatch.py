# SPDX-License-Identifier: Apache-2.0
"""Gather dispatch of a Mixture of Experts: each token is copied to the expert that it chooses, by its index.

The one-hot products of GShard multiply each token with all places of all experts. Here a device sorts the numbers of
its tokens by expert, gathers the rows, and one all-to-all brings them to the devices of the experts; a second one
brings the results back. An expert takes a limited number of tokens from each device. The others pass with zeros.

    python examples/gather_dispatch.py --devices 8 --tokens 64

Source: Lepikhin et al., "GShard" (2020), for the layer; Gale et al., "MegaBlocks" (2022), for dispatch by indices.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P, lax


def routed(x: Any, router: Any) -> tuple[Any, Any, Any]:
    """The expert of each token, its gate, and its place among the tokens [..., tokens] that chose the expert."""
    gates = sw.nn.softmax(x @ router)
    expert = np.argmax(gates, -1)
    chosen = expert[..., None] == np.arange(router.shape[1])
    place = (np.cumsum(chosen.astype(np.int32), -2) * chosen).sum(-1) - 1
    return expert, gates.max(-1), place


def whole_layer(x: Any, router: Any, w_in: Any, w_out: Any, groups: int, capacity: int) -> Any:
    """All experts on all tokens, of which each takes one: what the dispatch computes."""
    grouped = x.reshape(groups, -1, x.shape[1])
    expert, gate, place = routed(grouped, router)
    made = np.einsum("gteh,ehd->gted", np.maximum(np.einsum("gtd,edh->gteh", grouped, w_in), 0), w_out)
    takes = (expert[..., None] == np.arange(router.shape[1])) & (place < capacity)[..., None]
    return np.einsum("gted,gte->gtd", made, takes * gate[..., None]).reshape(x.shape)


def layer(x: Any, router: Any, w_in: Any, w_out: Any, capacity: int) -> Any:
    """The layer on the tokens of one device, which holds one expert."""
    experts = router.shape[1]
    expert, gate, place = routed(x, router)
    # Sorted by expert, those of expert e begin behind all that chose an earlier one.
    order = np.argsort(expert, stable=True)
    counts = (expert[:, None] == np.arange(experts)).sum(0)
    places = np.arange(capacity)
    token = order[np.clip((np.cumsum(counts) - counts)[:, None] + places, 0, x.shape[0] - 1)]
    is_taken = places < counts[:, None]
    sent = np.where(is_taken[..., None], x[token], 0.0)  # [experts, capacity, width]

    arrived = lax.all_to_all(sent, "expert", 0, 0, tiled=True)
    made = np.maximum(arrived @ w_in[0], 0) @ w_out[0]
    returned = lax.all_to_all(made, "expert", 0, 0, tiled=True)

    rows = returned[expert, np.clip(place, 0, capacity - 1)]
    return np.where((place < capacity)[:, None], rows * gate[:, None], 0.0)


def arguments(devices: int, tokens: int, width: int) -> tuple[np.ndarray, ...]:
    """Tokens of all devices, the router, and the weights of an expert per device."""
    source = np.random.default_rng(0)
    x = source.normal(size=(devices * tokens, width))
    w_in = source.normal(size=(devices, width, 2 * width)) / width
    w_out = source.normal(size=(devices, 2 * width, width)) / width
    return x, source.normal(size=(width, devices)), w_in, w_out


def mapped(mesh: sw.Mesh, capacity: int) -> Any:
    """The layer on whole arrays."""
    by_expert = P("expert")
    return sw.shard_map(
        lambda *args: layer(*args, capacity),
        mesh=mesh, in_specs=(by_expert, P(), by_expert, by_expert), out_specs=by_expert,
    )  # fmt: skip


def main() -> None:
    """Compare with all experts on all tokens, and print what travels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--capacity-factor", type=float, default=1.25)
    args = parser.parse_args()

    mesh = sw.Mesh({"expert": args.devices})
    given = arguments(args.devices, args.tokens, args.width)
    capacity = max(int(args.capacity_factor * args.tokens / args.devices), 1)
    run = mapped(mesh, capacity)
    compiled = sw.jit(run, mesh=mesh).lower(*given).compile()

    def whole(*args_: Any) -> Any:
        return whole_layer(*args_, groups=args.devices, capacity=capacity)

    found, expected = np.asarray(compiled(*given)), np.asarray(sw.jit(whole, mesh=mesh)(*given))
    print(f"tokens that find no place: {int((expected == 0).all(1).sum())} of {len(expected)}")
    print(f"layer: differs by at most {np.abs(found - expected).max():.1e}")

    def gradients(function: Any) -> Any:
        return sw.jit(sw.grad(lambda *args_: (function(*args_) ** 2).sum(), argnums=(0, 1, 2, 3)), mesh=mesh)(*given)

    pairs = zip(gradients(run), gradients(whole))
    print(f"gradients: differ by at most {max(np.abs(np.asarray(a) - np.asarray(b)).max() for a, b in pairs):.1e}")
    print(compiled.collectives())


if __name__ == "__main__":
    main()
