# SPDX-License-Identifier: Apache-2.0
"""``program.memory()``: the peak memory of a run, known before it, by value and source line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from .._core.ir import Value
from .groups import Getters, Group, Groups, checked_keys, groups_of
from .memory_categories import categories_of, category_of
from .rematerialization import Rematerialization
from .tables import LocalTensorRow, LocatedRow, Report, format_bytes, short_location
from .timeline_svg import timeline_svg

__all__ = [
    "MemoryGroup",
    "MemoryGroups",
    "MemoryMoment",
    "MemoryReport",
    "MemoryRow",
    "MemoryTimeline",
    "memory_of",
]

_COLUMNS = ("value", "op", "type", "bytes", "share", "category", "where")
_GROUPED_BY = ("where", "op")
_MOST_MOMENTS = 24  # that are printed
_KEYS: Getters = {name: attrgetter(name) for name in ("where", "op", "value", "type", "file", "dtype", "category")}


@dataclass(frozen=True)
class MemoryRow(LocalTensorRow):
    """The buffers of one value that are alive at the peak.

    Attributes:
        value: its name in the program or the variable that holds it; "" where it has none.
        op: the op that allocates it, or ``"argument"``.
        shape: the shape on one device.
        dtype: the name of its dtype.
        bytes: all its buffers: a loop's carry may have two, of this trip and of the next.
        file, line: the user's source line.
        share: the fraction of the peak, from 0 to 1.
        category: what it is for: ``"weights"``, ``"optimizer state"``, ``"inputs"`` (arguments of a step that updates
            most of them), ``"arguments"`` (of any other program), ``"gradients"``, ``"gathered"`` (by an all_gather),
            ``"collective buffers"`` or ``"activations"``.
    """

    value: str
    op: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    file: str = ""
    line: int = 0
    share: float = 0.0
    category: str = "activations"

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, with values that JSON supports."""
        return {**asdict(self), "shape": list(self.shape)}


class MemoryGroup(Group):
    """The values at the peak that have one key; ``count`` is the number of values."""


class MemoryGroups(Groups[MemoryGroup]):
    """The memory at the peak by columns, largest group first. Made by :meth:`MemoryReport.group_by`."""


class MemoryReport(Report[MemoryRow]):
    """The peak memory of a run and the values that are alive then, in order of allocation.

    Long reports print grouped by line and op, largest first.

    Attributes:
        peak_bytes: the most bytes of buffers that are alive at once, arguments included.
        argument_bytes: bytes of the arguments, which the caller holds during the run unless it donates them.
        result_bytes: bytes of the results' buffers; a result that is an argument's buffer counts as an argument.
        devices: how many devices the bytes are of.
        limit: the bytes that a device has for the program; None where none were given.
        ladder: what would be computed again to stay within ``limit``, what frees most first; None where the program
            fits, or without a limit.
    """

    _noun = "value"

    def __init__(
        self,
        rows: Sequence[MemoryRow],
        peak_bytes: int,
        argument_bytes: int,
        result_bytes: int,
        devices: int,
        moments: Sequence[tuple[Value, int]] = (),
        limit: int | None = None,
        ladder: Rematerialization | None = None,
    ) -> None:
        super().__init__(rows)
        self.ladder = ladder
        self.peak_bytes = peak_bytes
        self.argument_bytes = argument_bytes
        self.result_bytes = result_bytes
        self.devices = devices
        self.limit = limit
        self._moments = moments

    @property
    def fits(self) -> bool | None:
        """Whether the peak is within the limit; None without one: pass ``limit=`` to ``memory()``."""
        return None if self.limit is None else self.peak_bytes <= self.limit

    def timeline(self) -> MemoryTimeline:
        """The bytes that are alive at each moment of the run."""
        moments = [_moment(value, size) for value, size in self._moments]
        return MemoryTimeline(moments, self.peak_bytes, self.limit)

    def largest(self, count: int = 10) -> MemoryReport:
        """The ``count`` values with the most bytes at the peak, largest first."""
        return self._with(sorted(self.rows, key=lambda row: -row.bytes)[:count])

    def group_by(self, *keys: str) -> MemoryGroups:
        """The values at the peak grouped by columns, the group of most bytes first.

        Args:
            keys: any of ``"where"`` (or ``"line"``), ``"op"``, ``"value"``, ``"type"``, ``"file"``, ``"dtype"``,
                ``"category"``. Default: ``"where"`` and ``"op"``.

        Raises:
            ValueError: a key is not a column.
        """
        by = checked_keys("group_by", keys or _GROUPED_BY, _KEYS)
        totals: dict[tuple[Any, ...], tuple[int, float]] = {}
        for row in self.rows:
            key = tuple(_KEYS[name](row) for name in by)
            count, size = totals.get(key, (0, 0.0))
            totals[key] = count + 1, size + row.bytes
        return MemoryGroups(groups_of(MemoryGroup, totals, by), by, f"{len(self.rows)} values at the {self.summary()}")

    def _grouped(self) -> MemoryGroups:
        return self.group_by()

    def summary(self) -> str:
        """One line: the peak, and how much of it arguments are."""
        whose = "per device" if self.devices == 1 else f"in {self.devices} virtual devices"
        arguments, results = format_bytes(self.argument_bytes), format_bytes(self.result_bytes)
        text = f"peak {format_bytes(self.peak_bytes)} {whose}; arguments {arguments}, results {results}"
        if self.limit is None:
            return text
        beyond = self.peak_bytes - self.limit
        verdict = "fits in" if self.fits else f"{format_bytes(beyond)} too much for"
        text = f"{text}; {verdict} {format_bytes(self.limit)}"
        return text if self.ladder is None else f"{text}; {self.ladder.in_words()}"

    def to_dict(self) -> dict[str, Any]:
        """``{"peak_bytes": …, "argument_bytes": …, "result_bytes": …, "devices": …, "limit": …, "at_peak": […]}``.

        With ``"ladder"``, too: None where nothing must be computed again. ``limit`` is None where none was given.
        """
        return {
            "peak_bytes": self.peak_bytes, "argument_bytes": self.argument_bytes, "result_bytes": self.result_bytes,
            "devices": self.devices, "limit": self.limit, "at_peak": self._records(),
            "ladder": None if self.ladder is None else self.ladder.to_dict(),
        }  # fmt: skip

    def _with(self, rows: Sequence[Any]) -> MemoryReport:
        sizes = self.peak_bytes, self.argument_bytes, self.result_bytes, self.devices
        return MemoryReport(rows, *sizes, self._moments, self.limit, self.ladder)

    def _header(self) -> Sequence[str]:
        return _COLUMNS

    def _fields(self) -> Sequence[str]:
        return list(MemoryRow.__dataclass_fields__)

    def _cells(self, row: MemoryRow) -> Sequence[str]:
        where, share = short_location(row.where), f"{row.share:.1%}"
        return (row.value, row.op, row.type, format_bytes(row.bytes), share, row.category, where)


