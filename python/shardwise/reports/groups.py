# SPDX-License-Identifier: Apache-2.0
"""Rows grouped by columns: a program of 48 layers has thousands of values, but only a few source lines make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import basename
from typing import Any, TypeVar

from ..errors import is_one_of, message, shown
from .tables import Report, format_bytes, short_location

__all__ = ["Group", "Groups", "Keyed", "checked_keys", "joined", "key_cells"]

Getters = Mapping[str, Callable[[Any], Any]]
AnyGroup = TypeVar("AnyGroup", bound="Group")
_MOST_ROWS = 40  # of groups that are printed


_OTHER_NAMES = {"line": "where"}  # what else users call a column


def checked_keys(what: str, keys: Sequence[str], columns: Getters) -> tuple[str, ...]:
    """The columns to group by: ``"line"`` is ``"where"``.

    Raises:
        ValueError: an unknown column. TypeError: no sequence.
    """
    if not isinstance(keys, Iterable):
        raise TypeError(message(what, "keys must be a sequence of names of columns", shown(keys)))
    keys = (keys,) if isinstance(keys, str) else tuple(keys)
    named: tuple[Any, ...] = keys  # what users gave
    keys = tuple(_OTHER_NAMES.get(key, key) if isinstance(key, str) else key for key in named)
    for key in keys:
        if not is_one_of(key, columns):
            raise ValueError(message(what, f"keys must be of {', '.join(columns)}", repr(key)))
    if not keys:
        raise ValueError(message(what, "needs at least one key", keys, f"use some of {', '.join(columns)}"))
    if len(set(keys)) < len(keys):
        raise ValueError(message(what, "each key must be given once", keys))
    return keys


def key_cells(by: Sequence[str], key: Sequence[Any], short: bool = False) -> list[str]:
    """The text of a key, a cell for each column."""
    cells = [short_location(str(value)) for value in key]
    return [basename(cell) if short and name in ("where", "file") else cell for name, cell in zip(by, cells)]


def joined(names: Sequence[str]) -> str:
    """``where, kind and axes``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


class Keyed:
    """A row with a key: each column of the key is an attribute, such as ``group.where``."""

    key: tuple[Any, ...]
    by: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        by = self.__dict__.get("by", ())
        if name in by:
            return self.key[by.index(name)]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self.by]


@dataclass(frozen=True)
class Group(Keyed):
    """The rows of a report that have one key.

    Attributes:
        key: the value of each column that the report is grouped by; each is an attribute, too: ``group.where``.
        count: how many there are in one run.
        bytes: of all of them, on one device.
        share: the fraction of the report's bytes, from 0 to 1.
        by: the names of the key's columns.
    """

    key: tuple[Any, ...]
    count: int
    bytes: float
    share: float
    by: tuple[str, ...] = field(default=(), compare=False, repr=False)


class Groups(Report[AnyGroup]):
    """A report grouped by columns: the group of most bytes first.

    Attributes:
        by: the columns.
    """

    def __init__(self, rows: Sequence[AnyGroup], by: tuple[str, ...], whole: str) -> None:
        super().__init__(rows)
        self.by = by
        self._whole = whole  # the line that describes all rows

    def _with(self, rows: Sequence[AnyGroup]) -> Any:
        return type(self)(rows, self.by, self._whole)

    def summary(self) -> str:
        """One line: the total, and the columns of the groups."""
        return f"{self._whole}, by {joined(self.by)}" if self.rows else self._whole

    def to_dict(self) -> dict[str, Any]:
        """``{"by": [column, …], "groups": [{column: …, "count": …, "bytes": …, "share": …}, …]}``."""
        return {"by": list(self.by), "groups": self._records()}

    def _header(self) -> Sequence[str]:
        return (*self.by, "count", "bytes", "share")

    def _cells(self, row: AnyGroup) -> Sequence[str]:
        return (*key_cells(self.by, row.key), str(row.count), format_bytes(row.bytes), f"{row.share:.1%}")

    def _terminal_cells(self, row: AnyGroup) -> Sequence[str]:
        return (*key_cells(self.by, row.key, short=True), *self._cells(row)[len(self.by) :])

    def _records(self) -> list[dict[str, Any]]:
        return [
            {**dict(zip(self.by, row.key)), "count": row.count, "bytes": row.bytes, "share": row.share}
            for row in self.rows
        ]

    def _drawn(self) -> Sequence[AnyGroup]:
        return self.rows[:_MOST_ROWS]

    def _heading(self) -> str:
        return f"{self.summary()}, largest first:"

    def _footing(self) -> str:
        rest = self.rows[_MOST_ROWS:]
        noun = "group" if len(rest) == 1 else "groups"
        return f"… {len(rest)} more {noun}, {format_bytes(sum(row.bytes for row in rest))}" if rest else ""


def groups_of(
    kind: Callable[..., AnyGroup], totals: Mapping[tuple[Any, ...], tuple[int, float]], by: tuple[str, ...]
) -> list[AnyGroup]:
    """The groups of these keys with their counts and bytes, largest first."""
    whole = sum(size for _, size in totals.values())
    rows = [kind(key, count, size, size / whole if whole else 0.0, by) for key, (count, size) in totals.items()]
    return sorted(rows, key=lambda group: -group.bytes)
