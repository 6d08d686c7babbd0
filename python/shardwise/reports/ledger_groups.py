# SPDX-License-Identifier: Apache-2.0
"""A ledger grouped by its columns, and two ledgers compared.

A program of 48 layers has a thousand collectives, but only a few source lines cause them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from os.path import basename
from typing import Any

from ..errors import is_one_of, message, shown
from .collective_rows import CollectiveRow
from .tables import Report, format_bytes, short_location

__all__ = ["CollectiveGroup", "LedgerDiff", "LedgerDifference", "LedgerGroups"]

_MOST_ROWS = 40  # of groups that are printed
_KEYS: dict[str, Callable[[Any], Any]] = {
    "kind": attrgetter("kind"),
    "axes": attrgetter("axes"),
    "devices": attrgetter("group_size"),
    "type": attrgetter("type"),
    "where": attrgetter("location"),
    "cause": attrgetter("cause"),
    "file": attrgetter("file"),
    "dtype": attrgetter("dtype"),
    "name": attrgetter("name"),
}


def checked_keys(what: str, keys: Sequence[str]) -> tuple[str, ...]:
    """The columns to group by. Raises ValueError for an unknown column, TypeError for no sequence."""
    if not isinstance(keys, Iterable):
        raise TypeError(message(what, "keys must be a sequence of names of columns", shown(keys)))
    keys = (keys,) if isinstance(keys, str) else tuple(keys)
    for key in keys:
        if not is_one_of(key, _KEYS):
            raise ValueError(message(what, f"keys must be of {', '.join(_KEYS)}", repr(key)))
    if not keys:
        raise ValueError(message(what, "needs at least one key", keys, f"use some of {', '.join(_KEYS)}"))
    if len(set(keys)) < len(keys):
        raise ValueError(message(what, "each key must be given once", keys))
    return keys


def totals_by(keys: tuple[str, ...], rows: Sequence[CollectiveRow]) -> dict[tuple[Any, ...], tuple[int, float]]:
    """Executions and bytes of the rows of each key, in the order of the program."""
    getters = [_KEYS[key] for key in keys]
    found: dict[tuple[Any, ...], tuple[int, float]] = {}
    for row in rows:
        key = tuple(get(row) for get in getters)
        count, size = found.get(key, (0, 0.0))
        found[key] = (count + row.count, size + row.total_bytes)
    return found


def _key_cells(by: Sequence[str], key: Sequence[Any], short: bool = False) -> list[str]:
    cells = [short_location(str(value)) for value in key]
    return [basename(cell) if short and name in ("where", "file") else cell for name, cell in zip(by, cells)]


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True)
class CollectiveGroup:
    """The collectives of a program that have one key.

    Attributes:
        key: the value of each column that the ledger is grouped by.
        count: the number of executions in one run.
        bytes: received by one device in all these executions.
        share: the fraction of the ledger's bytes, from 0 to 1.
    """

    key: tuple[Any, ...]
    count: int
    bytes: float
    share: float


class LedgerGroups(Report[CollectiveGroup]):
    """A ledger grouped by columns: the group of most bytes first. Made by :meth:`Ledger.group_by`."""

    def __init__(self, rows: Sequence[CollectiveGroup], by: tuple[str, ...], ledger: str) -> None:
        super().__init__(rows)
        self.by = by
        self._ledger = ledger

    @classmethod
    def of(cls, rows: Sequence[CollectiveRow], by: tuple[str, ...], ledger: str) -> LedgerGroups:
        """The groups of these rows; ``ledger`` is the line that describes all of them."""
        whole = sum(row.total_bytes for row in rows)
        groups = [
            CollectiveGroup(key, count, size, size / whole if whole else 0.0)
            for key, (count, size) in totals_by(by, rows).items()
        ]
        return cls(sorted(groups, key=lambda group: -group.bytes), by, ledger)

    def _with(self, rows: Sequence[CollectiveGroup]) -> LedgerGroups:
        return LedgerGroups(rows, self.by, self._ledger)

    def summary(self) -> str:
        """One line: the total, and the columns of the groups."""
        return f"{self._ledger}, by {_joined(self.by)}" if self.rows else self._ledger

    def to_dict(self) -> dict[str, Any]:
        """``{"by": [column, …], "groups": [{column: …, "count": …, "bytes": …, "share": …}, …]}``."""
        return {"by": list(self.by), "groups": self._records()}

    def _header(self) -> Sequence[str]:
        return (*self.by, "count", "bytes", "share")

    def _cells(self, row: CollectiveGroup) -> Sequence[str]:
        return (*_key_cells(self.by, row.key), str(row.count), format_bytes(row.bytes), f"{row.share:.1%}")

    def _terminal_cells(self, row: CollectiveGroup) -> Sequence[str]:
        return (*_key_cells(self.by, row.key, short=True), *self._cells(row)[len(self.by) :])

    def _records(self) -> list[dict[str, Any]]:
        return [
            {**dict(zip(self.by, row.key)), "count": row.count, "bytes": row.bytes, "share": row.share}
            for row in self.rows
        ]

    def _drawn(self) -> Sequence[CollectiveGroup]:
        return self.rows[:_MOST_ROWS]

    def _heading(self) -> str:
        return f"{self.summary()}, largest first:"

    def _footing(self) -> str:
        rest = self.rows[_MOST_ROWS:]
        noun = "group" if len(rest) == 1 else "groups"
        return f"… {len(rest)} more {noun}, {format_bytes(sum(row.bytes for row in rest))}" if rest else ""


@dataclass(frozen=True)
class LedgerDifference:
    """A difference between two programs for one key.

    Attributes:
        change: ``"-"`` only the first program has it, ``"+"`` only the second, ``"~"`` counts or bytes differ.
        key: the value of each column that the ledgers are compared by.
        counts: executions in one run of the first program and of the second.
        bytes: received by one device in all these executions, of both programs.
    """

    change: str
    key: tuple[Any, ...]
    counts: tuple[int, int]
    bytes: tuple[float, float]


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
                rows.append(LedgerDifference(change, key, (count, new_count), (size, new_size)))
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
        return f"{len(self.rows)} {noun} by {_joined(self.by)}, {total} received per device"

    def to_dict(self) -> dict[str, Any]:
        """``{"by": […], "total_bytes": [first, second], "differences": [{"change": "+", …}, …]}``."""
        return {"by": list(self.by), "total_bytes": list(self.total_bytes), "differences": self._records()}

    def _header(self) -> Sequence[str]:
        return ("", *self.by, "count", "bytes")

    def _fields(self) -> Sequence[str]:
        return ("change", *self.by, "count_before", "count_after", "bytes_before", "bytes_after")

    def _cells(self, row: LedgerDifference) -> Sequence[str]:
        return (row.change, *_key_cells(self.by, row.key), *self._numbers(row))

    def _terminal_cells(self, row: LedgerDifference) -> Sequence[str]:
        return (row.change, *_key_cells(self.by, row.key, short=True), *self._numbers(row))

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
