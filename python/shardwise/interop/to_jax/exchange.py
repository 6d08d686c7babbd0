# SPDX-License-Identifier: Apache-2.0
"""An exchange as collectives of `jax.lax`: permutes of boxes, or one collective where that sends no more.

A gather serves where a device sends a box to many, an all-to-all of padded boxes where many send to many. Tables say,
for each device, where its box begins and where a received box goes. Their steps are the same everywhere.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..._core.ir import Op
from ..source.collectives import axes_of_dim, exchange_source, exchange_tile, mesh_of, size_of
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .collectives import along_of, item_size
from .target import emits

__all__: list[str] = []


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
        rounds = min((_first_fit(sent), _by_distance(sent)), key=self._elements)
        along = along_of(self._scope, self._op, self._refs)
        size = item_size(self._op.operands[0].type.dtype)
        starts, ends = self._bounds(sent)
        whole = tuple(max(ends[i][d] - starts[i][d] for i in starts) for d in range(len(self._block)))
        gathered, spread = (math.prod(box) * (along.size - 1) for box in (whole, self._shape(sent)))
        way = f"dict(axis_name={along.arguments})"
        if len(rounds) > 2 and gathered <= min(spread, self._elements(rounds)):
            self._scope.transfer("all_gather", along.size, float(gathered * size), self._op)
            return [*texts, self._move(way, whole, (1,) * len(whole), starts, _slots(sent))]
        strides = tuple(abs(line.at_step) for line in self._lines)
        if len(rounds) > 2 and spread <= self._elements(rounds):
            self._scope.transfer("all_to_all", along.size, float(spread * size), self._op)
            return [*texts, self._spread(way, along.size, rounds, strides)]
        for boxes in rounds:
            shape = self._shape(boxes)
            self._scope.transfer("collective_permute", along.size, float(math.prod(shape) * size), self._op)
            way = repr([(box.sender, box.receiver) for box in boxes])
            texts.append(self._move(way, shape, strides, self._bounds(boxes)[0], [boxes]))
        return texts

    def _shape(self, boxes: Sequence[Box]) -> tuple[int, ...]:
        return tuple(max(box.pieces[d].count for box in boxes) for d in range(len(self._block)))

    def _elements(self, rounds: Sequence[Sequence[Box]]) -> int:
        return sum(math.prod(self._shape(boxes)) for boxes in rounds)

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
        zeros = [0] * len(shape)
        sent = _table([inside.get(i, zeros) for i in range(self._mesh.size)])
        placed = [self._slot(boxes, strides, inside) for boxes in slots]
        return f"({self._place}, {way}, {shape}, {strides}, {sent}, [{', '.join(placed)}])"

    def _spread(self, way: str, count: int, rounds: Sequence[Sequence[Box]], strides: tuple[int, ...]) -> str:
        """An all-to-all: each device has a box for each other one."""
        boxes = [box for each in rounds for box in each]
        shape = self._shape(boxes)
        starts = {(box.sender, box.receiver): self._bounds([box])[0][box.sender] for box in boxes}
        for own in starts.values():
            own[:] = [min(x, n - k) if s == 1 else x for x, n, k, s in zip(own, self._block, shape, strides)]
        sent = [[[0] * len(shape) for _ in range(count)] for _ in range(self._mesh.size)]
        for (sender, receiver), own in starts.items():
            sent[sender][int(self._position[receiver])] = own
        slots = [
            self._slot(slot, strides, {box.sender: starts[box.sender, box.receiver] for box in slot}) for slot in rounds
        ]
        return f"({self._place}, ({way},), {shape}, {strides}, {_table(sent)}, [{', '.join(slots)}])"

    def _slot(self, boxes: Sequence[Box], strides: tuple[int, ...], starts: dict[int, list[int]]) -> str:
        """One received box of each device: the sender's place, and (to, count, first row of the box) of each dim."""
        senders, rows = [0] * self._mesh.size, [[(0, 0, 0)] * len(strides) for _ in range(self._mesh.size)]
        zeros = [0] * len(strides)
        for box in boxes:
            senders[box.receiver] = int(self._position[box.sender])
            own = zip(box.pieces, starts.get(box.sender, zeros), strides)
            rows[box.receiver] = [(piece.to, piece.count, (piece.at - at) // stride) for piece, at, stride in own]
        steps = [(line.to_step, line.at_step // stride) for line, stride in zip(self._lines, strides)]
        return f"({_table(senders)}, {steps}, {_table(rows)})"


def _table(rows: Sequence[Any]) -> str:
    """A value for each device: one in a list stands for all."""
    rows = list(rows)
    return repr(rows[:1] if all(row == rows[0] for row in rows) else rows)


def _by_distance(boxes: Sequence[Box]) -> list[list[Box]]:
    rounds: dict[int, list[Box]] = defaultdict(list)
    for box in boxes:
        rounds[box.sender - box.receiver].append(box)
    return list(rounds.values())


def _first_fit(boxes: Sequence[Box]) -> list[list[Box]]:
    """Rounds in which no device sends or receives twice."""
    rounds: list[list[Box]] = []
    busy: list[set[tuple[str, int]]] = []
    for box in boxes:
        ends = {("sends", box.sender), ("receives", box.receiver)}
        at = next((i for i, others in enumerate(busy) if not ends & others), len(rounds))
        if at == len(rounds):
            rounds.append([])
            busy.append(set())
        rounds[at].append(box)
        busy[at] |= ends
    return rounds


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
