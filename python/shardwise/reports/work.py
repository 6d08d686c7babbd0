# SPDX-License-Identifier: Apache-2.0
"""The work of one device by source line, and how much of it other devices repeat: :meth:`Program.work`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from ..errors import warn
from ..user_code.call_sites import called_at
from .lost_splits import LostSplit, axes_text, lost_split, op_text
from .price import scaled
from .tables import LocatedRow, Report, place, short_location

__all__ = ["WorkReport", "WorkRow", "work_of"]

_REPEATED = 0.1  # of the work of a step: more has a warning
_MOST_ROWS = 40  # that are printed


@dataclass(frozen=True)
class WorkRow(LocatedRow):
    """The work of one source line.

    Attributes:
        file: the source file; "" if it is unknown.
        line: its line.
        flops: operations on numbers of one device, in all executions: padding and repeated work are counted.
        ideal: its share of the operations of the line: those on the whole, divided by the number of devices.
        advice: what to split where devices repeat work, with the reason if a tensor was split before; "" where devices
            repeat nothing.
        cause_file: the file of the op that lost the split of a tensor, so that devices repeat this line: a loop over a
            split dim, a reshape that cuts one, an op that needs one whole. "" where nothing was split before.
        cause_line: its line.
    """

    file: str
    line: int
    flops: int
    ideal: float
    advice: str
    cause_file: str = ""
    cause_line: int = 0

    @property
    def ratio(self) -> float:
        """``flops / ideal``: 8 where eight devices compute the same."""
        return self.flops / self.ideal if self.ideal else math.inf

    def to_dict(self) -> dict[str, Any]:
        """The row as values that JSON supports."""
        return {**asdict(self), "ratio": self.ratio}


class _Repeated(NamedTuple):
    """Work that devices repeat for one cause, by its place."""

    file: str
    line: int
    amount: str
    advice: str
    is_lost: bool  # the split of a tensor


class WorkReport(Report[WorkRow]):
    """The work of one device, by source line: first those that do the most beyond their share.

    Attributes:
        rows: a :class:`WorkRow` for each line that computes something.
    """

    @property
    def flops(self) -> int:
        """The operations of one device in a run."""
        return sum(row.flops for row in self.rows)

    @property
    def ideal(self) -> float:
        """The operations of the program on the whole, divided by the number of devices."""
        return sum(row.ideal for row in self.rows)

    @property
    def ratio(self) -> float:
        """``flops / ideal``: 1 where no device repeats what another one computes, and nothing is padded."""
        return self.flops / self.ideal if self.ideal else 1.0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What repeats more than a tenth of the step's work, and the ways out: one warning for each cause.

        Lines have one cause if the split of one tensor is lost at one line: that of the loop, the reshape or the op.
        """
        found = []
        for repeated in self._repeated():
            where = short_location(place(repeated.file, repeated.line)) or "an unknown line"
            found.append(f"{where} {repeated.amount}: {repeated.advice}")
        return tuple(found)

    def warn_of_lost_splits(self) -> None:
        """Give the warnings whose cause is a lost split at their lines."""
        for repeated in self._repeated():
            if repeated.is_lost:
                at = repeated.file, repeated.line
                warn("work", f"this line {repeated.amount}", None, repeated.advice, place=at)

    def _repeated(self) -> list[_Repeated]:
        causes: dict[tuple[str, int, str], list[WorkRow]] = {}
        for row in self.rows:
            cause = (row.cause_file, row.cause_line, row.advice) if row.cause_file else (row.file, row.line, "")
            causes.setdefault(cause, []).append(row)
        found = []
        for (file, line, lost), rows in causes.items():
            flops, ideal = sum(row.flops for row in rows), sum(row.ideal for row in rows)
            share = (flops - ideal) / self.flops if self.flops else 0.0
            if share > _REPEATED:
                ratio = flops / ideal if ideal else math.inf
                amount = f"computes {ratio:.3g} times its share, {share:.0%} of all work"
                found.append(_Repeated(file, line, amount, rows[0].advice, bool(lost)))
        return found

    def summary(self) -> str:
        """One line for the whole report."""
        return f"{scaled(self.flops, 'flop')} per device, {self.ratio:.3g} times its share"

    def to_dict(self) -> dict[str, Any]:
        """The report as values that JSON supports."""
        totals = {"flops": self.flops, "ideal": self.ideal, "ratio": self.ratio}
        return {**totals, "warnings": list(self.warnings), "rows": self._records()}

    def _header(self) -> Sequence[str]:
        return "where", "flops", "ideal", "ratio"

    def _cells(self, row: WorkRow) -> Sequence[str]:
        ideal = scaled(row.ideal, "flop")
        return short_location(row.location), scaled(row.flops, "flop"), ideal, f"{row.ratio:.3g}"

    def _right(self) -> frozenset[int]:
        return frozenset({1, 2, 3})

    def _drawn(self) -> Sequence[WorkRow]:
        return self.rows[:_MOST_ROWS]

    def _fields(self) -> Sequence[str]:
        return "file", "line", "flops", "ideal", "advice", "cause_file", "cause_line", "ratio"

    def _footing(self) -> str:
        more = len(self.rows) - _MOST_ROWS
        left_out = [f"{more} more lines"] if more > 0 else []
        return "\n".join([*left_out, self.summary(), *(f"warning: {text}" for text in self.warnings)])


def work_of(rows: Sequence[tuple[Any, ...]], axis_sizes: Mapping[str, int], devices: int) -> WorkReport:
    """The report of the extension's rows, which are of ops."""
    lines: dict[tuple[str, int], list[_OpWork]] = {}
    for file, line, column, variable, op, flops, whole, (count, numerator, denominator), axes, dim, lost in rows:
        runs = Fraction(count * numerator, denominator)
        known = all(axis in axis_sizes for axis in axes)  # and not those of a mesh that the compiler made
        work = _OpWork(
            (file, line, column),
            variable,
            op,
            math.ceil(flops * runs),
            whole * runs / devices,
            axes if known else (),
            dim,
            lost_split(lost, axis_sizes),
        )
        lines.setdefault((file, line), []).append(work)
    found = []
    for (file, line), ops in lines.items():
        flops, ideal = sum(op.flops for op in ops), sum(op.ideal for op in ops)
        found.append(WorkRow(file, line, flops, float(ideal), *_advice(ops, axis_sizes)))
    return WorkReport(sorted(found, key=lambda row: row.ideal - row.flops))


class _OpWork(NamedTuple):
    place: tuple[str, int, int]
    variable: str
    op: str
    flops: int
    ideal: Fraction
    axes: Sequence[str]
    dim: int
    lost: LostSplit | None


def _advice(ops: Sequence[_OpWork], axis_sizes: Mapping[str, int]) -> tuple[str, str, int]:
    """What to split, of the op that repeats most; file and line of the op that lost the split of a tensor."""
    most = max(ops, key=lambda op: op.flops - op.ideal)
    if most.flops <= most.ideal:
        return "", "", 0
    if most.lost is not None:
        return most.lost.advice(axis_sizes), most.lost.file, most.lost.line
    name = called_at(*most.place) or op_text(most.op)
    if not most.axes:
        return f"{name} computes padding or halos; choose sizes that the axes divide", "", 0
    over = axes_text(most.axes)
    if most.dim < 0:
        return f"{name} is the same on all devices along {over}; split an operand", "", 0
    return f"split its result, sw.split({most.variable or '…'}, {most.dim}, {over}), or an operand", "", 0
