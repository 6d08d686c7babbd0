# SPDX-License-Identifier: Apache-2.0
# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="var-annotated"
"""Functions of scripts that compute the tables of `exchange_boxes` from the description of an exchange; see helpers.py.

    exchange((x,), 0, (3, 5), [(by_permutes, {0: dict(at='x', size=17, offset=3, end=14)}, [1, 2])])

is x[3:] of 17 rows on 8 devices, by permutes from the next device and from the one after it. `by_gather` and
`by_all_to_all` take axes instead, and `by_nothing` keeps what stays on a device.
"""

from __future__ import annotations

import math

import numpy as np

from ..source.helpers import dim_of, order_of
from .helpers import exchange_boxes

SIZES: dict[str, int] = {}
ALL: tuple[str, ...] = ()


def exchange(operands, fill, shape, sources):
    """The fill with rows from the devices that have them: (collective, dims, how, numbers of the operands)."""
    moves = []
    for collective, dims, how, *numbers in sources:
        numbers = numbers[0] if numbers else [0]
        several = len(numbers) > 1
        sizes = list(enumerate(zip(operands[numbers[0]].shape, shape)))
        rows = [[dim_of(own.get(d, {}), *size) for d, size in sizes] for own in (dims if several else [dims])]
        moves += [(numbers if several else numbers[0], *move) for move in collective(rows, how)]
    return exchange_boxes(operands, fill, shape, moves)


def along(axes):
    """The position of each device along some axes; a list is a table of them."""
    if isinstance(axes, list):
        return np.array(axes)
    axes = (axes,) if isinstance(axes, str) else axes
    places = dict(zip(SIZES, np.unravel_index(np.arange(math.prod(SIZES.values())), tuple(SIZES.values()))))
    position = np.zeros(math.prod(SIZES.values()), int)
    for axis in axes:
        position = position * SIZES[axis] + places[axis]
    return position


def groups_of(axes):
    """For each device, the devices of its group along some axes, in order; a list has the devices of all groups."""
    axes = (axes,) if isinstance(axes, str) else axes
    names = () if isinstance(axes, list) else axes
    members = np.array(axes) if not names else order_of(names).reshape(math.prod(SIZES[x] for x in names), -1).T
    found = np.empty((members.size, members.shape[1]), int)
    found[members] = members[:, None]
    return found


def pieces(rows, receivers, senders, numbers):
    """(first row in the result, first row in the operand, count) by dim, of what devices receive from others."""
    shape = np.broadcast_shapes(*map(np.shape, (receivers, senders, numbers)))
    found = [[0, numbers, 1]] if len(rows) > 1 else []
    for dims in zip(*rows):
        given = {key: np.array([dim[key] for dim in dims])[numbers] for key in ("size", "offset", "begin", "end")}
        found.append(piece(dims[0] | given, along(dims[0]["to"])[receivers], along(dims[0]["at"])[senders]))
    table = np.stack([np.stack([np.broadcast_to(x, shape) for x in each], -1) for each in found], -2)
    return np.where((table[..., 2:] > 0).all(-2, keepdims=True), table, 0)


def piece(dim, tile, shard):
    """The rows of a tile that a shard has. Row t of the result is row (scale * t + offset) / holes of the operand."""
    scale, holes = dim["scale"], dim["holes"]
    to = -dim["offset"] * pow(scale, -1, holes) % holes  # the first row that is not in a hole
    at = (scale * to + dim["offset"]) // holes
    start, first = tile * dim["step"], shard * dim["block"]
    in_tile = span(to, holes, np.maximum(start, dim["begin"]), np.minimum(start + dim["count"], dim["end"]))
    in_shard = span(at, scale, first, np.minimum(first + dim["block"], dim["size"]))
    begin, end = np.maximum(in_tile[0], in_shard[0]), np.minimum(in_tile[1], in_shard[1])
    return to + holes * begin - start, at + scale * begin - first, np.maximum(end - begin, 0)


