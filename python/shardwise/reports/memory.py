# SPDX-License-Identifier: Apache-2.0
"""``program.memory()``: the peak memory of a run, known before it, by value and source line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .._core.ir import Value
from .tables import LocalTensorRow, Report, format_bytes, short_location

__all__ = ["MemoryReport", "MemoryRow", "memory_of"]

_COLUMNS = ("value", "op", "type", "bytes", "share", "where")


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
    """

    value: str
    op: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    file: str = ""
    line: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, with values that JSON supports."""
        return {**asdict(self), "shape": list(self.shape)}


class MemoryReport(Report[MemoryRow]):
    """The peak memory of a run and the values that are alive then, in order of allocation.

    Attributes:
        peak_bytes: the most bytes of buffers that are alive at once, arguments included.
        argument_bytes: bytes of the arguments, which the caller holds during the run unless it donates them.
        result_bytes: bytes of the results' buffers; a result that is an argument's buffer counts as an argument.
        devices: how many devices the bytes are of.
    """

    def __init__(
        self, rows: Sequence[MemoryRow], peak_bytes: int, argument_bytes: int, result_bytes: int, devices: int
    ) -> None:
        super().__init__(rows)
        self.peak_bytes = peak_bytes
        self.argument_bytes = argument_bytes
        self.result_bytes = result_bytes
        self.devices = devices

    def largest(self, count: int = 10) -> MemoryReport:
        """The ``count`` values with the most bytes at the peak, largest first."""
        return self._with(sorted(self.rows, key=lambda row: -row.bytes)[:count])

    def summary(self) -> str:
        """One line: the peak, and how much of it arguments are."""
        whose = "per device" if self.devices == 1 else f"in {self.devices} virtual devices"
        arguments, results = format_bytes(self.argument_bytes), format_bytes(self.result_bytes)
        return f"peak {format_bytes(self.peak_bytes)} {whose}; arguments {arguments}, results {results}"

    def to_dict(self) -> dict[str, Any]:
        """``{"peak_bytes": …, "argument_bytes": …, "result_bytes": …, "devices": …, "at_peak": [{…}, …]}``."""
        return {
            "peak_bytes": self.peak_bytes, "argument_bytes": self.argument_bytes, "result_bytes": self.result_bytes,
            "devices": self.devices, "at_peak": self._records(),
        }  # fmt: skip

    def _with(self, rows: Sequence[Any]) -> MemoryReport:
        return MemoryReport(rows, self.peak_bytes, self.argument_bytes, self.result_bytes, self.devices)

    def _header(self) -> Sequence[str]:
        return _COLUMNS

    def _fields(self) -> Sequence[str]:
        return list(MemoryRow.__dataclass_fields__)

    def _cells(self, row: MemoryRow) -> Sequence[str]:
        share = f"{row.bytes / self.peak_bytes:.1%}"
        return (row.value, row.op, row.type, format_bytes(row.bytes), share, short_location(row.location))


def _row(value: Value, count: int) -> MemoryRow:
    op, where = value.defining_op, value.location
    name = value.name or where.variable
    op_name = "argument" if op is None else op.name.partition(".")[2]
    return MemoryRow(name, op_name, tuple(value.type.shape), value.type.dtype, count, where.file, where.line)


def memory_of(
    values: Sequence[tuple[Value, int]], peak_bytes: int, argument_bytes: int, result_bytes: int, devices: int
) -> MemoryReport:
    """The report of a rehearsed run: the values that are alive at the peak, each with its bytes."""
    rows = [_row(value, count) for value, count in values]
    return MemoryReport(rows, peak_bytes, argument_bytes, result_bytes, devices)
