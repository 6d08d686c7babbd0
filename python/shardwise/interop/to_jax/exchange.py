# SPDX-License-Identifier: Apache-2.0
"""An exchange as collectives of `jax.lax`: permutes of boxes, or one gather, whichever sends least.

A box that goes to many travels along a tree: whoever has it sends it on, so p - 1 receivers take ⌈log2 p⌉ permutes.
Rows of boxes are arithmetic on the device's indices where they can be, else tables by device.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, product
from typing import Any

import numpy as np

from ..._core.ir import Op
from ..source.collectives import axes_of_dim, exchange_source, exchange_tile, mesh_of, size_of, source_mesh_of
from ..source.mesh_axes import AxisRef
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
    step: int = 0  # where tiles nest: the boxes of a step are a permutation

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


def _axes_of(op: Op, place: int, mesh: Any) -> list[list[AxisRef]]:
    return [axes_of_dim(dim, mesh) for dim in attributes(op)["from"][place]]


def _lines_of(op: Op, place: int, mesh: Any, source_mesh: Any) -> list[Line]:
    """The map of each dim of an operand; none if no element moves."""
    dims = range(len(op.results[0].type.shape))
    if 0 in op.results[0].type.shape or 0 in op.operands[place].type.shape:
        return []
    lines = [Line.of(exchange_tile(op, d, mesh), exchange_source(op, place, d, source_mesh, mesh)) for d in dims]
    found = [line for line in lines if line is not None]
    return found if len(found) == len(lines) else []


def _form_of(scope: Scope, op: Op, place: int) -> Any:
    """What operands have in common whose boxes travel together."""
    mesh, source_mesh = mesh_of(scope, op), source_mesh_of(scope, op)
    steps = [(line.to_step, line.at_step) for line in _lines_of(op, place, mesh, source_mesh)]
    return op.operands[place].type.shape, repr(_axes_of(op, place, source_mesh)), tuple(steps)


def _cut(span: range | None, first: int, step: int, low: int, high: int) -> range:
    """The u of a span for which first + step·u is in [low, high)."""
    if low >= high:
        return range(0)
    begin, end = (low, high - 1) if step > 0 else (high - 1, low)
    begin, end = -((first - begin) // step), (end - first) // step + 1
    return range(begin, end) if span is None else range(max(span.start, begin), min(span.stop, end))


class Moved:
    """What devices send each other of some operands, which have the same blocks, axes and steps.

    Several operands are one, with the place of the operand as one more dim: then their boxes travel together.
    """

    def __init__(self, scope: Scope, op: Op, places: list[int]) -> None:
        self._scope, self._op, self._places = scope, op, places
        self._mesh, self._source_mesh = mesh_of(scope, op), source_mesh_of(scope, op)
        self._axes = _axes_of(op, places[0], self._source_mesh)
        self._refs = [ref for refs in self._axes for ref in refs]
        self._group, self._position = scope.axes.positions(self._source_mesh, self._refs)
        self._steps: list[tuple[int, int]] = []  # of a dim: of the result's rows, of the operand's
        self._boxes: list[Box] = []
        self._senders = self._nesting_senders()
        for k, place in enumerate(places):
            lines = _lines_of(op, place, self._mesh, self._source_mesh)
            if lines:
                self._steps = [(line.to_step, line.at_step) for line in lines]
                self._boxes += self._found_boxes(lines, [Piece(0, k, 1)] if len(places) > 1 else [])
        self._block: tuple[int, ...] = op.operands[places[0]].type.shape
        if len(places) > 1:
            self._block = len(places), *self._block
            self._steps = [(1, 1), *self._steps]

    def _nesting_senders(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Where tiles nest: the step and the sender, by receiver and shard. Each step is a permutation."""
        senders = {}
        device = self._scope.axes.places(self._mesh)
        at = np.argsort(device)
        for step, row in enumerate(self._op.sender_steps or []):
            for receiver, sender in zip(at.tolist(), at[row].tolist()):
                senders[receiver, int(self._position[sender])] = step, sender
        return senders

    def _found_boxes(self, lines: list[Line], first: list[Piece]) -> Iterator[Box]:
        device_at = {place: i for i, place in enumerate(zip(self._group.tolist(), self._position.tolist()))}
        tiles = [
            self._scope.axes.positions(self._mesh, axes_of_dim(dim, self._mesh))[1]
            for dim in attributes(self._op)["to"]
        ]
        known: dict[tuple[int, int], dict[int, Piece]] = {}
        for receiver in range(self._mesh.size):
            pieces = []
            for d, line in enumerate(lines):
                key = d, int(tiles[d][receiver])
                if key not in known:
                    known[key] = line.pieces(key[1])
                pieces.append(known[key])
            for shards in product(*pieces):
                position = 0
                for refs, shard in zip(self._axes, shards):
                    position = position * size_of(refs) + shard
                nesting = self._senders.get((receiver, position))
                step, sender = nesting or (0, device_at[int(self._group[receiver]), position])
                yield Box(sender, receiver, (*first, *[own[j] for own, j in zip(pieces, shards)]), step)

    def moves(self) -> list[str]:
        """The text of each move: how boxes travel, which box a device sends, and where the boxes go that it has."""
        own = [box for box in self._boxes if box.sender == box.receiver]
        sent = [box for box in self._boxes if box.sender != box.receiver]
        texts = [self._move("None", self._block, (1,) * len(self._block), {}, _slots(own))] if own else []
        if not sent:
            return texts
        along = along_of(self._scope, self._op, self._refs, self._source_mesh)
        size = item_size(self._op.operands[0].type.dtype)
        starts, ends = self._bounds(sent)
        whole = tuple(max(ends[i][d] - starts[i][d] for i in starts) for d in range(len(self._block)))
        rounds = self._rounds(sent)
        gathered = math.prod(whole) * (along.size - 1)
        permutes = sum(len(each.steps) for each in rounds)
        if permutes > _MOST_PERMUTES or (permutes > 2 and gathered <= _cost(rounds)[0]):
            self._scope.transfer("all_gather", along.size, float(gathered * size), self._op)
            way = f"dict(axis_name={along.arguments})"
            return [*texts, self._move(way, whole, (1,) * len(whole), starts, _slots(sent))]
        strides = tuple(abs(at_step) for _, at_step in self._steps)
        for each in rounds:
            for _ in each.steps:
                self._scope.transfer("collective_permute", along.size, float(math.prod(each.shape) * size), self._op)
            boxes = each.boxes
            texts.append(self._move(repr(each.steps), each.shape, strides, self._bounds(boxes)[0], [boxes]))
        return texts

    def _rounds(self, sent: list[Box]) -> list[Round]:
        """The way of permutes that sends least, among those of few permutes if there are any."""
        ways = [_by_step(sent)] if self._senders else []
        senders = [sent]
        if self._source_mesh != self._mesh:
            senders.append(_balanced(sent, self._position.tolist()))
        for boxes in senders:
            ways += [_by_distance(boxes), *[_first_fit(boxes, waste) for waste in _WASTES]]
        return min([way for way in ways if _cost(way)[1] <= _MOST_PERMUTES] or ways, key=_cost)

    def _bounds(self, boxes: Sequence[Box]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """The first row, and the row after the last, of what each device sends."""
        starts: dict[int, list[int]] = {}
        ends: dict[int, list[int]] = {}
        for box in boxes:
            rows = [(x.at, x.at + at_step * (x.count - 1)) for x, (_, at_step) in zip(box.pieces, self._steps)]
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
        places = self._places[0] if len(self._places) == 1 else self._places
        return f"({places}, {way}, {shape}, {strides}, {sent}, [{', '.join(placed)}])"

    def _slot(self, boxes: Sequence[Box], strides: tuple[int, ...], starts: dict[int, list[int]]) -> str:
        """One received box of each device: the sender's place, and (to, count, first row of the box) of each dim."""
        senders: list[int | None] = [None] * self._mesh.size
        rows = [[(0, 0, 0)] * len(strides) for _ in range(self._mesh.size)]
        zeros = [0] * len(strides)
        for box in boxes:
            senders[box.receiver] = int(self._position[box.sender])
            own = zip(box.pieces, starts.get(box.sender, zeros), strides)
            rows[box.receiver] = [(piece.to, piece.count, (piece.at - at) // stride) for piece, at, stride in own]
        steps = [(to_step, at_step // stride) for (to_step, at_step), stride in zip(self._steps, strides)]
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


def _balanced(sent: Sequence[Box], positions: Sequence[int]) -> list[Box]:
    """The boxes from those devices that hold them and have sent least: each step is then one permutation."""
    holders: dict[int, list[int]] = defaultdict(list)
    for device, position in enumerate(positions):
        holders[position].append(device)
    load = [0] * len(positions)
    found = []
    for box in sent:
        sender = min(holders[positions[box.sender]], key=load.__getitem__)
        load[sender] += 1
        found.append(replace(box, sender=sender))
    return found


def _cost(rounds: Sequence[Round]) -> tuple[int, int]:
    """The elements that one device receives, the most of all, and the number of permutes."""
    received: dict[int, int] = defaultdict(int)
    for each in rounds:
        for box in each.boxes:
            received[box.receiver] += math.prod(each.shape)
    return max(received.values()), sum(len(each.steps) for each in rounds)


def _by_step(boxes: Sequence[Box]) -> list[Round]:
    rounds: dict[int, list[Box]] = defaultdict(list)
    for box in boxes:
        rounds[box.step].append(box)
    return [Round(each, [[(box.sender, box.receiver) for box in each]]) for each in rounds.values()]


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
    alike: dict[Any, list[int]] = {}
    for place in range(count):
        alike.setdefault(_form_of(scope, op, place), []).append(place)
    moves = [move for places in alike.values() for move in Moved(scope, op, places).moves()]
    fill = scope(op.operands[count]) if len(op.operands) > count else "0"
    table = scope.table("MOVES", f"[{', '.join(moves)}]")
    helper = scope.helper("exchange_boxes")
    operands = listed(map(scope, op.operands[:count]))
    return call(helper, operands, fill, op.results[0].type.shape, table)