def span(first, step, low, high):
    """The smallest integer u, and the one after the largest, with first + step * u at least low and less than high."""
    begin, end = (low, high - 1) if step > 0 else (high - 1, low)
    return -((first - begin) // step), (end - first) // step + 1


def block_of(rows):
    """The shape of an operand, or of several of them stacked."""
    return (len(rows),) * (len(rows) > 1) + tuple(dim["block"] for dim in rows[0])


def steps_of(rows):
    """The distances of a box's rows in the result, and in the operand, by dim."""
    several = [1] * (len(rows) > 1)
    return np.array(several + [dim["holes"] for dim in rows[0]]), np.array(several + [dim["scale"] for dim in rows[0]])


def starts_of(rows, found, shape):
    """The first row of each box in the operand. A box of this shape must not end after the operand."""
    step = steps_of(rows)[1]
    lows = found[..., 1] + np.minimum(step, 0) * np.maximum(found[..., 2] - 1, 0)
    return np.where(abs(step) == 1, np.minimum(lows, np.array(block_of(rows)) - shape), lows)


def move_of(rows, how, shape, starts, found, origins, senders, strides):
    """A move of `exchange_boxes`: starts by sender, and what each device receives from boxes that start at origins."""
    to_step, at_step = steps_of(rows)
    first = np.where(found[..., 2] > 0, (found[..., 1] - origins) // strides, 0)
    places = np.stack([found[..., 0], found[..., 2], first], -1)
    steps = list(zip(to_step.tolist(), (at_step // strides).tolist()))
    tables = by_device(starts), steps, by_device(senders), by_device(places)
    return *how, tuple(shape), tuple(strides.tolist()), *tables


def by_device(table):
    """A table as `own_row` takes it: a row and its steps along the axes if they give all others, else a list."""
    if len(table) == 1:
        return table[0].tolist(), {}
    steps, found, stride = {}, np.zeros_like(table) + table[0], len(table)
    places = np.unravel_index(np.arange(len(table)), tuple(SIZES.values()))
    for (axis, size), place in zip(SIZES.items(), places):
        stride //= size
        step = table[stride % len(table)] - table[0]
        found += place.reshape(-1, *[1] * (table.ndim - 1)) * step
        steps |= {axis: step.tolist()} if step.any() else {}
    return (table[0].tolist(), steps) if (found == table).all() else table.tolist()


def by_nothing(rows, how=None):
    """The rows that stay where they are."""
    devices = np.arange(math.prod(SIZES.values()))[:, None]
    found, block = pieces(rows, devices, devices, np.arange(len(rows))), block_of(rows)
    starts, ones = np.zeros((1, len(block)), int), np.ones(len(block), int)
    senders = np.zeros((1, len(rows)), int)
    return [move_of(rows, (None, None), block, starts, found, 0, senders, ones)] if found.any() else []


def by_permutes(rows, rounds):
    """A permute, or a tree of them, for each round. In a pair, the rounds may be limited to parts of so many rows."""
    rounds, limits = rounds if isinstance(rounds, tuple) else (rounds, None)
    return by_nothing(rows) + [permute(rows, each, limits) for each in rounds]


def permute(rows, steps, limits):
    """Steps of (from, to, number of the operand if there are several, parts); an integer: from so many places after."""
    devices = np.arange(math.prod(SIZES.values()))
    if isinstance(steps, int):
        steps = [shifted_pairs(rows, devices, (devices + steps) % len(devices))]
    origin, given = {}, {}
    for pairs in steps:  # later, devices send what they have received
        origin |= {receiver: origin.get(sender, sender) for sender, receiver, *_ in pairs}
        given |= {receiver: more for _, receiver, *more in pairs}
    receivers, senders = list(origin), list(origin.values())
    numbers = np.array([(*more, *[0] * (len(block_of(rows)) - len(more))) for more in given.values()])
    boxes = pieces(rows, receivers, senders, numbers[:, 0] if len(rows) > 1 else 0)
    if limits is not None:
        numbers[:, 0] *= len(rows) == 1
        boxes = parts_of(rows, boxes, numbers, np.array(limits))
    shape = boxes[..., 2].max(0)
    starts, found = np.zeros((len(devices), len(shape)), int), np.zeros((len(devices), 1, len(shape), 3), int)
    origins = np.zeros((len(devices), 1, len(shape)), int)
    starts[senders] = origins[receivers, 0] = starts_of(rows, boxes, shape)
    found[receivers, 0] = boxes
    how = "collective_permute", [[pair[:2] for pair in pairs] for pairs in steps]
    return move_of(rows, how, shape.tolist(), starts, found, origins, np.zeros((1, 1), int), abs(steps_of(rows)[1]))


def shifted_pairs(rows, receivers, senders):
    """The pairs of which the sender has rows for the receiver, with the number of the operand if there are several."""
    is_sent = pieces(rows, receivers[:, None], senders[:, None], np.arange(len(rows)))[..., 0, 2] > 0
    triples = np.stack([senders, receivers, is_sent.argmax(1)], 1)[is_sent.any(1)]
    return list(map(tuple, triples[:, : 2 + (len(rows) > 1)].tolist()))


def parts_of(rows, boxes, parts, limits):
    """Parts of boxes, each with at most so many rows along a dim."""
    to_step, at_step = steps_of(rows)
    skipped = parts * limits
    to, at, count = np.moveaxis(boxes, -1, 0)
    return np.stack([to + skipped * to_step, at + skipped * at_step, np.clip(count - skipped, 0, limits)], -1)


def by_all_to_all(rows, axes):
    """Each device of a group has a box for each other one, padded to one shape."""
    members = groups_of(axes)
    devices, numbers = np.arange(len(members))[:, None, None], np.arange(len(rows))
    sent, found = pieces(rows, members[..., None], devices, numbers), pieces(rows, devices, members[..., None], numbers)
    is_own = members == devices[:, 0]
    shape = sent[~is_own][..., 2].reshape(-1, sent.shape[-2]).max(0)
    counts = (sent[..., 0, 2] > 0).sum(-1)
    fits = (sent[is_own][..., 2] <= shape).all() and counts[is_own].max() <= counts[~is_own].max()
    if not fits:
        sent[is_own] = found[is_own] = 0
    several = counts[~is_own].max()
    sent, found = packed(sent, several), packed(found, several)
    starts, origins = starts_of(rows, sent, shape), starts_of(rows, found, shape)
    senders = np.arange(found.shape[1])[None]
    own = [] if fits else by_nothing(rows)
    how = "all_to_all", named(axes, "axes")
    return [*own, move_of(rows, how, shape.tolist(), starts, found, origins, senders, abs(steps_of(rows)[1]))]


def packed(boxes, count):
    """For each device and each other one, its first boxes that are not empty."""
    order = np.argsort(boxes[..., 0, 2] == 0, axis=-1, kind="stable")[..., :count, None, None]
    return np.take_along_axis(boxes, order, 2).reshape(len(boxes), -1, *boxes.shape[-2:])


def named(axes, key):
    """The arguments of a collective along axes, or of groups of devices."""
    return {key: ALL, "axis_index_groups": axes} if isinstance(axes, list) else {key: axes}


def by_gather(rows, axes):
    """Each device of a group receives the rows that any other one needs."""
    members = groups_of(axes)
    devices, numbers = np.arange(len(members))[:, None, None], np.arange(len(rows))
    found = pieces(rows, devices, members[..., None], numbers)
    is_own = members == devices[:, 0]
    others = np.where(is_own[..., None, None, None], 0, found)
    low, shape = hull_of(rows, others, members)
    fits = (hull_of(rows, found, members)[1] == shape).all()
    if fits:
        low = hull_of(rows, found, members)[0]
    else:
        found = others
    starts = np.minimum(low, np.array(block_of(rows)) - shape)
    boxes = found.reshape(len(members), -1, *found.shape[-2:])
    senders = np.repeat(np.arange(members.shape[1]), len(rows))
    used = boxes.any((0, 2, 3))
    origins = starts[members].repeat(len(rows), 1)[:, used]
    own = [] if fits else by_nothing(rows)
    how = "all_gather", named(axes, "axis_name")
    ones = np.ones(len(shape), int)
    return [*own, move_of(rows, how, shape.tolist(), starts, boxes[:, used], origins, senders[None, used], ones)]


def hull_of(rows, boxes, members):
    """The first row that each device sends, and the most rows along each dim that one device sends."""
    step = steps_of(rows)[1]
    low = boxes[..., 1] + np.minimum(step, 0) * np.maximum(boxes[..., 2] - 1, 0)
    high = boxes[..., 1] + np.maximum(step, 0) * np.maximum(boxes[..., 2] - 1, 0) + 1
    is_sent, senders = boxes[..., 2] > 0, members[..., None]
    lows = np.tile(np.array(block_of(rows)), (len(members), 1))
    highs = np.zeros_like(lows)
    np.minimum.at(lows, np.broadcast_to(senders, low.shape[:3]), np.where(is_sent, low, lows[0]))
    np.maximum.at(highs, np.broadcast_to(senders, low.shape[:3]), np.where(is_sent, high, 0))
    lows = np.where(highs > 0, lows, 0)
    return lows, (highs - lows).max(0)
