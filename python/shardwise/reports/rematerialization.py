# SPDX-License-Identifier: Apache-2.0
"""What a program computes again to stay within its memory limit: :meth:`Program.rematerialized`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from .price import duration
from .tables import LocatedRow, Report, format_bytes, short_location

__all__ = ["Rematerialization", "RematerializedRow", "rematerialization_of"]


How = Literal["gathered again", "computed again", "sent again", "windowed", "kept"]


@dataclass(frozen=True)
class RematerializedRow(LocatedRow):
    """A value that is not kept until its last use, or one that is kept so that others need not be.

    Attributes:
        value: the variable that holds it; "" where it has none.
        op: the op that makes it.
        how: ``"gathered again"``, ``"computed again"``, ``"sent again"`` (other collectives), ``"windowed"`` (a product
            in a loop, so that no device has the whole operand), or ``"kept"``.
        bytes: less at the peak, of all trips if it is in a loop; negative for a value that is kept instead.
        ps: picoseconds more in a run.
        file, line: the user's source line.
    """

    value: str
    op: str
    how: How
    bytes: int
    ps: int
    file: str = ""
    line: int = 0

    @property
    def seconds(self) -> float:
        """The time in seconds."""
        return self.ps / 1e12

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {**asdict(self), "seconds": self.seconds}


class Rematerialization(Report[RematerializedRow]):
    """What a program computes again to stay within a memory limit; first what frees most.

    Attributes:
        limit: the bytes that a device has for the program.
        before_bytes, after_bytes: the peaks without and with that. What a run takes is never more
            (:meth:`Program.memory`).
    """

    _noun = "value"

    def __init__(self, rows: Sequence[RematerializedRow], limit: int, before_bytes: int, after_bytes: int) -> None:
        super().__init__(rows)
        self.limit = limit
        self.before_bytes = before_bytes
        self.after_bytes = after_bytes

    @property
    def seconds(self) -> float:
        """The time that a run takes more, of kernels and transfers one after the other."""
        return sum(row.ps for row in self.rows) / 1e12

    def summary(self) -> str:
        """One line: the limit, the peaks and the time."""
        within = f"limit {format_bytes(self.limit)}: peak {format_bytes(self.after_bytes)}"
        if not self.rows:
            return f"{within}, nothing is computed again"
        return f"{within} instead of {format_bytes(self.before_bytes)}, +{duration(self.seconds)}"

    def to_dict(self) -> dict[str, Any]:
        """The report as values that JSON supports."""
        sizes = {"limit": self.limit, "before_bytes": self.before_bytes, "after_bytes": self.after_bytes}
        return {**sizes, "seconds": self.seconds, "rows": self._records()}

    def _with(self, rows: Sequence[Any]) -> Rematerialization:
        return Rematerialization(rows, self.limit, self.before_bytes, self.after_bytes)

    def _header(self) -> Sequence[str]:
        return "value", "op", "how", "bytes", "seconds", "where"

    def _fields(self) -> Sequence[str]:
        return [*RematerializedRow.__dataclass_fields__, "seconds"]

    def _cells(self, row: RematerializedRow) -> Sequence[str]:
        sign = "-" if row.bytes > 0 else "+"
        size = f"{sign}{format_bytes(abs(row.bytes))}" if row.bytes else ""
        time = f"+{duration(row.seconds)}" if row.ps else ""
        return row.value, row.op.partition(".")[2], row.how, size, time, short_location(row.where)


def rematerialization_of(limit: int, before: int, after: int, rows: Sequence[tuple[Any, ...]]) -> Rematerialization:
    """The report of what the extension says of a compiled program."""
    made = []
    for value, op, is_transfer, is_windowed, size, ps, file, line in rows:
        again: How = "windowed" if is_windowed else "computed again"
        if is_transfer:
            again = "gathered again" if op == "shardwise.all_gather" else "sent again"
        made.append(RematerializedRow(value, op, "kept" if size < 0 else again, size, ps, file, line))
    return Rematerialization(sorted(made, key=lambda row: -row.bytes), limit, before, after)
