# SPDX-License-Identifier: Apache-2.0
"""Tables: the rows of a report as text, for ``rich``, as HTML, as JSON and as a pandas DataFrame."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, TypeVar, overload

from .._core import ir as _ir
from ..errors import message

__all__ = ["LocalTensorRow", "LocatedRow", "Report", "aligned", "format_bytes", "place", "short_location", "type_text"]

Row = TypeVar("Row")
Self = TypeVar("Self", bound="Report[Any]")
_WRAPPED = frozenset({"axes", "type", "cause"})  # columns that a narrow terminal may break
_LONG = 24  # rows: more are printed in groups, and folded in notebooks
_MOST_HTML_ROWS = 400
_NUMBERS = frozenset({"devices", "bytes", "count", "share"})  # columns that are flush right


def format_bytes(count: float) -> str:
    """A number of bytes in binary units: ``8192`` is ``8 KiB``.

    >>> format_bytes(1536), format_bytes(12)
    ('1.5 KiB', '12 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if float(f"{count:.4g}") < 1024 or unit == "PiB":
            return f"{count:.4g} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def type_text(dtype: str, shape: Sequence[int]) -> str:
    """Dtype and shape of a tensor: ``float32[16,64]``."""
    return f"{dtype}[{','.join(map(str, shape))}]"


def place(file: str, line: int) -> str:
    """A source line as text; "" for an unknown file.

    >>> place("train.py", 31), place("Cell In[2]", 6)
    ('train.py:31', 'Cell In[2], line 6')
    """
    return _ir.place_text(file, line)


class LocatedRow:
    """The part that rows about a source line share."""

    file: str
    line: int

    @property
    def location(self) -> str:
        """``file:line``, ``Cell In[2], line 6`` in a notebook, or "" if the source line is unknown."""
        return place(self.file, self.line)

    @property
    def where(self) -> str:
        """The same as ``location``."""
        return self.location


class LocalTensorRow(LocatedRow):
    """The part that rows about one device's tensor share: its type and the user's source line."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def type(self) -> str:
        """Dtype and shape on one device: ``float32[16,64]``."""
        return type_text(self.dtype, self.shape)


def short_location(location: str) -> str:
    """A location for display: files below the working directory are relative to it."""
    return location.removeprefix(os.getcwd() + os.sep)


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


class Report(Sequence[Row]):
    """The rows of a report, and their views. A subclass defines the columns; rows have ``to_dict()``.

    Each column of the table is an attribute of the rows. A report of more than 24 rows prints in groups, if it has any.
    """

    _noun = "row"  # what a row is
    _grouping = "group_by"  # the method that groups rows

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)

    @abstractmethod
    def summary(self) -> str:
        """One line for the whole report."""

    @abstractmethod
    def _header(self) -> Sequence[str]:
        """The names of the columns."""

    @abstractmethod
    def _cells(self, row: Row) -> Sequence[str]:
        """The text of a row, one per column."""

    def _terminal_cells(self, row: Row) -> Sequence[str]:
        """The text of a row for a terminal, which is narrow."""
        return self._cells(row)

    def _terminal_columns(self) -> Sequence[int]:
        """The columns that a terminal shows."""
        return range(len(self._header()))

    def _grouped(self) -> Report[Any] | None:
        """What is printed in place of a long report: its groups."""
        return None

    @property
    def _in_groups(self) -> Report[Any] | None:
        return self._grouped() if len(self) > _LONG else None

    def _drawn(self) -> Sequence[Row]:
        """The rows that the views show; ``rows`` has all of them."""
        return self.rows

    def _heading(self) -> str:
        """A line above the table, or ""."""
        return ""

    def _footing(self) -> str:
        """A line below the table, or ""."""
        return self.summary()

    def _records(self) -> list[dict[str, Any]]:
        return [row.to_dict() for row in self.rows]  # type: ignore[attr-defined]

    def _frame_records(self) -> list[dict[str, Any]]:
        """The record of each row in a data frame."""
        return self._records()

    def _fields(self) -> Sequence[str]:
        """The columns of a data frame, even without rows."""
        return self._header()

    def _with(self: Self, rows: Sequence[Any]) -> Self:
        return type(self)(rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self: Self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._with(self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.rows == other.rows

    def __hash__(self) -> int:
        return hash(self.rows)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The report as values that JSON supports."""

    def to_json(self) -> str:
        """:meth:`to_dict` as JSON text."""
        import json  # loaded only for this: it would slow down the import of shardwise

        return json.dumps(self.to_dict())

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with one row for each row of the report. Raises ImportError without pandas."""
        try:
            import pandas
        except ImportError:
            raise ImportError(message("to_pandas", "needs pandas", "none installed", "pip install pandas")) from None
        return pandas.DataFrame(self._frame_records(), columns=list(self._fields()))

    def _right(self) -> frozenset[int]:
        return frozenset(i for i, name in enumerate(self._header()) if name in _NUMBERS)

    def __repr__(self) -> str:
        if not self.rows:
            return self.summary()
        if (groups := self._in_groups) is not None:
            return f"{groups!r}\n.rows has every {self._noun}; .{self._grouping}(…) groups by other columns"
        table = aligned(self._header(), [self._cells(row) for row in self._drawn()], self._right())
        return "\n".join(filter(None, [self._heading(), table, self._footing()]))

    def __rich__(self) -> Any:
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        if not self.rows:
            return Text(self.summary())
        if (groups := self._in_groups) is not None:
            return groups.__rich__()
        columns, header = self._terminal_columns(), self._header()
        table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
        for i in columns:
            justify: Any = "right" if i in self._right() else "left"
            table.add_column(header[i], justify=justify, no_wrap=header[i] not in _WRAPPED, overflow="fold")
        for row in self._drawn():
            cells = self._terminal_cells(row)
            table.add_row(*(Text(cells[i]) for i in columns))
        above, below = ([Text(line)] if line else [] for line in (self._heading(), self._footing()))
        return Group(*above, table, *below)

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{escape(self.summary())}</p>"
        if (groups := self._in_groups) is not None:
            return groups._repr_html_() + self._html_table(self.rows)
        lines = [f"<p>{escape(line)}</p>" if line else "" for line in (self._heading(), self._footing())]
        return lines[0] + self._html_table(self._drawn()) + lines[1]

    def _html_table(self, rows: Sequence[Row]) -> str:
        """The rows as a table; many of them are folded, and the rest of very many is counted."""
        head = "".join(f"<th>{escape(column)}</th>" for column in self._header())
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in self._cells(row)) + "</tr>"
            for row in rows[:_MOST_HTML_ROWS]
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        if len(rows) <= _LONG:
            return table
        more = f"<p>… {len(rows) - _MOST_HTML_ROWS} more in .rows</p>" if len(rows) > _MOST_HTML_ROWS else ""
        return f"<details><summary>all {len(rows)} {self._noun}s</summary>{table}{more}</details>"
