# SPDX-License-Identifier: Apache-2.0
"""An exchange as collectives of `jax.lax`: permutes of boxes, one all-to-all of padded boxes, or one gather.

The form is the one with the fewest bytes in the ledger. Only permutes send a box from one device to many along a tree:
each device that has it sends it on, so p - 1 receivers take ⌈log2 p⌉ permutes.
The text describes the dims and names the collectives; exchange_helpers.py computes the boxes and their places from it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np

from ..._core.ir import Op
from ..source.collectives import (
    WIDEST_CALL,
    axes_of_dim,
    dims_of_exchange,
    exchange_source,
    exchange_tile,
    mesh_of,
    size_of,
    source_mesh_of,
)
from ..source.literals import axes_text
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
        helper: the function of exchange_helpers.py that delivers them so.
        write: the text of its argument; called if the form is chosen.
    """

    transfers: list[tuple[str, int, int]]
    helper: str
    write: Callable[[], str]

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
                self._boxes += self._found_boxes(lines, k)
        if len(places) > 1:
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

    def _found_boxes(self, lines: list[Line], number: int) -> Iterator[Box]:
        """The boxes of an operand."""
        tiles = [
            self._scope.axes.positions(self._mesh, axes_of_dim(dim, self._mesh))[1]
            for dim in attributes(self._op)["to"]
        ]
        first = [Piece(0, number, 1)] if len(self._places) > 1 else []
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
                yield Box(sender, receiver, (*first, *[own[j] for own, j in zip(pieces, shards)]), step, number)

    def text(self) -> str:
        """The text of a source of `exchange`: the function of the collectives, dims, and the function's argument.

        Empty if no row of the operands is in the result.
        """
        if not self._boxes:
            return ""
        own = [box for box in self._boxes if box.sender == box.receiver]
        sent = [box for box in self._boxes if box.sender != box.receiver]
        best = self._best(own, sent) if sent else Form([], "by_nothing", lambda: "None")
        size = item_size(self._op.operands[0].type.dtype)
        for kind, count, elements in best.transfers:
            self._scope.transfer(kind, count, float(elements * size), self._op)
        meshes = self._source_mesh, self._mesh
        dims = ", ".join(dims_of_exchange(self._op, place, meshes, self._position) for place in self._places)
        dims = f"[{dims}]" if len(self._places) > 1 else dims
        numbers = f", {self._places}" if self._places != [0] else ""
        return f"({self._scope.helper(best.helper)}, {dims}, {best.write()}{numbers})"

    def _best(self, own: list[Box], sent: list[Box]) -> Form:
        """The form that sends least."""
        rounds = best_rounds(sent, self._shards.position, self._steps, bool(self._senders))
        forms = [self._permutes(rounds)] if rounds else []
        if not rounds or cost(rounds)[1] > 1:
            boxes = [self._shards.inside(box) for box in sent]
            groups = Groups.of(self._scope, self._source_mesh, self._shards.used(boxes))
            forms += [self._gather(boxes, groups), self._all_to_all(boxes, groups)]
        return min(forms, key=lambda form: form.cost)

    def _permutes(self, rounds: list[Round]) -> Form:
        def write() -> str:
            text = f"[{', '.join(map(self._round, rounds))}]"
            limits = rounds[0].boxes[0].limits
            return f"({text}, {limits})" if limits else text

        size = size_of(self._shards.refs)
        transfers = [("collective_permute", size, math.prod(each.shape)) for each in rounds for _ in each.steps]
        return Form(transfers, "by_permutes", write)

    def _round(self, each: Round) -> str:
        """The text of a round: how many places after its receiver each sender is, or the pairs of its steps."""
        shift = self._shift_of(each)
        if shift is not None:
            return str(shift)
        more = {box.receiver: self._entry(box) for box in each.boxes}
        steps = [[(sender, receiver, *more[receiver]) for sender, receiver in pairs] for pairs in each.steps]
        return repr(steps)

    def _shift_of(self, each: Round) -> int | None:
        """How many places after its receiver each sender is; None if they differ, or are not all that have rows."""
        count, first = self._mesh.size, each.boxes[0]
        shift = (first.sender - first.receiver) % count
        if first.limits or len(each.steps) > 1:
            return None
        ends = [(box.receiver, self._shards.position[box.sender]) for box in self._boxes]
        pairs = [(i, self._shards.position[(i + shift) % count]) for i in range(count)]
        wanted = sorted(end for end in ends if end in set(pairs))
        found = sorted((box.receiver, self._shards.position[box.sender]) for box in each.boxes)
        is_shift = all((box.sender - box.receiver) % count == shift for box in each.boxes)
        return shift if is_shift and found == wanted else None

    def _entry(self, box: Box) -> tuple[Any, ...]:
        """The number of the operand if there are several, then the part along each dim, without zeros at the end."""
        numbers = [*box.part]
        if len(self._places) > 1:
            numbers[:1] = [box.operand]
        while numbers and numbers[-1] == 0:
            numbers.pop()
        return tuple(numbers)

    def _gather(self, boxes: list[Box], groups: Groups) -> Form:
        """Each device receives the rows that any other one needs."""
        size = size_of(groups.refs)
        elements = math.prod(self._hull(boxes)) * (size - 1)
        return Form([("all_gather", size, elements)], "by_gather", lambda: self._along(groups))

    def _hull(self, boxes: Sequence[Box]) -> tuple[int, ...]:
        """The shape of the rows that one device sends, the most along each dim."""
        lows: dict[int, list[int]] = {}
        highs: dict[int, list[int]] = {}
        for box in boxes:
            rows = [(x.at, x.at + at_step * (x.count - 1)) for x, (_, at_step) in zip(box.pieces, self._steps)]
            low, high = [min(row) for row in rows], [max(row) + 1 for row in rows]
            lows[box.sender] = [*map(min, lows.get(box.sender, low), low)]
            highs[box.sender] = [*map(max, highs.get(box.sender, high), high)]
        return tuple(max(highs[i][d] - lows[i][d] for i in lows) for d in range(len(self._steps)))

    def _all_to_all(self, boxes: list[Box], groups: Groups) -> Form:
        """Each device has a box for each other one, padded to one shape."""
        shape = tuple(map(max, zip(*[box.shape for box in boxes])))
        several = max(Counter((box.sender, box.receiver) for box in boxes).values())  # boxes of a pair of devices
        size = size_of(groups.refs)
        elements = several * math.prod(shape) * (size - 1)
        return Form([("all_to_all", size, elements)], "by_all_to_all", lambda: self._along(groups))

    def _along(self, groups: Groups) -> str:
        """The axes of groups, or a table of the groups' devices."""
        along = along_of(self._scope, self._op, groups.refs, self._source_mesh)
        return along.groups.partition("=")[2] or along.axes

    def _position(self, mesh: Any, refs: Sequence[AxisRef]) -> str:
        """Axes of a dim, or a table of the devices' positions along axes that have no names."""
        names = self._scope.axes.names(refs) if self._scope.axes.is_main(mesh) else None
        if names is None and size_of(refs) > 1:
            return self._scope.table("POSITIONS", repr(self._scope.axes.positions(mesh, refs)[1].tolist()))
        return axes_text(names) if names else "()"


@emits("shardwise.exchange")
def exchange(scope: Scope, op: Op) -> str:
    count = len(attributes(op)["from"])
    alike: dict[Any, list[int]] = {}
    for place in range(count):
        alike.setdefault(_form_of(scope, op, place), []).append(place)
    texts = [Moved(scope, op, places).text() for places in alike.values()]
    fill = scope(op.operands[count]) if len(op.operands) > count else "0"
    operands = listed(map(scope, op.operands[:count]))
    sources = f"[{', '.join(text for text in texts if text)}]"
    helper, shape = scope.helper("exchange"), op.results[0].type.shape
    text = call(helper, operands, fill, shape, sources)
    return text if len(text) <= WIDEST_CALL else call(helper, operands, fill, shape, scope.table("SOURCES", sources))
