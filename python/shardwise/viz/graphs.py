# SPDX-License-Identifier: Apache-2.0
"""The program of one device as a graph: each value with its tiles, and the collectives between them.

``h = np.maximum(x @ w, 0)`` gives the nodes ``x``, ``w``, ``dot_general`` and ``h = maximum``, each with its tiles.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

from ..reports.collective_rows import COLLECTIVE_KINDS, CollectiveRow
from ..reports.tables import format_bytes
from ..svg import MARK, arrow, hue, label, rect, svg, text_at
from .areas import ranges

if TYPE_CHECKING:
    from .._core.ir import Op, Value
    from .._core.mesh import Placement
    from ..programs.stages import Program

__all__ = ["graph_svg", "is_drawn"]

_COLUMN, _ROW = 290, 72  # from one node to the next, across and down
_TILES = 92, 48  # the area of the tiles of a value
_MARGIN = 24  # left of the first column, for arrows past other nodes
_LINE = 13  # from one line of a label to the next
_MOST_NODES = 24  # a larger graph is not readable; the text of the program is
_MOST_TILES = 16  # along one side
_MOST_DEVICES = 256  # that are named in tiles
_COLLECTIVES = {f"shardwise.{kind}" for kind in COLLECTIVE_KINDS}


@dataclass
class _Node:
    """A value in the graph.

    Attributes:
        value: the argument or result that the node shows.
        lines: the label.
        operands: the nodes of the operands, by the numbers of their values.
        is_collective: whether it is marked.
        row: of the grid, from 0; ``x`` is the left border.
    """

    value: Value
    lines: Sequence[str]
    operands: Sequence[int] = ()
    is_collective: bool = False
    row: int = 0
    x: float = _MARGIN


def is_drawn(program: Program) -> bool:
    """Whether the graph of a program is small enough to be read."""
    return len(_nodes(program)) <= _MOST_NODES


def graph_svg(program: Program) -> str:
    """The arguments and the ops of one device's program, from top to bottom; collectives are marked.

    Each value has its tiles, with the devices that hold them, and the shape of one tile. Constants are left out.
    """
    nodes = _nodes(program)
    _place(nodes)
    parts = [_edge(nodes[number], node) for node in nodes.values() for number in node.operands]
    for node in nodes.values():
        parts += _drawn(node)
    width = max((node.x for node in nodes.values()), default=0) + _COLUMN
    height = (max((node.row for node in nodes.values()), default=0) + 1) * _ROW - (_ROW - _TILES[1] - 8)
    return svg(width, height, parts, f"graph of {program!r}")


def _nodes(program: Program) -> dict[int, _Node]:
    """The values to draw, by their numbers, in the order of the program."""
    body = program._compiled.stages["local"].main.body
    names = dict(enumerate(program._traced.in_names))
    arguments = enumerate(body.arguments)
    nodes = {value.number: _Node(value, [names.get(i, value.name), *_described(value)]) for i, value in arguments}
    received = iter(program.collectives().rows)
    for index, op in enumerate(body.ops):
        row = next(received) if op.name in _COLLECTIVES else None
        deque(islice(received, _collectives_in(op)), maxlen=0)  # those of a loop's body are not drawn
        operands = list(dict.fromkeys(value.number for value in op.operands if value.number in nodes))
        if not operands or not op.results:
            continue
        following = body.ops[index + 1].location.variable if index + 1 < len(body.ops) else ""
        lines = [_title(op, following), *_described(op.results[0])] if row is None else _received(row)
        node = _Node(op.results[0], lines, operands, row is not None)
        nodes |= {value.number: node for value in op.results}  # one node stands for all results of a loop
    return nodes


def _collectives_in(op: Op) -> int:
    """How many collectives the regions of an op contain."""
    inner = [each for region in op.regions for each in region.ops]
    return sum((each.name in _COLLECTIVES) + _collectives_in(each) for each in inner)


def _title(op: Op, following: str) -> str:
    """``h = maximum``: the last op of an expression names its variable; ``following`` is the next op's variable."""
    kind, name = op.name.partition(".")[2], op.location.variable
    return f"{name} = {kind}" if name and name != following else kind


def _received(row: CollectiveRow) -> list[str]:
    return [row.kind, row.axes, f"{format_bytes(row.bytes)} received per device"]


def _described(value: Value) -> list[str]:
    """The type of one tile, which axes split which dim, and the axes along which a sum is still pending."""
    kind = f"{value.type.dtype}[{','.join(map(str, value.type.shape))}]"
    if value.placement is None:
        return [kind]
    dims, _, unreduced = value.placement.sharding.dims_text().partition(", unreduced")
    return [kind, dims, f"unreduced{unreduced}"] if unreduced else [kind, dims]


