# SPDX-License-Identifier: Apache-2.0
"""A ledger grouped by its columns, and two ledgers compared.

A program of 48 layers has a thousand collectives, but only a few source lines cause them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from .collective_rows import CollectiveRow
from .groups import Getters, Group, Groups, Keyed, groups_of, joined, key_cells
from .tables import Report, format_bytes

__all__ = ["KEYS", "CollectiveGroup", "LedgerDiff", "LedgerDifference", "LedgerGroups", "totals_by"]

KEYS: Getters = {
    "kind": attrgetter("kind"),
    "axes": attrgetter("axes"),
    "devices": attrgetter("devices"),
    "type": attrgetter("type"),
    "where": attrgetter("where"),
    "cause": attrgetter("cause"),
    "file": attrgetter("file"),
    "dtype": attrgetter("dtype"),
    "name": attrgetter("name"),
}


def totals_by(keys: tuple[str, ...], rows: Sequence[CollectiveRow]) -> dict[tuple[Any, ...], tuple[int, float]]:
    """Executions and bytes of the rows of each key, in the order of the program; of all operands of a combined one."""
    getters = [KEYS[key] for key in keys]
    found: dict[tuple[Any, ...], tuple[int, float]] = {}
    for row in rows:
        sizes: dict[tuple[Any, ...], float] = {}
        for part in row.separate():
            key = tuple(get(part) for get in getters)
            sizes[key] = sizes.get(key, 0.0) + part.total_bytes
        for key, total in sizes.items():
            count, size = found.get(key, (0, 0.0))
            found[key] = (count + row.count, size + total)
    return found


class CollectiveGroup(Group):
    """The collectives of a program that have one key; ``bytes`` are received by one device in all executions."""


class LedgerGroups(Groups[CollectiveGroup]):
    """A ledger grouped by columns: the group of most bytes first. Made by :meth:`Ledger.group_by`."""

    @classmethod
    def of(cls, rows: Sequence[CollectiveRow], by: tuple[str, ...], ledger: str) -> LedgerGroups:
        """The groups of these rows; ``ledger`` is the line that describes all of them."""
        return cls(groups_of(CollectiveGroup, totals_by(by, rows), by), by, ledger)


@dataclass(frozen=True)
class LedgerDifference(Keyed):
    """A difference between two programs for one key.

    Attributes:
        change: ``"-"`` only the first program has it, ``"+"`` only the second, ``"~"`` counts or bytes differ.
        key: the value of each column that the ledgers are compared by; each is an attribute, too: ``row.where``.
        counts: executions in one run of the first program and of the second; also as ``count``, the column.
        bytes: received by one device in all these executions, of both programs.
        by: the names of the key's columns.
    """

    change: str
    key: tuple[Any, ...]
    counts: tuple[int, int]
    bytes: tuple[float, float]
    by: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def count(self) -> tuple[int, int]:
        """The same as ``counts``."""
        return self.counts


class LedgerDiff(Report[LedgerDifference]):
    """The differences between two ledgers, the largest change of bytes first; false if there are none.

    Made by :meth:`Ledger.diff`.
    """

    def __init__(self, rows: Sequence[LedgerDifference], by: tuple[str, ...], total_bytes: tuple[float, float]) -> None:
        super().__init__(rows)
        self.by = by
        self.total_bytes = total_bytes

    @classmethod
    def of(cls, first: Sequence[CollectiveRow], second: Sequence[CollectiveRow], by: tuple[str, ...]) -> LedgerDiff:
        """The differences of the rows of two programs."""
        before, after = totals_by(by, first), totals_by(by, second)
        rows = []
        for key in {**before, **after}:
            (count, size), (new_count, new_size) = before.get(key, (0, 0.0)), after.get(key, (0, 0.0))
            if (count, size) != (new_count, new_size):
                change = "+" if key not in before else "-" if key not in after else "~"
                rows.append(LedgerDifference(change, key, (count, new_count), (size, new_size), by))
        rows.sort(key=lambda row: -abs(row.bytes[1] - row.bytes[0]))
        sums = [sum(row.total_bytes for row in ledger) for ledger in (first, second)]
        return cls(rows, by, (sums[0], sums[1]))

    def _with(self, rows: Sequence[LedgerDifference]) -> LedgerDiff:
        return LedgerDiff(rows, self.by, self.total_bytes)

    def summary(self) -> str:
        """One line: how many differences, and the bytes of both programs."""
        if not self.rows:
            return "no difference"
        noun = "difference" if len(self.rows) == 1 else "differences"
        total = " → ".join(map(format_bytes, self.total_bytes))
        return f"{len(self.rows)} {noun} by {joined(self.by)}, {total} received per device"

    def to_dict(self) -> dict[str, Any]:
        """``{"by": […], "total_bytes": [first, second], "differences": [{"change": "+", …}, …]}``."""
        return {"by": list(self.by), "total_bytes": list(self.total_bytes), "differences": self._records()}

    def _header(self) -> Sequence[str]:
        return ("", *self.by, "count", "bytes")

    def _fields(self) -> Sequence[str]:
        return ("change", *self.by, "count_before", "count_after", "bytes_before", "bytes_after")

    def _cells(self, row: LedgerDifference) -> Sequence[str]:
        return (row.change, *key_cells(self.by, row.key), *self._numbers(row))

    def _terminal_cells(self, row: LedgerDifference) -> Sequence[str]:
        return (row.change, *key_cells(self.by, row.key, short=True), *self._numbers(row))

    def _numbers(self, row: LedgerDifference) -> tuple[str, str]:
        counts, sizes = [str(count) for count in row.counts], [format_bytes(size) for size in row.bytes]
        if row.change == "~":
            return " → ".join(dict.fromkeys(counts)), " → ".join(dict.fromkeys(sizes))
        side = 1 if row.change == "+" else 0
        return counts[side], sizes[side]

    def _records(self) -> list[dict[str, Any]]:
        return [dict(zip(self._fields(), (row.change, *row.key, *row.counts, *row.bytes))) for row in self.rows]

    def _heading(self) -> str:
        return f"{self.summary()}:"

    def _footing(self) -> str:
        return ""
