# SPDX-License-Identifier: Apache-2.0
"""The boxes that devices send each other in an exchange."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

__all__ = ["Box", "Line", "Piece"]


@dataclass(frozen=True)
class Piece:
    """Rows that one device sends to another along a dim: row to + k·to_step is the sender's row at + k·at_step."""

    to: int
    at: int
    count: int

    def cut(self, limit: int, step: tuple[int, int]) -> list[Piece]:
        """Pieces with at most ``limit`` rows. ``step``: to_step and at_step."""
        starts = range(0, self.count, limit)
        return [Piece(self.to + k * step[0], self.at + k * step[1], min(limit, self.count - k)) for k in starts]


@dataclass(frozen=True)
class Box:
    """What one device sends to another, with a piece for each dim.

    Attributes:
        step: where tiles nest: the boxes of a step are a permutation.
        operand: the number of the operand, among those that travel together.
        part: for a part of a box, its number along each dim.
        limits: for a part of a box, the most rows along each dim.
    """

    sender: int
    receiver: int
    pieces: tuple[Piece, ...]
    step: int = 0
    operand: int = 0
    part: tuple[int, ...] = ()
    limits: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows along each dim."""
        return tuple(piece.count for piece in self.pieces)

    def cut(self, limits: Sequence[int], steps: Sequence[tuple[int, int]]) -> list[Box]:
        """Boxes of the same rows with at most so many along each dim."""
        rows = [list(enumerate(piece.cut(limit, step))) for piece, limit, step in zip(self.pieces, limits, steps)]
        return [
            replace(self, pieces=tuple(piece for _, piece in own), part=tuple(i for i, _ in own), limits=tuple(limits))
            for own in product(*rows)
        ]


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
