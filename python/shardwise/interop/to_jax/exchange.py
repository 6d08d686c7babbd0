# SPDX-License-Identifier: Apache-2.0
"""An exchange as collectives of `jax.lax`: permutes of boxes, one all-to-all of padded boxes, or one gather.

The form is the one with the fewest bytes in the ledger. Only permutes send a box from one device to many along a tree:
each device that has it sends it on, so p - 1 receivers take ⌈log2 p⌉ permutes.
Rows of boxes are arithmetic on the device's indices where they can be, else tables by device.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np

from ..._core.ir import Op
from ..source.collectives import axes_of_dim, exchange_source, exchange_tile, mesh_of, size_of, source_mesh_of
from ..source.mesh_axes import AxisRef
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .boxes import Box, Line, Piece
from .collectives import along_of, item_size
from .permutes import Round, best_rounds, cost
from .target import emits

__all__: list[str] = []


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


@dataclass(frozen=True)
class Groups:
    """Devices along some axes.

    Attributes:
        refs: the axes.
        group: the group of each device. Devices of a group differ along these axes only.
        position: the position of each device in its group.
    """

    refs: tuple[AxisRef, ...]
    group: list[int]
    position: list[int]

    @classmethod
    def of(cls, scope: Scope, mesh: Any, refs: Iterable[AxisRef]) -> Groups:
        found = tuple(refs)
        group, position = scope.axes.positions(mesh, found)
        return cls(found, group.tolist(), position.tolist())

    @cached_property
    def device_at(self) -> dict[tuple[int, int], int]:
        """The device of a group and a position."""
        return {place: i for i, place in enumerate(zip(self.group, self.position))}

    def inside(self, box: Box) -> Box:
        """The same box from the device of the receiver's group that has it, too."""
        return replace(box, sender=self.device_at[self.group[box.receiver], self.position[box.sender]])

    def used(self, boxes: Sequence[Box]) -> list[AxisRef]:
        """The axes along which a box changes its position."""
        sizes = [size for _, _, size in self.refs]
        pairs = {(self.position[box.sender], self.position[box.receiver]) for box in boxes}
        digits = np.array(np.unravel_index(np.array(sorted(pairs)).T, sizes))  # by axis, end, pair
        return [ref for ref, (sent, received) in zip(self.refs, digits) if (sent != received).any()]


@dataclass(frozen=True)
class Form:
    """Collectives that deliver the boxes.

    Attributes:
        transfers: kind, devices of a group, and elements that one device receives, of each collective.
        write: the texts of the moves; called if the form is chosen.
    """

    transfers: list[tuple[str, int, int]]
    write: Callable[[], list[str]]

    @property
    def cost(self) -> tuple[int, int]:
        """Elements first; then collectives, of which two cost no more than one."""
        return sum(elements for _, _, elements in self.transfers), max(len(self.transfers), 2)


