# SPDX-License-Identifier: Apache-2.0
"""The seconds of an estimate by columns, and two estimates compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .groups import Keyed, joined, key_cells
from .price import duration
from .tables import Report

__all__ = ["EstimateDiff", "EstimateDifference", "EstimateGroup", "EstimateGroups"]

_MOST_ROWS = 40  # that are printed
Getter = Callable[[Any], Any]


@dataclass(frozen=True)
class EstimateGroup(Keyed):
    """The kernels and transfers that have one key.

    Attributes:
        key: the value of each column that the estimate is grouped by; each is an attribute, too: ``group.where``.
        seconds: of the step: all of kernels, and what is exposed of transfers.
        compute: seconds of kernels.
        exposed: seconds that the device waits for transfers.
        transfer: seconds of transfers, exposed or not.
        share: the fraction of the step, from 0 to 1.
        by: the names of the key's columns.
    """

    key: tuple[Any, ...]
    seconds: float
    compute: float
    exposed: float
    transfer: float
    share: float
    by: tuple[str, ...] = field(default=(), compare=False, repr=False)


class EstimateGroups(Report[EstimateGroup]):
    """An estimate grouped by columns: the group of most seconds first. Made by :meth:`Estimate.by`."""

    _noun = "group"

    def __init__(self, rows: Sequence[EstimateGroup], by: tuple[str, ...], whole: str) -> None:
        super().__init__(rows)
        self.by = by
        self._whole = whole  # the line that describes all rows

    @classmethod
    def of(
        cls, rows: Sequence[Any], by: tuple[str, ...], getters: Sequence[Getter], whole: str, step: float
    ) -> EstimateGroups:
        """The groups of these rows of a step that takes ``step`` seconds."""
        sums: dict[tuple[Any, ...], list[float]] = {}
        for part in (part for row in rows for part in row.separate()):
            group = sums.setdefault(tuple(get(part) for get in getters), [0.0, 0.0, 0.0])
            group[0 if part.kind == "kernel" else 2] += part.total
            group[1] += part.exposed
        groups = [
            EstimateGroup(
                key, compute + exposed, compute, exposed, transfer, (compute + exposed) / step if step else 0.0, by
            )
            for key, (compute, exposed, transfer) in sums.items()
        ]
        return cls(sorted(groups, key=lambda group: (-group.seconds, -group.transfer)), by, whole)

    def _with(self, rows: Sequence[Any]) -> EstimateGroups:
        return EstimateGroups(rows, self.by, self._whole)

    def summary(self) -> str:
        """One line: the whole, and the columns of the groups."""
        return f"{self._whole}, by {joined(self.by)}" if self.rows else self._whole

    def to_dict(self) -> dict[str, Any]:
        """``{"by": [column, …], "groups": [{column: …, "seconds": …, …}, …]}``."""
        return {"by": list(self.by), "groups": self._records()}

    def _records(self) -> list[dict[str, Any]]:
        names = ("seconds", "compute", "exposed", "transfer", "share")
        return [{**dict(zip(self.by, row.key)), **{name: getattr(row, name) for name in names}} for row in self.rows]

    def _grouped(self) -> None:
        return None

    def _header(self) -> Sequence[str]:
        return (*self.by, "seconds", "share", "compute", "exposed", "transfer")

    def _cells(self, row: EstimateGroup) -> Sequence[str]:
        times = (duration(seconds) if seconds else "" for seconds in (row.compute, row.exposed, row.transfer))
        return (*key_cells(self.by, row.key), duration(row.seconds), f"{row.share:.1%}", *times)

    def _terminal_cells(self, row: EstimateGroup) -> Sequence[str]:
        return (*key_cells(self.by, row.key, short=True), *self._cells(row)[len(self.by) :])

    def _right(self) -> frozenset[int]:
        return frozenset(range(len(self.by), len(self._header())))

    def _drawn(self) -> Sequence[EstimateGroup]:
        return self.rows[:_MOST_ROWS]

    def _heading(self) -> str:
        return f"{self.summary()}, largest first:"

    def _footing(self) -> str:
        rest = self.rows[_MOST_ROWS:]
        return f"… {len(rest)} more, {duration(sum(row.seconds for row in rest))}" if rest else ""


@dataclass(frozen=True)
class EstimateDifference(Keyed):
    """A difference between two estimates for one key.

    Attributes:
        change: ``"-"`` only the first has it, ``"+"`` only the second, ``"~"`` the seconds differ.
        key: the value of each column that the estimates are compared by; each is an attribute, too: ``row.where``.
        seconds: of the step, in the first and in the second: of kernels, and of transfers what is exposed.
        transfer: seconds of transfers, exposed or not, of both.
        by: the names of the key's columns.
    """

    change: str
    key: tuple[Any, ...]
    seconds: tuple[float, float]
    transfer: tuple[float, float]
    by: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def delta(self) -> float:
        """Seconds that the second estimate takes more."""
        return self.seconds[1] - self.seconds[0]


class EstimateDiff(Report[EstimateDifference]):
    """The differences between two estimates, the largest change of seconds first; false if there are none.

    Made by :meth:`Estimate.diff`.

    Attributes:
        by: the columns.
        estimates: seconds of both steps.
    """

    _noun = "difference"

    def __init__(self, rows: Sequence[EstimateDifference], by: tuple[str, ...], estimates: tuple[float, float]) -> None:
        super().__init__(rows)
        self.by = by
        self.estimates = estimates

    @classmethod
    def of(
        cls,
        first: Sequence[Any],
        second: Sequence[Any],
        by: tuple[str, ...],
        getters: Sequence[Getter],
        estimates: tuple[float, float],
    ) -> EstimateDiff:
        """The differences of the rows of two estimates."""
        before, after = (
            {g.key: g for g in EstimateGroups.of(rows, by, getters, "", 0.0).rows} for rows in (first, second)
        )
        found = []
        for key in {**before, **after}:
            pair = before.get(key), after.get(key)
            seconds, transfer = ([getattr(group, name, 0.0) for group in pair] for name in ("seconds", "transfer"))
            if _is_equal(*seconds) and _is_equal(*transfer):
                continue
            change = "+" if pair[0] is None else "-" if pair[1] is None else "~"
            pairs = (seconds[0], seconds[1]), (transfer[0], transfer[1])
            found.append(EstimateDifference(change, key, *pairs, by))
        found.sort(key=lambda row: (-abs(row.delta), -abs(row.transfer[1] - row.transfer[0])))
        return cls(found, by, estimates)

    def _with(self, rows: Sequence[Any]) -> EstimateDiff:
        return EstimateDiff(rows, self.by, self.estimates)

    def summary(self) -> str:
        """One line: how many differences, and both steps."""
        if not self.rows:
            return "no difference"
        noun = "difference" if len(self.rows) == 1 else "differences"
        return f"{len(self.rows)} {noun} by {joined(self.by)}, {' → '.join(map(duration, self.estimates))}"

    def to_dict(self) -> dict[str, Any]:
        """``{"by": […], "estimates": [first, second], "differences": [{"change": "+", …}, …]}``; times in seconds."""
        return {"by": list(self.by), "estimates": list(self.estimates), "differences": self._records()}

    def _fields(self) -> Sequence[str]:
        return ("change", *self.by, "seconds_before", "seconds_after", "transfer_before", "transfer_after")

    def _records(self) -> list[dict[str, Any]]:
        return [dict(zip(self._fields(), (row.change, *row.key, *row.seconds, *row.transfer))) for row in self.rows]

    def _header(self) -> Sequence[str]:
        return ("", *self.by, "seconds", "delta", "transfer")

    def _cells(self, row: EstimateDifference) -> Sequence[str]:
        return (row.change, *key_cells(self.by, row.key), *self._numbers(row))

    def _terminal_cells(self, row: EstimateDifference) -> Sequence[str]:
        return (row.change, *key_cells(self.by, row.key, short=True), *self._numbers(row))

    def _numbers(self, row: EstimateDifference) -> tuple[str, str, str]:
        delta = f"{'-' if row.delta < 0 else '+'}{duration(abs(row.delta))}"
        return _pair(row.seconds), delta, _pair(row.transfer) if any(row.transfer) else ""

    def _right(self) -> frozenset[int]:
        return frozenset(range(1 + len(self.by), len(self._header())))

    def _drawn(self) -> Sequence[EstimateDifference]:
        return self.rows[:_MOST_ROWS]

    def _heading(self) -> str:
        return f"{self.summary()}:"

    def _footing(self) -> str:
        return f"… {len(self.rows) - _MOST_ROWS} more" if len(self.rows) > _MOST_ROWS else ""


def _is_equal(a: float, b: float) -> bool:
    """Sums of the same numbers in another order differ in their last digits."""
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def _pair(seconds: tuple[float, float]) -> str:
    return " → ".join(dict.fromkeys(map(duration, seconds)))
