# SPDX-License-Identifier: Apache-2.0
"""The rows of a comparison: a program's collectives beside those of the hand-over's ledger and of JAX's HLO."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..dtypes import numpy_dtype
from ..reports.collective_rows import CollectiveRow
from ..reports.tables import format_bytes
from .hlo import HloCollective

__all__ = ["CollectiveRows", "ComparisonRow", "Totals"]


@dataclass
class Totals:
    """The work of one side in a class of ops.

    Attributes:
        count: the executions of collectives, as far as they are known; other ops, each once, also those in loops.
        bytes: received by one device for collectives; of the results on one device for other ops.
        seconds: of all devices together, in one run; 0 if the profiler gives no times.
    """

    count: int = 0
    bytes: float = 0.0
    seconds: float = 0.0

    @property
    def ms(self) -> float:
        """The time in milliseconds."""
        return 1e3 * self.seconds

    def add(self, size: float, times: int = 1) -> None:
        """Add an op that runs this often."""
        self.count += times
        self.bytes += size * times


@dataclass(frozen=True)
class ComparisonRow:
    """A collective, or a class of other ops, on both sides.

    Attributes:
        name: the kind of the collective, or the class.
        where: the user's source line of a collective of the program. "" for one that only JAX has, and for a class.
        ours: in the program. Equal collectives of one line share their time evenly.
        handed: the collectives that the JAX program has for it; None for a class and for a function of `jax.jit`.
        theirs: in JAX.
    """

    name: str
    where: str
    ours: Totals
    handed: tuple[CollectiveRow, ...] | None
    theirs: Totals

    @property
    def handed_text(self) -> str:
        """The collectives of ``handed`` with their bytes in one run; "" if they are those of the program."""
        if self.handed is None:
            return ""
        sums: dict[str, Totals] = defaultdict(Totals)
        for row in self.handed:
            sums[row.kind].add(row.bytes, row.count)
        same = {self.name: (self.ours.count, self.ours.bytes)}
        if {kind: (own.count, own.bytes) for kind, own in sums.items()} == same:
            return ""
        return " + ".join(f"{own.count} {kind}, {format_bytes(own.bytes)}" for kind, own in sums.items()) or "nothing"

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, with values that JSON supports."""
        handed = None if self.handed is None else [row.to_dict() for row in self.handed]
        sides = {"ours": asdict(self.ours), "handed": handed, "theirs": asdict(self.theirs)}
        return {"name": self.name, "where": self.where, **sides}


class CollectiveRows:
    """Makes the rows of collectives.

    Args:
        ours: all collectives of the local program.
        handed: those of the JAX program, each with the index of the one of the program that it is made for; None for
            other functions.
        theirs: those of the HLO after SPMD partitioning.
    """

    def __init__(
        self,
        ours: Sequence[CollectiveRow],
        handed: Sequence[tuple[int, CollectiveRow]] | None,
        theirs: Sequence[HloCollective],
    ) -> None:
        self._ours = ours
        self._handed = None if handed is None else [[row for i, row in handed if i == n] for n in range(len(ours))]
        expected = list(enumerate(ours)) if handed is None else handed
        self._theirs, self._owners = theirs, _owners(expected, theirs)
        self._is_sent = [row.bytes > 0 for row in ours]
        for i, row in handed or ():
            self._is_sent[i] = self._is_sent[i] or row.bytes > 0
        self._our_seconds = [0.0] * len(ours)
        self._their_seconds = [0.0] * len(theirs)

    def add_ours(self, step: dict[str, Any]) -> bool:
        """Add the time of a step of a run; False if it is none of these collectives."""
        kind, size = step["op"].removeprefix("shardwise."), step["bytes"] / step["shards"]
        tests: list[Callable[[Any], bool]] = [
            lambda i: self._is_sent[i] and kind in (self._ours[i].kind, _OP_OF.get(self._ours[i].kind)),
            lambda i: (self._ours[i].file, self._ours[i].line) == (step["file"], step["line"]),
            lambda i: _local_bytes(self._ours[i]) == size,
        ]
        return _share(step["duration_ns"] / 1e9, self._our_seconds, self._ours, tests)

    def add_theirs(self, instruction: HloCollective, seconds: float) -> bool:
        """Add the time of a collective of the final HLO, where names are new; False if there is none of its kind."""
        tests: list[Callable[[Any], bool]] = [
            lambda i: self._theirs[i].kind == instruction.kind,
            lambda i: self._theirs[i].bytes == instruction.bytes,
            lambda i: self._theirs[i].name == instruction.name,
        ]
        return _share(seconds, self._their_seconds, self._theirs, tests)

    def rows(self) -> list[ComparisonRow]:
        """A row for each collective of the program that sends, then one for each that only JAX has."""
        found = []
        for i, row in enumerate(self._ours):
            if self._is_sent[i]:
                theirs = Totals()
                for j, owner in enumerate(self._owners):
                    if owner == i:
                        theirs.add(self._theirs[j].bytes, self._theirs[j].count)
                        theirs.seconds += self._their_seconds[j]
                ours = Totals(row.count, row.total_bytes, self._our_seconds[i])
                handed = None if self._handed is None else tuple(self._handed[i])
                found.append(ComparisonRow(row.kind, row.location, ours, handed, theirs))
        for own, owner, seconds in zip(self._theirs, self._owners, self._their_seconds):
            if owner is None:
                theirs = Totals(own.count, own.bytes * own.count, seconds)
                found.append(ComparisonRow(own.kind, "", Totals(), None, theirs))
        return found


# An exchange that permutes whole tiles is a collective_permute in the ledger.
_OP_OF = {"collective_permute": "exchange"}


def _owners(expected: Iterable[tuple[int, CollectiveRow]], theirs: Sequence[HloCollective]) -> list[int | None]:
    """For each collective of JAX, the next one of the program with its kind and bytes; None if none is left."""
    waiting: dict[tuple[str, float], list[tuple[int, int]]] = defaultdict(list)
    for i, row in expected:
        waiting[row.kind, row.bytes].append((row.count, i))
    owners: list[int | None] = []
    for own in theirs:
        left = waiting[own.kind, own.bytes]
        place = next((n for n, (count, _) in enumerate(left) if count == own.count), 0)
        owners.append(left.pop(place)[1] if left else None)
    return owners


def _share(seconds: float, sums: list[float], rows: Sequence[Any], tests: Sequence[Callable[[Any], bool]]) -> bool:
    """Divide a time among the rows that pass the first test and as many of the next ones as some row passes."""
    places = [i for i in range(len(rows)) if tests[0](i)]
    for test in tests[1:]:
        places = [i for i in places if test(i)] or places
    runs = sum(max(rows[i].count, 1) for i in places)
    for i in places:
        sums[i] += seconds * max(rows[i].count, 1) / runs
    return bool(places)


def _local_bytes(row: CollectiveRow) -> int:
    return sum(numpy_dtype(part.dtype).itemsize * math.prod(part.shape) for part in row.separate())
