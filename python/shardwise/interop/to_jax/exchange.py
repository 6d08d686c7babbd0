# SPDX-License-Identifier: Apache-2.0
"""An exchange as collectives of `jax.lax`: permutes of boxes, or one gather, whichever sends least.

A box that goes to many travels along a tree: whoever has it sends it on, so p - 1 receivers take ⌈log2 p⌉ permutes.
Rows of boxes are arithmetic on the device's indices where they can be, else tables by device.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count, product
from typing import Any

import numpy as np

from ..._core.ir import Op
from ..source.collectives import axes_of_dim, exchange_source, exchange_tile, mesh_of, size_of
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .collectives import along_of, item_size
from .target import emits

__all__: list[str] = []

_MOST_PERMUTES = 16
_WASTES = (math.inf, 2.0, 1.5, 1.0)  # elements of a round's shape for each one of its smallest box


@dataclass(frozen=True)
class Piece:
    """Rows that one device sends to another along a dim: row to + k·to_step is the sender's row at + k·at_step."""

    to: int
    at: int
    count: int


@dataclass(frozen=True)
class Box:
    """What one device sends to another, with a piece for each dim."""

    sender: int
    receiver: int
    pieces: tuple[Piece, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(piece.count for piece in self.pieces)


@dataclass(frozen=True)
class Line:
    """The map of a dim as in mesh/exchange.h.

    Element u has the result's index to + to_step·u, and the operand's index at + at_step·u.
    """

    tile: dict[str, int]
    source: dict[str, int]
    to: int
    to_step: int
    at: int
    at_step: int

    @classmethod
    def of(cls, tile: dict[str, int], source: dict[str, int]) -> Line | None:
        """None if the dim has no element."""
        common = math.gcd(source["scale"], source["holes"])
        if source["offset"] % common:
            return None
        scale, offset, holes = (source[name] // common for name in ("scale", "offset", "holes"))
        to = -offset * pow(scale, -1, holes) % holes
        return cls(tile, source, to, holes, (scale * to + offset) // holes, scale)

    def pieces(self, i: int) -> dict[int, Piece]:
        """What tile i receives, by the shard that has it."""
        start, block = i * self.tile["step"], self.source["block"]
        low = max(start, self.source["begin"])
        high = min(start + self.tile["rows"], self.tile["size"], self.source["end"])
        whole = _cut(_cut(None, self.to, self.to_step, low, high), self.at, self.at_step, 0, self.source["size"])
        if not whole:
            return {}
        found = {}
        first, last = sorted((self.at + self.at_step * u) // block for u in (whole[0], whole[-1]))
        for j in range(first, last + 1):
            part = _cut(whole, self.at, self.at_step, j * block, (j + 1) * block)
            if part:
                to, at = self.to + self.to_step * part[0], self.at + self.at_step * part[0]
                found[j] = Piece(to - start, at - j * block, len(part))
        return found


def _cut(span: range | None, first: int, step: int, low: int, high: int) -> range:
    """The u of a span for which first + step·u is in [low, high)."""
    if low >= high:
        return range(0)
    begin, end = (low, high - 1) if step > 0 else (high - 1, low)
    begin, end = -((first - begin) // step), (end - first) // step + 1
    return range(begin, end) if span is None else range(max(span.start, begin), min(span.stop, end))


class Operand:
    """What devices send each other of one operand."""

    def __init__(self, scope: Scope, op: Op, place: int) -> None:
        self._scope, self._op = scope, op
        self._mesh = mesh_of(scope, op)
        self._place = place
        self._block: tuple[int, ...] = op.operands[place].type.shape
        self._rows: tuple[int, ...] = op.results[0].type.shape
        self._dims = attributes(op)["from"][place]
        dims = range(len(self._rows))
        lines = [Line.of(exchange_tile(op, d, self._mesh), exchange_source(op, place, d, self._mesh)) for d in dims]
        self._lines = [line for line in lines if line is not None]
        self._refs = [ref for dim in self._dims for ref in axes_of_dim(dim, self._mesh)]
        self._group, self._position = self._scope.axes.positions(self._mesh, self._refs)
        is_empty = len(self._lines) < len(lines) or 0 in self._rows or 0 in self._block
        self._boxes = [] if is_empty else self._found_boxes()

    def _found_boxes(self) -> list[Box]:
        device_at = {place: i for i, place in enumerate(zip(self._group.tolist(), self._position.tolist()))}
        tiles = [
            self._scope.axes.positions(self._mesh, axes_of_dim(dim, self._mesh))[1]
            for dim in attributes(self._op)["to"]
        ]
        known: dict[tuple[int, int], dict[int, Piece]] = {}
        boxes = []
        for receiver in range(self._mesh.size):
            pieces = []
            for d, line in enumerate(self._lines):
                key = d, int(tiles[d][receiver])
                if key not in known:
                    known[key] = line.pieces(key[1])
                pieces.append(known[key])
            for shards in product(*pieces):
                position = 0
                for dim, shard in zip(self._dims, shards):
                    position = position * size_of(axes_of_dim(dim, self._mesh)) + shard
                sender = device_at[int(self._group[receiver]), position]
                boxes.append(Box(sender, receiver, tuple(own[j] for own, j in zip(pieces, shards))))
        return boxes

    def moves(self) -> list[str]:
        """The text of each move: how boxes travel, which box a device sends, and where the boxes go that it has."""
        own = [box for box in self._boxes if box.sender == box.receiver]
        sent = [box for box in self._boxes if box.sender != box.receiver]
        texts = [self._move("None", self._block, (1,) * len(self._block), {}, [own])] if own else []
        if not sent:
            return texts
        along = along_of(self._scope, self._op, self._refs)
        size = item_size(self._op.operands[0].type.dtype)
        starts, ends = self._bounds(sent)
        whole = tuple(max(ends[i][d] - starts[i][d] for i in starts) for d in range(len(self._block)))
        ways = [_by_distance(sent), *[_first_fit(sent, waste) for waste in _WASTES]]
        rounds = min([way for way in ways if _cost(way)[1] <= _MOST_PERMUTES] or ways, key=_cost)
        gathered = math.prod(whole) * (along.size - 1)
        permutes = sum(len(each.steps) for each in rounds)
        if permutes > _MOST_PERMUTES or (permutes > 2 and gathered <= _cost(rounds)[0]):
            self._scope.transfer("all_gather", along.size, float(gathered * size), self._op)
            way = f"dict(axis_name={along.arguments})"
            return [*texts, self._move(way, whole, (1,) * len(whole), starts, _slots(sent))]
        strides = tuple(abs(line.at_step) for line in self._lines)
        for each in rounds:
            for _ in each.steps:
                self._scope.transfer("collective_permute", along.size, float(math.prod(each.shape) * size), self._op)
            boxes = each.boxes
            texts.append(self._move(repr(each.steps), each.shape, strides, self._bounds(boxes)[0], [boxes]))
        return texts

    def _bounds(self, boxes: Sequence[Box]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """The first row, and the row after the last, of what each device sends."""
        starts: dict[int, list[int]] = {}
        ends: dict[int, list[int]] = {}
        for box in boxes:
            rows = [(x.at, x.at + line.at_step * (x.count - 1)) for x, line in zip(box.pieces, self._lines)]
            lows, highs = [min(row) for row in rows], [max(row) + 1 for row in rows]
            starts[box.sender] = [*map(min, starts.get(box.sender, lows), lows)]
            ends[box.sender] = [*map(max, ends.get(box.sender, highs), highs)]
        return starts, ends

    def _move(
        self,
        way: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        starts: dict[int, list[int]],
        slots: Sequence[Sequence[Box]],
    ) -> str:
        inside = {  # a box of this shape must not end after the operand
            i: [min(x, n - k) if stride == 1 else x for x, n, k, stride in zip(own, self._block, shape, strides)]
            for i, own in starts.items()
        }
        sent = self._table([inside.get(i) for i in range(self._mesh.size)] if inside else [[0] * len(shape)])
        placed = [self._slot(boxes, strides, inside) for boxes in slots]
        return f"({self._place}, {way}, {shape}, {strides}, {sent}, [{', '.join(placed)}])"

    def _slot(self, boxes: Sequence[Box], strides: tuple[int, ...], starts: dict[int, list[int]]) -> str:
        """One received box of each device: the sender's place, and (to, count, first row of the box) of each dim."""
        senders: list[int | None] = [None] * self._mesh.size
        rows = [[(0, 0, 0)] * len(strides) for _ in range(self._mesh.size)]
        zeros = [0] * len(strides)
        for box in boxes:
            senders[box.receiver] = int(self._position[box.sender])
            own = zip(box.pieces, starts.get(box.sender, zeros), strides)
            rows[box.receiver] = [(piece.to, piece.count, (piece.at - at) // stride) for piece, at, stride in own]
        steps = [(line.to_step, line.at_step // stride) for line, stride in zip(self._lines, strides)]
        return f"({self._table(senders)}, {steps}, {self._table(rows)})"

    def _table(self, rows: Sequence[Any]) -> str:
        """A row for each device, None for any: (row, steps) is the row plus a step times the index along each axis."""
        sizes = self._scope.axes.sizes
        known = {i: np.array(row) for i, row in enumerate(rows) if row is not None}
        coordinates = np.stack(np.unravel_index(np.arange(self._mesh.size), tuple(sizes.values())), 1)
        places = list(known)
        matrix = np.column_stack([np.ones(len(places)), coordinates[places]])
        wanted = np.stack([known[i].reshape(-1) for i in places]).astype(np.float64)
        found = np.rint(np.linalg.lstsq(matrix, wanted, rcond=None)[0]).astype(np.int64)
        if not np.array_equal(matrix @ found, wanted):
            some = known[places[0]] * 0
            return repr([known.get(i, some).tolist() for i in range(len(rows))])
        base, *steps = [each.reshape(known[places[0]].shape) for each in found]
        return repr((base.tolist(), {axis: step.tolist() for axis, step in zip(sizes, steps) if step.any()}))


@dataclass(frozen=True)
class Round:
    """Boxes that travel together: in each step a device sends the box that it has to at most one other."""

    boxes: list[Box]
    steps: list[list[tuple[int, int]]]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(max, zip(*[box.shape for box in self.boxes])))


def _cost(rounds: Sequence[Round]) -> tuple[int, int]:
    """The elements that one device receives, the most of all, and the number of permutes."""
    received: dict[int, int] = defaultdict(int)
    for each in rounds:
        for box in each.boxes:
            received[box.receiver] += math.prod(each.shape)
    return max(received.values()), sum(len(each.steps) for each in rounds)


def _by_distance(boxes: Sequence[Box]) -> list[Round]:
    rounds: dict[int, list[Box]] = defaultdict(list)
    for box in boxes:
        rounds[box.sender - box.receiver].append(box)
    return [Round(each, [[(box.sender, box.receiver) for box in each]]) for each in rounds.values()]


def _first_fit(boxes: Sequence[Box], waste: float) -> list[Round]:
    """Rounds in which no device has two boxes to send, or receives two, and no box is padded by more than ``waste``."""
    sent: dict[Any, list[Box]] = defaultdict(list)
    for box in boxes:
        sent[box.sender, tuple((piece.at, piece.count) for piece in box.pieces)].append(box)
    rounds: list[list[list[Box]]] = []
    busy: list[set[tuple[str, int]]] = []
    for group in sent.values():
        sender, receivers = group[0].sender, [box.receiver for box in group]
        ends = {("sends", sender), *[("receives", i) for i in receivers]}
        if len(group) > 1:  # all of them may send it on
            ends |= {("receives", sender), *[("sends", i) for i in receivers]}
        fits = (i for i, round in enumerate(rounds) if not ends & busy[i] and _is_filled([*round, group], waste))
        at = next(fits, len(rounds))
        if at == len(rounds):
            rounds.append([])
            busy.append(set())
        rounds[at].append(group)
        busy[at] |= ends
    return [Round(list(chain.from_iterable(groups)), _tree(groups)) for groups in rounds]


def _is_filled(groups: Sequence[Sequence[Box]], waste: float) -> bool:
    shapes = [group[0].shape for group in groups]
    return bool(math.prod(map(max, zip(*shapes))) <= waste * min(map(math.prod, shapes)))


def _tree(groups: Sequence[Sequence[Box]]) -> list[list[tuple[int, int]]]:
    """The pairs of each step; in a step, each device that has the box of its group sends it to one that has not."""
    steps: list[list[tuple[int, int]]] = []
    for group in groups:
        having, missing = [group[0].sender], [box.receiver for box in group]
        for step in count():
            if not missing:
                break
            pairs = list(zip(having, missing))
            if step == len(steps):
                steps.append([])
            steps[step] += pairs
            having += [receiver for _, receiver in pairs]
            missing = missing[len(pairs) :]
    return steps


def _slots(boxes: Sequence[Box]) -> list[list[Box]]:
    """Lists with at most one box for each receiver."""
    slots: list[list[Box]] = []
    received: dict[int, int] = defaultdict(int)
    for box in boxes:
        at = received[box.receiver]
        received[box.receiver] += 1
        if at == len(slots):
            slots.append([])
        slots[at].append(box)
    return slots


@emits("shardwise.exchange")
def exchange(scope: Scope, op: Op) -> str:
    count = len(attributes(op)["from"])
    moves = [move for place in range(count) for move in Operand(scope, op, place).moves()]
    fill = scope(op.operands[count]) if len(op.operands) > count else "0"
    table = scope.table("MOVES", f"[{', '.join(moves)}]")
    helper = scope.helper("exchange_boxes")
    operands = listed(map(scope, op.operands[:count]))
    return call(helper, operands, fill, op.results[0].type.shape, table)