class Moved:
    """What devices send each other of some operands, which have the same blocks, axes and steps.

    Several operands are one, with the place of the operand as one more dim: then their boxes travel together.
    """

    def __init__(self, scope: Scope, op: Op, places: list[int]) -> None:
        self._scope, self._op, self._places = scope, op, places
        self._mesh, self._source_mesh = mesh_of(scope, op), source_mesh_of(scope, op)
        self._axes = _axes_of(op, places[0], self._source_mesh)
        self._shards = Groups.of(scope, self._source_mesh, chain.from_iterable(self._axes))
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
                senders[receiver, self._shards.position[sender]] = step, sender
        return senders

    def _found_boxes(self, lines: list[Line], first: list[Piece]) -> Iterator[Box]:
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
                step, sender = nesting or (0, self._shards.device_at[self._shards.group[receiver], position])
                yield Box(sender, receiver, (*first, *[own[j] for own, j in zip(pieces, shards)]), step)

    def moves(self) -> list[str]:
        """The text of each move: a collective, which boxes a device sends, and where the boxes go that it has then."""
        own = [box for box in self._boxes if box.sender == box.receiver]
        sent = [box for box in self._boxes if box.sender != box.receiver]
        if not sent:
            return self._kept(own)
        rounds = best_rounds(sent, self._shards.position, self._steps, bool(self._senders))
        forms = [self._permutes(own, rounds)] if rounds else []
        if not rounds or cost(rounds)[1] > 1:
            boxes = [self._shards.inside(box) for box in sent]
            groups = Groups.of(self._scope, self._source_mesh, self._shards.used(boxes))
            forms += [self._gather(own, boxes, groups), self._all_to_all(own, boxes, groups)]
        best = min(forms, key=lambda form: form.cost)
        size = item_size(self._op.operands[0].type.dtype)
        for kind, count, elements in best.transfers:
            self._scope.transfer(kind, count, float(elements * size), self._op)
        return best.write()

    def _kept(self, own: list[Box]) -> list[str]:
        """The boxes that stay where they are."""
        if not own:
            return []
        starts = dict.fromkeys(range(self._mesh.size), [0] * len(self._block))
        placed = [(k, box, starts[box.sender]) for k, box in _numbered(own)]
        ones, senders = (1,) * len(self._block), [0] * (1 + max(k for k, _, _ in placed))
        return [self._move("None, None", self._block, ones, starts, [senders], placed)]

    def _permutes(self, own: list[Box], rounds: list[Round]) -> Form:
        strides = tuple(abs(at_step) for _, at_step in self._steps)

        def write() -> list[str]:
            texts = self._kept(own)
            for each in rounds:
                starts = self._starts(each.boxes, each.shape, strides)
                placed = [(0, box, starts[box.sender]) for box in each.boxes]
                how = f"'collective_permute', {each.steps}"
                texts.append(self._move(how, each.shape, strides, starts, [[0]], placed))
            return texts

        size = size_of(self._shards.refs)
        return Form([("collective_permute", size, math.prod(each.shape)) for each in rounds for _ in each.steps], write)

    def _gather(self, own: list[Box], boxes: list[Box], groups: Groups) -> Form:
        """Each device receives the rows that any other one needs."""
        shape = self._hull(boxes)
        size = size_of(groups.refs)
        keeps_shape = self._hull([*boxes, *own]) == shape

        def write() -> list[str]:
            members = [*boxes, *own] if keeps_shape else boxes
            texts = [] if keeps_shape else self._kept(own)
            ones = (1,) * len(shape)
            starts = self._starts(members, shape, ones)
            received: dict[int, list[Box]] = defaultdict(list)
            for box in sorted(members, key=lambda box: groups.position[box.sender]):
                received[box.receiver].append(box)
            placed = [(k, box, starts[box.sender]) for each in received.values() for k, box in enumerate(each)]
            count = max(map(len, received.values()))
            senders: list[Any] = [None] * self._mesh.size
            for receiver, each in received.items():
                senders[receiver] = [groups.position[box.sender] for box in each] + [0] * (count - len(each))
            how = f"'all_gather', dict(axis_name={self._along(groups)})"
            return [*texts, self._move(how, shape, ones, starts, senders, placed)]

        return Form([("all_gather", size, math.prod(shape) * (size - 1))], write)

    def _hull(self, boxes: Sequence[Box]) -> tuple[int, ...]:
        """The shape of the rows that one device sends, the most along each dim."""
        lows, highs = self._bounds(boxes)
        return tuple(max(highs[i][d] - lows[i][d] for i in lows) for d in range(len(self._block)))

    def _all_to_all(self, own: list[Box], boxes: list[Box], groups: Groups) -> Form:
        """Each device has a box for each other one, padded to one shape."""
        shape = tuple(map(max, zip(*[box.shape for box in boxes])))
        fits = all(n <= most for box in own for n, most in zip(box.shape, shape))
        several = 1 + max(k for k, _ in _numbered(boxes))  # boxes of a pair of devices
        fits = fits and all(k < several for k, _ in _numbered(own))
        members = [*boxes, *own] if fits else boxes
        size = size_of(groups.refs)

        def write() -> list[str]:
            strides = tuple(abs(at_step) for _, at_step in self._steps)
            starts = {box.sender: [[0] * len(shape) for _ in range(size * several)] for box in members}
            placed = []
            for nth, box in _numbered(members):
                start = self._starts([box], shape, strides)[box.sender]
                starts[box.sender][groups.position[box.receiver] * several + nth] = start
                placed.append((groups.position[box.sender] * several + nth, box, start))
            how = f"'all_to_all', dict(axes={self._along(groups)})"
            senders = [[*range(size * several)]]
            texts = [] if fits else self._kept(own)
            return [*texts, self._move(how, shape, strides, starts, senders, placed)]

        return Form([("all_to_all", size, several * math.prod(shape) * (size - 1))], write)

    def _along(self, groups: Groups) -> str:
        return along_of(self._scope, self._op, groups.refs, self._source_mesh).arguments

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

    def _starts(self, boxes: Sequence[Box], shape: Sequence[int], strides: Sequence[int]) -> dict[int, list[int]]:
        """The first row that each device sends. A box of this shape must not end after the operand."""
        return {
            i: [min(x, n - k) if stride == 1 else x for x, n, k, stride in zip(own, self._block, shape, strides)]
            for i, own in self._bounds(boxes)[0].items()
        }

    def _move(
        self,
        how: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        starts: Mapping[int, Any],
        senders: Sequence[Any],
        placed: Sequence[tuple[int, Box, list[int]]],
    ) -> str:
        """The text of a move.

        Args:
            how: the texts of the collective and its arguments.
            shape, strides: the shape of a box, and the distance of its rows in the operand.
            starts: the first row of the box that a device sends, or of each of them.
            senders: for each received box, its place among those that the collective gives to the device.
            placed: the place of a box among those received, and the row of the operand where it starts.
        """
        count = next(len(each) for each in senders if each is not None)
        rows = [[[(0, 0, 0)] * len(strides) for _ in range(count)] for _ in range(self._mesh.size)]
        for k, box, start in placed:
            pieces = zip(box.pieces, start, strides)
            rows[box.receiver][k] = [(piece.to, piece.count, (piece.at - at) // stride) for piece, at, stride in pieces]
        steps = [(to_step, at_step // stride) for (to_step, at_step), stride in zip(self._steps, strides)]
        sent = self._table([starts.get(i) for i in range(self._mesh.size)])
        places = self._places[0] if len(self._places) == 1 else self._places
        tables = f"{steps}, {self._table(senders)}, {self._table(rows)}"
        return f"({places}, {how}, {shape}, {strides}, {sent}, {tables})"

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


def _numbered(boxes: Sequence[Box]) -> Iterator[tuple[int, Box]]:
    """Each box with the number of those before it from the same device to the same device."""
    known = Counter[tuple[int, int]]()
    for box in boxes:
        yield known[box.sender, box.receiver], box
        known[box.sender, box.receiver] += 1


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
