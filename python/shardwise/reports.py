# SPDX-License-Identifier: Apache-2.0
"""What a program tells about itself: its collectives with their reasons (``explanations.py`` has shardings and theirs).

Reports are data first: dataclasses with ``to_dict()`` and ``to_json()``; tables and prose are views of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from html import escape
from typing import Any, overload

__all__ = ["CollectiveRow", "Ledger"]


def format_bytes(count: float) -> str:
    """A number of bytes in binary units: ``8192`` is ``8 KiB``.

    >>> format_bytes(1536), format_bytes(12)
    ('1.5 KiB', '12 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if count < 1024 or unit == "PiB":
            return f"{count:.4g} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def place(file: str, line: int) -> str:
    return f"{file}:{line}" if file else ""


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Rows as text in columns; those in ``right`` are flush right.

    >>> print(aligned(["kind", "count"], [["all_reduce", "2"]], frozenset({1})))
    kind        count
    all_reduce      2
    """
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in (header, *rows)
    )


@dataclass(frozen=True)
class CollectiveRow:
    """One collective of a program.

    Attributes:
        kind: ``"all_reduce"``, ``"all_gather"``, …
        axes: the mesh axes of a group, as text.
        group_size: how many devices take part in a group.
        bytes: received by one device in one execution.
        shape: of one device's result.
        dtype: its dtype's name.
        count: how often it is executed in one run.
        file, line: the user's source line of the op that needed it.
        cause: why it is there, for example ``"reduction in dot_general"``.
        name: of its result in the program text.
    """

    kind: str
    axes: str
    group_size: int
    bytes: float
    shape: tuple[int, ...]
    dtype: str
    count: int = 1
    file: str = ""
    line: int = 0
    cause: str = ""
    name: str = ""

    @property
    def total_bytes(self) -> float:
        """Bytes that one device receives in all executions together."""
        return self.bytes * self.count

    @property
    def location(self) -> str:
        """``file:line``, or "" where no source line is known."""
        return place(self.file, self.line)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON can hold them."""
        return {**asdict(self), "shape": list(self.shape)}


def shown(location: str) -> str:
    """A location as text for people: files below the working directory are relative to it."""
    here = os.getcwd() + os.sep
    return location.removeprefix(here)


_COLUMNS = ("kind", "axes", "devices", "bytes", "count", "type", "where", "cause")
_RIGHT = frozenset({2, 3, 4})


def _cells(row: CollectiveRow) -> tuple[str, ...]:
    shape = ",".join(map(str, row.shape))
    return (
        row.kind, row.axes, str(row.group_size), format_bytes(row.bytes), str(row.count), f"{row.dtype}[{shape}]",
        shown(row.location), row.cause,
    )  # fmt: skip


class Ledger(Sequence[CollectiveRow]):
    """Every collective of a program, in program order.

    >>> ledger = ledger_of([dict(kind="all_reduce", axes='{"model"}', group_size=2, bytes=4096.0, shape=(16, 64),
    ...                          dtype="float32", count=1, file="train.py", line=9, cause="reduction in dot_general")])
    >>> ledger
    kind        axes       devices  bytes  count  type            where       cause
    all_reduce  {"model"}        2  4 KiB      1  float32[16,64]  train.py:9  reduction in dot_general
    1 collective, 4 KiB received per device
    """

    def __init__(self, rows: Sequence[CollectiveRow]) -> None:
        self.rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> CollectiveRow: ...
    @overload
    def __getitem__(self, index: slice) -> Ledger: ...
    def __getitem__(self, index: int | slice) -> CollectiveRow | Ledger:
        return Ledger(self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[CollectiveRow]:
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self.rows == other.rows

    def __hash__(self) -> int:
        return hash(self.rows)

    @property
    def total_bytes(self) -> float:
        """Bytes that one device receives in one run of the program."""
        return sum(row.total_bytes for row in self.rows)

    def by_kind(self) -> dict[str, int]:
        """How many collectives of each kind a run executes."""
        counts: dict[str, int] = {}
        for row in self.rows:
            counts[row.kind] = counts.get(row.kind, 0) + row.count
        return counts

    def to_dict(self) -> dict[str, Any]:
        """``{"total_bytes": …, "collectives": [{…}, …]}``."""
        return {"total_bytes": self.total_bytes, "collectives": [row.to_dict() for row in self.rows]}

    def to_json(self) -> str:
        """:meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict())

    def summary(self) -> str:
        """One line: how many collectives, how many bytes."""
        if not self.rows:
            return "no collectives"
        noun = "collective" if len(self.rows) == 1 else "collectives"
        return f"{len(self.rows)} {noun}, {format_bytes(self.total_bytes)} received per device"

    def __repr__(self) -> str:
        if not self.rows:
            return self.summary()
        return aligned(_COLUMNS, [_cells(row) for row in self.rows], _RIGHT) + "\n" + self.summary()

    def __rich__(self) -> Any:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        # A terminal is narrow: no column of ones, no folders; the rows and repr have both.
        counted = any(row.count != 1 for row in self.rows)
        shown = [i for i, column in enumerate(_COLUMNS) if column != "count" or counted]
        table = Table(caption=self.summary(), caption_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
        for i in shown:
            table.add_column(
                _COLUMNS[i], justify="right" if i in _RIGHT else "left", no_wrap=_COLUMNS[i] != "cause", overflow="fold"
            )
        for row in self.rows:
            cells = _cells(replace(row, file=os.path.basename(row.file)))
            table.add_row(*(Text(cells[i]) for i in shown))
        return table

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{self.summary()}</p>"
        head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{self.summary()}</p>"


def ledger_of(rows: Sequence[dict[str, Any]]) -> Ledger:
    """The ledger of the extension's dicts, one per collective."""
    known = {f.name for f in fields(CollectiveRow)}
    return Ledger([_row_of({k: v for k, v in row.items() if k in known}) for row in rows])


def _row_of(values: dict[str, Any]) -> CollectiveRow:
    return CollectiveRow(**{**values, "shape": tuple(values["shape"])})
