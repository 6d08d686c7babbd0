# SPDX-License-Identifier: Apache-2.0
"""Why an op is computed as it is: the ways that were not chosen, and what the program would cost with them.

Each price is that of a whole compilation in which the way is pinned: :meth:`Program.choice_price`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .price import Price
from .tables import short_location

__all__ = ["ChosenOp", "Decision", "ImpossibleWay", "Instead", "Way", "decision_of"]


@dataclass(frozen=True)
class ChosenOp:
    """How one op is computed.

    Attributes:
        op: its name in the program text, ``"stablehlo.dot_general"``.
        method: the method that computes it instead of its sharding rule, such as ``"exchange"``; "" by the rule.
        operands: the sharding that it takes of each operand.
        results: the sharding of each result, with the axes over which it is left unreduced.
    """

    op: str
    method: str
    operands: tuple[str, ...]
    results: tuple[str, ...]

    def __str__(self) -> str:
        by = f"by {self.method}: " if self.method else ""
        return f"{by}{', '.join(self.operands)} -> {', '.join(self.results)}"


@dataclass(frozen=True)
class Way:
    """One way to compute an op.

    Attributes:
        how: an entry of :attr:`Choices.ops`: ``sw.Choices(ops={decision.key: way.how})`` pins it.
        price: of the whole program with it.
        difference: ``price`` less that of the program as it is.
    """

    how: ChosenOp
    price: Price
    difference: Price

    def __str__(self) -> str:
        return str(self.how)


@dataclass(frozen=True)
class ImpossibleWay:
    """A way that does not fit the ops around it, such as a sum of what another op has reduced already.

    Attributes:
        how: the way.
        reason: the error of a compilation that pins it.
    """

    how: ChosenOp
    reason: str

    def __str__(self) -> str:
        return f"{self.how}: impossible; {self.reason}"


@dataclass(frozen=True)
class Decision:
    """How one op is computed, and the best other ways.

    Attributes:
        key: its key in :attr:`Program.choices`.
        op: its name, ``"stablehlo.dot_general"``.
        location: ``file:line``.
        chosen: how it is computed.
        others: at most two, the cheapest first, by what the program was compiled for: time or bytes.
        cheaper: how many of them are cheaper than the chosen way. The partitioner decides one op after another, and
            sees only what the op itself costs.
        considered: how many ways have a price.
        impossible: the ways that have none.
    """

    key: str
    op: str
    location: str
    chosen: Way
    others: tuple[Way, ...]
    cheaper: int
    considered: int
    impossible: tuple[ImpossibleWay, ...] = ()

    def _lines(self) -> Iterator[tuple[int, str]]:
        where = f" ({short_location(self.location)})" if self.location else ""
        ways = "1 way was" if self.considered == 1 else f"{self.considered} ways were"
        yield 0, f"{self.op}{where} is computed {self.chosen}; {ways} considered."
        for way in self.others:
            advice = "; it is cheaper, so pin it (Decision.key, Way.how)" if way in self.others[: self.cheaper] else ""
            yield 1, f"{way}: {way.difference}{advice}"
        if self.impossible:
            more = "1 more way does" if len(self.impossible) == 1 else f"{len(self.impossible)} more ways do"
            yield 1, f"{more} not fit the ops around it (Decision.impossible)"

    def __str__(self) -> str:
        return "\n".join("  " * depth + text for depth, text in self._lines())


@dataclass(frozen=True)
class Instead:
    """What another annotation would cost.

    Attributes:
        name: the value that it is of.
        sharding: the annotation.
        price: of the program with it.
        difference: ``price`` less that of the program as it is.
    """

    name: str
    sharding: str
    price: Price
    difference: Price

    def __str__(self) -> str:
        return f"With {self.sharding} on {self.name} instead: {self.difference}."


def decision_of(
    key: str,
    location: str,
    chosen: ChosenOp,
    ways: Sequence[tuple[ChosenOp, Price | str]],
    before: Price,
    by_bytes: bool,
) -> Decision:
    """The decision about an op. ``ways``: how, and the price of the program with it or why it is impossible."""

    def cost(price: Price) -> tuple[int, int]:
        return (price.bytes, price.ps) if by_bytes else (price.ps, price.bytes)

    others = sorted(
        (Way(how, price, price - before) for how, price in ways if how != chosen and isinstance(price, Price)),
        key=lambda way: cost(way.price),
    )
    return Decision(
        key,
        chosen.op,
        location,
        chosen=Way(chosen, before, before - before),
        others=tuple(others[:2]),
        cheaper=sum(cost(way.price)[0] < cost(before)[0] for way in others[:2]),
        considered=len(others) + 1,
        impossible=tuple(ImpossibleWay(how, why) for how, why in ways if how != chosen and isinstance(why, str)),
    )
