# SPDX-License-Identifier: Apache-2.0
"""What a program computes again to stay within a memory limit: :meth:`Program.rematerialized`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import Any, Literal

from .groups import Getters, Group, Groups, checked_keys, groups_of, key_cells
from .price import duration
from .tables import LocatedRow, Report, format_bytes, short_location, type_text

__all__ = [
    "Rematerialization",
    "RematerializedGroup",
    "RematerializedGroups",
    "RematerializedRow",
    "rematerialization_of",
]


How = Literal["gathered again", "computed again", "sent again", "windowed", "row by row", "kept"]


@dataclass(frozen=True)
class RematerializedRow(LocatedRow):
    """A value that is not kept until its last use, or one that is kept so that others need not be.

    Attributes:
        value: the variable that holds it; "" where it has none.
        op: the op that makes it.
        shape, dtype: of the whole tensor, in one trip if it is in a loop.
        how: ``"gathered again"``, ``"computed again"``, ``"sent again"`` (other collectives), ``"windowed"`` (a product
            in a loop, so that no device has the whole operand), ``"row by row"`` (each scan makes a row of a stack in
            the trip that reads it, so that no device has the whole stack), or ``"kept"``.
        bytes: less at the peak, of all trips if it is in a loop; negative for a value that is kept instead.
        ps: picoseconds more in a run.
        file, line: the user's source line.
    """

    value: str
    op: str
    shape: tuple[int, ...]
    dtype: str
    how: How
    bytes: int
    ps: int
    file: str = ""
    line: int = 0

    @property
    def type(self) -> str:
        """Dtype and shape of the whole tensor: ``float32[4096,64]``."""
        return type_text(self.dtype, self.shape)

    @property
    def seconds(self) -> float:
        """The time in seconds."""
        return self.ps / 1e12

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {**asdict(self), "type": self.type, "seconds": self.seconds}


@dataclass(frozen=True)
class RematerializedGroup(Group):
    """The values of a ladder that have one key.

    Attributes:
        seconds: of all of them, in a run.
    """

    seconds: float = 0.0


class RematerializedGroups(Groups[RematerializedGroup]):
    """A ladder by columns, first what frees most. Made by :meth:`Rematerialization.group_by`."""

    def _header(self) -> Sequence[str]:
        return (*self.by, "count", "bytes", "seconds")

    def _cells(self, row: RematerializedGroup) -> Sequence[str]:
        return (*key_cells(self.by, row.key), str(row.count), _freed(row.bytes), _more(row.seconds))

    def _records(self) -> list[dict[str, Any]]:
        return [{**record, "seconds": row.seconds} for record, row in zip(super()._records(), self.rows)]


def _freed(size: float) -> str:
    return f"{'-' if size > 0 else '+'}{format_bytes(abs(size))}" if size else ""


def _more(seconds: float) -> str:
    return f"+{duration(seconds)}" if seconds else ""


_KEYS: Getters = {name: attrgetter(name) for name in ("where", "op", "type", "how", "value", "file", "dtype")}
_GROUPED_BY = ("where", "op", "type", "how")


class Rematerialization(Report[RematerializedRow]):
    """What a program computes again to stay within a memory limit; first what frees most.

    Attributes:
        limit: the bytes that a device has for the program.
        before_bytes, after_bytes: the peaks without and with that. What a run takes is never more
            (:meth:`Program.memory`). If the limit cannot be kept, ``after_bytes`` is the smallest peak that was found,
            and there are no rows.
        kept: the pairs of op and type of whole tensors, such as ``("stablehlo.tanh", "float32[4096,64]")``, of which
            values are alive at a peak that is lowered, and stay.

    A report of more than 24 rows prints grouped by line, op, type and how.
    """

    _noun = "value"

    def __init__(
        self,
        rows: Sequence[RematerializedRow],
        limit: int,
        before_bytes: int,
        after_bytes: int,
        kept: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        super().__init__(rows)
        self.kept = kept
        self.limit = limit
        self.before_bytes = before_bytes
        self.after_bytes = after_bytes

    @property
    def fits(self) -> bool:
        """Whether the limit can be kept."""
        return self.after_bytes <= self.limit

    @property
    def seconds(self) -> float:
        """The time that a run takes more, of kernels and transfers one after the other."""
        return sum(row.ps for row in self.rows) / 1e12

    def group_by(self, *keys: str) -> RematerializedGroups:
        """The values grouped by columns, first what frees most.

        Args:
            keys: any of ``"where"`` (or ``"line"``), ``"op"``, ``"type"``, ``"how"``, ``"value"``, ``"file"``,
                ``"dtype"``. Default: ``"where"``, ``"op"``, ``"type"`` and ``"how"``.

        Raises:
            ValueError: a key is not a column.
        """
        by = checked_keys("group_by", keys or _GROUPED_BY, _KEYS)
        grouped: dict[tuple[Any, ...], list[RematerializedRow]] = {}
        for row in self.rows:
            grouped.setdefault(tuple(_KEYS[name](row) for name in by), []).append(row)
        totals = {key: (len(rows), float(sum(row.bytes for row in rows))) for key, rows in grouped.items()}
        groups = groups_of(RematerializedGroup, totals, by)
        timed = [replace(group, seconds=sum(row.seconds for row in grouped[group.key])) for group in groups]
        return RematerializedGroups(timed, by, self.summary())

    def _grouped(self) -> RematerializedGroups:
        return self.group_by()

    def summary(self) -> str:
        """One line: the limit, the peaks and the time."""
        within = f"limit {format_bytes(self.limit)}: peak {format_bytes(self.after_bytes)}"
        if not self.fits:
            return f"{within} at least, {format_bytes(self.before_bytes)} without computing anything again"
        if not self.rows:
            return f"{within}, nothing is computed again"
        return f"{within} instead of {format_bytes(self.before_bytes)}, +{duration(self.seconds)}"

    def in_words(self) -> str:
        """What is to be done about a program that is too large, for one line."""
        if not self.fits:
            return f"{format_bytes(self.after_bytes)} at least, whatever is computed again"
        count = len(self.rows)
        return f"fits if {count} value{'s are' if count != 1 else ' is'} made again, +{duration(self.seconds)}"

    def to_dict(self) -> dict[str, Any]:
        """The report as values that JSON supports."""
        sizes = {"limit": self.limit, "before_bytes": self.before_bytes, "after_bytes": self.after_bytes}
        return {**sizes, "fits": self.fits, "seconds": self.seconds, "rows": self._records()}

    def _with(self, rows: Sequence[Any]) -> Rematerialization:
        return Rematerialization(rows, self.limit, self.before_bytes, self.after_bytes, self.kept)

    def _header(self) -> Sequence[str]:
        return "value", "op", "type", "how", "bytes", "seconds", "where"

    def _fields(self) -> Sequence[str]:
        return [*RematerializedRow.__dataclass_fields__, "type", "seconds"]

    def _cells(self, row: RematerializedRow) -> Sequence[str]:
        size, time = _freed(row.bytes), _more(row.seconds)
        return row.value, row.op.partition(".")[2], row.type, row.how, size, time, short_location(row.where)


def rematerialization_of(
    limit: int, before: int, after: int, rows: Sequence[tuple[Any, ...]], kept: Sequence[tuple[Any, ...]]
) -> Rematerialization:
    """The report of what the extension says of a compiled program."""
    made = []
    for value, op, shape, dtype, is_transfer, again, size, ps, file, line in rows:
        if is_transfer and again == "computed again":
            again = "gathered again" if op == "shardwise.all_gather" else "sent again"
        how: How = "kept" if size < 0 else again
        made.append(RematerializedRow(value, op, shape, dtype, how, size, ps, file, line))
    pairs = frozenset((op, type_text(dtype, shape)) for op, shape, dtype in kept)
    return Rematerialization(sorted(made, key=lambda row: -row.bytes), limit, before, after, pairs)
