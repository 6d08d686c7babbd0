# SPDX-License-Identifier: Apache-2.0
"""Where tiles nest, each step of an exchange is one permutation of the devices."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from shardwise import _core
from tests.conformance.reshards.pairs import Dims, Pair, bound, draw, shards, tiles

PAIRS = 2_000
Steps = list[list[int]]


def axes_text(pair: Pair, axes: list[tuple[str, int, int]]) -> str:
    sizes = dict(pair.mesh)
    own = [f'"{name}"' if size == sizes[name] else f'"{name}":({pre}){size}' for name, pre, size in axes]
    return f"{{axes = #sdy<axis_ref_list{{{', '.join(own)}}}>}}" if own else "{}"


def steps_of(pair: Pair, device_ids: list[int] = []) -> Steps | None:  # noqa: B006
    """The sender of each device, by step: of the exchange between the placements of a pair."""
    sizes = ", ".join(f'"{name}"={size}' for name, size in pair.mesh)
    ids = f", device_ids={device_ids}" if device_ids else ""
    before, _ = (", ".join(axes_text(pair, axes) for axes in dims) for dims in (pair.before, pair.after))
    types = [f"tensor<{''.join(f'{n}x' for n in local(pair, dims))}f32>" for dims in (pair.before, pair.after)]
    rows = [f"rows = {n} : i64" for n in local(pair, pair.after)]
    to = ", ".join(
        f"{{{', '.join([*([dim[1:-1]] if dim != '{}' else []), row])}}}"
        for dim, row in zip([axes_text(pair, axes) for axes in pair.after], rows)
    )
    text = f"""module attributes {{shardwise.stage = "local"}} {{
  sdy.mesh @mesh = <[{sizes}]{ids}>
  func.func @main(%arg0: {types[0]}) -> {types[1]} {{
    %0 = "shardwise.exchange"(%arg0) <{{from = [[{before}]], mesh = @mesh, to = [{to}]}}> : ({types[0]}) -> {types[1]}
    return %0 : {types[1]}
  }}
}}"""
    (op,) = [op for op in _core.ir.parse(text).ops if op.name == "shardwise.exchange"]
    return op.sender_steps


def local(pair: Pair, axes_of_dims: Dims) -> list[int]:
    return [n // shards(axes) for n, axes in zip(pair.shape, axes_of_dims)]


def fault(pair: Pair, steps: Steps) -> str:
    """What is wrong with the steps, by the coordinates of the devices; "" if nothing is."""
    count = math.prod(size for _, size in pair.mesh)
    (old_first, old_end), (first, end) = tiles(pair, pair.before), tiles(pair, pair.after)
    received = np.zeros(count, np.int64)
    boxes: list[dict[tuple[int, ...], int]] = [{} for _ in range(count)]  # by receiver: first element, and how many
    for step, senders in enumerate(steps):
        if sorted(senders) != list(range(count)):
            return f"step {step} is no permutation: {senders}"
        for receiver, sender in enumerate(senders):
            low = np.maximum(first[receiver], old_first[sender])
            high = np.minimum(end[receiver], old_end[sender])
            elements = int(np.prod(np.maximum(high - low, 0)))
            if not elements or tuple(low) in boxes[receiver]:
                return f"device {sender} sends nothing new to {receiver} in step {step}"
            boxes[receiver][tuple(low)] = elements
            received[receiver] += elements * (sender != receiver)
    if [sum(own.values()) for own in boxes] != np.prod(end - first, axis=1).tolist():
        return "a device does not receive each element of its tile once"
    return "" if received.max() == bound(pair) else f"a device receives {received.max()}, and lacks {bound(pair)}"


def test_each_step_of_a_nested_exchange_is_a_permutation() -> None:
    rng = random.Random(23)
    found: list[tuple[Pair, Steps]] = []
    others: list[Pair] = []
    while len(found) < PAIRS:
        pair = draw(rng, "nested")
        if (steps := steps_of(pair)) is None:
            others.append(pair)
        else:
            found.append((pair, steps))
    assert [f"{text}: {pair}" for pair, steps in found if (text := fault(pair, steps))] == []
    # Sizes may nest where digits do not: 12 shards along "x", and 4 along "x":(3)4.
    assert len(others) < 0.03 * PAIRS
    assert all(max(own) % 6 == 0 for own in (shares(pair) for pair in others))


def shares(pair: Pair) -> list[int]:
    """The sizes of the mesh axes."""
    return [size for _, size in pair.mesh]


def test_steps_do_not_depend_on_the_order_of_the_devices() -> None:
    """They are of places in the mesh."""
    rng = random.Random(29)
    for _ in range(50):
        pair = draw(rng, "nested")
        count = math.prod(size for _, size in pair.mesh)
        assert steps_of(pair, rng.sample(range(count), count)) == steps_of(pair)


def test_a_device_that_sends_to_all_is_found() -> None:
    """Replicas that send in the receiver's place: on 4x4, the device (y, y) sends to all (x, y)."""
    x, y = ("x", 1, 4), ("y", 1, 4)
    pair = Pair("nested", (("x", 4), ("y", 4)), (4,), [[x]], [[y]])
    own_place = [[receiver % 4 * 4 + receiver % 4 for receiver in range(16)]]
    assert "no permutation" in fault(pair, own_place)
    transposed = [[receiver % 4 * 4 + receiver // 4 for receiver in range(16)]]
    assert steps_of(pair) == transposed
    assert fault(pair, transposed) == ""
    assert "sends nothing new to" in fault(pair, [list(range(16))])
    assert "each element" in fault(pair, [])


@pytest.mark.parametrize(("before", "after"), [((17,), (17,)), ((16,), (15,))])
def test_ranges_that_move_have_no_steps(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    """A slice, and blocks that do not cover the dim alike."""
    text = f"""module attributes {{shardwise.stage = "local"}} {{
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%arg0: tensor<5xf32>) -> tensor<4xf32> {{
    %0 = "shardwise.exchange"(%arg0) <{{from = [[{{axes = #sdy<axis_ref_list{{"x"}}>, size = {before[0]} : i64}}]],
      mesh = @mesh, to = [{{axes = #sdy<axis_ref_list{{"x"}}>, rows = 4 : i64, size = {after[0]} : i64}}]}}>
      : (tensor<5xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }}
}}"""
    (op,) = [op for op in _core.ir.parse(text).ops if op.name == "shardwise.exchange"]
    assert op.sender_steps is None