@dataclass(frozen=True)
class MemoryMoment(LocatedRow):
    """A moment of a run: a buffer is allocated or freed.

    Attributes:
        bytes: all that is alive then.
        op: the op that makes the buffer, or ``"argument"``.
        value: the name of its value; "" where it has none.
        file, line: the user's source line.
    """

    bytes: int
    op: str
    value: str
    file: str = ""
    line: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


class MemoryTimeline(Report[MemoryMoment]):
    """The bytes that are alive over a run, in its order. A notebook shows them as a picture.

    Of long runs, the highest and the lowest of moments that follow each other are kept.

    Attributes:
        peak_bytes: the most of them.
        limit: of the report, or None.
    """

    _noun = "moment"

    def __init__(self, rows: Sequence[MemoryMoment], peak_bytes: int, limit: int | None) -> None:
        super().__init__(rows)
        self.peak_bytes = peak_bytes
        self.limit = limit

    def summary(self) -> str:
        """One line: the peak, and the line that makes it."""
        if not self.rows:
            return "no memory"
        peak = max(self.rows, key=lambda row: row.bytes)
        where = f" at {short_location(peak.where)}" if peak.where else ""
        return f"peak {format_bytes(self.peak_bytes)}{where}"

    def to_dict(self) -> dict[str, Any]:
        """``{"peak_bytes": …, "limit": …, "moments": [{…}, …]}``."""
        return {"peak_bytes": self.peak_bytes, "limit": self.limit, "moments": self._records()}

    def _with(self, rows: Sequence[Any]) -> MemoryTimeline:
        return MemoryTimeline(rows, self.peak_bytes, self.limit)

    def _header(self) -> Sequence[str]:
        return "op", "value", "bytes", "where"

    def _cells(self, row: MemoryMoment) -> Sequence[str]:
        return row.op, row.value, format_bytes(row.bytes), short_location(row.where)

    def _fields(self) -> Sequence[str]:
        return list(MemoryMoment.__dataclass_fields__)

    def _drawn(self) -> Sequence[MemoryMoment]:
        """The moments that are higher than all before: how the peak is reached."""
        highest, rows = -1, []
        for row in self.rows:
            if row.bytes > highest:
                highest = row.bytes
                rows.append(row)
        return rows[-_MOST_MOMENTS:]

    def _repr_html_(self) -> str:
        limit = "" if self.limit is None else f"limit {format_bytes(self.limit)}"
        values, title = [row.bytes for row in self.rows], "memory of one device over a run"
        return timeline_svg(values, self.limit, title, self.summary(), limit) + super()._repr_html_()


def _name_of(value: Value) -> tuple[str, str]:
    """The name of a value, and the op that makes it."""
    op = value.defining_op
    return value.name or value.location.variable, "argument" if op is None else op.name.partition(".")[2]


def _row(value: Value, count: int, peak_bytes: int, category: str) -> MemoryRow:
    name, op = _name_of(value)
    where, shape, share = value.location, tuple(value.type.shape), count / peak_bytes
    return MemoryRow(name, op, shape, value.type.dtype, count, where.file, where.line, share, category)


def _moment(value: Value, live: int) -> MemoryMoment:
    name, op = _name_of(value)
    return MemoryMoment(live, op, name, value.location.file, value.location.line)


def memory_of(
    rehearsed: tuple[Any, ...],
    module: Any,
    devices: int,
    limit: int | None = None,
    ladder: Rematerialization | None = None,
) -> MemoryReport:
    """The report of a rehearsed run of a local program: the values that are alive at the peak, each with its bytes."""
    peak_bytes, argument_bytes, result_bytes, values, moments = rehearsed
    categories = categories_of(module)
    rows = [_row(value, count, peak_bytes, category_of(value, categories)) for value, count in values]
    return MemoryReport(rows, peak_bytes, argument_bytes, result_bytes, devices, moments, limit, ladder)
