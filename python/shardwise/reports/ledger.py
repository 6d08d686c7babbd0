# SPDX-License-Identifier: Apache-2.0
"""The ledger: the collectives of a program with their causes (``explanations.py`` explains shardings).

Reports are data first: dataclasses with ``to_dict()`` and ``to_json()``; tables and prose are views of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from ..errors import is_integer, message, shown
from .collective_rows import CollectiveRow, combined_operands, with_more
from .device_bytes import most_bytes
from .groups import checked_keys
from .ledger_groups import KEYS, LedgerDiff, LedgerGroups
from .tables import Report, format_bytes, short_location

__all__ = ["CollectiveRow", "Ledger"]

_COLUMNS = ("kind", "axes", "devices", "bytes", "count", "type", "where", "cause")
_BY_DEVICE = ("device_axes", "device_bytes")
_GROUPED_BY = ("where", "kind")
_COMPARED_BY = ("where", "kind", "axes")


def _cells(row: CollectiveRow) -> tuple[str, ...]:
    others = row.combined[1:]
    place = with_more(short_location(row.where), [short_location(part.where) for part in others])
    kind = f"{row.type} +{len(others)} more" if others else row.type
    why = with_more(_why(row), [_why(part) for part in row.separate()[1:]])
    return (
        row.kind, row.axes, str(row.devices), format_bytes(row.bytes), f"{row.count} {row.bound}".rstrip(), kind, place,
        why,
    )  # fmt: skip


def _why(row: CollectiveRow) -> str:
    return ", ".join(filter(None, (row.cause, row.gradient, row.reason)))


class Ledger(Report[CollectiveRow]):
    """The collectives of a program, in program order. Long ledgers print grouped by line and kind, largest first.

    >>> ledger = ledger_of([dict(kind="all_reduce", axes='{"model"}', group_size=2, bytes=4096.0, shape=(16, 64),
    ...                          dtype="float32", count=1, file="train.py", line=9, cause="reduction in dot_general")])
    >>> ledger
    kind        axes       devices  bytes  count  type            where       cause
    all_reduce  {"model"}        2  4 KiB      1  float32[16,64]  train.py:9  reduction in dot_general
    1 collective, 4 KiB received per device
    """

    _noun = "collective"

    @property
    def total_bytes(self) -> float:
        """Bytes that one device receives in one run: the maximum over devices of the sum over collectives.

        Loops of unknown length count one trip, and each branch counts as if it ran. A collective among more than 65,536
        devices counts with its maximum.
        """
        return most_bytes(self.rows)

    def by_kind(self) -> dict[str, int]:
        """The number of collectives of each kind in one run. Loops and branches count as in :attr:`total_bytes`."""
        counts: dict[str, int] = {}
        for row in self.rows:
            counts[row.kind] = counts.get(row.kind, 0) + row.count
        return counts

    def group_by(self, *keys: str) -> LedgerGroups:
        """The ledger grouped by columns, the group of most bytes first.

        Args:
            keys: any of ``"where"`` (or ``"line"``), ``"kind"``, ``"axes"``, ``"devices"``, ``"type"``, ``"cause"``,
                ``"file"``, ``"dtype"``, ``"name"``. Default: ``"where"`` and ``"kind"``.

        Raises:
            ValueError: a key is not a column.

        A collective that moves several operands together has its bytes in the groups of all of them, and counts in
        each.

        >>> row = dict(kind="all_reduce", axes='{"x"}', group_size=2, bytes=512.0, shape=(8,), dtype="float32",
        ...            file="train.py", line=9)
        >>> ledger_of([row, {**row, "line": 12}, row]).group_by("where")
        3 collectives, 1.5 KiB received per device, by where, largest first:
        where        count  bytes  share
        train.py:9       2  1 KiB  66.7%
        train.py:12      1  512 B  33.3%
        """
        return LedgerGroups.of(self.rows, checked_keys("group_by", keys or _GROUPED_BY, KEYS), self.summary())

    def largest(self, count: int = 10) -> Ledger:
        """The ``count`` collectives with the most bytes in one run, largest first.

        Raises:
            TypeError: ``count`` is not an integer of at least 0.
        """
        if not is_integer(count, 0):
            raise TypeError(message("largest", "count must be an integer that is not negative", shown(count)))
        return Ledger(sorted(self.rows, key=lambda row: -row.total_bytes)[:count])

    def diff(self, other: Any, by: Sequence[str] = _COMPARED_BY) -> LedgerDiff:
        """Compare with the ledger of another program.

        Args:
            other: the ledger of the second program.
            by: the columns by which collectives are matched, as in :meth:`group_by`. Two versions of a function have
                other lines: compare them by ``("kind", "axes")``.

        Returns:
            ``-`` only here, ``+`` only in ``other``, ``~`` counts or bytes differ; false when nothing differs.

        >>> row = dict(kind="all_reduce", axes='{"x"}', group_size=2, bytes=512.0, shape=(8,), dtype="float32",
        ...            file="train.py", line=9)
        >>> ledger_of([row]).diff(ledger_of([row, row]))
        1 difference by where, kind and axes, 512 B → 1 KiB received per device:
           where       kind        axes   count  bytes
        ~  train.py:9  all_reduce  {"x"}  1 → 2  512 B → 1 KiB
        """
        if not isinstance(other, Ledger):
            got, way_out = type(other).__name__, "pass program.collectives()"
            raise TypeError(message("diff", "takes the ledger of another program", got, way_out))
        return LedgerDiff.of(self.rows, other.rows, checked_keys("diff", by, KEYS))

    def to_dict(self) -> dict[str, Any]:
        """``{"total_bytes": …, "collectives": [{…}, …]}``."""
        return {"total_bytes": self.total_bytes, "collectives": self._records()}

    def summary(self) -> str:
        """One line: how many collectives, how many bytes."""
        if not self.rows:
            return "no collectives"
        noun = "collective" if len(self.rows) == 1 else "collectives"
        most = "at most " if any(row.bound == "at most" for row in self.rows) else ""
        total = f"{len(self.rows)} {noun}, {most}{format_bytes(self.total_bytes)} received per device"
        is_open = any(row.bound == "per trip" for row in self.rows)
        return f"{total}, with one trip of each loop of unknown length" if is_open else total

    def _header(self) -> Sequence[str]:
        return _COLUMNS

    def _fields(self) -> Sequence[str]:
        named = (f.name for f in fields(CollectiveRow) if f.name not in _BY_DEVICE)
        return [*named, "total_bytes", "where"]

    def _frame_records(self) -> list[dict[str, Any]]:
        return [
            {k: v for k, v in row.to_dict().items() if k not in _BY_DEVICE}
            | {"total_bytes": row.total_bytes, "where": row.where}
            for row in self.rows
        ]

    def _cells(self, row: CollectiveRow) -> Sequence[str]:
        return _cells(row)

    def _terminal_cells(self, row: CollectiveRow) -> Sequence[str]:
        parts = tuple(replace(part, file=os.path.basename(part.file)) for part in row.combined)
        # The rows and repr have the folders.
        return _cells(replace(row, file=os.path.basename(row.file), combined=parts))

    def _terminal_columns(self) -> Sequence[int]:
        counted = any(row.count != 1 or row.bound for row in self.rows)
        return [i for i, column in enumerate(_COLUMNS) if column != "count" or counted]

    def _grouped(self) -> LedgerGroups:
        return self.group_by()


def ledger_of(rows: Sequence[dict[str, Any]]) -> Ledger:
    """The ledger of the extension's dicts, one per collective."""
    known = {f.name for f in fields(CollectiveRow)}
    return Ledger([_row_of({k: v for k, v in row.items() if k in known}) for row in rows])


def _row_of(values: dict[str, Any]) -> CollectiveRow:
    return CollectiveRow(**{**values, "shape": tuple(values["shape"]), "combined": combined_operands(values)})