def _place(nodes: dict[int, _Node]) -> None:
    """Give each node its row, below its operands, and its place in the row, near their middle."""
    users: dict[int, list[_Node]] = {}
    for node in nodes.values():
        node.row = max((nodes[number].row + 1 for number in node.operands), default=0)
        for number in node.operands:
            users.setdefault(number, []).append(node)
    for number, node in nodes.items():
        if not node.operands and number in users:  # an argument stands above its first user
            node.row = max(min(user.row for user in users[number]) - 1, 0)
    unique = list({id(node): node for node in nodes.values()}.values())
    for row in range(max((node.row for node in unique), default=-1) + 1):
        free = float(_MARGIN)
        in_row = [node for node in unique if node.row == row]
        for node in sorted(in_row, key=lambda node: not node.operands):  # arguments to the right of ops
            operands = [nodes[number] for number in node.operands]
            places = [each.x for each in operands if each.operands] or [each.x for each in operands]
            node.x = max(sum(places) / len(places) if places else free, free)
            free = node.x + _COLUMN


def _edge(operand: _Node, user: _Node) -> str:
    """An arrow from below one node to above the other; past the nodes of other rows, it arrives from the left."""
    (width, height), start, end = _TILES, operand.row * _ROW + 4, user.row * _ROW + 4
    if user.row - operand.row == 1 or operand.x > user.x:
        x, to_x, bend = operand.x + width / 2, user.x + width / 2, (end - start - height) / 2
        return arrow((x, start + height), (x, start + height + bend), (to_x, end - bend), (to_x, end))
    middle, to_x = end + height / 2, user.x
    if operand.x == user.x:
        beside = operand.x - _MARGIN
        return arrow((operand.x, start + height / 2), (beside, start + height), (beside, end), (to_x, middle))
    x = operand.x + width / 2
    return arrow((x, start + height), (x, middle), (to_x - width, middle), (to_x, middle))


def _drawn(node: _Node) -> list[str]:
    """The tiles of a node, and its label to the right of them."""
    top, left = node.row * _ROW + 4, node.x + _TILES[0] + 8
    parts = [] if node.value.placement is None else _tiles(node.value.placement, node.x, top)
    if node.is_collective:
        parts.append(rect(left - 6, top, _COLUMN - _TILES[0] - 10, _TILES[1], MARK, node.lines[0]))
    first = top + _TILES[1] / 2 - _LINE * (len(node.lines) - 1) / 2
    return parts + [text_at(left, first + i * _LINE, line, "start") for i, line in enumerate(node.lines)]


def _tiles(placement: Placement, x: float, y: float) -> list[str]:
    """A grid of the tiles along the dims that are split, at most two of them, with the devices of each tile."""
    counts = [prod(size for _, _, size in axes) for axes, _ in placement.dims]
    split = [dim for dim, count in enumerate(counts) if count > 1][:2]
    across = split[-1:] if len(split) == 2 or len(counts) > 2 or split == [1] else []
    down = [dim for dim in split if dim not in across]
    rows, columns = prod(counts[dim] for dim in down), prod(counts[dim] for dim in across)
    if max(rows, columns) > _MOST_TILES:
        count = f"{rows * columns} tiles"
        return [rect(x, y, *_TILES, hue(0, 1), count), *label(x, y, *_TILES, count)]
    labels = _holders(placement, counts, (*down, *across)) or [""] * (rows * columns)
    width, height = _TILES[0] / columns, _TILES[1] / rows
    parts = []
    for index, devices in enumerate(labels):
        row, column = divmod(index, columns)
        left, top = x + column * width, y + row * height
        parts.append(
            rect(left, top, width, height, hue(index, rows * columns), f"devices {devices}" if devices else "")
        )
        parts += label(left, top, width, height, devices)
    return parts


def _holders(placement: Placement, counts: Sequence[int], drawn: Sequence[int]) -> list[str]:
    """The devices of each tile along these dims, in row-major order; empty for large meshes."""
    mesh = placement.mesh
    if mesh.size > _MOST_DEVICES:
        return []
    shape = [count * tile for count, (_, tile) in zip(counts, placement.dims)]
    found: dict[tuple[int, ...], list[int]] = {}
    for position, slices in enumerate(placement.sharding.slices(shape)):
        found.setdefault(tuple(slices[dim][0] for dim in drawn), []).append(mesh.device_at(position))
    return [ranges(devices) for _, devices in sorted(found.items())]
